"""Whether takes, and a skeleton that is given, can be of one subject, bone by bone."""

from collections.abc import Iterator, Sequence

import numpy as np

from marey.attach import BoneComparison, compare_bones, match_joints
from marey.bodies import Bodies
from marey.calibration import CalibrateOptions, calibrate
from marey.joints import fit_joints
from marey.numerics.thresholds import LEVER_ARM_M, SKIN_MOTION_M
from marey.pipeline.stages.several_takes import concatenate_takes
from marey.report import Finding
from marey.rig import build_skeletons
from marey.skeleton import Skeleton
from marey.take import Take
from marey.tree import Tree

MIN_ROTATION = SKIN_MOTION_M / LEVER_ARM_M
"""Rms rotation of a joint, in radians, below which a recording does not show where it
is: skin moves markers by as much."""

QUICK = CalibrateOptions(frames=CalibrateOptions().frames // 2)
"""Calibration from half as many frames: bones are compared, not used."""


def skeleton_findings(
    given: Skeleton, takes: Sequence[Take], bodies: Sequence[Bodies]
) -> Iterator[Finding]:
    """Yield an error if the markers of a given skeleton show other bones than its own.

    Args:
        given: Skeleton with the markers of the takes.
        takes: The recordings.
        bodies: Their bodies, named as the joints of the skeleton.
    """
    found = calibrate(given, takes, options=QUICK).skeleton
    bones = compare_bones(given, found, match_joints(given, found))
    bones = _observed_bones(bones, given, [bodies])
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
    skeleton: Skeleton,
    takes: Sequence[Take],
    bodies: Sequence[Bodies],
    tree: Tree,
    sessions: Sequence[int],
) -> Iterator[Finding]:
    """Yield an error for every session whose bones differ from those of the first.

    Bones of each session are estimated on their own. They count if both of their joints
    move in both sessions: those of a person who stands come from usual proportions.

    Args:
        skeleton: Skeleton of all takes before its calibration.
        takes: The recordings.
        bodies: Their bodies, named as the joints of the skeleton.
        tree: The hierarchy of the bodies.
        sessions: Session of each take.
    """
    numbers = list(dict.fromkeys(sessions))
    if len(numbers) < 2:
        return
    first: Skeleton | None = None
    first_bodies: list[Bodies] = []
    for number in numbers:
        members = [i for i, session in enumerate(sessions) if session == number]
        of_session = [bodies[i] for i in members]
        if not any(_moving_joints(skeleton, of_session).values()):
            continue
        own = [takes[i] for i in members]
        alone = _skeleton_of_session(skeleton, own, of_session, tree)
        if not np.isfinite(alone.length_sd).any():
            continue
        if first is None:
            first, first_bodies = alone, of_session
            continue
        bones = compare_bones(first, alone, match_joints(first, alone))
        bones = _observed_bones(bones, first, [first_bodies, of_session])
        if bones.is_other_subject:
            yield _subjects_differ(members, bones)


def _skeleton_of_session(
    skeleton: Skeleton, takes: Sequence[Take], bodies: Sequence[Bodies], tree: Tree
) -> Skeleton:
    """Return the skeleton that one session shows.

    Markers are calibrated. Sensors have the centres of their joint fits, which use all
    frames: calibration samples few, and a joint that moves for a moment needs more.
    """
    if any(take.labels for take in takes):
        return calibrate(skeleton, takes, options=QUICK).skeleton
    joints = fit_joints(bodies)
    built = build_skeletons(concatenate_takes(tuple(bodies)), joints, tree)
    return max(built, key=lambda one: len({*one.names} & {*skeleton.names}))


def _subjects_differ(members: Sequence[int], bones: BoneComparison) -> Finding:
    """Return the error that takes show another subject than those before."""
    which = ", ".join(str(i + 1) for i in members)
    message = (
        f"shows another subject than the first takes, {describe_bones(bones)}. Solve "
        "them apart"
    )
    percent = 100.0 * (bones.scale - 1.0)
    return Finding(
        "subjects-differ",
        "calibrate",
        "error",
        message,
        subject=f"take {which}",
        value=percent,
    )


def _observed_bones(
    bones: BoneComparison,
    given: Skeleton,
    sessions: Sequence[Sequence[Bodies]],
) -> BoneComparison:
    """Return the bones both of whose joints move in all sessions."""
    still = {
        name
        for session in sessions
        for name, is_moving in _moving_joints(given, session).items()
        if not is_moving
    }
    ends = [(given.parent[path[0]], path[-1]) for path in bones.paths]
    kept = [not still & {given.names[joint] for joint in both} for both in ends]
    return bones.select(np.array(kept, dtype=bool))


def _moving_joints(skeleton: Skeleton, takes: Sequence[Bodies]) -> dict[str, bool]:
    """Return, for joints between two bodies, whether these rotate to each other."""
    column = {name: body for body, name in enumerate(takes[0].names)}
    R = np.concatenate([take.T_world_body[..., :3, :3] for take in takes])
    moving = {}
    for name, above in zip(skeleton.names, skeleton.parent, strict=True):
        parent = skeleton.names[above]
        if above < 0 or name not in column or parent not in column:
            continue
        relative = R[:, column[parent]].swapaxes(1, 2) @ R[:, column[name]]
        relative = relative[np.isfinite(relative).all(axis=(1, 2))]
        # |mean of R|^2 = 3 - 2 rms^2 for small angles.
        lost = 3.0 - np.sum(relative.mean(axis=0) ** 2) if len(relative) else 0.0
        moving[name] = bool(lost >= 2.0 * MIN_ROTATION**2)
    return moving


def describe_bones(bones: BoneComparison) -> str:
    """Return how much longer or shorter the bones are, together and one by one.

    Bones that differ by less than their standard deviation are counted, not listed.
    """
    percent = 100.0 * (bones.scale - 1.0)
    deviation = np.abs(bones.found_m - bones.given_m) / bones.sd_m
    differing = np.flatnonzero(deviation >= min(1.0, deviation.max(initial=0.0)))
    listed = "; ".join(
        f"{bones.names[bone]} {1e3 * bones.found_m[bone]:.0f} instead of "
        f"{1e3 * bones.given_m[bone]:.0f} mm"
        for bone in differing.tolist()
    )
    size = f"{abs(percent):.0f} % {'longer' if percent > 0 else 'shorter'}"
    if round(percent) == 0:
        size = "as long on average"
    count = f"{len(differing)} of {len(bones.names)} differ"
    return f"its bones {size}, {count}: {listed}"
