"""MJCF, the models of MuJoCo: a body that can be simulated, and its motion as qpos.

The root is free, balls are ball joints, hinges are hinges and universal joints two
hinges. Bones are capsules; masses and inertia are those of `marey.anatomy.masses`.
Markers, sensors and fixed joints are sites. The first pose is the key frame "first";
all poses stand beside the model, in `.qpos.npz` (time, qpos, columns) and `.qpos.csv`.
Written, not read.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from marey.io.contract import Format, Output
from marey.io.multibody.bodies import Multibody
from marey.io.multibody.coordinates import RotationSequence, widest_rotation
from marey.io.multibody.markup import XmlWriter, spell
from marey.io.multibody.motion import HeldMotion, hold_motion, hold_rest
from marey.io.multibody.named_bodies import NamedBodies
from marey.io.options import WriteOptions
from marey.io.text.names import make_unique, printable_name, spell_names
from marey.motion import Motion
from marey.numerics import Array, Float, geometry
from marey.skeleton import Skeleton

SITE_RADIUS_M = 0.007
"""Radius at which sites are drawn, in metres: that of a usual marker."""

SUN = {"mode": "trackcom", "directional": "true", "pos": "0 0 4", "dir": "0 0 -1"}
"""The light, which goes along with the figure, so that its shadow is always drawn."""

SKY = {"rgb1": "0.75 0.82 0.9", "rgb2": "0.3 0.4 0.5", "width": "64", "height": "384"}

QUATERNION = ("qw", "qx", "qy", "qz")


@dataclass(frozen=True, slots=True, eq=False)
class WrittenJoint:
    """A joint of the file with its part of qpos."""

    attributes: dict[str, str]
    columns: tuple[str, ...]
    qpos: Float[Array, "frame column"]


def sniff(head: bytes) -> bool:
    """Whether a file begins like a model of MuJoCo."""
    return b"<mujoco" in head and b"<robot" not in head


def write_motion(motion: Motion, options: WriteOptions) -> Output:
    """Return the model and all poses of a motion, in metres with Z up.

    Gaps hold the last known pose. MuJoCo bounds a ball by one angle: the largest that
    the limits of swing and twist allow.

    Raises:
        DataError: If the frames are not evenly spaced.
        OptionError: If another unit or up axis is asked for.
    """
    options.check_world("m", "z")
    held = hold_motion(motion, options)
    joints, model = _model_of(held, options)
    columns = [c for written in joints for c in written.columns]
    qpos = np.concatenate([written.qpos for written in joints], axis=1)
    return {
        "": [model],
        ".qpos.npz": [_archive(held.times, qpos, columns)],
        ".qpos.csv": held.format_csv(columns, qpos),
    }


def write_skeleton(skeleton: Skeleton, options: WriteOptions) -> Output:
    """Return the model of a skeleton at rest."""
    options.check_world("m", "z")
    return {"": [_model_of(hold_rest(skeleton), options)[1]]}


def _model_of(
    held: HeldMotion, options: WriteOptions
) -> tuple[list[WrittenJoint], bytes]:
    """Return the joints in the order of qpos, and the model."""
    bodies = NamedBodies.of(held, _spell_name, options)
    joints = _written_joints(bodies)
    return joints, _model(bodies, joints)


def _spell_name(name: str) -> str:
    """Return a name that MuJoCo can hold; "world" is the name of its root."""
    text = printable_name(name)
    return f"_{text}" if text == "world" else text


def _archive(
    times: Float[Array, " frame"],
    qpos: Float[Array, "frame column"],
    columns: Sequence[str],
) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, time=times, qpos=qpos, columns=np.array(columns))
    return buffer.getvalue()


# --- joints --------------------------------------------------------------------------


def _written_joints(bodies: NamedBodies) -> list[WrittenJoint]:
    """Return the joints in the order of qpos; a universal joint is two of them."""
    held, multibody = bodies.held, bodies.multibody
    joints: list[WrittenJoint] = []
    for body in multibody.depth_first():
        joint = int(multibody.joint[body])
        if joint == 0:
            joints.append(_free_joint(held, bodies.names[0]))
        elif held.skeleton.kind[joint] == "ball":
            joints.append(_ball(held, joint, bodies.names[joint]))
        else:
            joints += _hinges(bodies, joint)
    if any("range" in j.attributes and j.attributes["type"] == "ball" for j in joints):
        bodies.options.note(
            "limits-approximate",
            "MuJoCo bounds a ball joint by one angle: the largest rotation that the "
            "limits of its swing and twist allow",
            severity="info",
        )
    return joints


def _free_joint(held: HeldMotion, name: str) -> WrittenJoint:
    columns = tuple(f"{name}_{part}" for part in ("x", "y", "z", *QUATERNION))
    qpos = np.concatenate([held.root, held.wxyz[:, 0]], axis=1)
    return WrittenJoint({"name": name, "type": "free"}, columns, qpos)


def _ball(held: HeldMotion, joint: int, name: str) -> WrittenJoint:
    attributes = {"name": name, "type": "ball"}
    widest = widest_rotation(held.skeleton, joint)
    if np.isfinite(widest):
        attributes["range"] = spell((0.0, widest))
    columns = tuple(f"{name}_{part}" for part in QUATERNION)
    return WrittenJoint(attributes, columns, held.wxyz[:, joint])


def _hinges(bodies: NamedBodies, joint: int) -> list[WrittenJoint]:
    """Return the hinge of a joint, or both of a universal joint."""
    held = bodies.held
    count = 1 if held.skeleton.kind[joint] == "hinge" else 2
    sequence = RotationSequence(held.skeleton.axes[joint, :count], np.eye(3))
    angles, ranges = held.angles(sequence, joint, bodies.options)
    name = bodies.names[joint]
    names = [name] if count == 1 else [f"{name}_{k + 1}" for k in range(count)]
    others = [other for other in bodies.names if other != name]
    names = list(make_unique([*others, *names])[len(others) :])
    joints = []
    for k, axis in enumerate(sequence.axes):
        attributes = {"name": names[k], "type": "hinge", "axis": spell(axis)}
        if np.isfinite(ranges[k]).all():
            attributes["range"] = spell(ranges[k])
        joints.append(WrittenJoint(attributes, (names[k],), angles[:, k : k + 1]))
    return joints


# --- the model -----------------------------------------------------------------------


def _model(bodies: NamedBodies, joints: Sequence[WrittenJoint]) -> bytes:
    times = bodies.held.times
    xml = XmlWriter()
    xml.open("mujoco", model="marey")
    xml.leaf("compiler", angle="radian")
    if provenance := bodies.options.provenance_text():
        with xml.open("custom"):
            xml.leaf("text", name="provenance", data=provenance)
    # Capsules touch the ground and not each other: neighbours overlap at their joint.
    capsule = {"contype": "0", "conaffinity": "1", "rgba": "0.8 0.6 0.4 1"}
    plane = {"contype": "1", "conaffinity": "0", "rgba": "0.9 0.9 0.9 1"}
    with xml.open("asset"):
        xml.leaf("texture", type="skybox", builtin="gradient", **SKY)
    with xml.open("default"):
        xml.leaf("geom", type="capsule", **capsule)
        xml.leaf("site", size=spell(SITE_RADIUS_M), rgba="0.2 0.6 1 1")
    with xml.open("worldbody"):
        xml.leaf("geom", name="ground", type="plane", size="0 0 1", **plane)
        _write_bodies(xml, bodies, joints)
    if len(times):
        qpos = np.concatenate([written.qpos[0] for written in joints])
        xml.open("keyframe")
        xml.leaf("key", name="first", time=spell(times[0]), qpos=spell(qpos))
    return xml.render()


def _write_bodies(
    xml: XmlWriter, bodies: NamedBodies, joints: Sequence[WrittenJoint]
) -> None:
    multibody, names = bodies.multibody, bodies.names
    sites = _site_names(bodies)
    remaining = iter(joints)
    level = xml.depth
    depth: dict[int, int] = {-1: level - 1}
    for body in multibody.depth_first():
        depth[body] = depth[int(multibody.parent[body])] + 1
        xml.close(depth[body])
        joint = int(multibody.joint[body])
        xml.open("body", name=names[joint], pos=spell(multibody.position[body]))
        if joint == 0:
            xml.leaf("light", **SUN)
        for _ in range(2 if multibody.skeleton.kind[joint] == "universal" else 1):
            xml.leaf("joint", **next(remaining).attributes)
        inertia = multibody.inertia[body][[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        xml.leaf(
            "inertial",
            pos=spell(multibody.centre[body]),
            mass=spell(multibody.mass[body]),
            fullinertia=spell(inertia),
        )
        for bone in multibody.bones(body):
            ends = spell((*bone.start, *bone.end))
            name = f"{names[bone.joint]}_bone"
            xml.leaf("geom", name=name, fromto=ends, size=spell(bone.radius))
        _write_sites(xml, multibody, body, sites)
    xml.close(level)


def _site_names(bodies: NamedBodies) -> tuple[str, ...]:
    """Return unique names of joints, markers and sensors as sites, in this order."""
    skeleton = bodies.held.skeleton
    marked = (*skeleton.marker_labels, *skeleton.sensor_names)
    spelled = spell_names(marked, printable_name, bodies.options)
    return make_unique([*bodies.names, *spelled])


def _write_sites(
    xml: XmlWriter, multibody: Multibody, body: int, sites: Sequence[str]
) -> None:
    skeleton = multibody.skeleton
    for joint in multibody.fixed_joints(body):
        position = multibody.joint_position[joint]
        xml.leaf("site", name=sites[joint], pos=spell(position))
    first = skeleton.n_joints
    on_body = multibody.body_of_joint[skeleton.marker_joint] == body
    position = multibody.marker_position
    for marker in np.flatnonzero(on_body).tolist():
        name = sites[first + marker]
        xml.leaf("site", name=name, pos=spell(position[marker]))
    first += len(skeleton.marker_labels)
    for sensor, T in multibody.sensors(body):
        rotation = spell(geometry.quat_from_matrix(T[:3, :3]))
        name = sites[first + sensor]
        xml.leaf("site", name=name, pos=spell(T[:3, 3]), quat=rotation)


FORMAT = Format(
    name="mjcf",
    title="MJCF (MuJoCo model)",
    suffixes=(".mjcf",),
    sniff=sniff,
    write_motion=write_motion,
    write_skeleton=write_skeleton,
    companions=(".qpos.npz", ".qpos.csv"),
    loses=("gaps", "uncertainty", "contacts"),
    precision=1e-10,
)
