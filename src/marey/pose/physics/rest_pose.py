"""Postures at rest."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.numerics import geometry

Array = np.ndarray


class Rest(NamedTuple):
    """Postures at rest."""

    q: Float[Array, "frame node 4"]
    root: Float[Array, "frame 3"]
    steps: Int[Array, " frame"]
    restless: Bool[Array, " frame"]
    """Frames that were not at rest after the most steps."""

    @classmethod
    def of(
        cls,
        q: Float[Array, "frame node 4"],
        root: Float[Array, "frame 3"],
        info: Float[Array, "frame 2"],
    ) -> "Rest":
        """Return postures with the steps of each, and whether they were too few."""
        steps = info[:, 0].astype(np.int64)
        return cls(geometry.quat_continuous(q), root, steps, info[:, 1] > 0.0)
