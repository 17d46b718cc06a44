"""The hierarchy of the bodies."""

from dataclasses import dataclass
from math import inf

import numpy as np
from jaxtyping import Float, Int

Point = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Loop:
    """A good joint that closes a loop in the tree: clasped hands, a closed linkage."""

    pair: int
    """Index into `JointFits.pair`."""

    first: float = -inf
    """Time at which the joint begins, in seconds from the first frame; -inf =
    always."""

    last: float = inf
    """Time at which the joint ends, in seconds; inf = it never ends."""

    kind: str = ""
    """"fixed" for a grip, "ball" for hands that rotate in each other; "" = the kind of
    the pair's joint."""

    center_a: Point | None = None
    """Joint centre in the coordinates of the pair's first body, in metres; None = the
    centre of the pair's joint."""

    center_b: Point | None = None
    """Joint centre in the coordinates of the second body, in metres."""

    take: int = -1
    """Index of the take that shows the joint, whose clock counts the seconds; -1 = all
    takes together."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Tree:
    """Parent of every body; several roots are several subjects."""

    parent: Int[np.ndarray, " body"]
    """Parent body; -1 = root."""

    edge: Int[np.ndarray, " body"]
    """Index into `JointFits.pair` of the joint to the parent; -1 = root."""

    margin: Float[np.ndarray, " body"]
    """Log ratio of the cost of the next best joint to that of the chosen one: above 1
    the choice is clear, near 0 it is arbitrary; inf if there is no other joint."""

    loops: tuple[Loop, ...] = ()

    @property
    def roots(self) -> Int[np.ndarray, " root"]:
        """The bodies without a parent, one per subject."""
        return np.flatnonzero(self.parent < 0)

    def reroot(self, root: int) -> "Tree":
        """Return the tree with the same joints, rooted at another body."""
        parent, edge, margin = self.parent.copy(), self.edge.copy(), self.margin.copy()
        new_parent, new_edge, new_margin = -1, -1, inf
        for body in self._ancestors(root):
            parent[body], edge[body], margin[body] = new_parent, new_edge, new_margin
            new_parent, new_edge = body, int(self.edge[body])
            new_margin = float(self.margin[body])
        return Tree(parent=parent, edge=edge, margin=margin, loops=self.loops)

    def path(self, a: int, b: int) -> tuple[int, ...]:
        """Return the bodies on the path from a to b, both included.

        Empty if they have different roots.
        """
        up, down = self._ancestors(a), self._ancestors(b)
        common = next((body for body in up if body in down), None)
        if common is None:
            return ()
        return (*up[: up.index(common) + 1], *reversed(down[: down.index(common)]))

    def _ancestors(self, body: int) -> list[int]:
        """Return a body and its ancestors, up to the root."""
        chain = [body]
        while self.parent[chain[-1]] >= 0:
            chain.append(int(self.parent[chain[-1]]))
        return chain
