"""How bodies hang together: a spanning forest over the candidate joints.

OBrien2000 (Sec. 3.3) takes the tree of least total residual. Under skin artefact that
chooses a thigh as the child of the other; weighing each joint against the noise of its
own bodies, and asking whether a third body explains it better, mends most of it.
"""

from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Float, Int

from marey.errors import DataError, OptionError
from marey.joints._types import JointFits
from marey.tree import Loop, Tree

SMALLEST_GAP = 0.05
"""Metres of residual below which two bodies are never torn apart."""

TORN = 6.0
"""Times the median residual of the tree above which a joint is none."""

LOOSEST_LOOP = 1.5
"""Times the weakest joint of the tree up to which an unused joint closes a loop."""

FAR = 2.5
"""Times the median distance of the tree's joints from their bodies, beyond which bodies
that never moved against each other are taken for strangers."""

# Of joints that fit alike the nearer one is taken: metres of residual per metre of
# distance from the bodies. Far below any noise that is seen in practice.
TIE = 1e-3


def infer_tree(
    joints: JointFits, *, weight: str = "auto", root: int | None = None
) -> Tree:
    """Return the tree, or the trees, that the joints support best.

    Implements OBrien2000, Sec. 3.3, with other weights: the plain residual of the paper
    is `weight="residual"`. Bodies that no joint reaches are roots of their own.

    Args:
        joints: Candidate joints of all pairs.
        weight: "mediated" (the default): residual over the noise of the two bodies,
            times how much a third body explains; "normalised": without the last;
            "residual": the paper's.
        root: Body to hang the tree from; the most central one when left out.

    Raises:
        OptionError: If the weight is not known or the root is no body.
    """
    n_bodies = int(joints.pair.max()) + 1 if len(joints.pair) else 1
    if root is not None and not 0 <= root < n_bodies:
        raise OptionError("root", found=root, needed=f"0 to {n_bodies - 1}")
    cost = edge_costs(joints, weight)
    edges = _spanning_edges(joints, cost, n_bodies)
    edges = edges[~_torn(joints, edges)]
    parent, edge = _hang(joints.pair, edges, n_bodies, root)
    return Tree(
        parent=parent,
        edge=edge,
        margin=_margins(joints.pair, cost, edge),
        loops=_loops(joints, cost, edge),
    )


def edge_costs(joints: JointFits, weight: str = "auto") -> Float[np.ndarray, " pair"]:
    """Return what each joint costs a tree; inf where the pair shares no frames.

    Raises:
        OptionError: If the weight is not known.
    """
    name = "mediated" if weight == "auto" else weight
    if name not in WEIGHTS:
        needed = f"auto, {', '.join(WEIGHTS)}"
        raise OptionError("weight", found=weight, needed=needed)
    cost = WEIGHTS[name](joints)
    return np.where(np.isfinite(joints.residual) & np.isfinite(cost), cost, np.inf)


def _residual(joints: JointFits) -> np.ndarray:
    return np.asarray(np.hypot(joints.residual, TIE * np.nan_to_num(joints.distance)))


def _normalised(joints: JointFits) -> np.ndarray:
    """Return residuals over the noise of their two bodies.

    A body's own noise shows in its best joint: half of that residual's square.
    """
    residual = _residual(joints)
    n_bodies = int(joints.pair.max()) + 1
    least = np.full(n_bodies, np.inf)
    for side in (0, 1):
        np.fmin.at(least, joints.pair[:, side], residual)
    own = 0.5 * least**2
    return np.asarray(residual / np.sqrt(own[joints.pair].sum(axis=1)))


def _mediated(joints: JointFits) -> np.ndarray:
    factor = np.where(np.isfinite(joints.mediated), joints.mediated, 1.0)
    return np.asarray(_normalised(joints) * np.maximum(factor, 1.0))


WEIGHTS: Mapping[str, Callable[[JointFits], np.ndarray]] = {
    "residual": _residual,
    "normalised": _normalised,
    "mediated": _mediated,
}


def _spanning_edges(
    joints: JointFits, cost: np.ndarray, n_bodies: int
) -> Int[np.ndarray, " edge"]:
    """Return the pairs of a minimum spanning forest (Kruskal), cheapest first."""
    group = np.arange(n_bodies)
    chosen = []
    for pair in np.argsort(cost, kind="stable"):
        a, b = group[joints.pair[pair]]
        if a != b and np.isfinite(cost[pair]):
            group[group == b] = a
            chosen.append(int(pair))
    return np.array(chosen, dtype=np.int64)


def _torn(joints: JointFits, edges: np.ndarray) -> np.ndarray:
    """Return which joints of the tree are none: they gape, or join still strangers."""
    if len(edges) == 0:
        return np.zeros(0, dtype=bool)
    residual, distance = joints.residual[edges], joints.distance[edges]
    gapes = residual > max(SMALLEST_GAP, TORN * float(np.median(residual)))
    still = np.array([joints.kind[edge] == "fixed" for edge in edges])
    far = np.nan_to_num(distance) > FAR * float(np.nanmedian(distance))
    return np.asarray(gapes | (still & far))


def _hang(
    pair: np.ndarray, edges: np.ndarray, n_bodies: int, root: int | None
) -> tuple[Int[np.ndarray, " body"], Int[np.ndarray, " body"]]:
    """Return parents and edges of each body when the forest hangs from its roots."""
    near: list[list[tuple[int, int]]] = [[] for _ in range(n_bodies)]
    for edge in edges:
        a, b = (int(body) for body in pair[edge])
        near[a].append((b, int(edge)))
        near[b].append((a, int(edge)))
    parent = np.full(n_bodies, -1, dtype=np.int64)
    above = np.full(n_bodies, -1, dtype=np.int64)
    done: set[int] = set()
    for body in range(n_bodies):
        if body in done:
            continue
        group = _walk(near, body)
        start = root if root in group else _most_central(near, group)
        for child, (mother, edge) in _walk(near, start).items():
            parent[child], above[child] = mother, edge
        done |= set(group)
    return parent, above


def _walk(near: list[list[tuple[int, int]]], start: int) -> dict[int, tuple[int, int]]:
    """Return the parent and edge of every body reached from `start`, nearest first."""
    reached = {start: (-1, -1)}
    queue = [start]
    for body in queue:
        for other, edge in near[body]:
            if other not in reached:
                reached[other] = (body, edge)
                queue.append(other)
    return reached


def _most_central(
    near: list[list[tuple[int, int]]], group: Mapping[int, object]
) -> int:
    """Return the body with the least sum of steps to all others of its group."""

    def steps(start: int) -> tuple[int, int, int]:
        depth: dict[int, int] = {}
        for body, (mother, _) in _walk(near, start).items():
            depth[body] = depth.get(mother, -1) + 1
        return sum(depth.values()), -len(near[start]), start

    return min(group, key=steps)


def _margins(
    pair: np.ndarray, cost: np.ndarray, edge: np.ndarray
) -> Float[np.ndarray, " body"]:
    """Return the log ratio of the next best joint across each cut to the chosen one."""
    used = edge[edge >= 0]
    margin = np.full(len(edge), np.inf)
    for body in np.flatnonzero(edge >= 0):
        side = _side(pair, used[used != edge[body]], int(body), len(edge))
        across = (side[pair[:, 0]] != side[pair[:, 1]]) & np.isfinite(cost)
        across[used] = False
        if across.any():
            margin[body] = np.log(cost[across].min() / cost[edge[body]])
    return margin


def _side(pair: np.ndarray, edges: np.ndarray, start: int, n_bodies: int) -> np.ndarray:
    """Return which bodies hang together with `start` by these edges."""
    side = np.zeros(n_bodies, dtype=bool)
    side[start] = True
    for _ in range(n_bodies):
        touched = side[pair[edges]].any(axis=1)
        side[pair[edges][touched]] = True
    return side


def _loops(joints: JointFits, cost: np.ndarray, edge: np.ndarray) -> tuple[Loop, ...]:
    """Return good joints that the tree leaves out."""
    used = edge[edge >= 0]
    if len(used) == 0:
        return ()
    limit = LOOSEST_LOOP * cost[used].max()
    limit_gap = LOOSEST_LOOP * joints.residual[used].max()
    good = (cost <= limit) & (joints.residual <= limit_gap)
    good[used] = False
    return tuple(Loop(pair=int(p)) for p in np.flatnonzero(good))


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
        margin=_margins(joints.pair, cost, edge),
        loops=_loops(joints, cost, edge),
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
