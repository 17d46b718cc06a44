"""Edits "cut" and "join": joints removed from the tree and added to it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from marey.editing.draft import EditStep, PlanDraft
from marey.joints import JointFits
from marey.numerics import Array, Bool, Float, Int
from marey.topology.spanning_forest import (
    adjacency_list,
    minimum_spanning_forest,
    root_forest,
)
from marey.tree import Tree


def plan_edge(draft: PlanDraft, step: EditStep) -> None:
    """Look up the two bodies of a joint to cut or to add."""
    names = step.edit.bodies
    bodies = tuple(draft.find_body(step, name) for name in names)
    if len(set(bodies)) != len(bodies):
        needed = "the names of two different bodies"
        raise step.refuse("bodies", list(names), needed)
    draft.steps.append(replace(step, bodies=bodies))


class EditableTree:
    """A tree whose edges are removed and added by hand.

    Args:
        tree: The tree to begin with.
        pair: All pairs of bodies.
        cost: Edge cost of each pair, NaN for none.
        fitted: Whether each pair has a joint.
        roots: Bodies to root the trees at; the last one of a tree counts.
    """

    def __init__(
        self,
        tree: Tree,
        pair: Int[Array, "pair 2"],
        cost: Float[Array, " pair"],
        fitted: Bool[Array, " pair"],
        roots: Sequence[int],
    ) -> None:
        self._start = tree
        self._pair = pair
        self._fitted = fitted
        self._cost = np.where(np.isnan(cost), np.inf, cost)
        self._edges = sorted(tree.edge[tree.edge >= 0].tolist())
        self._margin = dict(zip(tree.edge.tolist(), tree.margin.tolist(), strict=True))
        self._roots = list(roots)
        self._edges_by_hand: set[int] = set()
        self._row = {(int(a), int(b)): k for k, (a, b) in enumerate(pair)}

    def joins(self, a: int, b: int) -> bool:
        """Whether the tree joins two bodies."""
        return self._edge(a, b) in self._edges

    def can_join(self, a: int, b: int) -> bool:
        """Whether there is a fitted joint of two bodies."""
        row = self._edge(a, b)
        return row >= 0 and bool(self._fitted[row])

    def cut(self, a: int, b: int) -> None:
        """Remove a joint; each of its two bodies is in a tree of its own then."""
        if self.joins(a, b):
            self._edges.remove(self._edge(a, b))
        self._roots = [a, b, *self._roots]

    def join(self, a: int, b: int) -> bool:
        """Add a joint; of the cycle that it closes, the costliest other one goes.

        Returns:
            Whether that is possible: not if the user added all joints of the cycle.
        """
        if self.joins(a, b):
            return True
        path = self.tree().path(a, b)
        cycle = [self._edge(x, y) for x, y in pairwise(path)]
        removable = [row for row in cycle if row not in self._edges_by_hand]
        if cycle and not removable:
            return False
        if removable:
            self._edges.remove(max(removable, key=lambda row: float(self._cost[row])))
        self._edges = sorted([*self._edges, self._edge(a, b)])
        self._edges_by_hand.add(self._edge(a, b))
        return True

    @property
    def is_changed(self) -> bool:
        """Whether the edges differ from those at the beginning."""
        edge = self._start.edge
        return self._edges != sorted(edge[edge >= 0].tolist())

    def tree(self, roots: Sequence[int] = ()) -> Tree:
        """Return the tree of the present edges; those added by hand are certain.

        Args:
            roots: Bodies to root the trees at, rather than those before.
        """
        n_bodies = len(self._start.parent)
        near = adjacency_list(self._pair, np.array(self._edges, int), n_bodies)
        parent, edge = root_forest(near, None)
        margin = np.array(
            [
                np.inf if row in self._edges_by_hand else self._margin.get(row, np.inf)
                for row in edge.tolist()
            ]
        )
        loops = tuple(
            loop for loop in self._start.loops if loop.pair not in self._edges
        )
        tree = Tree(parent=parent, edge=edge, margin=margin, loops=loops)
        for body in (*self._roots, *roots):
            tree = tree.reroot(body)
        return tree

    def _edge(self, a: int, b: int) -> int:
        """Return the row of a pair of bodies, -1 if there is none."""
        return self._row.get((min(a, b), max(a, b)), -1)


def apply_cut(tree: EditableTree, step: EditStep, a: int, b: int) -> None:
    """Remove a joint.

    Raises:
        OptionError: If the two bodies are not joined.
    """
    if step.bodies_final and not tree.joins(a, b):
        found = f"{' and '.join(step.edit.bodies)}, which are not joined"
        raise step.refuse("bodies", found, "two bodies that are")
    tree.cut(a, b)


def apply_join(tree: EditableTree, step: EditStep, a: int, b: int) -> None:
    """Add a joint.

    Raises:
        OptionError: If the two bodies are joined, or cannot be.
    """
    both = " and ".join(step.edit.bodies)
    if not tree.can_join(a, b):
        needed = "two bodies that are seen in the same frames"
        raise step.refuse("bodies", f"{both}, never seen together", needed)
    if step.bodies_final and tree.joins(a, b):
        found = f"{both}, which are joined already"
        raise step.refuse("bodies", found, "two bodies that are not")
    if not tree.join(a, b):
        found = f"{both}, joined by hand by way of others"
        raise step.refuse("bodies", found, "one of those joints cut first")


def attach_split_bodies(
    tree: Tree,
    joints: JointFits,
    cost: Float[Array, " pair"],
    origin: Mapping[int, int],
) -> Tree:
    """Return a known tree with the bodies that were split off others attached.

    The neighbours of the body that was split are attached to either part, and the two
    parts to each other or by way of a neighbour: the edges of least cost among these
    are chosen (Kruskal's minimum spanning forest).

    Args:
        tree: The tree, in which the new bodies are roots.
        joints: Joints of all pairs.
        cost: Edge cost of each pair, NaN for none.
        origin: The body that each new one was split off.
    """
    pair, n_bodies = joints.pair, len(tree.parent)
    for new, old in origin.items():
        used = tree.edge[tree.edge >= 0]
        around = used[(pair[used] == old).any(axis=1)]
        others = np.setdiff1d(np.unique(pair[around]), [old])
        allowed = [{old, new}, *({int(n), part} for n in others for part in (old, new))]
        is_allowed = np.array([set(row) in allowed for row in pair.tolist()])
        edge_cost = np.where(is_allowed & np.isfinite(cost), cost, np.inf)
        chosen = minimum_spanning_forest(pair, edge_cost, n_bodies)
        edges = np.union1d(np.setdiff1d(used, around), chosen)
        parent, edge = root_forest(adjacency_list(pair, edges, n_bodies), None)
        margin = np.full(len(edge), np.inf)
        kept = edge == tree.edge
        margin[kept] = tree.margin[kept]
        tree = replace(tree, parent=parent, edge=edge, margin=margin)
    return tree
