"""Bodies of markers that are divided: into pieces far apart, or at a joint."""

from collections.abc import Sequence
from itertools import count

import numpy as np

from marey.bodies import Bodies
from marey.numerics import Array, Bool, Float, Int
from marey.segmentation.body_poses import make_bodies
from marey.segmentation.clusters.pair_statistics import (
    MIN_RIGID_MARKERS,
    Members,
    PairStats,
    pair_statistics,
    spread_log_odds,
)


def divide_bodies(takes: Sequence[Bodies], max_spacing: float) -> tuple[Bodies, ...]:
    """Return bodies of markers after those in pieces far apart are divided.

    Two people who stand still beside each other have parts that keep their distances.
    Only pieces of which each has enough markers for a pose become bodies.

    Args:
        takes: The same bodies in every take.
        max_spacing: Largest distance of neighbouring markers on a body, as a multiple
            of the usual one.
    """
    from scipy.sparse.csgraph import connected_components  # slow to import

    bodies = takes[0]
    stats = pair_statistics([one.take.points for one in takes])
    on_bodies = stats.select(np.flatnonzero(bodies.shared.any(axis=1)))
    is_near = stats.distance <= max_spacing * on_bodies.usual_spacing
    names, owner = list(bodies.names), bodies.marker_body.copy()
    origin, members = [*range(len(names))], [*bodies.shared.T]
    for body, inside in enumerate(bodies.shared.T):
        markers = np.flatnonzero(inside)
        _, piece = connected_components(is_near[np.ix_(markers, markers)])
        if np.bincount(piece, minlength=1).min() < MIN_RIGID_MARKERS:
            continue
        members[body] = _only(inside, markers[piece == 0])
        for number in range(1, piece.max() + 1):
            own = _only(inside, markers[piece == number])
            owner[own & (owner == body)] = len(names)
            names.append(_free_name(bodies.names[body], names))
            members.append(own)
            origin.append(body)
    if len(names) == len(bodies.names):
        return tuple(takes)
    return _make_divided(takes, names, members, owner, origin, stats)


def divide_at_joint(
    takes: Sequence[Bodies],
    below: int,
    above: int,
    position: Float[Array, " marker"],
) -> tuple[Bodies, ...]:
    """Return bodies of markers after one body is divided at a joint of a limb.

    The parts are those of `two_parts`. The body stays as it is if the motion does not
    contradict one body (mean log odds without the distance, because markers beside a
    joint are near each other), or if the parts overlap along the limb. The part above
    the joint is the last body. A part of one marker shares the one of the other part
    that it moves with most.

    Args:
        takes: The same bodies in every take.
        below: A marker of the body beyond the joint.
        above: A marker of the body on the near side of the joint.
        position: Position of the markers along the limb, from its end; NaN elsewhere.
    """
    bodies, stats = takes[0], pair_statistics([one.take.points for one in takes])
    body = int(bodies.marker_body[below])
    owned = bodies.marker_body == body
    is_second = two_parts(stats, owned)
    lower = owned & (is_second == is_second[below])
    upper = owned & ~lower
    is_ordered = bool(position[lower].max() < position[upper].min(initial=np.inf))
    if not upper[above] or not is_ordered:
        return tuple(takes)
    members = np.array([*bodies.shared.T, upper])
    members[body] = _with_joint_marker(lower, upper, stats)
    members[-1] = _with_joint_marker(upper, lower, stats)
    if not _are_apart(stats, members, body):
        return tuple(takes)
    names = [*bodies.names, _free_name(bodies.names[body], bodies.names)]
    owner = np.where(upper, len(bodies.names), bodies.marker_body)
    origin = [*range(len(bodies.names)), body]
    return _make_divided(takes, names, members, owner, origin, stats)


def two_parts(
    stats: PairStats, markers: Bool[Array, " marker"]
) -> Bool[Array, " marker"]:
    """Return which markers of a body are in the second of its two parts.

    Complete linkage by the spread of distances: no two markers of a part move much
    against each other.
    """
    from scipy.cluster.hierarchy import fcluster, linkage  # slow to import
    from scipy.spatial.distance import squareform

    second = np.zeros(len(markers), dtype=bool)
    if markers.sum() < 2:
        return second
    spread = stats.known_spread[np.ix_(markers, markers)]
    largest = spread[np.isfinite(spread)].max(initial=0.0)
    spread = np.minimum(spread, largest)
    np.fill_diagonal(spread, 0.0)
    tree = linkage(squareform(spread, checks=False), "complete")
    second[markers] = fcluster(tree, 2, "maxclust") == 2
    return second


def _are_apart(stats: PairStats, members: Members, body: int) -> bool:
    """Return whether the motion contradicts that a body and the last one are one.

    Markers that both share are left out.
    """
    pairs = np.ix_(members[body] & ~members[-1], members[-1] & ~members[body])
    odds = spread_log_odds(stats, members)[pairs]
    known = odds[np.isfinite(odds)]
    return bool(known.size and known.mean() < 0.0)


def _with_joint_marker(
    part: Bool[Array, " marker"], other: Bool[Array, " marker"], stats: PairStats
) -> Bool[Array, " marker"]:
    """Return the markers of a part; a single one with the marker it moves with most."""
    if part.sum() > 1:
        return part
    spread = np.where(other, stats.known_spread[part.argmax()], np.inf)
    return np.asarray(part | (np.arange(len(part)) == spread.argmin()))


def _make_divided(
    takes: Sequence[Bodies],
    names: Sequence[str],
    members: Sequence[Bool[Array, " marker"]] | Members,
    owner: Int[Array, " marker"],
    origin: Sequence[int],
    stats: PairStats,
) -> tuple[Bodies, ...]:
    """Return the bodies of each take after a division.

    Args:
        takes: The bodies before.
        names: Name of each body.
        members: All markers of each body.
        owner: The one body that owns each marker; -1 = none.
        origin: The body before of which each one is a part.
        stats: Distances of all markers.
    """
    return tuple(
        make_bodies(
            one.take,
            names,
            np.array(members),
            owner,
            marker_confidence=one.marker_confidence,
            body_confidence=one.body_confidence[origin],
            findings=one.findings,
            stats=stats,
        )
        for one in takes
    )


def _free_name(near: str, names: Sequence[str]) -> str:
    """Return the name of a body without a name, of the subject of another body."""
    subject, colon, _ = near.rpartition(":")
    numbered = (f"{subject}{colon}body{number}" for number in count(len(names) + 1))
    return next(name for name in numbered if name not in names)


def _only(
    inside: Bool[Array, " marker"], markers: Int[Array, " kept"]
) -> Bool[Array, " marker"]:
    """Return which markers are inside and among some."""
    kept = np.zeros(len(inside), dtype=bool)
    kept[markers] = inside[markers]
    return kept
