"""Placeholders: one number for x, y and z that stands for a missing position."""

import numpy as np

from marey.cleaning.repairs import record_repair, repair_warning
from marey.numerics import Array, Bool, Float, geometry
from marey.take import Take


def mask_placeholders(take: Take) -> Take:
    """Return the take without the positions that stand for missing ones.

    Some software writes a number such as 9999 or -10 for x, y and z of a marker that it
    did not see. A measured position has three coordinates of one size almost never, and
    never twice. It is taken for a placeholder if it also is farther from all other
    positions of some marker than these are from each other; then markers that are
    nowhere else have never been seen. This does not depend on the unit. Zeros are left
    to `find_zeros`.

    Args:
        take: The recording.
    """
    is_even = _has_one_number(take.points)
    found, count = np.unique(take.points[is_even], axis=0, return_counts=True)
    for position in found[count > 1]:
        is_value = (take.points == position).all(axis=-1)
        markers = np.flatnonzero(is_value.any(axis=0)).tolist()
        apart = {m: _distance_ratio(take.points[:, m], position) for m in markers}
        if any(1.0 < ratio < np.inf for ratio in apart.values()):
            is_value[:, [m for m in markers if apart[m] <= 1.0]] = False
            take = _without(take, is_value)
    return take


def _has_one_number(points: Float[Array, "frame marker 3"]) -> Bool[Array, "_ _"]:
    """Return which positions have three coordinates of one size, which is not 0.

    Signs may differ: they change when an axis is turned up.
    """
    size = np.abs(points)
    first = size[..., 0]
    is_even = (first == size[..., 1]) & (first == size[..., 2])
    return np.asarray(is_even & (first > 0.0))


def _distance_ratio(
    path: Float[Array, "frame 3"], position: Float[Array, "3"]
) -> float:
    """Return the distance of a position from a path, relative to the path's extent.

    It is infinite if the path has no other position.
    """
    others = path[np.isfinite(path).all(axis=1) & (path != position).any(axis=1)]
    if not len(others):
        return float("inf")
    extent = float(np.linalg.norm(np.ptp(others, axis=0)))
    nearest = float(geometry.lengths(others - position).min())
    return nearest / max(extent, np.finfo(float).tiny)


def _without(take: Take, masked: Bool[Array, "frame marker"]) -> Take:
    """Return the take with some positions missing, and with the finding about them."""
    count = int(masked.sum())
    where = ", ".join(f"{x:.4g}" for x in take.points[masked][0])
    message = (
        f"{count} positions are exactly ({where}) m, far from all others: taken as "
        "missing; export unseen markers as empty"
    )
    finding = repair_warning("points-placeholder", message, "", value=float(count))
    points = np.where(masked[..., None], np.nan, take.points)
    note = f"masked {count} placeholders of missing positions"
    return record_repair(take, [finding], [note], points=points)
