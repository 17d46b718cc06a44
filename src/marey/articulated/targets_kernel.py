r"""Residuals, robust weights and sums of the targets of one frame, compiled.

A target is a marker, the position of a sensor or the rotation of a sensor. Its residual
r with weight w enters the cost by the Geman-McClure loss

.. math:: \rho(r) = \frac{w r^2}{1 + s r^2},

with softness s = 1 / scale^2; s = 0 is least squares. Gauss-Newton uses the weight
:math:`w / (1 + s r^2)^2` of the last pose: iteratively reweighted least squares (IRLS).
The weight redescends, so that a gross outlier has almost no influence.
"""

from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from marey.articulated.kinematics_kernel import fill, forward_kinematics
from marey.numerics.jit import lean


class Targets(NamedTuple):
    """Markers and sensors, sorted by node: their position in the node and weight."""

    start: np.ndarray  # (node + 1): markers of node i are start[i] to start[i + 1]
    column: np.ndarray  # (marker): its column in the take
    position: np.ndarray  # (marker, 3): in its node, in metres
    weight: np.ndarray  # (marker): one over the variance, 1 / m^2
    softness: np.ndarray  # (marker): 1 / scale^2 of Geman-McClure, 1 / m^2
    sensor_start: np.ndarray  # (node + 1)
    sensor_column: np.ndarray  # (sensor)
    sensor_position: np.ndarray  # (sensor, 3): in its node, in metres
    sensor_rotation: np.ndarray  # (sensor, 3, 3): R_node_sensor
    sensor_weight: np.ndarray  # (sensor, 2): of position 1 / m^2, of rotation 1 / rad^2
    sensor_softness: np.ndarray  # (sensor, 2): the same units


@no_type_check
@lean
def weight_targets(targets, points, sensors, origin, work, robustness):
    """Write the IRLS weight of every target; return the cost of all.

    Args:
        targets: The table of targets.
        points: Markers of the frame, NaN where unseen.
        sensors: Sensors of the frame, NaN where unseen.
        origin: Origin of the positions in `work`.
        work: Holds the pose; gets the weights, 0 where unseen.
        robustness: Factor of all softnesses: 0 for least squares, 1 for the full
            Geman-McClure loss, between them for graduated non-convexity.
    """
    R, c = work.R, work.c
    cost = 0.0
    for i in range(len(c)):
        for k in range(targets.start[i], targets.start[i + 1]):
            y = points[targets.column[k]]
            m = targets.position[k]
            square = 0.0
            for x in range(3):
                r = c[i, x] + R[i, x, 0] * m[0] + R[i, x, 1] * m[1] + R[i, x, 2] * m[2]
                r -= y[x] - origin[x]
                square += r * r
            if not square >= 0.0:
                work.marker_weight[k] = 0.0
                continue
            share = 1.0 / (1.0 + robustness * targets.softness[k] * square)
            work.marker_weight[k] = targets.weight[k] * share * share
            cost += targets.weight[k] * share * square
        for k in range(targets.sensor_start[i], targets.sensor_start[i + 1]):
            cost += _weight_sensor(targets, sensors, origin, work, robustness, i, k)
    return cost


@no_type_check
@lean
def _weight_sensor(targets, sensors, origin, work, robustness, i, k):
    """Write the IRLS weights of a sensor's position and rotation; return its cost."""
    T = sensors[targets.sensor_column[k]]
    R, c, m = work.R[i], work.c[i], targets.sensor_position[k]
    B = targets.sensor_rotation[k]
    distance, angle = 0.0, 0.0  # both squared
    for x in range(3):
        r = c[x] + R[x, 0] * m[0] + R[x, 1] * m[1] + R[x, 2] * m[2]
        r -= T[x, 3] - origin[x]
        distance += r * r
        for y in range(3):
            d = R[x, 0] * B[0, y] + R[x, 1] * B[1, y] + R[x, 2] * B[2, y] - T[x, y]
            # Three unit vectors rotated by t move by 2 t^2 in all.
            angle += 0.5 * d * d
    if not distance + angle >= 0.0:
        work.sensor_weight[k, 0] = work.sensor_weight[k, 1] = 0.0
        return 0.0
    cost = 0.0
    for x, square in ((0, distance), (1, angle)):
        share = 1.0 / (1.0 + robustness * targets.sensor_softness[k, x] * square)
        work.sensor_weight[k, x] = targets.sensor_weight[k, x] * share * share
        cost += targets.sensor_weight[k, x] * share * square
    return cost


@no_type_check
@lean
def sum_targets(targets, points, sensors, origin, work):
    """Write the sums of every node's targets: w, w m, w m m^T, w y, w m y^T.

    m is the position of a target in its node, y where it was seen. After this, a
    Gauss-Newton step does not depend on the number of targets.
    """
    for i in range(len(work.c)):
        sums = work.node_sums[i]
        fill(sums, 0.0)
        for k in range(targets.start[i], targets.start[i + 1]):
            w = work.marker_weight[k]
            if w > 0.0:
                y = points[targets.column[k]]
                _add_point(
                    sums,
                    w,
                    targets.position[k],
                    y[0] - origin[0],
                    y[1] - origin[1],
                    y[2] - origin[2],
                )
        for k in range(targets.sensor_start[i], targets.sensor_start[i + 1]):
            w, w_rotation = work.sensor_weight[k, 0], work.sensor_weight[k, 1]
            if w + w_rotation > 0.0:
                T = sensors[targets.sensor_column[k]]
                _add_point(
                    sums,
                    w,
                    targets.sensor_position[k],
                    T[0, 3] - origin[0],
                    T[1, 3] - origin[1],
                    T[2, 3] - origin[2],
                )
                _add_rotation(sums, 0.5 * w_rotation, targets.sensor_rotation[k], T)


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
def _add_rotation(sums, w, B, T):
    """Add the three unit vectors of a sensor's rotation, which have no position."""
    sums[4] += w
    sums[7] += w
    sums[9] += w
    for x in range(3):
        for y in range(3):
            dot = B[x, 0] * T[y, 0] + B[x, 1] * T[y, 1] + B[x, 2] * T[y, 2]
            sums[13 + 3 * x + y] += w * dot


@no_type_check
@lean
def total_weight_seen(targets, points, sensors):
    """Return the total weight of all positions seen, outliers included."""
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
def write_marker_residuals(tree, targets, points, root, q, residual):
    """Write the distance of every marker from its model position; NaN where unseen."""
    n = len(tree.parent)
    R, c = np.empty((n, 3, 3)), np.empty((n, 3))
    for f in range(len(q)):
        forward_kinematics(tree, root[f], q[f], R, c)
        for i in range(n):
            for k in range(targets.start[i], targets.start[i + 1]):
                y, m, square = points[f, targets.column[k]], targets.position[k], 0.0
                for x in range(3):
                    r = R[i, x, 0] * m[0] + R[i, x, 1] * m[1] + R[i, x, 2] * m[2]
                    r += c[i, x] - y[x]
                    square += r * r
                residual[f, k] = np.sqrt(square)
