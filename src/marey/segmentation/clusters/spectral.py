"""Bodies of markers by spectral clustering, after DeAguiar2006, Sec. 3 and Eq. 1.

As printed, the affinity depends on the unit of length and on the number of frames: its
exponent is a length over a squared length, its scale a mean distance over the number of
frames. `affinity="printed"` is that, in millimetres as the paper's data. Departure: the
default "self_tuning" (Zelnik-Manor and Perona, 2004) divides every spread by the
spreads of the two markers to their neighbours and has no unit.
"""

from typing import Literal, get_args

import numpy as np

from marey.errors import OptionError
from marey.numerics import Array, Float, Int
from marey.segmentation.clusters.pair_statistics import PairStats

Affinity = Literal["self_tuning", "printed"]

SCALE_NEIGHBOUR = 3
"""Rank of the neighbour whose spread is a marker's scale. Higher joins more markers.
Chosen by hand."""

MIN_RELATIVE_SCALE = 1e-9
"""Smallest scale of a marker, relative to the largest spread: exactly rigid markers
have a spread of zero. Guards a division."""

MAX_ITERATIONS = 100
"""Number of iterations of k-means after which to stop. Chosen by hand."""


def spectral_labels(
    stats: PairStats,
    *,
    n_bodies: int = 0,
    affinity: Affinity = "self_tuning",
    neighbour: int = SCALE_NEIGHBOUR,
    n_frames: int = 1,
) -> Int[Array, " marker"]:
    """Return the body of every marker.

    Args:
        stats: Distances of all pairs.
        n_bodies: Number of bodies; 0 = where the eigenvalues of the normalised affinity
            fall most (eigengap).
        affinity: "self_tuning" or "printed".
        neighbour: Rank of the neighbour that gives a marker's scale, 1 or more.
        n_frames: Frames of the take, for "printed".

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
        matrix = printed_affinity(stats, n_frames)
    else:
        matrix = self_tuning_affinity(stats, neighbour)
    eigenvalues, eigenvectors = _spectrum(matrix)
    count = n_bodies or eigengap(eigenvalues)
    rows = eigenvectors[:, :count]
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return _k_means(np.divide(rows, length, out=rows.copy(), where=length > 0), count)


def printed_affinity(stats: PairStats, n_frames: int) -> Float[Array, "marker marker"]:
    r"""Return the affinity of DeAguiar2006, Eq. 1, zero on the diagonal.

    .. math:: A_{ij} = \exp(-\sigma_{ij} / 2 s_{ij}^2)

    with the standard deviation and, as scale, the mean distance over the number of
    frames.
    """
    # In millimetres, as the paper's data.
    spread = 1e3 * _fill_with_largest(stats.spread)
    scale = 1e3 * _fill_with_largest(stats.distance) / n_frames
    exponent = np.divide(
        spread, 2.0 * scale**2, out=np.zeros_like(spread), where=scale > 0
    )
    return _affinity(exponent)  # Eq. 1


def self_tuning_affinity(
    stats: PairStats, neighbour: int = SCALE_NEIGHBOUR
) -> Float[Array, "marker marker"]:
    r"""Return the affinity with local scales, from 0 to 1, zero on the diagonal.

    .. math:: A_{ij} = \exp(-\sigma_{ij}^2 / s_i s_j)

    with the spread to the neighbour of a given rank as the scale of each marker.
    """
    spread = _fill_with_largest(stats.spread)
    others = spread + np.diag(np.full(len(spread), np.inf))
    rank = min(neighbour, len(spread) - 1) - 1
    scale = np.sort(others, axis=1)[:, max(rank, 0)]
    largest = float(spread.max()) or 1.0
    scale = np.maximum(scale, MIN_RELATIVE_SCALE * largest)
    return _affinity(spread**2 / (scale[:, None] * scale))


def _affinity(exponent: Float[Array, "marker marker"]) -> Float[Array, "marker marker"]:
    """Return exp(-exponent), 0 to 1, with zeros on the diagonal."""
    return np.where(np.eye(len(exponent), dtype=bool), 0.0, np.exp(-exponent))


def _fill_with_largest(
    values: Float[Array, "marker marker"],
) -> Float[Array, "marker marker"]:
    """Return the values, those that are not known replaced by the largest."""
    return np.where(np.isfinite(values), values, np.nanmax(values, initial=0.0))


def _spectrum(affinity: Float[Array, "marker marker"]) -> tuple[Array, Array]:
    r"""Return eigenvalues, the largest first, and eigenvectors of the affinity.

    Normalised as :math:`D^{-1/2} A D^{-1/2}` with the degrees :math:`D`.
    """
    degree = affinity.sum(axis=1)
    root = np.divide(1.0, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    eigenvalues, eigenvectors = np.linalg.eigh(root[:, None] * affinity * root)
    return eigenvalues[::-1], eigenvectors[:, ::-1]


def eigengap(eigenvalues: Float[Array, " marker"]) -> int:
    """Return the number of eigenvalues before the widest gap, at most half of all."""
    limit = max(len(eigenvalues) // 2, 1)
    gap = eigenvalues[:limit] - eigenvalues[1 : limit + 1]
    return int(np.argmax(gap[1:])) + 2 if len(gap) > 1 else 1


def _k_means(rows: Float[Array, "marker body"], count: int) -> Int[Array, " marker"]:
    """Return the labels of k-means of unit rows, started from the most orthogonal.

    If rows are almost equally orthogonal, the one with most similar rows is first, so
    that neither rounding nor the choice of the eigenvectors decides.
    """
    squared_cosine = (rows @ rows.T) ** 2
    n_similar = squared_cosine.sum(axis=1)
    seeds = [int(np.argmax(n_similar))]
    for _ in range(count - 1):
        score = n_similar * (1.0 - squared_cosine[:, seeds].max(axis=1))
        score[seeds] = -np.inf
        seeds.append(int(np.argmax(score)))
    centers = rows[seeds]
    labels = np.full(len(rows), -1)
    for _ in range(MAX_ITERATIONS):
        squared_distance = np.sum((rows[:, None] - centers) ** 2, axis=-1)
        nearest = squared_distance.argmin(axis=1)
        if (nearest == labels).all():
            break
        labels = nearest
        for body in np.unique(labels):
            centers[body] = rows[labels == body].mean(axis=0)
    return np.unique(labels, return_inverse=True)[1]
