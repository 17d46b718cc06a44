"""Long sequences of frames in two halves, tracked side by side and joined.

The second half starts from a pose of its own. The first half is tracked beyond the cut,
through the first frames of the second half. If both agree there, tracking on from the
first half would give the same second half, because a tracked frame forgets how it was
started. Otherwise the second half is tracked again, from the end of the first.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from marey.articulated.targets import Recording
from marey.numerics import Array, Int
from marey.numerics.thresholds import VELOCITY_TIME_S
from marey.pose.trace import PoseTrace

if TYPE_CHECKING:
    from marey.pose.gauss_newton.fit import GaussNewtonSolver
    from marey.pose.gauss_newton.track_kernel import TrackState

OVERLAP_S = 20.0 * VELOCITY_TIME_S
"""Time in which the halves of a sequence come to agree, in seconds: a velocity forgets
its start to exp(-20). Higher joins more halves, and tracks more frames twice."""

MIN_OVERLAPS = 10
"""Least length of a sequence to be cut, as a multiple of the overlap. A cut gains
nothing from 4 overlaps, and 30 % from 10. Higher cuts fewer sequences. Chosen by
hand."""

SEAM_ROUNDING = 1e-6
"""Largest difference of two states that agree: of positions in metres, quaternions, and
velocities per frame. Higher joins more halves, and lets poses differ by more from those
without a cut. Chosen by hand, far below what markers can measure."""


def track_sequences(
    fit: "GaussNewtonSolver",
    recording: Recording,
    sequences: Sequence[Int[Array, " some"]],
    trace: PoseTrace,
    states: "TrackState",
) -> None:
    """Track at most two sequences side by side, in halves if they are long.

    Args:
        fit: The solver.
        recording: Markers of the take, in metres, and sensors.
        sequences: Places in the trace, as of `track_streams`.
        trace: Gets the poses.
        states: The states before, and then after, the sequences; one per lane.
    """
    overlap, halves = int(np.ceil(OVERLAP_S * fit.rate)), None
    is_long = min(map(len, sequences)) >= MIN_OVERLAPS * overlap
    # Frames with sensors are tracked one by one, whatever lane they are in.
    if is_long and not len(fit.targets.sensor_column):
        halves = _start_halves(fit, recording, sequences, overlap, trace)
    if halves is None:
        _track(fit, recording, sequences, trace, states)
        return
    n, ends = len(sequences), [len(s) // 2 + overlap for s in sequences]
    first = [s[:end] for s, end in zip(sequences, ends, strict=True)]
    rest = [s[end:] for s, end in zip(sequences, ends, strict=True)]
    for state, half in zip(states, halves, strict=True):
        state[n : 2 * n] = half[:n]
    _track(fit, recording, [*first, *rest], trace, states)
    for k in range(n):
        if _agree(states, k, halves, k):
            for state in states:
                state[k] = state[n + k]
            rest[k] = rest[k][:0]
    _track(fit, recording, rest, trace, states)


def _start_halves(
    fit: "GaussNewtonSolver",
    recording: Recording,
    sequences: Sequence[Int[Array, " some"]],
    overlap: int,
    trace: PoseTrace,
) -> "TrackState | None":
    """Return the states after the overlap at the middle of sequences.

    The first frame of each overlap is solved from scratch. The result is None if
    markers do not usually determine all joints there: the other joints keep the pose
    that they start from, and the halves would not agree.
    """
    middles = [s[len(s) // 2 :][:overlap] for s in sequences]
    states = fit.start_states()
    _track(fit, recording, middles, trace, states)
    usual = np.median(trace.information[np.concatenate(middles)], axis=0)
    return states if (usual >= fit.settings.prior).all() else None


def _agree(states: "TrackState", lane: int, others: "TrackState", other: int) -> bool:
    """Return whether two lanes have the same pose and velocity, and the same counts."""
    one = type(states)(*(values[lane] for values in states))
    two = type(others)(*(values[other] for values in others))
    signs = np.sign(np.sum(one.q * two.q, axis=-1, keepdims=True))
    off = (one.root - two.root, one.q - signs * two.q, one.velocity - two.velocity)
    waits = np.maximum([one.restart_wait, two.restart_wait], 0)
    same_counts = one.frames_unseen == two.frames_unseen and waits[0] == waits[1]
    is_near = all((np.abs(x) <= SEAM_ROUNDING).all() for x in off)
    return is_near and bool(same_counts)


def _track(
    fit: "GaussNewtonSolver",
    recording: Recording,
    sequences: Sequence[Int[Array, " some"]],
    trace: PoseTrace,
    states: "TrackState",
) -> None:
    """Track sequences side by side, each frame from where the last one ended."""
    paths = trace.root, trace.q
    fit.run_streams(recording, sequences, trace, fit.settings, paths, states)
