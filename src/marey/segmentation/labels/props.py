"""Bodies of props beside performers: sticks, rackets, balls and wheelchairs."""

from collections.abc import Sequence

import numpy as np

from marey.numerics import Array, Float
from marey.numerics.thresholds import FEW
from marey.segmentation.clusters.model_selection import cluster_markers
from marey.segmentation.clusters.pair_statistics import (
    CLEAR_LOG_ODDS,
    MIN_RIGID_MARKERS,
)
from marey.segmentation.labels.match import MarkerSetMatch
from marey.segmentation.labels.spelling import is_name, stem_of_label
from marey.segmentation.labels.unnamed import (
    known_log_odds,
    rigid_groups,
    support_of_group,
    unnamed_markers,
)
from marey.segmentation.labels.words import name_of_thing
from marey.take import Take

Markers = tuple[int, ...]


def find_props(take: Take, match: MarkerSetMatch) -> dict[str, Markers]:
    """Return the markers of props, such as sticks and rackets, by the names of bodies.

    Props are the subjects of the take none of whose markers is used otherwise, and
    unused markers of a performer that are called after a thing ("JOE:Stick1"). A prop
    of several bodies has them numbered: "Stick:body1". Two markers are a prop if they
    keep their distance. Markers that nothing names are one if they keep their distances
    from each other and clearly not from any body of the performers.

    Args:
        take: The recording.
        match: The bodies of the performers.
    """
    odds = known_log_odds(match.stats, match.members)
    props: dict[str, Markers] = {}
    for name, markers in _named_things(take, set(match.used)).items():
        bodies = _rigid_pieces(take, markers, odds)
        for k, body in enumerate(bodies, start=1):
            props[name if len(bodies) == 1 else f"{name}:body{k}"] = body
    first = len(match.members) + len(props) + 1
    for k, body in enumerate(_unnamed_things(take, match, odds), start=first):
        props[f"body{k}"] = body
    return props


def _named_things(take: Take, used: set[int]) -> dict[str, list[int]]:
    """Return the markers of subjects that are no performers, and of things, by name."""
    performers = {take.subjects[i] for i in used}
    seen_often = take.seen.mean(axis=0) >= FEW
    groups: dict[str, list[int]] = {}
    for i in np.flatnonzero(seen_often).tolist():
        subject = take.subjects[i]
        if subject and subject not in performers:
            groups.setdefault(subject, []).append(i)
        elif i not in used and (thing := name_of_thing(take.labels[i])):
            groups.setdefault(thing, []).append(i)
    return groups


def _rigid_pieces(
    take: Take, markers: Sequence[int], odds: Float[Array, "marker marker"]
) -> list[Markers]:
    """Return the bodies of a prop, each with two markers or more.

    A piece with fewer markers than determine a pose joins the piece it moves with best,
    unless the log odds are clearly against: sticks bend.
    """
    if len(markers) < MIN_RIGID_MARKERS:
        return [tuple(g) for g in rigid_groups(odds, markers) if len(g) > 1]
    clusters = cluster_markers([take.points[:, list(markers)]]).members
    pieces = [np.array(markers)[body].tolist() for body in clusters]
    large = [piece for piece in pieces if len(piece) >= MIN_RIGID_MARKERS]
    alone: list[list[int]] = []
    for piece in pieces:
        if len(piece) >= MIN_RIGID_MARKERS:
            continue
        support = [support_of_group(odds, piece, body) for body in large]
        if large and max(support) > -CLEAR_LOG_ODDS:
            large[int(np.argmax(support))] += piece
        elif len(piece) > 1:
            alone.append(piece)
    return [tuple(sorted(piece)) for piece in (*large, *alone)]


def _unnamed_things(
    take: Take, match: MarkerSetMatch, odds: Float[Array, "marker marker"]
) -> list[Markers]:
    """Return groups of markers that nothing names and that move with no body.

    Two markers must have the same name but for side and number.
    """
    candidates = unnamed_markers(take, match.stats, match.used, match.explained)
    found: list[Markers] = []
    for group in rigid_groups(odds, candidates):
        support = [support_of_group(odds, group, b) for b in match.members.values()]
        stems = {stem_of_label(take.labels[i]) for i in group}
        are_named = all(is_name(take.labels[i]) for i in group) and len(stems) == 1
        is_large = len(group) >= MIN_RIGID_MARKERS or (are_named and len(group) > 1)
        if is_large and max(support) < -CLEAR_LOG_ODDS:
            found.append(tuple(group))
    return found
