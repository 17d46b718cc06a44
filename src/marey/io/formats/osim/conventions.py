"""Names, axes and zeros of a person's coordinates, as users of OpenSim know them.

Names and signs are those of the models gait2392 (Delp and others 1990) and, for the
knee, which bends by positive angles, and the arms, of Rajagopal and others (2016). All
angles are zero for a person who stands upright with hanging arms; knees and elbows are
zero when straight. OpenSim's axes are x forward, y up and z to the right. The names and
the order of the axes are in `coordinates.toml`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from marey.anatomy import names as vrm
from marey.anatomy.person_joints import TRUNK_PARTS, recognise_person
from marey.anatomy.t_pose import facing_rotation, shortest_rotation
from marey.io.multibody.coordinates import RotationSequence
from marey.io.text.names import make_unique
from marey.numerics import Array, Float, geometry
from marey.options import read_package_table
from marey.skeleton import Skeleton

DOWN = np.array([0.0, 0.0, -1.0])

AXES = {
    "x": np.array([1.0, 0.0, 0.0]),
    "y": np.array([0.0, 0.0, 1.0]),
    "z": np.array([0.0, -1.0, 0.0]),
}
"""OpenSim's axes in marey's world, for a person that faces +x."""

MIRRORED = {"x": -1.0, "y": -1.0, "z": 1.0}
"""Signs of rotations about these axes on the left side of the body."""

SIDE_ENDINGS = {vrm.LEFT: "_l", vrm.RIGHT: "_r", "": ""}


@dataclass(frozen=True, slots=True)
class Convention:
    """What a joint of a person is called, and how it rotates on the right side."""

    joint: str
    coordinates: tuple[str, str, str]
    axes: tuple[str, str, str]
    """OpenSim's axes of the three rotations, "-z" a negative one."""


NECK_PARTS = (vrm.NECK, vrm.HEAD)
TRUNK_WORDS = (("back", "lumbar"), ("thorax", "thorax"), ("upper_thorax",) * 2)
NECK_WORDS = (("neck", "neck"), ("head", "head"))
"""Names of joints that move and of their coordinates, upward: the lowest that moves has
the first name."""

NEXT_PART = {
    vrm.UPPER_ARM: vrm.LOWER_ARM,
    vrm.LOWER_ARM: vrm.HAND,
    vrm.UPPER_LEG: vrm.LOWER_LEG,
    vrm.LOWER_LEG: vrm.FOOT,
}
"""Where the bones end that decide the zero of their joint."""

FIRST_PART = {
    vrm.LOWER_ARM: vrm.UPPER_ARM,
    vrm.HAND: vrm.UPPER_ARM,
    vrm.LOWER_LEG: vrm.UPPER_LEG,
    vrm.FOOT: vrm.UPPER_LEG,
    vrm.TOES: vrm.UPPER_LEG,
}
"""The part that carries each part of a limb; at zero it points down."""


@dataclass(frozen=True, slots=True, eq=False)
class NamedJoint:
    """A joint of the file: its name, its coordinates and their axes."""

    name: str
    coordinates: tuple[str, ...]
    sequence: RotationSequence


def name_joints(skeleton: Skeleton, names: Sequence[str]) -> Mapping[int, NamedJoint]:
    """Return names and axes of every joint that is not fixed, all names unique.

    Args:
        skeleton: The joints; a person at rest in any upright pose.
        names: Names of the joints in the file, for those that are none of a person's.
    """
    person = _Person.of(skeleton)
    found = {
        joint: _person_joint(person, joint)
        if joint in person.convention
        else _plain_joint(skeleton, joint, names[joint])
        for joint, kind in enumerate(skeleton.kind)
        if kind != "fixed"
    }
    joints = make_unique([joint.name for joint in found.values()])
    coordinates = [word for joint in found.values() for word in joint.coordinates]
    word = iter(make_unique(coordinates))
    return {
        joint: NamedJoint(
            joints[i], tuple(next(word) for _ in named.coordinates), named.sequence
        )
        for i, (joint, named) in enumerate(found.items())
    }


# --- people --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Person:
    """A skeleton whose joints have names of a person's; empty for other figures."""

    skeleton: Skeleton
    part: Mapping[int, str]
    """Anatomical name of each joint, with its side."""

    joint: Mapping[str, int]
    """The joint of each anatomical name."""

    convention: Mapping[int, Convention]
    R_facing: Float[Array, "3 3"]
    """Rotation from a person that faces +x to this one."""

    R_down: Mapping[str, Float[Array, "3 3"]]
    """Rotation at which each upper arm and upper leg points down."""

    @classmethod
    def of(cls, skeleton: Skeleton) -> "_Person":
        """Return the person that a skeleton is."""
        part = recognise_person(skeleton)
        joint = {name: j for j, name in part.items()}
        convention = dict(_conventions_of(part))
        for parts, words in ((TRUNK_PARTS, TRUNK_WORDS), (NECK_PARTS, NECK_WORDS)):
            joints = [joint[name] for name in parts if name in joint]
            moving = [j for j in joints if skeleton.kind[j] != "fixed"]
            for j, (name, prefix) in zip(moving, words, strict=False):
                convention[j] = _trunk_convention(name, prefix)
        rest = skeleton.rest()[:, :3, 3]
        down = {
            side + first: _rotation_down(rest, joint, side, first)
            for side in vrm.SIDES
            for first in (vrm.UPPER_ARM, vrm.UPPER_LEG)
        }
        return cls(skeleton, part, joint, convention, _facing(rest, joint), down)

    def side(self, joint: int) -> str:
        """Return the side of a joint."""
        return vrm.side_of(self.part.get(joint, ""))

    def part_without_side(self, joint: int) -> str:
        """Return the anatomical name of a joint without its side."""
        return vrm.without_side(self.part.get(joint, ""))


def _conventions_of(part: Mapping[int, str]) -> Iterator[tuple[int, Convention]]:
    """Yield the joints whose coordinates the table names, with their convention."""
    table = read_package_table("marey.io.formats.osim", "coordinates.toml")
    for joint, name in part.items():
        row = table.get(vrm.without_side(name))
        if row is not None:
            names, axes = tuple(row["coordinates"]), tuple(row["axes"])
            yield joint, Convention(row["joint"], names, axes)


def _trunk_convention(joint: str, prefix: str) -> Convention:
    names = (f"{prefix}_extension", f"{prefix}_bending", f"{prefix}_rotation")
    return Convention(joint, names, ("z", "x", "y"))


def _facing(
    rest: Float[Array, "joint 3"], joint: Mapping[str, int]
) -> Float[Array, "3 3"]:
    """Return the rotation about the vertical to where the legs say that front is."""
    left, right = (joint.get(name) for name in vrm.both_sides(vrm.UPPER_LEG))
    if left is None or right is None:
        return np.eye(3)
    return facing_rotation(rest[left], rest[right])


def _rotation_down(
    rest: Float[Array, "joint 3"], joint: Mapping[str, int], side: str, part: str
) -> Float[Array, "3 3"]:
    """Return the shortest rotation of an upper arm or leg at rest to where it hangs."""
    upper, lower = joint.get(side + part), joint.get(side + NEXT_PART[part])
    if upper is None or lower is None:
        return np.eye(3)
    return shortest_rotation(rest[lower] - rest[upper], DOWN)


def _person_joint(person: _Person, joint: int) -> NamedJoint:
    convention, side = person.convention[joint], person.side(joint)
    ending = SIDE_ENDINGS[side]
    axes, used = _nearest_axes(
        person.skeleton, joint, np.stack(_wanted_axes(person, joint))
    )
    coordinates = tuple(convention.coordinates[k] + ending for k in used)
    zero = _zero(person, joint, axes, used)
    sequence = RotationSequence(axes, zero)
    return NamedJoint(convention.joint + ending, coordinates, sequence)


def _wanted_axes(person: _Person, joint: int) -> list[Float[Array, " 3"]]:
    """Return the three axes of a joint in its frame, mirrored on the left side."""
    is_left = person.side(joint) == vrm.LEFT
    R = person.R_facing
    first = FIRST_PART.get(person.part_without_side(joint))
    if first is not None:
        R = person.R_down[person.side(joint) + first].T @ R
    axes = []
    for word in person.convention[joint].axes:
        letter = word[-1]
        sign = -1.0 if word.startswith("-") else 1.0
        axes.append(R @ AXES[letter] * sign * (MIRRORED[letter] if is_left else 1.0))
    return axes


def _nearest_axes(
    skeleton: Skeleton, joint: int, wanted: Float[Array, "3 3"]
) -> tuple[Float[Array, "angle 3"], list[int]]:
    """Return the axes of a joint with the signs of the wanted ones, and which they are.

    A ball rotates about the wanted axes; a hinge about its own, which counts as the
    nearest of them.
    """
    count = {"hinge": 1, "universal": 2}.get(skeleton.kind[joint])
    if count is None:
        return wanted, [0, 1, 2]
    axes: list[Array] = []
    used: list[int] = []
    for own in skeleton.axes[joint, :count]:
        cosine = wanted @ own
        nearest = max(set(range(3)) - set(used), key=lambda k: abs(cosine[k]))
        axes.append(np.copysign(1.0, cosine[nearest]) * own)
        used.append(nearest)
    return np.stack(axes), used


def _zero(
    person: _Person, joint: int, axes: Float[Array, "angle 3"], used: list[int]
) -> Float[Array, "3 3"]:
    """Return the rotation of a joint at which its coordinates are zero."""
    part, side = person.part_without_side(joint), person.side(joint)
    if part in (vrm.UPPER_ARM, vrm.UPPER_LEG) and len(axes) == 3:
        return person.R_down[side + part]
    after = person.joint.get(side + NEXT_PART.get(part, "-"))
    bends = part in FIRST_PART and after is not None and 0 in used
    # The zero comes after the rotations: of two axes only the last can take it.
    if not bends or (len(axes) == 2 and used[0] == 0):
        return np.eye(3)
    rest = person.skeleton.rest()[:, :3, 3]
    bend = axes[used.index(0)]
    angle = _angle_about(bend, person.skeleton.offset[joint], rest[after] - rest[joint])
    return geometry.rotation_exp(-angle * bend)


def _angle_about(
    axis: Float[Array, " 3"], before: Float[Array, " 3"], after: Float[Array, " 3"]
) -> float:
    """Return the angle about an axis from one bone to the next, in radians."""
    across = before - (before @ axis) * axis
    return float(np.arctan2(axis @ np.cross(across, after), across @ after))


# --- other figures -------------------------------------------------------------------


def _plain_joint(skeleton: Skeleton, joint: int, name: str) -> NamedJoint:
    """Return the coordinates of a joint that is none of a person's."""
    kind = skeleton.kind[joint]
    words: tuple[str, ...]
    if kind == "hinge":
        axes, words = skeleton.axes[joint, :1], ("angle",)
    elif kind == "universal":
        axes, words = skeleton.axes[joint], ("angle1", "angle2")
    else:
        axes, words = np.stack([*AXES.values()]), ("rx", "ry", "rz")
    joint_name = f"ground_{name}" if joint == 0 else f"{name}_joint"
    coordinates = tuple(f"{name}_{word}" for word in words)
    return NamedJoint(joint_name, coordinates, RotationSequence(axes, np.eye(3)))
