"""`JointFits` from the solved equations of all pairs, in the bodies' coordinates."""

from dataclasses import dataclass

import numpy as np

from marey.bodies import Bodies
from marey.joint_fits import JointFits
from marey.joints.ball.closed_form import (
    FREE_SD_M,
    CenterEstimates,
    EigenSystem,
    uncorrected_system,
)
from marey.joints.ball.hinge import (
    KINDS,
    axis_covariance,
    hinge_axes,
    white_axis_scatter,
)
from marey.joints.ball.normal_equations import Pairs, PerPair
from marey.joints.noise import PoseNoise
from marey.numerics import Array, Float, geometry


@dataclass(frozen=True, slots=True, eq=False)
class PairEstimates:
    """Estimates of all pairs, with centres relative to the bodies' anchors."""

    pair: Pairs
    noise: PoseNoise
    system: EigenSystem
    centers: CenterEstimates
    axis_scatter: Float[Array, "pair 6 6"] | None = None
    """Covariance of the mean score of hinge axes, as `axis_scatter` returns it; that of
    `white_axis_scatter` when left out."""


def assemble_joint_fits(
    estimates: PairEstimates, bodies: Bodies | None, mediated: PerPair
) -> JointFits:
    """Return the fits, with centres relative to the bodies' origins.

    Args:
        estimates: The estimates of all pairs.
        bodies: The bodies with their markers; None if they have none.
        mediated: As in `JointFits`.
    """
    pair, system, centers = estimates.pair, estimates.system, estimates.centers
    known = np.isfinite(centers.residual)
    anchor = estimates.noise.anchor[pair].reshape(len(pair), 6)
    u, covariance = _minimum_norm_centers(centers, system, anchor)
    expected = estimates.noise.mean_square_residual(pair, u - anchor)
    n_free = np.maximum(centers.free.sum(axis=1), centers.has_play)
    kind = tuple(KINDS[n] for n in np.where(known, n_free, 0))
    hinge = np.array([k == "hinge" for k in kind], dtype=bool)
    axis_a, axis_b = (np.where(hinge[:, None], x, np.nan) for x in hinge_axes(system))
    axes = np.full((len(pair), 6, 6), np.nan)
    if hinge.any():
        scatter = estimates.axis_scatter
        scatter = white_axis_scatter(system) if scatter is None else scatter
        of_hinges = (x[hinge] for x in (system.A, axis_a, axis_b, scatter))
        axes[hinge] = axis_covariance(*of_hinges)
    raw = system.raw
    uncorrected = system if system.A is raw.A else uncorrected_system(raw)
    return JointFits(
        pair=pair,
        center_a=u[:, :3],
        center_b=u[:, 3:],
        axis_a=axis_a,
        axis_b=axis_b,
        residual=centers.residual,
        noise=np.where(known, np.sqrt(expected), np.nan),
        distance=np.where(known, _marker_distances(bodies, pair, u), np.nan),
        mediated=np.where(known, mediated, np.nan),
        # The singular values of Q per root frame (OBrien2000, Sec. 3.2).
        spread=np.sqrt(np.maximum(uncorrected.eigenvalues, 0.0)),
        covariance=covariance,
        axis_covariance=axes,
        kind=kind,
    )


def _minimum_norm_centers(
    centers: CenterEstimates, system: EigenSystem, anchor: Float[Array, "pair 6"]
) -> tuple[Float[Array, "pair 6"], Float[Array, "pair 6 6"]]:
    """Return the centres nearest to both bodies' origins, and their covariance.

    Along a free direction the answer is a choice (OBrien2000, Sec. 3.2). Its variance
    there is the predicted one plus the square of the step to that choice, at most
    `FREE_SD_M` squared. Along the axis of a hinge with play it is the predicted one.
    """
    free, u = centers.free, centers.u + anchor
    uncertain = free.copy()
    uncertain[:, 0] |= centers.has_play
    directions = np.where(uncertain[:, None, :], system.eigenvectors[:, :, :3], 0.0)
    step = np.where(free, np.einsum("pik,pi->pk", directions, u), 0.0)
    u = u - np.einsum("pik,pk->pi", directions, step)
    variance = np.minimum(
        2.0 * np.where(uncertain, centers.sd, 0.0) ** 2 + step**2, 2.0 * FREE_SD_M**2
    )
    along = np.einsum("pik,pk,pjk->pij", directions, variance, directions)
    return u, centers.covariance + along


def _marker_distances(
    bodies: Bodies | None, pair: Pairs, u: Float[Array, "pair 6"]
) -> PerPair:
    """Return the mean distance of centres from the markers of both bodies, in metres.

    From the origin of a body without markers.
    """
    if bodies is None:
        return np.asarray(geometry.lengths(u.reshape(-1, 2, 3)).mean(axis=1))
    total = np.zeros(len(pair))
    for body in range(len(bodies.names)):
        offsets = bodies.marker_offset[bodies.marker_body == body]
        offsets = offsets[np.isfinite(offsets).all(axis=1)]
        offsets = offsets if len(offsets) else np.zeros((1, 3))
        for column, centers in zip(pair.T, (u[:, :3], u[:, 3:]), strict=True):
            rows = column == body
            distance = geometry.lengths(centers[rows, None] - offsets)
            total[rows] += 0.5 * distance.mean(axis=1)
    return total
