"""A skeleton as a model of MuJoCo: bodies, joints, masses."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from marey.anatomy.masses import Masses, steiner
from marey.articulated.tables import Nodes
from marey.articulated.targets import owners
from marey.errors import MissingExtraError
from marey.pose.physics.scene import Scene

if TYPE_CHECKING:
    from marey.pose.physics.forces_kernel import Joints

Array = np.ndarray

STEP = 0.01
"""Seconds of a step of the simulation: "around 0.01 s in practice" (Sec. 2.2)."""

FASTEST = 0.8 / STEP
"""No part of the figure swings faster, in rad/s; the integrator bears 2 / STEP."""

SOLES = 10.0
"""How stiff the ground under all soles of a body is at first, by a marker's spring."""

STOP = 0.6 / STEP
"""How fast a joint would swing on a stop at its limit alone, in rad/s."""


def simulator() -> Any:
    """Return the module `mujoco`.

    Raises:
        MissingExtraError: If it is not installed.
    """
    try:
        import mujoco
    except ImportError as error:
        raise MissingExtraError("mujoco", "physics") from error
    return mujoco


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A figure in the simulator."""

    model: Any
    data: Any
    joints: "Joints"
    reach: Float[Array, " speed"]
    """Metres that something moves at unit speed of each unknown, roughly."""


def model_of(scene: Scene) -> Model:
    """Return a figure ready to be simulated (Zordan2003)."""
    from marey.pose.physics.forces_kernel import write_pose  # numba is slow to import

    mujoco = simulator()
    nodes = scene.nodes
    model = mujoco.MjModel.from_xml_string(mjcf(nodes, _with_ballast(scene)))
    model.opt.timestep = STEP
    data = mujoco.MjData(model)
    joints = _joints(mujoco, model, scene)
    for node in range(1, len(joints.speed)):
        mine = model.dof_jntid == model.dof_jntid[joints.speed[node]]
        model.dof_armature[mine] = joints.torque[:, node].max() / FASTEST**2
    write_pose(nodes.tree, joints, scene.trace.root[0], scene.trace.q[0], data.qpos)
    own = np.diag(inertia_of(model, data))
    model.dof_damping[6:] = scene.options.torque_damping * own[6:]  # Eq. 2
    size = float(np.linalg.norm(nodes.tree.offset[1:], axis=1).max(initial=0.1))
    reach = np.full(model.nv, size)
    reach[:3] = 1.0
    return Model(model, data, joints, reach)


def _with_ballast(scene: Scene) -> Masses:
    """Return the masses with some at every spring: its stiffness by `FASTEST` squared.

    Then nothing swings faster than that, whatever the posture: a hand of few grams on
    stiff springs would need steps a hundred times as small as the trunk does. What is
    at rest does not feel inertia, and ballast has no weight.
    """
    targets, masses, soles = scene.targets, scene.masses, scene.soles
    share = scene.unit / FASTEST**2
    mass, moment = masses.mass.copy(), masses.mass[:, None] * masses.centre
    about = masses.inertia + masses.mass[:, None, None] * steiner(masses.centre)
    ground = sole_stiffness(scene) / scene.unit
    nodes = [owners(start) for start in (targets.start, targets.sensor_start)]
    for node, place, weight, turn in (
        (nodes[0], targets.place, targets.weight, 0.0 * targets.weight),
        (nodes[1], targets.sensor_place, *targets.sensor_weight.T),
        (soles.node, soles.place, ground, 0.0 * ground),
    ):
        np.add.at(mass, node, share * weight)
        np.add.at(moment, node, share * weight[:, None] * place)
        own = weight[:, None, None] * steiner(place) + turn[:, None, None] * np.eye(3)
        np.add.at(about, node, share * own)
    centre = moment / np.where(mass > 0.0, mass, 1.0)[:, None]
    inertia = about - mass[:, None, None] * steiner(centre)
    return Masses(mass, centre, inertia, masses.carried)


def sole_stiffness(scene: Scene) -> Float[Array, " sole"]:
    """Return the spring of the ground under every sole, in N/m."""
    return np.asarray(SOLES * scene.options.stiffness * scene.soles.share)


def mjcf(nodes: Nodes, masses: Masses) -> str:
    """Return the model in MuJoCo's own language; contact and all else is off."""
    return (
        '<mujoco><compiler angle="radian" autolimits="false"/>'
        '<option gravity="0 0 0"><flag contact="disable" constraint="disable"/>'
        f"</option><worldbody>{_body(nodes, masses, 0)}</worldbody></mujoco>"
    )


def _body(nodes: Nodes, masses: Masses, first: int) -> str:
    tree = nodes.tree
    node, joints = first, _joint(nodes, first)
    # The first hinge of a universal joint bears nothing but the second.
    while not masses.mass[node] > 0.0:
        node = int(np.flatnonzero(tree.parent == node)[0])
        joints += _joint(nodes, node)
    inertia = masses.inertia[node][[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    mass = _numbers(masses.mass[node : node + 1])
    text = f'<body pos="{_numbers(tree.offset[first])}">{joints}'
    text += f'<inertial pos="{_numbers(masses.centre[node])}" mass="{mass}" '
    text += f'fullinertia="{_numbers(inertia)}"/>'
    for child in np.flatnonzero(tree.parent == node):
        text += _body(nodes, masses, int(child))
    return text + "</body>"


def _joint(nodes: Nodes, node: int) -> str:
    if node == 0:
        return '<freejoint name="0"/>'
    if nodes.tree.hinge[node]:
        axis = _numbers(nodes.tree.axis[node])
        return f'<joint name="{node}" type="hinge" axis="{axis}"/>'
    return f'<joint name="{node}" type="ball"/>'


def _numbers(values: Float[Array, " some"]) -> str:
    return " ".join(repr(float(value)) for value in values)


def _joints(mujoco: Any, model: Any, scene: Scene) -> "Joints":
    from marey.pose.physics.forces_kernel import Joints  # numba is slow to import

    count = len(scene.nodes.tree.parent)
    kind = mujoco.mjtObj.mjOBJ_JOINT
    ids = [mujoco.mj_name2id(model, kind, str(node)) for node in range(count)]
    position, speed = model.jnt_qposadr[ids], model.jnt_dofadr[ids]
    # Of the root the turns: its place comes before.
    position[0] += 3
    speed[0] += 3
    return Joints(
        body=model.jnt_bodyid[ids].astype(np.int64),
        position=position.astype(np.int64),
        speed=speed.astype(np.int64),
        torque=scene.unit * scene.worth[:, 1:],
        ease=np.tile(np.eye(3), (count, 1, 1)),
        stop=STOP**2,
    )


def inertia_of(model: Any, data: Any) -> Float[Array, "speed speed"]:
    """Return the inertia of the figure where it stands."""
    mujoco = simulator()
    M = np.empty((model.nv, model.nv))
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_crb(model, data)
    mujoco.mj_fullM(model, data, M)
    return M
