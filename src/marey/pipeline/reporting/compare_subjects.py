"""Whether takes, and a skeleton that is given, can be of one subject, bone by bone."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from marey.attach import BoneComparison, compare_bones, match_joints
from marey.calibration import CalibrateOptions, calibrate
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.take import Take

QUICK = CalibrateOptions(frames=CalibrateOptions().frames // 2)
"""Calibration from half as many frames: bones are compared, not used."""


def skeleton_findings(given: Skeleton, takes: Sequence[Take]) -> Iterator[Finding]:
    """Yield an error if the markers of a given skeleton show other bones than its own.

    Args:
        given: Skeleton with the markers of the takes.
        takes: The recordings.
    """
    found = calibrate(given, takes, options=QUICK).skeleton
    bones = compare_bones(given, found, match_joints(given, found))
    if bones.is_other_subject:
        yield skeleton_differs(bones)


def skeleton_differs(bones: BoneComparison) -> Finding:
    """Return the error that a recording shows another subject than a skeleton."""
    message = (
        f"the recording shows another subject than the given skeleton, "
        f"{describe_bones(bones)}. Check the skeleton, or ask for fit=scale or "
        "fit=lengths"
    )
    percent = 100.0 * (bones.scale - 1.0)
    return Finding("skeleton-differs", "skeleton", "error", message, value=percent)


def session_findings(
    skeleton: Skeleton, takes: Sequence[Take], sessions: Sequence[int]
) -> Iterator[Finding]:
    """Yield an error for every session whose bones differ from those of the first.

    Each session is calibrated on its own.

    Args:
        skeleton: Skeleton of all takes before its calibration.
        takes: The recordings.
        sessions: Session of each take.
    """
    numbers = list(dict.fromkeys(sessions))
    if len(numbers) < 2:
        return
    first: Skeleton | None = None
    for number in numbers:
        members = [i for i, session in enumerate(sessions) if session == number]
        own = [takes[i] for i in members]
        alone = calibrate(skeleton, own, options=QUICK).skeleton
        if not np.isfinite(alone.length_sd).any():
            continue
        first = first or alone
        bones = compare_bones(first, alone, match_joints(first, alone))
        if bones.is_other_subject:
            which = ", ".join(str(i + 1) for i in members)
            message = (
                f"take {which} shows another subject than the first takes, "
                f"{describe_bones(bones)}. Solve them apart"
            )
            differs = Finding("subjects-differ", "calibrate", "error", message)
            yield replace(
                differs, subject=f"take {which}", value=100.0 * (bones.scale - 1.0)
            )


def describe_bones(bones: BoneComparison) -> str:
    """Return how much longer or shorter the bones are, together and one by one."""
    percent = 100.0 * (bones.scale - 1.0)
    listed = "; ".join(
        f"{name} {1e3 * found:.0f} instead of {1e3 * given:.0f} mm"
        for name, given, found in zip(
            bones.names, bones.given_m, bones.found_m, strict=True
        )
    )
    longer = "longer" if percent > 0 else "shorter"
    return f"its bones {abs(percent):.0f} % {longer}: {listed}"
