"""Joints that are one point, and good joints that the tree leaves out.

Several bodies may meet in one point; a joint outside the tree that is nowhere near
those of the tree closes a loop (OBrien2000, Sec. 5).
"""

import numpy as np

from marey.joint_fits import JointFits
from marey.numerics import Array
from marey.numerics.thresholds import FEW, MARKER_NOISE_M, MOST, OUTLIER_SD
from marey.topology.spanning_forest import (
    AdjacencyList,
    BodyEdges,
    Edges,
    adjacency_list,
    breadth_first_parents,
    row_by_pair,
)
from marey.topology.weights import PairValues, count_bodies, is_within_noise
from marey.tree import Loop

MAX_LOOP_RATIO = 1.5
"""Largest residual of a joint that closes a loop, and its largest distance from its
bodies, as multiples of the noise and of the largest ones in the tree. Higher reports
more loops. Chosen by hand."""


def merge_coincident_joints(joints: JointFits, cost: PairValues, edges: Edges) -> Edges:
    """Return the edges with bodies that meet in one point all joined to one of them.

    If the joints of three bodies or more are one point, any of these bodies may be the
    parent of the others, and the motion does not determine which. The edges become a
    star around the body that leads to the most other bodies, if this costs about as
    much.
    """
    row_of = row_by_pair(joints.pair)
    merged = edges.tolist()
    for meeting in _coincident_edges(joints, edges):
        rest = adjacency_list(
            joints.pair, np.setdiff1d(merged, meeting), count_bodies(joints)
        )
        members = np.unique(joints.pair[meeting]).tolist()
        # Of several, max takes the first member.
        hub = max(members, key=lambda body: len(breadth_first_parents(rest, body)))
        star = [row_of[frozenset((hub, body))] for body in members if body != hub]
        moves = all(joints.kind[row] != "fixed" for row in star)
        if moves and MOST * cost[star].max() <= cost[meeting].max():
            merged = [edge for edge in merged if edge not in meeting] + star
    return np.array(merged, dtype=np.int64)


def _coincident_edges(joints: JointFits, edges: Edges) -> list[list[int]]:
    """Return the sets of two edges or more whose joints are one and the same point.

    Edges without relative motion are left out: their centre may be anywhere.
    """
    moving = [int(edge) for edge in edges if joints.kind[edge] != "fixed"]
    group = {edge: edge for edge in moving}
    for i, edge in enumerate(moving):
        for other in moving[:i]:
            shared = set(joints.pair[edge].tolist()) & set(joints.pair[other].tolist())
            if shared and centers_coincide(joints, edge, other, shared.pop()):
                old, new = group[edge], group[other]
                group = {e: new if g == old else g for e, g in group.items()}
    sets = [[e for e in moving if group[e] == g] for g in dict.fromkeys(group.values())]
    return [rows for rows in sets if len(rows) > 1]


def centers_coincide(
    joints: JointFits,
    row: int,
    other: int,
    body: int,
    tolerance_m: float = MARKER_NOISE_M,
) -> bool:
    r"""Return whether two joints of a body are one point within their uncertainty.

    .. math:: (p - q)^T (P + Q + \tau^2 I)^{-1} (p - q) < 3^2

    :math:`p, q` are the centres in the axes of the body, :math:`P, Q` their covariances
    and :math:`\tau` is the tolerance: a squared Mahalanobis distance.

    Args:
        joints: Candidate joints.
        row: Row of one pair that contains the body.
        other: Row of another.
        body: The body that both pairs share.
        tolerance_m: Standard deviation that is added to both, in metres.
    """
    (p, P), (q, Q) = (_center_in_body(joints, pair, body) for pair in (row, other))
    # Exact joints have no covariance.
    least = tolerance_m**2 + np.finfo(float).eps ** 2
    covariance = np.nan_to_num(P) + np.nan_to_num(Q) + least * np.eye(3)
    # Where no motion shows it, a variance may exceed the others beyond all digits.
    variance, axes = np.linalg.eigh(covariance)
    variance = np.maximum(variance, np.finfo(float).eps * variance[-1])
    squared_distance = np.sum(((p - q) @ axes) ** 2 / variance)
    return bool(squared_distance < OUTLIER_SD**2)


def _center_in_body(joints: JointFits, row: int, body: int) -> tuple[Array, Array]:
    """Return the centre of a pair's joint in one of its bodies, and its covariance."""
    if joints.pair[row, 0] == body:
        return joints.center_a[row], joints.covariance[row, :3, :3]
    return joints.center_b[row], joints.covariance[row, 3:, 3:]


def find_loops(
    joints: JointFits, cost: PairValues, edge_of_body: BodyEdges
) -> tuple[Loop, ...]:
    """Return the joints that fit well, are not in the tree and do not follow from it.

    Two bodies also fit as if they were joined if the bodies between them hardly moved.
    Then their joint is where the tree already has one, or the two have no relative
    motion. Such joints are left out, and so are joints that are further from their
    bodies than joints of the tree. A joint between two trees closes no loop.
    """
    used = edge_of_body[edge_of_body >= 0]
    if not np.isfinite(joints.distance[used]).any():
        return ()
    is_good = np.isfinite(cost) & is_within_noise(joints, MAX_LOOP_RATIO)
    is_good &= joints.residual <= MAX_LOOP_RATIO * joints.residual[used].max()
    furthest = MAX_LOOP_RATIO * np.nanmax(joints.distance[used], initial=0.0)
    is_good &= ~(joints.distance > furthest)
    is_good[used] = False
    tree = adjacency_list(joints.pair, used, len(edge_of_body))
    median_distance = float(np.nanmedian(joints.distance[used]))
    tolerance_m = FEW * median_distance
    return tuple(
        Loop(pair=row)
        for row in np.flatnonzero(is_good).tolist()
        if joints.kind[row] != "fixed" and _closes_loop(joints, row, tree, tolerance_m)
    )


def _closes_loop(
    joints: JointFits, row: int, tree: AdjacencyList, tolerance_m: float
) -> bool:
    """Return whether a joint of one tree is no image of another joint of it.

    It is one if it coincides with the joint of an end and a body in between, which
    stood still relative to the other end.
    """
    row_of = row_by_pair(joints.pair)
    a, b = joints.pair[row].tolist()
    reached = breadth_first_parents(tree, a)
    if b not in reached:
        return False
    between = [reached[b][0]]
    while between[-1] != a:
        between.append(reached[between[-1]][0])
    return not any(
        centers_coincide(joints, row, row_of[frozenset((end, body))], end, tolerance_m)
        for end in (a, b)
        for body in between[:-1]
    )
