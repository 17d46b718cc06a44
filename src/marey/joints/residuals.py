"""What joints leave over: gaps frame by frame, takes that differ, scale."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from marey.bodies import Bodies
from marey.errors import DataError
from marey.joint_fits import JointFits
from marey.joints.ball.fit import fit

Array = np.ndarray


def residuals(
    bodies: Bodies, fits: JointFits, pair: tuple[int, int]
) -> Float[Array, "frame 3"]:
    """Return the gap between the two centres of one joint, frame by frame, in metres.

    The residual vectors of OBrien2000, Figs. 6-8, in the world: the centre carried by
    the first body less the centre carried by the second. NaN where either was not seen.

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
    turned = A[..., :3] @ fits.center_a[row] - B[..., :3] @ fits.center_b[row]
    gap = np.asarray(turned + (A[..., 3] - B[..., 3]))  # Eq. 8
    return gap if pair[0] < pair[1] else -gap


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Homogeneity:
    """Whether several takes have the same joints."""

    pair: Int[Array, "pair 2"]
    shift: Float[Array, "take pair"]
    """How far the joint of one take is from that of the others, the larger of the two
    bodies, in metres."""

    statistic: Float[Array, "take pair"]
    """Twice the log likelihood ratio of a joint of its own for the take."""

    p_value: Float[Array, "take pair"]
    """Probability of a larger statistic if all takes have the same joints."""


def homogeneity(takes: Sequence[Bodies], **options: Any) -> Homogeneity:
    """Return which takes have joints of their own: sensors slipped or were moved.

    Each take's centres are compared with those of all other takes, in the metric of
    their covariances: a likelihood ratio, to second order. A direction that either
    leaves free counts as known to some metres and so says nothing.

    Args:
        takes: The same bodies in two or more takes.
        **options: Fields of `BallOptions`.

    Raises:
        DataError: If there are fewer than two takes.
    """
    from scipy.stats import chi2

    if len(takes) < 2:
        raise DataError("takes", found=len(takes), needed="at least 2")
    options = {"mediation": False, **options}
    shifts, statistics = [], []
    for k, take in enumerate(takes):
        own = fit((take,), **options)
        rest = fit(tuple(t for i, t in enumerate(takes) if i != k), **options)
        ends = np.concatenate(
            [own.center_a - rest.center_a, own.center_b - rest.center_b], axis=1
        )
        shifts.append(np.linalg.norm(ends.reshape(-1, 2, 3), axis=-1).max(axis=1))
        both = own.covariance + rest.covariance
        statistics.append(_mahalanobis(ends, both))
    statistic = np.stack(statistics)
    return Homogeneity(
        pair=own.pair,
        shift=np.stack(shifts),
        statistic=statistic,
        p_value=np.asarray(chi2.sf(statistic, 6)),
    )


def _mahalanobis(
    d: Float[Array, "pair 6"], covariance: Float[Array, "pair 6 6"]
) -> Float[Array, " pair"]:
    known = np.isfinite(d).all(axis=1) & np.isfinite(covariance).all(axis=(1, 2))
    statistic = np.full(len(d), np.nan)
    # Rounding, of exact takes that agree, must not read as a difference.
    C = covariance[known] + 1e-18 * np.eye(6)
    weighted = np.linalg.solve(C, d[known][..., None])[..., 0]
    statistic[known] = np.sum(d[known] * weighted, axis=1)
    return statistic


@dataclass(frozen=True, slots=True)
class RigidPair:
    """Two sensors on one stick: what the instrument says of their distance."""

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
    place = bodies.T_world_body[..., :3, 3][:, list(pair)]
    away = np.linalg.norm(place[:, 0] - place[:, 1], axis=1)
    away = away[np.isfinite(away)]
    if not len(away):
        a, b = (bodies.names[i] for i in pair)
        raise DataError(f"{a}-{b}", found="no frame with both", needed="at least one")
    mean = float(away.mean())
    scale = distance / mean if mean > 0.0 else float("nan")
    return RigidPair(mean, float(scale * away.std()), scale)
