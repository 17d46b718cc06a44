"""Edges that are no joints: bodies of different subjects, and objects nobody holds.

A minimum spanning tree joins everything. The edges found here are left out of it, so
that the tree becomes a forest: one tree per subject and per loose object.
"""

import numpy as np

from marey.joint_fits import JointFits, smallest_per_body
from marey.numerics import Array, Bool
from marey.numerics.thresholds import CERTAIN_SD, OUTLIER_SD, SKIN_MOTION_M
from marey.topology.spanning_forest import (
    DOUBTFUL_MARGIN,
    Edges,
    adjacency_list,
    edge_margins,
    root_forest,
)
from marey.topology.weights import (
    PairValues,
    count_bodies,
    is_within_noise,
)

MAX_RESIDUAL_RATIO = CERTAIN_SD
"""Largest residual of a joint, as a multiple of the best residual of a typical body, or
of the noise."""

MAX_DISTANCE_RATIO = 1.9
"""Largest distance between a joint and its bodies, as a multiple of the usual distance,
where the residual does not show a joint clearly. Higher keeps more edges. Chosen by
hand."""

DOUBTFUL_EDGE_COST = 20.0
"""Cost of an edge between bodies of markers above which it is doubtful. Higher joins
more bodies. Over 25 recordings with known bodies most true joints cost up to 10, those
of stiff marker clusters on soft shoulders up to 40."""

MAX_EDGE_COST = OUTLIER_SD * DOUBTFUL_EDGE_COST
"""Cost of an edge between bodies of markers above which it is no joint. Origin as for
`DOUBTFUL_EDGE_COST`."""

MAX_DOUBTFUL_RESIDUAL_RATIO = 0.2
"""Largest residual of a doubtful joint, as a fraction of its distance from the bodies.
Higher joins more bodies. In the same 25 recordings soft shoulders have up to 0.17; of
sensors, the hinge of a file with another unit has 0.12, hands and a head without the
arms between them 0.33, 120 pairs of generated props that nobody holds 0.70 and more."""

MAX_DOUBTFUL_SPACING = 2.5
"""Largest `JointFits.marker_spacing` of a doubtful joint of marker bodies. Higher joins
more bodies. In the same 25 recordings soft shoulders have up to 1.4, a wheelchair and
its rider 2.8, a puck and two players 8 and more."""


def remove_marker_edges(joints: JointFits, cost: PairValues) -> PairValues:
    """Return the costs of marker bodies, infinite for edges that are no joints.

    An edge is none if it costs too much, or if its cost is doubtful and its residual is
    large for its distance or its bodies are far apart.
    """
    with np.errstate(invalid="ignore"):
        is_apart = (joints.residual > MAX_DOUBTFUL_RESIDUAL_RATIO * joints.distance) | (
            joints.marker_spacing > MAX_DOUBTFUL_SPACING
        )
    is_none = (cost > MAX_EDGE_COST) | ((cost > DOUBTFUL_EDGE_COST) & is_apart)
    return np.where(is_none, np.inf, cost)


def remove_open_edges(joints: JointFits, cost: PairValues) -> PairValues:
    """Return the costs, infinite for large residuals and for unattached bodies.

    Residuals that skin or noise explains are not large. Others are large if they are
    far above that of a typical body, or large for the distance of the joint: even two
    props that nobody holds have a best joint.
    """
    if not np.isfinite(cost).any():
        return cost
    best = smallest_per_body(joints.pair, joints.residual, count_bodies(joints))
    typical = float(np.median(best[np.isfinite(best)]))
    explained = CERTAIN_SD * np.maximum(SKIN_MOTION_M, joints.noise)
    with np.errstate(invalid="ignore"):
        is_usual = joints.residual <= MAX_RESIDUAL_RATIO * typical
        is_usual &= joints.residual <= MAX_DOUBTFUL_RESIDUAL_RATIO * joints.distance
        is_closed = (joints.residual <= explained) | is_usual
    is_attached = ~unattached_bodies(joints, cost)[joints.pair].any(axis=1)
    return np.where(is_closed & is_attached, cost, np.inf)


def unattached_bodies(joints: JointFits, cost: PairValues) -> Bool[Array, " body"]:
    """Return the bodies that have only large residuals and a far cheapest joint.

    The origin of the laboratory, if a file has it among the bodies, is such a body; the
    frame that carries a pendulum is not.
    """
    cheapest = np.full(count_bodies(joints), -1)
    for row in np.argsort(-cost, kind="stable"):
        if np.isfinite(cost[row]):
            cheapest[joints.pair[row]] = row
    has_joint = cheapest >= 0
    distance = joints.distance[cheapest[has_joint]]
    usual = joints.usual_distance(cheapest[has_joint])
    is_unattached = np.zeros(len(cheapest), dtype=bool)
    is_unattached[has_joint] = distance > MAX_DISTANCE_RATIO * usual
    # A single joint whose residual is small attaches both its bodies.
    is_closed = is_within_noise(joints, MAX_RESIDUAL_RATIO)
    is_unattached[joints.pair[is_closed]] = False
    return is_unattached


def spurious_edges(
    joints: JointFits, cost: PairValues, edges: Edges
) -> Bool[Array, " edge"]:
    """Return which edges of a forest join bodies that only happened to move together.

    The two bodies are far from their joint, and they have no relative motion, or
    another edge costs about as much, or the residual is large.

    Args:
        joints: Candidate joints.
        cost: Cost of each candidate.
        edges: Rows of the candidates that the forest consists of.
    """
    if len(edges) == 0:
        return np.zeros(0, dtype=bool)
    distance = np.nan_to_num(joints.distance[edges])
    largest = MAX_DISTANCE_RATIO * joints.usual_distance(edges)
    is_still = np.array([joints.kind[edge] == "fixed" for edge in edges])
    forest = adjacency_list(joints.pair, edges, count_bodies(joints))
    _, edge_of_body = root_forest(forest, None)
    margin = edge_margins(joints.pair, cost, edge_of_body)
    is_doubtful = np.isin(edges, edge_of_body[margin < DOUBTFUL_MARGIN])
    is_doubtful |= ~is_within_noise(joints, MAX_RESIDUAL_RATIO)[edges]
    return np.asarray((is_still | is_doubtful) & (distance > largest))
