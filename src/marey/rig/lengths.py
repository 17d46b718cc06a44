"""Constant bone lengths out of joint positions that were found frame by frame.

Implements DeAguiar2006, Eqs. 5-6 and Sec. 5. From the root to the leaves, every bone
gets one length, and its joint moves to that distance along the way from its parent.
Departure: the parent is the one that was moved already. The paper prints the old one in
both equations, and bones between old parents and new joints would vary again.
"""

from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Float, Int

from marey.errors import DataError, OptionError

Array = np.ndarray
Positions = Float[Array, "frame joint 3"]

NORMAL = 1.483
"""Standard deviations of a normal distribution in its median deviation."""

HUBER = 2.0
"""Standard deviations beyond which a length counts as one at that distance."""

TUKEY = 4.685
"""Standard deviations beyond which a length does not count at all."""

ROUNDS, SETTLED = 50, 1e-12


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
        method: "median"; "mean"; "huber": the one-step M-estimator from median and
            median deviation of Bodenheimer1997, Sec. 3.1, which a wrong length moves by
            no more than a slightly wrong one; "tukey": the biweight, which far lengths
            do not move at all.

    Returns:
        NaN for roots, and for joints never seen together with their parents.

    Raises:
        DataError: If the parents go in a circle, or are no joints.
        OptionError: If the method is not known.
    """
    return _walked(positions, parent, _estimator(method))[1]


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


def _estimator(method: str) -> Callable[[Float[Array, " frame"]], float]:
    if method not in ESTIMATORS:
        needed = f"one of {', '.join(ESTIMATORS)}"
        raise OptionError("method", found=method, needed=needed)

    def estimate(distance: Array) -> float:
        known = distance[np.isfinite(distance)]
        return ESTIMATORS[method](known) if len(known) else float("nan")

    return estimate


def _median(x: Float[Array, " frame"]) -> float:
    return float(np.median(x))  # Eq. 6


def _mean(x: Float[Array, " frame"]) -> float:
    return float(np.mean(x))  # Eq. 5


def _rough(x: Float[Array, " frame"]) -> tuple[float, float]:
    """Return median and scale; no scale where more than half are all but alike."""
    middle = float(np.median(x))
    scale = NORMAL * float(np.median(np.abs(x - middle)))
    return middle, scale if scale > SETTLED * abs(middle) else 0.0


def _huber(x: Float[Array, " frame"]) -> float:
    middle, scale = _rough(x)
    if scale == 0.0:
        return middle
    z = (x - middle) / scale
    inside = np.count_nonzero(np.abs(z) < HUBER)
    return float(middle + scale * np.clip(z, -HUBER, HUBER).sum() / inside)


def _tukey(x: Float[Array, " frame"]) -> float:
    middle, scale = _rough(x)
    if scale == 0.0:
        return middle
    for _ in range(ROUNDS):
        z = (x - middle) / (TUKEY * scale)
        weight = np.where(np.abs(z) < 1.0, (1.0 - z**2) ** 2, 0.0)
        before, middle = middle, float(weight @ x / weight.sum())
        if abs(middle - before) <= SETTLED * scale:
            break
    return middle


ESTIMATORS: Mapping[str, Callable[[Array], float]] = {
    "median": _median,
    "mean": _mean,
    "huber": _huber,
    "tukey": _tukey,
}
