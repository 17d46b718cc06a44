"""Takes that are of no use beside the others: left out of all stages, and reported."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from marey.bodies import Bodies
from marey.report import Finding
from marey.segmentation.clusters.pair_statistics import MIN_RIGID_MARKERS
from marey.segmentation.contract import SegmentationTask
from marey.segmentation.marker_selection import common_labels, least_common_take
from marey.take import Take

BY_LABELS = ("auto", "labels")
"""Methods that take the bodies of labels."""

BY_DISTANCES = ("auto", "overlap", "spectral")
"""Methods that need equal markers in all takes."""


def find_unused_takes(task: SegmentationTask, method: str) -> dict[int, str]:
    """Return the takes of no use beside the others, by number, each with the reason.

    A take is of no use if it shows no marker, if its labels name no bodies while those
    of as many others do, or if it alone leaves the takes fewer than three markers with
    the same names. None are left out if that would leave none, nor takes with sensors.

    Args:
        task: The takes.
        method: How their bodies are found.
    """
    if len(task.takes) < 2 or task.has_sensors:
        return {}
    unseen = "it shows no marker"
    unused = {k: unseen for k, take in enumerate(task.takes) if not take.seen.any()}
    if len(unused) == len(task.takes) or task.template is not None:
        return {}
    if method in BY_LABELS and not task.n_bodies:
        nameless = _nameless_takes(task)
        if nameless is not None:
            return {**nameless, **unused}
    if method in BY_DISTANCES:
        unused |= _takes_of_other_names(task.takes, set(unused))
    return unused


def _nameless_takes(task: SegmentationTask) -> dict[int, str] | None:
    """Return the takes whose labels name no bodies; None if those of most do not.

    Labels that the motion contradicts are outvoted by more that it confirms.
    """
    matches = task.label_matches
    wrong = [match for match in matches if match is not None and not match.trusted]
    n_right = len(matches) - len(wrong) - matches.count(None)
    if n_right <= len(wrong) or 2 * n_right < len(matches):
        return None
    reasons = {}
    for k, match in enumerate(matches):
        if match is None:
            reasons[k] = "its labels are none of those of the other takes"
        elif not match.trusted:
            reasons[k] = match.findings[-1].message
    return reasons


def _takes_of_other_names(takes: Sequence[Take], unused: set[int]) -> dict[int, str]:
    """Return the takes without which the others have three common markers or more.

    They must be fewer than the others; else none is returned.
    """
    used = [k for k in range(len(takes)) if k not in unused]
    reasons: dict[int, str] = {}
    while len(common_labels([takes[k] for k in used])) < MIN_RIGID_MARKERS:
        if 2 * (len(reasons) + 1) >= len(used) + len(reasons):
            return {}
        k = least_common_take([takes[k] for k in used])
        reasons[used.pop(k)] = "it has hardly a marker of the other takes"
    return reasons


def with_unused_takes(
    used: tuple[Bodies, ...], takes: Sequence[Take], reasons: Mapping[int, str]
) -> tuple[Bodies, ...]:
    """Return the bodies of all takes; those that were left out show none of them.

    Args:
        used: Bodies of the other takes.
        takes: All takes.
        reasons: The takes that were left out, by number.
    """
    others = iter(used)
    return tuple(
        _without_poses(used[0], take, reasons[k]) if k in reasons else next(others)
        for k, take in enumerate(takes)
    )


def _without_poses(bodies: Bodies, take: Take, reason: str) -> Bodies:
    """Return the bodies of another take, of which this one shows no marker."""
    take = _hide_markers(take, bodies.take, reason)
    n_bodies = len(bodies.names)
    return replace(
        bodies,
        take=take,
        T_world_body=np.full((take.n_frames, n_bodies, 4, 4), np.nan),
        rms=np.full(n_bodies, np.nan),
        findings=(),
    )


def _hide_markers(take: Take, other: Take, reason: str) -> Take:
    """Return a take with the markers of another one, all unseen, and a finding."""
    if all(finding.code != "take-unused" for finding in take.source.findings):
        message = f"the take is left out: {reason}; solve it by itself"
        path = take.source.path
        finding = Finding("take-unused", "segment", "warning", message, path)
        take = take.with_findings(finding)
    shape = take.n_frames, len(other.labels)
    return replace(
        take,
        points=np.full((*shape, 3), np.nan),
        filled=np.zeros(shape, dtype=bool),
        confidence=np.full(shape, np.nan),
        labels=other.labels,
        subjects=other.subjects,
    )
