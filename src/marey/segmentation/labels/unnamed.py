"""Bodies of markers that no set and no word names, by their motion alone."""

from collections.abc import Mapping, Sequence

import numpy as np

from marey.numerics import Array, Float, Int
from marey.numerics.thresholds import FEW
from marey.segmentation.clusters.pair_statistics import (
    CLEAR_LOG_ODDS,
    MIN_LOG_ODDS,
    PairStats,
    log_odds,
)
from marey.segmentation.labels.marker_sets import MIN_MATCHED_FRACTION
from marey.segmentation.labels.spelling import is_name
from marey.segmentation.labels.words import bodies_of_label, names_no_body
from marey.segmentation.marker_selection import find_duplicates
from marey.take import Take


def unnamed_markers(
    take: Take, stats: PairStats, used: Sequence[int], explained: float
) -> list[int]:
    """Return the markers that no label places, and that may be on a performer or prop.

    They are numbers in place of names, and names that nobody knows. None if most names
    are not known: then they are the outputs of a model. Markers of other subjects and
    duplicates are left out.

    Args:
        take: The recording.
        stats: Distances of all markers.
        used: Markers whose bodies are known.
        explained: Fraction of the names that are known.
    """
    if explained < MIN_MATCHED_FRACTION:
        return []
    performers = {"", *(take.subjects[i] for i in used)}
    n_seen = take.seen.sum(axis=0)
    often = n_seen >= FEW * take.n_frames

    def is_unnamed(label: str) -> bool:
        is_known = bool(bodies_of_label(label)) or names_no_body(label)
        return not is_name(label) or not is_known

    others = sorted(set(np.flatnonzero(often).tolist()) - set(used))
    own = [i for i in others if take.subjects[i] in performers]
    candidates = [i for i in own if is_unnamed(take.labels[i])]
    counted = np.zeros(len(n_seen), dtype=np.int64)
    counted[[*used, *candidates]] = n_seen[[*used, *candidates]]
    duplicate = find_duplicates(take, stats, counted) if candidates else counted > 0
    return [i for i in candidates if not duplicate[i]]


def bodies_of_unnamed(
    stats: PairStats, members: Mapping[str, Sequence[int]], candidates: Sequence[int]
) -> dict[int, str]:
    """Return the body of each marker that moves clearly with one body.

    Candidates that keep their distances from each other are taken together, so that the
    end of a stick does not join the hand that holds it. A group joins the body of
    largest mean log odds if these are positive and clearly larger than with the next
    body; in a person who stands still no group does.

    Args:
        stats: Distances of all markers.
        members: Markers of the known bodies.
        candidates: Markers to place.
    """
    names, odds = list(members), known_log_odds(stats, members)
    found: dict[int, str] = {}
    for group in rigid_groups(odds, candidates):
        support = np.array([support_of_group(odds, group, members[b]) for b in names])
        order = np.argsort(-support, kind="stable")
        best = float(support[order[0]])
        runner_up = float(support[order[1]]) if len(order) > 1 else -np.inf
        if best > 0.0 and best - runner_up >= CLEAR_LOG_ODDS:
            found |= dict.fromkeys(group, names[order[0]])
    return found


def known_log_odds(
    stats: PairStats, members: Mapping[str, Sequence[int]]
) -> Float[Array, "marker marker"]:
    """Return the log odds of every two markers to be on one body; NaN if not known.

    Args:
        stats: Distances of all markers.
        members: Markers of the bodies that the noise is taken from.
    """
    inside = np.zeros((len(members), len(stats.spread)), dtype=bool)
    for row, markers in zip(inside, members.values(), strict=True):
        row[list(markers)] = True
    return np.where(stats.is_known, log_odds(stats, inside), np.nan)


def support_of_group(
    odds: Float[Array, "marker marker"], group: Sequence[int], body: Sequence[int]
) -> float:
    """Return the mean log odds of a group of markers with a body; -inf if unknown."""
    known = odds[np.ix_(group, body)]
    known = known[np.isfinite(known)]
    return float(known.mean()) if len(known) else -np.inf


def rigid_groups(
    odds: Float[Array, "marker marker"], candidates: Sequence[int]
) -> list[list[int]]:
    """Return candidates in groups whose mean log odds of one body are positive.

    Agglomerative clustering with average linkage (UPGMA).

    Args:
        odds: Log odds of all pairs; NaN for pairs that are not known.
        candidates: Markers to group.
    """
    from scipy.cluster.hierarchy import fcluster, linkage  # slow to import
    from scipy.spatial.distance import squareform

    if len(candidates) < 2:
        return [[i] for i in candidates]
    own = odds[np.ix_(candidates, candidates)]
    against = -np.where(np.isfinite(own), own, MIN_LOG_ODDS)
    np.fill_diagonal(against, 0.0)
    shift = max(float(-against.min()), 0.0)
    cost = squareform(against + shift, checks=False)
    label: Int[Array, " candidate"] = fcluster(
        linkage(cost, method="average"), shift, criterion="distance"
    )
    return [
        [i for i, one in zip(candidates, label, strict=True) if one == group]
        for group in np.unique(label)
    ]
