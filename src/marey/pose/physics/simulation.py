"""A figure on springs brought to rest by running a simulation."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from marey.articulated.targets import owners
from marey.pose.physics.model import (
    FASTEST,
    STEP,
    Model,
    inertia_of,
    model_of,
    simulator,
    sole_stiffness,
)
from marey.pose.physics.rest_pose import Rest
from marey.pose.physics.scene import Scene

if TYPE_CHECKING:
    from marey.pose.physics.ground_kernel import Grounded

Array = np.ndarray

CALM = 4
"""Steps in a row that must be slow: what swings is slow where it turns back."""

PATIENT = 250
"""Steps after which the figure is damped no more than what turns it to the neutral
posture can bear: joints that nothing else turns would only creep."""

SPEED = 3.0
"""No body gets faster than this, in m/s, however far away it is seen again: it would
run through its stops."""

FIRMING = 0.5
"""How soon a stop at a joint's limit holds all that bears on it, as a share of the
damping: twice as soon, it might swing for ever."""

SHORTER = 3.0
"""How much shorter steps are the second time."""

GAP = 1e-5
"""An angle at its limit is there, in radians."""

SUNK = 5e-5
"""A sole that bears is on the ground, in metres."""


def settle_by_simulation(scene: Scene) -> Rest:
    """Return the postures at which a simulation comes to rest.

    Frames are visited from the first good one onward, then backwards from there, each
    from the posture of the last.

    Raises:
        MissingExtraError: If MuJoCo is not installed.
    """
    order = scene.fit.order(scene.points, scene.sensors)
    q, root = scene.trace.q.copy(), scene.trace.root.copy()
    info = np.zeros((len(q), 2))
    forward = len(order) - int(order[0])
    with _warnings() as warnings:
        run = Run(scene, warnings)
        for part in (order[:forward], order[forward:]):
            run.stand(root[order[0]], q[order[0]])
            for frame in part:
                info[frame] = run.settle(int(frame))
                run.read(root[frame], q[frame])
    return Rest.of(q, root, info)


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """Collect the simulator's warnings, which it would write to a file else."""
    mujoco, found = simulator(), list[str]()
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(found.append)
    try:
        yield found
    finally:
        mujoco.set_mju_user_warning(before)


def _grounded(scene: Scene, figure: Model) -> "Grounded":
    """Return the soles where the simulator keeps them; nothing bears on them yet."""
    from marey.pose.physics.ground_kernel import Grounded  # numba is slow to import

    soles = scene.soles
    count = len(soles.node)
    return Grounded(
        body=figure.joints.body[soles.node],
        place=soles.place,
        stiff=sole_stiffness(scene),
        normal=soles.normal,
        lossy=1.0 / FASTEST,
        friction=scene.options.friction,
        presses=np.zeros(count),
        drags=np.zeros((count, 3)),
        last=np.full((count, 3), np.nan),
        anchor=np.full((count, 3), np.nan),
    )


class Run:
    """A simulation, and the forces on it."""

    def __init__(self, scene: Scene, warnings: Sequence[str] = ()) -> None:
        from marey.pose.physics import (
            forces_kernel as kernel,  # numba is slow to import
        )
        from marey.pose.physics.ground_kernel import bear

        self.scene, self.warnings = scene, warnings
        self.springs, self.torques = kernel.springs, kernel.torques
        self.bear = bear
        self.mujoco = simulator()
        self.figure: Model = model_of(scene)
        self.node = owners(scene.targets.start)
        self.sensor_node = owners(scene.targets.sensor_start)
        self.held = np.zeros((len(scene.nodes.tree.parent), 3, 2))
        self.soles = _grounded(scene, self.figure)
        self.weight = scene.unit * scene.pushes
        self.drag = np.zeros(self.figure.model.nv)
        self.points = scene.points.copy()
        self.sensors = np.ascontiguousarray(
            scene.sensors[:, scene.targets.sensor_column]
        )

    def stand(self, root: Float[Array, " 3"], q: Float[Array, "node 4"]) -> None:
        """Take a posture."""
        from marey.pose.physics.forces_kernel import (
            write_pose,  # numba is slow to import
        )

        figure, tree = self.figure, self.scene.nodes.tree
        write_pose(tree, figure.joints, root, q, figure.data.qpos)

    def read(self, root: Float[Array, " 3"], q: Float[Array, "node 4"]) -> None:
        """Write the posture into arrays."""
        from marey.pose.physics.forces_kernel import (
            read_pose,  # numba is slow to import
        )

        figure, tree = self.figure, self.scene.nodes.tree
        read_pose(tree, figure.joints, figure.data.qpos, root, q)

    def settle(self, frame: int) -> tuple[int, bool]:
        """Run until at rest; return the steps taken, and whether that was not enough.

        A frame that has not come to rest after half of the steps swings between stops
        at its limits, as a rule: it is begun again with shorter steps. A figure that
        is thrown apart stays where it was.
        """
        most, start = self.scene.options.steps, self.figure.data.qpos.copy()
        told = len(self.warnings)
        soles = self.soles
        borne = soles.presses.copy(), soles.drags.copy(), soles.anchor.copy()
        first = most - most // 2
        steps, still = self._run(frame, STEP, first)
        if still or most == first:
            return steps, not still
        self.figure.data.qpos[:] = start
        self.held[:] = 0.0
        soles.presses[:], soles.drags[:], soles.anchor[:] = borne
        again, still = self._run(frame, STEP / SHORTER, most - first)
        if len(self.warnings) > told and not still:
            self.figure.data.qpos[:] = start
        return first + again, not still

    def _run(self, frame: int, seconds: float, most: int) -> tuple[int, bool]:
        """Run for at most so many steps; return how many, and whether at rest.

        Forces are those of the posture at this very moment: taken from the step before,
        springs so stiff would throw the figure apart.
        """
        step1, step2 = self.mujoco.mj_step1, self.mujoco.mj_step2
        model, data = self.figure.model, self.figure.data
        model.opt.timestep, data.qvel[:] = seconds, 0.0
        self.soles.last[:] = np.nan
        self._loosen()
        calm, options, told = 0, self.scene.options, len(self.warnings)
        damping = options.damping
        less = max(np.sqrt(2.0 * options.torque), damping / 5.0)
        for step in range(most):
            step1(model, data)
            if step == PATIENT:
                damping = min(damping, less)
            gap = self._apply(frame, damping)
            step2(model, data)
            if len(self.warnings) > told:
                return step + 1, False
            fastest = np.abs(data.qvel * self.figure.reach).max()
            if fastest > SPEED:
                data.qvel *= SPEED / fastest
            slow = fastest < options.rest_speed and gap < GAP
            calm = calm + 1 if slow else 0
            if calm == CALM:
                return step + 1, True
        return most, False

    def _loosen(self) -> None:
        """Set what stops at limits may be worth: how easily joints turn just now."""
        tree, joints = self.scene.nodes.tree, self.figure.joints
        if not tree.limited.any():
            return
        ease = np.linalg.inv(inertia_of(self.figure.model, self.figure.data))
        for node in np.flatnonzero(tree.limited):
            size = 1 if tree.hinge[node] else 3
            mine = slice(joints.speed[node], joints.speed[node] + size)
            joints.ease[node, :size, :size] = ease[mine, mine]

    def _apply(self, frame: int, damping: float) -> float:
        """Set forces and torques; return how far angles are from their stops.

        And soles from the ground, in the same measure.
        """
        scene, figure = self.scene, self.figure
        data, joints = figure.data, figure.joints
        self.springs(
            scene.targets,
            self.node,
            self.sensor_node,
            joints.body,
            scene.pairs,
            scene.unit,
            self.weight,
            scene.masses.centre,
            self.points[frame],
            self.sensors[frame],
            data.xpos,
            data.xmat,
            data.xipos,
            data.xfrc_applied,
        )
        gain = FIRMING * damping * figure.model.opt.timestep
        sunk: float = self.bear(
            self.soles,
            scene.soles.floor[frame],
            scene.soles.planted[frame],
            gain,
            figure.model.opt.timestep,
            data.xpos,
            data.xmat,
            data.xipos,
            data.xfrc_applied,
        )
        gap: float = self.torques(
            scene.nodes.tree,
            joints,
            frame,
            scene.neutral[frame],
            data.qpos,
            gain,
            self.held,
            data.qfrc_applied,
        )
        self.mujoco.mj_mulM(figure.model, data, self.drag, data.qvel)
        data.qfrc_applied -= damping * self.drag  # Eq. 1
        return max(gap, sunk * GAP / SUNK)
