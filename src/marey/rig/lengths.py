"""Constant bone lengths from joint positions that were estimated frame by frame.

Implements DeAguiar2006, Eqs. 5-6 and Sec. 5. From the root to the leaves, every bone
gets one length, and its joint moves to that distance along the line from its parent.
Departure: the parent is the one that was already moved. The paper prints the old parent
in both equations, and bones between old parents and new joints would vary again.

Outliers among the same lengths show which joints are wrong in which frames, after
Bodenheimer1997, Sec. 3.1.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from marey.errors import DataError
from marey.numerics import Array, Bool, Float, Int, robust
from marey.numerics.thresholds import MARKER_NOISE_M
from marey.skeleton import Skeleton
from marey.tree import breadth_first_order

Positions = Float[Array, "frame joint 3"]


def bone_lengths(
    positions: Positions, parent: Int[Array, " joint"], method: str = "median"
) -> Float[Array, " joint"]:
    r"""Return the length of the bone from each joint's parent to the joint, in metres.

    With the best direction in every frame, Eq. 6 becomes a location problem in the
    distances :math:`d_t` of the joint from its parent:

    .. math:: \min_l \sum_t |d_t - l|

    as printed, which the median solves; squared, or as Eq. 5, the mean solves it. Only
    frames that show both joints count.

    Args:
        positions: Joints in every frame, in metres; NaN where unknown.
        parent: Parent of each joint; -1 = root.
        method: An estimator of `marey.numerics.robust.location`: "median"; "mean";
            "huber": the one-step M-estimator of Bodenheimer1997, Sec. 3.1, in which the
            influence of an outlier is bounded; "tukey": the biweight, in which far
            outliers have no influence.

    Returns:
        NaN for roots, and for joints never seen together with their parents.

    Raises:
        DataError: If the parents form a cycle, or are no joints.
        OptionError: If the method is not known.
    """
    return _walk_bones(positions, parent, partial(robust.location, method=method))[1]


def with_constant_lengths(
    positions: Positions,
    parent: Int[Array, " joint"],
    lengths: Float[Array, " joint"],
) -> Positions:
    """Return the joints at constant distances from their parents.

    Every joint keeps its direction from its moved parent, so it moves as little as the
    length permits. A root stays where it is, and so does a joint whose parent is
    unknown in a frame or whose length is NaN. A joint that coincides with its parent
    has no direction: it becomes NaN, unless its length is zero.

    Args:
        positions: Joints in every frame, in metres; NaN where unknown.
        parent: Parent of each joint; -1 = root.
        lengths: From `bone_lengths`, in metres.

    Raises:
        DataError: If the parents form a cycle, or are no joints, or if a length is
            negative.
    """
    if (lengths < 0.0).any():
        found = f"{float(np.nanmin(lengths)):g} m"
        raise DataError("lengths", found=found, needed="0 or more")
    in_order = iter(lengths[_root_to_leaf(parent)].tolist())
    return _walk_bones(positions, parent, lambda _: next(in_order))[0]


def with_bone_lengths(skeleton: Skeleton, lengths: Float[Array, " joint"]) -> Skeleton:
    """Return the skeleton with other bone lengths and the same directions at rest.

    Args:
        skeleton: The joints.
        lengths: From `bone_lengths`, in metres; a bone whose length is NaN keeps its
            length.

    Raises:
        DataError: If a length is negative, or positive for a bone without direction.
    """
    old = skeleton.lengths
    pointless = (old == 0.0) & (lengths > 0.0) & (skeleton.parent >= 0)
    wrong = (lengths < 0.0) | pointless
    if wrong.any():
        joint = int(np.argmax(wrong))
        raise DataError(
            f"length of {skeleton.names[joint]}",
            found=f"{lengths[joint]:g} m",
            needed="0 or more, and a bone that has a direction at rest",
        )
    kept = ~np.isfinite(lengths) | (old == 0.0)
    scale = np.where(kept, 1.0, lengths) / np.where(kept, 1.0, old)
    return replace(skeleton, offset=scale[:, None] * skeleton.offset)


def find_outlier_joints(
    positions: Positions,
    parent: Int[Array, " joint"],
    *,
    outlier_scales: float = robust.OUTLIER_SCALES,
    suspect_scales: float = robust.SUSPECT_SCALES,
) -> Bool[Array, "frame joint"]:
    """Return the frames in which a joint is not where its bones permit.

    After Bodenheimer1997, Sec. 3.1: where a length is an outlier, the frame is tagged
    for those joints, and poses are estimated without them (`ignore` of `solve_pose`). A
    length has two ends. Departure: of the two, the joint that explains more of the
    outlying bones is tagged; both, if that does not decide.

    Args:
        positions: Joints in every frame, in metres; NaN where unknown.
        parent: Parent of each joint; -1 = root.
        outlier_scales: Distance of a length from its centre, in robust scales, beyond
            which it is an outlier; see `marey.numerics.robust.tag_outliers`.
        suspect_scales: The same for frames next to an outlier, not larger.

    Raises:
        DataError: If the parents form a cycle, or are no joints.
        OptionError: If a threshold is not positive, or the second exceeds the first.
    """
    joints = np.array(_root_to_leaf(parent), dtype=np.int64)
    distance = np.linalg.norm(
        positions[:, joints] - positions[:, parent[joints]], axis=-1
    )
    outliers = robust.tag_outliers(
        distance,
        outlier=outlier_scales,
        suspect=suspect_scales,
        min_scale=MARKER_NOISE_M,
    )
    bone = np.arange(len(joints))
    ends = np.zeros((len(joints), len(parent)), dtype=np.int64)
    ends[bone, joints] = ends[bone, parent[joints]] = 1
    return robust.attribute_outliers(outliers, ends)


def _walk_bones(
    positions: Positions,
    parent: Int[Array, " joint"],
    find_length: Callable[[Float[Array, " frame"]], float],
) -> tuple[Positions, Float[Array, " joint"]]:
    """Return positions of joints with constant bones, and the lengths, in metres.

    Bodenheimer1997, Eq. 6, from the root to the leaves; `find_length` makes one length
    of the distances between joint and parent in all frames.
    """
    moved = positions.copy()
    lengths = np.full(len(parent), np.nan)
    for joint in _root_to_leaf(parent):
        above = moved[:, parent[joint]]
        distance = np.linalg.norm(positions[:, joint] - above, axis=1)
        lengths[joint] = find_length(distance)
        moved[:, joint] = _at_length(
            positions[:, joint], above, distance, lengths[joint]
        )
    return moved, lengths


def _at_length(
    joint: Float[Array, "frame 3"],
    parent: Float[Array, "frame 3"],
    distance: Float[Array, " frame"],
    length: float,
) -> Float[Array, "frame 3"]:
    """Return the positions (m) of a joint, moved to a distance from its parent."""
    if np.isnan(length):
        return joint
    scale = np.full(len(distance), 0.0 if length == 0.0 else np.nan)
    np.divide(length, distance, out=scale, where=distance > 0.0)
    moved = parent + scale[:, None] * (joint - parent)  # Eq. 6
    parent_seen = np.isfinite(parent).all(axis=1)
    return np.where(parent_seen[:, None], moved, joint)


def _root_to_leaf(parent: Int[Array, " joint"]) -> list[int]:
    """Return the joints below the roots, parents before their children.

    Raises:
        DataError: If a parent is no joint, or joints form a cycle.
    """
    n_joints = len(parent)
    if n_joints and not (parent.min() >= -1 and parent.max() < n_joints):
        found = f"{int(parent.min())} to {int(parent.max())}"
        raise DataError("parents", found=found, needed=f"-1 to {n_joints - 1}")
    roots = np.flatnonzero(parent < 0).tolist()
    order = breadth_first_order(parent, roots)
    if len(order) < n_joints:
        cycle = sorted(set(range(n_joints)) - set(order))
        raise DataError(
            "parents", found=f"joints {cycle} in a cycle", needed="a root above them"
        )
    return order[len(roots) :]
