"""Good joints that a tree leaves out."""

import numpy as np
from jaxtyping import Float, Int

from marey.joint_fits import JointFits
from marey.topology.spanning_forest import neighbours, same_point, walk
from marey.topology.weights import gaps_and_noise
from marey.tree import Loop

Array = np.ndarray

LOOSEST_LOOP = 1.5
"""Times the noise, and the weakest joint of the tree, up to which a joint may close a
loop."""

# Share of the median distance of joints from their bodies within which two joints are
# one: the second moves with a neighbour that stayed where it was.
ONE_JOINT = 0.2


def loops(
    joints: JointFits, cost: Float[Array, " pair"], edge: Int[Array, " body"]
) -> tuple[Loop, ...]:
    """Return good joints that the tree leaves out and does not explain.

    Two bodies may fit as if joined because those between them hardly moved: then their
    joint is where the tree has one already, or they never moved against each other.
    """
    used = edge[edge >= 0]
    if len(used) == 0:
        return ()
    square, noise = gaps_and_noise(joints)
    good = np.isfinite(cost) & (square <= LOOSEST_LOOP**2 * noise)
    good &= joints.residual <= LOOSEST_LOOP * joints.residual[used].max()
    good[used] = False
    near = neighbours(joints.pair, used, len(edge))
    place = ONE_JOINT * float(np.nanmedian(joints.distance[used]))
    found = [
        row
        for row in np.flatnonzero(good).tolist()
        if joints.kind[row] != "fixed" and not _explained(joints, row, near, place)
    ]
    return tuple(Loop(pair=row) for row in found)


def _explained(
    joints: JointFits, row: int, near: list[list[tuple[int, int]]], place: float
) -> bool:
    """Return whether a joint is one of the tree's, seen from farther off."""
    row_of = {(int(a), int(b)): k for k, (a, b) in enumerate(joints.pair)}
    a, b = (int(body) for body in joints.pair[row])
    reached = walk(near, a)
    if b not in reached:
        return False
    between = []
    body = reached[b][0]
    while body != a:
        between.append(body)
        body = reached[body][0]
    return any(
        same_point(joints, row, row_of[min(end, y), max(end, y)], end, place)
        for end in (a, b)
        for y in between
    )
