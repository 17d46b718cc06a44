"""A tree changed by hand: joints cut and added, other roots."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.joints import JointFits
from marey.topology import edge_costs
from marey.topology.spanning_forest import hang, neighbours, spanning_edges
from marey.tree import Tree

Array = np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """A tree before it is changed by hand, and what its joints cost."""

    tree: Tree
    pair: Int[Array, "pair 2"]
    cost: Float[Array, " pair"]
    fitted: Bool[Array, " pair"]
    """Which pairs have a joint at all."""


def start_of(joints: JointFits, tree: Tree, weight: str) -> Start:
    """Return a tree and what its joints cost."""
    return Start(tree, joints.pair, edge_costs(joints, weight), joints.fitted)


class Hanging:
    """Joints of a tree, some cut and some added, hung from what it is to hang from."""

    def __init__(self, start: Start, roots: Sequence[int]) -> None:
        self._start = start
        edge = start.tree.edge
        self._edges = sorted(edge[edge >= 0].tolist())
        self._margin = dict(zip(edge.tolist(), start.tree.margin.tolist(), strict=True))
        self._hang = list(roots)
        self._by_hand: set[int] = set()
        self._row = {(int(a), int(b)): k for k, (a, b) in enumerate(start.pair)}

    def row(self, a: int, b: int) -> int:
        """Return the number of the pair of two bodies, -1 if there is none."""
        return self._row.get((min(a, b), max(a, b)), -1)

    def joins(self, a: int, b: int) -> bool:
        """Whether the tree joins two bodies."""
        return self.row(a, b) in self._edges

    def cut(self, a: int, b: int) -> None:
        """Take a joint out; what hung by it hangs from its own end."""
        if self.joins(a, b):
            self._edges.remove(self.row(a, b))
        self._hang = [a, b, *self._hang]

    def join(self, a: int, b: int) -> bool:
        """Add a joint; of a circle the costliest other joint gives way.

        Returns:
            Whether that could be: not if all joints of the circle were added by hand.
        """
        if self.joins(a, b):
            return True
        way = self.tree().path(a, b)
        circle = [self.row(x, y) for x, y in pairwise(way)]
        loose = [row for row in circle if row not in self._by_hand]
        if circle and not loose:
            return False
        if loose:
            cost = np.where(np.isnan(self._start.cost), np.inf, self._start.cost)
            self._edges.remove(max(loose, key=lambda row: float(cost[row])))
        self._edges = sorted([*self._edges, self.row(a, b)])
        self._by_hand.add(self.row(a, b))
        return True

    @property
    def changed(self) -> bool:
        """Whether the joints are others than at the start."""
        edge = self._start.tree.edge
        return self._edges != sorted(edge[edge >= 0].tolist())

    def tree(self, roots: Sequence[int] = ()) -> Tree:
        """Return the tree as it hangs now.

        What was joined by hand is beyond doubt.

        Args:
            roots: Bodies to hang it from, rather than from those before; the last
                of a tree counts.
        """
        n_bodies = len(self._start.tree.parent)
        near = neighbours(self._start.pair, np.array(self._edges, int), n_bodies)
        parent, edge = hang(near, None)
        margin = np.array(
            [
                np.inf if row in self._by_hand else self._margin.get(row, np.inf)
                for row in edge.tolist()
            ]
        )
        loops = tuple(
            loop for loop in self._start.tree.loops if loop.pair not in self._edges
        )
        tree = Tree(parent=parent, edge=edge, margin=margin, loops=loops)
        for body in (*self._hang, *roots):
            tree = tree.reroot(body)
        return tree


def with_parts(
    tree: Tree,
    joints: JointFits,
    cost: Float[Array, " pair"],
    parts: Mapping[int, int],
) -> Tree:
    """Return a known tree with bodies that left others hung where they fit best.

    What hung on the body that was split may hang on either part; the two parts hang
    together, or by what is between them.

    Args:
        tree: The tree, with the new parts on their own.
        joints: Candidate joints of all pairs.
        cost: What each costs, NaN for none.
        parts: The body that each new one left.
    """
    pair = joints.pair
    for new, old in parts.items():
        used = tree.edge[tree.edge >= 0]
        beside = used[(pair[used] == old).any(axis=1)]
        others = np.setdiff1d(np.unique(pair[beside]), [old])
        near = [{old, new}, *({int(n), x} for n in others for x in (old, new))]
        may = np.array([set(row) in near for row in pair.tolist()])
        price = np.where(may & np.isfinite(cost), cost, np.inf)
        chosen = spanning_edges(pair, price, len(tree.parent))
        edges = np.union1d(np.setdiff1d(used, beside), chosen)
        parent, edge = hang(neighbours(pair, edges, len(tree.parent)), None)
        margin = np.full(len(edge), np.inf)
        kept = edge == tree.edge
        margin[kept] = tree.margin[kept]
        tree = replace(tree, parent=parent, edge=edge, margin=margin)
    return tree
