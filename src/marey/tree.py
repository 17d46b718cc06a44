"""How the bodies hang together."""

from dataclasses import dataclass
from math import inf

import numpy as np
from jaxtyping import Float, Int

Place = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Loop:
    """A good joint that the tree does not use: clasped hands, a closed linkage."""

    pair: int
    """Index into `JointFits.pair`."""

    first: float = -inf
    """Second at which the link begins, counted from the first frame; -inf = it always
    was."""

    last: float = inf
    """Second at which the link ends; inf = it lasts."""

    kind: str = ""
    """"fixed" for a grip, "ball" for hands that turn in each other; "" = as the pair's
    joint."""

    center_a: Place | None = None
    """Where the two are linked in the coordinates of the pair's first body, in metres;
    None = where the pair's joint is."""

    center_b: Place | None = None
    """The same in the second body."""

    take: int = -1
    """Number of the take that shows it, from 0, in which its seconds are counted;
    -1 = all of them together."""


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

    def reroot(self, root: int) -> "Tree":
        """Return the same joints with the tree of one body hung from it."""
        parent, edge, margin = self.parent.copy(), self.edge.copy(), self.margin.copy()
        above, by, sure = -1, -1, inf
        for body in self._line(root):
            parent[body], edge[body], margin[body] = above, by, sure
            above, by, sure = body, int(self.edge[body]), float(self.margin[body])
        return Tree(parent=parent, edge=edge, margin=margin, loops=self.loops)

    def path(self, a: int, b: int) -> tuple[int, ...]:
        """Return the bodies on the way from one to another, both among them.

        None when they hang on different roots.
        """
        up, down = self._line(a), self._line(b)
        meet = next((body for body in up if body in down), None)
        if meet is None:
            return ()
        return (*up[: up.index(meet) + 1], *reversed(down[: down.index(meet)]))

    def _line(self, body: int) -> list[int]:
        """Return a body and those above it."""
        line = [body]
        while self.parent[line[-1]] >= 0:
            line.append(int(self.parent[line[-1]]))
        return line
