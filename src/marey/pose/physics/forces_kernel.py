"""Forces and torques on a simulated figure at one moment, compiled; see `fit.py`.

Positions, rotations and velocities are the simulator's own, fresh.
"""

from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from marey.articulated.kinematics_kernel import fill
from marey.articulated.limits_kernel import (
    ball_angles,
    ball_axes,
    difference,
    hinge_angle,
    hinge_turn,
    wrapped,
)
from marey.numerics.jit import lean
from marey.pose.physics.equilibrium_kernel import to_log


class Joints(NamedTuple):
    """Where the simulator keeps the nodes, and their stiffness."""

    body: np.ndarray
    position: np.ndarray  # address of the node's angle or quaternion
    speed: np.ndarray  # address of its velocity
    torque: np.ndarray  # by frame and node: N m / rad to the neutral posture
    ease: np.ndarray  # by node: its turns' acceleration by torques, in 1 / kg m^2
    stop: float  # stiffness of a stop at a limit, by inertia, in 1/s^2


@no_type_check
@lean
def pull_at(force, i, x, y, z, at, centre):
    """Add a force at a point to a body, with its torque about the centre of mass."""
    out, a, b, c = force[i], at[0] - centre[0], at[1] - centre[1], at[2] - centre[2]
    out[0] += x
    out[1] += y
    out[2] += z
    out[3] += b * z - c * y
    out[4] += c * x - a * z
    out[5] += a * y - b * x


@no_type_check
@lean
def spot_of(pos, mat, place, out):
    """Write where a place on a body is in the world."""
    for x in range(3):
        out[x] = pos[x] + mat[3 * x] * place[0] + mat[3 * x + 1] * place[1]
        out[x] += mat[3 * x + 2] * place[2]


@no_type_check
@lean
def _middles(targets, node, body, pairs, pos, mat, points):
    """Write the middles of bodies that hold each other."""
    for p in range(len(pairs)):
        y = points[pairs[p, 2]]
        if np.isfinite(y[0]):
            for k in range(3):
                middle = 0.0
                for side in range(2):
                    t = pairs[p, side]
                    b, m = body[node[t]], targets.place[t]
                    middle += pos[b, k]
                    for x in range(3):
                        middle += mat[b, 3 * k + x] * m[x]
                y[k] = 0.5 * middle


@no_type_check
@njit(cache=True)
def springs(
    targets,
    node,
    sensor_node,
    body,
    pairs,
    unit,
    weights,
    centres,
    points,
    sensors,
    pos,
    mat,
    com,
    force,
):
    """Write force and torque of all springs on every body (Zordan2003, Eq. 1).

    And `weights`, constant forces by node on the points `centres` of it.
    """
    at, turned = np.empty(3), np.empty((3, 3))
    for i in range(len(force)):
        fill(force[i], 0.0)
    for i in range(len(weights)):
        b, f = body[i], weights[i]
        spot_of(pos[b], mat[b], centres[i], at)
        pull_at(force, b, f[0], f[1], f[2], at, com[b])
    _middles(targets, node, body, pairs, pos, mat, points)
    for t in range(len(node)):
        b, m, y = body[node[t]], targets.place[t], points[targets.column[t]]
        if not np.isfinite(y[0]):
            continue
        R, k = mat[b], unit * targets.weight[t]
        spot_of(pos[b], R, m, at)
        away = (y[0] - at[0], y[1] - at[1], y[2] - at[2])
        pull_at(force, b, k * away[0], k * away[1], k * away[2], at, com[b])  # Eq. 1
    for t in range(len(sensor_node)):
        b, m, T = body[sensor_node[t]], targets.sensor_place[t], sensors[t]
        if not np.isfinite(T[0, 0]):
            continue
        R, B = mat[b], targets.sensor_turn[t]
        spot_of(pos[b], R, m, at)
        for x in range(3):
            for y in range(3):
                turned[x, y] = R[3 * x] * B[0, y] + R[3 * x + 1] * B[1, y]
                turned[x, y] += R[3 * x + 2] * B[2, y]
        k = unit * targets.sensor_weight[t, 0]
        away = (T[0, 3] - at[0], T[1, 3] - at[1], T[2, 3] - at[2])
        pull_at(force, b, k * away[0], k * away[1], k * away[2], at, com[b])
        k = 0.5 * unit * targets.sensor_weight[t, 1]
        for y in range(3):
            a0, a1, a2 = turned[0, y], turned[1, y], turned[2, y]
            force[b, 3] += k * (a1 * T[2, y] - a2 * T[1, y])
            force[b, 4] += k * (a2 * T[0, y] - a0 * T[2, y])
            force[b, 5] += k * (a0 * T[1, y] - a1 * T[0, y])


@no_type_check
@lean
def _stop(low, high, angle, stiff, gain, held):
    """Return the torque of a stop, against an angle beyond its limits.

    What bears on the stop is held more and more: springs alone would give way.
    """
    held[0] = max(held[0] + gain * stiff * (low - angle), 0.0)
    held[1] = max(held[1] + gain * stiff * (angle - high), 0.0)
    beyond = min(angle - low, 0.0) + max(angle - high, 0.0)
    return held[0] - held[1] - stiff * beyond


@no_type_check
@lean
def _gap(low, high, angle, held):
    """Return how far an angle is from a stop that bears something, or beyond it."""
    gap = max(low - angle, angle - high, 0.0)
    if held[0] > 0.0:
        gap = max(gap, abs(angle - low))
    if held[1] > 0.0:
        gap = max(gap, abs(angle - high))
    return gap


@no_type_check
@lean
def _turn_back(q, v):
    """Turn a vector of the parent into the frame of a ball."""
    w, x, y, z = q[0], -q[1], -q[2], -q[3]
    a = 2.0 * (y * v[2] - z * v[1])
    b = 2.0 * (z * v[0] - x * v[2])
    c = 2.0 * (x * v[1] - y * v[0])
    v0 = v[0] + w * a + y * c - z * b
    v1 = v[1] + w * b + z * a - x * c
    v2 = v[2] + w * c + x * b - y * a
    v[0], v[1], v[2] = v0, v1, v2


@no_type_check
@lean
def _stop_ball(tree, i, q, joints, gain, held, angles, A, one, way, out):
    """Write what turns a ball back within its limits, in its own frame.

    Returns how far it is from the stops that bear something.
    """
    ball_angles(tree.frame[i], q, angles)
    ball_axes(tree.frame[i], angles, one, A)
    E, gap = joints.ease[i], 0.0
    fill(out, 0.0)
    for x in range(3):
        # The torque that does the work of this angle's alone: A t = (0, .., 1, .., 0).
        a, b, c = A[x], A[(x + 1) % 3], A[(x + 2) % 3]
        way[0], way[1] = b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2]
        way[2] = b[0] * c[1] - b[1] * c[0]
        scale = a[0] * way[0] + a[1] * way[1] + a[2] * way[2]
        _turn_back(q, way)
        ease = 0.0
        for k in range(3):
            way[k] /= scale
        for k in range(3):
            for m in range(3):
                ease += way[k] * E[k, m] * way[m]
        low, high = tree.low[i, x], tree.high[i, x]
        torque = _stop(low, high, angles[x], joints.stop / ease, gain, held[x])
        gap = max(gap, _gap(low, high, angles[x], held[x]))
        for k in range(3):
            out[k] += torque * way[k]
    return gap


@no_type_check
@njit(cache=True)
def torques(tree, joints, frame, neutral, qpos, gain, held, out):
    """Write the torques of all joints: to neutral, and within limits.

    Zordan2003, Eq. 2, without its damping, which is the simulator's own: that counts
    speeds at the end of a step, and so never overshoots. `held` is what the stops
    bear, by node, angle and side, and goes on from step to step. Returns how far any
    angle is from a stop that bears something, in radians.
    """
    pull, angles, A = np.empty(3), np.empty(3), np.empty((3, 3))
    stop, way, one, gap = np.empty(3), np.empty(3), np.eye(3), 0.0
    fill(out, 0.0)
    for i in range(1, len(tree.parent)):
        at, to = joints.position[i], joints.speed[i]
        stiff = joints.torque[frame, i]
        if tree.hinge[i]:
            angle = wrapped(qpos[at])
            bent = wrapped(angle - hinge_angle(tree.axis[i], neutral[i]))
            out[to] = -stiff * bent  # Eq. 2
            if tree.limited[i]:
                low, high = tree.low[i, 0], tree.high[i, 0]
                hard = joints.stop / joints.ease[i, 0, 0]
                out[to] += _stop(low, high, angle, hard, gain, held[i, 0])
                gap = max(gap, _gap(low, high, angle, held[i, 0]))
            continue
        q = qpos[at : at + 4]
        difference(neutral[i], q, pull)
        to_log(pull)
        for k in range(3):
            pull[k] *= stiff  # Eq. 2
        _turn_back(q, pull)
        fill(stop, 0.0)
        if tree.limited[i]:
            gap = max(
                gap,
                _stop_ball(
                    tree, i, q, joints, gain, held[i], angles, A, one, way, stop
                ),
            )
        for k in range(3):
            out[to + k] = pull[k] + stop[k]
    return gap


@no_type_check
@njit(cache=True)
def read_pose(tree, joints, qpos, root, q):
    """Write the posture of the simulator as the place of the root and quaternions."""
    for k in range(3):
        root[k] = qpos[k]
    for i in range(len(q)):
        at = joints.position[i]
        if tree.hinge[i]:
            hinge_turn(tree.axis[i], qpos[at], q[i])
        else:
            for k in range(4):
                q[i, k] = qpos[at + k]


@no_type_check
@njit(cache=True)
def write_pose(tree, joints, root, q, qpos):
    """Write a pose into the simulator: the inverse of `read_pose`."""
    for k in range(3):
        qpos[k] = root[k]
    for i in range(len(q)):
        at = joints.position[i]
        if tree.hinge[i]:
            qpos[at] = hinge_angle(tree.axis[i], q[i])
        else:
            for k in range(4):
                qpos[at + k] = q[i, k]
