"""How much the mean of a coloured series wanders."""

import numpy as np
from jaxtyping import Float

Array = np.ndarray

# Median of a chi-square with three degrees of freedom, as a share of its mean.
MEDIAN = 2.36597 / 3.0

# Fewest pairs of batches from which a variance is taken.
FEWEST_BATCHES = 6

# How far off the model may be, as a share of the variance.
MODEL = 0.05

# Memories tried, in frames: each longer by half an octave, up to this share of the
# longest batch.
SHORTEST_MEMORY, LONGEST_SHARE = 2.0, 0.5

# How much likelier than any memory it is beforehand that there is none.
PLAIN = 10.0


def long_run_variance(series: Float[Array, "frame 3"]) -> tuple[float, float]:
    """Return the variance that n times the mean of n frames has, over n, per axis.

    White noise has the same at any length; noise with a memory has more. Means of
    batches are compared with those of the next batch, so that a few steps in the series
    leave the answer as it is, at batch lengths of 1, 2, 4, ... frames. What those
    lengths say is put together by the model white noise + one memory, which also says
    how much is still to come beyond the longest batch. All memories that fit have their
    say in the answer.

    Args:
        series: Residuals in the order of time, in metres.

    Returns:
        The variance, and how many degrees of freedom it has: how well it is known.
    """
    lengths, found, counts = _batch_variances(series)
    if len(lengths) == 0 or not found.min() > 0.0:
        return 0.0, np.inf
    weight = 1.0 / np.sqrt(1.0 / counts + MODEL**2)
    misfits, answers, doubts = [], [], []
    tried = SHORTEST_MEMORY * np.sqrt(2.0) ** np.arange(-1, 2 * len(lengths))
    tried = tried[tried <= max(LONGEST_SHARE * lengths[-1], SHORTEST_MEMORY)]
    for memory in tried:
        slow = memory >= SHORTEST_MEMORY
        shape = _growth(lengths, memory) if slow else np.zeros(len(lengths))
        parts, doubt = _two_parts(shape, found, weight)
        off = weight * np.log((parts[0] + parts[1] * shape) / found)
        misfits.append(float(np.sum(off**2)))
        answers.append(np.log(parts.sum()))
        doubts.append(min(doubt / parts.sum() ** 2, 1.0))
    say = np.exp(-0.5 * (np.array(misfits) - min(misfits)))
    say[0] *= PLAIN * len(say)
    say /= say.sum()
    answer = float(say @ answers)
    spread = float(say @ (np.array(answers) - answer) ** 2 + say @ doubts)
    # The log of a variance with k degrees of freedom varies by 2 / k.
    return float(np.exp(answer)), 2.0 / spread


def _batch_variances(series: Array) -> tuple[Array, Array, Array]:
    """Return batch lengths, the variance of a frame that each implies, and counts."""
    lengths, found, counts = [], [], []
    length = 1
    while len(series) // length > FEWEST_BATCHES:
        n = len(series) // length
        mean = series[: n * length].reshape(n, length, 3).mean(axis=1)
        square = np.sum(np.diff(mean, axis=0) ** 2, axis=1)
        lengths.append(length)
        found.append(length * _usual(square) / 6.0)
        counts.append(n)
        length *= 2
    return np.array(lengths, dtype=float), np.array(found), np.array(counts)


def _usual(square: Array) -> float:
    """Return the mean of squared lengths without the few that a step makes."""
    rough = float(np.median(square)) / MEDIAN
    kept = square[square <= 4.0 * rough]
    # Of a chi-square with three degrees of freedom, below four times its mean.
    return float(kept.mean()) / 0.9722 if len(kept) else rough


def _growth(length: Array, memory: float) -> Array:
    """Return how much of its long-run variance a first-order autoregression shows.

    Args:
        length: Frames per batch.
        memory: Frames after which it has forgotten all but 1 / e.
    """
    keep = np.exp(-1.0 / memory)
    faded = keep * (1.0 - keep**length) / (1.0 - keep) ** 2
    own = length * (1.0 + keep) / (1.0 - keep) - 2.0 * faded
    next_one = faded * (1.0 - keep**length)
    return np.asarray((own - next_one) / length * (1.0 - keep) / (1.0 + keep))


def _two_parts(shape: Array, found: Array, weight: Array) -> tuple[Array, float]:
    """Return the white and the slow part, neither below zero, and their sum's variance.

    Each batch length counts by how many batches it has, in relative terms.
    """
    rows = np.stack([1.0 / found, shape / found], axis=1) * weight[:, None]
    used = np.array([True, shape.any()])
    parts = np.zeros(2)
    parts[used] = np.linalg.lstsq(rows[:, used], weight, rcond=None)[0]
    if (parts < 0.0).any():
        used = parts > 0.0
        column = rows[:, used][:, 0]
        parts = np.where(used, column @ weight / (column @ column), 0.0)
    spread = np.linalg.pinv(rows[:, used].T @ rows[:, used])
    return np.maximum(parts, [1e-12 * found[0], 0.0]), float(spread.sum())
