"""A skeleton tracked through the frames of a take, compiled.

Every frame starts at the pose that a constant-velocity model predicts from the last
one. If the result is poor, the frame is solved again by graduated non-convexity (Blake
and Zisserman, 1987): least squares first, whose basin of attraction is wide, then the
Geman-McClure loss with growing robustness; at last it is solved from an initial pose
of its own. The best of these attempts counts.
"""

# mypy: ignore-errors

from typing import NamedTuple

import numpy as np

from marey.articulated.kinematics_kernel import copy_pose
from marey.articulated.lane_frames_kernel import MIN_SEEN_SHARE
from marey.articulated.levenberg_marquardt_kernel import levenberg_marquardt
from marey.articulated.limits_kernel import retract, write_change
from marey.articulated.targets_kernel import confidence_of, total_weight_seen
from marey.numerics.arrays.new_kernel import empty
from marey.numerics.arrays.reference_kernel import by_reference, refer
from marey.numerics.jit import inlined, lean, njit
from marey.numerics.lanes_kernel import keep_apart
from marey.numerics.vector3_kernel import (
    copy_rows,
    dot,
    fill,
    set_values,
    set_vector,
    sum_products,
)
from marey.pose.gauss_newton.initial_pose_kernel import find_initial_pose

PREDICT, RETRY, RESTART = 0, 1, 2
"""Attempts in this order: from the prediction; the same by graduated non-convexity;
from an initial pose of the frame alone."""

ROBUSTNESS = (0.0, 0.03, 1.0)
"""Factors of the softness of Geman-McClure, in the order of graduated non-convexity.
With a higher one in the middle more limbs end in other minima. Chosen by hand."""
FULL_ROBUSTNESS = 2


@by_reference
class TrackSettings(NamedTuple):
    """How a skeleton is tracked."""

    prior: np.ndarray  # (block): information, of the root 1 / m^2, of nodes 1 / rad^2
    robust: bool  # whether the loss is Geman-McClure
    max_steps: int  # of the first attempt
    max_retry_steps: int  # of the other attempts, at each robustness
    tolerance: float  # relative decrease of the cost below which a step is the last
    given_start: bool  # whether frames start at given poses, in a single attempt
    guided: bool  # whether they are drawn to given paths, however well they are seen
    speed_kept: float  # factor of an unseen joint's velocity per frame
    speed_gain: float  # gain of the velocity filter per frame
    max_rms_residual: float  # metres; beyond it another attempt is made
    max_prior_cost: float  # of one joint's deviation from the prediction, at most that
    # of an outlier, when attempts are compared
    max_unseen_frames: int  # number without any target after which to restart, and
    # without another attempt after one that failed


class TrackState(NamedTuple):
    """Pose and velocity at the last frame; the last two have one element each."""

    root: np.ndarray
    q: np.ndarray
    velocity: np.ndarray  # (block, 3): metres and rotation vectors per frame
    frames_unseen: np.ndarray  # without any target; negative before the first pose
    restart_wait: np.ndarray  # frames in which no other attempt is to be made


class TrackScratch(NamedTuple):
    """Poses of one frame: pairs of root position (from `origin`) and quaternions."""

    origin: np.ndarray  # position of the root at the last frame
    pose: tuple[np.ndarray, np.ndarray]  # as it moves; its quaternions are the state's
    start: tuple[np.ndarray, np.ndarray]  # of the last frame
    best: tuple[np.ndarray, np.ndarray]  # of the best attempt
    expected: tuple[np.ndarray, np.ndarray]  # of the prior
    predicted: tuple[np.ndarray, np.ndarray]  # which attempts are compared to
    new: tuple[np.ndarray, np.ndarray]  # scratch of Levenberg-Marquardt
    difference: np.ndarray  # (3)


@lean
def _total_weight(work):
    """Return the total weight of positions after robust weighting."""
    total = 0.0
    for k in range(len(work.marker_weight)):
        total += work.marker_weight[k]
    for k in range(len(work.sensor_weight)):
        total += work.sensor_weight[k, 0]
    return total


@inlined
def _sum_robust_weights(targets, points, work, i):
    """Return the number of targets seen on a node and the sum of their robust weights.

    The robust weight of a target is 1 without any residual and 0 of an outlier.
    """
    seen, total = 0.0, 0.0
    for k in range(targets.start[i], targets.start[i + 1]):
        if work.marker_weight[k] > 0.0:
            seen += 1.0
            weight = targets.weight[k] * confidence_of(points[targets.column[k]])
            total += work.marker_weight[k] / weight
    for k in range(targets.sensor_start[i], targets.sensor_start[i + 1]):
        for x in range(2):
            if work.sensor_weight[k, x] > 0.0:
                seen += 1.0
                total += work.sensor_weight[k, x] / targets.sensor_weight[k, x]
    return seen, total


@lean
def _has_outlier_node(targets, points, work):
    """Return whether most of the targets of some node count as outliers."""
    for i in range(len(work.c)):
        seen, total = _sum_robust_weights(targets, points, work, i)
        if seen > 1.0 and total <= MIN_SEEN_SHARE * seen:
            return True
    return False


@lean
def _prediction_cost(settings, pose, predicted, d):
    """Return the cost of a pose's deviation from the prediction, bounded per joint."""
    total = 0.0
    for b in range(len(settings.prior)):
        write_change(b, pose, predicted, False, d)
        total += min(settings.prior[b] * dot(d, d), settings.max_prior_cost)
    return total


@lean
def update_velocity(prior_share, scratch, velocity, settings):
    """Filter the velocities by the frame's change; those of unseen joints decay."""
    d = scratch.difference
    for b in range(len(prior_share)):
        write_change(b, scratch.pose, scratch.start, False, d)
        share, v = prior_share[b], velocity[b]
        for k in range(3):
            seen = v[k] + settings.speed_gain * (d[k] - v[k])
            v[k] = (1.0 - share) * seen + share * settings.speed_kept * v[k]


@lean
def keep_signs(last, q):
    """Give quaternions the signs of the last frame; q and -q are one rotation."""
    for i in range(len(q)):
        if sum_products(q[i], last[i]) < 0.0:
            for k in range(4):
                q[i, k] = -q[i, k]


@lean
def _scale_velocity(velocity, factor):
    """Multiply all velocities by a factor."""
    for b in range(len(velocity)):
        for k in range(3):
            velocity[b, k] *= factor


@lean
def predict_pose(q, velocity, predicted):
    """Write the pose one frame on at constant velocity, relative to the last root."""
    set_vector(predicted[0], velocity[0])
    for i in range(len(q)):
        v = velocity[i + 1]
        retract(q[i], v[0], v[1], v[2], predicted[1][i])


@inlined
def _begin_frame(state, settings, path, scratch, out):
    """Write the pose that the frame starts from, and the expected one.

    The given start is the pose in the output arrays and the expected one is `path`;
    without it both are the prediction.
    """
    origin, expected = scratch.origin, scratch.expected
    if settings.given_start:
        copy_pose(out, (state.root, state.q))
    set_vector(origin, state.root)
    fill(scratch.start[0], 0.0)
    copy_rows(state.q, scratch.start[1])
    if settings.given_start:
        fill(scratch.pose[0], 0.0)
        for k in range(3):
            expected[0][k] = path[0][k] - origin[k]
        copy_rows(path[1], expected[1])
    else:
        predict_pose(state.q, state.velocity, expected)
        copy_pose(expected, scratch.pose)
    copy_pose(expected, scratch.predicted)


@inlined
def _attempt_frame(problem, seen, settings, scratch, attempt):
    """Solve the frame in one attempt; return the cost and the steps taken.

    All attempts but the first use graduated non-convexity.
    """
    pose, expected = scratch.pose, scratch.expected
    stage, max_steps = FULL_ROBUSTNESS, settings.max_steps
    if attempt != PREDICT:
        stage = 0 if settings.robust else FULL_ROBUSTNESS
        max_steps = settings.max_retry_steps
        copy_pose(expected, pose)
    if attempt == RESTART:
        find_initial_pose(problem, seen, scratch.origin, pose, settings.prior)
        copy_pose(pose, expected)
    cost, steps = 0.0, 0
    while stage <= FULL_ROBUSTNESS:
        cost, count, _ = levenberg_marquardt(
            problem, seen, scratch, settings, ROBUSTNESS[stage], max_steps, None, 0
        )
        steps += count
        stage += 1
    return cost, steps


@inlined
def _keep_attempt(state, scratch, attempt):
    """Keep the pose of the best attempt; a restarted skeleton has no velocity yet."""
    copy_pose(scratch.pose, scratch.best)
    if attempt == RESTART:
        _scale_velocity(state.velocity, 0.0)
        copy_pose(scratch.pose, scratch.start)


@inlined
def _is_good(problem, points, weight, cost, settings):
    """Return whether no other attempt is needed after one of this cost."""
    if cost > weight * settings.max_rms_residual**2:
        return False
    _, targets, work = problem
    return not (settings.robust and _has_outlier_node(targets, points, work))


@inlined
def _solve_frame(problem, seen, weight, state, settings, scratch):
    """Make attempts until one is good; return the cost of the best, and all steps."""
    pose, wait = scratch.pose, state.restart_wait
    is_tracked = 0 <= state.frames_unseen[0] <= settings.max_unseen_frames
    attempt = PREDICT if settings.given_start or is_tracked else RESTART
    least, least_cost, steps, good = np.inf, 0.0, 0, False
    while True:
        cost, count = _attempt_frame(problem, seen, settings, scratch, attempt)
        steps += count
        # Outliers may fit a pose that no joint could reach so soon.
        value = cost + _prediction_cost(
            settings, pose, scratch.predicted, scratch.difference
        )
        if value < least:
            least, least_cost = value, cost
            _keep_attempt(state, scratch, attempt)
            good = _is_good(problem, seen[0], weight, cost, settings)
            if good:
                wait[0] = 0
        elif attempt == RESTART:
            wait[0] = settings.max_unseen_frames
        if attempt == RESTART or settings.given_start or good or wait[0] > 0:
            break
        attempt += 1
    if least < np.inf:
        copy_pose(scratch.best, pose)
    return least_cost, steps


@lean
def track_frame(problem, seen, state, settings, path, out, info, scratch):
    """Track the skeleton into one frame; write its pose and statistics."""
    keep_apart()
    _, targets, work = problem
    unseen = state.frames_unseen
    if settings.given_start:  # the frame before is another matter
        fill(work.prior_share, 1.0)
    _begin_frame(state, settings, path, scratch, out)
    weight, cost, steps = total_weight_seen(targets, seen[0], seen[1]), 0.0, 0
    if weight > 0.0 or settings.given_start:
        cost, steps = _solve_frame(problem, seen, weight, state, settings, scratch)
    state.restart_wait[0] -= 1
    keep_signs(scratch.start[1], state.q)
    if weight > 0.0:
        unseen[0] = 0
        info[0], info[2] = cost, _total_weight(work)
        update_velocity(work.prior_share, scratch, state.velocity, settings)
    else:
        fill(work.prior_share, 1.0)
        fill(work.information, 0.0)
        _scale_velocity(state.velocity, settings.speed_kept)
        if unseen[0] >= 0:
            unseen[0] += 1
    info[1], info[3] = weight, steps
    set_values(info[4:], work.information)
    for k in range(3):
        state.root[k] = scratch.origin[k] + scratch.pose[0][k]
    copy_pose((state.root, state.q), out)


@inlined
def scratch_of(roots, rotations, difference, q):
    """Return scratch in (7, 3) and (5, node, 4) numbers, for a state with q."""
    return refer(
        TrackScratch(
            roots[0],
            (roots[1], q),
            (roots[2], rotations[0]),
            (roots[3], rotations[1]),
            (roots[4], rotations[2]),
            (roots[5], rotations[3]),
            (roots[6], rotations[4]),
            difference,
        )
    )


@lean
def _track_in_order(problem, recording, order, now, settings, paths, out, rooms):
    """Track the skeleton; see `track_frames`. `rooms` is the room of `scratch_of`."""
    points, sensors = recording
    root, q, info = out
    scratch = scratch_of(rooms[0], rooms[1], rooms[2], now.q)
    for f in order:
        seen, path = (points[f], sensors[f]), (paths[0][f], paths[1][f])
        pose = (root[f], q[f])
        track_frame(problem, seen, now, settings, path, pose, info[f], scratch)


@njit(cache=True, nogil=True)
def track_frames(problem, recording, order, state, settings, paths, out):
    """Track the skeleton through frames, in the order given.

    With a given start, every frame starts at its pose in `out` and expects the paths.
    Otherwise it starts where the velocity of the last frame brings it.

    Args:
        problem: The kinematic tree, the table of targets and a `PoseWorkspace`.
        recording: Markers of the take, in metres, and sensors.
        order: Numbers of the frames.
        state: A `TrackState`, kept from call to call. A plain tuple is handed over
            faster, which counts where frames come one by one.
        settings: A `TrackSettings`.
        paths: Positions of the root and quaternions, by frame.
        out: Gets by frame: position of the root; quaternions; and statistics, which
            are cost, weight seen, weight after robust weighting, steps, then the
            information on every block.
    """
    n = len(problem[0].parent)
    rooms = empty((7, 3)), empty((5, n, 4)), empty(3)
    now = TrackState(*state)
    # Without allocations: references to every array would be counted.
    _track_in_order(problem, recording, order, now, settings, paths, out, rooms)
