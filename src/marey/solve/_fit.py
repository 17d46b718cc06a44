"""Bodies, joints and tree of takes, and what the joints say is wrong with the takes."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from marey.bodies import Bodies
from marey.clean import (
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
from marey.errors import DataError
from marey.joints import JointFits, find_links, firmed, fit_joints
from marey.joints import findings as joint_findings
from marey.report import Finding
from marey.rig import renamed
from marey.rig.naming import Naming
from marey.segment import segment
from marey.solve._looks import likelier
from marey.solve._options import SolveOptions
from marey.solve._report import (
    ground_findings,
    loop_findings,
    naming_finding,
    part_findings,
    tree_findings,
)
from marey.solve._sessions import of_one_session
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


class Clock:
    """Seconds per stage, and word of each as it begins."""

    def __init__(self, progress: Callable[[str], None] | None) -> None:
        self.seconds: dict[str, float] = {}
        self._progress = progress

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        if self._progress is not None:
            self._progress(name)
        start = time.perf_counter()
        yield
        spent = time.perf_counter() - start
        self.seconds[name] = self.seconds.get(name, 0.0) + spent


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

    namings: tuple[Naming, ...] = ()
    """What the figures look like, where their bodies had no names."""

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
        yield from loop_findings(self.joints, tree, self.bodies[0])


def fit_all(takes: tuple[Take, ...], chosen: SolveOptions, clock: Clock) -> Fitted:
    """Return the bodies, joints and tree of takes."""
    with clock.stage("segment"):
        bodies = segment(
            takes,
            method=chosen.segment,
            template=chosen.template,
            n_bodies=chosen.n_bodies,
        )
    several = len(bodies[0].names) > 1
    with clock.stage("joints"):
        together = of_one_session(bodies)
        joints = fit_joints(together, method=chosen.joints) if several else NO_JOINTS
    with clock.stage("tree"):
        tree = _tree(joints, bodies[0], chosen)
        again = partial(fit_joints, method=chosen.joints)
        bodies, joints = firmed(bodies, joints, tree, fit=again)
        if several and not bodies[0].shared.any():
            links = find_links(bodies[0], joints, tree)
            tree = replace(tree, loops=(*tree.loops, *links))
        known, namings = renamed(bodies[0], joints, tree)
        if not (chosen.root or chosen.tree):
            for body in (i for i, name in enumerate(known.names) if _is_hips(name)):
                tree = tree.hung_from(body)
        bodies = tuple(replace(one, names=known.names) for one in bodies)
        doubts = tuple(joint_findings(bodies[0], joints)) if several else (ONE_BODY,)
    takes = tuple(one.take for one in bodies)
    given = bool(chosen.tree or bodies[0].parents)
    return Fitted(takes, bodies, joints, tree, doubts, given, tuple(namings))


def mended_fit(first: Fitted, chosen: SolveOptions, clock: Clock) -> Fitted:
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
        before, fitted = fitted, fit_all(takes, chosen, clock)
        if fitted.tree.edge.tolist() == before.tree.edge.tolist():
            break
    if chosen.field and (fitted.tree.edge >= 0).any():
        with clock.stage("clean"):
            bend = fit_field(fitted.bodies, fitted.joints, fitted.tree)
        if bend.significant:
            straight = tuple(straightened(take, bend) for take in fitted.takes)
            fitted = fit_all(straight, chosen, clock)
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
    if any(take.sensor_names != first.bodies[0].names for take in takes):
        found = [find_marker_slips(bodies) for bodies in first.bodies]
        return tuple(put_back(*pair) for pair in zip(takes, found, strict=True))
    slips = find_slips(first.bodies, joints, tree)
    jumps = [find_gaping(bodies, joints, tree) for bodies in first.bodies]
    takes = tuple(blanked(*pair) for pair in zip(takes, jumps, strict=True))
    return repaired(takes, slips) if slips else takes


def _is_hips(name: str) -> bool:
    return name.rpartition(":")[2] == "Hips"


def _tree(joints: JointFits, bodies: Bodies, options: SolveOptions) -> Tree:
    known = options.tree or bodies.parents
    if known:
        return named_tree(known, bodies.names, joints)
    root = None
    if options.root:
        if options.root not in bodies.names:
            raise DataError(
                "root", found=options.root, needed=f"one of {', '.join(bodies.names)}"
            )
        root = bodies.names.index(options.root)
    tree = infer_tree(joints, weight=options.weight, root=root)
    return tree if root is not None else likelier(bodies, joints, tree)
