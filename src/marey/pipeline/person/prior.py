"""Bodies and trees between which the motion hardly decides: those of a person.

Feet that keep their distance for a while, arms that hang beside the hips and a pelvis
whose skin moves mislead the motion. Where it leaves a choice, the one that fits a
person better is taken.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np

from marey.anatomy.names import subject_of
from marey.anatomy.naming import (
    MIN_COST_MARGIN,
    Naming,
    NamingInput,
    find_names,
    naming_cost,
)
from marey.bodies import Bodies
from marey.joint_fits import JointFits
from marey.numerics import Array, Float
from marey.pipeline.stages.several_takes import concatenate_takes
from marey.pipeline.stages.two_kinds import JoinedBodies
from marey.report import Finding
from marey.rig import anonymous_figures
from marey.segmentation import (
    CLEAR_LOG_ODDS,
    Candidate,
    divide_bodies,
    mean_log_odds,
    merge_bodies,
)
from marey.topology import MAX_DOUBTFUL_SPACING, alternative_trees, divided_trees
from marey.tree import Tree

NAMING_WEIGHT = 0.015
"""Agreement with other clusterings (adjusted Rand index) that a unit of naming cost
outweighs. Higher prefers bodies that make a person; from 0.005 to 0.03 joints and names
hardly change. Chosen with whole groups of 58 recordings left out (docs/bodies.md)."""


@runtime_checkable
class Candidates(Protocol):
    """Bodies that the motion supports almost equally well."""

    def of_clusterings(self) -> Iterable[Candidate]:
        """Return the bodies of all clusterings, those of largest agreement first."""

    def changed(
        self, takes: tuple[Bodies, ...], without: Collection[bytes], *, merged: bool
    ) -> Iterable[Candidate]:
        """Return the bodies after each change of one part: see `CandidateBodies`."""


@dataclass(frozen=True, slots=True, eq=False)
class _Choice:
    """Bodies that a clustering supports."""

    segmented: tuple[Bodies, ...]
    """The bodies before pieces of a person were merged."""

    joined: JoinedBodies
    score: float
    """Mean agreement with all clusterings less the price of the naming cost."""


def prefer_person(
    found: JoinedBodies,
    segmented: tuple[Bodies, ...],
    candidates: Candidates,
    join: Callable[[tuple[Bodies, ...]], JoinedBodies],
) -> JoinedBodies:
    """Return the bodies found, or those of other clusterings that make a person.

    Others are tried only if some body found has no name, or if a person found lacks a
    part. Each clustering that makes a person, a whole one if all bodies found have
    names, counts by its agreement less a price for its naming cost; the best is taken
    if it counts more than the bodies found. Then groups of markers are divided as by
    another clustering as long as that counts more, until a person is whole.

    Args:
        found: Bodies with joints and tree.
        segmented: The same bodies before pieces were merged.
        candidates: Bodies of the clusterings that were tried, with their agreement.
        join: Returns bodies with joints and tree.
    """
    if is_whole(found):
        return found
    divided = _divide_people(found, join)
    if divided is not found and is_whole(divided):
        return divided
    found, tried = divided, list(candidates.of_clusterings())
    is_same = [_same_bodies(one.takes, segmented) for one in tried]
    if sum(is_same) != 1:
        return found
    agreement = tried[is_same.index(True)].agreement
    first = _Choice(segmented, found, agreement - _naming_price(found))
    is_named = _are_named(_figures_and_names(*found))
    is_person = _has_whole_person if is_named else _has_person
    others = [one for one, same in zip(tried, is_same, strict=True) if not same]
    best, _ = _best_person(first, others, join, is_person)
    best = _change_parts(best, candidates, join)
    if best is first:
        return found
    return _report_choice(best.joined[0], len(tried)), *best.joined[1:]


def _best_person(
    first: _Choice,
    candidates: Iterable[Candidate],
    join: Callable[[tuple[Bodies, ...]], JoinedBodies],
    is_person: Callable[[JoinedBodies], bool],
) -> tuple[_Choice, set[bytes]]:
    """Return the first choice, or the candidate of highest score that is a person.

    Also the changes of candidates that are no better than the first choice.
    """
    best, useless = first, set()
    for agreement, bodies, change in candidates:
        # The price is never negative.
        if agreement <= best.score:
            continue
        joined = join(bodies)
        score = agreement - _naming_price(joined)
        if score <= first.score or not is_person(joined):
            useless.add(change)
        elif score > best.score:
            best = _Choice(bodies, joined, score)
    return best, useless


def _change_parts(
    choice: _Choice,
    candidates: Candidates,
    join: Callable[[tuple[Bodies, ...]], JoinedBodies],
) -> _Choice:
    """Return the choice with those parts of other clusterings that make it score more.

    Greedy ascent: each step makes the change of largest gain; one that was of no use is
    not tried again. A whole person stays whole, and two bodies become one only if there
    is no person.
    """
    useless: set[bytes] = set()
    while not is_whole(choice.joined):
        has_whole = _has_whole_person(choice.joined)
        changed = candidates.changed(
            choice.segmented, useless, merged=not _has_person(choice.joined)
        )
        is_person = _has_whole_person if has_whole else _has_person
        best, more = _best_person(choice, changed, join, is_person)
        if best is choice:
            break
        choice, useless = best, useless | more
    return choice


def _divide_people(
    found: JoinedBodies, join: Callable[[tuple[Bodies, ...]], JoinedBodies]
) -> JoinedBodies:
    """Return the bodies found, in pieces where these make more people.

    Parts of two people who stand still beside each other may be found as one body.
    """
    divided = divide_bodies(found[0], MAX_DOUBTFUL_SPACING)
    if len(divided[0].names) == len(found[0][0].names):
        return found
    before, after = found, join(divided)
    n_people = [
        _count_people(concatenate_takes(bodies), joints, tree)
        for bodies, joints, tree in (before, after)
    ]
    return after if n_people[1] > n_people[0] else before


def _naming_price(joined: JoinedBodies) -> float:
    """Return the agreement that the naming cost of bodies outweighs."""
    bodies, joints, tree = joined
    return NAMING_WEIGHT * _tree_cost(concatenate_takes(bodies), joints, tree)


def _has_person(joined: JoinedBodies) -> bool:
    """Return whether a figure without names is a person."""
    return any(
        naming is not None and naming.kind == "human"
        for _, naming in _figures_and_names(*joined)
    )


def _has_whole_person(joined: JoinedBodies) -> bool:
    """Return whether a figure without names is a person who lacks no part."""
    return any(
        naming is not None and naming.is_whole_person
        for _, naming in _figures_and_names(*joined)
    )


def _report_choice(bodies: tuple[Bodies, ...], n_tried: int) -> tuple[Bodies, ...]:
    """Return the bodies with the finding that they are not the first choice."""
    message = f"of {n_tried} ways to group the markers, another one makes a person"
    finding = Finding("bodies-chosen", "tree", "info", message, value=float(n_tried))
    return tuple(replace(one, findings=(*one.findings, finding)) for one in bodies)


def _same_bodies(one: tuple[Bodies, ...], other: tuple[Bodies, ...]) -> bool:
    """Return whether two segmentations have the same groups of markers."""
    a, b = one[0].marker_body, other[0].marker_body
    return bool(((a[:, None] == a) == (b[:, None] == b)).all())


def _figures_and_names(
    takes: tuple[Bodies, ...], joints: JointFits, tree: Tree
) -> list[tuple[NamingInput, Naming | None]]:
    """Return the figures without names, and their names by looks."""
    figures = anonymous_figures(concatenate_takes(takes), joints, tree)
    return [(figure, find_names(figure)) for figure in figures]


def _are_named(named: Iterable[tuple[NamingInput, Naming | None]]) -> bool:
    """Return whether all bodies of all figures have a name."""
    return all(
        naming and len(naming.names) == len(figure.neighbours)
        for figure, naming in named
    )


def is_whole(joined: JoinedBodies) -> bool:
    """Return whether all bodies have a name, and people lack no part of a limb."""
    known = _figures_and_names(*joined)
    people = (naming for _, naming in known if naming and naming.kind == "human")
    return _are_named(known) and all(naming.is_whole_person for naming in people)


def stated_subjects(names: Sequence[str]) -> tuple[str, ...]:
    """Return the subject in the name of each body, "" where it has none."""
    return tuple(subject_of(name) for name in names)


def prefer_nameable_tree(bodies: Bodies, joints: JointFits, tree: Tree) -> Tree:
    """Return the tree, or an almost equal one whose anonymous bodies fit a person.

    Greedy descent: of the trees that differ in one doubtful joint
    (`marey.topology.alternative_trees`) the one of least naming cost is taken, as long
    as that is clearly less.
    """
    subjects = stated_subjects(bodies.names)
    tree = _separate_people(bodies, joints, tree)
    cost = _tree_cost(bodies, joints, tree)
    while cost > MIN_COST_MARGIN:
        others = list(alternative_trees(joints, tree, subjects=subjects))
        costs = [_tree_cost(bodies, joints, other) for other in others]
        if min(costs, default=cost) > cost - MIN_COST_MARGIN:
            break
        best = int(np.argmin(costs))
        tree, cost = others[best], costs[best]
    return tree


def _separate_people(bodies: Bodies, joints: JointFits, tree: Tree) -> Tree:
    """Return the tree without long joints that keep figures from being people."""
    others = list(divided_trees(joints, tree, subjects=stated_subjects(bodies.names)))
    n_people = _count_people(bodies, joints, tree) if others else 0
    for other in others:
        if _count_people(bodies, joints, other) > n_people:
            return _separate_people(bodies, joints, other)
    return tree


def _count_people(bodies: Bodies, joints: JointFits, tree: Tree) -> int:
    """Return how many figures without names are people.

    A single one must be whole: legs without a trunk are a person too.
    """
    namings = map(find_names, anonymous_figures(bodies, joints, tree))
    people = [naming for naming in namings if naming and naming.kind == "human"]
    if len(people) > 1:
        return len(people)
    return sum(naming.is_whole_person for naming in people)


def _tree_cost(bodies: Bodies, joints: JointFits, tree: Tree) -> float:
    """Return the sum of the naming costs of all figures without names."""
    return sum(map(naming_cost, anonymous_figures(bodies, joints, tree)), start=0.0)


def merge_pieces(
    takes: tuple[Bodies, ...], joints: JointFits, tree: Tree
) -> tuple[Bodies, ...]:
    """Return the bodies of markers after pieces of a person's bodies merged with them.

    A person has no further bodies: if no part of a limb is missing, a body without a
    name is a piece of the body that it moves with. A figure that is nobody may be
    a person with one body in two: then the two merge that make it fit best. Two bodies
    never merge if the log odds against one body are clear.

    Args:
        takes: The same bodies in every take.
        joints: Candidate joints of all pairs.
        tree: The tree of the bodies.
    """
    bodies = takes[0]
    if bodies.sensor_names or bodies.keypoints or not bodies.shared.any():
        return takes
    named = _figures_and_names(takes, joints, tree)
    if _are_named(named):
        return takes
    odds = mean_log_odds(takes)
    odds = np.where(odds > -CLEAR_LOG_ODDS, odds, -np.inf)
    target = np.arange(len(bodies.names))
    for figure, naming in named:
        for piece, whole in _find_pieces(figure, naming, odds, bodies):
            target[target == target[piece]] = target[whole]
    if (target == np.arange(len(target))).all():
        return takes
    merged = merge_bodies(takes, target)
    finding = _merge_finding(bodies.names, target)
    return tuple(replace(one, findings=(*one.findings, finding)) for one in merged)


def _find_pieces(
    figure: NamingInput,
    naming: Naming | None,
    odds: Float[Array, "body body"],
    bodies: Bodies,
) -> Iterator[tuple[int, int]]:
    """Return the pieces of a figure, each with the body that it belongs to."""
    if naming is None:
        yield from _find_halves(figure, odds)
    elif naming.is_whole_person:
        n_markers = bodies.shared.sum(axis=0)
        for piece in figure.neighbours.keys() - naming.names.keys():
            whole = max(naming.names, key=lambda body: odds[piece, body])
            near = (whole, *figure.neighbours[piece])
            may_merge = np.isfinite(odds[piece, whole])
            may_merge &= n_markers[piece] <= n_markers[whole]
            if may_merge and not naming.lacks_part_near(near):
                yield piece, whole


def _find_halves(
    figure: NamingInput, odds: Float[Array, "body body"]
) -> Iterator[tuple[int, int]]:
    """Return the two neighbours whose merger makes a figure a person, if any."""
    costs = {}
    for a, others in figure.neighbours.items():
        for b in others:
            if a < b and np.isfinite(odds[a, b]):
                merged = figure.merge(a, b)
                naming = find_names(merged)
                if naming and naming.kind == "human":
                    costs[b, a] = naming_cost(merged)
    if costs:
        yield min(costs, key=lambda pair: costs[pair])


def _merge_finding(names: Sequence[str], target: Array) -> Finding:
    pieces = np.flatnonzero(target != np.arange(len(target))).tolist()
    listed = ", ".join(f"{names[p]} with {names[target[p]]}" for p in pieces)
    message = f"{len(pieces)} pieces of bodies of a person are merged: {listed}"
    return Finding("bodies-merged", "tree", "info", message, value=float(len(pieces)))
