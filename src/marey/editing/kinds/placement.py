"""Edits "place-joint" and "place-marker": offsets in a skeleton set by hand."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from marey.editing.draft import EditStep, PlanDraft
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.take import match_labels


def plan_joint(draft: PlanDraft, step: EditStep) -> None:
    """Look up a joint by the name of its body, or as the end of a bone."""
    name = step.edit.joint
    bodies = draft.bodies_named(name)
    if len(bodies) > 1:
        draft.find_body(step, name)
    joint = "" if bodies else draft.find_end_joint(step, name)
    draft.steps.append(replace(step, bodies=tuple(bodies), joint=joint))


def plan_marker(draft: PlanDraft, step: EditStep) -> None:
    """Look up a marker and the body it is attached to."""
    label = draft.find_marker(step, step.edit.marker)
    body = draft.assignment.body_of(label)
    if not body:
        needed = "a marker that sits on a body"
        raise step.refuse("marker", f"{label}, on no body", needed)
    edit = replace(step.edit, marker=label)
    draft.steps.append(replace(step, edit=edit, bodies=(body,)))


def place_marker(skeleton: Skeleton, step: EditStep) -> Skeleton:
    """Return the skeleton with another offset of a marker.

    Raises:
        OptionError: If the skeleton has no such marker.
    """
    label = step.edit.marker
    bare = [known.rpartition(":")[2] for known in skeleton.marker_labels]
    marker = int(match_labels([label], skeleton.marker_labels, bare)[0])
    if marker < 0:
        needed = f"one of {', '.join(skeleton.marker_labels)}"
        raise step.refuse("marker", f"{label}, never seen with its body", needed)
    offset = skeleton.marker_offset.copy()
    offset[marker] = step.edit.offset
    return replace(skeleton, marker_offset=offset)


def place_joint(skeleton: Skeleton, step: EditStep) -> Skeleton:
    """Return the skeleton with another offset of a joint; at rest all else stays.

    The covariance of the offsets that change is unknown then.
    """
    joint = step.joint_index(skeleton)
    offset, markers = skeleton.offset.copy(), skeleton.marker_offset.copy()
    T, covariance = skeleton.T_joint_sensor.copy(), skeleton.covariance.copy()
    sd = skeleton.length_sd.copy()
    displacement = np.array(step.edit.offset) - offset[joint]
    changed = skeleton.parent == joint
    offset[joint] += displacement
    offset[changed] -= displacement
    markers[skeleton.marker_joint == joint] -= displacement
    T[skeleton.sensor_joint == joint, :3, 3] -= displacement
    changed[joint] = True
    covariance[changed], sd[changed] = np.nan, np.nan
    return replace(
        skeleton,
        offset=offset,
        marker_offset=markers,
        T_joint_sensor=T,
        covariance=covariance,
        length_sd=sd,
    )


def early_placement_findings(steps: Sequence[EditStep]) -> Iterator[Finding]:
    """Return the offsets set before bodies or frames changed, which rotate frames."""
    for step in steps:
        is_placement = step.edit.do in ("place-joint", "place-marker")
        if is_placement and not step.bodies_final:
            yield Finding(
                "placed-early",
                "edit",
                "warning",
                "was placed before bodies or frames were changed, which may rotate its "
                "frame: check whether it is where it should be",
                subject=step.edit.joint or step.edit.marker,
            )
