"""Dynamic simulation of a spring system until it comes to rest (Zordan2003)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from marey.articulated.targets import node_of_target, split_order
from marey.numerics import Array, Float
from marey.pose.physics.equilibrium import Rest, contact_springs
from marey.pose.physics.mujoco_model import (
    MAX_FREQUENCY,
    TIME_STEP_S,
    MujocoModel,
    build_mujoco_model,
    import_mujoco,
    inertia_matrix,
    sole_stiffness,
)
from marey.pose.physics.springs import SpringSystem
from marey.pose.trace import PoseTrace

if TYPE_CHECKING:
    from marey.pose.physics.forces_kernel import SoleForces


SLOW_STEPS_AT_REST = 4
"""Steps in a row that must be slow at rest: an oscillation is slow where it reverses.
Raising it takes more steps per frame. Chosen by hand."""

FULL_DAMPING_STEPS = 250
"""Steps after which damping is reduced to what the torques to the neutral posture can
move: joints that only these torques rotate would creep. Raising it makes such frames
slower. Chosen by hand."""

REDUCED_DAMPING_RATIO = 5.0
"""Largest reduction of damping after `FULL_DAMPING_STEPS`. Raising it allows weaker
damping, with which weak torques never come to rest. Chosen by hand."""

MAX_SPEED = 3.0
"""Largest speed of any part, in m/s: a body whose marker reappears far away would
otherwise pass through its limits. Raising it may make limits unstable. Chosen by
hand."""

LOAD_GAIN = 0.5
"""Rate at which limits and ground take over their load, as a share of the damping rate.
Raising it converges faster; from 1 on it may oscillate forever. Chosen by hand."""

RETRY_STEP_RATIO = 3.0
"""Reduction of the time step in the second attempt at a frame. Raising it is more
stable and slower; with 2, a body may fly off without a warning of the simulator. Chosen
by hand."""


def simulate_to_rest(system: SpringSystem) -> Rest:
    """Return the poses at which a simulation comes to rest.

    Frames are visited from the first good one onward, then backwards from there, each
    from the pose of the last.

    Raises:
        MissingExtraError: If MuJoCo is not installed.
    """
    order = system.tracker.frame_order((system.points, system.sensors))
    q, root = system.initial.q.copy(), system.initial.root.copy()
    info = np.zeros((len(q), 2))
    with _collect_warnings() as warnings:
        simulation = Simulation(system, warnings)
        for frames in split_order(order):
            simulation.set_pose(root[order[0]], q[order[0]])
            for frame in frames:
                info[frame] = simulation.run_frame(int(frame))
                simulation.read_pose(root[frame], q[frame])
    return PoseTrace(q, root, system.initial.info).continuous(), info


@contextmanager
def _collect_warnings() -> Iterator[list[str]]:
    """Collect the simulator's warnings, which it would otherwise write to a file."""
    mujoco, found = import_mujoco(), list[str]()
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(found.append)
    try:
        yield found
    finally:
        mujoco.set_mju_user_warning(before)


def _unloaded_soles(system: SpringSystem, body: MujocoModel) -> "SoleForces":
    """Return the soles in the simulator, without load."""
    from marey.pose.physics.forces_kernel import SoleForces  # numba is slow to import

    soles = system.soles
    n = len(soles.node)
    return SoleForces(
        body=body.joints.body[soles.node],
        offset=soles.offset,
        stiffness=sole_stiffness(system),
        normal=soles.normal,
        damping_time=1.0 / MAX_FREQUENCY,
        friction=system.options.friction,
        normal_force=np.zeros(n),
        drag=np.zeros((n, 3)),
        last=np.full((n, 3), np.nan),
        anchor=np.full((n, 3), np.nan),
    )


class Simulation:
    """A simulated body, and the forces on it."""

    def __init__(self, system: SpringSystem, warnings: Sequence[str] = ()) -> None:
        # numba is slow to import
        from marey.articulated.kinematics_kernel import make_workspace
        from marey.pose.physics import forces_kernel

        tree, targets, pairs = system.nodes.tree, system.targets, system.hold_pairs
        self.system, self.warnings, self.forces = system, warnings, forces_kernel
        self.mujoco = import_mujoco()
        self.body: MujocoModel = build_mujoco_model(system)
        work = make_workspace(tree, len(targets.column), len(targets.sensor_column))
        self.problem = tree, targets, work
        self.springs, self.summed_frame = contact_springs(system), -1
        self.hold_ends = (
            node_of_target(targets.start)[pairs[:, :2]],
            targets.position[pairs[:, :2]],
        )
        self.limit_load = np.zeros((len(tree.parent), 3, 2))
        self.soles = _unloaded_soles(system, self.body)
        self.drag, self.points = np.zeros(self.body.model.nv), system.free_points

    def set_pose(self, root: Float[Array, " 3"], q: Float[Array, "node 4"]) -> None:
        """Move the body to a pose."""
        tree, body = self.system.nodes.tree, self.body
        self.forces.write_pose(tree, body.joints, root, q, body.data.qpos)

    def read_pose(self, root: Float[Array, " 3"], q: Float[Array, "node 4"]) -> None:
        """Write the pose of the body into arrays."""
        tree, body = self.system.nodes.tree, self.body
        self.forces.read_pose(tree, body.joints, body.data.qpos, root, q)

    def run_frame(self, frame: int) -> tuple[int, bool]:
        """Run a frame until rest; return the steps taken, and whether that failed.

        A frame that is not at rest after half of the steps usually oscillates between
        limits: it starts again with shorter steps. A body on which the simulation
        diverges keeps its last pose.
        """
        max_steps, start = self.system.options.steps, self.body.data.qpos.copy()
        n_warnings, soles = len(self.warnings), self.soles
        loads = soles.normal_force.copy(), soles.drag.copy(), soles.anchor.copy()
        first = max_steps - max_steps // 2
        steps, is_at_rest = self._run(frame, TIME_STEP_S, first)
        if is_at_rest or max_steps == first:
            return steps, not is_at_rest
        self.body.data.qpos[:] = start
        self.limit_load[:] = 0.0
        soles.normal_force[:], soles.drag[:], soles.anchor[:] = loads
        seconds = TIME_STEP_S / RETRY_STEP_RATIO
        steps, is_at_rest = self._run(frame, seconds, max_steps - first)
        if len(self.warnings) > n_warnings and not is_at_rest:
            self.body.data.qpos[:] = start
        return first + steps, not is_at_rest

    def _run(self, frame: int, seconds: float, max_steps: int) -> tuple[int, bool]:
        """Run steps of some seconds; return their number, and whether at rest.

        Forces are those of the current pose: with those of the step before, springs of
        this stiffness would be unstable.
        """
        step1, step2 = self.mujoco.mj_step1, self.mujoco.mj_step2
        model, data = self.body.model, self.body.data
        model.opt.timestep, data.qvel[:] = seconds, 0.0
        self.soles.last[:] = np.nan
        self._update_mobility()
        n_slow, n_warnings = 0, len(self.warnings)
        damping = self.system.options.damping
        for step in range(max_steps):
            step1(model, data)
            if step == FULL_DAMPING_STEPS:
                damping = min(damping, self._reduced_damping())
            gap = self.apply_forces(frame, damping)
            step2(model, data)
            if len(self.warnings) > n_warnings:
                return step + 1, False
            speed = np.abs(data.qvel * self.body.reach_m).max()
            if speed > MAX_SPEED:
                data.qvel *= MAX_SPEED / speed
            # A gap is closed that the speed of rest would close within a second.
            is_slow = max(speed, gap) < self.system.options.rest_speed
            n_slow = n_slow + 1 if is_slow else 0
            if n_slow == SLOW_STEPS_AT_REST:
                return step + 1, True
        return max_steps, False

    def _reduced_damping(self) -> float:
        """Return the damping rate of frames that take long, in 1/s.

        The torques to the neutral posture then have a damping ratio of 0.7 or more.
        """
        options = self.system.options
        critical = float(np.sqrt(2.0 * options.torque))
        return max(critical, options.damping / REDUCED_DAMPING_RATIO)

    def _update_mobility(self) -> None:
        """Set the inverse inertia of joints with limits, which scales their torques."""
        tree, joints = self.system.nodes.tree, self.body.joints
        if not tree.has_limits.any():
            return
        mobility = np.linalg.inv(inertia_matrix(self.body.model, self.body.data))
        for node in np.flatnonzero(tree.has_limits):
            size = 1 if tree.is_hinge[node] else joints.mobility.shape[-1]
            k = slice(joints.speed[node], joints.speed[node] + size)
            joints.mobility[node, :size, :size] = mobility[k, k]

    def apply_forces(self, frame: int, damping: float) -> float:
        """Set forces and torques; return the largest gap under load.

        The gap is the distance of an angle from its limit, in radians, or of a sole
        from the ground, in metres.
        """
        system, body = self.system, self.body
        data, seconds = body.data, body.model.opt.timestep
        mat = data.xmat.reshape(-1, 3, 3)
        bodies = (data.xpos, mat, data.xipos, data.xfrc_applied)
        if frame != self.summed_frame:
            seen = (self.points[frame], system.sensors[frame])
            self.forces.sum_springs(self.problem, *seen, self.springs)
            self.summed_frame = frame
        # Each body is drawn to the midpoint of a hold: half of their distance.
        hold_weight = np.where(
            np.isfinite(system.points[frame, system.hold_pairs[:, 2], 0]),
            0.5 * system.targets.weight[system.hold_pairs[:, 0]],
            0.0,
        )
        sums, holds = self.problem[2].node_sums, (*self.hold_ends, hold_weight)
        unit, joints = system.force_unit, body.joints
        self.forces.write_spring_forces(sums, joints.body, holds, unit, *bodies)
        gain = LOAD_GAIN * damping * seconds
        ground = system.soles.ground_height[frame], system.soles.is_planted[frame]
        ground_gap: float = self.forces.add_ground_forces(
            self.soles, *ground, gain, seconds, *bodies
        )
        posture = frame, system.neutral[frame], data.qpos
        limits = gain, self.limit_load, data.qfrc_applied
        limit_gap: float = self.forces.write_joint_torques(
            system.nodes.tree, joints, *posture, *limits
        )
        self.mujoco.mj_mulM(body.model, data, self.drag, data.qvel)
        data.qfrc_applied -= damping * self.drag  # Eq. 1
        return max(limit_gap, ground_gap)
