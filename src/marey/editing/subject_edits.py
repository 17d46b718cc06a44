"""Skeletons with roots, kinds and offsets as the user set them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from marey.editing.draft import EditStep
from marey.editing.kinds.joint_kind import EstimatePoses, set_joint_kind
from marey.editing.kinds.placement import place_joint, place_marker
from marey.pipeline.options import SolveOptions
from marey.pipeline.stages_subjects import SubjectFit, reroot_subject


def edit_subjects(
    subjects: Sequence[SubjectFit],
    steps: Sequence[EditStep],
    subject_of: Mapping[str, int],
    options: SolveOptions,
    estimate_poses: EstimatePoses,
) -> tuple[SubjectFit, ...]:
    """Return the subjects with their skeletons edited, in order.

    Edits are applied after calibration, so that they hold exactly.

    Args:
        subjects: Calibrated subjects.
        steps: Edits of skeletons.
        subject_of: Index of the subject that each body belongs to.
        options: How to solve.
        estimate_poses: Estimates motions, for the axes of a joint of another kind.

    Raises:
        OptionError: If no subject has the joint or marker of an edit.
        DataError: If the motion does not determine the axes.
    """
    edited = list(subjects)
    for step in steps:
        number = _find_subject(edited, subject_of, step)
        edited[number] = _edit_subject(edited[number], step, options, estimate_poses)
    return tuple(edited)


def _edit_subject(
    subject: SubjectFit,
    step: EditStep,
    options: SolveOptions,
    estimate_poses: EstimatePoses,
) -> SubjectFit:
    match step.edit.do:
        case "reroot":
            return reroot_subject(subject, step.bodies[0])
        case "place-marker":
            return subject.change_skeletons(lambda one: place_marker(one, step))
        case "place-joint":
            return subject.change_skeletons(lambda one: place_joint(one, step))
    subject = set_joint_kind(subject, step, estimate_poses)
    if step.edit.kind == "ball" or options.pose != "auto":
        return subject
    # Playback of sensors would ignore the kind of a joint.
    return replace(subject, pose_method="gauss_newton")


def _find_subject(
    subjects: Sequence[SubjectFit], subject_of: Mapping[str, int], step: EditStep
) -> int:
    """Return the index of the subject that an edit is about."""
    if step.bodies:
        return subject_of[step.bodies[0]]
    found = [i for i, one in enumerate(subjects) if step.joint in one.skeleton.names]
    if len(found) != 1:
        names = ", ".join(name for one in subjects for name in one.skeleton.names[1:])
        count = "several figures have" if found else "no figure has"
        what = f"{step.edit.joint}, which {count}"
        raise step.refuse("joint", what, f"one of {names}")
    return found[0]
