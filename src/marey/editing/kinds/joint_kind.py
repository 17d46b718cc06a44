"""Edit "kind": a joint made a ball, universal, hinge or fixed joint."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from marey.editing.draft import EditStep
from marey.errors import DataError
from marey.joints.ball.hinge import universal_axes
from marey.motion import Motion
from marey.numerics import geometry
from marey.numerics.procrustes import shortest_rotations
from marey.pipeline.stages_subjects import SubjectFit
from marey.skeleton import Skeleton

Array = np.ndarray

MAX_AXIS_FRAMES = 2000
"""Largest number of frames from which the axes of a joint are estimated, about. Higher
costs time. Chosen by hand."""

MIN_ROTATION_RAD = 0.02
"""Smallest rms rotation of a joint, in radians, that determines its axes. Higher
refuses more edits. Chosen by hand."""

MIN_AXIS_ANGLE = 1e-6
"""Sine of the smallest angle between two axes of a universal joint for which the plane
of the axes is used. Lower divides by rounding errors. Chosen by hand."""

NO_AXES = np.full((2, 3), np.nan)

EstimatePoses = Callable[[SubjectFit], Sequence[Motion]]
"""Estimates the motions of a subject in all takes."""


def set_joint_kind(
    subject: SubjectFit, step: EditStep, estimate_poses: EstimatePoses
) -> SubjectFit:
    """Return a subject with a joint of another kind, its axes from the motion.

    The motion is estimated with a ball joint. The rest pose changes so that the joint
    can reach it: the child is rotated by the smallest angle that aligns the axes of
    parent and child, or by the mean rotation of a fixed joint.

    Raises:
        DataError: If the motion does not determine the axes.
    """
    joint, kind = step.joint_index(subject.skeleton), step.edit.kind
    subject = _with_joint(subject, joint, "ball", NO_AXES, np.eye(3))
    if kind == "ball":
        return subject
    R = _joint_rotations(estimate_poses(subject), joint, step)
    if kind == "fixed":
        axes, R_rest = NO_AXES, geometry.nearest_rotation(R.mean(axis=0))
    elif kind == "hinge":
        axes, R_rest = _hinge_axes(R, step)
    else:
        axes, R_rest = _universal_axes(R, step)
    return _with_joint(subject, joint, kind, axes, R_rest)


def _joint_rotations(
    motions: Sequence[Motion], joint: int, step: EditStep
) -> Float[Array, "frame 3 3"]:
    """Return a sample of a joint's rotations in all takes."""
    wxyz = np.concatenate([motion.wxyz[:, joint] for motion in motions])
    wxyz = wxyz[np.isfinite(wxyz).all(axis=1)]
    if not len(wxyz):
        what = f"edit {step.number}: {step.edit.joint} made {step.edit.kind}"
        raise DataError(what, found="no frame that shows it", needed="one or more")
    sample = wxyz[:: max(len(wxyz) // MAX_AXIS_FRAMES, 1)]
    return geometry.matrix_from_quat(sample)


def _hinge_axes(
    R: Float[Array, "frame 3 3"], step: EditStep
) -> tuple[Float[Array, "2 3"], Float[Array, "3 3"]]:
    r"""Return the axis that parent and child share, and the rotation to align it.

    OBrien2000, Sec. 3.2: the axes :math:`v_a = R v_b` that every frame leaves in place
    are the first singular vectors of the mean rotation matrix.
    """
    _check_rotates(R, step)
    U, _, Vt = np.linalg.svd(R.mean(axis=0))
    axes = np.full((2, 3), np.nan)
    axes[0] = U[:, 0]
    return axes, _shortest_rotation(Vt[0], U[:, 0])


def _universal_axes(
    R: Float[Array, "frame 3 3"], step: EditStep
) -> tuple[Float[Array, "2 3"], Float[Array, "3 3"]]:
    """Return an axis of the parent and one of the child that stay perpendicular."""
    _check_rotates(R, step)
    first, second, _ = (found[0] for found in universal_axes(R[None]))
    perpendicular = second - (first @ second) * first
    if np.linalg.norm(perpendicular) < MIN_AXIS_ANGLE:
        perpendicular = np.cross(first, np.eye(3)[np.argmin(np.abs(first))])
    perpendicular = perpendicular / np.linalg.norm(perpendicular)
    axes = np.stack([first, perpendicular])
    return axes, _shortest_rotation(second, perpendicular)


def _check_rotates(R: Float[Array, "frame 3 3"], step: EditStep) -> None:
    singular = np.linalg.svd(R.mean(axis=0), compute_uv=False)
    rotation = float(np.sqrt(2.0 * max(1.0 - singular[1], 0.0)))
    if rotation < MIN_ROTATION_RAD:
        raise DataError(
            f"edit {step.number}: {step.edit.joint} made {step.edit.kind}",
            found=f"a joint that rotated by {np.degrees(rotation):.1f}° only",
            needed="motion that shows its axes; or make it fixed",
        )


def _shortest_rotation(start: Array, end: Array) -> Float[Array, "3 3"]:
    return geometry.matrix_from_quat(shortest_rotations(start, end))


def _with_joint(
    subject: SubjectFit,
    joint: int,
    kind: str,
    axes: Float[Array, "2 3"],
    R_rest: Float[Array, "3 3"],
) -> SubjectFit:
    def change(skeleton: Skeleton) -> Skeleton:
        return _change_joint(skeleton, joint, kind, axes, R_rest)

    return subject.change_skeletons(change)


def _change_joint(
    skeleton: Skeleton,
    joint: int,
    kind: str,
    axes: Float[Array, "2 3"],
    R_rest: Float[Array, "3 3"],
) -> Skeleton:
    """Return a skeleton with a joint of a kind, its child rotated in the rest pose."""
    n = skeleton.n_joints
    is_rotated = np.zeros(n, dtype=bool)
    is_rotated[joint] = True
    for descendant in range(joint + 1, n):
        is_rotated[descendant] = is_rotated[skeleton.parent[descendant]]
    is_below = is_rotated.copy()
    is_below[joint] = False
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
