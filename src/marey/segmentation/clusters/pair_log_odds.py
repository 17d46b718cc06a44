r"""Log odds that two markers are attached to one rigid body.

A logistic model of two ratios without a unit, so that the same coefficients serve a
hand and a horse: the spread :math:`s_{ij}` of the distance over the noise
:math:`\sigma` of the two markers, and the distance :math:`d_{ij}` over the usual
distance :math:`r` of markers on one body:

.. math::

   \log\frac{p}{1-p} = \beta_0 - \beta_1 \ln\frac{s_{ij}}{\sqrt{\sigma_i\sigma_j}}
                     - \beta_2 \ln\frac{d_{ij}}{\sqrt{r_i r_j}}
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from marey.segmentation.clusters.pair_statistics import PairStats

Array = np.ndarray
Members = Bool[Array, "body marker"]
"""Which markers belong to which body; a marker may belong to several."""

INTERCEPT, SPREAD_COEFFICIENT, DISTANCE_COEFFICIENT = 1.61, 2.16, 4.19
"""Coefficients of the logistic model. Logistic regression over 22 recordings of people,
animals and machines with known bodies, each weighted equally."""

MAX_LOG_DISTANCE = 0.8
"""Logarithm of the distance ratio beyond which distance counts no more, so that a long
stick can stay one body. Higher divides long bodies. Chosen by hand."""

MIN_LOG_ODDS, MAX_LOG_ODDS = -8.0, 4.0
"""Bounds of the log odds of one pair: no single pair decides alone. Chosen by hand."""

PRIOR_PAIRS = 1.5
"""Weight of the usual noise in a marker's noise, in pairs of markers. Higher makes all
markers more equal. Chosen by hand."""

MIN_NOISE_RATIO = 0.3
"""Fraction of the usual noise below which spreads and the noise of a marker are treated
as equal to it. Higher makes very rigid pairs count less. Chosen by hand."""

CLEAR_LOG_ODDS = 3.0
"""Log odds that are clear, 20 to 1: two markers must gain that much by swapping bodies
to be reported as swapped, a single marker joins a body unless the odds against it are
clear, and a body that has at most one marker of its own gets that bonus, so that it
keeps shared markers. Higher misses swaps and leaves fewer single markers. Right labels
of two dozen recordings gained nothing by a swap; 99 of 100 swapped ones gain more."""

MIN_GAIN = 1e-9
"""Smallest gain of a change of the bodies. Guards against cycles by rounding."""

MIN_RIGID_MARKERS = 3
"""Number of points, not on a line, that determine a pose (Horn 1987)."""


def same_body(members: Members) -> Bool[Array, "marker marker"]:
    """Return which two markers have a body in common; True on the diagonal."""
    return np.asarray((members.T.astype(int) @ members) > 0)


def marker_noise(stats: PairStats, members: Members) -> Float[Array, " marker"]:
    """Return the noise of each marker in metres, from distances on its bodies.

    The root mean square spread to the other markers of its bodies, shrunk to the usual
    noise by a prior of `PRIOR_PAIRS` pairs.
    """
    pairs = same_body(members) & stats.is_known
    total = np.where(pairs, stats.spread**2, 0.0).sum(axis=1)
    prior = PRIOR_PAIRS * stats.noise**2
    noise = np.sqrt((total + prior) / (pairs.sum(axis=1) + PRIOR_PAIRS))
    return np.asarray(np.maximum(noise, MIN_NOISE_RATIO * stats.noise))


def nearest_neighbour_bodies(stats: PairStats) -> Members:
    """Return one body per marker: the marker and the one of smallest spread to it."""
    spread = stats.known_spread
    members = np.eye(len(spread), dtype=bool)
    rows = np.flatnonzero(np.isfinite(spread).any(axis=1))
    members[rows, spread[rows].argmin(axis=1)] = True
    return members


def log_odds(
    stats: PairStats, members: Members, bias: float = 0.0
) -> Float[Array, "marker marker"]:
    """Return the log odds of every two markers to be on one body.

    0 for pairs that are not known, and on the diagonal.

    Args:
        stats: Distances of all pairs.
        members: Bodies that the noise of the markers is taken from.
        bias: Added to the log odds of known pairs.
    """
    noise = _geometric_mean(marker_noise(stats, members))
    with np.errstate(divide="ignore"):
        log_spread = np.log(
            np.hypot(stats.spread, MIN_NOISE_RATIO * stats.noise) / noise
        )
        log_distance = np.log(stats.distance / _geometric_mean(stats.body_distance))
    odds = (
        INTERCEPT
        - SPREAD_COEFFICIENT * log_spread
        - DISTANCE_COEFFICIENT * np.minimum(log_distance, MAX_LOG_DISTANCE)
    )
    odds = np.clip(odds, MIN_LOG_ODDS, MAX_LOG_ODDS) + bias
    return np.where(stats.is_known, odds, 0.0)


def _geometric_mean(values: Float[Array, " marker"]) -> Float[Array, "marker marker"]:
    """Return the geometric mean of the values of every two markers."""
    return np.asarray(np.sqrt(values[:, None] * values))


def members_of_labels(labels: Sequence[int] | Array) -> Members:
    """Return cluster labels, one per marker, as membership; -1 is in no body."""
    labels = np.asarray(labels)
    return np.asarray(np.arange(labels.max(initial=-1) + 1)[:, None] == labels)
