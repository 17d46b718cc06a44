"""Sequences of frames tracked side by side, one per lane, compiled.

A frame starts where the last frame of its sequence ended, or at a given pose, and takes
the steps of the sequential tracker (`lane_frames_kernel`). Frames that need more than a
few steps are left to that tracker, one by one: a first frame, a frame that reaches a
limit, and a frame whose result is poor. So are all frames of takes with sensors.
Therefore the poses are those of the sequential tracker, whatever the other lanes do.
"""

# mypy: ignore-errors

from typing import NamedTuple

import numpy as np

from marey.articulated.kinematics_kernel import copy_pose
from marey.articulated.lane_frames_kernel import (
    COMPARED,
    COST,
    DECREASE,
    MARGIN,
    OUTLIERS,
    STEP,
    TOTAL,
    WEIGHT,
    iterate_lanes,
    step_lanes,
    view_lanes,
)
from marey.articulated.levenberg_marquardt_kernel import (
    COST_ROUNDING,
    DAMPING_FACTOR,
    INITIAL_DAMPING,
    MIN_STEP,
)
from marey.articulated.limits_kernel import limit_margin
from marey.articulated.targets_kernel import confidence_of
from marey.numerics.arrays.new_kernel import empty, zeros
from marey.numerics.jit import inlined, lean, njit
from marey.numerics.lanes_kernel import LANES
from marey.numerics.vector3_kernel import copy_rows, fill, set_values
from marey.pose.gauss_newton.track_kernel import (
    TrackState,
    keep_signs,
    predict_pose,
    scratch_of,
    track_frame,
    update_velocity,
)

MAX_ITERATIONS_LANES = 8
"""Steps in which most frames converge; others are left to the sequential tracker.
Higher does not pay, because a frame that takes many is likely to be solved again."""

GOES_ON, CONVERGED, LEFT = 0, 1, 2
"""What becomes of the frame of a lane."""


class LaneStatus(NamedTuple):
    """The frame of every lane, and the sequence that it comes from."""

    after: np.ndarray  # where the next frame is in the order
    end: np.ndarray  # where the sequence ends
    is_left: np.ndarray  # whether the next frame is left to the sequential tracker
    slot: np.ndarray  # place of the frame in the output; -1 without a frame
    steps: np.ndarray  # taken so far; negative after one that was not accepted
    total: np.ndarray  # cost of the last accepted pose
    weight: np.ndarray  # total weight of the markers seen
    share: np.ndarray  # (lane, block): of the prior in the last frame


@lean
def _starts_within_limits(tree, q):
    """Return whether all joints of a pose are certainly within their limits."""
    for i in range(1, len(q)):
        if tree.has_limits[i] and not limit_margin(tree, i, q[i]) > 0.0:
            return False
    return True


@lean
def _put_markers(frames, lane, targets, points, origin):
    """Put the markers of a frame into a lane; return the total weight of those seen."""
    total = 0.0
    for k in range(len(targets.column)):
        point = points[targets.column[k]]
        is_seen = np.isfinite(point[0] + point[1] + point[2])
        weight = targets.weight[k] * confidence_of(point) if is_seen else 0.0
        frames.weight[k, lane] = weight
        total += weight
        for x in range(3):
            frames.seen[k, x, lane] = point[x] - origin[x] if is_seen else 0.0
    return total


@lean
def _put_pose(root, q, lane, to_root, to_q):
    """Put a pose into a lane."""
    for k in range(3):
        to_root[k, lane] = root[k]
    for i in range(len(q)):
        for k in range(4):
            to_q[i, k, lane] = q[i, k]


@lean
def _begin_frame(frames, lane, problem, points, state, settings, path, out, scratch):
    """Put a frame into a lane; return the weight seen, or 0 if it is left."""
    tree, targets, _ = problem
    if len(targets.sensor_column) > 0:
        return 0.0
    if settings.given_start:
        copy_pose(out, (state.root, state.q))
    elif not 0 <= state.frames_unseen[0] <= settings.max_unseen_frames:
        return 0.0
    expected, root, q = scratch.expected, scratch.start[0], state.q
    fill(root, 0.0)
    if settings.given_start:
        for k in range(3):
            expected[0][k] = path[0][k] - state.root[k]
        copy_rows(path[1], expected[1])
    else:
        predict_pose(state.q, state.velocity, expected)
        root, q = expected
    if not _starts_within_limits(tree, q):
        return 0.0
    _put_pose(root, q, lane, frames.root, frames.q)
    _put_pose(expected[0], expected[1], lane, frames.expected_root, frames.expected)
    frames.damping[0, lane] = 0.0
    return _put_markers(frames, lane, targets, points, state.root)


@lean
def _end_frame(frames, lane, weight, steps, state, settings, out, info, scratch):
    """Write the pose of a lane, its statistics, and the state after it."""
    root, q = scratch.pose
    fill(scratch.start[0], 0.0)
    copy_rows(q, scratch.start[1])
    for k in range(3):
        root[k] = frames.root[k, lane]
    for i in range(len(q)):
        for k in range(4):
            q[i, k] = frames.q[i, k, lane]
    keep_signs(scratch.start[1], q)
    if not settings.given_start:
        update_velocity(frames.share[:, lane], scratch, state.velocity, settings)
    for k in range(3):
        state.root[k] += root[k]
    copy_pose((state.root, q), out)
    state.frames_unseen[0] = 0
    state.restart_wait[0] -= 1
    info[0], info[1] = frames.result[COST, lane], weight
    info[2], info[3] = frames.result[WEIGHT, lane], steps
    for b in range(len(frames.information)):
        info[4 + b] = frames.information[b, lane]


@lean
def _accept_poses(frames, status):
    """Mark the lanes whose cost did not rise, and those that begin a frame."""
    for lane in range(LANES):
        most = status.total[lane] + COST_ROUNDING * abs(status.total[lane])
        is_better = frames.result[COMPARED, lane] <= most
        is_accepted = status.steps[lane] <= 0 or is_better
        frames.accepted[0, lane] = 1.0 if is_accepted else 0.0


@lean
def _judge_step(frames, status, lane, tolerance):
    """Return what becomes of a lane after a step."""
    result, damping, steps = frames.result, frames.damping, status.steps
    if not frames.accepted[0, lane] > 0.0:
        last = DAMPING_FACTOR * damping[0, lane]
        damping[0, lane] = max(DAMPING_FACTOR * last, INITIAL_DAMPING)
        steps[lane] = -steps[lane]
        return GOES_ON
    # The next pose is evaluated and its step computed at once, as if it were accepted.
    damping[0, lane] /= DAMPING_FACTOR
    total = result[TOTAL, lane]
    status.total[lane], steps[lane] = total, abs(steps[lane]) + 1
    if not result[MARGIN, lane] > 0.0:
        return LEFT
    if result[DECREASE, lane] < tolerance * abs(total):
        return CONVERGED
    if result[STEP, lane] < MIN_STEP**2:
        return CONVERGED
    return LEFT if steps[lane] >= MAX_ITERATIONS_LANES else GOES_ON


@lean
def _is_final(frames, lane, weight, wait, settings):
    """Return whether no other attempt is to be made on a frame that has converged."""
    is_good = frames.result[COST, lane] <= weight * settings.max_rms_residual**2
    if settings.robust and frames.result[OUTLIERS, lane] >= 0.0:
        is_good = False
    if is_good:
        wait[0] = 0
    return is_good or settings.given_start or wait[0] > 0


@inlined
def _state_of(states, lane):
    """Return the state of one lane."""
    return TrackState(
        states.root[lane],
        states.q[lane],
        states.velocity[lane],
        states.frames_unseen[lane],
        states.restart_wait[lane],
    )


@inlined
def _fill_lane(
    lane,
    status,
    frames,
    problem,
    recording,
    order,
    state,
    settings,
    paths,
    out,
    scratch,
):
    """Give a lane its next frame; track those before it that are left, in sequence."""
    points, sensors = recording
    while status.slot[lane] < 0 and status.after[lane] < status.end[lane]:
        slot, weight = order[status.after[lane]], 0.0
        status.after[lane] += 1
        f, pose = slot % len(points), (out[0][slot], out[1][slot])
        path, info = (paths[0][slot], paths[1][slot]), out[2][slot]
        if not status.is_left[lane]:
            weight = _begin_frame(
                frames, lane, problem, points[f], state, settings, path, pose, scratch
            )
        status.is_left[lane] = False
        if weight > 0.0:
            status.slot[lane], status.steps[lane] = slot, 0
            status.weight[lane] = weight
        else:
            seen, share = (points[f], sensors[f]), problem[2].prior_share
            set_values(share, status.share[lane])
            track_frame(problem, seen, state, settings, path, pose, info, scratch)
            set_values(status.share[lane], share)


@inlined
def _end_step(lane, status, frames, state, settings, out, scratch):
    """Go on with a lane, write its frame, or leave that to the sequential tracker."""
    verdict = _judge_step(frames, status, lane, settings.tolerance)
    if verdict != GOES_ON:
        slot, weight = status.slot[lane], status.weight[lane]
        status.slot[lane], wait = -1, state.restart_wait
        if verdict == CONVERGED and _is_final(frames, lane, weight, wait, settings):
            pose, info, steps = (out[0][slot], out[1][slot]), out[2][slot], status.steps
            _end_frame(
                frames, lane, weight, steps[lane], state, settings, pose, info, scratch
            )
            set_values(status.share[lane], frames.share[:, lane])
        else:
            status.after[lane] -= 1
            status.is_left[lane] = True


@lean
def _is_busy(status):
    """Return whether any lane has a frame."""
    count = 0
    for lane in range(LANES):
        count += status.slot[lane] >= 0
    return count > 0


@inlined
def _begin_streams(ends, n_blocks):
    """Return the status of lanes before their first frames."""
    after, slot = np.zeros(LANES, dtype=np.int64), np.zeros(LANES, dtype=np.int64)
    share = empty((LANES, n_blocks))
    for lane in range(LANES):
        after[lane], slot[lane] = ends[lane - 1] if lane > 0 else 0, -1
        fill(share[lane], 1.0)
    return LaneStatus(
        after,
        ends,
        np.zeros(LANES, dtype=np.bool_),
        slot,
        np.zeros(LANES, dtype=np.int64),
        zeros(LANES),
        zeros(LANES),
        share,
    )


@lean
def _track_lanes(
    problem, frames, recording, order, status, states, settings, paths, out, rooms
):
    """Track all sequences to their ends. `rooms` is the room of `scratch_of`."""
    tree, targets, _ = problem
    lanes = view_lanes(frames)
    while True:
        for lane in range(LANES):
            state = _state_of(states, lane)
            scratch = scratch_of(rooms[0], rooms[1], rooms[2], state.q)
            _fill_lane(
                lane,
                status,
                frames,
                problem,
                recording,
                order,
                state,
                settings,
                paths,
                out,
                scratch,
            )
        if not _is_busy(status):
            break
        move = iterate_lanes(tree, targets, lanes, settings)
        _accept_poses(frames, status)
        lanes.result[STEP], lanes.result[MARGIN] = step_lanes(tree, lanes, move)
        for lane in range(LANES):
            if status.slot[lane] >= 0:
                state = _state_of(states, lane)
                scratch = scratch_of(rooms[0], rooms[1], rooms[2], state.q)
                _end_step(lane, status, frames, state, settings, out, scratch)


@njit(cache=True, nogil=True)
def track_streams(
    problem, frames, recording, order, ends, states, settings, paths, out
):
    """Track the skeleton through several sequences of frames, side by side.

    Args:
        problem: The kinematic tree, the table of targets and a `PoseWorkspace`.
        frames: Room for frames side by side.
        recording: Markers of the take, in metres, and sensors.
        order: Places in the output, of one sequence after the other. The frame of a
            place is its remainder by the number of frames.
        ends: Where the sequence of each lane ends in `order`.
        states: A `TrackState` whose arrays have an axis of lanes in front.
        settings: A `TrackSettings`.
        paths: As of `track_frames`, by place.
        out: As of `track_frames`, by place.
    """
    n = len(problem[0].parent)
    rooms = empty((7, 3)), empty((5, n, 4)), empty(3)
    # Without allocations: references to every array of a tree would be counted.
    _track_lanes(
        problem,
        frames,
        recording,
        order,
        _begin_streams(ends, n + 1),
        states,
        settings,
        paths,
        out,
        rooms,
    )
