"""Forces and torques on a simulated body at one moment; compiled.

Positions, rotations and velocities are the simulator's, of the current step. They come
as MuJoCo's arrays: `pos` and `mat` are positions and rotations (row by row) of bodies,
`com` their centres of mass, `force` forces and torques about these.
"""

from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from marey.articulated.kinematics_kernel import fill
from marey.articulated.limits_kernel import (
    hinge_angle,
    hinge_quaternion,
    rotation_difference,
    swing_twist_angles,
    swing_twist_axes,
    wrap_angle,
)
from marey.numerics.jit import lean
from marey.pose.physics.equilibrium_kernel import chord_to_rotation_vector


class SimulatedJoints(NamedTuple):
    """Addresses of the nodes in the simulator, and their stiffnesses."""

    body: np.ndarray
    position: np.ndarray  # address of the node's angle or quaternion
    speed: np.ndarray  # address of its velocity
    torque: np.ndarray  # by frame and node: stiffness to neutral, in N m / rad
    mobility: np.ndarray  # by node: inverse inertia of its rotation, in 1 / kg m^2
    limit_stiffness: float  # of a limit by inertia, in 1/s^2


@no_type_check
@lean
def add_force_at(force, i, x, y, z, at, centre):
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
def world_position(pos, mat, offset, out):
    """Write the position in the world of a point of a body."""
    for x in range(3):
        out[x] = pos[x] + mat[3 * x] * offset[0] + mat[3 * x + 1] * offset[1]
        out[x] += mat[3 * x + 2] * offset[2]


@no_type_check
@lean
def _write_midpoints(targets, node, body, hold_pairs, pos, mat, points):
    """Write the midpoints of holds between two bodies."""
    for p in range(len(hold_pairs)):
        y = points[hold_pairs[p, 2]]
        if np.isfinite(y[0]):
            for k in range(3):
                middle = 0.0
                for side in range(2):
                    t = hold_pairs[p, side]
                    b, m = body[node[t]], targets.position[t]
                    middle += pos[b, k]
                    for x in range(3):
                        middle += mat[b, 3 * k + x] * m[x]
                y[k] = 0.5 * middle


@no_type_check
@njit(cache=True)
def write_spring_forces(
    targets,
    node,
    sensor_node,
    body,
    hold_pairs,
    force_unit,
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

    `weights` are constant forces by node, which act on its points `centres`.
    """
    at, rotated = np.empty(3), np.empty((3, 3))
    for i in range(len(force)):
        fill(force[i], 0.0)
    for i in range(len(weights)):
        b, f = body[i], weights[i]
        world_position(pos[b], mat[b], centres[i], at)
        add_force_at(force, b, f[0], f[1], f[2], at, com[b])
    _write_midpoints(targets, node, body, hold_pairs, pos, mat, points)
    for t in range(len(node)):
        b, m, y = body[node[t]], targets.position[t], points[targets.column[t]]
        if not np.isfinite(y[0]):
            continue
        R, k = mat[b], force_unit * targets.weight[t]
        world_position(pos[b], R, m, at)
        x = (y[0] - at[0], y[1] - at[1], y[2] - at[2])
        add_force_at(force, b, k * x[0], k * x[1], k * x[2], at, com[b])  # Eq. 1
    for t in range(len(sensor_node)):
        b, m, T = body[sensor_node[t]], targets.sensor_position[t], sensors[t]
        if not np.isfinite(T[0, 0]):
            continue
        R, B = mat[b], targets.sensor_rotation[t]
        world_position(pos[b], R, m, at)
        for i in range(3):
            for j in range(3):
                rotated[i, j] = R[3 * i] * B[0, j] + R[3 * i + 1] * B[1, j]
                rotated[i, j] += R[3 * i + 2] * B[2, j]
        k = force_unit * targets.sensor_weight[t, 0]
        x = (T[0, 3] - at[0], T[1, 3] - at[1], T[2, 3] - at[2])
        add_force_at(force, b, k * x[0], k * x[1], k * x[2], at, com[b])
        k = 0.5 * force_unit * targets.sensor_weight[t, 1]
        for j in range(3):
            a0, a1, a2 = rotated[0, j], rotated[1, j], rotated[2, j]
            force[b, 3] += k * (a1 * T[2, j] - a2 * T[1, j])
            force[b, 4] += k * (a2 * T[0, j] - a0 * T[2, j])
            force[b, 5] += k * (a0 * T[1, j] - a1 * T[0, j])


@no_type_check
@lean
def _limit_torque(low, high, angle, stiffness, gain, load):
    """Return the torque of an angle's limits, and its gap.

    The load of each side is integrated, so that the limit does not give way under it as
    a spring alone would. The gap is the distance of the angle beyond its limits, or
    from a limit under load, in radians.
    """
    load[0] = max(load[0] + gain * stiffness * (low - angle), 0.0)
    load[1] = max(load[1] + gain * stiffness * (angle - high), 0.0)
    excess = min(angle - low, 0.0) + max(angle - high, 0.0)
    gap = abs(excess)
    if load[0] > 0.0:
        gap = max(gap, abs(angle - low))
    if load[1] > 0.0:
        gap = max(gap, abs(angle - high))
    return load[0] - load[1] - stiffness * excess, gap


@no_type_check
@lean
def _rotate_to_child(q, v):
    """Rotate a vector from the parent's frame into that of a ball joint."""
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
def _write_ball_limit_torque(
    tree, i, q, joints, gain, load, angles, A, identity, axis, out
):
    """Write the torque of a ball joint's limits, in its own frame.

    Returns the largest distance from a limit under load, in radians.
    """
    swing_twist_angles(tree.swing_frame[i], q, angles)
    swing_twist_axes(tree.swing_frame[i], angles, identity, A)
    M, gap = joints.mobility[i], 0.0
    fill(out, 0.0)
    for x in range(3):
        # The torque that does work on this angle alone: A t = (0, .., 1, .., 0).
        a, b, c = A[x], A[(x + 1) % 3], A[(x + 2) % 3]
        axis[0], axis[1] = b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2]
        axis[2] = b[0] * c[1] - b[1] * c[0]
        scale = a[0] * axis[0] + a[1] * axis[1] + a[2] * axis[2]
        _rotate_to_child(q, axis)
        mobility = 0.0
        for k in range(3):
            axis[k] /= scale
        for k in range(3):
            for m in range(3):
                mobility += axis[k] * M[k, m] * axis[m]
        low, high = tree.low[i, x], tree.high[i, x]
        stiffness = joints.limit_stiffness / mobility
        torque, excess = _limit_torque(low, high, angles[x], stiffness, gain, load[x])
        gap = max(gap, excess)
        for k in range(3):
            out[k] += torque * axis[k]
    return gap


@no_type_check
@njit(cache=True)
def write_joint_torques(tree, joints, frame, neutral, qpos, gain, load, out):
    """Write the torques of all joints: to the neutral posture, and of limits.

    Zordan2003, Eq. 2, without its damping: that is the simulator's, which takes the
    velocity at the end of a step (implicit), and so never overshoots. `load` is the
    load of the limits by node, angle and side; it persists from step to step. Returns
    the largest distance of an angle from a limit under load, in radians.
    """
    pull, angles, A = np.empty(3), np.empty(3), np.empty((3, 3))
    limit, axis, identity, gap = np.empty(3), np.empty(3), np.eye(3), 0.0
    fill(out, 0.0)
    for i in range(1, len(tree.parent)):
        at, to = joints.position[i], joints.speed[i]
        stiffness = joints.torque[frame, i]
        if tree.is_hinge[i]:
            angle = wrap_angle(qpos[at])
            error = wrap_angle(angle - hinge_angle(tree.axis[i], neutral[i]))
            out[to] = -stiffness * error  # Eq. 2
            if tree.has_limits[i]:
                low, high = tree.low[i, 0], tree.high[i, 0]
                k = joints.limit_stiffness / joints.mobility[i, 0, 0]
                torque, excess = _limit_torque(low, high, angle, k, gain, load[i, 0])
                out[to] += torque
                gap = max(gap, excess)
            continue
        q = qpos[at : at + 4]
        rotation_difference(neutral[i], q, pull)
        chord_to_rotation_vector(pull)
        for k in range(3):
            pull[k] *= stiffness  # Eq. 2
        _rotate_to_child(q, pull)
        fill(limit, 0.0)
        if tree.has_limits[i]:
            ball_gap = _write_ball_limit_torque(
                tree, i, q, joints, gain, load[i], angles, A, identity, axis, limit
            )
            gap = max(gap, ball_gap)
        for k in range(3):
            out[to + k] = pull[k] + limit[k]
    return gap


@no_type_check
@njit(cache=True)
def read_pose(tree, joints, qpos, root, q):
    """Write the simulator's pose as position of the root and quaternions of nodes."""
    for k in range(3):
        root[k] = qpos[k]
    for i in range(len(q)):
        at = joints.position[i]
        if tree.is_hinge[i]:
            hinge_quaternion(tree.axis[i], qpos[at], q[i])
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
        if tree.is_hinge[i]:
            qpos[at] = hinge_angle(tree.axis[i], q[i])
        else:
            for k in range(4):
                qpos[at + k] = q[i, k]
