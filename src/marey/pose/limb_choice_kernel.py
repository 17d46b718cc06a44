"""The cheapest way through several solutions of a take, compiled.

Solutions of the same frames may lie in different minima. The Viterbi algorithm finds,
for every limb, the sequence of solutions of least cost. The cost is the sum of the cost
of the limb's targets and the cost of its rotations from frame to frame.
"""

# mypy: ignore-errors

import numpy as np

from marey.articulated.kinematics_kernel import forward_kinematics
from marey.articulated.limits_kernel import write_change
from marey.articulated.targets_kernel import write_target_costs
from marey.numerics.arrays.new_kernel import empty, zeros
from marey.numerics.jit import lean, njit
from marey.numerics.vector3_kernel import dot


@njit(cache=True, nogil=True)
def write_subtree_costs(problem, recording, frames, root, q, cost):
    """Write the robust cost of the targets of every node's subtree in some frames."""
    tree, targets, work = problem
    points, sensors = recording
    origin = zeros(3)
    for f in frames:
        forward_kinematics(tree, root[f], q[f], work.R, work.c)
        write_target_costs(targets, points[f], sensors[f], origin, work, cost[f])
        for i in range(len(tree.parent) - 1, 0, -1):
            cost[f, tree.parent[i]] += cost[f, i]


@lean
def _change_cost(limb, node_limb, pose, old, prior, d):
    """Return the cost of the change of a limb's nodes between two poses."""
    total = 0.0
    for b in range(len(prior)):
        if node_limb[max(b - 1, 0)] == limb:
            write_change(b, pose, old, False, d)
            total += prior[b] * dot(d, d)
    return total


@njit(cache=True, nogil=True)
def choose_solutions(limb, node_limb, cost, solutions, prior, choice):
    """Write the number of the solution to which a limb keeps in every frame (Viterbi).

    Args:
        limb: Number of the limb.
        node_limb: Number of the limb of every node.
        cost: Cost of the limb's targets by solution and frame.
        solutions: Positions of the root and quaternions, by solution and frame.
        prior: Information on the change of each block from frame to frame.
        choice: Gets the number of the solution, by frame.
    """
    root, q = solutions
    n_solutions, n_frames = cost.shape
    last = np.zeros((n_frames, n_solutions), dtype=np.int64)
    total, new, d = cost[:, 0].copy(), empty(n_solutions), empty(3)
    for f in range(1, n_frames):
        for b in range(n_solutions):
            new[b] = np.inf
            for a in range(n_solutions):
                pose, old = (root[b, f], q[b, f]), (root[a, f - 1], q[a, f - 1])
                change = _change_cost(limb, node_limb, pose, old, prior, d)
                if total[a] + change < new[b]:
                    new[b], last[f, b] = total[a] + change, a
        for b in range(n_solutions):
            total[b] = new[b] + cost[b, f]
    choice[n_frames - 1] = np.argmin(total)
    for f in range(n_frames - 1, 0, -1):
        choice[f - 1] = last[f, choice[f]]
