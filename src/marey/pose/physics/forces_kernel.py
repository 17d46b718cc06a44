"""Forces on a body that springs pull to its markers, and its equilibrium; compiled.

Either the energy of all springs is minimised frame by frame (`minimise_frames`), or
their forces at one moment are written for a simulator. Positions, rotations and
velocities are then the simulator's, of the current step. They come as MuJoCo's arrays:
`pos` and `mat` are positions and rotations of bodies, `com` their centres of mass,
`force` forces and torques about these.
"""

# mypy: ignore-errors

from typing import NamedTuple

import numpy as np

from marey.articulated.contact_springs_kernel import add_gravity
from marey.articulated.kinematics_kernel import place_sums
from marey.articulated.levenberg_marquardt_kernel import (
    FrameScratch,
    FrameSettings,
    levenberg_marquardt,
)
from marey.articulated.limits_kernel import (
    hinge_angle,
    hinge_quaternion,
    rotation_vector,
    swing_twist_angles,
    swing_twist_axes,
    torque_axis,
    wrap_angle,
)
from marey.articulated.targets_kernel import sum_targets, weight_targets
from marey.numerics.arrays.reference_kernel import by_reference
from marey.numerics.jit import lean, njit
from marey.numerics.vector3_kernel import (
    add_values,
    add_vector,
    cross,
    dot,
    fill,
    place,
    rotate,
    set_values,
    set_vector,
)

# Share of the energy; a step that is predicted to lower it by less is the last. Raising
# it stops earlier. Chosen by hand.
MIN_RELATIVE_DECREASE = 1e-12

IDENTITY = np.eye(3)


@by_reference
class SimulatedJoints(NamedTuple):
    """Addresses of the nodes in the simulator, and their stiffnesses."""

    body: np.ndarray
    position: np.ndarray  # address of the node's angle or quaternion
    speed: np.ndarray  # address of its velocity
    torque: np.ndarray  # by frame and node: stiffness to neutral, in N m / rad
    mobility: np.ndarray  # by node: inverse inertia of its rotation, in 1 / kg m^2
    limit_stiffness: float  # of a limit by inertia, in 1/s^2


@by_reference
class SoleForces(NamedTuple):
    """Soles in the simulator, and their forces, which persist from step to step."""

    body: np.ndarray
    offset: np.ndarray
    stiffness: np.ndarray  # of the ground under each, in N/m
    normal: np.ndarray
    damping_time: float  # damping by stiffness, in seconds
    friction: float  # Coulomb coefficient
    normal_force: np.ndarray  # integral part of the force, in N
    drag: np.ndarray  # the same along the ground
    last: np.ndarray  # position a step ago; NaN at first
    anchor: np.ndarray  # position at which each sole sticks; NaN where it does not


@njit(cache=True)
def minimise_frames(problem, recording, springs, prior, max_steps, out):
    """Move the poses of all frames to the least energy.

    Args:
        problem: The kinematic tree, the table of targets and a `PoseWorkspace`.
        recording: Points that springs lead to, in metres, and sensors.
        springs: `ContactSprings`.
        prior: The neutral posture and its weight, by frame.
        max_steps: Largest number of steps of a frame.
        out: Gets by frame: position of the root; quaternions; steps, and 1 where these
            were not enough.
    """
    root, q, info = out
    zero, new = np.zeros(3), (np.empty(3), np.empty((q.shape[1], 4)))
    for f in range(len(q)):
        origin, here = root[f].copy(), np.zeros(3)
        scratch = FrameScratch(origin, (here, q[f]), (zero, prior[0][f]), new)
        settings = FrameSettings(prior[1][f], False, MIN_RELATIVE_DECREASE, True)
        seen = (recording[0][f], recording[1][f])
        _, steps, converged = levenberg_marquardt(
            problem, seen, scratch, settings, 0.0, max_steps, springs, f
        )
        info[f, 0], info[f, 1] = steps, 0.0 if converged else 1.0
        add_vector(root[f], 1.0, here)


@njit(cache=True)
def sum_springs(problem, points, sensors, springs):
    """Write the sums of a frame's springs by node into `work.node_sums`.

    They do not depend on the pose, and so serve all steps of a frame.
    """
    _, targets, work = problem
    zero = np.zeros(3)
    weight_targets(targets, points, sensors, zero, work, 0.0)
    sum_targets(targets, points, sensors, zero, work)
    add_gravity(springs, work)


@lean
def _add_force_at(force, f, at, centre):
    """Add a force at a point to a body, with its torque about the centre of mass."""
    lever = at[0] - centre[0], at[1] - centre[1], at[2] - centre[2]
    add_vector(force, 1.0, f)
    add_vector(force[3:], 1.0, cross(lever, f))


@njit(cache=True)
def write_spring_forces(node_sums, body, holds, force_unit, pos, mat, com, force):
    """Write force and torque of all springs on every body (Zordan2003, Eq. 1).

    `holds` are holds between two bodies: nodes and offsets by hold and side, and the
    weight of each, 0 where it is off.
    """
    sums = np.empty(16)
    for b in range(len(force)):
        fill(force[b], 0.0)
    for i in range(len(node_sums)):
        b = body[i]
        place_sums(mat[b], pos[b], node_sums[i], sums)
        add_values(force[b], force_unit, sums[10:])  # Eq. 1
        add_vector(force[b, 3:], -force_unit, cross(com[b], sums[10:]))
    node, offset, weight = holds
    for h in range(len(weight)):
        a, b = body[node[h, 0]], body[node[h, 1]]
        x, y = place(mat[a], pos[a], offset[h, 0]), place(mat[b], pos[b], offset[h, 1])
        k = force_unit * weight[h]
        f = k * (y[0] - x[0]), k * (y[1] - x[1]), k * (y[2] - x[2])
        _add_force_at(force[a], f, x, com[a])
        _add_force_at(force[b], (-f[0], -f[1], -f[2]), y, com[b])


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


@lean
def _rotate_to_child(q, v):
    """Return a vector of the parent's frame in that of a ball joint."""
    u = -q[1], -q[2], -q[3]
    x, y, z = cross(u, v)
    t = 2.0 * x, 2.0 * y, 2.0 * z
    x, y, z = cross(u, t)
    return v[0] + q[0] * t[0] + x, v[1] + q[0] * t[1] + y, v[2] + q[0] * t[2] + z


@lean
def _add_ball_limit_torque(tree, i, q, joints, gain, load, angles, A, out):
    """Add the torque of a ball joint's limits, in its own frame.

    Returns the largest distance from a limit under load, in radians.
    """
    swing_twist_angles(tree.swing_frame[i], q, angles)
    swing_twist_axes(tree.swing_frame[i], angles, IDENTITY, A)
    gap = 0.0
    for x in range(3):
        axis = _rotate_to_child(q, torque_axis(A, x))
        mobility = dot(axis, rotate(joints.mobility[i], axis))
        if not mobility > 0.0:
            continue
        torque, excess = _limit_torque(
            tree.low[i, x],
            tree.high[i, x],
            angles[x],
            joints.limit_stiffness / mobility,
            gain,
            load[x],
        )
        gap = max(gap, excess)
        add_vector(out, torque, axis)
    return gap


@njit(cache=True)
def write_joint_torques(tree, joints, frame, neutral, qpos, gain, load, out):
    """Write the torques of all joints: to the neutral posture, and of limits.

    Zordan2003, Eq. 2, without its damping: that is the simulator's, which takes the
    velocity at the end of a step (implicit), and so never overshoots. `load` is the
    load of the limits by node, angle and side; it persists from step to step. Returns
    the largest distance of an angle from a limit under load, in radians.
    """
    pull, angles, A, gap = np.empty(3), np.empty(3), np.empty((3, 3)), 0.0
    fill(out, 0.0)
    for i in range(1, len(tree.parent)):
        at, torque = joints.position[i], out[joints.speed[i] :]
        stiffness, excess = joints.torque[frame, i], 0.0
        if tree.is_hinge[i]:
            angle = wrap_angle(qpos[at])
            error = wrap_angle(angle - hinge_angle(tree.axis[i], neutral[i]))
            torque[0] = -stiffness * error  # Eq. 2
            if tree.has_limits[i]:
                low, high = tree.low[i, 0], tree.high[i, 0]
                k = joints.limit_stiffness / joints.mobility[i, 0, 0]
                limit, excess = _limit_torque(low, high, angle, k, gain, load[i, 0])
                torque[0] += limit
        else:
            q = qpos[at : at + 4]
            rotation_vector(neutral[i], q, pull)
            add_vector(torque, stiffness, _rotate_to_child(q, pull))  # Eq. 2
            if tree.has_limits[i]:
                excess = _add_ball_limit_torque(
                    tree, i, q, joints, gain, load[i], angles, A, torque
                )
        gap = max(gap, excess)
    return gap


@njit(cache=True)
def add_ground_forces(
    soles, ground_height, is_planted, gain, seconds, pos, mat, com, force
):
    """Add the force of the ground on every sole (Zordan2003, Sec. 3).

    The normal force F_z is that of a unilateral spring and damper, with an integral
    part so that nothing stays below the ground; it never pulls. Along the ground a
    planted sole sticks to the position where it came down, by a spring of at most
    mu F_z (Coulomb friction). Beyond that it slides, and its anchor moves with it.
    A force against the direction of the velocity, as printed, would change its sign
    with every oscillation.

    Returns the largest distance of a sole below the ground, or above it under load.
    """
    tangent, velocity, gap = np.empty(3), np.zeros(3), 0.0
    n = soles.normal
    for s in range(len(soles.body)):
        b, k, last = soles.body[s], soles.stiffness[s], soles.last[s]
        at = place(mat[b], pos[b], soles.offset[s])
        depth = ground_height[s] - dot(n, at)
        if not np.isnan(last[0]):
            for x in range(3):
                velocity[x] = (at[x] - last[x]) / seconds
        set_vector(last, at)
        soles.normal_force[s] = max(soles.normal_force[s] + gain * k * depth, 0.0)
        press = soles.normal_force[s] + k * max(depth, 0.0)
        if press > 0.0:
            press = max(press - soles.damping_time * k * dot(n, velocity), 0.0)
        gap = max(gap, depth)
        if soles.normal_force[s] > 0.0:
            gap = max(gap, abs(depth))
        f = press * n[0], press * n[1], press * n[2]
        _add_force_at(force[b], f, at, com[b])
        if not is_planted[s] or soles.friction == np.inf:
            soles.anchor[s] = np.nan
            soles.drag[s] = 0.0
            continue
        if np.isnan(soles.anchor[s, 0]):
            set_vector(soles.anchor[s], at)
        _write_friction(soles, s, at, velocity, soles.friction * press, gain, tangent)
        _add_force_at(force[b], tangent, at, com[b])
    return gap


@lean
def _write_friction(soles, s, at, velocity, limit, gain, out):
    """Write the friction of a sole, at most `limit` newtons."""
    n, drag, anchor = soles.normal, soles.drag[s], soles.anchor[s]
    k, along, rising = soles.stiffness[s], dot(n, anchor) - dot(n, at), dot(n, velocity)
    for x in range(3):
        gap = anchor[x] - at[x] - along * n[x]
        drag[x] += gain * k * gap
        slip_speed = velocity[x] - rising * n[x]
        out[x] = drag[x] + k * gap - soles.damping_time * k * slip_speed
    size = np.sqrt(dot(out, out))
    if size > limit:
        for x in range(3):
            out[x] *= limit / size
            drag[x] = out[x]
            if limit > 0.0:
                anchor[x] = at[x]


@njit(cache=True)
def read_pose(tree, joints, qpos, root, q):
    """Write the simulator's pose as position of the root and quaternions of nodes."""
    set_vector(root, qpos[:3])
    for i in range(len(q)):
        at = joints.position[i]
        if tree.is_hinge[i]:
            hinge_quaternion(tree.axis[i], qpos[at], q[i])
        else:
            set_values(q[i], qpos[at : at + 4])


@njit(cache=True)
def write_pose(tree, joints, root, q, qpos):
    """Write a pose into the simulator: the inverse of `read_pose`."""
    set_vector(qpos, root)
    for i in range(len(q)):
        at = joints.position[i]
        if tree.is_hinge[i]:
            qpos[at] = hinge_angle(tree.axis[i], q[i])
        else:
            set_values(qpos[at:], q[i])
