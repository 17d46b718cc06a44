"""Poses of bodies whose markers are known."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from marey.bodies import Bodies
from marey.numerics import Array, Bool, Float, Int, geometry
from marey.numerics.procrustes import RigidFit, evaluate_fit, fit_rigid, median_in_body
from marey.report import Finding, mark_name
from marey.segmentation.clusters.cross_validation import (
    TINY_WEIGHT,
    outside_weights,
    weighted_poses,
)
from marey.segmentation.clusters.pair_statistics import (
    MIN_RIGID_MARKERS,
    Members,
    PairStats,
    log_odds,
    marker_noise,
    pair_statistics,
)
from marey.take import Take


def bodies_from_members(
    take: Take,
    members: Mapping[str, Sequence[int]],
    parents: Mapping[str, str],
    findings: tuple[Finding, ...],
    stats: PairStats | None = None,
) -> Bodies:
    """Return bodies of given markers; the first body that lists a marker owns it.

    Args:
        take: The recording.
        members: Markers of each body by index, at least one, by the body's name.
        parents: Parent of each body that has one, by name.
        findings: Findings of the segmentation so far.
        stats: Distances of the take's markers, if known already.
    """
    inside = np.zeros((len(members), len(take.labels)), dtype=bool)
    for row, markers in zip(inside, members.values(), strict=True):
        row[list(markers)] = True
    owner = np.where(inside.any(axis=0), inside.argmax(axis=0), -1)
    return make_bodies(
        take,
        tuple(members),
        inside,
        owner,
        parents=parents,
        findings=findings,
        stats=stats,
    )


def make_bodies(
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
    """Return bodies of given markers, each with its pose in every frame.

    A body that owns three markers or more, not on a line, has the robust rigid fit of
    these (`marey.numerics.procrustes.fit_rigid`): shared markers would pull the joint
    towards themselves. A body with fewer uses its shared markers too. A rotation that
    is undetermined even then is taken from the markers around the body, with small
    weights that fall with their motion relative to the body.

    Args:
        take: The recording.
        names: One per body.
        members: All markers of every body.
        owner: The one body that owns each marker; -1 = none.
        marker_confidence: See `Bodies`; 1 for owned markers if left out.
        body_confidence: See `Bodies`; 1 if left out.
        parents: Parent of each body that has one, by name, if known.
        findings: Findings of the segmentation so far.
        stats: Distances of the take's markers, if known already.
    """
    stats = pair_statistics([take.points]) if stats is None else stats
    owned = members & (owner == np.arange(len(members))[:, None])
    offset = np.full((len(owner), 3), np.nan)
    used = members.any(axis=0)
    points = take.points if used.all() else take.points[:, used]
    stats = stats.select(np.flatnonzero(used))
    # Poses are larger than the take: each is written where it stays.
    T_world_body = np.empty((take.n_frames, len(members), 4, 4))
    determined, rms = np.zeros(len(members), dtype=bool), np.zeros(len(members))
    for k, (has_marker, inside) in enumerate(zip(owned, members, strict=True)):
        fit = _fit_body(points, has_marker[used], inside[used], stats)
        T_world_body[:, k] = fit.T_world_body
        determined[k], rms[k] = fit.determined, fit.rms
        offset[has_marker] = (
            fit.offset
            if len(fit.offset) == has_marker.sum()
            else median_in_body(fit.T_world_body, take.points[:, has_marker])
        )
        if not fit.determined and len(fit.offset) >= MIN_RIGID_MARKERS:
            findings = (*findings, _line_finding(names[k], len(fit.offset)))
    if marker_confidence is None:
        marker_confidence = np.where(owner >= 0, 1.0, 0.0)
    if body_confidence is None:
        body_confidence = np.ones(len(members))
    return Bodies(
        take=take,
        names=tuple(names),
        T_world_body=T_world_body,
        determined=determined,
        marker_body=owner,
        shared=members.T.copy(),
        marker_confidence=marker_confidence,
        body_confidence=body_confidence,
        marker_offset=offset,
        rms=rms,
        parents=dict(parents or {}),
        marker_noise=_noise_on_bodies(stats, members),
        findings=findings,
    )


def _noise_on_bodies(stats: PairStats, members: Members) -> Float[Array, " marker"]:
    """Return the noise of each marker, in metres; of one on no body that of the others.

    Args:
        stats: Distances of the markers that are on bodies: exactly rigid points that a
            program computed show no noise.
        members: All markers of every body.
    """
    used = members.any(axis=0)
    noise = np.full(members.shape[1], stats.noise)
    noise[used] = marker_noise(stats, members[:, used])
    return noise


def merge_bodies(
    takes: Sequence[Bodies], target: Int[Array, " body"]
) -> tuple[Bodies, ...]:
    """Return bodies of markers after some of them merged, in every take.

    Args:
        takes: The same bodies in every take.
        target: The body that each one becomes part of; its own number if it stays.
    """
    stats = pair_statistics([one.take.points for one in takes])
    kept, number = np.unique(target, return_inverse=True)
    members = np.array([takes[0].shared[:, target == k].any(axis=1) for k in kept])
    return tuple(
        make_bodies(
            one.take,
            [one.names[k] for k in kept],
            members,
            np.where(one.marker_body >= 0, number[one.marker_body], -1),
            marker_confidence=one.marker_confidence,
            body_confidence=one.body_confidence[kept],
            findings=one.findings,
            stats=stats,
        )
        for one in takes
    )


def mean_log_odds(takes: Sequence[Bodies]) -> Float[Array, "body body"]:
    """Return the mean log odds that markers of two bodies are on one; NaN if unknown.

    Markers that both bodies share are left out.
    """
    used = takes[0].shared.any(axis=1)
    members = takes[0].shared[used].T
    stats = pair_statistics([one.take.points[:, used] for one in takes])
    odds = np.where(stats.is_known, log_odds(stats, members), np.nan)
    mean = np.full((len(members), len(members)), np.nan)
    for a, b in combinations(range(len(members)), 2):
        pairs = odds[np.ix_(members[a] & ~members[b], members[b] & ~members[a])]
        if np.isfinite(pairs).any():
            mean[a, b] = mean[b, a] = np.nanmean(pairs)
    return mean


def _fit_body(
    points: Float[Array, "frame marker 3"],
    owned: Bool[Array, " marker"],
    inside: Bool[Array, " marker"],
    stats: PairStats,
) -> RigidFit:
    """Return the rigid fit of a body, see `make_bodies`.

    Args:
        points: All markers of the recording.
        owned: Markers that the body owns.
        inside: All its markers.
        stats: Distances of all markers.
    """
    if owned.sum() >= MIN_RIGID_MARKERS:
        fit = fit_rigid(points[:, owned])
        if fit.determined:
            return fit
    fit = fit_rigid(points[:, inside])
    if fit.determined:
        return fit
    around = outside_weights(stats)[inside].max(axis=0)
    T = weighted_poses(points, np.where(inside, 1.0, around))
    # Whatever the body's own markers determine, they alone decide.
    weight = np.where(inside, 1.0, TINY_WEIGHT * around)
    T = geometry.kabsch(median_in_body(T, points), points, weight)
    seen = np.isfinite(points[:, inside]).all(axis=-1).any(axis=1)
    T[~seen] = np.nan
    # Frames that show hardly any other marker keep the pose of least rotation.
    lost = seen & ~np.isfinite(T).all(axis=(-1, -2))
    T[lost] = fit.T_world_body[lost]
    shape = median_in_body(T, points[:, inside])
    center = np.nanmean(shape, axis=0) if np.isfinite(shape).any() else np.zeros(3)
    T = T @ geometry.transform(np.eye(3), center)
    return evaluate_fit(points[:, inside], shape - center, T, determined=False)


def _line_finding(name: str, n_markers: int) -> Finding:
    return Finding(
        code="markers-on-a-line",
        stage="segment",
        severity="warning",
        message=f"the {n_markers} markers of {mark_name(name)} are on a line or never "
        "seen together: its rotation about itself is uncertain",
        subject=name,
    )
