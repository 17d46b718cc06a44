"""Stages 3 to 5 and 7: takes to bodies, joints and a tree, named by anatomy."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from marey.anatomy import names as vrm
from marey.anatomy.naming import Naming
from marey.bodies import Bodies
from marey.joints import (
    JointFits,
    find_temporary_joints,
    fit_joints,
    joint_findings,
    pose_underdetermined_bodies,
)
from marey.pipeline.options import SolveOptions
from marey.pipeline.person.leg_division import divide_legs
from marey.pipeline.person.prior import (
    merge_pieces,
    prefer_nameable_tree,
    prefer_person,
    stated_subjects,
)
from marey.pipeline.stages.several_takes import (
    concatenate_takes,
    takes_of_first_session,
)
from marey.pipeline.stages.two_kinds import JoinedBodies, match_sensor_takes
from marey.report import Finding, mark_name
from marey.rig import name_bodies
from marey.segmentation import CandidateBodies, segment, with_common_bodies
from marey.take import Take
from marey.topology import (
    cut_unseen_joints,
    infer_tree,
    join_loose_bodies,
    tree_from_parents,
)
from marey.tree import Tree

NO_JOINTS = JointFits(
    pair=np.zeros((0, 2), dtype=np.int64),
    **dict.fromkeys(("center_a", "center_b", "axis_a", "axis_b"), np.zeros((0, 3))),
    **dict.fromkeys(("residual", "noise", "distance", "mediated"), np.zeros(0)),
    spread=np.zeros((0, 6)),
    covariance=np.zeros((0, 6, 6)),
    kind=(),
)
"""Joints of a single body."""

ONE_BODY = Finding(
    "one-body", "joints", "info", "one rigid body only: there is nothing to join"
)


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Bodies as segmentation returns them, a joint for every pair, and a tree."""

    bodies: tuple[Bodies, ...]
    """The bodies of each take, by the names that segmentation gave them."""

    joints: JointFits
    tree: Tree
    """Tree that the joints support best, or that is known."""

    tree_known: bool
    """Whether the user, a marker map or the labels give the tree."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the bodies."""
        return self.bodies[0].names


@dataclass(frozen=True, slots=True, eq=False)
class BodyFit:
    """Bodies, joints and tree of takes."""

    takes: tuple[Take, ...]
    bodies: tuple[Bodies, ...]
    """The bodies of each take, those of one or two markers posed by their joints."""

    joints: JointFits
    tree: Tree
    joint_findings: tuple[Finding, ...]
    """Doubts about bodies and about the joints of all pairs."""

    candidates: Candidates
    """What the fit began with."""

    namings: tuple[Naming, ...] = ()
    """Anatomies after which anonymous bodies were named."""


# --- segment, joints, tree ------------------------------------------------------------


def segment_takes(takes: tuple[Take, ...], options: SolveOptions) -> tuple[Bodies, ...]:
    """Return the rigid bodies of each take; all takes have the same bodies.

    If some takes have markers and others only sensors, those of sensors get the bodies
    of the markers, by the joints that both show (`marey.pipeline.stages.two_kinds`).
    """

    def find(some: tuple[Take, ...]) -> tuple[Bodies, ...]:
        return segment(
            some,
            method=options.segment,
            template=options.template,
            n_bodies=options.n_bodies,
        )

    marked = tuple(take for take in takes if take.labels)
    if options.segment == "sensors" or len(marked) in (0, len(takes)):
        return find(takes)
    sensed = tuple(take for take in takes if not take.labels)
    with_markers = join_bodies(find(marked), options)
    with_sensors = join_bodies(find(sensed), replace(options, tree={}))
    matched = iter(match_sensor_takes(with_markers, with_sensors))
    found = iter(with_markers[0])
    return with_common_bodies(
        [next(found) if take.labels else next(matched) for take in takes]
    )


def join_bodies(bodies: tuple[Bodies, ...], options: SolveOptions) -> JoinedBodies:
    """Return the bodies of takes of one kind, all posed, with their joints and tree."""
    fit = fit_tree(bodies, fit_pair_joints(bodies, options), options)
    return fit.bodies, fit.joints, fit.tree


def fit_pair_joints(bodies: tuple[Bodies, ...], options: SolveOptions) -> JointFits:
    """Return a joint for every pair of bodies, from all takes of the first session."""
    if len(bodies[0].names) < 2:
        return NO_JOINTS
    return fit_joints(takes_of_first_session(bodies), method=options.joints)


def fit_tree(
    bodies: tuple[Bodies, ...], joints: JointFits, options: SolveOptions
) -> BodyFit:
    """Return the bodies in the tree that is known or that the joints support best.

    Bodies of a person that are pieces of their neighbours are merged with them. If
    unlabelled markers make no person, other clusterings of them may.
    """
    known = options.tree or bodies[0].parents
    if known:
        tree = tree_from_parents(known, bodies[0].names, joints)
        if not options.tree:
            tree = join_loose_bodies(tree, joints, sensors_alone(bodies))
    else:
        found = _join_pieces(bodies, joints, options)
        bodies, joints, tree = _prefer_person(found, bodies, options)
    candidates = Candidates(bodies, joints, tree, tree_known=bool(known))
    return complete_fit(candidates, tree, options)


def _join_pieces(
    bodies: tuple[Bodies, ...], joints: JointFits, options: SolveOptions
) -> JoinedBodies:
    """Return bodies in the tree that joints support best, pieces of people merged."""
    tree = infer_body_tree(bodies, joints, options)
    merged = bodies if options.n_bodies else merge_pieces(bodies, joints, tree)
    if merged is bodies:
        return bodies, joints, tree
    joints = fit_pair_joints(merged, options)
    return merged, joints, infer_body_tree(merged, joints, options)


def _prefer_person(
    found: JoinedBodies, segmented: tuple[Bodies, ...], options: SolveOptions
) -> JoinedBodies:
    """Return the bodies of markers by the clustering that makes a person, if any."""
    first = segmented[0]
    is_clustered = options.segment in ("auto", "overlap") and not options.n_bodies
    if not is_clustered or first.sensor_names or first.keypoints:
        return found

    def join(bodies: tuple[Bodies, ...]) -> JoinedBodies:
        return _join_pieces(bodies, fit_pair_joints(bodies, options), options)

    candidates = CandidateBodies([one.take for one in segmented])
    preferred = prefer_person(found, segmented, candidates, join)
    return divide_legs(preferred, partial(fit_joints, method=options.joints))


def sensors_alone(bodies: tuple[Bodies, ...]) -> tuple[int, ...]:
    """Return the bodies that are sensors without markers, where others have markers."""
    marked = np.any([one.shared.any(axis=0) for one in bodies], axis=0)
    return tuple(np.flatnonzero(~marked).tolist()) if marked.any() else ()


def infer_body_tree(
    bodies: tuple[Bodies, ...], joints: JointFits, options: SolveOptions
) -> Tree:
    """Return the tree that the joints support best."""
    subjects = stated_subjects(bodies[0].names)
    tree = infer_tree(joints, weight=options.weight, subjects=subjects)
    return prefer_nameable_tree(concatenate_takes(bodies), joints, tree)


def complete_fit(candidates: Candidates, tree: Tree, options: SolveOptions) -> BodyFit:
    """Return the fit of a tree: all bodies posed, temporary joints added as loops.

    Bodies of one or two markers get their poses from the joints of the tree. Temporary
    joints are searched in every take, of markers only between several trees.
    """
    fit_pairs = partial(fit_joints, method=options.joints)
    bodies, joints = pose_underdetermined_bodies(
        candidates.bodies, candidates.joints, tree, fit=fit_pairs
    )
    tree, wanted = cut_unseen_joints(tree, joints), tree
    has_markers = any(one.shared.any() for one in bodies)
    if len(bodies[0].names) > 1 and (len(tree.roots) > 1 or not has_markers):
        links = [
            replace(link, take=number)
            for number, one in enumerate(bodies)
            for link in find_temporary_joints(one, joints, tree)
        ]
        tree = replace(tree, loops=(*tree.loops, *links))
    takes = tuple(one.take for one in bodies)
    findings = (
        *_findings_of_joints(bodies, joints),
        *_unseen_parents(bodies[0].names, wanted, tree),
    )
    return BodyFit(takes, bodies, joints, tree, findings, candidates)


def _unseen_parents(
    names: tuple[str, ...], wanted: Tree, tree: Tree
) -> Iterator[Finding]:
    """Yield the bodies that should have a parent and were never seen with it."""
    for body in np.flatnonzero((wanted.edge >= 0) & (tree.edge < 0)).tolist():
        name, parent = (names[one] for one in (body, wanted.parent[body]))
        message = (
            f"{mark_name(name)} is never seen in the same frame as "
            f"{mark_name(parent)}, so it is a figure of its own: record both together"
        )
        yield Finding("parent-unseen", "tree", "warning", message, name)


def _findings_of_joints(
    bodies: tuple[Bodies, ...], joints: JointFits
) -> tuple[Finding, ...]:
    several = len(bodies[0].names) > 1
    return tuple(joint_findings(bodies, joints)) if several else (ONE_BODY,)


def fit_bodies(takes: tuple[Take, ...], options: SolveOptions) -> BodyFit:
    """Return bodies, joints and tree of takes: stages 3 to 5 in one call."""
    bodies = segment_takes(takes, options)
    joints = fit_pair_joints(bodies, options)
    return fit_tree(bodies, joints, options)


# --- names ----------------------------------------------------------------------------


def name_by_anatomy(fit: BodyFit, options: SolveOptions) -> BodyFit:
    """Return the fit with anonymous bodies named after a known anatomy.

    A tree with hips is rooted at them, unless the user gave the tree.
    """
    names, namings = name_anonymous_bodies(fit)
    fit = with_names(fit, names, namings)
    return fit if options.tree else root_at(fit, hips_among(names))


def name_anonymous_bodies(
    fit: BodyFit, tree: Tree | None = None
) -> tuple[tuple[str, ...], tuple[Naming, ...]]:
    """Return the names of all bodies, and the anatomies that were recognised.

    Args:
        fit: Bodies, some of them without a name of their own ("body7").
        tree: Tree to recognise an anatomy in; the fit's own when left out.
    """
    bodies = concatenate_takes(fit.bodies)
    named, namings = name_bodies(bodies, fit.joints, tree or fit.tree)
    return named.names, tuple(namings)


def with_names(
    fit: BodyFit, names: tuple[str, ...], namings: tuple[Naming, ...]
) -> BodyFit:
    """Return the fit with other names of its bodies, in all that is said of them."""
    if names == fit.bodies[0].names:
        return replace(fit, namings=namings)
    bodies = tuple(one.rename(names) for one in fit.bodies)
    findings = _findings_of_joints(bodies, fit.joints)
    return replace(fit, bodies=bodies, joint_findings=findings, namings=namings)


def hips_among(names: tuple[str, ...]) -> tuple[int, ...]:
    """Return the bodies that are the hips of a subject."""
    return tuple(
        i for i, name in enumerate(names) if vrm.without_subject(name) == vrm.HIPS
    )


def root_at(fit: BodyFit, bodies: tuple[int, ...]) -> BodyFit:
    """Return the fit with the tree of each of some bodies rooted at it."""
    tree = fit.tree
    for body in bodies:
        tree = tree.reroot(body)
    return replace(fit, tree=tree)
