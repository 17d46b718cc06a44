"""Rigid shapes and poses from markers, whole, gappy, bad or too few."""

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from marey.numerics import geometry
from marey.numerics.procrustes import fit_rigid, median_in_body
from marey.numerics.procrustes_kernel import KEPT, alternate

# Outliers in standard deviations, and the median of squared residuals over their mean.
ROBUST = (3.0, chi2.median(3) / chi2.mean(3))

seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)
quick = settings(deadline=None, max_examples=12)


def moving(rng, shape, n_frames=60, noise=0.0):
    """A shape carried through the world, and the poses that carried it."""
    R = geometry.rotation_exp(rng.normal(size=(n_frames, 3)))
    T = geometry.transform(R, rng.normal(size=(n_frames, 3)))
    points = geometry.apply(T[:, None], shape)
    return points + noise * rng.normal(size=points.shape), T


@given(rng=seeds, n_markers=st.integers(3, 7), share=st.floats(0.0, 0.3))
@quick
def test_exact_markers_give_exact_poses_whatever_is_missing(rng, n_markers, share):
    shape = rng.normal(size=(n_markers, 3))
    points, T = moving(rng, shape)
    lost = rng.random(points.shape[:2]) < share
    lost[0] = False
    points[lost] = np.nan
    fit = fit_rigid(points)
    enough = (~lost).sum(axis=1) >= 3
    assert fit.determined
    assert (np.isfinite(fit.T_world_body).all(axis=(1, 2)) == enough).all()
    # Both carry the same points, so they differ by one constant transform.
    between = geometry.inverse(T[enough]) @ fit.T_world_body[enough]
    np.testing.assert_allclose(between, between[:1].repeat(enough.sum(), 0), atol=1e-6)
    np.testing.assert_allclose(geometry.apply(between[0], fit.offset), shape, atol=1e-6)
    assert fit.rms < 1e-6


@given(rng=seeds)
@quick
def test_axes_come_from_the_markers_and_not_from_the_world(rng):
    shape = rng.normal(size=(5, 3))
    points, _ = moving(rng, shape, noise=0.01)
    T_new_world = geometry.transform(
        geometry.rotation_exp(rng.normal(size=3)), rng.normal(size=3)
    )
    before = fit_rigid(points)
    after = fit_rigid(geometry.apply(T_new_world, points))
    np.testing.assert_allclose(after.offset, before.offset, atol=1e-9)
    np.testing.assert_allclose(
        after.T_world_body, T_new_world @ before.T_world_body, atol=1e-9
    )


def test_the_body_stands_on_its_markers(rng):
    points, _ = moving(rng, rng.normal(size=(4, 3)), noise=1e-3)
    places = fit_rigid(points).offset
    np.testing.assert_allclose(places.mean(axis=0), 0.0, atol=1e-12)
    first = places[1] - places[0]
    np.testing.assert_allclose(first / np.linalg.norm(first), [1, 0, 0], atol=1e-12)
    assert places[2, 2] == pytest.approx(places[0, 2], abs=1e-12)


def test_one_pose_is_that_of_the_naive_fit(rng):
    points, _ = moving(rng, rng.normal(size=(5, 3)), n_frames=40, noise=1e-4)
    fit = fit_rigid(points)
    for frame in (0, 17):
        pose = naive.kabsch(fit.offset, points[frame], np.ones(5))
        np.testing.assert_allclose(fit.T_world_body[frame], pose, atol=2e-4)


@given(rng=seeds, n_markers=st.integers(4, 7), medians=st.booleans())
@quick
def test_one_turn_of_shape_and_poses_is_the_naive_one(rng, n_markers, medians):
    from marey.numerics.procrustes_kernel import MEANS, MEDIANS, alternate

    shape = rng.normal(size=(n_markers, 3))
    points, T = moving(rng, shape, n_frames=25, noise=0.02)
    points[rng.random(points.shape[:2]) < 0.05] = np.nan
    weight = rng.uniform(0.5, 1.0, size=points.shape[:2])
    expected = naive.rigid_turn(points, shape, weight, T, medians=medians)
    turns = np.array([MEDIANS if medians else MEANS])
    alternate(points, shape, weight, T, turns, *ROBUST)
    for found, wanted in zip((shape, weight, T), expected, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_places_are_the_medians_of_where_markers_were_seen(rng):
    points, T = moving(rng, rng.normal(size=(4, 3)), noise=0.01)
    points[:20, 1] = np.nan
    points[:, 3] = np.nan
    local = geometry.apply(geometry.inverse(T)[:, None], points)
    places = median_in_body(T, points)
    np.testing.assert_allclose(
        places[:3], np.nanmedian(local[:, :3], axis=0), atol=1e-12
    )
    assert np.isnan(places[3]).all()


def test_the_noise_shows_in_rms_and_sd(rng):
    shape = rng.normal(size=(8, 3))
    points, _ = moving(rng, shape, n_frames=400, noise=0.01)
    fit = fit_rigid(points)
    # Of 24 coordinates six go into the pose.
    expected = 0.01 * np.sqrt(3.0 * (1.0 - 6.0 / 24.0))
    assert fit.rms == pytest.approx(expected, rel=0.05)
    assert np.sqrt(np.mean(fit.sd**2)) == pytest.approx(fit.rms, rel=1e-9)


def test_a_marker_that_strays_is_trusted_less(rng):
    shape = rng.normal(size=(5, 3))
    points, T = moving(rng, shape, n_frames=300, noise=1e-3)
    points[:, 4] += 0.05 * rng.normal(size=(300, 3))
    fit = fit_rigid(points)
    equal = geometry.kabsch(fit.offset, points)

    def turned(poses):
        between = geometry.inverse(T) @ poses
        mean = geometry.kabsch(np.eye(3), between[:, :3, :3].mean(axis=0))
        R = np.swapaxes(mean[:3, :3], 0, 1) @ np.swapaxes(between[:, :3, :3], 1, 2)
        return np.sqrt(np.mean(geometry.rotation_log(R) ** 2))

    assert np.argmax(fit.sd) == 4
    assert turned(fit.T_world_body) < 0.5 * turned(equal)


def test_swaps_and_spikes_hardly_move_the_shape(rng):
    shape = rng.normal(size=(6, 3))
    points, _ = moving(rng, shape, n_frames=200, noise=1e-4)
    clean = fit_rigid(points).offset
    bad = points.copy()
    bad[:20, [0, 1]] = bad[:20, [1, 0]]
    bad[40:50, 3] += 5.0
    np.testing.assert_allclose(fit_rigid(bad).offset, clean, atol=1e-3)


@given(rng=seeds)
@quick
def test_where_all_but_one_marker_stray_these_still_tell_the_turn(rng):
    """Skin that slides in one frame of a take that is exact in all others."""
    shape = rng.normal(scale=0.2, size=(8, 3))
    points, T = moving(rng, shape)
    points[30, 1:] += 2e-3 * rng.normal(size=(7, 3))
    found, weight = T.copy(), np.ones(points.shape[:2])
    alternate(points, shape, weight, found, np.array([KEPT]), *ROBUST)
    turn = geometry.rotation_log(T[30, :3, :3].T @ found[30, :3, :3])
    assert np.degrees(np.linalg.norm(turn)) < 5.0


@given(rng=seeds)
@quick
def test_a_line_is_followed_by_the_shortest_turns(rng):
    points, _ = moving(rng, np.array([[0.0, 0, 0], [0.3, 0.1, -0.2]]), n_frames=70)
    fit = fit_rigid(points)
    line = points[:, 1] - points[:, 0]
    line /= np.linalg.norm(line, axis=-1, keepdims=True)
    assert not fit.determined
    np.testing.assert_allclose(
        fit.T_world_body[:, :3, :3], naive.least_turning(line), atol=1e-9
    )
    np.testing.assert_allclose(fit.T_world_body[:, :3, 3], points.mean(axis=1))
    np.testing.assert_allclose(
        geometry.apply(fit.T_world_body[:, None], fit.offset), points, atol=1e-9
    )


def test_one_marker_never_turns(rng):
    points, _ = moving(rng, rng.normal(size=(1, 3)))
    points[7] = np.nan
    fit = fit_rigid(points)
    assert not fit.determined
    seen = np.arange(60) != 7
    np.testing.assert_allclose(
        fit.T_world_body[seen, :3, :3], np.eye(3)[None].repeat(59, 0)
    )
    np.testing.assert_allclose(fit.T_world_body[seen, :3, 3], points[seen, 0])
    assert np.isnan(fit.T_world_body[7]).all()


@pytest.mark.parametrize(
    "shape",
    [np.outer(np.arange(4.0), [1, 2, 3]), np.zeros((4, 3)), np.zeros((0, 3))],
    ids=["line", "one place", "none"],
)
def test_markers_that_span_no_plane_are_soft(rng, shape):
    points, _ = moving(rng, shape)
    assert not fit_rigid(points).determined


def test_markers_never_seen_leave_the_others_alone(rng):
    points, _ = moving(rng, rng.normal(size=(4, 3)))
    without = fit_rigid(points)
    points = np.concatenate([np.full((60, 1, 3), np.nan), points], axis=1)
    fit = fit_rigid(points)
    np.testing.assert_allclose(fit.T_world_body, without.T_world_body, atol=1e-9)
    assert np.isnan(fit.offset[0]).all()
    assert np.isnan(fit.sd[0])


def test_a_body_seen_in_a_few_of_many_frames_keeps_its_shape(rng):
    shape = rng.normal(scale=0.1, size=(4, 3))
    points = np.full((2000, 4, 3), np.nan)
    frames = [501, 503, 1001, 1503]
    points[frames] = moving(rng, shape, len(frames))[0]
    fit = fit_rigid(points)
    assert fit.rms < 1e-12
    assert np.flatnonzero(np.isfinite(fit.T_world_body[:, 0, 0])).tolist() == frames


def test_nothing_seen_at_all_is_no_pose():
    fit = fit_rigid(np.full((5, 3, 3), np.nan))
    assert not fit.determined
    assert np.isnan(fit.T_world_body).all()
    assert np.isnan(fit.rms)
    assert fit_rigid(np.zeros((0, 3, 3))).T_world_body.shape == (0, 4, 4)


@pytest.mark.parametrize("width", [1e-9, 1e-8, 3e-8, 1e-7, 3e-7, 1e-6, 1e-5])
def test_markers_on_a_line_but_for_rounding_have_a_pose(width):
    """Three computed points on a line that stretches, of any width."""
    rng = np.random.default_rng(4)
    T = geometry.transform_exp(np.cumsum(0.05 * rng.normal(size=(324, 6)), axis=0))
    stretch = 1.0 + 0.03 * np.sin(np.linspace(0.0, 9.0, 324))[:, None]
    shape = width * rng.normal(size=(324, 3, 3))
    shape[..., 0] += stretch * [-0.108, 0.021, 0.087]
    fit = fit_rigid(geometry.apply(T[:, None], shape))
    assert np.isfinite(fit.T_world_body).all()


@pytest.mark.parametrize("width", [1e-7, 2e-7, 3e-7, 1e-6])
def test_a_line_with_one_marker_beside_it_by_rounding_has_a_pose(width):
    """The same marker is off the line in every frame, and the line stretches."""
    rng = np.random.default_rng(4)
    T = geometry.transform_exp(rng.normal(size=(40, 6)))
    line = np.array([[-0.108, 0.0, 0.0], [0.021, width, 0.0], [0.087, 0.0, 0.0]])
    stretch = 1.0 + 0.03 * rng.normal(size=(40, 1, 1))
    fit = fit_rigid(geometry.apply(T[:, None], stretch * line))
    assert np.isfinite(fit.T_world_body).all()
