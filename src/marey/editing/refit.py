"""Bodies, joints and tree with edits: the same stages, with edits between them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from marey.bodies import Bodies
from marey.editing.cache import StageCache
from marey.editing.draft import EditStep
from marey.editing.form_bodies import form_bodies
from marey.editing.kinds.tree_edges import (
    EditableTree,
    apply_cut,
    apply_join,
    attach_split_bodies,
)
from marey.editing.plan import SKELETON_EDITS, Plan
from marey.errors import DataError
from marey.joints import JointFits
from marey.pipeline.options import SolveOptions
from marey.pipeline.stages.bodies import (
    BodyFit,
    Candidates,
    complete_fit,
    fit_pair_joints,
    hips_among,
    infer_body_tree,
    name_anonymous_bodies,
    segment_takes,
    sensors_alone,
    with_names,
)
from marey.take import Take
from marey.topology import edge_costs, join_loose_bodies, tree_from_parents
from marey.tree import Tree, ancestors_of

EditedFit = tuple[BodyFit, tuple[int, ...]]
"""The fit with all edits of bodies and tree, named by anatomy, and the bodies that were
recognised as hips after the edits."""


@dataclass(frozen=True, slots=True, eq=False)
class EditedStages:
    """Stages 3 to 7 of the pipeline, with edits of bodies and tree between them."""

    plan: Plan
    found: Candidates
    """Bodies and joints before all edits."""

    unedited: BodyFit
    """The fit without edits, repaired and named."""

    cache: StageCache

    def fit_bodies(self, takes: tuple[Take, ...], options: SolveOptions) -> BodyFit:
        """Return bodies, joints and tree of takes, edits of bodies and tree applied."""
        bodies = self._bodies(takes, options)
        joints = self._joints(bodies, options)
        candidates = self._candidates(bodies, joints, options)
        edited = edit_tree(self.plan, candidates, self.unedited, options)[0]
        tree = edited.tree() if edited.is_changed else candidates.tree
        return complete_fit(candidates, tree, options)

    def name_by_anatomy(self, fit: BodyFit, options: SolveOptions) -> EditedFit:
        """Return the fit with names, and its tree with the roots that follow from them.

        Unchanged bodies keep the names they had without edits. Otherwise anonymous
        bodies are named after the first tree in which an anatomy is recognised: the one
        before the edits of the tree, then the one after them.
        """
        edited = edit_tree(self.plan, fit.candidates, self.unedited, options)[0]
        names, namings = self._unedited_names(), self.unedited.namings
        hips: tuple[int, ...] = ()
        keeps_names = self.plan.keeps_bodies and namings
        trees = () if keeps_names else (fit.candidates.tree, edited.tree())
        for tree in trees:
            new_names, new_namings = name_anonymous_bodies(fit, tree)
            if new_namings:
                names, namings = new_names, new_namings
                hips = () if options.tree else hips_among(names)
                break
        tree = replace(edited.tree(hips), loops=fit.tree.loops)
        return with_names(replace(fit, tree=tree), names, namings), hips

    def _unedited_names(self) -> tuple[str, ...]:
        found, named = self.unedited.candidates.names, self.unedited.bodies[0].names
        shown = dict(zip(found, named, strict=True))
        return tuple(shown.get(name, name) for name in self.plan.assignment.names)

    def _bodies(
        self, takes: tuple[Take, ...], options: SolveOptions
    ) -> tuple[Bodies, ...]:
        """Return the bodies of the edited assignment, by the names they were found by.

        Keypoints and unchanged bodies with sensors are segmented again.
        """
        assignment, found = self.plan.assignment, self.found.bodies
        same_takes = all(a is b.take for a, b in zip(takes, found, strict=True))
        if self.plan.keeps_bodies and same_takes:
            return found
        has_sensors = any(one.sensor_names for one in found)
        is_fixed = found[0].keypoints or (self.plan.keeps_bodies and has_sensors)

        def compute() -> tuple[Bodies, ...]:
            if is_fixed:
                return segment_takes(takes, options)
            return form_bodies(assignment, takes, found)

        key = tuple(map(id, takes)), assignment.members_key
        bodies = self.cache.get("bodies", key, compute, keep_alive=takes)
        n_bodies = len(bodies[0].names)
        if n_bodies != len(assignment.names):
            needed = f"{len(assignment.names)}, as without edits"
            raise DataError("bodies after an edit", found=n_bodies, needed=needed)
        return tuple(replace(one, names=assignment.names) for one in bodies)

    def _joints(self, bodies: tuple[Bodies, ...], options: SolveOptions) -> JointFits:
        if bodies is self.found.bodies:
            return self.found.joints
        poses = [one.T_world_body for one in bodies]
        return self.cache.get(
            "joints",
            tuple(map(id, poses)),
            lambda: fit_pair_joints(bodies, options),
            keep_alive=poses,
        )

    def _candidates(
        self, bodies: tuple[Bodies, ...], joints: JointFits, options: SolveOptions
    ) -> Candidates:
        """Return bodies and joints with their tree before the edits of the tree."""
        assignment = self.plan.assignment
        if not self.plan.found.parents:
            tree = infer_body_tree(bodies, joints, options)
            return Candidates(bodies, joints, tree, tree_known=False)
        tree = tree_from_parents(assignment.parents, assignment.names, joints)
        number = assignment.names.index
        origin = {number(new): number(old) for old, new in assignment.splits}
        cost = edge_costs(joints, options.weight)
        tree = attach_split_bodies(tree, joints, cost, origin)
        if not options.tree:
            tree = join_loose_bodies(tree, joints, sensors_alone(bodies))
        return Candidates(bodies, joints, tree, tree_known=True)


def edit_tree(
    plan: Plan,
    candidates: Candidates,
    unedited: BodyFit,
    options: SolveOptions,
    hips: Sequence[int] = (),
) -> tuple[EditableTree, tuple[EditStep, ...]]:
    """Return the tree after all cuts and joins, and the edits of skeletons.

    An edit of a skeleton names a joint as the tree was at that time; the joint is
    checked against the tree at the end.

    Args:
        plan: The edits.
        candidates: Bodies and joints, with the tree before the edits.
        unedited: The fit without edits, whose roots are kept.
        options: How to solve.
        hips: Bodies that were recognised as hips after the edits.

    Raises:
        OptionError: If bodies to cut are not joined, or the like.
    """
    names = plan.assignment.names
    joints = candidates.joints
    cost = edge_costs(joints, options.weight)
    roots = [names.index(root) for root in _root_names(unedited) if root in names]
    edited = EditableTree(candidates.tree, joints.pair, cost, joints.fitted, roots)
    chosen_roots = tuple(hips)
    skeleton_edits = []
    for step in plan.steps:
        bodies = tuple(map(names.index, step.bodies))
        if step.edit.do == "cut":
            apply_cut(edited, step, *bodies)
        elif step.edit.do == "join":
            apply_join(edited, step, *bodies)
        elif step.edit.do == "reroot":
            chosen_roots = (*chosen_roots, *bodies)
        if step.edit.do in SKELETON_EDITS:
            tree = edited.tree(chosen_roots)
            skeleton_edits.append((step, chosen_roots, tree))
    checked = (
        _check_joint(plan, step, tree, edited.tree(roots_then))
        for step, roots_then, tree in skeleton_edits
    )
    return edited, tuple(step for step in checked if step is not None)


def _root_names(fit: BodyFit) -> tuple[str, ...]:
    """Return the roots of the trees by the names found, the largest tree's last."""
    tree, names = fit.tree, fit.candidates.names
    root_of_body = [ancestors_of(tree.parent, body)[-1] for body in range(len(names))]
    return tuple(names[root] for root in sorted(tree.roots, key=root_of_body.count))


def _check_joint(plan: Plan, step: EditStep, then: Tree, now: Tree) -> EditStep | None:
    """Return an edit of a skeleton if its joint still exists at the end.

    Offsets are expressed in the parent's frame, so they are invalid once the body has
    another parent; the kind of a joint that is gone is ignored.

    Args:
        plan: The edits.
        step: An edit of a skeleton.
        then: The tree when the edit was made.
        now: The tree after all cuts and joins, with the roots of that time.
    """
    if not step.bodies or step.edit.do in ("reroot", "null-model"):
        return step
    body = plan.assignment.names.index(step.bodies[0])
    if step.edit.joint and then.parent[body] < 0:
        found = f"{step.edit.joint}, the root of its tree"
        raise step.refuse("joint", found, "a body that has a parent")
    if now.parent[body] == then.parent[body]:
        return step
    if step.edit.do == "kind":
        return None
    what = step.edit.joint or step.edit.marker or step.edit.sensor
    found = f"{what}, placed when its body had another parent"
    raise step.refuse("place", found, "it placed again, in the frame of its parent now")
