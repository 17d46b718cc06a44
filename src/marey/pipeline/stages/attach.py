"""The skeleton that is given in place of the one that the recordings gave."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from marey.attach import (
    BoneComparison,
    JointMatch,
    SkeletonMatch,
    adapt_lengths,
    add_center_markers,
    add_center_points,
    carry_over,
    center_labels,
    compare_bones,
    drop_center_findings,
    drop_center_markers,
    match_skeletons,
    scale_skeleton,
)
from marey.calibration import CalibrateOptions, calibrate
from marey.errors import OptionError
from marey.numerics import geometry
from marey.numerics.procrustes import points_seen
from marey.numerics.robust import mean_where
from marey.numerics.thresholds import MARKER_NOISE_M, MIN_POSE_POINTS
from marey.pipeline.options import SolveOptions, session_numbers
from marey.pipeline.reporting.compare_subjects import skeleton_differs
from marey.pipeline.stages.bodies import BodyFit
from marey.pipeline.stages.reroot import reroot_skeleton
from marey.pipeline.stages.subjects import SubjectFit
from marey.pose import fit_pose
from marey.report import Finding, count_noun
from marey.skeleton import Skeleton, marker_columns
from marey.take import Take

MAX_ITERATIONS = 12
"""Most rounds of poses and marker offsets within the limits of the joints. Chosen by
hand."""

POSE_METHOD = "gauss_newton"
"""Method that keeps hinges and limits, of markers and of sensors."""


def attach_to_given(
    subjects: Sequence[SubjectFit], fit: BodyFit, options: SolveOptions
) -> tuple[SubjectFit, ...]:
    """Return the subjects, one of them with the bones and joints that are given.

    Its markers and sensors are carried over from its free skeleton
    (`marey.attach.carry_over`), calibrated with these bones over all takes, and then
    fitted in turn with poses that keep hinges and limits.

    Raises:
        OptionError: If no joint of the given skeleton corresponds to one of a subject.
    """
    given = options.skeleton
    assert isinstance(given, Skeleton)
    number, chosen, found = _choose_subject(subjects, given, options)
    matches = found.joints
    bones = compare_bones(given, chosen.skeleton, matches)
    findings = (*_match_findings(found, given), *_bone_findings(bones, options))
    if options.fit == "scale":
        given = scale_skeleton(given, bones.scale)
    elif options.fit == "lengths":
        adapted = adapt_lengths(given, chosen.skeleton, matches, bones)
        given = adapted.skeleton
        findings = (*findings, _lengths_finding(adapted.kept, bones.scale))
    takes = [take.measured for take in fit.takes]
    attached = _attach(given, chosen, takes, matches, session_numbers(options))
    method = POSE_METHOD if options.pose == "auto" else options.pose
    attached = replace(
        attached, pose_method=method, findings=(*attached.findings, *findings)
    )
    return (*subjects[:number], attached, *subjects[number + 1 :])


def _choose_subject(
    subjects: Sequence[SubjectFit], given: Skeleton, options: SolveOptions
) -> tuple[int, SubjectFit, SkeletonMatch]:
    """Return which subject has most joints of the given skeleton, and these.

    With it comes the subject in a tree that is like the given one. If the options name
    one of the subjects, it is that one.
    """
    named = [k for k, one in enumerate(subjects) if one.name == options.subject]
    numbers = named or range(len(subjects))
    matches = [_match_subject(subjects[k], given) for k in numbers]
    best = max(range(len(matches)), key=lambda k: len(matches[k][1].joints))
    number, (chosen, found) = numbers[best], matches[best]
    if not found.joints:
        likeness = 100.0 * max(
            match.tree.likeness for _, match in matches if match.tree
        )
        some = ", ".join(given.names[:MIN_POSE_POINTS])
        raise OptionError(
            "skeleton",
            found=f"bones that are {likeness:.0f} % like those of the recording",
            needed="the skeleton of this performer; if it is, call bodies or sensors "
            f"by its joints, such as {some}",
        )
    return number, chosen, found


def _match_subject(
    subject: SubjectFit, given: Skeleton
) -> tuple[SubjectFit, SkeletonMatch]:
    """Return the subject and its joints that correspond to those of a given skeleton.

    Bodies without known names may have any root: if the trees are not alike, every
    joint that carries several others is tried, and the most alike is chosen.
    """
    found = match_skeletons(given, subject.skeleton)
    if found.joints or found.tree is None:
        return subject, found
    is_moving = [kind != "fixed" for kind in subject.skeleton.kind[1:]]
    n_children = np.bincount(subject.skeleton.parent[1:][is_moving])
    rerooted = [
        subject.change_skeletons(reroot_skeleton, root)
        for root in np.flatnonzero(n_children > 1).tolist()
    ]
    matches = [(one, match_skeletons(given, one.skeleton)) for one in rerooted]
    return max(
        [(subject, found), *matches],
        key=lambda pair: pair[1].tree.likeness if pair[1].tree else 0.0,
    )


def _attach(
    given: Skeleton,
    subject: SubjectFit,
    takes: Sequence[Take],
    matches: Sequence[JointMatch],
    sessions: tuple[int, ...],
) -> SubjectFit:
    """Return the subject with the given skeleton and its markers and sensors on it."""
    with_centers = [
        add_center_points(
            take, fit_pose(one, take, method=subject.pose_method)[0], given, matches
        )
        for one, take in zip(subject.take_skeletons, takes, strict=True)
    ]
    rough = add_center_markers(carry_over(given, subject.skeleton, matches), matches)
    options = CalibrateOptions(
        keep_bones=True, known_markers=center_labels(rough), sessions=sessions
    )
    found = calibrate(rough, with_centers, options=options)
    posed = _place_markers(found.skeletons, with_centers)
    skeletons = tuple(map(drop_center_markers, posed))
    mean = drop_center_markers(found.skeleton)
    offset = np.mean([one.marker_offset for one in skeletons], axis=0)
    return replace(
        subject,
        skeleton=replace(mean, marker_offset=offset),
        take_skeletons=skeletons,
        findings=(
            *drop_center_findings(found.findings),
            _attached_finding(mean, matches),
        ),
        landmark_joints=(),
    )


def _place_markers(
    skeletons: tuple[Skeleton, ...], takes: Sequence[Take]
) -> tuple[Skeleton, ...]:
    """Return the skeleton of each take with markers that fit poses within the limits.

    Alternating least squares: poses with these markers, markers on these poses.
    """
    for _ in range(MAX_ITERATIONS):
        before = skeletons
        skeletons = tuple(map(_mean_marker_offsets, before, takes))
        steps = [
            np.linalg.norm(a.marker_offset - b.marker_offset, axis=-1).max(initial=0.0)
            for a, b in zip(before, skeletons, strict=True)
        ]
        if max(steps) < MARKER_NOISE_M:
            break
    return skeletons


def _mean_marker_offsets(skeleton: Skeleton, take: Take) -> Skeleton:
    """Return the skeleton with markers at their mean places on the posed bones."""
    column = marker_columns(skeleton, take)
    is_center = np.isin(skeleton.marker_labels, center_labels(skeleton))
    seen = np.flatnonzero((column >= 0) & ~is_center)
    if not len(seen):
        return skeleton
    motion, _ = fit_pose(skeleton, take, method=POSE_METHOD)
    T = motion.T_world_joint()[:, skeleton.marker_joint[seen]]
    local = geometry.apply(geometry.inverse(T), take.points[:, column[seen]])
    offset = skeleton.marker_offset.copy()
    known = points_seen(local)[..., None]
    offset[seen] = mean_where(local, known, default=offset[seen])
    return replace(skeleton, marker_offset=offset)


# --- findings -------------------------------------------------------------------------


def _attached_finding(attached: Skeleton, matches: Sequence[JointMatch]) -> Finding:
    targets = [
        count_noun(count, word)
        for count, word in (
            (len(attached.marker_labels), "marker"),
            (len(attached.sensor_names), "sensor"),
        )
        if count
    ]
    message = (
        f"{len(matches)} joints of the given skeleton were recognised; "
        f"{' and '.join(targets)} were put on its bones"
    )
    return Finding("skeleton-given", "skeleton", "info", message, attached.names[0])


def _match_findings(match: SkeletonMatch, given: Skeleton) -> list[Finding]:
    """Return a warning if names are unknown and left and right may be swapped."""
    if match.tree is None or not match.tree.is_ambiguous:
        return []
    message = (
        "names of the given joints are unknown; another match of its bones is as "
        f"good ({100.0 * match.tree.rival:.0f} % alike, "
        f"{100.0 * match.tree.likeness:.0f} % here): check left and right"
    )
    code = "skeleton-ambiguous"
    return [Finding(code, "skeleton", "warning", message, given.names[0])]


def _lengths_finding(kept: Sequence[str], scale: float) -> Finding:
    message = "all bones have the lengths of the recording"
    if kept:
        message = (
            f"the recording does not determine the bones to {', '.join(kept)}: these "
            f"were scaled by {scale:.3f}, all others have its lengths"
        )
    n_kept = float(len(kept))
    return Finding("skeleton-lengths", "skeleton", "info", message, value=n_kept)


def _bone_findings(bones: BoneComparison, options: SolveOptions) -> list[Finding]:
    """Return how the bones of the recording differ from those given, if they do."""
    if options.fit == "scale":
        message = f"the given skeleton was scaled by {bones.scale:.3f}"
        scaled = Finding("skeleton-scaled", "skeleton", "info", message)
        return [replace(scaled, value=bones.scale)]
    if options.fit == "lengths" or not bones.is_other_subject:
        return []
    return [skeleton_differs(bones)]
