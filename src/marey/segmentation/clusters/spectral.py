"""Bodies of markers by spectral clustering, the way of DeAguiar2006.

Implements DeAguiar2006, Sec. 3 and Eq. 1. As printed, the affinity depends on the unit
of length and on the number of frames (its exponent is a length over a squared length,
its scale a mean distance over the number of frames); `affinity="printed"` is that, in
millimetres as the paper's data. The default, "self_tuning", measures every spread
against that of the two markers' own neighbours and is free of units.
"""

from collections.abc import Iterable
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float, Int

from marey.errors import OptionError
from marey.segmentation.clusters.pair_statistics import PairStats

Array = np.ndarray
Affinity = Literal["self_tuning", "printed"]

MILLIMETRES = 1e3

NEIGHBOUR = 3
"""The neighbour whose spread is taken for a marker's own scale."""

ROUNDS = 100


def spectral_labels(
    stats: PairStats,
    *,
    n_bodies: int = 0,
    affinity: Affinity = "self_tuning",
    neighbour: int = NEIGHBOUR,
    n_frames: int = 1,
) -> Int[Array, " marker"]:
    """Return the body of every marker.

    The number of bodies is where the eigenvalues of the normalised affinity fall most
    (eigengap), unless it is given.

    Args:
        stats: Distances of all pairs.
        n_bodies: How many bodies; 0 = found.
        affinity: "self_tuning" or "printed".
        neighbour: Rank of the neighbour that gives a marker's own scale, 1 or more.
        n_frames: Frames of the take; "printed" depends on it.

    Raises:
        OptionError: If the affinity is not known, or there are fewer markers than
            bodies.
    """
    if affinity not in get_args(Affinity):
        needed = f"one of {', '.join(get_args(Affinity))}"
        raise OptionError("affinity", found=affinity, needed=needed)
    n_markers = len(stats.spread)
    if n_bodies > n_markers:
        raise OptionError("n_bodies", found=n_bodies, needed=f"at most {n_markers}")
    if affinity == "printed":
        likeness = printed_affinity(stats, n_frames)
    else:
        likeness = self_tuning_affinity(stats, neighbour)
    value, vector = _spectrum(likeness)
    return _labels(vector, n_bodies or eigengap(value))


def spectral_choices(
    stats: PairStats, counts: Iterable[int], *, neighbour: int = NEIGHBOUR
) -> list[Int[Array, " marker"]]:
    """Return the body of every marker for several numbers of bodies."""
    _, vector = _spectrum(self_tuning_affinity(stats, neighbour))
    return [_labels(vector, count) for count in counts]


def _labels(vector: Array, count: int) -> Int[Array, " marker"]:
    rows = vector[:, :count]
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return _grouped(np.divide(rows, length, out=rows.copy(), where=length > 0), count)


def printed_affinity(stats: PairStats, n_frames: int) -> Float[Array, "marker marker"]:
    """Return exp(-spread / 2 s^2) with s the mean distance over the frames: Eq. 1."""
    spread = MILLIMETRES * _known(stats.spread)
    scale = MILLIMETRES * _known(stats.distance) / n_frames
    away = np.divide(spread, 2.0 * scale**2, out=np.zeros_like(spread), where=scale > 0)
    return np.where(np.eye(len(away), dtype=bool), 0.0, np.exp(-away))  # Eq. 1


def self_tuning_affinity(
    stats: PairStats, neighbour: int = NEIGHBOUR
) -> Float[Array, "marker marker"]:
    """Return exp(-spread^2 / (s_i s_j)), s the spread to each marker's neighbour."""
    spread = _known(stats.spread)
    others = spread + np.diag(np.full(len(spread), np.inf))
    rank = min(neighbour, len(spread) - 1) - 1
    own = np.sort(others, axis=1)[:, max(rank, 0)]
    # Exactly rigid markers have no scale of their own.
    own = np.maximum(own, 1e-9 * max(float(spread.max()), np.finfo(float).tiny))
    away = spread**2 / (own[:, None] * own)
    return np.where(np.eye(len(away), dtype=bool), 0.0, np.exp(-away))


def _known(values: Array) -> Array:
    """Return the values, the largest in place of those that are not known."""
    return np.where(np.isfinite(values), values, np.nanmax(values, initial=0.0))


def _spectrum(likeness: Array) -> tuple[Array, Array]:
    """Return eigenvalues, largest first, and vectors of the normalised affinity."""
    degree = likeness.sum(axis=1)
    root = np.divide(1.0, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    value, vector = np.linalg.eigh(root[:, None] * likeness * root)
    return value[::-1], vector[:, ::-1]


def eigengap(value: Float[Array, " marker"]) -> int:
    """Return how many eigenvalues stand before the widest gap, half of all at most."""
    most = max(len(value) // 2, 1)
    fall = value[:most] - value[1 : most + 1]
    return int(np.argmax(fall[1:])) + 2 if len(fall) > 1 else 1


def _grouped(rows: Float[Array, "marker body"], count: int) -> Int[Array, " marker"]:
    """Return k-means of unit rows, begun from those most at right angles."""
    centers = [int(np.argmax(np.abs(rows).max(axis=1)))]
    for _ in range(count - 1):
        likeness = np.abs(rows @ rows[centers].T).max(axis=1)
        likeness[centers] = np.inf
        centers.append(int(np.argmin(likeness)))
    middle = rows[centers]
    labels = np.full(len(rows), -1)
    for _ in range(ROUNDS):
        away = np.sum((rows[:, None] - middle) ** 2, axis=-1)
        new = away.argmin(axis=1)
        if (new == labels).all():
            break
        labels = new
        for body in np.unique(labels):
            middle[body] = rows[labels == body].mean(axis=0)
    return np.unique(labels, return_inverse=True)[1]
