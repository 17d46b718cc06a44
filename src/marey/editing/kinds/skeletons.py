"""Edits "reroot", "kind", "axis", "place-joint" and "place-marker": skeletons by hand.

They are applied after calibration, so that they hold exactly, in order with those of
sensors.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from marey.anatomy.names import without_subject
from marey.editing.draft import EditStep, PlanDraft
from marey.editing.kinds.null_models import place_sensor, retake_null_models
from marey.errors import DataError
from marey.joints.ball.hinge import universal_axes
from marey.motion import Motion
from marey.numerics import Array, Float, geometry
from marey.numerics.procrustes import shortest_rotations
from marey.pipeline.options import SolveOptions
from marey.pipeline.stages.bodies import BodyFit, root_at
from marey.pipeline.stages.subjects import SubjectFit, reroot_subject
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.take import Take, match_labels
from marey.tree import descendants_of

MIN_ROTATION_RAD = 0.02
"""Smallest rms rotation of a joint, in radians, that determines its axes. Higher
refuses more edits. Chosen by hand."""

NO_AXES = np.full((2, 3), np.nan)

EstimatePoses = Callable[[SubjectFit], Sequence[Motion]]
"""Estimates the motions of a subject in all takes."""

AxesAndRest = tuple[Float[Array, "2 3"], Float[Array, "3 3"]]
"""Axes of a joint, and the rotation of its child in the rest pose that aligns them."""

# --- plan -----------------------------------------------------------------------------


def plan_reroot(draft: PlanDraft, step: EditStep) -> None:
    """Look up the body that becomes the root."""
    body = draft.find_body(step, step.edit.body)
    draft.steps.append(replace(step, bodies=(body,)))


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


def early_placement_findings(steps: Sequence[EditStep]) -> Iterator[Finding]:
    """Return the offsets set before bodies or frames changed, which rotate frames."""
    for step in steps:
        is_placement = bool(step.edit.offset or step.edit.rotation or step.edit.axis)
        if is_placement and not step.bodies_final:
            yield Finding(
                "placed-early",
                "edit",
                "warning",
                "was placed before bodies or frames were changed, which may rotate its "
                "frame: check whether it is where it should be",
                subject=step.edit.joint or step.edit.marker or step.edit.sensor,
            )


# --- apply ----------------------------------------------------------------------------


def reroot_tree(fit: BodyFit, steps: Sequence[EditStep]) -> BodyFit:
    """Return the fit with its trees rooted at the bodies of these edits, in order."""
    names = fit.bodies[0].names
    rerooted = (step.bodies[0] for step in steps if step.edit.do == "reroot")
    return root_at(fit, tuple(map(names.index, rerooted)))


def edit_subjects(
    subjects: Sequence[SubjectFit],
    steps: Sequence[EditStep],
    subject_of: Mapping[str, int],
    options: SolveOptions,
    estimate_poses: EstimatePoses,
    takes: Sequence[Take],
) -> tuple[SubjectFit, ...]:
    """Return the subjects with their skeletons edited, in order.

    Args:
        subjects: Calibrated subjects.
        steps: Edits of skeletons.
        subject_of: Index of the subject that each body belongs to.
        options: How to solve.
        estimate_poses: Estimates motions, for the axes of a joint of another kind.
        takes: The recordings with all that was seen, for null models.

    Raises:
        OptionError: If no subject has the joint, marker or sensor of an edit.
        DataError: If the motion does not determine the axes.
    """
    edited = list(subjects)
    for step in steps:
        if step.edit.do == "null-model":
            edited = [retake_null_models(one, step, takes) for one in edited]
            continue
        number = _find_subject(edited, subject_of, step)
        subject = edited[number]
        match step.edit.do:
            case "reroot":
                subject = reroot_subject(subject, step.bodies[0])
            case "place-marker":
                subject = subject.change_skeletons(_place_marker, step)
            case "place-joint":
                subject = subject.change_skeletons(_place_joint, step)
            case "place-sensor":
                subject = subject.change_skeletons(place_sensor, step)
            case _:
                subject = _set_joint_kind(subject, step, estimate_poses)
                if _kind_of(step) != "ball" and options.pose == "auto":
                    # Playback of sensors would ignore the kind of a joint.
                    subject = replace(subject, pose_method="gauss_newton")
        edited[number] = subject
    return tuple(edited)


def _find_subject(
    subjects: Sequence[SubjectFit], subject_of: Mapping[str, int], step: EditStep
) -> int:
    """Return the index of the subject that an edit is about."""
    if step.bodies:
        return subject_of[step.bodies[0]]
    body = step.joint.removesuffix("_end")
    found = [
        i
        for i, one in enumerate(subjects)
        if one.skeleton.joint_of(step.joint) in one.skeleton.names
        and subject_of.get(body, i) == i
    ]
    if len(found) != 1:
        names = ", ".join(name for one in subjects for name in one.skeleton.names[1:])
        count = "several figures have" if found else "no figure has"
        what = f"{step.edit.joint}, which {count}"
        raise step.refuse("joint", what, f"one of {names}")
    return found[0]


def _place_marker(skeleton: Skeleton, step: EditStep) -> Skeleton:
    """Return the skeleton with another offset of a marker.

    Raises:
        OptionError: If the skeleton has no such marker.
    """
    label = step.edit.marker
    bare = [*map(without_subject, skeleton.marker_labels)]
    marker = int(match_labels([label], skeleton.marker_labels, bare)[0])
    if marker < 0:
        needed = f"one of {', '.join(skeleton.marker_labels)}"
        raise step.refuse("marker", f"{label}, never seen with its body", needed)
    offset = skeleton.marker_offset.copy()
    offset[marker] = step.edit.offset
    return replace(skeleton, marker_offset=offset)


def _place_joint(skeleton: Skeleton, step: EditStep) -> Skeleton:
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


# --- kind of a joint ------------------------------------------------------------------


def _set_joint_kind(
    subject: SubjectFit, step: EditStep, estimate_poses: EstimatePoses
) -> SubjectFit:
    """Return a subject with a joint of another kind, its axes from the motion.

    The motion is estimated with a ball joint. The rest pose changes so that the joint
    can reach it: the child is rotated by the smallest angle that aligns the axes of
    parent and child, or by the mean rotation of a fixed joint. The axis of a hinge may
    be given (`_hinge_about`).

    Raises:
        DataError: If the motion does not determine the axes.
    """
    joint, kind = step.joint_index(subject.skeleton), _kind_of(step)
    subject = subject.change_skeletons(_change_joint, joint, "ball", NO_AXES, np.eye(3))
    if kind == "ball":
        return subject
    R = _joint_rotations(estimate_poses(subject), joint, step)
    if kind == "fixed":
        axes, R_rest = NO_AXES, geometry.nearest_rotation(R.mean(axis=0))
    elif step.edit.do == "axis":
        axes, R_rest = _hinge_about(R, np.array(step.edit.axis))
    else:
        _check_rotates(R, step)
        axes, R_rest = _hinge_axes(R) if kind == "hinge" else _universal_axes(R)
    return subject.change_skeletons(_change_joint, joint, kind, axes, R_rest)


def _kind_of(step: EditStep) -> str:
    return "hinge" if step.edit.do == "axis" else step.edit.kind


def _joint_rotations(
    motions: Sequence[Motion], joint: int, step: EditStep
) -> Float[Array, "frame 3 3"]:
    """Return the rotations of a joint in all frames that show it, of all takes."""
    wxyz = np.concatenate([motion.wxyz[:, joint] for motion in motions])
    wxyz = wxyz[np.isfinite(wxyz).all(axis=1)]
    if not len(wxyz):
        what = f"edit {step.number}: {step.edit.joint} made {_kind_of(step)}"
        raise DataError(what, found="no frame that shows it", needed="one or more")
    return geometry.matrix_from_quat(wxyz)


def _check_rotates(R: Float[Array, "frame 3 3"], step: EditStep) -> None:
    singular = np.linalg.svd(R.mean(axis=0), compute_uv=False)
    rotation = float(np.sqrt(2.0 * max(1.0 - singular[1], 0.0)))
    if rotation < MIN_ROTATION_RAD:
        raise DataError(
            f"edit {step.number}: {step.edit.joint} made {step.edit.kind}",
            found=f"a joint that rotated by {np.degrees(rotation):.1f}° only",
            needed="motion that shows its axes; or make it fixed",
        )


def _hinge_axes(R: Float[Array, "frame 3 3"]) -> AxesAndRest:
    r"""Return the axis that parent and child share, and the rotation to align it.

    OBrien2000, Sec. 3.2: the axes :math:`v_a = R v_b` that every frame leaves in place
    are the first singular vectors of the mean rotation matrix.
    """
    U, _, Vt = np.linalg.svd(R.mean(axis=0))
    axes = NO_AXES.copy()
    axes[0] = U[:, 0]
    return axes, geometry.matrix_from_quat(shortest_rotations(Vt[0], U[:, 0]))


def _hinge_about(
    R: Float[Array, "frame 3 3"], direction: Float[Array, "3"]
) -> AxesAndRest:
    r"""Return the axis that is given, and the rotation that aligns the child with it.

    With the mean rotation :math:`\bar R`, the axis :math:`v_b = \bar R^T v_a` of the
    child stays nearest to the axis :math:`v_a` in the least-squares sense.
    """
    axes = NO_AXES.copy()
    axes[0] = direction / np.linalg.norm(direction)
    in_child = R.mean(axis=0).T @ axes[0]
    in_child = in_child / np.linalg.norm(in_child)
    return axes, geometry.matrix_from_quat(shortest_rotations(in_child, axes[0]))


def _universal_axes(R: Float[Array, "frame 3 3"]) -> AxesAndRest:
    """Return an axis of the parent and one of the child that stay perpendicular."""
    first, second, _ = (found[0] for found in universal_axes([R]))
    perpendicular = second - (first @ second) * first
    # Of parallel axes nothing but rounding errors is left.
    if np.linalg.norm(perpendicular) < np.sqrt(np.finfo(float).eps):
        perpendicular = np.cross(first, np.eye(3)[np.argmin(np.abs(first))])
    perpendicular = perpendicular / np.linalg.norm(perpendicular)
    quaternion = shortest_rotations(second, perpendicular)
    return np.stack([first, perpendicular]), geometry.matrix_from_quat(quaternion)


def _change_joint(
    skeleton: Skeleton,
    joint: int,
    kind: str,
    axes: Float[Array, "2 3"],
    R_rest: Float[Array, "3 3"],
) -> Skeleton:
    """Return a skeleton with a joint of a kind, its child rotated in the rest pose."""
    n = skeleton.n_joints
    is_rotated = np.isin(np.arange(n), descendants_of(skeleton.parent, joint))
    is_below = is_rotated & (np.arange(n) != joint)
    offset, covariance = skeleton.offset.copy(), skeleton.covariance.copy()
    offset[is_below] = offset[is_below] @ R_rest.T
    covariance[is_below] = R_rest @ covariance[is_below] @ R_rest.T
    all_axes, limits = skeleton.axes.copy(), skeleton.limits.copy()
    all_axes[is_rotated] = all_axes[is_rotated] @ R_rest.T
    all_axes[joint], limits[joint] = axes, np.nan
    marker_offset, T = skeleton.marker_offset.copy(), skeleton.T_joint_sensor.copy()
    markers = is_rotated[skeleton.marker_joint]
    marker_offset[markers] = marker_offset[markers] @ R_rest.T
    sensors = is_rotated[skeleton.sensor_joint]
    T[sensors] = geometry.transform(R_rest, np.zeros(3)) @ T[sensors]
    kinds = list(skeleton.kind)
    kinds[joint] = kind  # type: ignore[call-overload]
    return replace(
        skeleton,
        kind=tuple(kinds),
        offset=offset,
        covariance=covariance,
        axes=all_axes,
        limits=limits,
        marker_offset=marker_offset,
        T_joint_sensor=T,
    )
