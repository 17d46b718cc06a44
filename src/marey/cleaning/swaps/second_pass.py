"""Two histories of labels, and which of them lets markers keep their distances."""

import numpy as np
from jaxtyping import Float, Int

from marey.cleaning.neighbours import company_of, spreads_to
from marey.cleaning.swaps.detect import Walked
from marey.cleaning.swaps.viterbi import groups_of, settled

Array = np.ndarray

# Markers whose distances to those of a group are compared, the steadiest.
STEADIEST = 6

# Share of the spread of distances that the other history may leave.
CLEARLY = 0.9


def second_opinion(
    points: Float[Array, "frame label 3"],
    rate: float,
    walked: Walked,
    first: Int[Array, "frame label"],
) -> Int[Array, "frame label"]:
    """Return the marker that each label stands on, by the better of two histories.

    Distances learnt from labels as they came are spoilt by a swap that lasts: those of
    two markers near each other, traded for 40 % of the take, speak for either. The
    other history learns them from the labels as the walk followed them, which are
    right if it met every trade. Of the two, each group of labels takes the one under
    which its markers keep their distances to others better.

    Args:
        points: Positions in metres, NaN where a label was not seen.
        rate: Frames per second.
        walked: From `find_trades`.
        first: From `settled`, with the company of the labels as they came.
    """
    followed = sorted_by(points, _followed(walked, first.shape))
    other = settled(points, company_of(followed, rate, doubtful=True), walked)
    best = first.copy()
    for group in groups_of(walked, first.shape[1]):
        if (first[:, group] == other[:, group]).all():
            continue
        ours, theirs = (
            _strays(sorted_by(points, history), group) for history in (first, other)
        )
        if theirs < CLEARLY * ours:
            best[:, group] = other[:, group]
    return best


def sorted_by(values: Array, marker: Int[Array, "frame label"]) -> Array:
    """Return values of labels in the order of the markers that they stand on."""
    label = np.argsort(marker, axis=1)
    return np.asarray(values[np.arange(len(values))[:, None], label])


def _followed(walked: Walked, shape: tuple[int, ...]) -> Int[Array, "frame label"]:
    """Return the marker of each label by the walk, named by who is on it longest."""
    from scipy.optimize import linear_sum_assignment

    n_frames, n = shape
    marker = np.tile(np.arange(n), (n_frames, 1))
    for trade in walked.trades:
        marker[trade.frame :] = trade.marker
    frames = np.zeros((n, n))
    np.add.at(frames, (marker, np.arange(n)), 1.0)
    name = linear_sum_assignment(frames, maximize=True)[1]
    return np.asarray(name[marker])


def _strays(points: Float[Array, "frame marker 3"], group: list[int]) -> float:
    """Return how far the distances of a group to its steadiest mates vary."""
    spread = spreads_to(points, np.array(group))
    spread[:, group] = np.inf
    return float(np.sort(spread, axis=1)[:, :STEADIEST].sum())
