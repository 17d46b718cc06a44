"""URDF, the robots of ROS: links, joints and a trajectory beside them.

The root is the base link, which is free as in most libraries for legged robots. A ball
joint is three revolute joints with links of a millionth of the mass between them, a
universal joint two. Bones are cylinders; masses and inertia are those of
`marey.anatomy.masses`. `.trajectory.csv` holds the time, the pose of the base link and
the angle of every joint. Written, not read.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import numpy as np

from marey.io.contract import Format, Output
from marey.io.multibody.bodies import Bone, Multibody
from marey.io.multibody.coordinates import RotationSequence, has_axes
from marey.io.multibody.markup import XmlWriter, spell, spelled_name
from marey.io.multibody.motion import HeldMotion, hold_motion, hold_rest
from marey.io.multibody.named_bodies import NamedBodies
from marey.io.options import WriteOptions
from marey.io.text.names import make_unique
from marey.motion import Motion
from marey.numerics import Array, Float, geometry
from marey.skeleton import Skeleton

VIRTUAL_MASS = 1e-6
"""Mass of a link between the axes of one joint, as a fraction of the body's: small
enough not to matter, and not zero, which simulators refuse."""

MIN_INERTIA = 1e-12
"""Least moment of inertia of such a link, in kg m^2, for figures of a few centimetres:
MuJoCo refuses what it takes for zero, below 1e-15."""

MAX_EFFORT = "10000"
"""Bound on the moment of a joint, in N m: URDF asks for one; beyond any person's."""

MAX_SPEED = "100"
"""Bound on the speed of a joint, in rad/s: URDF asks for one; beyond any person's."""

BASE_COLUMNS = ("x", "y", "z", "qw", "qx", "qy", "qz")


@dataclass(frozen=True, slots=True, eq=False)
class RevoluteJoints:
    """The revolute joints in place of one joint of a skeleton."""

    names: tuple[str, ...]
    axes: Float[Array, "angle 3"]
    ranges: Float[Array, "angle 2"]
    """Least and greatest angle in radians; NaN = free."""

    angles: Float[Array, "frame angle"]


def sniff(head: bytes) -> bool:
    """Whether a file begins like a URDF."""
    return b"<robot" in head


def write_motion(motion: Motion, options: WriteOptions) -> Output:
    """Return the robot and the trajectory of a motion, in metres with Z up.

    Gaps hold the last known pose.

    Raises:
        DataError: If the frames are not evenly spaced.
        OptionError: If another unit or up axis is asked for.
    """
    options.check_world("m", "z")
    held = hold_motion(motion, options)
    names, joints, robot = _robot_of(held, options)
    base = [f"{names[0]}_{part}" for part in BASE_COLUMNS]
    columns = [*base, *(name for j in joints for name in j.names)]
    values = [held.root, held.wxyz[:, 0], *(j.angles for j in joints)]
    table = held.format_csv(columns, np.concatenate(values, axis=1))
    return {"": [robot], ".trajectory.csv": table}


def write_skeleton(skeleton: Skeleton, options: WriteOptions) -> Output:
    """Return the robot of a skeleton."""
    options.check_world("m", "z")
    return {"": [_robot_of(hold_rest(skeleton), options)[-1]]}


def _robot_of(
    held: HeldMotion, options: WriteOptions
) -> tuple[tuple[str, ...], list[RevoluteJoints], bytes]:
    """Return the names of the links, the joints, and the robot of a motion."""
    bodies = NamedBodies.of(held, partial(spelled_name, allowed="_"), options)
    joints = _revolute_joints(bodies)
    return bodies.names, joints, _robot(bodies, joints)


# --- joints --------------------------------------------------------------------------


def _revolute_joints(bodies: NamedBodies) -> list[RevoluteJoints]:
    """Return the joints of all bodies but the root, their names unique."""
    names, moving = bodies.names, bodies.multibody.joint
    found, wanted = [], []
    for joint in moving[1:].tolist():
        sequence = _sequence(bodies.held.skeleton, joint)
        angles, ranges = bodies.held.angles(sequence, joint, bodies.options)
        found.append((sequence.axes, ranges, angles))
        count = len(sequence.axes)
        endings = ("",) if count == 1 else ("_x", "_y", "_z")[:count]
        wanted.append([f"{names[joint]}{ending}" for ending in endings])
    fixed = [names[j] for j in set(range(len(names))) - set(moving)]
    together = [*fixed, *(name for group in wanted for name in group)]
    unique = iter(make_unique(together)[len(fixed) :])
    return [
        RevoluteJoints(tuple(next(unique) for _ in group), *parts)
        for group, parts in zip(wanted, found, strict=True)
    ]


def _sequence(skeleton: Skeleton, joint: int) -> RotationSequence:
    """Return the axes of a joint; a ball rotates about those of its limits."""
    kind, axes = skeleton.kind[joint], skeleton.axes[joint]
    if kind == "hinge":
        axes = axes[:1]
    elif kind == "ball" and has_axes(skeleton, joint):
        axes = np.stack([*axes, np.cross(*axes)])
    elif kind == "ball":
        axes = np.eye(3)
    return RotationSequence(axes, np.eye(3))


# --- the robot -----------------------------------------------------------------------


def _robot(bodies: NamedBodies, joints: Sequence[RevoluteJoints]) -> bytes:
    multibody, names = bodies.multibody, bodies.names
    between_axes = _virtual_names(bodies, joints)
    virtual = iter(make_unique([*names, *between_axes])[len(names) :])
    xml = XmlWriter()
    xml.open("robot", name="marey")
    if provenance := bodies.options.provenance_text():
        xml.comment(f"provenance {provenance}")
    # MuJoCo reads this; other programs ignore it.
    with xml.open("mujoco"):
        xml.leaf("compiler", fusestatic="false", discardvisual="false")
    for body, joint in enumerate(multibody.joint.tolist()):
        _write_link(xml, multibody, body, names[joint])
        if body > 0:
            parent = names[multibody.joint[multibody.parent[body]]]
            between = [next(virtual) for _ in joints[body - 1].names[1:]]
            links = [parent, *between, names[joint]]
            _write_revolute(xml, multibody, body, joints[body - 1], links)
        for fixed in multibody.fixed_joints(body):
            xml.leaf("link", name=names[fixed])
            links = [names[joint], names[fixed]]
            position = multibody.joint_position[fixed]
            _open_joint(xml, names[fixed], "fixed", links, position).close()
    return xml.render()


def _virtual_names(bodies: NamedBodies, joints: Sequence[RevoluteJoints]) -> list[str]:
    """Return the names of the links between the axes of joints."""
    moving = bodies.multibody.joint[1:].tolist()
    return [
        f"{bodies.names[joint]}_link{k + 1}"
        for joint, revolute in zip(moving, joints, strict=True)
        for k in range(len(revolute.names) - 1)
    ]


def _write_link(xml: XmlWriter, multibody: Multibody, body: int, name: str) -> None:
    mass, centre = multibody.mass[body], multibody.centre[body]
    with xml.open("link", name=name):
        _write_inertia(xml, mass, centre, multibody.inertia[body])
        for bone in multibody.bones(body):
            for use in ("visual", "collision"):
                _write_cylinder(xml, use, bone)


def _write_inertia(
    xml: XmlWriter,
    mass: float,
    centre: Float[Array, " 3"],
    inertia: Float[Array, "3 3"],
) -> None:
    entries = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    values = inertia[np.triu_indices(3)]
    with xml.open("inertial"):
        xml.leaf("origin", xyz=spell(centre), rpy="0 0 0")
        xml.leaf("mass", value=spell(mass))
        xml.leaf("inertia", **dict(zip(entries, map(spell, values), strict=True)))


def _write_cylinder(xml: XmlWriter, use: str, bone: Bone) -> None:
    wxyz = geometry.quat_from_matrix(bone.R)
    roll_pitch_yaw = geometry.euler_from_quat(wxyz, "ZYX")[::-1]
    with xml.open(use):
        xml.leaf("origin", xyz=spell(bone.middle), rpy=spell(roll_pitch_yaw))
        with xml.open("geometry"):
            xml.leaf("cylinder", radius=spell(bone.radius), length=spell(bone.length))


def _write_revolute(
    xml: XmlWriter,
    multibody: Multibody,
    body: int,
    joint: RevoluteJoints,
    links: Sequence[str],
) -> None:
    """Write the joints from a body's parent to it, and the links between them."""
    position = multibody.position[body]
    for k, name in enumerate(joint.names):
        if k + 1 < len(joint.names):
            mass = VIRTUAL_MASS * multibody.mass[body]
            inertia = multibody.inertia[body] + MIN_INERTIA / VIRTUAL_MASS * np.eye(3)
            with xml.open("link", name=links[k + 1]):
                _write_inertia(xml, mass, np.zeros(3), VIRTUAL_MASS * inertia)
        limited = bool(np.isfinite(joint.ranges[k]).all())
        kind = "revolute" if limited else "continuous"
        with _open_joint(xml, name, kind, links[k : k + 2], position):
            xml.leaf("axis", xyz=spell(joint.axes[k]))
            if limited:
                low, high = map(spell, joint.ranges[k])
                bounds = {"effort": MAX_EFFORT, "velocity": MAX_SPEED}
                xml.leaf("limit", lower=low, upper=high, **bounds)
        position = np.zeros(3)


def _open_joint(
    xml: XmlWriter,
    name: str,
    kind: str,
    links: Sequence[str],
    position: Float[Array, " 3"],
) -> ExitStack:
    """Begin a joint between two links."""
    joint = xml.open("joint", name=name, type=kind)
    xml.leaf("origin", xyz=spell(position), rpy="0 0 0")
    xml.leaf("parent", link=links[0])
    xml.leaf("child", link=links[1])
    return joint


FORMAT = Format(
    name="urdf",
    title="URDF (ROS robot description)",
    suffixes=(".urdf",),
    sniff=sniff,
    write_motion=write_motion,
    write_skeleton=write_skeleton,
    companions=(".trajectory.csv",),
    loses=("gaps", "markers on bones", "uncertainty", "contacts"),
    precision=1e-10,
)
