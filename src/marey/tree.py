"""How the bodies hang together."""

from dataclasses import dataclass
from math import inf

import numpy as np
from jaxtyping import Float, Int


@dataclass(frozen=True, slots=True)
class Loop:
    """A good joint that the tree does not use: clasped hands, a closed linkage."""

    pair: int
    """Index into `JointFits.pair`."""

    first: float = -inf
    """Second at which the link begins; -inf = it always was."""

    last: float = inf
    """Second at which the link ends; inf = it lasts."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Tree:
    """Parent of every body; several roots are several subjects."""

    parent: Int[np.ndarray, " body"]
    """Parent body; -1 = root."""

    edge: Int[np.ndarray, " body"]
    """Index into `JointFits.pair` of the joint to the parent; -1 = root."""

    margin: Float[np.ndarray, " body"]
    """Log ratio of the next best joint's cost to the chosen one's: above 1 the choice
    is clear, near 0 it is a toss-up; inf where there is no other."""

    loops: tuple[Loop, ...] = ()

    @property
    def roots(self) -> Int[np.ndarray, " root"]:
        """The bodies without a parent, one per subject."""
        return np.flatnonzero(self.parent < 0)
