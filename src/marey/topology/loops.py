"""Loop joints: good joints that the tree leaves out (OBrien2000, Sec. 5)."""

import numpy as np

from marey.joint_fits import JointFits
from marey.topology.coincident_joints import centers_coincide
from marey.topology.spanning_forest import (
    AdjacencyList,
    BodyEdges,
    adjacency_list,
    breadth_first_parents,
    row_by_pair,
)
from marey.topology.weights import PairValues, is_within_noise
from marey.tree import Loop

Array = np.ndarray

MAX_LOOP_RESIDUAL_RATIO = 1.5
"""Largest residual of a joint that closes a loop, as a multiple of the noise and of the
largest residual in the tree. Higher reports more loops. Chosen by hand."""

SAME_JOINT_DISTANCE_RATIO = 0.2
"""Distance up to which two joints are the same one, as a fraction of the median
distance between joints and their bodies. Higher reports fewer loops. Chosen by hand."""


def find_loops(
    joints: JointFits, cost: PairValues, edge_of_body: BodyEdges
) -> tuple[Loop, ...]:
    """Return the joints that fit well, are not in the tree and do not follow from it.

    Two bodies also fit as if they were joined if the bodies between them hardly moved.
    Their joint then is where the tree already has one, or the two have no relative
    motion; such joints are left out.
    """
    used = edge_of_body[edge_of_body >= 0]
    if len(used) == 0:
        return ()
    is_good = np.isfinite(cost) & is_within_noise(joints, MAX_LOOP_RESIDUAL_RATIO)
    is_good &= joints.residual <= MAX_LOOP_RESIDUAL_RATIO * joints.residual[used].max()
    is_good[used] = False
    tree = adjacency_list(joints.pair, used, len(edge_of_body))
    median_distance = float(np.nanmedian(joints.distance[used]))
    tolerance_m = SAME_JOINT_DISTANCE_RATIO * median_distance
    return tuple(
        Loop(pair=row)
        for row in np.flatnonzero(is_good).tolist()
        if joints.kind[row] != "fixed"
        and not _follows_from_tree(joints, row, tree, tolerance_m)
    )


def _follows_from_tree(
    joints: JointFits, row: int, tree: AdjacencyList, tolerance_m: float
) -> bool:
    """Return whether a joint coincides with that of an end and a body in between.

    Such a body stood still relative to the other end, so the joint is only the image of
    one that the tree has.
    """
    row_of = row_by_pair(joints.pair)
    a, b = joints.pair[row].tolist()
    reached = breadth_first_parents(tree, a)
    if b not in reached:
        return False
    between = []
    body = reached[b][0]
    while body != a:
        between.append(body)
        body = reached[body][0]
    return any(
        centers_coincide(joints, row, row_of[frozenset((end, body))], end, tolerance_m)
        for end in (a, b)
        for body in between
    )
