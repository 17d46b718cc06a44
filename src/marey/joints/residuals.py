"""Residuals of joints: frame by frame, between takes, and of a rigid pair."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from marey.bodies import Bodies
from marey.errors import DataError
from marey.joint_fits import JointFits
from marey.joints.ball.fit import fit
from marey.numerics import Array, Float, Int, geometry


def joint_residuals(
    bodies: Bodies, fits: JointFits, pair: tuple[int, int]
) -> Float[Array, "frame 3"]:
    """Return the residual vectors of one joint, frame by frame, in metres.

    The residuals of OBrien2000, Figs. 6-8, in the world: the centre carried by the
    first body minus the centre carried by the second (Eq. 8). NaN where either body is
    occluded.

    Args:
        bodies: The moving bodies.
        fits: Their joints.
        pair: Two bodies, as indices.

    Raises:
        DataError: If the fits hold no such pair.
    """
    rows = np.flatnonzero((fits.pair == sorted(pair)).all(axis=1))
    if not len(rows):
        raise DataError("pair", found=pair, needed="two bodies of the fits")
    (a, b), row = fits.pair[rows[0]], rows[0]
    A, B = bodies.T_world_body[:, a, :3], bodies.T_world_body[:, b, :3]
    rotated = A[..., :3] @ fits.center_a[row] - B[..., :3] @ fits.center_b[row]
    residual = np.asarray(rotated + (A[..., 3] - B[..., 3]))  # Eq. 8
    return residual if pair[0] < pair[1] else -residual


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Homogeneity:
    """Result of the test that several takes have the same joints."""

    pair: Int[Array, "pair 2"]
    displacement: Float[Array, "take pair"]
    """Distance of the joint of one take from that of all others, the larger of the two
    bodies, in metres."""

    statistic: Float[Array, "take pair"]
    """Twice the log likelihood ratio of a separate joint for the take."""

    p_value: Float[Array, "take pair"]
    """Probability of a larger statistic if all takes have the same joints."""


def homogeneity(takes: Sequence[Bodies], **options: Any) -> Homogeneity:
    """Return which takes have different joints: sensors slipped or were moved.

    A likelihood ratio test to second order: the squared Mahalanobis distance between
    the centres of each take and those of all other takes, chi-square with six degrees
    of freedom. A direction that either fit leaves free has a standard deviation of
    metres and hardly counts.

    Args:
        takes: The same bodies in two or more takes.
        **options: Fields of `BallOptions`.

    Raises:
        DataError: If there are fewer than two takes.
    """
    from scipy.special import chdtrc  # slow to import

    if len(takes) < 2:
        raise DataError("takes", found=len(takes), needed="at least 2")
    options = {"mediation": False, **options}
    displacements, statistics = [], []
    for k, take in enumerate(takes):
        one = fit((take,), **options)
        rest = fit(tuple(t for i, t in enumerate(takes) if i != k), **options)
        difference = np.concatenate(
            [one.center_a - rest.center_a, one.center_b - rest.center_b], axis=1
        )
        distance = geometry.lengths(difference.reshape(-1, 2, 3))
        displacements.append(distance.max(axis=1))
        statistics.append(_mahalanobis(difference, one.covariance + rest.covariance))
    statistic = np.stack(statistics)
    return Homogeneity(
        pair=one.pair,
        displacement=np.stack(displacements),
        statistic=statistic,
        p_value=np.asarray(chdtrc(difference.shape[1], statistic)),
    )


def _mahalanobis(
    difference: Float[Array, "pair 6"], covariance: Float[Array, "pair 6 6"]
) -> Float[Array, " pair"]:
    """Return squared Mahalanobis distances (no unit); NaN where an input is."""
    known = np.isfinite(difference).all(axis=1)
    known &= np.isfinite(covariance).all(axis=(1, 2))
    statistic = np.full(len(difference), np.nan)
    # Rounding must not look like a difference where exact takes agree.
    C, d = covariance[known] + 1e-18 * np.eye(6), difference[known]
    statistic[known] = np.sum(d * np.linalg.solve(C, d[..., None])[..., 0], axis=1)
    return statistic


@dataclass(frozen=True, slots=True)
class RigidPair:
    """Distance of two sensors on one rigid stick, as recorded."""

    distance: float
    """Mean distance as recorded, in metres."""

    sd: float
    """Standard deviation of the distance, in metres: the noise of the volume."""

    scale: float
    """Factor that takes recorded to true lengths."""


def rigid_pair(bodies: Bodies, pair: tuple[int, int], *, distance: float) -> RigidPair:
    """Return the noise and the scale of a volume from two sensors on one stick.

    The calibration of OBrien2000, Sec. 4 and Fig. 4.

    Args:
        bodies: The moving bodies.
        pair: The two sensors, as indices.
        distance: The true distance of the two, above 0 m.

    Raises:
        DataError: If the two are never seen together, or the distance is not above 0.
    """
    if not distance > 0.0:
        raise DataError("distance", found=distance, needed="above 0 m")
    position = bodies.T_world_body[..., :3, 3][:, list(pair)]
    recorded = np.linalg.norm(position[:, 0] - position[:, 1], axis=1)
    recorded = recorded[np.isfinite(recorded)]
    if not len(recorded):
        a, b = (bodies.names[i] for i in pair)
        raise DataError(f"{a}-{b}", found="no frame with both", needed="at least one")
    mean = float(recorded.mean())
    scale = distance / mean if mean > 0.0 else float("nan")
    return RigidPair(mean, float(scale * recorded.std()), scale)
