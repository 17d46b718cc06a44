"""Edit "bad": frames that the user masks before anything is estimated from them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from marey.editing.draft import EditStep
from marey.edits import Edit
from marey.errors import DataError
from marey.report import Finding
from marey.take import Take


def mask_frames(
    takes: tuple[Take, ...], edits: Sequence[Edit], applied: Sequence[Edit] = ()
) -> tuple[Take, ...]:
    """Return the takes with bad frames masked, as if nothing was seen in them.

    Args:
        takes: The recordings before cleaning.
        edits: All edits.
        applied: Masks that the takes already have.

    Raises:
        OptionError: If there is no such take, frame, marker or sensor.
        DataError: If nothing is left.
    """
    masked = list(takes)
    for index in pending_edits(edits, applied):
        step = EditStep(index + 1, edits[index])
        if step.edit.do != "bad":
            continue
        number = step.edit.take
        if number >= len(masked):
            raise step.refuse("take", number, f"0 to {len(masked) - 1}")
        masked[number] = _mask_take(masked[number], step)
        if not any(take.seen.any() or take.sensor_seen.any() for take in masked):
            what, found = (
                f"edit {step.number}: {step.edit}",
                "nothing else that was seen",
            )
            raise DataError(what, found=found, needed="some frames that are good")
    return tuple(masked)


def pending_edits(edits: Sequence[Edit], applied: Sequence[Edit]) -> list[int]:
    """Return the indices of the edits that are not among the applied ones."""
    left, pending = Counter(applied), []
    for index, edit in enumerate(edits):
        if left[edit]:
            left[edit] -= 1
        else:
            pending.append(index)
    return pending


def _mask_take(take: Take, step: EditStep) -> Take:
    edit = step.edit
    if edit.last >= take.n_frames:
        found = f"{edit.first} to {edit.last}"
        raise step.refuse("frames", found, f"0 to {take.n_frames - 1}")
    points, T = take.points.copy(), take.T_world_sensor.copy()
    filled = take.filled.copy()
    markers, sensors = _columns(take, step)
    frames = slice(edit.first, edit.last + 1)
    points[frames, markers] = np.nan
    filled[frames, markers] = False
    T[frames, sensors] = np.nan
    message, span = f"{edit}: nothing of it is used", (edit.first, edit.last)
    count = float(edit.last - edit.first + 1)
    finding = Finding("marked-bad", "edit", "info", message, frames=span, value=count)
    return replace(
        take.with_findings(finding),
        points=points,
        filled=filled,
        T_world_sensor=T,
        history=(*take.history, str(edit)),
    )


def _columns(take: Take, step: EditStep) -> tuple[list[int], list[int]]:
    """Return the columns of the markers and of the sensors to mask; all by default."""
    names = step.edit.markers
    if not names:
        return list(range(len(take.labels))), list(range(len(take.sensor_names)))
    known = {*take.labels, *take.full_labels, *take.sensor_names}
    unknown = [name for name in names if name not in known]
    if unknown:
        needed = f"one of {', '.join((*take.full_labels, *take.sensor_names))}"
        raise step.refuse("markers", unknown[0], needed)
    labels = zip(take.labels, take.full_labels, strict=True)
    markers = [i for i, both in enumerate(labels) if not set(both).isdisjoint(names)]
    sensors = [i for i, sensor in enumerate(take.sensor_names) if sensor in names]
    return markers, sensors
