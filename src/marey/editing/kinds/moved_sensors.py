"""Sensors that moved on their bones in mid-take: hidden first, then put back.

From where an edit says that a sensor sits otherwise, bones and joints are fitted
without it. Once its null models are known, its later poses are expressed as those of a
sensor that never moved, as slips are undone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from marey.bodies import Bodies
from marey.editing.draft import EditStep
from marey.editing.kinds.null_models import (
    LATER,
    Start,
    hide_sensors,
    named_sensors,
    null_model,
    skeleton_at,
    starts_of,
)
from marey.edits import Edit
from marey.errors import DataError
from marey.numerics import Array, Float, geometry
from marey.pipeline.stages.subjects import SubjectFit
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.take import Take

SENSOR_EDITS = ("place-sensor", "null-model")


def is_later_change(edit: Edit) -> bool:
    """Return whether an edit says that sensors moved on their bones in mid-take."""
    return edit.do in SENSOR_EDITS and edit.start > (0, 0)


def edits_of_takes(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Return the edits that decide what of the takes bodies are fitted to."""
    return tuple(edit for edit in edits if edit.do == "bad" or is_later_change(edit))


def hide_moved_sensors(
    takes: tuple[Take, ...], steps: Sequence[EditStep]
) -> tuple[Take, ...]:
    """Return the takes without sensors from where they moved on their bones.

    Raises:
        DataError: If a sensor is not seen before it moved.
    """
    hidden = takes
    for step in steps:
        if is_later_change(step.edit):
            hidden = tuple(
                hide_sensors(take, named_sensors(step.edit, take), frames)
                for take, frames in _from_start(hidden, step.edit.start)
            )
            _check_seen_before(step, takes, hidden)
    return hidden


def check_frames(step: EditStep, takes: Sequence[Take]) -> None:
    """Raise an OptionError if a take or frame of an edit of sensors does not exist."""
    edit = step.edit
    if edit.take >= len(takes):
        raise step.refuse("take", edit.take, f"0 to {len(takes) - 1}")
    last = takes[edit.take].n_frames - 1
    latest = max(edit.last, edit.start[1])
    if latest > last:
        raise step.refuse("frames", latest, f"0 to {last}")
    if edit.do == "null-model" and edit.start[1] > edit.first:
        found = f"{edit.start[1]}, after the first of its frames, {edit.first}"
        raise step.refuse("since", found, "a frame at or before them")


def _from_start(takes: Sequence[Take], start: Start) -> Iterator[tuple[Take, slice]]:
    """Return each take with its frames from a start on, which lasts to the end."""
    for number, take in enumerate(takes):
        first = start[1] if number == start[0] else 0
        yield take, slice(first if number >= start[0] else take.n_frames, None)


def _check_seen_before(
    step: EditStep, takes: Sequence[Take], hidden: Sequence[Take]
) -> None:
    names = {
        take.sensor_names[i] for take in takes for i in named_sensors(step.edit, take)
    }
    seen = {
        name
        for take in hidden
        for name, known in zip(take.sensor_names, take.sensor_seen.T, strict=True)
        if known.any()
    }
    unseen = sorted(names - seen)
    if unseen:
        raise DataError(
            f"edit {step.number}: {step.edit}",
            found=f"no frame before in which {', '.join(unseen)} is seen",
            needed="some frames before, or since = 0 for all frames",
        )


def express_as_unmoved(
    subjects: Sequence[SubjectFit],
    takes: Sequence[Take],
    shown: Sequence[Take],
    steps: Sequence[EditStep],
    pending: Sequence[EditStep],
) -> tuple[tuple[SubjectFit, ...], tuple[Take, ...]]:
    """Return subjects with one null model per sensor, and takes that fit to it.

    The pose of a sensor with a later null model is expressed as that of a sensor that
    never moved on its bone, as slips are undone.

    Args:
        subjects: After all edits of skeletons.
        takes: The recordings, without sensors from where they moved.
        shown: The recordings with all that was seen.
        steps: Edits of skeletons.
        pending: Those that the recordings do not contain already.
    """
    unmoved = list(takes)
    for number, (take, all_seen) in enumerate(zip(takes, shown, strict=True)):
        T = take.T_world_sensor.copy()
        findings = []
        for step in (s for s in steps if is_later_change(s.edit)):
            ((_, frames),) = [*_from_start(takes, step.edit.start)][number : number + 1]
            sensors = named_sensors(step.edit, take)
            T[frames, sensors] = all_seen.T_world_sensor[frames, sensors]
            if step.edit.take == number and step in pending:
                findings.append(_finding(step.edit))
        for subject in subjects:
            _undo_later(subject.take_skeletons[number], take, T, number)
        unmoved[number] = replace(take, T_world_sensor=T).with_findings(*findings)
    plain = (s.change_skeletons(skeleton_at, (0, 0)) for s in subjects)
    return tuple(plain), tuple(unmoved)


def _undo_later(
    skeleton: Skeleton, take: Take, T: Float[Array, "frame sensor 4 4"], number: int
) -> None:
    """Express sensors with later null models as if they had not moved, in place."""
    own = (name for name in skeleton.sensor_names if LATER not in name)
    for sensor in (name for name in own if name in take.sensor_names):
        column, first = (
            take.sensor_names.index(sensor),
            null_model(skeleton, sensor, (0, 0)),
        )
        starts = [*starts_of(skeleton, sensor), (number + 1, 0)]
        for start, end in pairwise(starts[1:]):
            begin = start[1] if start[0] == number else 0
            stop = end[1] if end[0] == number else take.n_frames
            if start[0] <= number <= end[0]:
                T_now = null_model(skeleton, sensor, start)
                T[begin:stop, column] = (
                    T[begin:stop, column] @ geometry.inverse(T_now) @ first
                )


def _finding(edit: Edit) -> Finding:
    message = f"{edit}: poses after it are those of a sensor that never moved"
    frames = (edit.start[1], edit.start[1])
    subject = edit.sensor or ", ".join(edit.sensors)
    return Finding(
        "null-model", "edit", "info", message, subject=subject, frames=frames
    )


def pose_revealed_bodies(bodies: Bodies, take: Take) -> Bodies:
    """Return bodies with the poses of sensors in frames that were hidden before.

    Args:
        bodies: Bodies of the take without the sensors that moved.
        take: The take with them.
    """
    T = bodies.T_world_body.copy()
    for name, body, T_body_sensor in zip(
        bodies.sensor_names, bodies.sensor_body, bodies.T_body_sensor, strict=True
    ):
        sensor = take.T_world_sensor[:, take.sensor_names.index(name)]
        missing = ~np.isfinite(T[:, body]).all(axis=(1, 2))
        T[missing, body] = sensor[missing] @ geometry.inverse(T_body_sensor)
    measured = replace(bodies.take, T_world_sensor=take.T_world_sensor)
    return replace(bodies, T_world_body=T, take=measured)
