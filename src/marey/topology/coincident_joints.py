"""Joints that are one point: several bodies that meet there."""

import numpy as np

from marey.joint_fits import JointFits
from marey.topology.spanning_forest import (
    Edges,
    adjacency_list,
    breadth_first_parents,
    row_by_pair,
)
from marey.topology.weights import PairValues, count_bodies

Array = np.ndarray

MAX_MAHALANOBIS_DISTANCE = 3.0
"""Largest distance of two centres that count as one point, in standard deviations.
Higher merges more joints. Chosen by hand."""

CENTER_TOLERANCE_M = 1e-3
"""Standard deviation, in metres, that is added to the uncertainty of two centres.
Higher merges more joints. Chosen by hand."""

MAX_COST_RATIO = 1.05
"""Largest ratio of the costs of the edges after and before bodies that meet in one
point are joined to one of them. Higher merges more joints. Chosen by hand."""


def merge_coincident_joints(joints: JointFits, cost: PairValues, edges: Edges) -> Edges:
    """Return the edges with bodies that meet in one point all joined to one of them.

    If the joints of three bodies or more are one point, any of these bodies may be the
    parent of the others, and the motion does not determine which. The edges become a
    star around the body that leads to the most other bodies, if this costs no more.
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
        if moves and cost[star].max() <= MAX_COST_RATIO * cost[meeting].max():
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
    tolerance_m: float = CENTER_TOLERANCE_M,
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
    covariance = np.nan_to_num(P) + np.nan_to_num(Q) + tolerance_m**2 * np.eye(3)
    offset = p - q
    squared_distance = offset @ np.linalg.solve(covariance, offset)
    return bool(squared_distance < MAX_MAHALANOBIS_DISTANCE**2)


def _center_in_body(joints: JointFits, row: int, body: int) -> tuple[Array, Array]:
    """Return the centre of a pair's joint in one of its bodies, and its covariance."""
    if joints.pair[row, 0] == body:
        return joints.center_a[row], joints.covariance[row, :3, :3]
    return joints.center_b[row], joints.covariance[row, 3:, 3:]
