"""Robust location and outliers: the influence of gross errors."""

from itertools import groupby
from typing import Any

import numpy as np
import pytest
from scipy.special import chdtrc, chdtri

import marey
from marey.numerics import robust

METHODS = tuple(robust.LOCATIONS)
ROBUST = ("median", "huber", "tukey")
PRINTED: dict[str, Any] = {"outlier": 2.0, "suspect": 2.0, "method": "median"}


@pytest.mark.parametrize("method", METHODS)
def test_location_moves_and_grows_with_the_values(method, rng):
    x = rng.standard_t(3, 301)
    found = robust.location(x, method)
    assert robust.location(-3.0 * x + 7.0, method) == pytest.approx(7.0 - 3.0 * found)
    assert robust.location(rng.permutation(x), method) == pytest.approx(found)


@pytest.mark.parametrize("method", METHODS)
def test_unknown_values_say_nothing(method, rng):
    x = rng.normal(size=50)
    holes = np.insert(x, [0, 20, 50], np.nan)
    assert robust.location(holes, method) == robust.location(x, method)
    assert np.isnan(robust.location(np.full(3, np.nan), method))


@pytest.mark.parametrize("method", ROBUST)
def test_constant_values_have_no_scale_and_need_none(method):
    assert robust.location(np.full(9, 0.3), method) == 0.3
    assert robust.location(np.array([0.3] * 6 + [3.0] * 3), method) == 0.3


def test_the_one_step_is_the_printed_formula():
    """Bodenheimer1997, Sec. 3.1, written out for five values."""
    x = np.array([1.0, 1.1, 1.2, 1.4, 9.0])
    middle, scale = robust.median_and_scale(x)
    assert (middle, scale) == (1.2, pytest.approx(1.483 * 0.2))
    psi = np.array([-0.2, -0.1, 0.0, 0.2, 2.0 * scale]) / scale
    assert robust.huber(x) == pytest.approx(1.2 + scale * psi.sum() / 4)


def test_the_further_a_value_is_the_less_tukey_heeds_it():
    x = np.linspace(0.9, 1.1, 21)
    near, far, gone = (robust.tukey(np.append(x, v)) for v in (1.3, 2.0, 2e9))
    assert near > far == gone
    assert gone == pytest.approx(robust.tukey(x), abs=2e-3)
    huber = [robust.huber(np.append(x, v)) for v in (1.3, 2.0, 2e9)]
    np.testing.assert_allclose(huber, huber[0], rtol=1e-12)


def test_efficiency_at_normal_values():
    """Beside the mean: Huber's step 0.985, Tukey 0.935, the median 0.61 or so."""
    x = np.random.default_rng(4).normal(size=(3000, 200))
    spread = {m: np.var([robust.location(row, m) for row in x]) for m in METHODS}
    share = {method: spread["mean"] / value for method, value in spread.items()}
    assert share["huber"] == pytest.approx(0.97, abs=0.03)
    assert share["tukey"] == pytest.approx(0.94, abs=0.03)
    assert share["median"] == pytest.approx(0.64, abs=0.05)


# --- tags -----------------------------------------------------------------------------


def test_tags_do_not_depend_on_unit_origin_or_sign(rng):
    x = rng.standard_t(2, (400, 3))
    tags = robust.tag_outliers(x)
    assert tags.any()
    np.testing.assert_array_equal(robust.tag_outliers(-1e3 * x + 5.0), tags)
    np.testing.assert_array_equal(robust.tag_outliers(x[:, 1]), tags[:, 1])


def test_tagging_spreads_to_suspect_neighbours_and_no_further():
    """An error that begins and ends slowly: its outlier flags the frames beside it."""
    x = np.tile([1.0, -1.0, 0.5, -0.5], 50) / 1.483  # the scale is about one
    x[100:107] = [3.0, 3.0, 9.0, 3.0, 0.0, 3.0, 3.0]
    assert np.flatnonzero(robust.tag_outliers(x)).tolist() == [100, 101, 102, 103]
    assert np.flatnonzero(robust.tag_outliers(x, suspect=3.5)).tolist() == [102]


def test_good_values_are_hardly_ever_tagged_and_as_printed_one_in_22():
    x = np.random.default_rng(1).normal(size=(5000, 40))
    assert robust.tag_outliers(x).mean() < 1e-3
    assert robust.tag_outliers(x, **PRINTED).mean() == pytest.approx(0.0455, abs=0.002)


def test_unknown_values_are_never_tagged(rng):
    x = rng.normal(size=(100, 2))
    x[40:60, 0], x[:, 1] = np.nan, np.nan
    assert not robust.tag_outliers(x, outlier=0.5, suspect=0.5)[np.isnan(x)].any()


def test_of_constant_values_only_what_differs_is_tagged():
    x = np.full(20, 0.1 + 0.2)
    x[5:9] = 0.3  # rounding
    assert not robust.tag_outliers(x).any()
    x[12] = 0.301
    assert np.flatnonzero(robust.tag_outliers(x)).tolist() == [12]
    assert not robust.tag_outliers(x, min_scale=1e-3).any()


def test_508_frames_six_of_them_outliers():
    """Bodenheimer1997, Sec. 3.1: within 0.02 cm of by hand, what is clear tagged."""
    off, missed, false = [], 0, []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x = rng.normal(13.3, 0.6, 508)
        outlier = np.zeros(508, dtype=bool)
        outlier[rng.choice(508, 6, replace=False)] = True
        x[outlier] = 13.3 + rng.exponential(0.8 * 508 / 6, 6)
        tags = robust.tag_outliers(x)
        off.append(robust.location(x) - x[~outlier].mean())
        middle, scale = robust.median_and_scale(x)
        missed += (outlier & (x > middle + 4.0 * scale) & ~tags).sum()
        false.append(tags[~outlier].mean())
    assert np.abs(off).max() < 0.02
    assert missed == 0
    assert np.max(false) < 0.01


@pytest.mark.parametrize("shape", [(0,), (0, 3), (0, 3, 2), (5, 0), (0, 0)])
def test_of_no_values_none_is_tagged(shape):
    assert robust.tag_outliers(np.zeros(shape)).shape == shape


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_medians_of_columns_are_those_of_their_known_values(n, rng):
    x = rng.normal(size=(n, 3, 4))
    x[rng.random(x.shape) < 0.3] = np.nan
    x[:, 1, 2] = np.nan
    found = robust.column_medians(x)
    for row in np.ndindex(3, 4):
        known = x[:, *row][np.isfinite(x[:, *row])]
        expected = np.median(known) if len(known) else np.nan
        np.testing.assert_equal(found[row], expected)
    assert np.isnan(robust.column_medians(x[:0])).all()


def test_runs_are_the_stretches_of_flags(rng):
    for chance in (0.0, 0.1, 0.5, 0.9, 1.0):
        for count in (0, 1, 2, 60):
            flags = rng.random(count) < chance
            wanted = [
                [k for k, _ in some]
                for flag, some in groupby(enumerate(flags), key=lambda pair: pair[1])
                if flag
            ]
            found = robust.runs(flags)
            assert [list(range(a, b + 1)) for a, b in found] == wanted


def test_thresholds_and_methods_that_make_no_sense_are_refused(rng):
    x = rng.normal(size=9)
    with pytest.raises(marey.OptionError, match="suspect"):
        robust.tag_outliers(x, outlier=2.0, suspect=3.0)
    with pytest.raises(marey.OptionError, match="median, mean, huber, tukey"):
        robust.location(x, "mode")


# --- blame ----------------------------------------------------------------------------

STAR = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]])
CHAIN = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]])


@pytest.mark.parametrize(
    ("ends", "off", "guilty"),
    [
        (STAR, [1, 1, 1], [0]),
        (STAR, [1, 1, 0], [0]),
        (STAR, [0, 1, 0], [2]),
        (STAR, [0, 0, 0], []),
        (CHAIN, [1, 1, 0], [1]),
        (CHAIN, [1, 0, 0], [0]),
        (CHAIN, [0, 1, 0], [1, 2]),
        (CHAIN, [1, 0, 1], [0, 3]),
        (CHAIN, [1, 1, 1], [1, 2]),
    ],
)
def test_blame_goes_to_what_explains_most(ends, off, guilty):
    found = robust.attribute_outliers(np.array([off, off], dtype=bool), ends)
    assert [np.flatnonzero(row).tolist() for row in found] == [guilty, guilty]


def test_a_link_of_nothing_accuses_nobody():
    """Alone, and beside links that do accuse."""
    alone = robust.attribute_outliers(
        np.ones((1, 1), dtype=bool), np.zeros((1, 2), dtype=int)
    )
    assert alone.tolist() == [[False, False]]
    ends = np.vstack([STAR, np.zeros((1, 4), dtype=int)])
    off = np.array([[1, 1, 0, 1], [0, 1, 0, 1], [0, 0, 0, 1]], dtype=bool)
    np.testing.assert_array_equal(
        robust.attribute_outliers(off, ends),
        robust.attribute_outliers(off[:, :3], STAR),
    )


def test_of_no_frames_and_no_links_nobody_is_blamed():
    assert robust.attribute_outliers(np.zeros((0, 3), dtype=bool), STAR).shape == (0, 4)
    none = np.zeros((0, 4), dtype=int)
    assert not robust.attribute_outliers(np.zeros((2, 0), dtype=bool), none).any()


@pytest.mark.parametrize("freedom", [1, 2, 3, 8, 15, 60, 801])
def test_the_chance_of_a_larger_chi_squared_number(freedom):
    squares = [0.0, 1e-12, 0.3, 1.0, float(freedom), 4.0 * freedom, 900.0]
    found = [robust.chi_squared_survival(square, freedom) for square in squares]
    np.testing.assert_allclose(found, chdtrc(freedom, squares), rtol=1e-12)


@pytest.mark.parametrize("freedom", [1, 2, 3, 8, 15, 60, 1501, 40_000])
@pytest.mark.parametrize("chance", [1e-9, 1e-3, 0.01, 0.5, 0.99])
def test_the_quantile_of_a_chi_squared_number(chance, freedom):
    found = robust.chi_squared_quantile(chance, freedom)
    assert found == pytest.approx(chdtri(freedom, chance), rel=1e-9)


@pytest.mark.parametrize("n", [1, 2, 7, 8])
def test_the_median_of_finite_values(n, rng):
    x = np.append(rng.normal(size=n), [np.nan, np.inf, -np.inf])
    assert robust.finite_median(rng.permutation(x)) == np.median(x[:n])


def test_the_median_of_no_finite_values_is_zero():
    assert robust.finite_median(np.array([np.nan, np.inf])) == 0.0


def test_medians_of_groups_are_those_of_each_alone(rng):
    """Whatever the order of the values; a group of none has no median."""
    group = rng.integers(0, 12, size=60)
    group[group == 7] = 8
    values = rng.normal(size=(60, 2)).round(1)
    found = robust.group_medians(values, group, 12)
    for k in set(range(12)) - {7}:
        np.testing.assert_array_equal(found[k], np.median(values[group == k], axis=0))
    assert np.isnan(found[7]).all()
