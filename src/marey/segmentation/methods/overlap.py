"""Bodies of unlabelled markers by the distances that they keep, over all takes."""

from collections.abc import Mapping

import numpy as np

from marey.bodies import Bodies
from marey.errors import DataError
from marey.numerics import Array, Bool, Float, Int
from marey.numerics.robust import logistic
from marey.numerics.thresholds import MIN_SAMPLES
from marey.report import Finding
from marey.segmentation.body_poses import make_bodies
from marey.segmentation.clusters.model_selection import Clustering, cluster_markers
from marey.segmentation.clusters.pair_statistics import (
    MIN_RIGID_MARKERS,
    Members,
    members_of_labels,
)
from marey.segmentation.contract import SegmentationTask, Suitability
from marey.segmentation.labels.spelling import is_name
from marey.segmentation.marker_selection import (
    few_common_markers,
    group_by_subject,
    removal_finding,
    select_markers,
)
from marey.take import Take

UNNAMED = "markers-unnamed", "without a name and on no body of named markers"
"""Code of markers that are left out, and the reason."""

INTERCEPT, SLOPE = 1.6, 0.2
"""Coefficients of the probability that a marker's body is right, or that a body is one
rigid thing, as a logistic function of log odds. Means of two logistic regressions over
22 recordings of people, animals and machines with known bodies, rounded. Higher reports
higher probabilities."""


def check_suitability(task: SegmentationTask) -> Suitability:
    """Return that the method suits all markers."""
    return Suitability(suits=True)


def find_bodies(task: SegmentationTask) -> tuple[Bodies, ...]:
    """Return the bodies of all takes, see `marey.segmentation.clusters.overlap`."""
    return bodies_from_clusters(task, "overlap")


def bodies_from_clusters(task: SegmentationTask, method: str) -> tuple[Bodies, ...]:
    """Return the bodies of unlabelled markers, the same in every take.

    Markers that are hardly ever seen, duplicates and points that the capture software
    computed are left out of the search and listed in a finding.

    Args:
        task: Several takes must have the same labels.
        method: "overlap" or "spectral", see `cluster_markers`.

    Raises:
        DataError: If the takes have too few markers in common, or too few frames to
            know any distance.
    """
    takes, stats = task.marker_takes, task.pair_stats
    kept, findings = select_markers(takes, stats)
    findings = (*few_common_markers(task.takes), *findings)
    if not stats.select(kept).is_known.any():
        raise DataError(
            "segment",
            found=f"{max(take.n_frames for take in takes)} frames",
            needed=f"{MIN_SAMPLES} frames of markers that move, or a marker map "
            "(template=)",
        )
    groups = {"": kept} if task.n_bodies else group_by_subject(takes[0], kept)
    clusterings = {
        subject: cluster_markers(
            [take.points[:, markers] for take in takes],
            stats.select(markers),
            method=method,
            n_bodies=task.n_bodies,
        )
        for subject, markers in groups.items()
    }
    return bodies_of_clusterings(task, groups, clusterings, findings)


def bodies_of_clusterings(
    task: SegmentationTask,
    groups: Mapping[str, Int[Array, " own"]],
    clusterings: Mapping[str, Clustering],
    findings: tuple[Finding, ...],
) -> tuple[Bodies, ...]:
    """Return the bodies of each take from the clusters of each subject's markers.

    One or two markers without a name ("*12") that make a body of their own beside named
    ones are reflections or lost pieces of tracks, and left out.
    """
    takes = task.marker_takes
    n_markers = len(takes[0].labels)
    members = np.zeros((0, n_markers), dtype=bool)
    owner = np.full(n_markers, -1, dtype=np.int64)
    confidence, of_bodies = np.zeros(n_markers), np.zeros(0)
    prefixes: list[str] = []
    for subject, markers in groups.items():
        clustering = clusterings[subject]
        inside = np.zeros((len(clustering.members), n_markers), dtype=bool)
        inside[:, markers] = clustering.members
        owner[markers] = clustering.owner + len(members)
        members = np.concatenate([members, inside])
        confidence[markers] = marker_confidence(clustering)
        of_bodies = np.append(of_bodies, body_confidence(clustering))
        prefix = f"{subject}:" if len(groups) > 1 and subject else ""
        prefixes += [prefix] * len(inside)
    kept = np.ones(len(members), dtype=bool)
    if not task.n_bodies:
        kept, owner, findings = _without_ghosts(takes[0], owner, kept, findings)
    numbers = enumerate(np.flatnonzero(kept).tolist(), start=1)
    names = [f"{prefixes[body]}body{number}" for number, body in numbers]
    return tuple(
        make_bodies(
            take,
            names,
            members[kept],
            owner,
            marker_confidence=confidence,
            body_confidence=of_bodies[kept],
            findings=findings,
            stats=task.pair_stats,
        )
        for take in takes
    )


def _without_ghosts(
    take: Take,
    owner: Int[Array, " marker"],
    bodies: Bool[Array, " body"],
    findings: tuple[Finding, ...],
) -> tuple[Bool[Array, " body"], Int[Array, " marker"], tuple[Finding, ...]]:
    """Return which bodies are kept, the new owners, and findings with those left out.

    Bodies that own no named marker and at most two without a name are not kept, if
    most markers have names.

    Args:
        take: Has the labels.
        owner: The body that owns each marker, -1 for none.
        bodies: One value for each body.
        findings: What was found before.
    """
    used = owner >= 0
    named = np.array([is_name(label) for label in take.labels])
    n_named = np.bincount(owner[used & named], minlength=len(bodies))
    n_owned = np.bincount(owner[used], minlength=len(bodies))
    kept = (n_named > 0) | (n_owned >= MIN_RIGID_MARKERS)
    if kept.all() or n_named.sum() <= 0.5 * n_owned.sum():
        return np.ones_like(bodies), owner, findings
    number = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
    left_out = removal_finding(take, *UNNAMED, used & (number[owner] < 0))
    return kept, number[owner], (*findings, left_out)


def default_names(n_bodies: int) -> tuple[str, ...]:
    """Return names of bodies that have none: body1, body2 ..."""
    return tuple(f"body{i + 1}" for i in range(n_bodies))


def marker_confidence(clustering: Clustering) -> Float[Array, " marker"]:
    """Return the probability that each marker's body is right.

    From the margin of the mean log odds of its body over those of the next best body.
    """
    owned = members_of_labels(clustering.owner)
    support = _mean_log_odds(clustering, owned)
    margin = support[clustering.owner, np.arange(len(clustering.owner))]
    if len(owned) > 1:
        margin = margin - np.where(owned, -np.inf, support).max(axis=0)
    return np.asarray(logistic(INTERCEPT + SLOPE * margin))


def _mean_log_odds(
    clustering: Clustering, owned: Members
) -> Float[Array, "body marker"]:
    """Return the mean log odds of each marker with the other markers of each body."""
    total = np.array([clustering.log_odds[:, body].sum(axis=1) for body in owned])
    n_others = owned.sum(axis=1)[:, None] - owned
    return np.asarray(total / np.maximum(n_others, 1))


def body_confidence(clustering: Clustering) -> Float[Array, " body"]:
    """Return the probability that each body is one rigid thing, by its weakest pair."""
    owner = clustering.owner
    is_pair = (owner[:, None] == owner) & ~np.eye(len(owner), dtype=bool)
    weakest = np.where(is_pair, clustering.log_odds, np.inf).min(axis=1)
    weakest = np.where(is_pair.any(axis=1), weakest, 0.0)
    of_bodies = [weakest[body].min() for body in members_of_labels(owner)]
    return np.asarray(logistic(INTERCEPT + SLOPE * np.array(of_bodies)))
