"""Edits "move-marker", "move-sensor", "merge", "split": what makes which body."""

from collections.abc import Sequence
from dataclasses import replace

from marey.editing.draft import EditStep, PlanDraft
from marey.rig import has_default_name


def plan_move_marker(draft: PlanDraft, step: EditStep) -> None:
    """Move a marker to another body, or to none."""
    label = draft.find_marker(step, step.edit.marker)
    to = _find_target(draft, step, label, draft.assignment.body_of(label))
    draft.assignment = draft.assignment.move(to, labels=[label])


def plan_move_sensor(draft: PlanDraft, step: EditStep) -> None:
    """Move a sensor to another body, or to none."""
    sensor = draft.find_sensor(step, step.edit.sensor)
    to = _find_target(draft, step, sensor, draft.assignment.body_of_sensor(sensor))
    draft.assignment = draft.assignment.move(to, sensors=[sensor])


def _find_target(draft: PlanDraft, step: EditStep, name: str, body: str) -> str:
    """Return the body that a marker or sensor is to leave its body for; "" for none.

    Raises:
        OptionError: If it is there already, or is the last one of its body.
    """
    to = draft.find_body(step, step.edit.to) if step.edit.to else ""
    if body == to:
        found = f"{name} on {draft.shown_names().get(to, 'no body')} already"
        raise step.refuse("to", found, "another body")
    if body and draft.assignment.members_of(body) == [name]:
        shown = draft.shown_names()[body]
        what = "marker" if step.edit.marker else "sensor"
        needed = f"{shown} merged with another body instead"
        raise step.refuse(what, f"{name}, the last {what} of {shown}", needed)
    return to


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
    """Make a new body of some markers and sensors of another."""
    edit = step.edit
    body = draft.find_body(step, edit.body)
    labels = [draft.find_marker(step, label) for label in edit.markers]
    sensors = [draft.find_sensor(step, sensor) for sensor in edit.sensors]
    members, leaving = draft.assignment.members_of(body), [*labels, *sensors]
    elsewhere = [name for name in leaving if name not in members]
    if elsewhere or len(set(leaving)) >= len(members):
        what = "markers" if labels else "sensors"
        found = f"{elsewhere[0]}, on another body" if elsewhere else f"all its {what}"
        raise step.refuse(what, found, f"some of {', '.join(members)}, not all")
    wanted = "body" if has_default_name(body) else edit.name or body
    taken = (*draft.assignment.names, *draft.given_names.values())
    new_name = _unused_name(wanted, taken)
    if edit.name and edit.name != new_name:
        draft.check_unused(step, edit.name)
        draft.given_names[new_name] = edit.name
    draft.assignment = draft.assignment.split(body, labels, sensors, new_name)


def _unused_name(name: str, taken: Sequence[str]) -> str:
    """Return a name that is not taken: itself, or itself with a number."""
    number, unused = 1, name
    while unused in taken or unused == "body":
        number += 1
        unused = f"{name}{number}"
    return unused
