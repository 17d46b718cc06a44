"""Markers and sensors of one frame as sums per node, compiled.

After this a Gauss-Newton step does not see single markers; `fit.py` explains.
"""

from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from marey.articulated.kinematics_kernel import fill, place
from marey.numerics.jit import lean


class Targets(NamedTuple):
    """Where markers and sensors sit, node after node, and how much they count."""

    start: np.ndarray  # markers of node i: start[i] to start[i + 1]
    column: np.ndarray
    place: np.ndarray
    weight: np.ndarray
    soft: np.ndarray  # 1 / (distance at which a residual hardly counts) squared
    sensor_start: np.ndarray
    sensor_column: np.ndarray
    sensor_place: np.ndarray
    sensor_turn: np.ndarray
    sensor_weight: np.ndarray  # place, turn
    sensor_soft: np.ndarray


@no_type_check
@lean
def weigh(targets, points, sensors, origin, work, ease):
    """Write the weight of every target seen; return their cost.

    A residual r counts w r^2 / (1 + ease soft r^2) (Geman-McClure), which is the plain
    square where ease or soft is zero.
    """
    R, c = work.R, work.c
    cost = 0.0
    for i in range(len(c)):
        for k in range(targets.start[i], targets.start[i + 1]):
            y = points[targets.column[k]]
            m = targets.place[k]
            square = 0.0
            for x in range(3):
                r = c[i, x] + R[i, x, 0] * m[0] + R[i, x, 1] * m[1] + R[i, x, 2] * m[2]
                r -= y[x] - origin[x]
                square += r * r
            if not square >= 0.0:
                work.marker_weight[k] = 0.0
                continue
            share = 1.0 / (1.0 + ease * targets.soft[k] * square)
            work.marker_weight[k] = targets.weight[k] * share * share
            cost += targets.weight[k] * share * square
        for k in range(targets.sensor_start[i], targets.sensor_start[i + 1]):
            cost += _weigh_sensor(targets, sensors, origin, work, ease, i, k)
    return cost


@no_type_check
@lean
def _weigh_sensor(targets, sensors, origin, work, ease, i, k):
    T = sensors[targets.sensor_column[k]]
    R, c, m = work.R[i], work.c[i], targets.sensor_place[k]
    B = targets.sensor_turn[k]
    away, turned = 0.0, 0.0
    for x in range(3):
        r = c[x] + R[x, 0] * m[0] + R[x, 1] * m[1] + R[x, 2] * m[2]
        r -= T[x, 3] - origin[x]
        away += r * r
        for y in range(3):
            d = R[x, 0] * B[0, y] + R[x, 1] * B[1, y] + R[x, 2] * B[2, y] - T[x, y]
            # Three unit vectors turned by t move 2 t^2 in all.
            turned += 0.5 * d * d
    if not away + turned >= 0.0:
        work.sensor_weight[k, 0] = work.sensor_weight[k, 1] = 0.0
        return 0.0
    cost = 0.0
    for x, square in ((0, away), (1, turned)):
        share = 1.0 / (1.0 + ease * targets.sensor_soft[k, x] * square)
        work.sensor_weight[k, x] = targets.sensor_weight[k, x] * share * share
        cost += targets.sensor_weight[k, x] * share * square
    return cost


@no_type_check
@lean
def reduce(targets, points, sensors, origin, work):
    """Write every node's targets as sums: w, w m, w m m^T, w y, w m y^T."""
    for i in range(len(work.c)):
        sums = work.local[i]
        fill(sums, 0.0)
        for k in range(targets.start[i], targets.start[i + 1]):
            w = work.marker_weight[k]
            if w > 0.0:
                y = points[targets.column[k]]
                _add_point(
                    sums,
                    w,
                    targets.place[k],
                    y[0] - origin[0],
                    y[1] - origin[1],
                    y[2] - origin[2],
                )
        for k in range(targets.sensor_start[i], targets.sensor_start[i + 1]):
            w, turn = work.sensor_weight[k, 0], work.sensor_weight[k, 1]
            if w + turn > 0.0:
                T = sensors[targets.sensor_column[k]]
                _add_point(
                    sums,
                    w,
                    targets.sensor_place[k],
                    T[0, 3] - origin[0],
                    T[1, 3] - origin[1],
                    T[2, 3] - origin[2],
                )
                _add_turn(sums, 0.5 * turn, targets.sensor_turn[k], T)


@no_type_check
@lean
def _add_point(sums, w, m, y0, y1, y2):
    m0, m1, m2 = w * m[0], w * m[1], w * m[2]
    sums[0] += w
    sums[1] += m0
    sums[2] += m1
    sums[3] += m2
    sums[4] += m0 * m[0]
    sums[5] += m0 * m[1]
    sums[6] += m0 * m[2]
    sums[7] += m1 * m[1]
    sums[8] += m1 * m[2]
    sums[9] += m2 * m[2]
    sums[10] += w * y0
    sums[11] += w * y1
    sums[12] += w * y2
    sums[13] += m0 * y0
    sums[14] += m0 * y1
    sums[15] += m0 * y2
    sums[16] += m1 * y0
    sums[17] += m1 * y1
    sums[18] += m1 * y2
    sums[19] += m2 * y0
    sums[20] += m2 * y1
    sums[21] += m2 * y2


@no_type_check
@lean
def _add_turn(sums, w, B, T):
    """Add three unit vectors that turn with the node but do not move with it."""
    sums[4] += w
    sums[7] += w
    sums[9] += w
    for x in range(3):
        for y in range(3):
            dot = B[x, 0] * T[y, 0] + B[x, 1] * T[y, 1] + B[x, 2] * T[y, 2]
            sums[13 + 3 * x + y] += w * dot


@no_type_check
@lean
def weight_seen(targets, points, sensors):
    """Return the weight of all positions seen, outliers or not."""
    total = 0.0
    for k in range(len(targets.column)):
        if np.isfinite(points[targets.column[k], 0]):
            total += targets.weight[k]
    for k in range(len(targets.sensor_column)):
        if np.isfinite(sensors[targets.sensor_column[k], 0, 0]):
            total += targets.sensor_weight[k, 0]
    return total


@no_type_check
@njit(cache=True)
def distances(tree, targets, points, root, q, away):
    """Write how far every marker is from its place in every frame; NaN where unseen."""
    n = len(tree.parent)
    R, c = np.empty((n, 3, 3)), np.empty((n, 3))
    for f in range(len(q)):
        place(tree, root[f], q[f], R, c)
        for i in range(n):
            for k in range(targets.start[i], targets.start[i + 1]):
                y, m, square = points[f, targets.column[k]], targets.place[k], 0.0
                for x in range(3):
                    r = R[i, x, 0] * m[0] + R[i, x, 1] * m[1] + R[i, x, 2] * m[2]
                    r += c[i, x] - y[x]
                    square += r * r
                away[f, k] = np.sqrt(square)
