"""Edits "move-marker", "merge" and "split": which markers make which body."""

from collections.abc import Sequence
from dataclasses import replace

from marey.editing.draft import EditStep, PlanDraft
from marey.rig import has_default_name


def plan_move_marker(draft: PlanDraft, step: EditStep) -> None:
    """Move a marker to another body, or to none."""
    edit = step.edit
    label = draft.find_marker(step, edit.marker)
    to = draft.find_body(step, edit.to) if edit.to else ""
    body = draft.assignment.body_of(label)
    if body == to:
        found = f"{label} on {draft.shown_names().get(to, 'no body')} already"
        raise step.refuse("to", found, "another body")
    if body and draft.assignment.markers_of(body) == [label]:
        name = draft.shown_names()[body]
        needed = f"{name} merged with another body instead"
        raise step.refuse("marker", f"{label}, the last marker of {name}", needed)
    draft.assignment = draft.assignment.move([label], to)


def plan_merge(draft: PlanDraft, step: EditStep) -> None:
    """Make one body of two; earlier edits of the second are then about the first."""
    a, b = (draft.find_body(step, name) for name in step.edit.bodies)
    if len(draft.assignment.names) == 2:
        needed = "one body more: a single body has no joints"
        raise step.refuse("bodies", "two bodies in all", needed)
    draft.assignment = draft.assignment.merge(a, b)
    draft.given_names.pop(b, None)
    if step.edit.name:
        draft.give_name(step, a, step.edit.name)
    steps = (
        replace(one, bodies=tuple(a if body == b else body for body in one.bodies))
        for one in draft.steps
    )
    draft.steps = [one for one in steps if len(set(one.bodies)) == len(one.bodies)]


def plan_split(draft: PlanDraft, step: EditStep) -> None:
    """Make a new body of some markers of another."""
    edit = step.edit
    body = draft.find_body(step, edit.body)
    labels = [draft.find_marker(step, label) for label in edit.markers]
    markers = draft.assignment.markers_of(body)
    elsewhere = [label for label in labels if label not in markers]
    if elsewhere or len(set(labels)) >= len(markers):
        found = f"{elsewhere[0]}, on another body" if elsewhere else "all its markers"
        raise step.refuse("markers", found, f"some of {', '.join(markers)}, not all")
    wanted = "body" if has_default_name(body) else edit.name or body
    taken = (*draft.assignment.names, *draft.given_names.values())
    new_name = _unused_name(wanted, taken)
    if edit.name and edit.name != new_name:
        draft.check_unused(step, edit.name)
        draft.given_names[new_name] = edit.name
    draft.assignment = draft.assignment.split(body, labels, new_name)


def _unused_name(name: str, taken: Sequence[str]) -> str:
    """Return a name that is not taken: itself, or itself with a number."""
    number, unused = 1, name
    while unused in taken or unused == "body":
        number += 1
        unused = f"{name}{number}"
    return unused
