"""A person whose angles are measured: the motion, and what it says of the body."""

from collections.abc import Mapping
from dataclasses import dataclass

from marey.anatomy import names as vrm
from marey.anatomy.landmarks import Landmarks, find_landmarks
from marey.anatomy.person_joints import recognise_person
from marey.anatomy.t_pose import facing_rotation
from marey.errors import DataError
from marey.motion import Motion
from marey.numerics import Array, Float
from marey.skeleton import Skeleton

CHEST_SEGMENTS = (vrm.UPPER_CHEST, vrm.CHEST, vrm.SPINE)
"""Segments that stand for the thorax, the uppermost first."""


@dataclass(frozen=True, slots=True, eq=False)
class Person:
    """A motion of a person, with its segments, landmarks and poses in the world."""

    motion: Motion
    joint: Mapping[str, int]
    """Joint of each observed segment, by its anatomical name."""

    marks: Landmarks
    """Markers on bony landmarks."""

    T_world: Float[Array, "frame joint 4 4"]
    """Poses of the joints in the world."""

    R_rest: Float[Array, "3 3"]
    """The directions forward, left and up at rest, as columns."""

    @classmethod
    def of(cls, motion: Motion) -> "Person":
        """Return the person of a motion.

        Raises:
            DataError: If it is no person.
        """
        joint = _joint_of_segments(motion)
        rest = motion.skeleton.rest()[:, :3, 3]
        hips = (rest[joint[name]] for name in vrm.both_sides(vrm.UPPER_LEG))
        return cls(
            motion,
            joint,
            _landmarks_on(motion.skeleton),
            motion.T_world_joint(),
            facing_rotation(*hips),
        )

    @property
    def skeleton(self) -> Skeleton:
        """The skeleton of the motion."""
        return self.motion.skeleton

    @property
    def R_world(self) -> Float[Array, "frame joint 3 3"]:
        """Rotations of the joints in the world."""
        return self.T_world[..., :3, :3]


def _joint_of_segments(motion: Motion) -> dict[str, int]:
    """Return the joint of each observed segment, by its anatomical name.

    Raises:
        DataError: If it is no person.
    """
    skeleton = motion.skeleton
    segments = {
        name: joint
        for joint, name in recognise_person(skeleton).items()
        if skeleton.observed[joint] and not skeleton.is_end[joint]
    }
    if not vrm.is_person(segments) or vrm.has_tail(skeleton.names):
        raise DataError(
            "angles",
            found=", ".join(skeleton.names),
            needed="a person: hips and two upper legs by names that marey knows",
        )
    chest = next((name for name in CHEST_SEGMENTS if name in segments), None)
    if chest is not None:
        segments[vrm.CHEST] = segments[chest]
    return segments


def _landmarks_on(skeleton: Skeleton) -> Landmarks:
    """Return the bony landmarks that markers of a skeleton sit on."""
    segments = [skeleton.names[j] for j in skeleton.marker_joint]
    bare = [vrm.without_subject(name) for name in segments]
    return find_landmarks(skeleton.marker_labels, bare)
