"""Frames side by side: the same poses as one after the other."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import posed
import pytest

from marey import synth
from marey.articulated.targets import TargetNames, recording_of
from marey.numerics import geometry
from marey.numerics.jit import njit
from marey.numerics.lanes_kernel import (
    LANES,
    aligned_zeros,
    any_positive,
    as_lanes,
    select_positive,
)
from marey.pose.gauss_newton import halves
from marey.pose.gauss_newton.directions import track_both_ways
from marey.pose.gauss_newton.fit import GaussNewtonSolver
from marey.pose.gauss_newton.streams_kernel import track_streams
from marey.pose.gauss_newton.track_kernel import track_frames
from marey.pose.options import GaussNewtonOptions
from marey.pose.trace import PoseTrace

ROUNDING = 1e-9
"""Largest difference of poses, in metres and quaternions: rounding of sums whose order
is another, through 100 frames of tracking."""


@njit(cache=False)
def combine(x, y, out):
    a, b, c = as_lanes(x), as_lanes(y), as_lanes(out)
    n = 0
    for i in range(len(a)):
        c[i] = select_positive(a[i] - b[i], np.sqrt(a[i]), -b[i] / 2) + 1 - 3.0 * a[i]
        c[i] += b[i]
        n += any_positive(a[i] - b[i])
    return n


def test_lanes_compute_what_single_numbers_do(rng):
    x, y, out = aligned_zeros(50), aligned_zeros(50), aligned_zeros(50)
    x[:], y[:] = rng.uniform(size=(2, 50, LANES))
    y[:25] += 0.5
    n = combine(x, y, out)
    expected = np.where(x > y, np.sqrt(x), -y / 2) + 1 - 3.0 * x + y
    np.testing.assert_allclose(out, expected, rtol=0.0, atol=2e-15)  # fused products
    assert n == (x > y).any(axis=1).sum()
    assert 0 < n < 50


def damaged(rng):
    """A walk with gaps, a limb unseen, frames without any marker, and gross errors."""
    skeleton, take = posed.record(seconds=1.5, noise=1e-3)
    points = take.points.copy()
    points[rng.uniform(size=points.shape[:2]) < 0.1] = np.nan
    gross = rng.uniform(size=points.shape[:2]) < 0.02
    points[gross] += rng.normal(scale=0.3, size=(gross.sum(), 3))
    points[30:50, posed.markers_on(take, skeleton, "LeftLowerArm", "LeftHand")] = np.nan
    points[80:84] = np.nan
    points[[0, -1]] = take.points[[0, -1]]
    return skeleton, replace(take, points=points)


def solver_of(skeleton, take, **options):
    chosen = GaussNewtonOptions(**options)
    return GaussNewtonSolver(skeleton, TargetNames.of(take), take.rate, chosen)


def track_in_sequence(skeleton, take, recording, **options):
    fit = solver_of(skeleton, take, **options)
    trace = PoseTrace.empty(take.n_frames, len(fit.nodes.tree.parent))
    fit.run(recording, np.arange(take.n_frames), trace)
    return trace


def assert_same(trace, other):
    np.testing.assert_allclose(trace.root, other.root, atol=ROUNDING)
    np.testing.assert_allclose(
        np.abs(np.sum(trace.q * other.q, axis=-1)), 1.0, atol=ROUNDING**2 + 1e-14
    )
    np.testing.assert_array_equal(trace.info[:, 3], other.info[:, 3])
    np.testing.assert_allclose(trace.info, other.info, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"outlier": 0.0, "limits": False}])
def test_tracks_side_by_side_are_those_in_sequence(rng, options):
    skeleton, take = damaged(rng)
    fit, recording = solver_of(skeleton, take, **options), recording_of(take)
    forward, backward = track_both_ways(fit, recording)
    mirrored = tuple(np.ascontiguousarray(one[::-1]) for one in recording)
    for one in (recording, mirrored):
        assert fit.frame_order(one)[0] == 0
    given = skeleton, take
    assert_same(forward, track_in_sequence(*given, recording, **options))
    back = track_in_sequence(*given, mirrored, **options).reversed()
    assert_same(backward, back)


def test_takes_in_threads_have_the_poses_of_takes_one_after_the_other(rng):
    skeleton, take = damaged(rng)
    recording = recording_of(take)
    alone = track_both_ways(solver_of(skeleton, take), recording)
    fits = [solver_of(skeleton, take) for _ in range(4)]
    with ThreadPoolExecutor(len(fits)) as pool:
        found = pool.map(lambda fit: track_both_ways(fit, recording), fits)
        for traces in found:
            for trace, other in zip(traces, alone, strict=True):
                np.testing.assert_array_equal(trace.q, other.q)
                np.testing.assert_array_equal(trace.root, other.root)


@pytest.mark.parametrize("kernel", [track_streams, track_frames])
def test_trackers_let_other_threads_run(kernel):
    options = getattr(kernel, "targetoptions", None)
    if options is None:
        pytest.skip("the compiler is off")
    assert options["nogil"]


@pytest.mark.parametrize("guided", [False, True])
def test_frames_from_given_poses_end_where_they_do_in_sequence(rng, guided):
    skeleton, take = damaged(rng)
    fit, recording = solver_of(skeleton, take), recording_of(take)
    every = np.arange(take.n_frames)
    start = track_in_sequence(skeleton, take, recording)
    start.q[1:], start.root[1:] = start.q[:-1].copy(), start.root[:-1].copy()
    settings = fit.settings._replace(guided=guided)
    side, in_sequence = start.copy(), start.copy()
    paths = start.root.copy(), start.q.copy()
    fit.move_to_minima(recording, every, side, settings, paths)
    out = in_sequence.root, in_sequence.q, in_sequence.info
    given = settings._replace(given_start=True)
    fit = solver_of(skeleton, take)
    fit._track_frames(
        fit.problem, recording, every, tuple(fit.state), given, paths, out
    )
    assert_same(side, in_sequence)


@pytest.fixture(scope="module")
def long_take():
    """Twelve seconds of a noisy walk: enough to be tracked in halves."""
    return posed.record(seconds=12.0, rate=30.0, noise=1e-3)


def reflect_middle(points):
    """A mirrored person where the halves overlap: they cannot agree there."""
    points[180:210] *= [-1.0, 1.0, 1.0]


def lose_middle(points):
    """Nothing is seen where the halves begin to overlap."""
    points[195:212] = np.nan


@pytest.mark.parametrize("damage", [None, reflect_middle, lose_middle])
def test_halves_of_a_long_take_are_one_track(long_take, damage, monkeypatch):
    skeleton, take = long_take
    points = take.points.copy()
    if damage:
        damage(points)
    take = replace(take, points=points)
    fit, recording = solver_of(skeleton, take), recording_of(take)
    in_halves = track_both_ways(fit, recording)
    monkeypatch.setattr(halves, "MIN_OVERLAPS", np.inf)
    for trace, whole in zip(in_halves, track_both_ways(fit, recording), strict=True):
        np.testing.assert_allclose(trace.root, whole.root, atol=1e-6)
        np.testing.assert_allclose(trace.q, whole.q, atol=1e-6)


@pytest.mark.parametrize(("n_frames", "in_halves"), [(290, False), (360, True)])
def test_takes_of_ten_seconds_are_tracked_in_halves(
    long_take, n_frames, in_halves, monkeypatch
):
    """A second is enough for the halves to agree; a cut gains from ten on."""
    skeleton, take = long_take
    take, starts = take.cut(0, n_frames), []
    fit = solver_of(skeleton, take)
    start_states = fit.start_states

    def counted():
        starts.append(0)
        return start_states()

    monkeypatch.setattr(fit, "start_states", counted)
    track_both_ways(fit, recording_of(take))
    assert len(starts) == 1 + in_halves


def test_a_hand_without_markers_keeps_one_history(long_take):
    skeleton, take = long_take
    points = take.points.copy()
    points[20:, posed.markers_on(take, skeleton, "LeftHand")] = np.nan
    take = replace(take, points=points)
    recording = recording_of(take)
    forward, _ = track_both_ways(solver_of(skeleton, take), recording)
    assert_same(forward, track_in_sequence(skeleton, take, recording))


def test_sensors_are_left_to_the_sequential_tracker():
    skeleton, take = posed.record(
        synth.human(), markers="none", sensors=True, seconds=0.3
    )
    fit, recording = solver_of(skeleton, take), recording_of(take)
    forward, _ = track_both_ways(fit, recording)
    assert_same(forward, track_in_sequence(skeleton, take, recording))


def test_robust_weights_are_those_of_the_pose_that_is_returned(rng):
    """Also if the last step was taken back, because it raised the cost."""
    skeleton, take = damaged(rng)
    fit, recording = solver_of(skeleton, take), recording_of(take)
    begin, frames = fit.track(recording, np.arange(take.n_frames)), np.arange(0, 30, 3)
    turn = geometry.quat_exp(rng.normal(scale=0.6, size=(*begin.q.shape[:2], 3)))
    begin.q[:] = geometry.quat_multiply(begin.q, turn)
    settings = fit.settings._replace(given_start=True, tolerance=0.0)
    for steps in range(1, 11):
        trace, chosen = begin.copy(), settings._replace(max_steps=steps)
        where = fit.problem, recording, frames, tuple(fit.state), chosen
        out = trace.root, trace.q, trace.info
        track_frames(*where, (begin.root, begin.q), out)
        square = fit.marker_residuals(take.points, trace)[frames] ** 2
        weight = fit.targets.weight / (1.0 + fit.targets.softness * square) ** 2
        expected = np.nansum(weight, axis=1)
        np.testing.assert_allclose(trace.info[frames, 2], expected, rtol=1e-9)
