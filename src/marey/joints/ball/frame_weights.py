"""Frames that stand out from the frames around them."""

import numpy as np
from jaxtyping import Bool, Float

from marey.joints.noise import MEDIAN

Array = np.ndarray

# Whitened gaps beyond this many standard deviations have no say (Tukey's biweight):
# far out, so that good frames lose little of theirs.
CUTOFF = 8.0

# Frames in a row that may be a spike. A longer run is what the bodies do, not what the
# instrument did, and leaving it out would make any two bodies rigid that rarely move.
LONGEST = 5

# Share of the frames that spikes may be. Where more stand out, that is how the bodies
# move, in frames that are not in the order of time.
MOST = 0.05

FEWEST = 20
"""Frames below which none is called a spike."""


def weights_of(
    gap: Float[Array, "frame 3"],
    precision: Float[Array, "#frame 3 3"],
    floor: float = 0.0,
) -> Float[Array, " frame"]:
    """Return weights of frames, 0 to 1: Tukey's biweight on what stands out.

    Each gap is compared with the median of the five frames around it, in the metric of
    its noise; the scale is that of the median frame.

    Args:
        gap: In metres, in the order of time.
        precision: Inverse covariance of every gap, or of all.
        floor: Squared deviation that is never called a spike.
    """
    from marey.joints.ball.gauss_helmert_kernel import deviate, keep_long_runs, squares

    if len(gap) < FEWEST:
        return np.ones(len(gap))
    apart = np.empty_like(gap)
    deviate(gap, apart)
    square = np.empty(len(gap))
    squares(apart, np.broadcast_to(precision, (len(gap), 3, 3)), square)
    scale = float(np.median(square)) / MEDIAN
    limit = max(CUTOFF**2 * scale, floor)
    if not limit > 0.0:
        return np.ones(len(gap))
    weight = np.maximum(1.0 - square / limit, 0.0) ** 2
    short = weight == 0.0
    keep_long_runs(short, LONGEST)
    if short.mean() > MOST:
        return np.ones(len(gap))
    weight[(weight == 0.0) & ~short] = 1.0
    return np.asarray(weight)


def not_spikes(gap: Float[Array, "frame 3"], floor: float) -> Bool[Array, " frame"]:
    """Return which frames do not stand far out from those around them."""
    return np.asarray(weights_of(gap, np.eye(3)[None], floor) > 0.0)
