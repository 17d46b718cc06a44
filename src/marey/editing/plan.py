"""The plan of all edits: what they ask of bodies, tree, skeletons, names and ground."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from marey.bodies import Bodies
from marey.editing.assignment import BodyAssignment, assignment_of
from marey.editing.draft import EditStep, PlanDraft
from marey.editing.kinds.body_members import (
    plan_merge,
    plan_move_marker,
    plan_move_sensor,
    plan_split,
)
from marey.editing.kinds.ground import plan_ground
from marey.editing.kinds.moved_sensors import SENSOR_EDITS
from marey.editing.kinds.null_models import plan_null_model, plan_place_sensor
from marey.editing.kinds.rename import plan_rename
from marey.editing.kinds.skeletons import plan_joint, plan_marker, plan_reroot
from marey.editing.kinds.tree_edges import plan_edge
from marey.edits import Edit

PLANNERS: Mapping[str, Callable[[PlanDraft, EditStep], None]] = {
    "move-marker": plan_move_marker,
    "move-sensor": plan_move_sensor,
    "merge": plan_merge,
    "split": plan_split,
    "cut": plan_edge,
    "join": plan_edge,
    "reroot": plan_reroot,
    "kind": plan_joint,
    "place-joint": plan_joint,
    "axis": plan_joint,
    "place-marker": plan_marker,
    "place-sensor": plan_place_sensor,
    "null-model": plan_null_model,
    "rename": plan_rename,
    "ground": plan_ground,
}
"""The function that plans each kind of edit, in the order of the stages. Bad frames are
masked before bodies are found."""

BODY_EDITS = ("move-marker", "move-sensor", "merge", "split")
TREE_EDITS = ("cut", "join")
SKELETON_EDITS = (
    *("reroot", "kind", "axis", "place-joint", "place-marker"),
    *SENSOR_EDITS,
)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """All edits, sorted by the stage that they concern.

    Until the end a body keeps the name it was found by, so that a person whose hips
    have another name is still calibrated as a person.
    """

    assignment: BodyAssignment
    found: BodyAssignment
    """The assignment of members to bodies before all edits."""

    steps: tuple[EditStep, ...]
    """Edits of tree, skeletons and names, in order."""

    names: Mapping[str, str]
    """Names that the user gave to bodies, and to joints that are not a body's."""

    ground: Edit | None
    """Plane of the ground that the user set."""

    @property
    def keeps_bodies(self) -> bool:
        """Whether the members of all bodies are as they were found."""
        return self.assignment.members_key == self.found.members_key

    @property
    def keeps_tree(self) -> bool:
        """Whether bodies and tree are as they were found."""
        edits_tree = any(step.edit.do in TREE_EDITS for step in self.steps)
        return not edits_tree and self.assignment.key == self.found.key

    @property
    def fit_key(self) -> Hashable:
        """What bodies, joints and tree follow from."""
        if self.keeps_tree:
            return ()
        edges = (step for step in self.steps if step.edit.do in TREE_EDITS)
        cuts_and_joins = tuple((step.edit.do, step.bodies) for step in edges)
        return self.assignment.key, cuts_and_joins


def plan_edits(
    edits: Sequence[Edit],
    found: Sequence[Bodies],
    parents: Mapping[str, str],
    *,
    first_number: int = 1,
    performer_known: bool = False,
    anatomical_names: Callable[[int], Mapping[str, str]],
) -> Plan:
    """Return the plan of edits.

    Args:
        edits: Edits in order.
        found: The bodies as they were segmented, in each take.
        parents: Parent of each of them by name, where the tree is known.
        first_number: Number of the first edit; 0 where the options ask for a root.
        performer_known: Whether the skeleton is given, which edits do not change.
        anatomical_names: Names by anatomy, after the first n edits, of bodies that were
            found without names.

    Raises:
        OptionError: If an edit names what does not exist, or asks for what is not
            possible.
    """
    start = assignment_of(found, parents)
    fixed_reason = _why_bodies_are_fixed(found, performer_known=performer_known)
    draft = PlanDraft(start, partial(anatomical_names, 0))
    changes_bodies = (*BODY_EDITS, "bad")
    last = max((n for n, e in enumerate(edits) if e.do in changes_bodies), default=-1)
    for index, edit in enumerate(edits):
        step = EditStep(first_number + index, edit, bodies_final=index > last)
        if edit.do in BODY_EDITS and fixed_reason:
            raise step.refuse("bodies", fixed_reason, "bodies of markers or sensors")
        if performer_known and edit.do in (*TREE_EDITS, "reroot"):
            needed = "no edits of its tree: change the skeleton that was given"
            raise step.refuse("bodies", "a performer that is known", needed)
        draft.anatomical_names = partial(anatomical_names, index)
        if edit.do in PLANNERS:
            PLANNERS[edit.do](draft, step)
    assignment = draft.assignment.reorder(start)
    if (assignment.names, assignment.members_key) == (start.names, start.members_key):
        assignment = start
    steps = tuple(draft.steps)
    return Plan(assignment, start, steps, draft.given_names, draft.ground)


def _why_bodies_are_fixed(found: Sequence[Bodies], *, performer_known: bool) -> str:
    """Return why edits cannot change the bodies; "" if they can."""
    if performer_known:
        return "a performer that is known, whose markers the skeleton determines"
    has_markers = [one.shared.any() for one in found]
    if any(has_markers) and not all(has_markers):
        return "takes of markers and takes of sensors, matched by their joints"
    return "points that are joints" if found[0].keypoints else ""
