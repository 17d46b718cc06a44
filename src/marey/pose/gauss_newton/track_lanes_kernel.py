"""Parts of a take tracked side by side, one in each lane of the CPU, compiled.

The frames of a take are cut into as many parts as a register has lanes (SIMD), and all
parts are tracked at once (parallel in time). A lane goes on to its next frame when its
frame has converged, so that no lane waits for another. A frame that needs more than one
attempt, or has no targets, is left to the sequential tracker: `advance_lanes` returns,
and goes on when it was tracked.
"""

# mypy: ignore-errors

from typing import NamedTuple

import numpy as np
from numba import njit

from marey.articulated.kinematics_kernel import (
    PoseWorkspace,
    copy_pose,
    copy_rows,
    forward_kinematics,
)
from marey.articulated.levenberg_marquardt_kernel import (
    COST_ROUNDING,
    DAMPING_FACTOR,
    INITIAL_DAMPING,
    MIN_STEP,
    compute_step,
    prior_cost,
    write_prior_residuals,
)
from marey.articulated.limits_kernel import (
    apply_step,
    clamp_to_limits,
    rotation_difference,
)
from marey.articulated.targets_kernel import (
    sum_targets,
    total_weight_seen,
    weight_targets,
)
from marey.numerics.jit import inlined, lean
from marey.numerics.lanes_kernel import (
    LANES,
    all_lanes,
    any_lane,
    as_lanes,
    holds_in,
    lane_view,
    select,
)
from marey.numerics.vector3_kernel import (
    fill,
    set_values,
    set_vector,
    sum_products,
)
from marey.pose.gauss_newton.track_kernel import (
    FULL_ROBUSTNESS,
    ROBUSTNESS,
    filter_speed,
    is_good,
    predict_pose,
    total_robust_weight,
)

BEGIN, SOLVE, ALONE, END = 0, 1, 2, 3
"""A lane is to begin its next frame; solves it; leaves it to the sequential tracker; or
has no more frames."""


class LaneTracks(NamedTuple):
    """Tracks of all lanes: arrays with the lane as their last axis.

    Poses are pairs of root position, from `origin`, and quaternions.
    """

    root: np.ndarray  # (3): at the last frame
    q: np.ndarray  # (node, 4): at the last frame
    velocity: np.ndarray  # (block, 3): metres and rotation vectors per frame
    origin: np.ndarray  # (3): position of the root at the last frame
    pose: tuple[np.ndarray, np.ndarray]  # as it moves
    expected: tuple[np.ndarray, np.ndarray]  # of the prior
    new: tuple[np.ndarray, np.ndarray]  # after the step
    predicted: tuple[np.ndarray, np.ndarray]  # scratch
    points: np.ndarray  # (column, 3 or 4): markers of the frame
    sensors: np.ndarray  # (sensor, 4, 4)
    weight: np.ndarray  # (1): of all positions seen
    cost: np.ndarray  # (1): of the targets
    total: np.ndarray  # (1): of targets and prior
    damping: np.ndarray  # (1): of the next step
    steps: np.ndarray  # (1): taken in the frame
    is_running: np.ndarray  # (1): 1 while a frame is solved, else 0
    is_starting: np.ndarray  # (1): 1 before the first step of a frame, else 0
    is_waiting: np.ndarray  # (1): 1 while no other attempt is to be made, else 0
    difference: np.ndarray  # (3): scratch


class LaneOrder(NamedTuple):
    """What each lane has to do, and how its track stands; see `TrackState`."""

    status: np.ndarray  # (lane): `BEGIN`, `SOLVE`, `ALONE` or `END`
    next: np.ndarray  # (lane): place of its frame in the order
    stop: np.ndarray  # (lane): place after its last frame
    frames_unseen: np.ndarray  # (lane)
    restart_wait: np.ndarray  # (lane)


def make_lane_tracks(n_nodes: int, n_columns: tuple[int, int, int]) -> LaneTracks:
    """Return the arrays of tracks.

    Args:
        n_nodes: Number of nodes.
        n_columns: Numbers of markers of the take, of their components, of sensors.
    """

    def zeros(*shape: int) -> np.ndarray:
        return np.zeros((*shape, LANES))

    def pose() -> tuple[np.ndarray, np.ndarray]:
        return zeros(3), zeros(n_nodes, 4)

    n_markers, n_components, n_sensors = n_columns
    return LaneTracks(
        *pose(),
        zeros(n_nodes + 1, 3),
        zeros(3),
        *(pose() for _ in range(4)),
        zeros(n_markers, n_components),
        zeros(n_sensors, 4, 4),
        *(zeros(1) for _ in range(8)),
        zeros(3),
    )


def make_lane_workspace(work: PoseWorkspace) -> PoseWorkspace:
    """Return scratch as of one frame, with the lane as the last axis of arrays."""
    arrays = {
        name: np.repeat(value[..., None], LANES, axis=-1)
        for name, value in work._asdict().items()
        if name not in ("has_world_axes", "flat", "horn", "body_sums")
    }
    flat = arrays["g"].reshape(-1, LANES)
    return work._replace(**arrays, flat=flat)


@inlined
def _view_workspace(work):
    """Return scratch whose arrays are of lanes."""
    return PoseWorkspace(
        as_lanes(work.R),
        as_lanes(work.c),
        as_lanes(work.marker_weight),
        as_lanes(work.sensor_weight),
        as_lanes(work.node_sums),
        as_lanes(work.subtree_sums),
        as_lanes(work.A),
        work.has_world_axes,
        as_lanes(work.H),
        as_lanes(work.g),
        as_lanes(work.flat),
        as_lanes(work.prior_residual),
        as_lanes(work.prior_share),
        as_lanes(work.information),
        as_lanes(work.angles),
        as_lanes(work.limit_side),
        as_lanes(work.limits_changed),
        as_lanes(work.is_fixed),
        work.horn,
        work.body_sums,
    )


@inlined
def _view_tracks(tracks):
    """Return tracks whose arrays are of lanes."""
    return LaneTracks(
        as_lanes(tracks.root),
        as_lanes(tracks.q),
        as_lanes(tracks.velocity),
        as_lanes(tracks.origin),
        (as_lanes(tracks.pose[0]), as_lanes(tracks.pose[1])),
        (as_lanes(tracks.expected[0]), as_lanes(tracks.expected[1])),
        (as_lanes(tracks.new[0]), as_lanes(tracks.new[1])),
        (as_lanes(tracks.predicted[0]), as_lanes(tracks.predicted[1])),
        as_lanes(tracks.points),
        as_lanes(tracks.sensors),
        as_lanes(tracks.weight),
        as_lanes(tracks.cost),
        as_lanes(tracks.total),
        as_lanes(tracks.damping),
        as_lanes(tracks.steps),
        as_lanes(tracks.is_running),
        as_lanes(tracks.is_starting),
        as_lanes(tracks.is_waiting),
        as_lanes(tracks.difference),
    )


@lean
def _select_pose(condition, pose, out):
    """Write a pose in the lanes in which a condition holds."""
    for k in range(3):
        out[0][k] = select(condition, pose[0][k], out[0][k])
    for i in range(len(out[1])):
        for k in range(4):
            out[1][i, k] = select(condition, pose[1][i, k], out[1][i, k])


@lean
def _load_frame(problem, recording, f, paths, settings, tracks, lane, out):
    """Write the targets of a frame into a lane, and its given start."""
    targets = problem[1]
    points, sensors = lane_view(tracks.points, lane), lane_view(tracks.sensors, lane)
    for k in targets.column:
        set_values(points[k], recording[0][f, k])
    for k in targets.sensor_column:
        copy_rows(recording[1][f, k], sensors[k])
    lane_view(tracks.steps, lane)[0] = 0.0
    lane_view(tracks.is_starting, lane)[0] = 1.0
    if settings.given_start:
        copy_pose((out[0][f], out[1][f]), _lane_pose((tracks.root, tracks.q), lane))
        set_vector(lane_view(tracks.origin, lane), out[0][f])
        new, expected = _lane_pose(tracks.new, lane), _lane_pose(tracks.expected, lane)
        fill(new[0], 0.0)
        copy_rows(out[1][f], new[1])
        for k in range(3):
            expected[0][k] = paths[0][f, k] - out[0][f, k]
        copy_rows(paths[1][f], expected[1])


@inlined
def _lane_pose(pose, lane):
    """Return the pose of one lane."""
    return lane_view(pose[0], lane), lane_view(pose[1], lane)


@lean
def _predict_lanes(tracks, work, tree, settings):
    """Write the pose that starting lanes start from, and the expected one."""
    starting = tracks.is_starting[0] > 0.0
    if not settings.given_start:
        for k in range(3):
            tracks.origin[k] = select(starting, tracks.root[k], tracks.origin[k])
        predict_pose(tracks.q, tracks.velocity, tracks.predicted)
        _select_pose(starting, tracks.predicted, tracks.expected)
        _select_pose(starting, tracks.predicted, tracks.new)
    clamp_to_limits(tree, work, tracks.new[1])


@lean
def _move_on(tracks, work, done, settings):
    """Make the poses of lanes that are done their last ones; filter velocities."""
    pose, last = tracks.pose, (tracks.root, tracks.q)
    for i in range(len(tracks.q)):
        # q and -q are one rotation: the sign stays that of the last frame.
        product = sum_products(pose[1][i], tracks.q[i])
        sign = select(product < 0.0, -1.0, 1.0)
        for k in range(4):
            pose[1][i, k] *= sign
    for b in range(len(tracks.velocity)):
        d = tracks.difference
        if b == 0:
            set_vector(d, pose[0])
        else:
            rotation_difference(pose[1][b - 1], last[1][b - 1], d)
        for k in range(3):
            v = tracks.velocity[b, k]
            filtered = filter_speed(v, d[k], work.prior_share[b], settings)
            tracks.velocity[b, k] = select(done, filtered, v)
    for k in range(3):
        moved = tracks.origin[k] + pose[0][k]
        tracks.root[k] = select(done, moved, tracks.root[k])
    for i in range(len(tracks.q)):
        for k in range(4):
            tracks.q[i, k] = select(done, pose[1][i, k], tracks.q[i, k])


@lean
def _write_frame(tracks, work, lane, max_steps, robust_weight, f, out):
    """Write the pose and the statistics of a lane's frame."""
    info = out[2][f]
    copy_pose(_lane_pose((tracks.root, tracks.q), lane), (out[0][f], out[1][f]))
    weight = lane_view(tracks.weight, lane)[0]
    info[1], info[3] = weight, min(lane_view(tracks.steps, lane)[0], max_steps)
    if weight > 0.0:
        info[0], info[2] = lane_view(tracks.cost, lane)[0], robust_weight
        set_values(info[4:], lane_view(work.information, lane))
    else:
        fill(info[4:], 0.0)


@lean
def _begin_frame(problem, recording, order, lane, settings, paths, lanes, tracks, out):
    """Let a lane begin its next frame, if it has any.

    A frame without targets, or one that has to be found from scratch, is left to the
    sequential tracker.
    """
    running = lane_view(tracks.is_running, lane)
    running[0], lanes.status[lane] = 0.0, END
    if lanes.next[lane] == lanes.stop[lane]:
        return
    f = order[lanes.next[lane]]
    weight = total_weight_seen(problem[1], recording[0][f], recording[1][f])
    is_tracked = 0 <= lanes.frames_unseen[lane] <= settings.max_unseen_frames
    if not settings.given_start and not (weight > 0.0 and is_tracked):
        lanes.status[lane] = ALONE
        return
    running[0], lanes.status[lane] = 1.0, SOLVE
    lane_view(tracks.weight, lane)[0] = weight
    waits = settings.given_start or lanes.restart_wait[lane] > 0
    lane_view(tracks.is_waiting, lane)[0] = 1.0 if waits else 0.0
    _load_frame(problem, recording, f, paths, settings, tracks, lane, out)


@lean
def _end_frames(
    problem, recording, order, done, converged, settings, paths, lanes, tracks, out
):
    """Write the frames of lanes that are done, and begin the next ones.

    A frame that is not good and may be attempted again, or one that took all its steps,
    is left to the sequential tracker, as if it had not begun.
    """
    work = problem[2]
    good = is_good(problem, tracks.points, tracks.weight[0], tracks.cost[0], settings)
    kept = select(good, 1.0, tracks.is_waiting[0])
    kept = select(converged, kept, 1.0 if settings.given_start else 0.0) > 0.0
    _move_on(tracks, work, done & kept, settings)
    tracks.difference[0] = total_robust_weight(work)
    for lane in range(LANES):
        if not holds_in(done, lane):
            continue
        if not holds_in(kept, lane):
            lane_view(tracks.is_running, lane)[0] = 0.0
            lanes.status[lane] = ALONE
            continue
        f = order[lanes.next[lane]]
        robust_weight = lane_view(tracks.difference, lane)[0]
        _write_frame(tracks, work, lane, settings.max_steps, robust_weight, f, out)
        wait = 0 if holds_in(good, lane) else lanes.restart_wait[lane]
        lanes.frames_unseen[lane], lanes.restart_wait[lane] = 0, wait - 1
        lanes.next[lane] += 1
        _begin_frame(
            problem, recording, order, lane, settings, paths, lanes, tracks, out
        )


@lean
def _evaluate_pose(problem, tracks, pose, springs):
    """Write weights and residuals of a pose; return its cost by targets and prior."""
    tree, targets, work = problem
    robustness, points = ROBUSTNESS[FULL_ROBUSTNESS], tracks.points
    forward_kinematics(tree, pose[0], pose[1], work.R, work.c)
    cost = weight_targets(
        targets, points, tracks.sensors, tracks.origin, work, robustness
    )
    write_prior_residuals(tree, work, pose, tracks.expected, springs)
    return cost


@lean
def _accept_steps(problem, tracks, settings, springs):
    """Keep the steps that lower the cost; raise the damping of all others."""
    tree, targets, work = problem
    starting, pose, new = tracks.is_starting[0] > 0.0, tracks.pose, tracks.new
    if any_lane(starting):
        _predict_lanes(tracks, work, tree, settings)
    cost = _evaluate_pose(problem, tracks, new, springs)
    total, damping = tracks.total[0], tracks.damping[0]
    new_total = cost + prior_cost(work, settings.prior)
    better = (new_total <= total + COST_ROUNDING * abs(total)) | starting
    raised = max(DAMPING_FACTOR * damping, INITIAL_DAMPING)
    damping = select(better, damping / DAMPING_FACTOR, raised)
    tracks.damping[0] = select(starting, 0.0, damping)
    tracks.cost[0] = select(better, cost, tracks.cost[0])
    _select_pose(better, new, pose)
    if not all_lanes(better):
        clamp_to_limits(tree, work, pose[1])
        _evaluate_pose(problem, tracks, pose, springs)
    if settings.robust or any_lane(starting):
        sum_targets(targets, tracks.points, tracks.sensors, tracks.origin, work)
    tracks.is_starting[0] = 0.0


@lean
def _solve_lanes(
    problem, recording, order, settings, paths, lanes, tracks, springs, out
):
    """Solve frames by the steps of `levenberg_marquardt` until a lane has to wait."""
    tree, _, work = problem
    pose, new, prior = tracks.pose, tracks.new, settings.prior
    gated = not settings.guided
    is_waiting = False
    while not is_waiting and any_lane(tracks.is_running[0] > 0.0):
        _accept_steps(problem, tracks, settings, springs)
        decrease = compute_step(
            tree, work, prior, gated, tracks.damping[0], springs, 0, tracks.origin
        )
        total = tracks.cost[0] + prior_cost(work, prior)
        moved = apply_step(tree, work, pose[0], pose[1], new[0], new[1])
        changed = clamp_to_limits(tree, work, new[1])
        steps = tracks.steps[0] + 1.0
        tracks.total[0], tracks.steps[0] = total, steps
        small = (decrease < settings.tolerance * abs(total)) | (moved < MIN_STEP)
        converged = select(changed, 0.0, select(small, 1.0, 0.0)) > 0.0
        done = converged | (steps > settings.max_steps)
        done = done & (tracks.is_running[0] > 0.0)
        if any_lane(done):
            _select_pose(done & converged, new, pose)
            _end_frames(
                problem, recording, order, done, converged, settings, paths, lanes,
                tracks, out,
            )  # fmt: skip
            for lane in range(LANES):
                is_waiting = is_waiting or lanes.status[lane] == ALONE


@njit(cache=True, nogil=True)
def advance_lanes(problem, recording, order, settings, paths, lanes, arrays, out):
    """Solve the frames of all lanes until one has to wait, or none has any left.

    Args:
        problem: The kinematic tree, the table of targets and a workspace of lanes.
        recording: Markers of the take, in metres, and sensors.
        order: Numbers of the frames.
        settings: A `TrackSettings`.
        paths: Positions of the root and quaternions, by frame.
        lanes: The `LaneOrder`; lanes whose frame is left to the sequential tracker have
            the status `ALONE`.
        arrays: `LaneTracks`.
        out: As of `track_frames`.
    """
    tracks, tree, targets = _view_tracks(arrays), problem[0], problem[1]
    in_lanes = (tree, targets, _view_workspace(problem[2]))
    is_waiting = False
    for lane in range(LANES):
        if lanes.status[lane] == BEGIN:
            _begin_frame(
                in_lanes, recording, order, lane, settings, paths, lanes, tracks, out
            )
        is_waiting = is_waiting or lanes.status[lane] == ALONE
    if not is_waiting:
        _solve_lanes(
            in_lanes, recording, order, settings, paths, lanes, tracks, None, out
        )
