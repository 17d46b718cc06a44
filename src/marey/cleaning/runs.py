"""Runs of frames that begin with a jump and end with one back."""

from collections.abc import Callable, Iterator

import numpy as np
from jaxtyping import Float, Int

Array = np.ndarray

# Seconds either side from which the usual step is taken, and the fewest frames.
AROUND, FEWEST = 0.25, 6

Apart = Callable[[slice, slice], Float[Array, "channel pair"]]
"""How far the values of some frames are from those of others, or of one."""


def suddenness(step: Float[Array, "step k"]) -> Float[Array, " step"]:
    """Return how far each step is from the median of the five around it.

    A fast motion has large steps, but no sudden ones.
    """
    from marey.cleaning.prediction_error_kernel import sudden  # numba is slow to import

    out = np.empty(len(step))
    sudden(step, out)
    return out


def usual(
    size: Float[Array, "channel step"], rate: float
) -> Float[Array, "channel step"]:
    """Return the median of the sizes around each, and no less than that of all."""
    from scipy.ndimage import median_filter

    window = 2 * max(int(AROUND * rate), FEWEST) + 1
    local = median_filter(size, size=(1, window), mode="mirror")
    return np.asarray(np.maximum(local, _overall(size)))


def _overall(size: Float[Array, "channel step"]) -> Float[Array, "channel 1"]:
    """Return the median of each channel; zeros are no motion and have no say."""
    medians = [np.median(row[row > 0.0]) if row.any() else 0.0 for row in size]
    return np.array(medians)[:, None]


def allowed_of(
    sudden: Float[Array, "channel step"],
    times: float,
    least: Float[Array, "channel 1"],
    rate: float,
) -> Float[Array, "channel step"]:
    """Return how sudden each step may be: so many times the usual, `least` at least.

    Only where some step may be too sudden is it asked what is usual around it.
    """
    limit = np.maximum(times * _overall(sudden), least)
    if not (sudden > limit).any():
        return np.broadcast_to(limit, sudden.shape)
    return np.asarray(np.maximum(times * usual(sudden, rate), least))


def excursions(
    apart: Apart,
    frames: Int[Array, " frame"],
    sudden: Float[Array, "channel step"],
    allowed: Float[Array, "channel step"],
    longest: int,
) -> Iterator[tuple[int, int]]:
    """Return runs, as places in `frames`, from a jump to the last frame before return.

    A few frames before the first jump, or after the last, count as a run too.

    Args:
        apart: Measures the values of two sets of frames against each other.
        frames: The frames that have values, ascending.
        sudden: How sudden each step is.
        allowed: How sudden a step may be.
        longest: Frames after which a value that has not returned has moved in earnest.
    """
    wild = np.flatnonzero((sudden > allowed).any(axis=0)) + 1
    if not len(wild):
        return
    speed = usual(apart(slice(0, -1), slice(1, None)), 1.0)
    done = 0
    for place, first in enumerate(wild.tolist()):
        if first < done:
            continue
        ahead = slice(first, first + longest + 1)
        gone = frames[ahead] - frames[first - 1]
        limit = allowed[:, first - 1, None] + speed[:, first - 1, None] * gone
        away = apart(slice(first - 1, first), ahead)
        back = first + np.flatnonzero((away <= limit).all(axis=0))
        ends = np.intersect1d(back, wild[place + 1 :])
        if len(ends):
            done = int(ends[0]) + 1
            # It may have been back before the second jump, less suddenly.
            yield first, max(int(back[0]) - 1, first)
        elif first < FEWEST and done == 0:
            yield 0, first - 1
        elif len(frames) - first < FEWEST and first == wild[-1]:
            yield first, len(frames) - 1
