"""A recording on its way from clean to corrupted."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from marey.synth.corruption.options import Corruption
from marey.synth.truth import Change, Truth

Array = np.ndarray


@dataclass(slots=True)
class Work:
    """Data on its way from clean to corrupted. Arrays are changed in place."""

    truth: Truth
    points: Float[Array, "frame marker 3"]
    T: Float[Array, "frame sensor 4 4"]
    rate: float
    options: Corruption
    seed: int
    log: list[Change] = field(default_factory=list)

    def rng(self, kind: str) -> np.random.Generator:
        """Return the random stream of one kind of corruption."""
        return np.random.default_rng([self.seed, *kind.encode()])

    def note(
        self,
        kind: str,
        *,
        size: float,
        item: str = "all",
        index: int = -1,
        first: int = 0,
        last: int = -1,
        other: int = -1,
    ) -> None:
        """Write a change into the log."""
        change = Change(kind, item, int(index), first, last, float(size), other)
        self.log.append(change)


def directions(rng: np.random.Generator, count: int) -> Float[Array, "count 3"]:
    """Return unit vectors drawn from the whole sphere."""
    v = rng.normal(size=(count, 3))
    return np.asarray(v / np.linalg.norm(v, axis=-1, keepdims=True))
