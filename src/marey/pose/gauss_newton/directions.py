"""A take tracked forward and backward, and frames that both directions lose.

Tracked in one direction of time, a limb that let its markers go stays in a wrong
minimum. Limbs keep to the cheaper direction (`both_ways`). Where a joint still leaves
its markers, the frame is solved by itself, or keeps to the wide loss.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from marey.articulated.targets import Recording, split_order
from marey.numerics import Array, Float, Int, geometry
from marey.numerics.thresholds import MIN_POSE_POINTS
from marey.pose.both_ways import bridge_gaps, choose_by_limb
from marey.pose.gauss_newton.halves import track_sequences
from marey.pose.gauss_newton.weak_joints import smooth_weak_joints
from marey.pose.trace import PoseTrace

if TYPE_CHECKING:
    from marey.pose.gauss_newton.fit import GaussNewtonSolver

WIDE_OUTLIER = 3.0
"""Scale of the loss while minima are searched, as a multiple of `outlier`. Higher loses
fewer limbs, and lets gross errors draw the pose. Chosen on generated people, where 3
and 4 do equally well, and gross errors draw poses from 6 on."""


def solve_both_ways(fit: "GaussNewtonSolver", recording: Recording) -> PoseTrace:
    """Return poses that do not depend on the direction of time.

    The take is tracked forward and backward with a wide loss, whose basins of
    attraction are wide. Then

    - the scales of markers are estimated from all frames,
    - each limb keeps to the cheaper solution,
    - every frame moves to its minimum of the loss at its proper scale, unless a joint
      drops most of its markers there,
    - weakly determined joints are drawn to the frames before and after (`weak_joints`),
    - unseen limbs pass from one solution to the other.
    """
    if fit.options.adapt:
        fit.estimate_scales(recording)
    fit.scale_loss(WIDE_OUTLIER)
    forward, backward = track_both_ways(fit, recording)
    fit.scale_loss(1.0 / WIDE_OUTLIER)
    if fit.options.adapt:
        fit.update_scales(recording, (forward, backward))
    solutions, prior = (forward, backward), fit.settings.prior
    best = choose_by_limb(fit, recording, solutions, prior)
    start = fit.refine(recording, best)
    lost = _lost_frames(fit, recording[0], best)
    if len(lost):
        alone = _track_alone(fit, recording, lost, best)
        best = choose_by_limb(fit, recording, (best, alone), prior)
        start = fit.refine(recording, best)
    _regain_markers(fit, recording, best, start)
    smooth_weak_joints(fit, recording, best)
    frames = bridge_gaps(fit, recording, forward, backward, best)
    best.q[frames] = fit.within_limits(best.q[frames])
    best.info[:, 3] += forward.info[:, 3] + backward.info[:, 3]
    return best.continuous()


def track_both_ways(
    fit: "GaussNewtonSolver", recording: Recording
) -> tuple[PoseTrace, PoseTrace]:
    """Return the poses tracked forward, and those tracked backward."""
    reverse = recording[0][::-1], recording[1][::-1]
    onward = split_order(fit.frame_order(recording))
    back = split_order(fit.frame_order(reverse))
    last = len(recording[0]) - 1
    forward, backward = _track_orders(
        fit, recording, (onward, (last - back[0], last - back[1]))
    )
    return forward, backward


def _track_orders(
    fit: "GaussNewtonSolver",
    recording: Recording,
    orders: Sequence[tuple[Array, Array]],
) -> list[PoseTrace]:
    """Return the poses of all frames for each of several orders, side by side.

    An order has two parts. The second one begins at the first pose of the first,
    at zero velocity.
    """
    n, states = len(recording[0]), fit.start_states()
    trace = PoseTrace.empty(n * len(orders), len(fit.nodes.tree.parent))
    for part in range(2):
        streams = [k * n + order[part] for k, order in enumerate(orders)]
        track_sequences(fit, recording, streams, trace, states)
        for k, (first, _) in enumerate(orders):
            slot = k * n + first[0]
            states.root[k], states.q[k] = trace.root[slot], trace.q[slot]
        states.velocity[:] = 0.0
    rows = [slice(k * n, k * n + n) for k in range(len(orders))]
    for r in rows:
        trace.q[r] = geometry.quat_continuous(trace.q[r])
    return [trace.at(r) for r in rows]


def _track_alone(
    fit: "GaussNewtonSolver",
    recording: Recording,
    frames: Int[Array, " some"],
    trace: PoseTrace,
) -> PoseTrace:
    """Return the trace with some frames solved from scratch, each by itself.

    Both directions of time may lead a limb away from its markers.
    """
    alone, first = trace.copy(), np.zeros(1, dtype=np.int64)
    fit.scale_loss(WIDE_OUTLIER)
    for frame in frames.tolist():
        one = fit.track((recording[0][[frame]], recording[1][[frame]]), first)
        alone.q[frame], alone.root[frame] = one.q[0], one.root[0]
    fit.scale_loss(1.0 / WIDE_OUTLIER)
    return alone.continuous()


def _regain_markers(
    fit: "GaussNewtonSolver",
    recording: Recording,
    trace: PoseTrace,
    start: tuple[Array, Array],
) -> None:
    """Let joints that leave most of three markers keep to the wide loss, in place.

    Where skin moves all markers of a bone far, the loss at its proper scale is less
    if most of them are dropped. Frames that the wide loss loses too stay.

    Args:
        fit: The solver.
        recording: Positions and poses.
        trace: Poses at minima of the loss at its proper scale.
        start: The poses that these minima were searched from.
    """
    lost = _lost_frames(fit, recording[0], trace, MIN_POSE_POINTS)
    if len(lost) == 0:
        return
    wide = PoseTrace(start[1], start[0], trace.info.copy())
    fit.scale_loss(WIDE_OUTLIER)
    fit.move_to_minima(recording, lost, wide, fit.settings, start)
    fit.scale_loss(1.0 / WIDE_OUTLIER)
    points, found = recording[0][lost], wide.at(lost)
    still = _lost_frames(fit, points, found, MIN_POSE_POINTS)
    trace.replace_frames(np.delete(lost, still), wide)


def _lost_frames(
    fit: "GaussNewtonSolver",
    points: Float[Array, "frame column _"],
    trace: PoseTrace,
    min_markers: int = 1,
) -> Int[Array, " some"]:
    """Return the frames in which a joint leaves most of its markers.

    Of joints that show this number of markers or more: one or two may be gross
    errors.
    """
    residual_m = fit.marker_residuals(points, trace)
    lost = [
        fit.leaves_markers(residual_m, joint, min_markers)
        for joint in fit.nodes.moving_joints.tolist()
    ]
    return np.flatnonzero(np.any(lost, axis=0))
