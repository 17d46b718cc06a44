"""The XML of an OpenSim model: bodies, joints, coordinates and markers."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import numpy as np

from marey.anatomy.landmarks import find_landmarks
from marey.anatomy.t_pose import shortest_rotation
from marey.io.formats.osim.conventions import NamedJoint, name_joints
from marey.io.multibody.bodies import Bone, Multibody, make_multibody
from marey.io.multibody.markup import XmlWriter, spell, spelled_name
from marey.io.multibody.motion import HeldMotion
from marey.io.options import WriteOptions
from marey.io.text.names import make_unique, spell_names
from marey.io.units_axes import points_to_file, rotation_to_z_up
from marey.numerics import Array, Bool, Float, geometry
from marey.numerics.thresholds import GRAVITY
from marey.skeleton import Skeleton

VERSION = "40000"

FORBIDDEN = "\\/*+\"' "
"""Characters that OpenSim does not allow in names."""

RESERVED = ("ground", "time")
"""The world, and the first column of a table."""

TRANSLATIONS = ("tx", "ty", "tz")
MAX_TRANSLATION_M = 10.0
"""Half the range of the root's position that OpenSim's sliders show, in metres."""


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """Names in the file."""

    joints: tuple[str, ...]
    """Names of the bodies, and of the frames of fixed joints, by joint."""

    markers: tuple[str, ...]
    sensors: tuple[str, ...]

    @classmethod
    def of(cls, skeleton: Skeleton, options: WriteOptions) -> "Names":
        """Return the names of a skeleton as OpenSim can hold them."""
        joints = spell_names(skeleton.names, spell_name, options)
        markers = spell_names(skeleton.marker_labels, spell_name, options)
        sensors = make_unique([*joints, *map(spell_name, skeleton.sensor_names)])
        return cls(joints, markers, sensors[len(joints) :])


def spell_name(name: str) -> str:
    """Return a name that OpenSim can hold."""
    text = spelled_name(name, forbidden=FORBIDDEN)
    return f"_{text}" if text in RESERVED else text


@dataclass(frozen=True, slots=True, eq=False)
class OsimModel:
    """A skeleton and its motion as OpenSim has them."""

    held: HeldMotion
    multibody: Multibody
    names: Names
    joints: Mapping[int, NamedJoint]
    """Name and axes of every joint that is not fixed."""

    angles: Mapping[int, Float[Array, "frame _"]]
    """Coordinates of each of these joints, in radians."""

    ranges: Mapping[int, Float[Array, "_ 2"]]
    """Least and greatest angle of its coordinates, in radians."""

    @classmethod
    def of(cls, held: HeldMotion, options: WriteOptions) -> "OsimModel":
        """Return the model of a motion, or of a skeleton at rest."""
        skeleton = held.skeleton
        names = Names.of(skeleton, options)
        joints = name_joints(skeleton, names.joints)
        angles, ranges = {}, {}
        for joint, named in joints.items():
            found = held.angles(named.sequence, joint, options)
            angles[joint], ranges[joint] = found
        return cls(held, make_multibody(skeleton), names, joints, angles, ranges)

    @property
    def translations(self) -> tuple[str, ...]:
        """Names of the coordinates of the root's position."""
        root = self.joints[0].name
        prefix = root.removeprefix("ground_")
        return tuple(f"{prefix}_{word}" for word in TRANSLATIONS)


def render_model(model: OsimModel, provenance: str) -> bytes:
    """Return the XML of a model.

    Args:
        model: The model.
        provenance: From what the model was made; any text.
    """
    xml = XmlWriter()
    xml.open("OpenSimDocument", Version=VERSION)
    xml.open("Model", name="marey")
    if provenance:
        xml.leaf("credits", provenance)
    xml.leaf("gravity", f"0 {-GRAVITY} 0")
    xml.leaf("length_units", "meters")
    xml.leaf("force_units", "N")
    sets = {
        "BodySet": partial(_write_bodies, xml, model),
        "JointSet": partial(_write_joints, xml, model),
        "MarkerSet": partial(_write_markers, xml, model),
    }
    for tag, write_objects in sets.items():
        with xml.open(tag, name=tag.lower()), xml.open("objects"):
            write_objects()
    return xml.render()


def to_file(vectors: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3"]:
    """Return vectors in OpenSim's axes: metres, Y up."""
    return points_to_file(vectors, "m", "y")


def _orientation(R: Float[Array, "3 3"]) -> str:
    """Return a rotation as OpenSim writes it: body-fixed angles about x, y, z."""
    C = rotation_to_z_up("y")
    wxyz = geometry.quat_from_matrix(C.T @ R @ C)
    return spell(geometry.euler_from_quat(wxyz, "XYZ"))


# --- bodies --------------------------------------------------------------------------


def _write_bodies(xml: XmlWriter, model: OsimModel) -> None:
    multibody, names = model.multibody, model.names
    C = rotation_to_z_up("y")
    for body, joint in enumerate(multibody.joint.tolist()):
        inertia = C.T @ multibody.inertia[body] @ C
        entries = inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        with xml.open("Body", name=names.joints[joint]):
            _write_frames(xml, model, body)
            xml.leaf("mass", spell(multibody.mass[body]))
            xml.leaf("mass_center", spell(to_file(multibody.centre[body])))
            xml.leaf("inertia", spell(entries))


def _write_frames(xml: XmlWriter, model: OsimModel, body: int) -> None:
    """Write fixed joints, sensors and drawn bones as frames of a body."""
    multibody, names = model.multibody, model.names
    bones, sensors = list(multibody.bones(body)), list(multibody.sensors(body))
    fixed = multibody.fixed_joints(body)
    if not (bones or fixed or sensors):
        return
    with xml.open("components"):
        for joint in fixed:
            name, position = names.joints[joint], multibody.joint_position[joint]
            _open_frame(xml, name, "..", position, np.eye(3)).close()
        for sensor, T in sensors:
            name = names.sensors[sensor]
            _open_frame(xml, name, "..", T[:3, 3], T[:3, :3]).close()
        for bone in bones:
            _write_bone(xml, f"{names.joints[bone.joint]}_bone", bone)


def _open_frame(
    xml: XmlWriter,
    name: str,
    parent: str,
    position: Float[Array, " 3"],
    R: Float[Array, "3 3"],
) -> ExitStack:
    """Begin a frame that is fixed to another."""
    frame = xml.open("PhysicalOffsetFrame", name=name)
    xml.leaf("socket_parent", parent)
    xml.leaf("translation", spell(to_file(position)))
    xml.leaf("orientation", _orientation(R))
    return frame


def _write_bone(xml: XmlWriter, name: str, bone: Bone) -> None:
    """Write a bone to look at: a cylinder along y of its own frame."""
    with (
        _open_frame(xml, name, "..", bone.middle, bone.R),
        xml.open("attached_geometry"),
        xml.open("Cylinder", name=f"{name}_geometry"),
    ):
        xml.leaf("socket_frame", "..")
        xml.leaf("radius", spell(bone.radius))
        xml.leaf("half_height", spell(0.5 * bone.length))


# --- joints --------------------------------------------------------------------------


def _write_joints(xml: XmlWriter, model: OsimModel) -> None:
    for body, joint in enumerate(model.multibody.joint.tolist()):
        named = model.joints[joint]
        # A pin rotates about the z axis of its frames, a custom joint about any axes.
        is_pin = len(named.coordinates) == 1
        tag = "PinJoint" if is_pin else "CustomJoint"
        with xml.open(tag, name=named.name):
            xml.leaf("socket_parent_frame", f"{named.name}_parent")
            xml.leaf("socket_child_frame", f"{named.name}_child")
            with xml.open("coordinates"):
                _write_coordinates(xml, model, joint)
            with xml.open("frames"):
                _write_joint_frames(xml, model, body, joint, is_pin=is_pin)
            if not is_pin:
                with xml.open("SpatialTransform"):
                    _write_transform_axes(xml, model, joint)


def _write_coordinates(xml: XmlWriter, model: OsimModel, joint: int) -> None:
    names = model.joints[joint].coordinates
    for name, limits in zip(names, model.ranges[joint], strict=True):
        free = not np.isfinite(limits).all()
        shown = np.array([-np.pi, np.pi]) if free else limits
        _write_coordinate(xml, name, 0.0, shown)
    if joint == 0:
        rest = to_file(model.multibody.skeleton.offset[0])
        shown = MAX_TRANSLATION_M * np.array([-1.0, 1.0])
        for name, value in zip(model.translations, rest, strict=True):
            _write_coordinate(xml, name, float(value), shown + value)


def _write_coordinate(
    xml: XmlWriter, name: str, value: float, limits: Float[Array, " 2"]
) -> None:
    with xml.open("Coordinate", name=name):
        xml.leaf("default_value", spell(value))
        xml.leaf("range", spell(limits))
        # With any coordinate clamped, OpenSim's inverse kinematics leaves residuals a
        # few percent above the least ones.
        xml.leaf("clamped", "false")


def _write_joint_frames(
    xml: XmlWriter, model: OsimModel, body: int, joint: int, *, is_pin: bool
) -> None:
    """Write the frames that coincide at zero: R_parent Z = R_child."""
    named, multibody = model.joints[joint], model.multibody
    parent = int(multibody.parent[body])
    above = "/ground"
    if parent >= 0:
        above = f"/bodyset/{model.names.joints[multibody.joint[parent]]}"
    position = np.zeros(3) if joint == 0 else multibody.position[body]
    R = _frame_along(named.sequence.axes[0]) if is_pin else np.eye(3)
    _open_frame(xml, f"{named.name}_parent", above, position, R).close()
    own, R_child = f"/bodyset/{model.names.joints[joint]}", named.sequence.zero.T @ R
    _open_frame(xml, f"{named.name}_child", own, np.zeros(3), R_child).close()


def _frame_along(axis: Float[Array, " 3"]) -> Float[Array, "3 3"]:
    """Return a frame, in marey's axes, whose z axis in the file is this axis."""
    z_of_file = rotation_to_z_up("y")[:, 2]
    return shortest_rotation(z_of_file, axis)


def _write_transform_axes(xml: XmlWriter, model: OsimModel, joint: int) -> None:
    named = model.joints[joint]
    axes = list(to_file(named.sequence.axes))
    coordinates: list[str] = list(named.coordinates)
    if len(axes) == 2:
        axes.append(np.cross(axes[0], axes[1]))
        coordinates.append("")
    for k in range(3):
        _write_transform_axis(xml, f"rotation{k + 1}", axes[k], coordinates[k])
    moving = model.translations if joint == 0 else ("", "", "")
    for k, axis in enumerate(np.eye(3)):
        _write_transform_axis(xml, f"translation{k + 1}", axis, moving[k])


def _write_transform_axis(
    xml: XmlWriter, name: str, axis: Float[Array, " 3"], coordinate: str
) -> None:
    function, *content = ("Constant", "value", "0")
    if coordinate:
        function, *content = ("LinearFunction", "coefficients", "1 0")
    with xml.open("TransformAxis", name=name):
        xml.leaf("coordinates", coordinate)
        xml.leaf("axis", spell(axis))
        with xml.open(function, name="function"):
            xml.leaf(*content)


# --- markers -------------------------------------------------------------------------


def _write_markers(xml: XmlWriter, model: OsimModel) -> None:
    multibody = model.multibody
    skeleton = multibody.skeleton
    fixed, places = _on_landmarks(skeleton), multibody.marker_position
    for marker, name in enumerate(model.names.markers):
        body = multibody.body_of_joint[skeleton.marker_joint[marker]]
        own = multibody.joint[body]
        with xml.open("Marker", name=name):
            xml.leaf("socket_parent_frame", f"/bodyset/{model.names.joints[own]}")
            xml.leaf("location", spell(to_file(places[marker])))
            xml.leaf("fixed", "true" if fixed[marker] else "false")


def _on_landmarks(skeleton: Skeleton) -> Bool[Array, " marker"]:
    """Return which markers sit on bony landmarks, and so keep their place on a bone."""
    on_landmark = np.zeros(len(skeleton.marker_labels), dtype=bool)
    segments = [skeleton.names[joint] for joint in skeleton.marker_joint]
    found = find_landmarks(skeleton.marker_labels, segments)
    on_landmark[[k for markers in found.markers.values() for k in markers]] = True
    return on_landmark
