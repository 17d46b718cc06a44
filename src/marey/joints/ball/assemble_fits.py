"""`JointFits` from the solved equations of all pairs, in the bodies' coordinates."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from marey.bodies import Bodies
from marey.joint_fits import JointFits
from marey.joints.ball.closed_form import (
    CenterEstimates,
    EigenSystem,
    minimum_norm_centers,
    uncorrected_system,
)
from marey.joints.ball.hinge import axis_covariance, hinge_axes, joint_kinds
from marey.joints.ball.normal_equations import Pairs, PerPair
from marey.joints.noise import PoseNoise

Array = np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class PairEstimates:
    """Estimates of all pairs, with centres relative to the bodies' anchors."""

    pair: Pairs
    noise: PoseNoise
    system: EigenSystem
    centers: CenterEstimates
    correlation: PerPair
    """Frames per independent residual, 1 or more."""


def assemble_joint_fits(
    estimates: PairEstimates, *, distance: PerPair, mediated: PerPair
) -> JointFits:
    """Return the fits, with centres relative to the bodies' origins.

    Args:
        estimates: The estimates of all pairs.
        distance: As in `JointFits`.
        mediated: As in `JointFits`.
    """
    pair, system, centers = estimates.pair, estimates.system, estimates.centers
    known = np.isfinite(centers.residual)
    u, covariance = centers_from_origins(estimates)
    expected = estimates.noise.mean_square_residual(pair, u - _anchors(estimates))
    kind = joint_kinds(centers.free, known)
    hinge = np.array([k == "hinge" for k in kind], dtype=bool)
    axis_a, axis_b = (np.where(hinge[:, None], x, np.nan) for x in hinge_axes(system))
    axes = np.full((len(pair), 6, 6), np.nan)
    if hinge.any():
        axes[hinge] = axis_covariance(
            system.select(hinge),
            axis_a[hinge],
            axis_b[hinge],
            estimates.correlation[hinge],
        )
    return JointFits(
        pair=pair,
        center_a=u[:, :3],
        center_b=u[:, 3:],
        axis_a=axis_a,
        axis_b=axis_b,
        residual=centers.residual,
        noise=np.where(known, np.sqrt(expected), np.nan),
        distance=np.where(known, distance, np.nan),
        mediated=np.where(known, mediated, np.nan),
        spread=_singular_values(system),
        covariance=covariance,
        axis_covariance=axes,
        kind=kind,
    )


def centers_from_origins(
    estimates: PairEstimates,
) -> tuple[Float[Array, "pair 6"], Float[Array, "pair 6 6"]]:
    """Return (center_a, center_b) relative to the origins, and their covariance."""
    centers = estimates.centers
    return minimum_norm_centers(
        centers.u + _anchors(estimates),
        centers.covariance,
        estimates.system.eigenvectors,
        centers.free,
        centers.sd,
    )


def _anchors(estimates: PairEstimates) -> Float[Array, "pair 6"]:
    pair = estimates.pair
    return np.asarray(estimates.noise.anchor[pair].reshape(len(pair), 6))


def _singular_values(system: EigenSystem) -> Float[Array, "pair 6"]:
    """Return the singular values of Q per root frame (OBrien2000, Sec. 3.2)."""
    raw = system.raw
    uncorrected = system if system.A is raw.A else uncorrected_system(raw)
    return np.asarray(np.sqrt(np.maximum(uncorrected.eigenvalues, 0.0)))


def marker_distances(bodies: Bodies, pair: Pairs, u: Float[Array, "pair 6"]) -> PerPair:
    """Return the mean distance of centres from the markers of both bodies, in metres.

    From the origin of a body without markers.
    """
    total = np.zeros(len(pair))
    for body in range(len(bodies.names)):
        offsets = bodies.marker_offset[bodies.marker_body == body]
        offsets = offsets[np.isfinite(offsets).all(axis=1)]
        offsets = offsets if len(offsets) else np.zeros((1, 3))
        for column, centers in zip(pair.T, (u[:, :3], u[:, 3:]), strict=True):
            rows = column == body
            distance = np.linalg.norm(centers[rows, None] - offsets, axis=-1)
            total[rows] += 0.5 * distance.mean(axis=1)
    return total
