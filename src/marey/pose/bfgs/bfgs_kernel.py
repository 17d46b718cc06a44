"""BFGS on one frame after the other, compiled; `fit.py` explains it."""

from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from marey.articulated.kinematics_kernel import copy, copy_rows, dot, fill
from marey.articulated.limits_kernel import hinge_angle
from marey.articulated.targets_kernel import weight_seen
from marey.numerics.jit import inner
from marey.pose.bfgs.fitness_kernel import curvatures, fitness
from marey.pose.gauss_newton.initial_pose_kernel import find

# A step must bring this share of what the slope promises, and leave at most that
# share of the slope: the weak conditions of Wolfe.
BRINGS, LEAVES = 1e-4, 0.9

# Of the fitness, what rounding may add to it.
ROUNDING = 1e-13

# A step along which the slope turns by less than this share teaches nothing.
FLAT = 1e-10

# The first length tried changes no unknown by more than this, in radians or metres.
LEAP = 0.5

# Lengths tried along one direction.
TRIES = 40

# Least curvature that an unknown is taken to have, in 1 / rad^2 or 1 / m^2.
ROUND = 1.0

# Frames whose targets are this far off on the whole, in metres, are begun afresh.
LOST = 0.05


class Search(NamedTuple):
    """Scratch of the search."""

    H: np.ndarray  # the inverse of the curvature, as learnt
    x: np.ndarray
    new_x: np.ndarray
    g: np.ndarray
    new_g: np.ndarray
    d: np.ndarray
    y: np.ndarray  # how the slope changed
    Hy: np.ndarray


@no_type_check
def search_of(count):
    """Return scratch for so many unknowns; nothing is learnt yet."""
    return Search(np.zeros((count, count)), *(np.zeros(count) for _ in range(7)))


@no_type_check
@inner
def _forget(tree, targets, slopes, points, sensors, search):
    """Begin with the curvature of every unknown on its own."""
    H, own, n = search.H, search.Hy, len(search.x)
    curvatures(tree, targets, slopes, points, sensors, own)
    for i in range(n):
        for j in range(n):
            H[i, j] = 0.0
        H[i, i] = 1.0 / max(own[i], ROUND)


@no_type_check
@inner
def _largest(v):
    largest = 0.0
    for k in range(len(v)):
        largest = max(largest, abs(v[k]))
    return largest


@no_type_check
@inner
def _times(H, v, out):
    for i in range(len(v)):
        total = 0.0
        for j in range(len(v)):
            total += H[i, j] * v[j]
        out[i] = total


@no_type_check
@inner
def _learn(search, length):
    """Take what a step has shown of the curvature: the formula of BFGS."""
    H, d, y, n = search.H, search.d, search.y, len(search.x)
    for k in range(n):
        y[k] = search.new_g[k] - search.g[k]
    bend = length * dot(d, y)
    if not bend > FLAT * length * np.sqrt(dot(d, d) * dot(y, y)):
        return
    Hy = search.Hy
    _times(H, y, Hy)
    first = (1.0 + dot(y, Hy) / bend) * length * length / bend
    second = length / bend
    for i in range(n):
        for j in range(n):
            H[i, j] += first * d[i] * d[j] - second * (Hy[i] * d[j] + d[i] * Hy[j])


@no_type_check
@inner
def _write_down(tree, wishes, slopes, root, q, x, base):
    """Write a pose as unknowns; balls as turns from where they are, so as zeros."""
    for k in range(3):
        x[k] = root[k]
    for i in range(len(q)):
        s = slopes.start[i]
        if tree.hinge[i]:
            x[s] = hinge_angle(tree.axis[i], q[i])
        elif wishes.euler:
            _angles_near(q[i], x, s)
        else:
            fill(x[s : s + 3], 0.0)
    copy_rows(q, base)


@no_type_check
@inner
def _angles_near(q, x, s):
    """Write XYZ angles of a rotation, of all their forms the nearest to those there."""
    w, i, j, k = q[0], q[1], q[2], q[3]
    sine = min(max(2.0 * (i * k + w * j), -1.0), 1.0)
    b = np.arcsin(sine)
    if abs(sine) > 1.0 - 1e-12:
        # Only a sum of the outer two is known: the first stays as it is.
        a = x[s]
        both = 2.0 * np.arctan2(i, w)
        c = both - a if sine > 0.0 else a - both
    else:
        a = np.arctan2(2.0 * (w * i - j * k), 1.0 - 2.0 * (i * i + j * j))
        c = np.arctan2(2.0 * (w * k - i * j), 1.0 - 2.0 * (j * j + k * k))
    best, turn = np.inf, 2.0 * np.pi
    p0, p1, p2 = x[s], x[s + 1], x[s + 2]
    for other in range(2):
        if other == 1:
            a, b, c = a + np.pi, np.pi - b, c + np.pi
        a += turn * np.round((p0 - a) / turn)
        b += turn * np.round((p1 - b) / turn)
        c += turn * np.round((p2 - c) / turn)
        away = abs(a - p0) + abs(b - p1) + abs(c - p2)
        if away < best:
            best = away
            x[s], x[s + 1], x[s + 2] = a, b, c


@no_type_check
@inner
def _walk(problem, search, frame, base, pose, cost, slope):
    """Go along the direction as far as pays; return the length and the fitness there.

    Between a length that is too short and one that is too long; 0 if none will do.
    """
    tree, targets, wishes, slopes = problem
    points, sensors, given = frame
    x, d, new_x, new_g = search.x, search.d, search.new_x, search.new_g
    short, long, length = 0.0, np.inf, 1.0
    largest = _largest(d)
    if largest > LEAP:
        length = LEAP / largest
    for _ in range(TRIES):
        for k in range(len(x)):
            new_x[k] = x[k] + length * d[k]
        new_cost = fitness(
            tree,
            targets,
            wishes,
            slopes,
            points,
            sensors,
            given,
            new_x,
            base,
            pose,
            new_g,
        )
        along = dot(new_g, d)
        falls = new_cost <= cost + BRINGS * length * slope
        # Where the fall is lost in rounding, the slope tells it.
        if not falls and new_cost <= cost * (1.0 + ROUNDING):
            falls = along <= (2.0 * BRINGS - 1.0) * slope
        if not falls:
            long = length
        elif along < LEAVES * slope:
            short = length
        else:
            return length, new_cost
        length = 0.5 * (short + long) if long < np.inf else 2.0 * length
    return 0.0, cost


@no_type_check
@inner
def _downhill(search):
    """Write the direction to go; return the slope along it."""
    slope = 0.0
    _times(search.H, search.g, search.d)
    for k in range(len(search.x)):
        search.d[k] = -search.d[k]
        slope += search.d[k] * search.g[k]
    return slope


@no_type_check
@inner
def _descend(problem, search, frame, base, pose, most, tolerance):
    """Move a pose to the least fitness; return it and the steps taken."""
    tree, targets, wishes, slopes = problem
    points, sensors, given = frame
    x, g = search.x, search.g
    _write_down(tree, wishes, slopes, pose[0], pose[1], x, base)
    cost = fitness(
        tree, targets, wishes, slopes, points, sensors, given, x, base, pose, g
    )
    fresh = not search.H[0, 0] > 0.0
    if fresh:
        _forget(tree, targets, slopes, points, sensors, search)
    steps = 0
    while steps < most:
        slope, length, new_cost = _downhill(search), 0.0, cost
        if -tolerance < slope < 0.0 or (slope >= 0.0 and fresh):
            break
        if slope < 0.0:
            length, new_cost = _walk(problem, search, frame, base, pose, cost, slope)
        if not length > 0.0:
            if fresh:
                break
            # Rounding has spoilt what was learnt.
            _forget(tree, targets, slopes, points, sensors, search)
            fresh = True
            continue
        steps += 1
        _learn(search, length)
        fresh = False
        copy(search.new_x, x)
        copy(search.new_g, g)
        cost = new_cost
    # The pose and its axes are those of the last length tried.
    cost = fitness(
        tree, targets, wishes, slopes, points, sensors, given, x, base, pose, g
    )
    return cost, steps


@no_type_check
@njit(cache=True)
def follow(
    tree,
    targets,
    wishes,
    slopes,
    search,
    work,
    points,
    sensors,
    order,
    starts,
    given,
    guided,
    most,
    tolerance,
    q_out,
    root_out,
    info,
):
    """Fit frames in the order given, each from the one before it.

    Guided, every frame begins at its own pose of `starts`, places of the root and
    rotations; otherwise the first is found without help. `given` is the rotations of
    the reference. `info` gets per frame: fitness, weight seen, steps.
    """
    n, problem = len(tree.parent), (tree, targets, wishes, slopes)
    root, q, base = np.zeros(3), np.zeros((n, 4)), np.zeros((n, 4))
    best_root, best_q = np.empty(3), np.empty((n, 4))
    pose, zero, light = (root, q), np.zeros(3), np.full(n + 1, 1e-6)
    for i in range(n):
        q[i, 0] = 1.0
    known = False
    for f in order:
        seen = weight_seen(targets, points[f], sensors[f])
        info[f, 1] = seen
        if guided:
            copy(starts[0][f], root)
            copy_rows(starts[1][f], q)
        if seen > 0.0:
            if not known and not guided:
                find(tree, targets, work, points[f], sensors[f], zero, root, q, light)
            frame = (points[f], sensors[f], given[f])
            cost, steps = _descend(problem, search, frame, base, pose, most, tolerance)
            if cost > seen * LOST**2 and known and not guided:
                copy(root, best_root)
                copy_rows(q, best_q)
                find(tree, targets, work, points[f], sensors[f], zero, root, q, light)
                search.H[0, 0] = 0.0
                again, more = _descend(
                    problem, search, frame, base, pose, most, tolerance
                )
                steps += more
                if again < cost:
                    cost = again
                else:
                    copy(best_root, root)
                    copy_rows(best_q, q)
            known = True
            info[f, 0], info[f, 2] = cost, steps
        copy(root, root_out[f])
        copy_rows(q, q_out[f])
