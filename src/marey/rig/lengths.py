"""Constant bone lengths out of joint positions that were found frame by frame.

Implements DeAguiar2006, Eqs. 5-6 and Sec. 5. From the root to the leaves, every bone
gets one length, and its joint moves to that distance along the way from its parent.
Departure: the parent is the one that was moved already. The paper prints the old one in
both equations, and bones between old parents and new joints would vary again.

Which joints are wild in which frames is told by the same distances, after
Bodenheimer1997, Sec. 3.1.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.errors import DataError
from marey.numerics import robust
from marey.skeleton import Skeleton

Array = np.ndarray
Positions = Float[Array, "frame joint 3"]

RESOLUTION = 1e-3
"""Scatter of a distance, in metres, below which its outliers are not looked for."""


def bone_lengths(
    positions: Positions, parent: Int[Array, " joint"], method: str = "median"
) -> Float[Array, " joint"]:
    """Return the length of the bone from each joint's parent to it, in metres.

    With the best direction in every frame, Eq. 6 is the sum over frames of how far a
    distance is from the length, not squared as it is printed: the median makes it
    least. Eq. 5, or Eq. 6 squared, is least for the mean. A joint that is there in some
    frames only has its length from those.

    Args:
        positions: Joints in every frame, in metres; NaN where unknown.
        parent: Parent of each joint; -1 = root.
        method: An estimator of `marey.numerics.robust.location`: "median"; "mean"; "huber":
            the one-step M-estimator of Bodenheimer1997, Sec. 3.1, which a wrong length
            moves by no more than a slightly wrong one; "tukey": the biweight, which
            far lengths do not move at all.

    Returns:
        NaN for roots, and for joints never seen together with their parents.

    Raises:
        DataError: If the parents go in a circle, or are no joints.
        OptionError: If the method is not known.
    """
    return _walked(positions, parent, partial(robust.location, method=method))[1]


def with_constant_lengths(
    positions: Positions,
    parent: Int[Array, " joint"],
    lengths: Float[Array, " joint"],
) -> Positions:
    """Return the joints at constant distances from their parents.

    Every joint keeps its direction from its parent as that now stands, so it moves as
    little as the length allows. Roots stay where they are, and so does a joint whose
    parent is not known in a frame, or whose length is NaN. A joint that lies in its
    parent has no direction: it is NaN, unless its length is zero.

    Args:
        positions: Joints in every frame, in metres; NaN where unknown.
        parent: Parent of each joint; -1 = root.
        lengths: From `bone_lengths`, in metres.

    Raises:
        DataError: If the parents go in a circle, or are no joints, or if a length is
            negative.
    """
    if (lengths < 0.0).any():
        found = f"{float(np.nanmin(lengths)):g} m"
        raise DataError("lengths", found=found, needed="0 or more")
    given = iter([float(lengths[joint]) for joint in _root_to_leaf(parent)])
    return _walked(positions, parent, lambda _: next(given))[0]


def resized(skeleton: Skeleton, lengths: Float[Array, " joint"]) -> Skeleton:
    """Return the skeleton with other bone lengths; bones point as they did at rest.

    Args:
        skeleton: The joints.
        lengths: From `bone_lengths`, in metres; a bone whose length is NaN keeps its
            own.

    Raises:
        DataError: If a length is negative, or a bone without one is to get one.
    """
    own = skeleton.lengths
    bad = (lengths < 0.0) | ((own == 0.0) & (lengths > 0.0) & (skeleton.parent >= 0))
    if bad.any():
        joint = int(np.argmax(bad))
        raise DataError(
            f"length of {skeleton.names[joint]}",
            found=f"{lengths[joint]:g} m",
            needed="0 or more, and a bone that points somewhere at rest",
        )
    kept = ~np.isfinite(lengths) | (own == 0.0)
    share = np.where(kept, 1.0, lengths) / np.where(kept, 1.0, own)
    return replace(skeleton, offset=share[:, None] * skeleton.offset)


def wild_joints(
    positions: Positions,
    parent: Int[Array, " joint"],
    *,
    wild: float = robust.OUTLIER_SCALES,
    doubtful: float = robust.SUSPECT_SCALES,
) -> Bool[Array, "frame joint"]:
    """Return in which frames a joint is not where its bones allow it to be.

    After Bodenheimer1997, Sec. 3.1: where a length is an outlier, the frame is tagged
    for those joints, and poses are found without them (`ignore` of `solve_pose`). A
    length has two ends. Departure: of the two, the joint is blamed that explains more
    of the bones that are off; both, where that does not tell.

    Args:
        positions: Joints in every frame, in metres; NaN where unknown.
        parent: Parent of each joint; -1 = root.
        wild: Scales of a length beyond which it is an outlier; see
            `marey.numerics.robust.tag_outliers`.
        doubtful: The same next to an outlier.

    Raises:
        DataError: If the parents go in a circle, or are no joints.
        OptionError: If the thresholds are not 0 < doubtful <= wild.
    """
    joints = np.array(_root_to_leaf(parent), dtype=np.int64)
    distance = np.linalg.norm(
        positions[:, joints] - positions[:, parent[joints]], axis=-1
    )
    off = robust.tag_outliers(distance, outlier=wild, suspect=doubtful, min_scale=RESOLUTION)
    ends = np.zeros((len(joints), len(parent)), dtype=np.int64)
    ends[np.arange(len(joints)), joints] = 1
    ends[np.arange(len(joints)), parent[joints]] = 1
    return robust.attribute_outliers(off, ends)


def _walked(
    positions: Positions,
    parent: Int[Array, " joint"],
    length_of: Callable[[Float[Array, " frame"]], float],
) -> tuple[Positions, Float[Array, " joint"]]:
    """Return new positions and lengths, each bone's from its distances."""
    order = _root_to_leaf(parent)
    moved = positions.copy()
    lengths = np.full(len(parent), np.nan)
    for joint in order:
        above = moved[:, parent[joint]]
        way = positions[:, joint] - above
        distance = np.linalg.norm(way, axis=1)
        lengths[joint] = length_of(distance)
        moved[:, joint] = _placed(positions[:, joint], above, distance, lengths[joint])
    return moved, lengths


def _placed(
    old: Float[Array, "frame 3"],
    above: Float[Array, "frame 3"],
    distance: Float[Array, " frame"],
    length: float,
) -> Float[Array, "frame 3"]:
    """Return a joint at a constant distance from its parent."""
    if np.isnan(length):
        return old
    share = np.full(len(distance), 0.0 if length == 0.0 else np.nan)
    np.divide(length, distance, out=share, where=distance > 0.0)
    at_length = above + share[:, None] * (old - above)  # Eq. 6
    alone = ~np.isfinite(above).all(axis=1)
    return np.where(alone[:, None], old, at_length)


def _root_to_leaf(parent: Int[Array, " joint"]) -> list[int]:
    """Return the joints below the roots, parents before their children.

    Raises:
        DataError: If a parent is no joint, or joints go in a circle.
    """
    n_joints = len(parent)
    if n_joints and not (parent.min() >= -1 and parent.max() < n_joints):
        found = f"{int(parent.min())} to {int(parent.max())}"
        raise DataError("parents", found=found, needed=f"-1 to {n_joints - 1}")
    roots = np.flatnonzero(parent < 0).tolist()
    order = list(roots)
    for joint in order:
        order += np.flatnonzero(parent == joint).tolist()
    if len(order) < n_joints:
        round_about = sorted(set(range(n_joints)) - set(order))
        raise DataError(
            "parents", found=f"joints {round_about} in a circle", needed="a root above"
        )
    return order[len(roots) :]
