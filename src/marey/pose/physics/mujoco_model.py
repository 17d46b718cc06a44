"""A spring system as a model of MuJoCo: bodies, joints and masses."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from marey.anatomy.masses import Masses, point_mass_inertia
from marey.articulated.tables import Nodes
from marey.articulated.targets import node_of_target
from marey.errors import import_extra
from marey.numerics import Array, Float
from marey.pose.contact.holds import HOLD_STRENGTH
from marey.pose.physics.springs import SpringSystem
from marey.tree import children_of

if TYPE_CHECKING:
    from marey.pose.physics.forces_kernel import SimulatedJoints


TIME_STEP_S = 0.01
"""Time step of the simulation, in seconds: "around 0.01 s in practice" (Zordan2003,
Sec. 2.2)."""

MAX_FREQUENCY = 0.8 / TIME_STEP_S
"""Highest natural frequency of any part of the body, in rad/s, reached by adding mass,
and that of a joint on the spring of its limit. The integrator is stable up to
2 / TIME_STEP_S. Raising it adds less mass. Chosen by hand."""


def import_mujoco() -> Any:
    """Return the module `mujoco`.

    Raises:
        MissingExtraError: If it is not installed.
    """
    return import_extra("mujoco", "physics")


@dataclass(frozen=True, slots=True, eq=False)
class MujocoModel:
    """A body in the simulator."""

    model: Any
    data: Any
    joints: "SimulatedJoints"
    reach_m: Float[Array, " speed"]
    """Displacement in metres by a unit of each velocity, roughly."""


def build_mujoco_model(system: SpringSystem) -> MujocoModel:
    """Return a body ready to be simulated (Zordan2003)."""
    from marey.pose.physics.forces_kernel import write_pose  # numba is slow to import

    mujoco = import_mujoco()
    tree, initial = system.nodes.tree, system.initial
    model = mujoco.MjModel.from_xml_string(
        write_mjcf(system.nodes, _add_spring_masses(system))
    )
    model.opt.timestep = TIME_STEP_S
    data = mujoco.MjData(model)
    joints = _simulated_joints(mujoco, model, system)
    for node in range(1, len(joints.speed)):
        dofs = model.dof_jntid == model.dof_jntid[joints.speed[node]]
        model.dof_armature[dofs] = joints.torque[:, node].max() / MAX_FREQUENCY**2
    write_pose(tree, joints, initial.root[0], initial.q[0], data.qpos)
    inertia = np.diag(inertia_matrix(model, data))
    model.dof_damping[6:] = system.options.torque_damping * inertia[6:]  # Eq. 2
    longest = float(np.linalg.norm(tree.offset[1:], axis=1).max(initial=0.0)) or 1.0
    reach_m = np.full(model.nv, longest)
    reach_m[:3] = 1.0
    return MujocoModel(model, data, joints, reach_m)


def _add_spring_masses(system: SpringSystem) -> Masses:
    """Return the masses with k / MAX_FREQUENCY^2 added at every spring of stiffness k.

    Then no part oscillates faster than that at any pose: a hand of a few grams on stiff
    springs would need steps a hundred times as small as the trunk does. Added mass has
    no weight, and inertia does not change the pose at rest.
    """
    targets = system.targets
    masses, soles = system.masses, system.soles
    mass_unit = system.force_unit / MAX_FREQUENCY**2
    mass, moment = masses.mass.copy(), masses.mass[:, None] * masses.centre
    about_origin = masses.inertia + point_mass_inertia(mass, masses.centre)
    sole_weight = sole_stiffness(system) / system.force_unit
    marker_node, sensor_node = map(
        node_of_target, (targets.start, targets.sensor_start)
    )
    for node, offset, weight, rotation_weight in (
        (marker_node, targets.position, targets.weight, 0.0 * targets.weight),
        (sensor_node, targets.sensor_position, *targets.sensor_weight.T),
        (soles.node, soles.offset, sole_weight, 0.0 * sole_weight),
    ):
        np.add.at(mass, node, mass_unit * weight)
        np.add.at(moment, node, mass_unit * weight[:, None] * offset)
        inertia = point_mass_inertia(weight, offset)
        inertia = inertia + rotation_weight[:, None, None] * np.eye(3)
        np.add.at(about_origin, node, mass_unit * inertia)
    centre = moment / np.where(mass > 0.0, mass, 1.0)[:, None]
    about_centre = about_origin - point_mass_inertia(mass, centre)
    return Masses(mass, centre, about_centre, masses.subtree_inertia)


def sole_stiffness(system: SpringSystem) -> Float[Array, " sole"]:
    """Return the stiffness of the ground under every sole, in N/m."""
    stiffness = HOLD_STRENGTH * system.options.stiffness
    return np.asarray(stiffness * system.soles.share)


def write_mjcf(nodes: Nodes, masses: Masses) -> str:
    """Return the model in MJCF, MuJoCo's XML; contact and constraints are off."""
    return (
        '<mujoco><compiler angle="radian" autolimits="false"/>'
        '<option gravity="0 0 0"><flag contact="disable" constraint="disable"/>'
        f"</option><worldbody>{_body_xml(nodes, masses, 0)}</worldbody></mujoco>"
    )


def _body_xml(nodes: Nodes, masses: Masses, first: int) -> str:
    tree = nodes.tree
    node, joints = first, _joint_xml(nodes, first)
    # The first hinge of a universal joint has no mass: its child belongs to this body.
    while not masses.mass[node] > 0.0:
        node = children_of(tree.parent, node)[0]
        joints += _joint_xml(nodes, node)
    inertia = masses.inertia[node][[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    children = children_of(tree.parent, node)
    return (
        f'<body pos="{_join(tree.offset[first])}">{joints}'
        f'<inertial pos="{_join(masses.centre[node])}" '
        f'mass="{_join(masses.mass[node : node + 1])}" '
        f'fullinertia="{_join(inertia)}"/>'
        + "".join(_body_xml(nodes, masses, child) for child in children)
        + "</body>"
    )


def _joint_xml(nodes: Nodes, node: int) -> str:
    if node == 0:
        return '<freejoint name="0"/>'
    if nodes.tree.is_hinge[node]:
        axis = _join(nodes.tree.axis[node])
        return f'<joint name="{node}" type="hinge" axis="{axis}"/>'
    return f'<joint name="{node}" type="ball"/>'


def _join(values: Float[Array, " some"]) -> str:
    return " ".join(repr(float(value)) for value in values)


def _simulated_joints(
    mujoco: Any, model: Any, system: SpringSystem
) -> "SimulatedJoints":
    from marey.pose.physics.forces_kernel import SimulatedJoints

    n_nodes = len(system.nodes.tree.parent)
    kind = mujoco.mjtObj.mjOBJ_JOINT
    ids = [mujoco.mj_name2id(model, kind, str(node)) for node in range(n_nodes)]
    position, speed = model.jnt_qposadr[ids], model.jnt_dofadr[ids]
    # The root's address is that of its rotation, which follows its position.
    position[0] += 3
    speed[0] += 3
    return SimulatedJoints(
        body=model.jnt_bodyid[ids].astype(np.int64),
        position=position.astype(np.int64),
        speed=speed.astype(np.int64),
        torque=system.force_unit * system.neutral_weight[:, 1:],
        mobility=np.tile(np.eye(3), (n_nodes, 1, 1)),
        limit_stiffness=MAX_FREQUENCY**2,
    )


def inertia_matrix(model: Any, data: Any) -> Float[Array, "speed speed"]:
    r"""Return the joint-space inertia matrix at the current pose, in SI units.

    The kinetic energy is :math:`\tfrac12 v^T M v`; rows of angles are in kg m^2.
    """
    mujoco = import_mujoco()
    M = np.empty((model.nv, model.nv))
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_crb(model, data)
    mujoco.mj_fullM(model, data, M)
    return M
