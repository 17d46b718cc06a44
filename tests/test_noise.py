"""Noise: known noise comes back, whatever the axes and the unit."""

import numpy as np
import pytest
from scipy.stats import chi, chi2, norm

from marey.numerics import geometry, noise, robust, thresholds

N = 20_000
SD = 0.7e-3


def squares(vectors):
    return np.sum(vectors**2, axis=-1)


def lengths(vectors):
    return np.linalg.norm(vectors, axis=-1)


# Each estimate of the standard deviation per axis, and its relative standard error in N
# vectors: by the theory of quantiles, or of the mean of 3 N squares.
ESTIMATORS = {
    "rms": (lambda v: noise.rms_length(v) / np.sqrt(3.0), 1.0 / np.sqrt(6.0 * N)),
    "median": (
        lambda v: np.sqrt(noise.median_variance(squares(v))),
        0.5 / np.sqrt(N) / (2.0 * chi2.median(3) * chi2.pdf(chi2.median(3), 3)),
    ),
    "trimmed": (
        lambda v: np.sqrt(noise.trimmed_variance(squares(v))),
        1.3 / np.sqrt(6.0 * N),
    ),
    "quartile": (
        lambda v: float(noise.quantile_sd(lengths(v), 0.25)),
        np.sqrt(3.0)
        / 4.0
        / np.sqrt(N)
        / (chi.ppf(0.25, 3) * chi.pdf(chi.ppf(0.25, 3), 3)),
    ),
}
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


@every_estimator
def test_known_noise_comes_back_within_its_standard_error(name, rng):
    estimate, error = ESTIMATORS[name]
    found = [estimate(SD * rng.normal(size=(N, 3))) / SD for _ in range(20)]
    assert abs(np.mean(found) - 1.0) < 4.0 * error / np.sqrt(len(found))
    assert 0.6 * error < np.std(found, ddof=1) < 1.6 * error


@every_estimator
def test_estimates_do_not_depend_on_the_axes_and_follow_the_unit(name, rng):
    estimate, _ = ESTIMATORS[name]
    vectors = SD * rng.normal(size=(200, 3)) * [1.0, 2.0, 3.0]
    R = geometry.rotation_exp(rng.normal(size=3))
    assert estimate(vectors @ R.T) == pytest.approx(estimate(vectors), rel=1e-12)
    assert estimate(1000.0 * vectors) == pytest.approx(
        1e3 * estimate(vectors), rel=1e-12
    )


@pytest.mark.parametrize(("name", "share"), [("median", 0.05), ("trimmed", 0.05)])
def test_a_few_gross_errors_change_the_noise_little(name, share, rng):
    vectors = SD * rng.normal(size=(N, 3))
    vectors[: int(share * N)] += 1.0
    assert ESTIMATORS[name][0](vectors) == pytest.approx(SD, rel=2.0 * share)


def test_the_quartile_is_that_of_the_frames_that_stand(rng):
    vectors = SD * rng.normal(size=(N, 3))
    vectors[: N // 2] += 1.0
    in_half = chi.ppf(0.5, 3) / chi.ppf(0.25, 3)
    found = float(noise.quantile_sd(lengths(vectors), 0.25))
    assert found == pytest.approx(in_half * SD, rel=0.02)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_white_noise_keeps_its_variance_in_differences(order, rng):
    difference = noise.white_difference(SD * rng.normal(size=(N, 3)), order)
    assert len(difference) == N - order
    assert np.std(difference) == pytest.approx(SD, rel=6.0 / np.sqrt(N))


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_smooth_motion_vanishes_in_differences(order, rng):
    time = np.linspace(0.0, 1.0, 50)[:, None]
    path = sum(time**k * rng.normal(size=3) for k in range(order))
    assert np.abs(noise.white_difference(path, order)).max() < 1e-13
    steps = noise.white_difference(time**order * np.ones(3), order, 7)
    np.testing.assert_array_equal(
        steps, noise.white_difference(time**order * np.ones(3), order)[::7]
    )


def test_nothing_seen_has_no_noise():
    none = noise.white_difference(np.zeros((3, 3)), 4)
    assert none.shape == (0, 3)
    assert np.isnan(noise.rms_length(none))
    assert noise.median_variance(squares(none)) == 0.0
    assert noise.trimmed_variance(squares(none)) == 0.0
    assert noise.quantile_sd(lengths(none), 0.25) == 0.0


def test_constants_are_those_of_their_distributions():
    cut = thresholds.OUTLIER_SD**2
    expected = {
        "Q10_Q90_SD": norm.ppf(0.9) - norm.ppf(0.1),
        "ABS_Q90_SD": norm.ppf(0.95),
        "CHI2_3_MEDIAN": chi2.median(3),
        "CHI2_3_TRUNCATED_MEAN": 3.0 * chi2.cdf(cut, 5) / chi2.cdf(cut, 3),
    }
    for name, value in expected.items():
        assert getattr(robust, name) == pytest.approx(value, rel=1e-12), name
