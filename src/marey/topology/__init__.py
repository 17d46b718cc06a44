r"""The tree of bodies: a minimum spanning forest over the candidate joints.

OBrien2000, Sec. 3.3, takes every body as a node and every candidate joint as an edge,
and finds the tree that minimises the sum of the residuals,

.. math:: \min_{\text{trees } E} \sum_{(a, b) \in E} w_{ab}, \qquad
          w_{ab} = \varepsilon_{ab}.

When sensors slide on the skin, that tree makes one thigh the child of the other. The
default weights here relate each residual to the noise of its two bodies, in poses that
are averaged to reduce the noise, and attribute a residual that a body has at all its
joints to the body instead of the joints.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

import numpy as np

from marey.errors import OptionError
from marey.joint_fits import JointFits
from marey.kernels import one_blas_thread
from marey.topology.loops import find_loops, merge_coincident_joints
from marey.topology.pruning import DOUBTFUL_EDGE_COST as DOUBTFUL_EDGE_COST
from marey.topology.pruning import (
    MAX_DOUBTFUL_SPACING as MAX_DOUBTFUL_SPACING,
)
from marey.topology.pruning import (
    remove_marker_edges,
    remove_open_edges,
    spurious_edges,
)
from marey.topology.spanning_forest import (
    DOUBTFUL_MARGIN,
    edge_margins,
    minimum_spanning_forest,
    replacement_edges,
    rooted_tree,
    row_by_pair,
)
from marey.topology.spanning_forest import spanning_tree as spanning_tree
from marey.topology.weights import PairValues, count_bodies, resolve_weight
from marey.topology.weights import edge_costs as edge_costs
from marey.tree import Tree


@one_blas_thread()
def infer_tree(
    joints: JointFits,
    *,
    weight: str = "auto",
    root: int | None = None,
    subjects: Sequence[str] = (),
) -> Tree:
    r"""Return the tree, or the trees, that the candidate joints support best.

    Implements OBrien2000, Sec. 3.3, a minimum spanning tree found by Kruskal's
    algorithm. Departures: the default weights are others; edges that are no joints are
    left out, so there may be several trees; bodies that meet in one point are joined to
    one of them. Bodies without any joint are roots. Good joints
    outside the tree are `Tree.loops` (Sec. 5). The margin of each edge is the log ratio
    of the cost of the best edge that could replace it to its own cost.

    Args:
        joints: Candidate joints of all pairs.
        weight: Cost :math:`w_{ab}` of the edge between bodies a and b. "auto":
            "compact" for bodies of markers, else "excess". "residual": the residual
            :math:`\varepsilon_{ab}` of the paper. "normalised": :math:`\varepsilon_{ab}
            / \sqrt{\sigma_a^2 + \sigma_b^2}` with :math:`\sigma_b^2 = \min_j
            \varepsilon_{bj}^2 / 2`. "mediated": the same times how much a third body
            explains of the residual. "compact": :math:`(\ell_{ab} + 0.1)(s_{ab} + 0.2)`
            with `JointFits.looseness` and `JointFits.marker_spacing`. "excess": the
            root of the squared residual of averaged poses over the noise and the excess
            variances of both bodies, times a power of the distance between the joint
            and the bodies; `marey.topology.weights` has the formula.
        root: Body that becomes the root of its tree; None = the most central body.
        subjects: Subject of each body, "" where none is stated. Bodies of different
            subjects are never joined.

    Raises:
        OptionError: If the weight is not known or the root is no body.
    """
    n_bodies = count_bodies(joints)
    if root is not None and not 0 <= root < n_bodies:
        raise OptionError("root", found=root, needed=f"0 to {n_bodies - 1}")
    cost = edge_costs(joints, weight)
    is_compact = resolve_weight(joints, weight) == "compact"
    remove_edges = remove_marker_edges if is_compact else remove_open_edges
    cost = _separate_subjects(joints, remove_edges(joints, cost), subjects)
    edges = minimum_spanning_forest(joints.pair, cost, n_bodies)
    if not is_compact:
        edges = edges[~spurious_edges(joints, cost, edges)]
        edges = merge_coincident_joints(joints, cost, edges)
    tree = rooted_tree(joints, cost, edges, root)
    return replace(tree, loops=find_loops(joints, cost, tree.edge))


def _separate_subjects(
    joints: JointFits, cost: PairValues, subjects: Sequence[str]
) -> PairValues:
    """Return the costs, infinite between bodies of different stated subjects."""
    if not subjects:
        return cost
    a, b = np.array(subjects)[joints.pair].T
    return np.where((a != b) & (a != "") & (b != ""), np.inf, cost)


def alternative_trees(
    joints: JointFits,
    tree: Tree,
    *,
    weight: str = "auto",
    max_margin: float = DOUBTFUL_MARGIN,
    subjects: Sequence[str] = (),
) -> Iterator[Tree]:
    """Return the trees that differ from a tree in one joint and cost little more.

    Args:
        joints: Candidate joints of all pairs.
        tree: The tree to start from.
        weight: As for `infer_tree`.
        max_margin: Largest log ratio of the costs of the new joint and the old one.
        subjects: As for `infer_tree`.
    """
    cost = _separate_subjects(joints, edge_costs(joints, weight), subjects)
    used = tree.edge[tree.edge >= 0]
    for body in np.flatnonzero(tree.margin < max_margin):
        old = int(tree.edge[body])
        is_cheap = cost < np.exp(max_margin) * cost[old]
        others = replacement_edges(joints.pair, tree.edge, int(body)) & is_cheap
        for new in np.flatnonzero(others):
            edges = np.append(used[used != old], new)
            other = rooted_tree(joints, cost, edges, None)
            yield replace(other, loops=tree.loops)


def divided_trees(
    joints: JointFits, tree: Tree, *, subjects: Sequence[str] = ()
) -> Iterator[Tree]:
    """Return the trees that lack one joint between bodies far apart.

    People who stand side by side and do not move against each other may be joined, and
    people who pass by each other at a distance that hardly changes for a while.

    Args:
        joints: Candidate joints of all pairs.
        tree: The tree to start from.
        subjects: As for `infer_tree`.
    """
    cost = _separate_subjects(joints, edge_costs(joints), subjects)
    used = tree.edge[tree.edge >= 0]
    for old in used:
        if joints.marker_spacing[old] > MAX_DOUBTFUL_SPACING:
            other = rooted_tree(joints, cost, used[used != old], None)
            yield replace(other, loops=tree.loops)


def tree_from_parents(
    parents: Mapping[str, str], names: tuple[str, ...], joints: JointFits
) -> Tree:
    """Return a tree that is known, with the candidate joints that belong to it.

    Args:
        parents: Name of the parent of each body; a root has none or "".
        names: Names of all bodies.
        joints: Candidate joints of all pairs.

    Raises:
        OptionError: If a name is no body, or the parents form a cycle.
    """
    unknown = sorted({*parents, *parents.values()} - {*names, ""})
    if unknown:
        raise OptionError("tree", found=f"bodies {unknown}", needed=f"names of {names}")
    try:
        TopologicalSorter({body: {parents.get(body, "")} for body in names}).prepare()
    except CycleError as error:
        cycle = f"a cycle of {', '.join(error.args[1])}"
        raise OptionError(
            "tree", found=cycle, needed="parents without cycles"
        ) from None
    index = {name: body for body, name in enumerate(names)} | {"": -1}
    parent = [index[parents.get(name, "")] for name in names]
    row_of = row_by_pair(joints.pair)
    rows = [
        row_of[frozenset((body, above))] if above >= 0 else -1
        for body, above in enumerate(parent)
    ]
    edge = np.array(rows, dtype=np.int64)
    cost = edge_costs(joints)
    return Tree(
        parent=np.array(parent, dtype=np.int64),
        edge=edge,
        margin=edge_margins(joints.pair, cost, edge),
        loops=find_loops(joints, cost, edge),
    )


def cut_unseen_joints(tree: Tree, joints: JointFits) -> Tree:
    """Return a tree in which bodies are roots that were never seen with their parent.

    Nothing determines the joint between them.
    """
    is_cut = tree.edge >= 0
    is_cut[is_cut] = ~joints.fitted[tree.edge[is_cut]]
    return replace(
        tree,
        parent=np.where(is_cut, -1, tree.parent),
        edge=np.where(is_cut, -1, tree.edge),
        margin=np.where(is_cut, np.inf, tree.margin),
    )


def join_loose_bodies(tree: Tree, joints: JointFits, bodies: Sequence[int]) -> Tree:
    """Return a known tree with some bodies of it joined that have no parent yet.

    The cheapest joints of weight "excess" join them to the tree and to each other
    (Kruskal's algorithm); joints of the tree stay.

    Args:
        tree: The tree that is known.
        joints: Candidate joints of all pairs.
        bodies: Bodies that the known tree does not mention, such as sensors.
    """
    loose = [body for body in bodies if tree.parent[body] < 0]
    if not loose:
        return tree
    cost = edge_costs(joints, "excess")
    allowed = np.where(np.isin(joints.pair, loose).any(axis=1), cost, np.inf)
    allowed[tree.edge[tree.edge >= 0]] = 0.0
    edges = minimum_spanning_forest(joints.pair, allowed, len(tree.parent))
    root = next((int(r) for r in tree.roots if r not in loose), None)
    joined = rooted_tree(joints, cost, edges, root)
    is_loose = np.isin(np.arange(len(tree.parent)), loose)
    margin = np.where(is_loose, joined.margin, tree.margin)
    return replace(joined, margin=margin, loops=tree.loops)
