"""A figure with known truth: skeleton, flesh, limbs and the motions it can perform."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from marey.errors import OptionError
from marey.motion import Contact, Motion
from marey.numerics import geometry
from marey.skeleton import Skeleton
from marey.synth.figures.surfaces import Shape
from marey.synth.performance.angles import joint_angles, rotations

if TYPE_CHECKING:
    from marey.synth.truth import Recording

DEGREES_OF_FREEDOM = {"root": 6, "ball": 3, "universal": 2, "hinge": 1, "fixed": 0}


@dataclass(frozen=True, slots=True)
class Limb:
    """A leg or an arm: two bones and what they carry, as joint numbers."""

    upper: int
    middle: int
    end: int
    tips: tuple[int, ...] = ()
    """The ends that touch the ground: heel and ball of a foot, or one paw."""

    side: float = 0.0
    """+1 on the left, -1 on the right."""

    phase: float = 0.0
    """Share of the stride by which this leg is behind the first."""

    stance: float = 0.62
    """Share of the stride during which a leg stands."""

    @property
    def joints(self) -> tuple[int, int, int]:
        """Upper, middle and end joint."""
        return self.upper, self.middle, self.end


@dataclass(frozen=True, slots=True, eq=False)
class Pose:
    """What a motion gives: root poses, joint angles and contacts."""

    T_world_root: Float[np.ndarray, "frame 4 4"]
    angles: Float[np.ndarray, "frame joint 3"]
    contacts: tuple[Contact, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Figure:
    """A performer, animal or mechanism whose every length is known.

    At rest it faces +x, its left is +y, up is +z.
    """

    name: str
    skeleton: Skeleton
    """The true skeleton, limits included."""

    shapes: tuple[Shape, ...]
    """Its flesh: solids fixed to joints. Markers sit on their skin."""

    neutral: Float[np.ndarray, "joint 3"]
    """Joint angles of standing at ease, in radians."""

    motions: tuple[str, ...]
    """The motions it can perform, the usual one first."""

    legs: tuple[Limb, ...] = ()
    arms: tuple[Limb, ...] = ()
    roams: float = 1.0
    """How far the root wanders in motions without legs: 0 = bolted down, 1 = 0.5 m."""

    marker_sets: dict[str, tuple[tuple[str, str, float, float | int], ...]] = field(
        default_factory=dict
    )
    """Named marker sets: label, shape, place along it, degrees round it."""

    @property
    def n_dof(self) -> int:
        """Degrees of freedom, the six of the root included."""
        return sum(DEGREES_OF_FREEDOM[kind] for kind in self.skeleton.kind)

    @property
    def body_of(self) -> Int[np.ndarray, " joint"]:
        """The joint that moves each joint: itself, or the one it is fixed to."""
        body = np.arange(self.skeleton.n_joints)
        for joint, kind in enumerate(self.skeleton.kind):
            if kind == "fixed":
                body[joint] = body[self.skeleton.parent[joint]]
        return body

    @property
    def bodies(self) -> Int[np.ndarray, " body"]:
        """The joints that carry a rigid body of their own: all but the fixed ones."""
        return np.unique(self.body_of)

    @property
    def moving(self) -> tuple[int, ...]:
        """The joints that turn: all but the root and the fixed ones."""
        return tuple(int(joint) for joint in self.bodies[1:])

    @property
    def height(self) -> float:
        """Greatest height of the joints at rest, in metres."""
        rest = self.skeleton.rest()[:, 2, 3]
        return float(rest.max() - min(rest.min(), 0.0))

    def angles(self, motion: Motion) -> Float[np.ndarray, "frame joint 3"]:
        """Return joint angles in the terms of `Skeleton.limits`, in radians."""
        return joint_angles(self.skeleton, motion.wxyz)

    def perform(
        self,
        motion: str = "",
        *,
        seconds: float | None = None,
        rate: float = 120.0,
        seed: int = 0,
    ) -> Motion:
        """Return the true motion, with its true contacts.

        A motion is a function of time, sampled here: at another rate the same curve
        comes out. Frame k is at k / rate; there are round(seconds * rate) frames.

        Args:
            motion: One of `motions`; the first of them when left out.
            seconds: Length; when left out, what suits the motion.
            rate: Frames per second.
            seed: Chooses the performance among many like it.

        Raises:
            OptionError: If the figure does not know the motion, or the length or rate
                is not above zero.
        """
        from marey.synth.performance.motions import MOTIONS, SECONDS

        name = motion or self.motions[0]
        if name not in self.motions:
            raise OptionError(
                "motion", found=name, needed=f"one of {', '.join(self.motions)}"
            )
        length = SECONDS[name] if seconds is None else seconds
        times = sample_times(length, rate)
        pose = MOTIONS[name](self, times, seconds=length, seed=seed)
        return as_motion(self.skeleton, pose, rate)

    def record(self, motion: str = "", **options: Any) -> "Recording":
        """Return a recording of the figure; `marey.synth.record` names the options."""
        from marey.synth.record import record

        return record(self, motion, **options)

    def __str__(self) -> str:
        return (
            f"{self.name}: {len(self.bodies)} bodies, {self.n_dof} degrees of freedom,"
            f" {self.height:.2f} m; performs {', '.join(self.motions)}"
        )


def sample_times(seconds: float, rate: float) -> Float[np.ndarray, " frame"]:
    """Return the frames' times, k / rate, of a length in seconds."""
    for name, value in (("seconds", seconds), ("rate", rate)):
        if not (np.isfinite(value) and value > 0.0):
            raise OptionError(name, found=value, needed="a finite number above 0")
    return np.arange(max(round(seconds * rate), 1)) / rate


def as_motion(skeleton: Skeleton, pose: Pose, rate: float) -> Motion:
    """Return a pose's frames as a Motion; contacts are cut to its length."""
    last = (len(pose.angles) - 1) / rate
    contacts = tuple(
        Contact(c.joint, max(c.start, 0.0), min(c.end, last), c.anchor)
        for c in pose.contacts
        if c.start < last and c.end > 0.0
    )
    return Motion(
        skeleton=skeleton,
        T_world_root=pose.T_world_root,
        wxyz=rotations(skeleton, pose.angles),
        rate=rate,
        contacts=contacts,
    )


def root_pose(
    place: Float[np.ndarray, "frame 3"], rotvec: Float[np.ndarray, "frame 3"]
) -> Float[np.ndarray, "frame 4 4"]:
    """Return T_world_root: lean and list (x, y of rotvec) first, then the heading z."""
    heading = geometry.rotation_exp(rotvec * [0.0, 0.0, 1.0])
    lean = geometry.rotation_exp(rotvec * [1.0, 1.0, 0.0])
    return geometry.transform(heading @ lean, place)
