"""Takes without what the user marked as bad."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from marey.editing.plan import refused
from marey.edits import Edit
from marey.errors import DataError
from marey.report import Finding
from marey.take import Take


def without_bad(
    takes: tuple[Take, ...], edits: Sequence[Edit], settled: Sequence[Edit] = ()
) -> tuple[Take, ...]:
    """Return the takes in which frames marked as bad are as if unseen.

    Args:
        takes: The recordings as they came.
        edits: All edits.
        settled: Those of them that the takes have behind them.

    Raises:
        OptionError: If there is no such take, frame, marker or sensor.
        DataError: If nothing is left.
    """
    done = list(takes)
    for index in unsettled(edits, settled):
        number, edit = index + 1, edits[index]
        if edit.do != "bad":
            continue
        if edit.take >= len(done):
            needed = f"0 to {len(done) - 1}"
            raise refused(number, edit, "take", edit.take, needed)
        done[edit.take] = _blanked(done[edit.take], number, edit)
        if not any(take.seen.any() or take.sensor_seen.any() for take in done):
            what = f"edit {number}: {edit}"
            needed = "some frames that are good"
            raise DataError(what, found="nothing else that was seen", needed=needed)
    return tuple(done)


def unsettled(edits: Sequence[Edit], settled: Sequence[Edit]) -> list[int]:
    """Return the places of the edits that are not settled, in order."""
    left, places = Counter(settled), []
    for place, edit in enumerate(edits):
        if left[edit]:
            left[edit] -= 1
        else:
            places.append(place)
    return places


def _blanked(take: Take, number: int, edit: Edit) -> Take:
    if edit.last >= take.n_frames:
        found, needed = f"{edit.first} to {edit.last}", f"0 to {take.n_frames - 1}"
        raise refused(number, edit, "frames", found, needed)
    points, T = take.points.copy(), take.T_world_sensor.copy()
    filled = take.filled.copy()
    markers, sensors = _columns(take, number, edit)
    frames = slice(edit.first, edit.last + 1)
    points[frames, markers] = np.nan
    filled[frames, markers] = False
    T[frames, sensors] = np.nan
    told = Finding(
        "marked-bad",
        "edit",
        "info",
        f"{edit}: nothing of it is used",
        frames=(edit.first, edit.last),
        value=float(edit.last - edit.first + 1),
    )
    return replace(
        take,
        points=points,
        filled=filled,
        T_world_sensor=T,
        source=replace(take.source, findings=(*take.source.findings, told)),
        history=(*take.history, str(edit)),
    )


def _columns(take: Take, number: int, edit: Edit) -> tuple[list[int], list[int]]:
    """Return the markers and the sensors that an edit is about."""
    if not edit.markers:
        return list(range(len(take.labels))), list(range(len(take.sensor_names)))
    markers, sensors = [], []
    for name in edit.markers:
        both = zip(take.labels, take.full_labels, strict=True)
        mine = [i for i, names in enumerate(both) if name in names]
        theirs = [i for i, sensor in enumerate(take.sensor_names) if sensor == name]
        if not (mine or theirs):
            needed = f"one of {', '.join((*take.full_labels, *take.sensor_names))}"
            raise refused(number, edit, "markers", name, needed)
        markers += mine
        sensors += theirs
    return markers, sensors
