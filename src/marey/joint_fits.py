"""What every joint method returns."""

from dataclasses import dataclass

import numpy as np

from marey.numerics import Bool, Float, Int, empty_array

USUAL_DISTANCE_PERCENTILE = 75.0
"""Percentile of the distances between joints and their bodies that counts as the usual
one. Higher keeps more edges of a tree and finds more grips. Chosen by hand."""


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
    """Unit axis of a hinge in the coordinates of body a; of a universal joint, the axis
    that is fixed in body a. NaN for other kinds."""

    axis_b: Float[np.ndarray, "pair 3"]
    """The same of body b: a hinge's axis again, a universal joint's other axis."""

    residual: Float[np.ndarray, " pair"]
    """Root mean square distance between the two centres over the take, in metres: the
    epsilon of OBrien2000."""

    noise: Float[np.ndarray, " pair"]
    """The residual expected from measurement noise alone, in metres."""

    distance: Float[np.ndarray, " pair"]
    """Mean distance of the joint centre from the two bodies' markers, in metres."""

    mediated: Float[np.ndarray, " pair"]
    """Ratio of the residual to that left when a third body explains the motion of the
    pair: 1 = nothing is explained."""

    spread: Float[np.ndarray, "pair 6"]
    """Singular values of the fit over the square root of the number of frames,
    ascending: how much the motion excites each direction."""

    covariance: Float[np.ndarray, "pair 6 6"]
    """Covariance of (center_a, center_b), in square metres."""

    kind: tuple[str, ...]
    """"ball", "universal", "hinge" or "fixed", one per pair; "ball" where the pair was
    not fitted."""

    axis_covariance: Float[np.ndarray, "pair 6 6"] = empty_array(0, 6, 6)
    """Covariance of (axis_a, axis_b) of a hinge, in square radians; NaN for other kinds
    and for methods that do not estimate it."""

    averaged_residual: Float[np.ndarray, " pair"] = empty_array(0)
    """Residual of poses averaged over a fraction of a second, in metres; noise that is
    independent from frame to frame averages out. NaN for methods without it."""

    averaged_noise: Float[np.ndarray, " pair"] = empty_array(0)
    """The `averaged_residual` expected from measurement noise alone, in metres."""

    looseness: Float[np.ndarray, " pair"] = empty_array(0)
    """Deviation of the markers of one body from a constant distance to the best point
    of the other, over their noise; NaN for bodies without markers."""

    marker_spacing: Float[np.ndarray, " pair"] = empty_array(0)
    """Smallest distance between markers of the two bodies, over the typical distance of
    neighbouring markers; NaN for bodies without markers."""

    def __post_init__(self) -> None:
        n = len(self.pair)
        shapes: dict[str, tuple[int, ...]] = {"axis_covariance": self.covariance.shape}
        shapes |= dict.fromkeys(
            ("averaged_residual", "averaged_noise", "looseness", "marker_spacing"), (n,)
        )
        for name, shape in shapes.items():
            if len(getattr(self, name)) == 0:
                object.__setattr__(self, name, np.full(shape, np.nan))

    def __repr__(self) -> str:
        return f"JointFits({len(self.pair)} pairs of bodies)"

    def usual_distance(self, rows: Int[np.ndarray, " row"]) -> float:
        """Return the usual distance of some joints from their bodies, in metres."""
        return float(np.nanpercentile(self.distance[rows], USUAL_DISTANCE_PERCENTILE))

    @property
    def fitted(self) -> Bool[np.ndarray, " pair"]:
        """Whether the pair was seen together in enough frames for a fit."""
        return np.asarray(np.isfinite(self.residual))


def smallest_per_body(
    pair: Int[np.ndarray, "pair 2"], values: Float[np.ndarray, " pair"], n_bodies: int
) -> Float[np.ndarray, " body"]:
    """Return the smallest value over the pairs of each body; infinite without any."""
    smallest = np.full(n_bodies, np.inf)
    for column in pair.T:
        np.fmin.at(smallest, column, values)
    return smallest
