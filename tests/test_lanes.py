"""Frames solved side by side: lanes compute what single numbers do, and agree."""

import numpy as np
import posed
import pytest
from numba import njit

from marey import synth
from marey.articulated.targets import TargetNames, recording_of
from marey.numerics.jit import lean
from marey.numerics.lanes_kernel import (
    LANES,
    all_lanes,
    any_lane,
    as_lanes,
    holds_in,
    lane_view,
    n_lanes,
    select,
)
from marey.pose.gauss_newton.fit import GaussNewtonSolver
from marey.pose.gauss_newton.lanes import N_PARTS, track_in_lanes
from marey.pose.gauss_newton.track_kernel import track_frames
from marey.pose.options import GaussNewtonOptions
from marey.pose.trace import PoseTrace

DAMAGE = {"gaps": 0.2, "gross": 0.01, "swaps": 2, "noise": 2e-3, "soft_tissue": 5e-3}


# --- arithmetic -----------------------------------------------------------------------


@lean
def compute(x, y, out):
    """Use every operation on lanes once."""
    a, b, total = x[0], x[1], 0.0
    for k in range(len(y)):
        total += y[k] * a - 2.0 / b
        total = total * 0.5
    total /= 3.0
    root = np.sqrt(abs(total)) + max(a, 0.25) - min(b, a)
    is_low = (root < b) | (a <= -1.0)
    is_low |= root == a
    is_high = (root > 0.5) & (-b >= -1.5)
    is_high &= a > -3.0
    out[0] = select(is_low, root, -total)
    out[1] = select(is_high, 1.0, 2.0)
    out[2] = 7.0
    out[2] -= a
    for lane in range(n_lanes(is_low)):
        if holds_in(is_high, lane):
            lane_view(out, lane)[2] += 1.0
    if all_lanes(is_low) and not any_lane(is_low):
        out[2] = 0.0
    return is_low


@njit
def compute_numbers(x, y, out):
    return compute(x, y, out)


@njit
def compute_lanes(x, y, out):
    return any_lane(compute(as_lanes(x), as_lanes(y), as_lanes(out)))


def test_lanes_compute_what_single_numbers_do(rng):
    """Also next to a lane that is not a number."""
    for k in range(50):
        x, y = rng.normal(size=(2, 3, LANES))
        x[0, 0] = np.nan if k % 5 == 0 else x[0, 0]
        out, expected = np.zeros((2, 3, LANES))
        is_low = np.zeros(LANES, dtype=bool)
        for lane in range(LANES):
            single = np.zeros(3)
            is_low[lane] = compute_numbers(x[:, lane].copy(), y[:, lane].copy(), single)
            expected[:, lane] = single
        assert compute_lanes(x, y, out) == is_low.any()
        np.testing.assert_allclose(out, expected, rtol=1e-14, atol=1e-14)


def test_a_part_is_a_lane():
    assert N_PARTS == LANES


# --- tracks ---------------------------------------------------------------------------


def track(skeleton, take, run, *, given_start=False, **options):
    """Return the poses of a take by one of both trackers."""
    chosen = GaussNewtonOptions(**options)
    solver = GaussNewtonSolver(skeleton, TargetNames.of(take), take.rate, chosen)
    recording = recording_of(take)
    order = solver.frame_order(recording)
    order = order[: len(order) - int(order[0])]
    trace = PoseTrace.empty(take.n_frames, len(solver.nodes.tree.parent))
    out, state = (trace.root, trace.q, trace.info), tuple(solver.state)
    paths = (trace.root, trace.q)
    arguments = (solver.problem, recording, order, state)
    run(*arguments, solver.settings, paths, out)
    if given_start:
        again = solver.settings._replace(given_start=True)
        start = trace.root.copy(), trace.q.copy()
        run(*arguments, again, start, out)
    return trace


@pytest.mark.parametrize(
    ("figure", "options"),
    [
        ("human", {}),
        ("human", {"outlier": 0.0, "limits": False}),
        ("human", {"given_start": True}),
        ("quadruped", {}),
    ],
)
@pytest.mark.parametrize("damage", [{"noise": 2e-3}, DAMAGE])
def test_lanes_give_the_poses_of_the_sequential_tracker(figure, options, damage):
    """With limits, robust weights, sensors, gaps, gross errors and swapped labels."""
    performer, markers = {
        "human": (synth.human(seed=2), "sparse41"),
        "quadruped": (synth.quadruped(), 4),
    }[figure]
    skeleton, take = posed.record(
        performer, markers=markers, seconds=6.0, sensors=figure == "quadruped", **damage
    )
    alone = track(skeleton, take, track_frames, **options)
    lanes = track(skeleton, take, track_in_lanes, **options)
    np.testing.assert_allclose(lanes.root, alone.root, atol=1e-8)
    apart = np.minimum(np.abs(lanes.q - alone.q), np.abs(lanes.q + alone.q))
    assert apart.max() < 1e-8


def test_a_recording_without_targets_for_a_while_is_tracked():
    skeleton, take = posed.record(seconds=4.0, noise=2e-3)
    n = take.n_frames
    hidden = posed.hide_markers(
        take, np.arange(n // 4 - 10, n // 2)[:, None], np.arange(len(take.labels))
    )
    alone = track(skeleton, hidden, track_frames)
    lanes = track(skeleton, hidden, track_in_lanes)
    np.testing.assert_allclose(lanes.root, alone.root, atol=1e-8)
    np.testing.assert_array_equal(lanes.info[:, 1] > 0.0, alone.info[:, 1] > 0.0)
