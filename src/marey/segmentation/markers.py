"""Bodies of markers without a map: which keep their distances, over all takes."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.bodies import Bodies
from marey.errors import DataError
from marey.report import Finding
from marey.segmentation.body_poses import assembled
from marey.segmentation.clusters.model_selection import Grouping, grouped
from marey.segmentation.clusters.pair_log_odds import as_members
from marey.segmentation.clusters.pair_statistics import (
    FEWEST_FRAMES,
    PairStats,
    pair_statistics,
    thinned,
)
from marey.segmentation.keypoints import are_keypoints, bones_of, owners_of
from marey.take import Take

Array = np.ndarray

# Probability of a marker's body and of a body being one thing, from log odds: logistic
# regression over 22 recordings of people, animals and machines with known bodies.
MARKER_BASE, MARKER_SLOPE = 1.76, 0.185
BODY_BASE, BODY_SLOPE = 1.4, 0.224

# Two markers are one when they are this much nearer than markers are usually.
SAME = 1e-3

# Points that keep their distances this much better than the others were computed.
EXACT = 0.1

# Fewest markers that may be left when computed points are set aside.
FEWEST_LEFT = 12


def bodies_of_markers(
    takes: Sequence[Take], *, method: str = "overlap", n_bodies: int = 0
) -> tuple[Bodies, ...]:
    """Return the bodies of unlabelled markers, the same in every take.

    Markers hardly ever seen, markers twice in the file and points that the capture
    software computed are left out of the search and named in a finding.

    Args:
        takes: One or several takes; several must have the same labels.
        method: "overlap", "spectral", "keypoints" or "auto", see `marey.segment`.
        n_bodies: How many bodies; 0 = found.

    Raises:
        DataError: If the takes have too few markers, or markers of different names.
    """
    takes = _aligned(takes)
    points = [take.points for take in takes]
    stats = pair_statistics(points)
    if method == "auto":
        method = "overlap" if n_bodies else _likely(takes[0], points, stats)
    # Joints that a program solved are exactly rigid, and not to be left out.
    solved = method == "keypoints"
    kept, findings = _kept(takes[0], points, stats, exact=solved)
    if solved:
        return _of_keypoints(takes, stats, kept, findings)
    found = grouped(
        [p[:, kept] for p in points],
        stats.of(kept),
        method=method,
        n_bodies=n_bodies,
    )
    n_markers = points[0].shape[1]
    members = np.zeros((len(found.members), n_markers), dtype=bool)
    members[:, kept] = found.members
    owner = np.full(n_markers, -1, dtype=np.int64)
    owner[kept] = found.owner
    sure = np.zeros(n_markers)
    sure[kept] = marker_confidence(found)
    names = tuple(f"body{i + 1}" for i in range(len(members)))
    return tuple(
        assembled(
            take,
            names,
            members,
            owner,
            marker_confidence=sure,
            body_confidence=body_confidence(found),
            findings=findings,
            stats=stats,
        )
        for take in takes
    )


def _likely(
    take: Take, points: Sequence[Float[Array, "_ marker 3"]], stats: PairStats
) -> str:
    """Return the way that suits the points: joints, or markers of bodies."""
    kept, _ = _kept(take, points, stats, exact=True)
    joints = are_keypoints(take, stats.of(kept), kept)
    return "keypoints" if joints else "overlap"


def _of_keypoints(
    takes: tuple[Take, ...],
    stats: PairStats,
    kept: Int[Array, " kept"],
    findings: tuple[Finding, ...],
) -> tuple[Bodies, ...]:
    members = bones_of(takes[0], stats.of(kept), kept)
    names = tuple(f"body{i + 1}" for i in range(len(members)))
    told = Finding(
        "points-are-joints",
        "segment",
        "info",
        f"{len(kept)} points taken for joints rather than markers: the {len(names)} "
        "bodies are the bones between them",
        value=float(len(kept)),
    )
    found = (
        assembled(
            take,
            names,
            members,
            owners_of(members),
            findings=(*findings, told),
            stats=stats,
        )
        for take in takes
    )
    return tuple(replace(bodies, keypoints=True) for bodies in found)


def _aligned(takes: Sequence[Take]) -> tuple[Take, ...]:
    """Return the takes with the markers that all of them have, in one order."""
    common = [
        label
        for label in takes[0].full_labels
        if all(label in take.full_labels for take in takes[1:])
    ]
    if len(common) < 3:
        raise DataError(
            "segment",
            found=f"{len(common)} markers"
            + (" with the same names in all takes" if len(takes) > 1 else ""),
            needed="at least 3; takes without common names are solved one by one",
        )
    if len(takes) == 1:
        return tuple(takes)
    return tuple(
        take.select([take.full_labels.index(label) for label in common])
        for take in takes
    )


def _kept(
    take: Take,
    points: Sequence[Float[Array, "_ marker 3"]],
    stats: PairStats,
    *,
    exact: bool = False,
) -> tuple[Int[Array, " kept"], tuple[Finding, ...]]:
    """Return the markers to look at, and word of those that are not.

    Args:
        take: The recording.
        points: Its points, and those of other takes.
        stats: Distances of all of them.
        exact: Whether exactly rigid points are kept too.
    """
    seen = sum(np.isfinite(p[thinned(len(p))]).all(axis=-1).sum(axis=0) for p in points)
    often = np.asarray(seen) >= min(FEWEST_FRAMES, max(len(p) for p in points))
    twice = often & _repeated(stats, often)
    computed = np.zeros_like(often)
    if not exact:
        computed = often & ~twice & _computed(stats, often & ~twice)
    kept = np.flatnonzero(often & ~twice & ~computed)
    if len(kept) < 3:
        raise DataError(
            "segment",
            found=f"{len(kept)} markers seen in {FEWEST_FRAMES} frames or more",
            needed="at least 3",
        )
    reasons = {
        "markers-fleeting": (~often, "hardly ever seen"),
        "markers-repeated": (twice, "in the same place as another"),
        "points-computed": (computed, "exactly rigid, so computed rather than seen"),
    }
    findings = (_aside(take, code, *reason) for code, reason in reasons.items())
    return kept, tuple(finding for finding in findings if finding is not None)


def _repeated(
    stats: PairStats, often: Bool[Array, " marker"]
) -> Bool[Array, " marker"]:
    """Return which markers lie where one before them does."""
    usual = np.median(stats.distance[stats.known]) if stats.known.any() else 0.0
    same = stats.known & (stats.distance < SAME * usual) & often
    return np.asarray(np.tril(same, -1).any(axis=1))


def _computed(
    stats: PairStats, often: Bool[Array, " marker"]
) -> Bool[Array, " marker"]:
    """Return which points are far more rigid than markers, where most points are.

    Where only a few are, they are markers that were made rigid, or a very stiff body.
    """
    spread = np.where(stats.known & often, stats.spread, np.inf)
    least = np.where(often, spread.min(axis=1), np.inf)
    order = np.argsort(least, kind="stable")[: int(often.sum())]
    value = least[order]
    few = len(order) // 2
    jump = value[few + 1 :] * EXACT > value[few:-1] if len(order) > 2 else np.zeros(0)
    cut = few + 1 + int(np.argmax(jump)) if np.any(jump) else len(order)
    exact = np.zeros(len(often), dtype=bool)
    if len(order) - cut >= FEWEST_LEFT:
        exact[order[:cut]] = True
    return exact


def _aside(
    take: Take, code: str, which: Bool[Array, " marker"], why: str
) -> Finding | None:
    labels = [take.full_labels[i] for i in np.flatnonzero(which)]
    if not labels:
        return None
    shown = ", ".join(labels[:8]) + (" ..." if len(labels) > 8 else "")
    return Finding(
        code,
        "segment",
        "info",
        f"{len(labels)} points left out, {why}: {shown}",
        value=float(len(labels)),
    )


def marker_confidence(found: Grouping) -> Float[Array, " marker"]:
    """Return how likely each marker's body is right, 0 to 1."""
    one_each = as_members(found.owner)
    support = np.array([_support(found, body) for body in one_each])
    own = support[found.owner, np.arange(len(found.owner))]
    rest = np.where(one_each, -np.inf, support)
    ahead = own - rest.max(axis=0) if len(support) > 1 else own
    return _logistic(MARKER_BASE + MARKER_SLOPE * ahead)


def _support(found: Grouping, body: Bool[Array, " marker"]) -> Float[Array, " marker"]:
    """Return the mean evidence of each marker for a body, itself not counted."""
    total = found.odds[:, body].sum(axis=1)
    return np.asarray(total / np.maximum(body.sum() - body, 1))


def body_confidence(found: Grouping) -> Float[Array, " body"]:
    """Return how likely each body is one rigid thing, by its weakest pair."""
    weakest = [
        found.odds[np.ix_(body, body)].min() if body.sum() > 1 else 0.0
        for body in as_members(found.owner)
    ]
    return _logistic(BODY_BASE + BODY_SLOPE * np.array(weakest))


def _logistic(x: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))
