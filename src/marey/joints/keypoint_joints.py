"""Joints of bones between keypoints: the point that two bones share."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from marey.bodies import Bodies
from marey.joint_fits import JointFits
from marey.numerics import geometry

Array = np.ndarray


def pinned(takes: Sequence[Bodies], fits: JointFits) -> JointFits:
    """Return the joints with those of bones that share a point put in that point.

    Each centre is as doubtful as the two stray from each other: a keypoint is wrong in
    one way for long, and its error does not average out.
    """
    center = np.stack([fits.center_a, fits.center_b], axis=1)
    residual, covariance = fits.residual.copy(), fits.covariance.copy()
    shared = takes[0].shared
    for row, pair in enumerate(fits.pair.tolist()):
        both = np.flatnonzero(shared[:, pair].all(axis=1))
        if len(both) != 1 or not fits.fitted[row]:
            continue
        places = [_place(takes, body, int(both[0])) for body in pair]
        if not np.isfinite(places).all():
            continue
        center[row] = places
        residual[row] = _gap(takes, pair, *places)
        covariance[row] = residual[row] ** 2 * np.eye(6)
    return replace(
        fits,
        center_a=center[:, 0],
        center_b=center[:, 1],
        residual=residual,
        covariance=covariance,
    )


def _place(takes: Sequence[Bodies], body: int, point: int) -> Float[Array, " 3"]:
    """Return where a point sits in a body: the median over all takes."""
    local = np.concatenate(
        [
            geometry.apply(
                geometry.inverse(take.T_world_body[:, body]), take.take.points[:, point]
            )
            for take in takes
        ]
    )
    known = local[np.isfinite(local).all(axis=1)]
    return np.median(known, axis=0) if len(known) else np.full(3, np.nan)


def _gap(takes: Sequence[Bodies], pair: Sequence[int], *places: Array) -> float:
    away = np.concatenate(
        [
            np.subtract(
                *(
                    geometry.apply(take.T_world_body[:, body], place)
                    for body, place in zip(pair, places, strict=True)
                )
            )
            for take in takes
        ]
    )
    return float(np.sqrt(np.nanmean(np.sum(away**2, axis=1))))
