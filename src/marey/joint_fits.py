"""What every joint method returns."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float, Int


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class JointFits:
    """One candidate joint for every pair of bodies, as parallel arrays.

    A pair that shares no frames is NaN throughout.
    """

    pair: Int[np.ndarray, "pair 2"]
    """Body indices (a, b) with a < b."""

    center_a: Float[np.ndarray, "pair 3"]
    """Joint centre in the coordinates of body a, in metres."""

    center_b: Float[np.ndarray, "pair 3"]
    """Joint centre in the coordinates of body b, in metres."""

    axis_a: Float[np.ndarray, "pair 3"]
    """Unit axis of a hinge in the coordinates of body a. Of a universal joint, the
    axis that is fixed in body a. NaN for other kinds."""

    axis_b: Float[np.ndarray, "pair 3"]
    """The same of body b: a hinge's axis again, a universal joint's other axis."""

    residual: Float[np.ndarray, " pair"]
    """Root mean square gap between the two centres over the take, in metres."""

    noise: Float[np.ndarray, " pair"]
    """The gap that the measurement noise alone would leave, in metres."""

    distance: Float[np.ndarray, " pair"]
    """Mean distance of the joint centre from the two bodies' markers, in metres."""

    mediated: Float[np.ndarray, " pair"]
    """How much a third body explains of the pair's gap: 1 = nothing, more = much."""

    spread: Float[np.ndarray, "pair 6"]
    """Singular values of the fit per root frame, ascending: what the motion excited."""

    covariance: Float[np.ndarray, "pair 6 6"]
    """Covariance of (center_a, center_b), in square metres."""

    kind: tuple[str, ...]
    """"ball", "universal", "hinge" or "fixed", one per pair; "ball" where the pair was
    not fitted."""

    axis_covariance: Float[np.ndarray, "pair 6 6"] = field(
        default_factory=lambda: np.zeros((0, 6, 6))
    )
    """Covariance of (axis_a, axis_b) of a hinge, in square radians; NaN for others, and
    where a method does not tell."""

    averaged_residual: Float[np.ndarray, " pair"] = field(
        default_factory=lambda: np.zeros(0)
    )
    """Root mean square gap of poses averaged over a fraction of a second, in metres:
    noise from frame to frame is small in it. NaN where a method does not tell."""

    averaged_noise: Float[np.ndarray, " pair"] = field(
        default_factory=lambda: np.zeros(0)
    )
    """What the measurement noise alone would leave of `averaged_residual`, in metres."""

    looseness: Float[np.ndarray, " pair"] = field(default_factory=lambda: np.zeros(0))
    """How far the markers of one body stray from a constant distance to the best point
    of the other, over their noise; NaN where bodies have no markers."""

    marker_spacing: Float[np.ndarray, " pair"] = field(
        default_factory=lambda: np.zeros(0)
    )
    """Smallest distance between markers of the two bodies, over the usual distance of
    neighbouring markers; NaN likewise."""

    def __post_init__(self) -> None:
        n = len(self.pair)
        shapes: dict[str, tuple[int, ...]] = {"axis_covariance": (n, 6, 6)}
        shapes |= dict.fromkeys(
            ("averaged_residual", "averaged_noise", "looseness", "marker_spacing"), (n,)
        )
        for name, shape in shapes.items():
            if len(getattr(self, name)) == 0:
                object.__setattr__(self, name, np.full(shape, np.nan))

    @property
    def fitted(self) -> Bool[np.ndarray, " pair"]:
        """Whether the pair shared frames enough for a fit."""
        return np.asarray(np.isfinite(self.residual))
