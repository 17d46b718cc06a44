r"""Residuals, robust weights and sums of the targets of one frame, compiled.

A target is a marker, the position of a sensor or the rotation of a sensor. Its residual
r with weight w enters the cost by the Geman-McClure loss

.. math:: \rho(r) = \frac{w r^2}{1 + s r^2},

with softness s = 1 / scale^2; s = 0 is least squares. Gauss-Newton uses the weight
:math:`w / (1 + s r^2)^2` of the last pose: iteratively reweighted least squares (IRLS).
The weight redescends, so that a gross outlier has almost no influence.
"""

# mypy: ignore-errors

from typing import NamedTuple

import numpy as np

from marey.articulated.kinematics_kernel import forward_kinematics
from marey.numerics.arrays.new_kernel import empty, zeros
from marey.numerics.arrays.reference_kernel import by_reference
from marey.numerics.jit import lean, njit
from marey.numerics.vector3_kernel import add_vector, dot, fill, place


@by_reference
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
    n_vectors: int  # unit vectors of a sensor whose residuals measure its rotation


@lean
def confidence_of(point):
    """Return the factor of a marker's weight in a frame: its confidence, else 1."""
    return point[3] if len(point) > 3 else 1.0


@lean
def weight_targets(targets, points, sensors, origin, work, robustness):
    """Write the IRLS weight of every target; return the cost of all.

    Args:
        targets: The table of targets.
        points: Markers of the frame, NaN where unseen, and their confidences.
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
            square = _square_residual(
                R[i], c[i], targets.position[k], points[targets.column[k]], origin
            )
            if not square >= 0.0:
                work.marker_weight[k] = 0.0
                continue
            share = 1.0 / (1.0 + robustness * targets.softness[k] * square)
            weight = targets.weight[k] * confidence_of(points[targets.column[k]])
            work.marker_weight[k] = weight * share * share
            cost += weight * share * square
        for k in range(targets.sensor_start[i], targets.sensor_start[i + 1]):
            cost += _weight_sensor(targets, sensors, origin, work, robustness, i, k)
    return cost


@lean
def write_target_costs(targets, points, sensors, origin, work, cost):
    """Write the cost of the targets of every node, by the full Geman-McClure loss."""
    R, c = work.R, work.c
    for i in range(len(c)):
        cost[i] = 0.0
        for k in range(targets.start[i], targets.start[i + 1]):
            square = _square_residual(
                R[i], c[i], targets.position[k], points[targets.column[k]], origin
            )
            if square >= 0.0:
                share = 1.0 / (1.0 + targets.softness[k] * square)
                weight = targets.weight[k] * confidence_of(points[targets.column[k]])
                cost[i] += weight * share * square
        for k in range(targets.sensor_start[i], targets.sensor_start[i + 1]):
            cost[i] += _weight_sensor(targets, sensors, origin, work, 1.0, i, k)


@lean
def _square_residual(R, c, m, y, origin):
    """Return the squared distance of a point of a node from where it was seen."""
    a, b, d = place(R, c, m)
    a, b, d = a - (y[0] - origin[0]), b - (y[1] - origin[1]), d - (y[2] - origin[2])
    return a * a + b * b + d * d


@lean
def _weight_sensor(targets, sensors, origin, work, robustness, i, k):
    """Write the IRLS weights of a sensor's position and rotation; return its cost."""
    T, B, R = sensors[targets.sensor_column[k]], targets.sensor_rotation[k], work.R[i]
    distance = _square_residual(
        R, work.c[i], targets.sensor_position[k], T[:, 3], origin
    )
    angle = 0.0  # squared: three unit vectors rotated by t move by 2 t^2 in all
    for x in range(3):
        for y in range(targets.n_vectors):
            d = dot(R[x], B[:, y]) - T[x, y]
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
                _add_point(
                    sums, w, targets.position[k], points[targets.column[k]], origin
                )
        for k in range(targets.sensor_start[i], targets.sensor_start[i + 1]):
            w, w_rotation = work.sensor_weight[k, 0], work.sensor_weight[k, 1]
            if w + w_rotation > 0.0:
                T, B = sensors[targets.sensor_column[k]], targets.sensor_rotation[k]
                _add_point(sums, w, targets.sensor_position[k], T[:, 3], origin)
                # Unit vectors have a direction and no position.
                for x in range(targets.n_vectors):
                    y = T[0, x], T[1, x], T[2, x]
                    _add_moments(sums, 0.5 * w_rotation, B[:, x], y)


@lean
def _add_point(sums, w, m, seen, origin):
    """Add the sums of a target at m in its node that was seen in the world."""
    y = seen[0] - origin[0], seen[1] - origin[1], seen[2] - origin[2]
    sums[0] += w
    add_vector(sums[1:], w, m)
    add_vector(sums[10:], w, y)
    _add_moments(sums, w, m, y)


@lean
def _add_moments(sums, w, m, y):
    """Add the second moments w m m^T and w m y^T."""
    m0, m1, m2 = w * m[0], w * m[1], w * m[2]
    sums[4] += m0 * m[0]
    sums[5] += m0 * m[1]
    sums[6] += m0 * m[2]
    sums[7] += m1 * m[1]
    sums[8] += m1 * m[2]
    sums[9] += m2 * m[2]
    add_vector(sums[13:], m0, y)
    add_vector(sums[16:], m1, y)
    add_vector(sums[19:], m2, y)


@lean
def total_weight_seen(targets, points, sensors):
    """Return the total weight of all positions seen, outliers included."""
    total = 0.0
    for k in range(len(targets.column)):
        point = points[targets.column[k]]
        if np.isfinite(point[0]):
            total += targets.weight[k] * confidence_of(point)
    for k in range(len(targets.sensor_column)):
        if np.isfinite(sensors[targets.sensor_column[k], 0, 0]):
            total += targets.sensor_weight[k, 0]
    return total


@njit(cache=True)
def write_marker_residuals(tree, targets, points, root, q, residual):
    """Write the distance of every marker from its model position; NaN where unseen."""
    n = len(tree.parent)
    R, c, zero = empty((n, 3, 3)), empty((n, 3)), zeros(3)
    for f in range(len(q)):
        forward_kinematics(tree, root[f], q[f], R, c)
        for i in range(n):
            for k in range(targets.start[i], targets.start[i + 1]):
                square = _square_residual(
                    R[i], c[i], targets.position[k], points[f, targets.column[k]], zero
                )
                residual[f, k] = np.sqrt(square)
