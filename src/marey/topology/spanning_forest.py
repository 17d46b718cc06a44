"""Spanning forests over the candidate joints, and how they hang."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.joint_fits import JointFits
from marey.topology.weights import MOST_JOINTS, gaps_and_noise

Array = np.ndarray
Neighbours = list[list[tuple[int, int]]]
"""Of each body: the bodies it is joined to, and by which pair."""

# Standard deviations, and millimetres besides, within which two centres are one point.
SAME_SIGMAS, SAME_PLACE = 3.0, 1e-3

# Costs whose ratio is below this are alike.
ALIKE = 1.05

# Margin below which another joint would do as well.
DOUBT = 0.3


def spanning_edges(
    pair: Int[Array, "pair 2"], cost: Float[Array, " pair"], n_bodies: int
) -> Int[Array, " edge"]:
    """Return the pairs of a minimum spanning forest (Kruskal), cheapest first."""
    group = np.arange(n_bodies)
    chosen = []
    for row in np.argsort(cost, kind="stable"):
        a, b = group[pair[row]]
        if a != b and np.isfinite(cost[row]):
            group[group == b] = a
            chosen.append(int(row))
    return np.array(chosen, dtype=np.int64)


def neighbours(
    pair: Int[Array, "pair 2"], edges: Int[Array, " edge"], n_bodies: int
) -> Neighbours:
    """Return what each body is joined to by some edges."""
    near: Neighbours = [[] for _ in range(n_bodies)]
    for edge in edges:
        a, b = (int(body) for body in pair[edge])
        near[a].append((b, int(edge)))
        near[b].append((a, int(edge)))
    return near


def hang(
    near: Neighbours, root: int | None
) -> tuple[Int[Array, " body"], Int[Array, " body"]]:
    """Return parents and edges of each body when the forest hangs from its roots."""
    parent = np.full(len(near), -1, dtype=np.int64)
    above = np.full(len(near), -1, dtype=np.int64)
    done: set[int] = set()
    for body in range(len(near)):
        if body in done:
            continue
        group = walk(near, body)
        start = root if root in group else _most_central(near, group)
        for child, (mother, edge) in walk(near, start).items():
            parent[child], above[child] = mother, edge
        done |= set(group)
    return parent, above


def walk(near: Neighbours, start: int) -> dict[int, tuple[int, int]]:
    """Return the parent and edge of every body reached from `start`, nearest first."""
    reached = {start: (-1, -1)}
    queue = [start]
    for body in queue:
        for other, edge in near[body]:
            if other not in reached:
                reached[other] = (body, edge)
                queue.append(other)
    return reached


def _most_central(near: Neighbours, group: Mapping[int, object]) -> int:
    """Return the body with the least sum of steps to all others of its group."""

    def steps(start: int) -> tuple[int, int, int]:
        depth: dict[int, int] = {}
        for body, (mother, _) in walk(near, start).items():
            depth[body] = depth.get(mother, -1) + 1
        return sum(depth.values()), -len(near[start]), start

    return min(group, key=steps)


def margins(
    pair: Int[Array, "pair 2"], cost: Float[Array, " pair"], edge: Int[Array, " body"]
) -> Float[Array, " body"]:
    """Return the log ratio of the next best joint across each cut to the chosen one."""
    margin = np.full(len(edge), np.inf)
    for body in np.flatnonzero(edge >= 0):
        others = across(pair, edge, int(body)) & np.isfinite(cost)
        if others.any():
            margin[body] = np.log(cost[others].min() / cost[edge[body]])
    return margin


def across(
    pair: Int[Array, "pair 2"], edge: Int[Array, " body"], body: int
) -> Bool[Array, " pair"]:
    """Return the pairs that could replace the joint of a body to its parent."""
    used = edge[edge >= 0]
    near = neighbours(pair, used[used != edge[body]], len(edge))
    side = np.zeros(len(edge), dtype=bool)
    side[list(walk(near, body))] = True
    found = side[pair[:, 0]] != side[pair[:, 1]]
    found[used] = False
    return np.asarray(found)


def center_in(joints: JointFits, row: int, body: int) -> tuple[Array, Array]:
    """Return the centre of a pair's joint in one of its bodies, and its covariance."""
    first = joints.pair[row, 0] == body
    center = joints.center_a[row] if first else joints.center_b[row]
    part = slice(0, 3) if first else slice(3, 6)
    return center, joints.covariance[row, part, part]


def same_point(
    joints: JointFits, one: int, other: int, body: int, place: float = SAME_PLACE
) -> bool:
    """Return whether two joints of a body are in one point, as far as they are known.

    Args:
        joints: Candidate joints.
        one: A pair of the body.
        other: Another.
        body: The body both have.
        place: Metres that two centres may be apart besides their own doubt.
    """
    (p, P), (q, Q) = (center_in(joints, row, body) for row in (one, other))
    spread = np.nan_to_num(P) + np.nan_to_num(Q) + place**2 * np.eye(3)
    away = p - q
    return bool(away @ np.linalg.solve(spread, away) < SAME_SIGMAS**2)


def gathered(
    joints: JointFits, cost: Float[Array, " pair"], edges: Int[Array, " edge"]
) -> Int[Array, " edge"]:
    """Return the edges with bodies that meet in one point all joined to one of them.

    Where the joints of three bodies or more are one point, any of them may be taken for
    the one that the others hang on, and the motion does not tell. It is the one that
    leads to the most other bodies.
    """
    n_bodies = int(joints.pair.max()) + 1
    row_of = {(int(a), int(b)): k for k, (a, b) in enumerate(joints.pair)}
    kept = edges.tolist()
    for meeting in _meetings(joints, edges):
        rest = neighbours(joints.pair, np.setdiff1d(kept, meeting), n_bodies)
        members = sorted({int(b) for b in joints.pair[meeting].ravel()})
        hub = max(members, key=lambda body: (len(walk(rest, body)), -body))
        star = [row_of[min(hub, m), max(hub, m)] for m in members if m != hub]
        clear = all(joints.kind[row] != "fixed" for row in star)
        if clear and cost[star].max() <= ALIKE * cost[meeting].max():
            kept = [e for e in kept if e not in meeting] + star
    return np.array(kept, dtype=np.int64)


def _meetings(joints: JointFits, edges: Int[Array, " edge"]) -> list[list[int]]:
    """Return the sets of two edges or more whose joints are one and the same point."""
    clear = [int(e) for e in edges if joints.kind[e] != "fixed"]
    group = {edge: edge for edge in clear}
    for i, one in enumerate(clear):
        for other in clear[:i]:
            shared = set(joints.pair[one].tolist()) & set(joints.pair[other].tolist())
            if shared and same_point(joints, one, other, shared.pop()):
                old, new = group[one], group[other]
                group = {e: new if g == old else g for e, g in group.items()}
    sets = [[e for e in clear if group[e] == g] for g in dict.fromkeys(group.values())]
    return [rows for rows in sets if len(rows) > 1]


def doubtful_strangers(
    joints: JointFits,
    cost: Float[Array, " pair"],
    edges: Int[Array, " edge"],
    *,
    torn: float,
    far: float,
) -> Bool[Array, " edge"]:
    """Return which joints of a forest join bodies that merely stood or moved alike.

    They never moved against each other, or another joint would do as well, or this one
    gapes; and they are far apart.

    Args:
        joints: Candidate joints.
        cost: What each costs.
        edges: Those of the forest.
        torn: Times the noise from which a gap is no joint's.
        far: Times the distance that most joints keep from their bodies beyond which
            still bodies are strangers; half as much again for others.
    """
    if len(edges) == 0:
        return np.zeros(0, dtype=bool)
    n_bodies = int(joints.pair.max()) + 1
    distance = np.nan_to_num(joints.distance[edges])
    reach = far * float(np.percentile(distance, MOST_JOINTS))
    still = np.array([joints.kind[edge] == "fixed" for edge in edges])
    _, above = hang(neighbours(joints.pair, edges, n_bodies), None)
    margin = dict(zip(above.tolist(), margins(joints.pair, cost, above), strict=True))
    square, noise = gaps_and_noise(joints)
    doubt = np.array([margin[int(edge)] < DOUBT for edge in edges])
    doubt |= (square > torn**2 * noise)[edges]
    return np.asarray((still & (distance > reach)) | (doubt & (distance > 1.5 * reach)))
