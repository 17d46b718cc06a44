"""What a comparison with the truth says, in named numbers."""

from dataclasses import dataclass, fields
from math import isnan

MILLI = 1e3


@dataclass(frozen=True, slots=True, kw_only=True)
class BodiesScore:
    """How well the bodies were found."""

    found: int
    """Number of bodies found that carry a marker or a sensor."""

    true: int
    """Number of true bodies that carry a marker or a sensor."""

    matched: int
    """Number of found bodies that have a true one."""

    ari: float
    """Adjusted Rand index of the markers, one body each; NaN without markers."""

    ari_shared: float
    """The same where a marker in two bodies counts for the better one."""

    markers_right: float
    """Share of the markers whose body is the match of their true one."""

    def __str__(self) -> str:
        bodies = f"bodies: {self.found} found of {self.true}, {self.matched} matched"
        if isnan(self.ari):
            return bodies
        return (
            f"{bodies}; adjusted Rand index {self.ari:.3f} (shared "
            f"{self.ari_shared:.3f}), {100.0 * self.markers_right:.1f} % of markers "
            "right"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JointsScore:
    """How well the joints were found, over the true joints whose bodies were matched.

    Distances are root mean squares over frames and joints, in the world.
    """

    found: int
    """Number of true joints with a fit."""

    true: int
    center: float
    """Distance of the joint centres from the true ones, in metres."""

    center_max: float
    """The worst joint's, rms over its frames."""

    off_axis: float
    """The same distance square to the axis where the true joint is a hinge."""

    axis: float
    """Angle of the hinge axes to the true ones, rms in radians; NaN without any."""

    kinds_right: int
    """Number of joints whose kind is right."""

    def __str__(self) -> str:
        hinges = ""
        if not isnan(self.axis):
            off = MILLI * self.off_axis
            hinges = f", off axis {off:.2f} mm; axis {self.axis:.4f} rad"
        return (
            f"joints: {self.found} of {self.true}; centre {MILLI * self.center:.2f} mm "
            f"rms, {MILLI * self.center_max:.2f} mm at worst{hinges}; "
            f"{self.kinds_right} kinds right"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeScore:
    """How well the bodies were connected, as edges without direction.

    True bodies that were not found are taken out of the true tree, their children
    going to their parent.
    """

    right: int
    wrong: int
    """Edges found that are not true."""

    missing: int
    """True edges that were not found."""

    @property
    def complete(self) -> bool:
        """Whether the tree is exactly the true one."""
        return self.wrong == self.missing == 0

    def __str__(self) -> str:
        return (
            f"tree: {self.right} edges right, {self.wrong} wrong, "
            f"{self.missing} missing"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SkeletonScore:
    """How well lengths were found: distances between joints on the same body.

    Such distances do not depend on which body is the root.
    """

    compared: int
    """Number of lengths in both skeletons."""

    true: int
    """Number of lengths in the true skeleton."""

    rms: float
    """Root mean square error, in metres."""

    max: float
    mean: float
    """Mean signed error, found less true, in metres."""

    def __str__(self) -> str:
        return (
            f"skeleton: {self.compared} of {self.true} lengths; error "
            f"{MILLI * self.rms:.2f} mm rms, {MILLI * self.max:.2f} mm at most, "
            f"{MILLI * self.mean:+.2f} mm mean"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MotionScore:
    """How well the motion was found, over matched joints."""

    matched: int
    true: int
    position: float
    """Mean distance of the joints from the true ones, in metres."""

    position_max: float
    """The worst joint's mean distance."""

    rotation: float
    """Angle of the joints' orientations to the true ones, rms in radians, after a
    constant turn of each: how a joint's axes lie is convention."""

    root: float
    """How far the body that goes with the true root moves in the root's frame, rms in
    metres, whichever body was made the root."""

    def __str__(self) -> str:
        return (
            f"motion: {self.matched} of {self.true} joints; position "
            f"{MILLI * self.position:.2f} mm mean, "
            f"{MILLI * self.position_max:.2f} mm at worst; "
            f"rotation {self.rotation:.4f} rad rms; root {MILLI * self.root:.2f} mm"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SolutionScore:
    """All of it: one entry per take, and per subject where there are several."""

    bodies: tuple[BodiesScore, ...]
    joints: JointsScore
    tree: TreeScore
    skeletons: tuple[SkeletonScore, ...]
    """One per true subject that was found."""

    motions: tuple[MotionScore, ...]
    """One per take and subject, take after take."""

    subjects_found: int
    subjects_true: int

    def __str__(self) -> str:
        lines = [f"subjects: {self.subjects_found} found of {self.subjects_true}"]
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if isinstance(value, tuple):
                lines += [str(score) for score in value]
            elif not isinstance(value, int):
                lines.append(str(value))
        return "\n".join(lines)


Score = (
    BodiesScore | JointsScore | TreeScore | SkeletonScore | MotionScore | SolutionScore
)
