"""The hierarchy of the bodies."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from marey.numerics import Float, Int

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
        for body in ancestors_of(self.parent, root):
            parent[body], edge[body], margin[body] = new_parent, new_edge, new_margin
            new_parent, new_edge = body, int(self.edge[body])
            new_margin = float(self.margin[body])
        return Tree(parent=parent, edge=edge, margin=margin, loops=self.loops)

    def path(self, a: int, b: int) -> tuple[int, ...]:
        """Return the bodies on the path from a to b, both included.

        Empty if they have different roots.
        """
        up, down = ancestors_of(self.parent, a), ancestors_of(self.parent, b)
        common = next((body for body in up if body in down), None)
        if common is None:
            return ()
        return (*up[: up.index(common) + 1], *reversed(down[: down.index(common)]))


def ancestors_of(parent: Int[np.ndarray, " item"], item: int) -> list[int]:
    """Return an item and its ancestors, up to the root."""
    chain = [item]
    while parent[chain[-1]] >= 0:
        chain.append(int(parent[chain[-1]]))
    return chain


def descendants_of(parent: Int[np.ndarray, " item"], item: int) -> list[int]:
    """Return an item and its descendants, parents before children."""
    return [one for one in range(len(parent)) if item in ancestors_of(parent, one)]


def children_of(parent: Int[np.ndarray, " item"], item: int) -> list[int]:
    """Return the children of an item, in order."""
    children: list[int] = np.flatnonzero(parent == item).tolist()
    return children


def list_children(parent: Int[np.ndarray, " item"]) -> list[list[int]]:
    """Return the children of every item, in order; item 0 is the root."""
    children: list[list[int]] = [[] for _ in parent]
    for item, up in enumerate(parent[1:].tolist(), start=1):
        children[up].append(item)
    return children


def breadth_first_order(
    parent: Int[np.ndarray, " item"], roots: Sequence[int]
) -> list[int]:
    """Return some roots and all their descendants, every parent before its children."""
    order = list(roots)
    for item in order:
        order += children_of(parent, item)
    return order


def depth_first_order(parent: Int[np.ndarray, " item"]) -> list[int]:
    """Return all items, every subtree in one piece; item 0 is the root."""
    children = list_children(parent)
    order, stack = [], [0]
    while stack:
        order.append(stack.pop())
        stack.extend(reversed(children[order[-1]]))
    return order
