"""Sets of markers to bodies with a pose in every frame."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int

from marey.bodies import Bodies
from marey.numerics import geometry
from marey.numerics.procrustes import RigidFit, evaluate_fit, fit_rigid, median_in_body
from marey.report import Finding, mark_name
from marey.segmentation.clusters.cross_validation import OUTSIDERS, soft_poses
from marey.segmentation.clusters.pair_log_odds import (
    Members,
    Scales,
    marker_noise,
    scales_of,
)
from marey.segmentation.clusters.pair_statistics import PairStats, pair_statistics
from marey.take import Take

Array = np.ndarray

SLIGHT = 1e-4
"""Share of their weight that markers around a body have in its final pose."""


def assembled(
    take: Take,
    names: Sequence[str],
    members: Members,
    owner: Int[Array, " marker"],
    *,
    marker_confidence: Float[Array, " marker"] | None = None,
    body_confidence: Float[Array, " body"] | None = None,
    parents: Mapping[str, str] | None = None,
    findings: tuple[Finding, ...] = (),
    stats: PairStats | None = None,
) -> Bodies:
    """Return bodies made of these markers, each with its pose in every frame.

    Three markers or more of its own, not on a line: a robust fit of these over all
    frames (`marey.numerics.procrustes.fit_rigid`); markers shared with a neighbour would draw the
    joint towards themselves. Fewer count with the shared ones. A turn that is open even
    then is taken from the markers around, which count little, and the less the more
    they move against the body's own.

    Args:
        take: The recording.
        names: One per body.
        members: Every marker of every body.
        owner: The one body of each marker; -1 = none.
        marker_confidence: See `Bodies`; certain when left out.
        body_confidence: Likewise.
        parents: Parent of each body that has one, by name, where it is known.
        findings: What was met so far.
        stats: Distances of the take's markers, where they are known already.
    """
    stats = pair_statistics([take.points]) if stats is None else stats
    scales = scales_of(stats)
    alone = members & (owner == np.arange(len(members))[:, None])
    fits = [
        _fit(take, own, inside, stats, scales)
        for own, inside in zip(alone, members, strict=True)
    ]
    offset = np.full((len(owner), 3), np.nan)
    for own, fit in zip(alone, fits, strict=True):
        whole = len(fit.offset) == own.sum()
        offset[own] = (
            fit.offset
            if whole
            else median_in_body(fit.T_world_body, take.points[:, own])
        )
    certain = np.where(owner >= 0, 1.0, 0.0)
    notes = (_note(name, fit) for name, fit in zip(names, fits, strict=True))
    return Bodies(
        take=take,
        names=tuple(names),
        T_world_body=np.stack([fit.T_world_body for fit in fits], axis=1),
        determined=np.array([fit.determined for fit in fits]),
        marker_body=owner,
        shared=members.T.copy(),
        marker_confidence=certain if marker_confidence is None else marker_confidence,
        body_confidence=np.ones(len(fits))
        if body_confidence is None
        else body_confidence,
        marker_offset=offset,
        rms=np.array([fit.rms for fit in fits]),
        parents=dict(parents or {}),
        marker_noise=marker_noise(stats, scales, members),
        findings=(*findings, *(note for note in notes if note is not None)),
    )


def _fit(
    take: Take, own: Array, inside: Array, stats: PairStats, scales: Scales
) -> RigidFit:
    if own.sum() >= 3:
        fit = fit_rigid(take.points[:, own])
        if fit.determined:
            return fit
    fit = fit_rigid(take.points[:, inside])
    if fit.determined:
        return fit
    spread = np.where(np.isfinite(stats.spread), stats.spread, np.inf)[inside]
    weight = OUTSIDERS / (1.0 + (spread.min(axis=0) / scales.noise) ** 2)
    weight[inside] = 1.0
    T = soft_poses(take.points, weight)
    # What the body's own markers do tell, they alone decide.
    places = median_in_body(T, take.points)
    T = geometry.kabsch(places, take.points, np.where(inside, 1.0, SLIGHT * weight))
    known = np.isfinite(take.points[:, inside]).all(axis=-1).any(axis=1)
    T[~known] = np.nan
    # Where hardly anything else is seen, the pose of least turning must do.
    lost = known & ~np.isfinite(T).all(axis=(-1, -2))
    T[lost] = fit.T_world_body[lost]
    return _with_poses(take.points[:, inside], T)


def _with_poses(points: Array, T: Array) -> RigidFit:
    """Return markers with these poses, the origin in their middle."""
    places = median_in_body(T, points)
    middle = np.nanmean(places, axis=0) if np.isfinite(places).any() else np.zeros(3)
    T = T @ geometry.transform(np.eye(3), middle)
    return evaluate_fit(points, places - middle, T, determined=False)


def _note(name: str, fit: RigidFit) -> Finding | None:
    if fit.determined or len(fit.offset) < 3:
        return None
    return Finding(
        code="markers-on-a-line",
        stage="segment",
        severity="warning",
        message=f"the {len(fit.offset)} markers of {mark_name(name)} are on a line or "
        "never seen together: its turn about itself is not known well",
        subject=name,
    )
