"""Bodies, joints and tree of takes, and what the joints say is wrong with the takes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from marey.anatomy.naming import Naming
from marey.bodies import Bodies
from marey.cleaning import (
    blanked,
    fill_gaps,
    find_gaping,
    find_marker_slips,
    find_slips,
    fit_field,
    put_back,
    repaired,
    straightened,
)
from marey.editing.apply import Found, Hand
from marey.editing.tree import Start, start_of
from marey.joints import JointFits, find_links, firmed, fit_joints
from marey.joints import findings as joint_findings
from marey.pipeline.concatenate import pooled
from marey.pipeline.options import SolveOptions
from marey.pipeline.progress import Clock
from marey.pipeline.report import (
    ground_findings,
    loop_findings,
    naming_finding,
    part_findings,
    tree_findings,
)
from marey.pipeline.same_session import of_one_session
from marey.pipeline.tree_choice import likelier
from marey.report import Finding
from marey.rig import renamed
from marey.segmentation import segment
from marey.take import Take
from marey.topology import infer_tree, named_tree
from marey.tree import Tree

NO_JOINTS = JointFits(
    pair=np.zeros((0, 2), dtype=np.int64),
    **dict.fromkeys(("center_a", "center_b", "axis_a", "axis_b"), np.zeros((0, 3))),
    **dict.fromkeys(("residual", "noise", "distance", "mediated"), np.zeros(0)),
    spread=np.zeros((0, 6)),
    covariance=np.zeros((0, 6, 6)),
    kind=(),
)
"""Joints of a body that is all by itself."""

ONE_BODY = Finding(
    "one-body", "joints", "info", "one rigid body only: there is nothing to join"
)

# Repairs that need joints are looked for so many times, each time with a better tree.
ROUNDS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """Takes with the bodies, joints and tree found in them."""

    takes: tuple[Take, ...]
    bodies: tuple[Bodies, ...]
    joints: JointFits
    tree: Tree
    doubts: tuple[Finding, ...]
    """What the joints say of the bodies and of themselves, for all pairs."""

    tree_known: bool
    """Whether the tree was given, by the user or by the labels."""

    found: Found
    """The bodies by the names they were found by, before soft ones were posed."""

    start: Start
    """The tree before it was hung from where it is to hang."""

    namings: tuple[Naming, ...] = ()
    """What the figures look like, where their bodies had no names."""

    hips: tuple[int, ...] = ()
    """Bodies that became hips by their looks after the user changed bodies or tree."""

    def findings(self) -> Iterator[Finding]:
        """Return what is worth telling; of pairs, those that the answer turns on."""
        tree, pair = self.tree, self.joints.pair
        used = np.zeros(len(pair), dtype=bool)
        used[tree.edge[tree.edge >= 0]] = True
        used[[loop.pair for loop in tree.loops]] = True
        # A body that hangs from nothing and carries nothing may lack any of its joints.
        alone = (tree.parent < 0) & ~np.isin(np.arange(len(tree.parent)), tree.parent)
        names = self.bodies[0].names
        yield from dict.fromkeys(f for bodies in self.bodies for f in bodies.findings)
        yield from (naming_finding(naming) for naming in self.namings)
        if self.namings:
            yield from part_findings(tree, self.bodies[0])
        yield from ground_findings(self.takes)
        other = {
            f"{names[a]}-{names[b]}"
            for a, b in pair[~(used | alone[pair].any(axis=1))].tolist()
        }
        yield from (doubt for doubt in self.doubts if doubt.subject not in other)
        if not self.tree_known:
            yield from tree_findings(self.joints, tree, self.bodies[0])
        yield from loop_findings(self.joints, tree, self.bodies)


def fit_all(
    takes: tuple[Take, ...],
    chosen: SolveOptions,
    clock: Clock,
    hand: Hand | None = None,
) -> Fitted:
    """Return the bodies, joints and tree of takes, as found or as the user has them."""
    with clock.stage("segment"):
        find = partial(_segmented, takes, chosen)
        bodies = find() if hand is None else hand.bodies(takes, find)
    with clock.stage("joints"):
        fit = partial(_joints, method=chosen.joints)
        joints = fit(bodies) if hand is None else hand.joints(bodies, fit)
    found = Found(bodies, joints)
    with clock.stage("tree"):
        fitted = _as_found if hand is None else partial(_as_hung, hand=hand)
        return fitted(found, chosen=chosen)


def _segmented(takes: tuple[Take, ...], chosen: SolveOptions) -> tuple[Bodies, ...]:
    return segment(
        takes,
        method=chosen.segment,
        template=chosen.template,
        n_bodies=chosen.n_bodies,
    )


def _joints(bodies: tuple[Bodies, ...], method: str) -> JointFits:
    if len(bodies[0].names) < 2:
        return NO_JOINTS
    return fit_joints(of_one_session(bodies), method=method)


def _as_found(found: Found, chosen: SolveOptions) -> Fitted:
    """Return the tree that the joints support best, its bodies named by their looks."""
    whole = pooled(found.bodies)
    start = start_of(found.joints, _tree(found.joints, whole, chosen), chosen.weight)
    bodies, joints, tree = _firm(found, start.tree, chosen)
    known, namings = renamed(pooled(bodies), joints, tree)
    if not chosen.tree:
        for body in _hips(known.names):
            tree = tree.reroot(body)
    bodies = tuple(replace(one, names=known.names) for one in bodies)
    given = bool(chosen.tree or whole.parents)
    return _fitted(found, start, bodies, joints, tree, given, tuple(namings))


def _as_hung(found: Found, chosen: SolveOptions, hand: Hand) -> Fitted:
    """Return the tree as the user has it."""
    joints = found.joints
    tree = hand.known_tree(joints, chosen.weight)
    given = tree is not None
    if tree is None:
        tree = infer_tree(joints, weight=chosen.weight)
        tree = likelier(pooled(found.bodies), joints, tree)
    start = start_of(joints, tree, chosen.weight)
    hanging, _ = hand.hanging(start)
    tree = hanging.tree() if hanging.changed else start.tree
    bodies, joints, tree = _firm(found, tree, chosen)
    trees = start.tree, hanging.tree()
    names, namings, new = hand.named(pooled(bodies), joints, trees)
    hips = _hips(names) if new and not chosen.tree else []
    tree = replace(hanging.tree(hips), loops=tree.loops)
    bodies = tuple(replace(one, names=names) for one in bodies)
    fitted = _fitted(found, start, bodies, joints, tree, given, namings)
    return replace(fitted, hips=tuple(hips))


def _firm(
    found: Found, tree: Tree, chosen: SolveOptions
) -> tuple[tuple[Bodies, ...], JointFits, Tree]:
    """Return bodies with soft ones posed by their joints, and links besides the tree's.

    These are sought between sensors only, in every take.
    """
    again = partial(fit_joints, method=chosen.joints)
    bodies, joints = firmed(found.bodies, found.joints, tree, fit=again)
    if len(bodies[0].names) > 1 and not any(one.shared.any() for one in bodies):
        links = [
            replace(link, take=number)
            for number, one in enumerate(bodies)
            for link in find_links(one, joints, tree)
        ]
        tree = replace(tree, loops=(*tree.loops, *links))
    return bodies, joints, tree


def _fitted(
    found: Found,
    start: Start,
    bodies: tuple[Bodies, ...],
    joints: JointFits,
    tree: Tree,
    given: bool,
    namings: tuple[Naming, ...],
) -> Fitted:
    several = len(bodies[0].names) > 1
    doubts = tuple(joint_findings(bodies, joints)) if several else (ONE_BODY,)
    takes = tuple(one.take for one in bodies)
    return Fitted(takes, bodies, joints, tree, doubts, given, found, start, namings)


def mended_fit(
    first: Fitted, chosen: SolveOptions, clock: Clock, hand: Hand | None = None
) -> Fitted:
    """Return the fit of takes in which what the joints show is put right.

    A slip may have led to a wrong tree, and a wrong tree to a wrong slip: each round
    looks at the takes as they came, with the tree of the round before.
    """
    fitted = first
    # Orientations that were misread leave nothing to be learnt from gaps.
    if any(doubt.code == "orientations-odd" for doubt in first.doubts):
        return first
    for _ in range(ROUNDS if chosen.clean else 0):
        with clock.stage("clean"):
            takes = _mended(first, fitted)
        if takes == first.takes:
            break
        before, fitted = fitted, fit_all(takes, chosen, clock, hand)
        if fitted.tree.edge.tolist() == before.tree.edge.tolist():
            break
    if chosen.field and (fitted.tree.edge >= 0).any():
        with clock.stage("clean"):
            bend = fit_field(fitted.bodies, fitted.joints, fitted.tree)
        if bend.significant:
            straight = tuple(straightened(take, bend) for take in fitted.takes)
            fitted = fit_all(straight, chosen, clock, hand)
    return _filled(fitted, chosen.max_gap)


def _filled(fitted: Fitted, max_gap: float) -> Fitted:
    """Return the fit with short gaps of its takes filled, to be shown and written."""
    joints, tree = fitted.joints, fitted.tree
    takes = tuple(
        fill_gaps(bodies.take, max_gap, bodies=bodies, joints=joints, tree=tree)
        for bodies in fitted.bodies
    )
    return replace(fitted, takes=takes)


def _mended(first: Fitted, fitted: Fitted) -> tuple[Take, ...]:
    """Return takes without what bodies and joints show to be wrong, or the same takes.

    Sensors jump and slip; of bodies made of markers it is the markers that slip.

    Args:
        first: The takes as they came.
        fitted: The best joints and tree so far.
    """
    takes, joints, tree = first.takes, fitted.joints, fitted.tree
    if any(bodies.shared.any() for bodies in first.bodies):
        found = [find_marker_slips(bodies) for bodies in first.bodies]
        return tuple(put_back(*pair) for pair in zip(takes, found, strict=True))
    # By the names of their sensors, whatever they are called by their looks.
    sensors = first.found.bodies
    slips = find_slips(sensors, joints, tree)
    jumps = [find_gaping(bodies, joints, tree) for bodies in sensors]
    takes = tuple(blanked(*pair) for pair in zip(takes, jumps, strict=True))
    return repaired(takes, slips) if slips else takes


def _hips(names: tuple[str, ...]) -> list[int]:
    """Return the bodies that are somebody's hips."""
    bare = (name.rpartition(":")[2] for name in names)
    return [body for body, name in enumerate(bare) if name == "Hips"]


def _tree(joints: JointFits, bodies: Bodies, options: SolveOptions) -> Tree:
    known = options.tree or bodies.parents
    if known:
        return named_tree(known, bodies.names, joints)
    return likelier(bodies, joints, infer_tree(joints, weight=options.weight))
