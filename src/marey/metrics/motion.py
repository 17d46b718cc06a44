"""Motions against true ones."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from marey.metrics.match import match_paths, wander
from marey.metrics.scores import MotionScore
from marey.motion import Motion
from marey.numerics import geometry
from marey.skeleton import Skeleton

Array = np.ndarray


def moving(skeleton: Skeleton) -> Array:
    """Return the joints that turn: neither the root nor fixed."""
    return np.array(
        [j for j, kind in enumerate(skeleton.kind) if kind not in ("root", "fixed")],
        dtype=np.int64,
    )


def compare_motion(found: Motion, true: Motion) -> MotionScore:
    """Return how far a motion is from the true one.

    Joints are matched by where they are; names do not matter.
    """
    true = aligned(true, found)
    mine, theirs = moving(found.skeleton), moving(true.skeleton)
    T_found, T_true = found.T_world_joint(), true.T_world_joint()
    place, true_place = T_found[..., :3, 3], T_true[..., :3, 3]
    rows, columns = match_paths(place[:, mine], true_place[:, theirs])
    mine, theirs = mine[rows], theirs[columns]
    gap = np.linalg.norm(place[:, mine] - true_place[:, theirs], axis=-1)
    some = gap.size > 0
    per_joint = np.nanmean(gap, axis=0) if some else np.array([np.nan])
    turns = _turns(T_found[:, mine, :3, :3], T_true[:, theirs, :3, :3])
    return MotionScore(
        matched=len(mine),
        true=len(moving(true.skeleton)),
        position=float(per_joint.mean()),
        position_max=float(per_joint.max()),
        rotation=float(np.sqrt(np.nanmean(turns**2))) if some else float("nan"),
        root=_root_error(found, T_found, true),
    )


def aligned(true: Motion, found: Motion) -> Motion:
    """Return the true motion at the frames of the found one."""
    same = true.n_frames == found.n_frames and true.rate == found.rate
    if same:
        return true
    times = found.times - found.start + true.start
    last = true.start + true.duration
    return replace(true.at(np.clip(times, true.start, last)), rate=found.rate)


def _turns(
    found: Float[Array, "frame joint 3 3"], true: Float[Array, "frame joint 3 3"]
) -> Float[Array, "frame joint"]:
    """Return angles between orientations after the best constant turn per joint."""
    relative = np.swapaxes(true, -1, -2) @ found
    usual = geometry.nearest_rotation(np.nansum(relative, axis=0))
    rest = relative @ np.swapaxes(usual, -1, -2)
    return np.asarray(np.linalg.norm(geometry.rotation_log(rest), axis=-1))


def _root_error(found: Motion, T_found: Array, true: Motion) -> float:
    """Return how far the body that follows the true root best strays from it."""
    turning = np.concatenate([[0], moving(found.skeleton)])
    return float(wander(T_found[:, turning], true.T_world_root[:, None]).min())
