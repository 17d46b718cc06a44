"""A figure with known truth: skeleton, surfaces, limbs and motions."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from marey.errors import OptionError, check_choice
from marey.motion import Contact, Motion
from marey.numerics import Float, Int, geometry
from marey.skeleton import Skeleton, rotating_joints
from marey.synth.figures.surfaces import Surface
from marey.synth.performance.angles import joint_angles, quaternions_from_angles

if TYPE_CHECKING:
    from marey.synth.truth import Recording

DEGREES_OF_FREEDOM = {"root": 6, "ball": 3, "universal": 2, "hinge": 1, "fixed": 0}


@dataclass(frozen=True, slots=True)
class FigureLimb:
    """A leg or an arm: two bones and an end, given by joint numbers."""

    upper: int
    middle: int
    end: int
    tips: tuple[int, ...] = ()
    """The joints that touch the ground: heel and toes of a foot, or one paw."""

    side: float = 0.0
    """+1 for a left limb, -1 for a right one."""

    phase: float = 0.0
    """Phase lag behind the first leg, as a share of the stride."""

    stance: float = 0.62
    """Share of the stride in which the leg is in stance."""

    @property
    def joints(self) -> tuple[int, int, int]:
        """Upper, middle and end joint."""
        return self.upper, self.middle, self.end


@dataclass(frozen=True, slots=True, eq=False)
class PoseSequence:
    """Root poses, joint angles and contacts over time: the input of a `Motion`."""

    T_world_root: Float[np.ndarray, "frame 4 4"]
    angles: Float[np.ndarray, "frame joint 3"]
    contacts: tuple[Contact, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Figure:
    """A person, animal or mechanism whose dimensions are all known.

    In the rest pose the figure faces +x, its left side is +y, and up is +z.
    """

    name: str
    skeleton: Skeleton
    """The true skeleton with its joint limits."""

    surfaces: tuple[Surface, ...]
    """Closed surfaces fixed to joints. Markers are placed on them."""

    neutral: Float[np.ndarray, "joint 3"]
    """Joint angles of the neutral standing pose, in radians."""

    motions: tuple[str, ...]
    """Names of the motions it can perform; the first is the default."""

    legs: tuple[FigureLimb, ...] = ()
    arms: tuple[FigureLimb, ...] = ()
    root_travel: float = 1.0
    """Travel of the root in "swing": 0 = fixed to the ground, 1 = 0.5 m."""

    marker_sets: dict[str, tuple[tuple[str, str, float, float | int], ...]] = field(
        default_factory=dict
    )
    """Marker sets by name. Each marker has a label, a surface, a position along the
    surface (0 to 1) and an angle around it in degrees."""

    @property
    def tips(self) -> tuple[int, ...]:
        """The joints of all legs that touch the ground."""
        return tuple(tip for leg in self.legs for tip in leg.tips)

    @property
    def n_dof(self) -> int:
        """Number of degrees of freedom, including the six of the root."""
        return sum(DEGREES_OF_FREEDOM[kind] for kind in self.skeleton.kind)

    @property
    def body_of(self) -> Int[np.ndarray, " joint"]:
        """The joint whose body carries each joint: itself or the one it is fixed to."""
        return rotating_joints(self.skeleton)

    @property
    def bodies(self) -> Int[np.ndarray, " body"]:
        """The joints that have a rigid body of their own: all except the fixed ones."""
        return np.unique(self.body_of)

    @property
    def moving_joints(self) -> tuple[int, ...]:
        """The joints that rotate: all except the root and the fixed ones."""
        return tuple(int(joint) for joint in self.bodies[1:])

    @property
    def height(self) -> float:
        """Height of the highest joint in the rest pose, in metres."""
        rest = self.skeleton.rest()[:, 2, 3]
        return float(rest.max() - min(rest.min(), 0.0))

    def angles(self, motion: Motion) -> Float[np.ndarray, "frame joint 3"]:
        """Return the joint angles that `Skeleton.limits` refers to, in radians."""
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

        A motion is a function of time, so two rates sample the same curve. Frame k is
        at time k / rate, and there are round(seconds * rate) frames.

        Args:
            motion: One of `motions`. Default: the first.
            seconds: Length. Default: 30 s for "exercise", 10 s for other motions.
            rate: Frames per second.
            seed: Seed of the random variation of the motion.

        Raises:
            OptionError: If the figure cannot perform the motion, or if the length or
                the rate is not positive.
        """
        from marey.synth.performance.motions import DEFAULT_SECONDS, MOTIONS

        name = motion or self.motions[0]
        check_choice("motion", name, self.motions)
        length = DEFAULT_SECONDS[name] if seconds is None else seconds
        perform, stream = MOTIONS[name]
        rng = np.random.default_rng([seed, stream])
        poses = perform(self, sample_times(length, rate), length, rng)
        return motion_from_poses(self.skeleton, poses, rate)

    def record(self, motion: str = "", **options: Any) -> "Recording":
        """Return a recording of the figure; `marey.synth.record` lists the options."""
        from marey.synth.recording import record

        return record(self, motion, **options)

    def __str__(self) -> str:
        return (
            f"{self.name}: {len(self.bodies)} bodies, {self.n_dof} degrees of freedom,"
            f" {self.height:.2f} m; performs {', '.join(self.motions)}"
        )


def sample_times(seconds: float, rate: float) -> Float[np.ndarray, " frame"]:
    """Return the times k / rate of all frames, in seconds."""
    for name, value in (("seconds", seconds), ("rate", rate)):
        if not (np.isfinite(value) and value > 0.0):
            raise OptionError(name, found=value, needed="a finite number above 0")
    return np.arange(max(round(seconds * rate), 1)) / rate


def motion_from_poses(skeleton: Skeleton, poses: PoseSequence, rate: float) -> Motion:
    """Return the motion of a pose sequence, with its contacts clipped to its length."""
    last = (len(poses.angles) - 1) / rate
    contacts = tuple(
        Contact(c.joint, max(c.start, 0.0), min(c.end, last), c.anchor)
        for c in poses.contacts
        if c.start < last and c.end > 0.0
    )
    return Motion(
        skeleton=skeleton,
        T_world_root=poses.T_world_root,
        wxyz=quaternions_from_angles(skeleton, poses.angles),
        rate=rate,
        contacts=contacts,
    )


def root_poses(
    position: Float[np.ndarray, "frame 3"], rotvec: Float[np.ndarray, "frame 3"]
) -> Float[np.ndarray, "frame 4 4"]:
    """Return T_world_root (m): the tilt (x, y of rotvec, rad), then the heading (z)."""
    heading = geometry.rotation_exp(rotvec * [0.0, 0.0, 1.0])
    tilt = geometry.rotation_exp(rotvec * [1.0, 1.0, 0.0])
    return geometry.transform(heading @ tilt, position)
