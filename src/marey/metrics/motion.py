"""Comparison of a motion with the true one."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from marey.metrics.match import match_paths, relative_motion_rms
from marey.metrics.scores import MotionScore
from marey.motion import Motion
from marey.numerics import geometry
from marey.skeleton import Skeleton

Array = np.ndarray


def moving_joints(skeleton: Skeleton) -> Array:
    """Return the joints that rotate: all except the root and fixed joints."""
    return np.array(
        [j for j, kind in enumerate(skeleton.kind) if kind not in ("root", "fixed")],
        dtype=np.int64,
    )


def compare_motion(found: Motion, true: Motion) -> MotionScore:
    """Return the errors of a motion.

    Joints are matched by their positions; their names do not matter.
    """
    true = resample_truth(true, found)
    joints, true_joints = moving_joints(found.skeleton), moving_joints(true.skeleton)
    T_found, T_true = found.T_world_joint(), true.T_world_joint()
    position, true_position = T_found[..., :3, 3], T_true[..., :3, 3]
    rows, columns = match_paths(position[:, joints], true_position[:, true_joints])
    joints, true_joints = joints[rows], true_joints[columns]
    error = position[:, joints] - true_position[:, true_joints]
    distance = np.linalg.norm(error, axis=-1)
    has_joints = distance.size > 0
    per_joint = np.nanmean(distance, axis=0) if has_joints else np.array([np.nan])
    angles = _rotation_errors(
        T_found[:, joints, :3, :3], T_true[:, true_joints, :3, :3]
    )
    return MotionScore(
        matched=len(joints),
        true=len(moving_joints(true.skeleton)),
        position=float(per_joint.mean()),
        position_max=float(per_joint.max()),
        rotation=float(np.sqrt(np.nanmean(angles**2))) if has_joints else float("nan"),
        root=_root_error(found, T_found, true),
    )


def resample_truth(true: Motion, found: Motion) -> Motion:
    """Return the true motion, sampled at the times of the found one."""
    same = true.n_frames == found.n_frames and true.rate == found.rate
    if same:
        return true
    times = found.times - found.start + true.start
    last = true.start + true.duration
    return replace(true.at(np.clip(times, true.start, last)), rate=found.rate)


def _rotation_errors(
    found: Float[Array, "frame joint 3 3"], true: Float[Array, "frame joint 3 3"]
) -> Float[Array, "frame joint"]:
    """Return the angles between orientations, after a constant rotation per joint.

    The constant rotation is the mean relative rotation (orthogonal Procrustes).
    """
    relative = np.swapaxes(true, -1, -2) @ found
    mean = geometry.nearest_rotation(np.nansum(relative, axis=0))
    residual = relative @ np.swapaxes(mean, -1, -2)
    return np.asarray(np.linalg.norm(geometry.rotation_log(residual), axis=-1))


def _root_error(found: Motion, T_found: Array, true: Motion) -> float:
    """Return the least rms motion of any found body in the frame of the true root."""
    bodies = np.concatenate([[0], moving_joints(found.skeleton)])
    return float(
        relative_motion_rms(T_found[:, bodies], true.T_world_root[:, None]).min()
    )
