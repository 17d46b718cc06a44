"""A skeleton followed through the frames of a take, compiled; see `fit.py`."""

from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from marey.articulated.kinematics_kernel import copy, copy_rows, fill
from marey.articulated.limits_kernel import difference, retract
from marey.articulated.targets_kernel import weight_seen
from marey.numerics.jit import inlined, lean
from marey.pose.gauss_newton.initial_pose_kernel import find
from marey.pose.gauss_newton.lm_kernel import settle

# Frames are followed from the last. Where that fails they are tried again from there,
# then afresh: plain squares draw from afar, then outliers are let go little by little.
FOLLOW, AGAIN, AFRESH = 0, 1, 2
EASE = (0.0, 0.03, 1.0)
LAST = 2

# A little more than one marker that is lost to the fit, with outliers at six sds.
MOST_SURPRISE = 40.0

# Frames that found no good pose are tried afresh, but not more often than this.
PATIENCE = 20


class Habits(NamedTuple):
    """How a figure is followed."""

    prior: np.ndarray  # by block: of the root's place 1 / m^2, of turns 1 / rad^2
    robust: bool
    most: int
    most_first: int
    tolerance: float
    guided: bool  # drawn to given paths, with the whole prior
    keeps: float  # share of its speed that an unseen joint keeps per frame
    learns: float  # share of a frame's speed that is believed
    lost: float  # metres off, root mean square
    patience: int  # frames without any target after which to start afresh


class State(NamedTuple):
    """Where a figure is, how it moves, and how long it was out of sight."""

    root: np.ndarray
    q: np.ndarray
    speed_root: np.ndarray  # per frame
    speed: np.ndarray  # rotation vector of every node, per frame
    unseen: np.ndarray  # one number: frames without any target; negative: not started
    wait: np.ndarray  # one number: frames in which it is not to be looked for afresh


class Scratch(NamedTuple):
    """Poses kept while a frame is worked on."""

    origin: np.ndarray
    here: np.ndarray
    start: np.ndarray
    start_q: np.ndarray
    best: np.ndarray
    best_q: np.ndarray
    there: np.ndarray
    there_q: np.ndarray
    first: np.ndarray
    first_q: np.ndarray
    new: np.ndarray
    new_q: np.ndarray
    turn: np.ndarray


@no_type_check
@lean
def _trusted(work):
    """Return the total weight that targets have left."""
    total = 0.0
    for k in range(len(work.marker_weight)):
        total += work.marker_weight[k]
    for k in range(len(work.sensor_weight)):
        total += work.sensor_weight[k, 0]
    return total


@no_type_check
@lean
def _doubtful(targets, work):
    """Return whether most of what is seen of some node counts as outliers."""
    for i in range(len(work.c)):
        seen, left = 0.0, 0.0
        for k in range(targets.start[i], targets.start[i + 1]):
            if work.marker_weight[k] > 0.0:
                seen += 1.0
                left += work.marker_weight[k] / targets.weight[k]
        for k in range(targets.sensor_start[i], targets.sensor_start[i + 1]):
            for x in range(2):
                if work.sensor_weight[k, x] > 0.0:
                    seen += 1.0
                    left += work.sensor_weight[k, x] / targets.sensor_weight[k, x]
        if seen > 1.0 and left <= 0.5 * seen:
            return True
    return False


@no_type_check
@lean
def _surprise(prior, root, q, first, first_q, turn):
    """Return how unexpected a pose is; a joint's share is bounded."""
    total = 0.0
    for b in range(len(prior)):
        if b == 0:
            for k in range(3):
                turn[k] = root[k] - first[k]
        else:
            difference(q[b - 1], first_q[b - 1], turn)
        square = turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2]
        total += min(prior[b] * square, MOST_SURPRISE)
    return total


@no_type_check
@lean
def _learn(work, root, q, last_root, last_q, speed_root, speed, habits, turn):
    """Take what the frame shows of the joints' speeds; unseen joints slow down."""
    for b in range(len(q) + 1):
        if b == 0:
            for k in range(3):
                turn[k] = root[k] - last_root[k]
        else:
            difference(q[b - 1], last_q[b - 1], turn)
        v, gate = (speed_root if b == 0 else speed[b - 1]), work.gate[b]
        for k in range(3):
            seen = v[k] + habits.learns * (turn[k] - v[k])
            v[k] = (1.0 - gate) * seen + gate * habits.keeps * v[k]


@no_type_check
@lean
def _keep_signs(last, q):
    """Give quaternions the signs of the frame before; q and -q are one rotation."""
    for i in range(len(q)):
        dot = 0.0
        for k in range(4):
            dot += q[i, k] * last[i, k]
        if dot < 0.0:
            for k in range(4):
                q[i, k] = -q[i, k]


@no_type_check
@lean
def _slow(speed_root, speed, share):
    """Leave only a share of the speeds."""
    for k in range(3):
        speed_root[k] *= share
        for i in range(len(speed)):
            speed[i, k] *= share


@no_type_check
@lean
def _expect(root, q, speed_root, speed, expected_root, expected_q):
    """Write where the figure's speed brings it, seen from where it is."""
    for k in range(3):
        expected_root[k] = speed_root[k]
    for i in range(len(q)):
        v = speed[i]
        retract(q[i], v[0], v[1], v[2], expected_q[i])


@no_type_check
@inlined
def _set_out(state, habits, path, scratch, q_out, root_out):
    """Write where the frame begins, and where the figure is expected in it."""
    root, q = state.root, state.q
    there, there_q, origin = scratch.there, scratch.there_q, scratch.origin
    if habits.guided:
        copy_rows(q_out, q)
        copy(root_out, root)
    copy(root, origin)
    fill(scratch.start, 0.0)
    copy_rows(q, scratch.start_q)
    if habits.guided:
        fill(scratch.here, 0.0)
        for k in range(3):
            there[k] = path[0][k] - origin[k]
        copy_rows(path[1], there_q)
    else:
        _expect(root, q, state.speed_root, state.speed, there, there_q)
        copy(there, scratch.here)
        copy_rows(there_q, q)
    copy(there, scratch.first)
    copy_rows(there_q, scratch.first_q)


@no_type_check
@inlined
def _settled(tree, targets, work, seen, q, habits, scratch, attempt):
    """Settle in one attempt; return the cost and the steps taken.

    All but the first begin with plain squares, afresh where they are told to, and let
    outliers go little by little.
    """
    points, sensors = seen
    origin, here, there, there_q = (
        scratch.origin,
        scratch.here,
        scratch.there,
        scratch.there_q,
    )
    ease, most = LAST, habits.most
    if attempt != FOLLOW:
        ease, most = 0 if habits.robust else LAST, habits.most_first
        copy(there, here)
        copy_rows(there_q, q)
    if attempt == AFRESH:
        find(tree, targets, work, points, sensors, origin, here, q, habits.prior)
        copy(here, there)
        copy_rows(q, there_q)
    cost, steps = 0.0, 0
    while ease <= LAST:
        cost, count = settle(
            tree,
            targets,
            work,
            points,
            sensors,
            origin,
            (here, q, scratch.new, scratch.new_q),
            (there, there_q),
            habits,
            EASE[ease],
            most,
        )
        steps += count
        ease += 1
    return cost, steps


@no_type_check
@inlined
def _search(tree, targets, work, seen, weight, state, habits, scratch):
    """Try to find the figure until it is found well; return the cost and the steps."""
    q, wait = state.q, state.wait
    here, best, best_q = scratch.here, scratch.best, scratch.best_q
    known = habits.guided or (0 <= state.unseen[0] <= habits.patience)
    attempt = FOLLOW if known else AFRESH
    least, least_cost, steps, good = np.inf, 0.0, 0, False
    while True:
        cost, count = _settled(tree, targets, work, seen, q, habits, scratch, attempt)
        steps += count
        # Outliers may fit a pose that no joint could reach so soon.
        value = cost + _surprise(
            habits.prior, here, q, scratch.first, scratch.first_q, scratch.turn
        )
        if value < least:
            least, least_cost = value, cost
            copy(here, best)
            copy_rows(q, best_q)
            if attempt == AFRESH:
                _slow(state.speed_root, state.speed, 0.0)
                copy(here, scratch.start)
                copy_rows(q, scratch.start_q)
            good = cost <= weight * habits.lost**2
            good = good and not (habits.robust and _doubtful(targets, work))
            if good:
                wait[0] = 0
        elif attempt == AFRESH:
            wait[0] = PATIENCE
        if attempt == AFRESH or habits.guided or good or wait[0] > 0:
            break
        attempt += 1
    if least < np.inf:
        copy(best, here)
        copy_rows(best_q, q)
    return least_cost, steps


@no_type_check
@lean
def _follow(
    tree,
    targets,
    work,
    points,
    sensors,
    state,
    habits,
    path,
    q_out,
    root_out,
    info,
    scratch,
):
    """Follow the figure into one frame."""
    root, q, speed_root, speed, unseen, wait = state
    here, start, start_q = scratch.here, scratch.start, scratch.start_q
    _set_out(state, habits, path, scratch, q_out, root_out)
    weight, cost, steps = weight_seen(targets, points, sensors), 0.0, 0
    if weight > 0.0 or habits.guided:
        cost, steps = _search(
            tree, targets, work, (points, sensors), weight, state, habits, scratch
        )
    wait[0] -= 1
    _keep_signs(start_q, q)
    if weight > 0.0:
        unseen[0] = 0
        info[0], info[2] = cost, _trusted(work)
        _learn(work, here, q, start, start_q, speed_root, speed, habits, scratch.turn)
    else:
        fill(work.gate, 1.0)
        fill(work.known, 0.0)
        _slow(speed_root, speed, habits.keeps)
        if unseen[0] >= 0:
            unseen[0] += 1
    info[1], info[3] = weight, steps
    copy(work.known, info[4:])
    for k in range(3):
        root[k] = scratch.origin[k] + here[k]
    copy(root, root_out)
    copy_rows(q, q_out)


@no_type_check
@njit(cache=True)
def track(
    tree,
    targets,
    work,
    points,
    sensors,
    order,
    state,
    habits,
    paths,
    q_out,
    root_out,
    info,
):
    """Follow the figure through frames, in the order given.

    Guided, every frame begins where it is, drawn to the paths of root and rotations.
    Otherwise it begins where the last frame's speed brings it.

    `state` is a `State`, and goes on from call to call; as a plain tuple it is handed
    over sooner, which counts where frames come one by one. `info` gets per frame: cost,
    weight seen, weight left, steps; then what is known of every block.
    """
    now = State(*state)
    n = len(tree.parent)
    spot, turns = np.empty((7, 3)), np.empty((5, n, 4))
    scratch = Scratch(
        spot[0],
        spot[1],
        spot[2],
        turns[0],
        spot[3],
        turns[1],
        spot[4],
        turns[2],
        spot[5],
        turns[3],
        spot[6],
        turns[4],
        np.empty(3),
    )
    for f in order:
        _follow(
            tree,
            targets,
            work,
            points[f],
            sensors[f],
            now,
            habits,
            (paths[0][f], paths[1][f]),
            q_out[f],
            root_out[f],
            info[f],
            scratch,
        )
