"""The hand of the user in the fit: bodies as laid out, the tree as hung."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from marey.anatomy.naming import Naming
from marey.bodies import Bodies
from marey.editing.assignment import formed
from marey.editing.plan import FIGURE, Plan, Step
from marey.editing.tree import Hanging, Start, with_parts
from marey.errors import DataError
from marey.joints import JointFits
from marey.rig import renamed
from marey.take import Take
from marey.topology import edge_costs, named_tree
from marey.tree import Tree


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Bodies, and a joint for every pair of them."""

    bodies: tuple[Bodies, ...]
    joints: JointFits


class Memory:
    """Results of stages, by what they follow from; the oldest are forgotten."""

    MOST = 4

    def __init__(self) -> None:
        self._kept: dict[str, dict[Any, Any]] = {}

    def get(
        self, stage: str, key: Any, make: Callable[[], Any], keep: object = None
    ) -> Any:
        """Return a result, made only if it is not known.

        Args:
            stage: What kind of result it is.
            key: What it follows from.
            make: Makes it.
            keep: What must live as long, since the key has its id.
        """
        kept = self._kept.setdefault(stage, {})
        known = kept.pop(key) if key in kept else (make(), keep)
        kept[key] = known
        while len(kept) > self.MOST:
            del kept[next(iter(kept))]
        return known[0]


@dataclass(frozen=True, slots=True, eq=False)
class Hand:
    """What the user did to bodies and tree."""

    plan: Plan
    found: Found
    """The bodies before all edits, by the names they were found by."""

    shown: Mapping[str, str]
    """What they were called then, by the names they were found by."""

    roots: tuple[str, ...]
    """What their trees hung from, the largest tree's last."""

    namings: tuple[Naming, ...]
    """What they looked like."""

    memory: Memory

    def named(
        self,
        bodies: Bodies,
        joints: JointFits,
        trees: Sequence[Tree],
    ) -> tuple[tuple[str, ...], tuple[Naming, ...], bool]:
        """Return the names of bodies, what they look like, and whether that is new.

        Bodies that are as they were found are called as then. Others that had no names
        are looked at anew, in the first of some trees in which they look like anything.
        """
        layout = self.plan.layout
        as_before = layout.members == self.plan.found.members and self.namings
        for tree in () if as_before else trees:
            known, namings = renamed(bodies, joints, tree)
            if namings:
                return known.names, tuple(namings), True
        names = tuple(self.shown.get(name, name) for name in layout.names)
        return names, self.namings, False

    def bodies(
        self, takes: Sequence[Take], segmented: Callable[[], tuple[Bodies, ...]]
    ) -> tuple[Bodies, ...]:
        """Return the bodies as the user has them, by the names they were found by.

        Args:
            takes: The recordings.
            segmented: Finds bodies in them; sensors and points that are joints are
                what they are.
        """
        layout, found = self.plan.layout, self.found.bodies
        same = layout.members == self.plan.found.members
        if same and all(a is b.take for a, b in zip(takes, found, strict=True)):
            return found
        fixed = found[0].keypoints or not found[0].shared.any()

        def make() -> tuple[Bodies, ...]:
            return segmented() if fixed else formed(layout, takes, found)

        key = tuple(map(id, takes)), layout.members
        bodies = self.memory.get("bodies", key, make, keep=takes)
        count = len(bodies[0].names)
        if count != len(layout.names):
            needed = f"{len(layout.names)}, as without edits"
            raise DataError("bodies after an edit", found=count, needed=needed)
        return tuple(replace(one, names=layout.names) for one in bodies)

    def joints(
        self,
        bodies: tuple[Bodies, ...],
        fit: Callable[[tuple[Bodies, ...]], JointFits],
    ) -> JointFits:
        """Return a joint for every pair of bodies."""
        if bodies is self.found.bodies:
            return self.found.joints
        poses = [one.T_world_body for one in bodies]
        key = tuple(map(id, poses))
        joints: JointFits = self.memory.get(
            "joints", key, lambda: fit(bodies), keep=poses
        )
        return joints

    def known_tree(self, joints: JointFits, weight: str) -> Tree | None:
        """Return the tree that was known beforehand, None if none was."""
        layout = self.plan.layout
        if not self.plan.found.parents:
            return None
        tree = named_tree(layout.parents, layout.names, joints)
        at = layout.names.index
        parts = {at(new): at(old) for old, new in layout.parts}
        return with_parts(tree, joints, edge_costs(joints, weight), parts)

    def hanging(self, start: Start) -> tuple[Hanging, tuple[Step, ...]]:
        """Return the tree with all that was done to it, and the steps of figures."""
        return walked(self.plan, start, self.roots)


def walked(
    plan: Plan, start: Start, roots: Sequence[str], hips: Sequence[int] = ()
) -> tuple[Hanging, tuple[Step, ...]]:
    """Return the tree with its edits done in order, and the steps of figures.

    A step of a figure names a joint as it was called at its turn; what comes back
    names it by the body that hangs there in the end.

    Args:
        plan: The edits.
        start: The tree before them.
        roots: Bodies that the trees hang from, the most important last.
        hips: Bodies that became hips by their looks.

    Raises:
        OptionError: If bodies are not joined that should be cut, or the like.
    """
    names = plan.layout.names
    known = [names.index(root) for root in roots if root in names]
    hanging, hung = Hanging(start, known), tuple(hips)
    placed = []
    for step in plan.tree:
        bodies = tuple(names.index(body) for body in step.bodies)
        if step.edit.do == "cut":
            _cut(hanging, step, *bodies)
        elif step.edit.do == "join":
            _join(hanging, start, step, *bodies)
        elif step.edit.do == "reroot":
            hung = (*hung, *bodies)
        if step.edit.do in FIGURE:
            placed.append((step, hung, hanging.tree(hung)))
    ended = (
        _in_the_end(plan, step, then, hanging.tree(hung)) for step, hung, then in placed
    )
    return hanging, tuple(step for step in ended if step is not None)


def _cut(hanging: Hanging, step: Step, a: int, b: int) -> None:
    if step.firm and not hanging.joins(a, b):
        told = f"{' and '.join(step.edit.bodies)}, which are not joined"
        raise step.refused("bodies", told, "two bodies that are")
    hanging.cut(a, b)


def _join(hanging: Hanging, start: Start, step: Step, a: int, b: int) -> None:
    both = " and ".join(step.edit.bodies)
    row = hanging.row(a, b)
    if row < 0 or not start.fitted[row]:
        needed = "two bodies that are seen in the same frames"
        raise step.refused("bodies", f"{both}, never seen together", needed)
    if step.firm and hanging.joins(a, b):
        told = f"{both}, which are joined already"
        raise step.refused("bodies", told, "two bodies that are not")
    if not hanging.join(a, b):
        told = f"{both}, joined by hand by way of others"
        raise step.refused("bodies", told, "one of those joints cut first")


def _in_the_end(plan: Plan, step: Step, then: Tree, now: Tree) -> Step | None:
    """Return a step of a figure if its joint is still there in the end.

    Places are told in frames, which are others when a body hangs by another joint.

    Args:
        plan: The edits.
        step: Of a figure.
        then: The tree at its turn.
        now: The tree after all cuts and joins, hung as at its turn.
    """
    if not step.bodies or step.edit.do == "reroot":
        return step
    name = step.bodies[0]
    body = plan.layout.names.index(name)
    if step.edit.do != "place-marker" and then.parent[body] < 0:
        told = f"{step.edit.joint}, from which the tree hangs"
        raise step.refused("joint", told, "a body that hangs from another")
    if now.parent[body] == then.parent[body]:
        return step
    if step.edit.do == "kind":
        return None
    what = step.edit.joint or step.edit.marker
    told = f"{what}, placed when its body hung from another"
    raise step.refused("place", told, "it placed anew, as the tree hangs now")
