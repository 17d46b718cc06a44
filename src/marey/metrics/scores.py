"""Scores: the errors of a result against the truth."""

from dataclasses import dataclass, fields
from math import isnan


def _mm(metres: float) -> str:
    """Return a length in millimetres, as text."""
    return f"{1e3 * metres:.2f} mm"


@dataclass(frozen=True, slots=True, kw_only=True)
class BodiesScore:
    """Errors of the bodies."""

    found: int
    """Number of bodies found that carry a marker or a sensor."""

    true: int
    """Number of true bodies that carry a marker or a sensor."""

    matched: int
    """Number of found bodies that were matched to a true one."""

    ari: float
    """Adjusted Rand index of the markers, one body per marker; NaN without markers."""

    ari_shared: float
    """Adjusted Rand index in which a shared marker counts for its true body."""

    markers_right: float
    """Share of the markers whose body matches their true body."""

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
    """Errors of the joints, over the true joints whose bodies were matched.

    Distances are root mean squares over frames and joints, in the world.
    """

    found: int
    """Number of true joints that have a fit."""

    true: int
    center: float
    """Distance of the joint centres from the true ones, in metres."""

    center_max: float
    """Distance of the worst joint centre, rms over its frames, in metres."""

    off_axis: float
    """Distance of the centres, for hinges only the part perpendicular to the axis."""

    axis: float
    """Angle between found and true hinge axes, rms in radians; NaN without hinges."""

    kinds_right: int
    """Number of joints whose kind is correct."""

    def __str__(self) -> str:
        hinges = ""
        if not isnan(self.axis):
            hinges = f", off axis {_mm(self.off_axis)}; axis {self.axis:.4f} rad"
        return (
            f"joints: {self.found} of {self.true}; centre {_mm(self.center)} rms, "
            f"{_mm(self.center_max)} at worst{hinges}; {self.kinds_right} kinds right"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeScore:
    """Errors of the tree, counted as undirected edges.

    True bodies that were not found are contracted in the true tree: their children
    are connected to their parent.
    """

    right: int
    wrong: int
    """Number of found edges that are not in the true tree."""

    missing: int
    """Number of true edges that were not found."""

    @property
    def complete(self) -> bool:
        """Whether the tree equals the true one."""
        return self.wrong == self.missing == 0

    def __str__(self) -> str:
        return (
            f"tree: {self.right} edges right, {self.wrong} wrong, "
            f"{self.missing} missing"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SkeletonScore:
    """Errors of bone lengths: distances between joints on the same body.

    These distances do not depend on the choice of the root.
    """

    compared: int
    """Number of lengths in both skeletons."""

    true: int
    """Number of lengths in the true skeleton."""

    rms: float
    """Root mean square error, in metres."""

    max: float
    mean: float
    """Mean signed error, found minus true, in metres."""

    def __str__(self) -> str:
        return (
            f"skeleton: {self.compared} of {self.true} lengths; error "
            f"{_mm(self.rms)} rms, {_mm(self.max)} at most, "
            f"{1e3 * self.mean:+.2f} mm mean"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MotionScore:
    """Errors of the motion, over matched joints."""

    matched: int
    true: int
    position: float
    """Mean distance between found and true joints, in metres."""

    position_max: float
    """Mean distance of the worst joint, in metres."""

    rotation: float
    """Angle between found and true orientations of the joints, rms in radians, after a
    constant rotation per joint: the axes of a joint are a convention."""

    root: float
    """Least motion of any found body in the frame of the true root, rms in metres. It
    does not depend on the choice of the root."""

    def __str__(self) -> str:
        return (
            f"motion: {self.matched} of {self.true} joints; position "
            f"{_mm(self.position)} mean, {_mm(self.position_max)} at worst; "
            f"rotation {self.rotation:.4f} rad rms; root {_mm(self.root)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SolutionScore:
    """Errors of all stages of a solution."""

    bodies: tuple[BodiesScore, ...]
    joints: JointsScore
    tree: TreeScore
    skeletons: tuple[SkeletonScore, ...]
    """One score per true subject that was found."""

    motions: tuple[MotionScore, ...]
    """One score per subject and take, ordered by subject."""

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
