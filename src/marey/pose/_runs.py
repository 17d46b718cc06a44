"""Stretches of frames."""

import numpy as np
from jaxtyping import Bool


def runs(flags: Bool[np.ndarray, " frame"]) -> list[tuple[int, int]]:
    """Return first and last frame of every run of flags."""
    edges = np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    return [(int(a), int(b)) for a, b in zip(starts, ends, strict=True)]
