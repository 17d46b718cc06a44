"""Minimum spanning forests over the candidate joints, their roots and their margins.

The graph of OBrien2000, Sec. 3.3: bodies are nodes, candidate joints are edges, and the
edge costs of `weights` are the weights. An edge is named by its row in
`JointFits.pair`.
"""

from collections.abc import Iterable

import numpy as np

from marey.joint_fits import JointFits
from marey.numerics import Array, Bool, Float, Int
from marey.topology.weights import PairValues, count_bodies
from marey.tree import Tree

Pairs = Int[Array, "pair 2"]
"""The two bodies of each candidate joint."""

Edges = Int[Array, " edge"]
"""Rows of the candidate joints that a forest consists of."""

BodyEdges = Int[Array, " body"]
"""Row of the joint between each body and its parent; -1 for roots."""

AdjacencyList = list[list[tuple[int, int]]]
"""For each body: the bodies it is joined to, each with the row of their joint."""

DOUBTFUL_MARGIN = 0.3
"""Margin of an edge, as a natural logarithm, below which another edge is about as good.
Higher reports more edges as doubtful. Among edges between correct bodies, 76 of 100 are
right with a margin below it, 95 and more above it (docs/bodies.md)."""


def minimum_spanning_forest(pair: Pairs, cost: PairValues, n_bodies: int) -> Edges:
    """Return the edges of a minimum spanning forest, cheapest first.

    Kruskal's algorithm: the edges are taken by rising cost, and an edge is kept if its
    two bodies are not connected yet. Edges of infinite cost are never kept.
    """
    component = np.arange(n_bodies)
    edges = []
    for row in np.argsort(cost, kind="stable"):
        a, b = component[pair[row]]
        if a != b and np.isfinite(cost[row]):
            component[component == b] = a
            edges.append(int(row))
    return np.array(edges, dtype=np.int64)


def adjacency_list(pair: Pairs, edges: Edges, n_bodies: int) -> AdjacencyList:
    """Return the neighbours of each body in the graph of some edges."""
    adjacency: AdjacencyList = [[] for _ in range(n_bodies)]
    for edge in edges:
        a, b = (int(body) for body in pair[edge])
        adjacency[a].append((b, int(edge)))
        adjacency[b].append((a, int(edge)))
    return adjacency


def row_by_pair(pair: Pairs) -> dict[frozenset[int], int]:
    """Return the row of each pair of bodies, in whatever order the two are given."""
    return {frozenset(bodies): row for row, bodies in enumerate(pair.tolist())}


def root_forest(
    adjacency: AdjacencyList, root: int | None
) -> tuple[Int[Array, " body"], BodyEdges]:
    """Return the parent of each body and the edge to it; both are -1 for a root.

    The tree that contains `root` is rooted there, any other tree at its most central
    body.
    """
    parent = np.full(len(adjacency), -1, dtype=np.int64)
    edge_of_body = np.full(len(adjacency), -1, dtype=np.int64)
    visited: set[int] = set()
    for body in range(len(adjacency)):
        if body in visited:
            continue
        tree = breadth_first_parents(adjacency, body)
        start = root if root in tree else _most_central(adjacency, tree)
        for child, (above, edge) in breadth_first_parents(adjacency, start).items():
            parent[child], edge_of_body[child] = above, edge
        visited |= set(tree)
    return parent, edge_of_body


def breadth_first_parents(
    adjacency: AdjacencyList, start: int
) -> dict[int, tuple[int, int]]:
    """Return the parent and edge of every body in a breadth-first search from `start`.

    The bodies are in the order of the search; the start has parent and edge -1.
    """
    reached = {start: (-1, -1)}
    queue = [start]
    for body in queue:
        for other, edge in adjacency[body]:
            if other not in reached:
                reached[other] = (body, edge)
                queue.append(other)
    return reached


def _most_central(adjacency: AdjacencyList, tree: Iterable[int]) -> int:
    """Return the body with the smallest sum of path lengths to all bodies of its tree.

    If there are several, it is the one with the most neighbours, then the first.
    """

    def rank(start: int) -> tuple[int, int, int]:
        depth: dict[int, int] = {}
        for body, (parent, _) in breadth_first_parents(adjacency, start).items():
            depth[body] = depth.get(parent, -1) + 1
        return sum(depth.values()), -len(adjacency[start]), start

    return min(tree, key=rank)


def edge_margins(
    pair: Pairs, cost: PairValues, edge_of_body: BodyEdges
) -> Float[Array, " body"]:
    r"""Return how clearly the edge above each body beats the next best one.

    .. math:: \text{margin}_b = \ln \frac{\min_{j \in C_b} w_j}{w_{e_b}}

    :math:`e_b` is the edge from the body to its parent. Without it the tree falls into
    two parts, and :math:`C_b` are the other edges between the part of the body and all
    bodies outside it (its cut). The margin is infinite where there is no other edge.
    """
    margin = np.full(len(edge_of_body), np.inf)
    for body in np.flatnonzero(edge_of_body >= 0):
        others = replacement_edges(pair, edge_of_body, int(body)) & np.isfinite(cost)
        if others.any():
            best, used = np.log([cost[others].min(), cost[edge_of_body[body]]])
            margin[body] = best - used
    return margin


def rooted_tree(
    joints: JointFits, cost: PairValues, edges: Edges, root: int | None = None
) -> Tree:
    """Return a forest as a tree, rooted at a body or at its most central bodies."""
    forest = adjacency_list(joints.pair, edges, count_bodies(joints))
    parent, edge = root_forest(forest, root)
    margin = edge_margins(joints.pair, cost, edge)
    return Tree(parent=parent, edge=edge, margin=margin)


def spanning_tree(joints: JointFits, cost: PairValues) -> Tree:
    """Return the tree of least total cost, for one cost per candidate joint."""
    edges = minimum_spanning_forest(joints.pair, cost, count_bodies(joints))
    return rooted_tree(joints, cost, edges)


def replacement_edges(
    pair: Pairs, edge_of_body: BodyEdges, body: int
) -> Bool[Array, " pair"]:
    """Return the edges outside the tree that could replace the one above a body."""
    used = edge_of_body[edge_of_body >= 0]
    rest = adjacency_list(pair, used[used != edge_of_body[body]], len(edge_of_body))
    is_below = np.zeros(len(edge_of_body), dtype=bool)
    is_below[list(breadth_first_parents(rest, body))] = True
    crosses = is_below[pair[:, 0]] != is_below[pair[:, 1]]
    crosses[used] = False
    return np.asarray(crosses)
