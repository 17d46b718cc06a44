"""How bodies hang together: a spanning forest over the candidate joints.

OBrien2000 (Sec. 3.3) takes the tree of least total residual. Under skin artefact that
chooses a thigh as the child of the other. Here each joint is weighed against the noise
of its bodies, in poses averaged so that little noise is left, and a body that is
restless at all its joints is believed to be so rather than to be passed over.
"""

from collections.abc import Iterator, Mapping

import numpy as np
from jaxtyping import Bool, Float

from marey.errors import DataError, OptionError
from marey.joint_fits import JointFits
from marey.topology.loops import LOOSEST_LOOP as LOOSEST_LOOP
from marey.topology.loops import loops
from marey.topology.spanning_forest import (
    DOUBT,
    across,
    doubtful_strangers,
    gathered,
    hang,
    margins,
    neighbours,
    spanning_edges,
)
from marey.topology.weights import edge_costs as edge_costs
from marey.topology.weights import least, resolved, strangers
from marey.tree import Tree

SMALLEST_GAP = 0.05
"""Metres of residual below which two bodies are never torn apart."""

TORN = 8.0
"""Times what a typical body's best joint leaves, or the noise, above which a joint is
none."""

STRANGE, STRANGEST = 20.0, 60.0
"""Cost of a joint between bodies of markers above which it is doubtful, and above which
it is none. Over 25 recordings with known bodies most true joints cost up to 10, those
of stiff clusters on soft shoulders up to 40."""

LOOSE, WIDE = 0.2, 2.5
"""Residual of a doubtful joint, as a share of its distance from the markers of its
bodies, and gap between these, as in `JointFits.marker_spacing`, above which it is none either. In
the same recordings soft shoulders have up to 0.17 and 1.4; a wheelchair has a gap of
2.8 to its rider, a puck and two players 8 and more."""

FAR = 1.9
"""Times the distance that most joints keep from their bodies, beyond which bodies
without a clear joint are taken for strangers."""


def infer_tree(
    joints: JointFits, *, weight: str = "auto", root: int | None = None
) -> Tree:
    """Return the tree, or the trees, that the joints support best.

    Implements OBrien2000, Sec. 3.3, with other weights: the plain residual of the paper
    is `weight="residual"`. Bodies that no joint reaches are roots of their own.

    Args:
        joints: Candidate joints of all pairs.
        weight: "auto": "compact" for bodies of markers, else "excess". "compact": how
            loosely markers of one body keep their distance to a point of the other,
            times how far apart their markers are. "excess": the gap of averaged poses
            over what the noise and the unrest of the two bodies allow, nearer joints
            before farther ones;
            "normalised": the residual over the noise of the two bodies; "mediated":
            that times how much a third body explains; "residual": the paper's.
        root: Body to hang the tree from; the most central one when left out.

    Raises:
        OptionError: If the weight is not known or the root is no body.
    """
    n_bodies = int(joints.pair.max()) + 1 if len(joints.pair) else 1
    if root is not None and not 0 <= root < n_bodies:
        raise OptionError("root", found=root, needed=f"0 to {n_bodies - 1}")
    if len(joints.pair) == 0:
        none = np.full(1, -1, dtype=np.int64)
        return Tree(parent=none, edge=none, margin=np.full(1, np.inf))
    cost = edge_costs(joints, weight)
    if resolved(joints, weight) == "compact":
        return _compact_tree(joints, cost, n_bodies, root)
    if np.isfinite(cost).any():
        cost[~_possible(joints, cost)] = np.inf
    edges = spanning_edges(joints.pair, cost, n_bodies)
    edges = edges[~doubtful_strangers(joints, cost, edges, torn=TORN, far=FAR)]
    edges = gathered(joints, cost, edges)
    parent, edge = hang(neighbours(joints.pair, edges, n_bodies), root)
    return Tree(
        parent=parent,
        edge=edge,
        margin=margins(joints.pair, cost, edge),
        loops=loops(joints, cost, edge),
    )


def _compact_tree(
    joints: JointFits,
    cost: Float[np.ndarray, " pair"],
    n_bodies: int,
    root: int | None,
) -> Tree:
    with np.errstate(invalid="ignore"):
        apart = (joints.residual > LOOSE * joints.distance) | (
            joints.marker_spacing > WIDE
        )
    none = (cost > STRANGEST) | ((cost > STRANGE) & apart)
    cost = np.where(none, np.inf, cost)
    edges = spanning_edges(joints.pair, cost, n_bodies)
    parent, edge = hang(neighbours(joints.pair, edges, n_bodies), root)
    return Tree(parent=parent, edge=edge, margin=margins(joints.pair, cost, edge))


def alternatives(
    joints: JointFits, tree: Tree, *, weight: str = "auto", within: float = DOUBT
) -> Iterator[Tree]:
    """Return the trees that differ from one in a single joint and cost little more.

    Args:
        joints: Candidate joints of all pairs.
        tree: The tree to begin with.
        weight: As for `infer_tree`.
        within: Log ratio of the new joint's cost to the old one's, at most.
    """
    cost = edge_costs(joints, weight)
    used = tree.edge[tree.edge >= 0]
    for body in np.flatnonzero(tree.margin < within):
        old = int(tree.edge[body])
        near = across(joints.pair, tree.edge, int(body)) & (
            cost < np.exp(within) * cost[old]
        )
        for new in np.flatnonzero(near).tolist():
            edges = np.append(used[used != old], new)
            parent, edge = hang(neighbours(joints.pair, edges, len(tree.edge)), None)
            margin = margins(joints.pair, cost, edge)
            yield Tree(parent=parent, edge=edge, margin=margin, loops=tree.loops)


def _possible(
    joints: JointFits, cost: Float[np.ndarray, " pair"]
) -> Bool[np.ndarray, " pair"]:
    """Return which pairs may be joined: none that gapes, none with a stranger."""
    apart = strangers(joints, cost, torn=TORN, far=FAR)
    best = least(joints, joints.residual)
    typical = float(np.median(best[np.isfinite(best)]))
    widest = max(SMALLEST_GAP, TORN * typical)
    with np.errstate(invalid="ignore"):
        holds = joints.residual <= widest
    return np.asarray(holds & ~apart[joints.pair].any(axis=1))


def named_tree(
    parents: Mapping[str, str], names: tuple[str, ...], joints: JointFits
) -> Tree:
    """Return a tree that the user knows, with the joints that serve it.

    Args:
        parents: Parent of each body by name; a root has none or "".
        names: The bodies.
        joints: Candidate joints of all pairs.

    Raises:
        DataError: If a name is not a body, or the parents go in a circle.
    """
    unknown = sorted({*parents, *parents.values()} - {*names, ""})
    if unknown:
        raise DataError("tree", found=f"bodies {unknown}", needed=f"names of {names}")
    number = {name: i for i, name in enumerate(names)} | {"": -1}
    parent = np.array([number[parents.get(name, "")] for name in names], dtype=np.int64)
    _check_no_circle(parent, names)
    pairs = {(int(a), int(b)): k for k, (a, b) in enumerate(joints.pair)}
    edge = np.array(
        [pairs[min(i, p), max(i, p)] if p >= 0 else -1 for i, p in enumerate(parent)],
        dtype=np.int64,
    )
    cost = edge_costs(joints)
    return Tree(
        parent=parent,
        edge=edge,
        margin=margins(joints.pair, cost, edge),
        loops=loops(joints, cost, edge),
    )


def _check_no_circle(parent: np.ndarray, names: tuple[str, ...]) -> None:
    for body in range(len(parent)):
        above = body
        for _ in range(len(parent) + 1):
            above = int(parent[above]) if above >= 0 else -1
        if above >= 0:
            raise DataError(
                "tree",
                found=f"{names[body]} above itself",
                needed="parents without circles",
            )
