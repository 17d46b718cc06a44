r"""Frames side by side, one per lane: one step of Levenberg-Marquardt on all, compiled.

The step is that of `levenberg_marquardt_kernel`, by articulated bodies, for markers and
a prior, as long as no limit is reached. What decides about a lane is single numbers.
"""

# mypy: ignore-errors

from typing import NamedTuple

import numpy as np

from marey.articulated.articulated_body_kernel import (
    N_BODY,
    add_to_parent,
    eliminate_ball,
    eliminate_hinge,
    prior_share,
    solve_root,
    substitute_ball,
    substitute_hinge,
    symmetric_times,
)
from marey.articulated.factor_kernel import TINY_INFORMATION, least_eigenvalue_bound
from marey.articulated.kinematics_kernel import place_node
from marey.articulated.limits_kernel import lesser, limit_margin, retraction
from marey.numerics.arrays.reference_kernel import by_reference, refer
from marey.numerics.jit import inlined, lean
from marey.numerics.lanes_kernel import (
    aligned_zeros,
    any_positive,
    as_lanes,
    select_positive,
    spread,
)
from marey.numerics.vector3_kernel import (
    cross,
    dot,
    multiply_quaternions,
    rotate,
    rotate_back,
)

MIN_SEEN_SHARE = 0.5
"""Share of a node's targets that must not be outliers for a pose to be good. Higher
tries again more often. Chosen by hand."""

COST, WEIGHT, DECREASE, COMPARED, TOTAL, STEP, MARGIN, OUTLIERS = range(8)
"""Numbers of one iteration: cost of the targets, their weight, the predicted decrease,
the cost with the prior of the step before and with that of this one, the square of the
step, the margin to the limits, and whether a node has outliers (not negative)."""

N_RESULTS = OUTLIERS + 1


@by_reference
class LaneFrames(NamedTuple):
    """Frames side by side; the last axis of all is that of the lanes."""

    root: np.ndarray  # (3): position of the root, from `origin`
    q: np.ndarray  # (node, 4): quaternions as they move
    base_root: np.ndarray  # (3): of the last accepted pose
    base: np.ndarray  # (node, 4)
    expected_root: np.ndarray  # (3): of the prior
    expected: np.ndarray  # (node, 4)
    origin: np.ndarray  # (3): position of the root at the start
    R: np.ndarray  # (node, 3, 3): R_world_node
    c: np.ndarray  # (node, 3): position of the node
    axis: np.ndarray  # (node, 3): of a hinge in the world
    rotation: np.ndarray  # (node, 3): rotation of the node in the world by the step
    move: np.ndarray  # (node, 3): displacement of the node by the step
    body: np.ndarray  # (node, N_BODY): see `articulated_body_kernel`
    share: np.ndarray  # (block): of the prior
    information: np.ndarray  # (block): of the targets, 1 / m^2 or 1 / rad^2
    seen: np.ndarray  # (marker, 3): positions, from `origin`
    weight: np.ndarray  # (marker): 0 where unseen
    damping: np.ndarray  # (1): of Levenberg-Marquardt
    accepted: np.ndarray  # (1): 1 if the pose is the best so far, else 0
    result: np.ndarray  # (N_RESULTS): of one iteration


def make_lanes(n_nodes: int, n_markers: int) -> LaneFrames:
    """Return room for frames side by side."""
    return LaneFrames(
        root=aligned_zeros(3),
        q=aligned_zeros(n_nodes, 4),
        base_root=aligned_zeros(3),
        base=aligned_zeros(n_nodes, 4),
        expected_root=aligned_zeros(3),
        expected=aligned_zeros(n_nodes, 4),
        origin=aligned_zeros(3),
        R=aligned_zeros(n_nodes, 3, 3),
        c=aligned_zeros(n_nodes, 3),
        axis=aligned_zeros(n_nodes, 3),
        rotation=aligned_zeros(n_nodes, 3),
        move=aligned_zeros(n_nodes, 3),
        body=aligned_zeros(n_nodes, N_BODY),
        share=aligned_zeros(n_nodes + 1),
        information=aligned_zeros(n_nodes + 1),
        seen=aligned_zeros(n_markers, 3),
        weight=aligned_zeros(n_markers),
        damping=aligned_zeros(1),
        accepted=aligned_zeros(1),
        result=aligned_zeros(N_RESULTS),
    )


@inlined
def view_lanes(frames):
    """Return the same frames as arrays of lanes."""
    return refer(
        LaneFrames(
            as_lanes(frames.root),
            as_lanes(frames.q),
            as_lanes(frames.base_root),
            as_lanes(frames.base),
            as_lanes(frames.expected_root),
            as_lanes(frames.expected),
            as_lanes(frames.origin),
            as_lanes(frames.R),
            as_lanes(frames.c),
            as_lanes(frames.axis),
            as_lanes(frames.rotation),
            as_lanes(frames.move),
            as_lanes(frames.body),
            as_lanes(frames.share),
            as_lanes(frames.information),
            as_lanes(frames.seen),
            as_lanes(frames.weight),
            as_lanes(frames.damping),
            as_lanes(frames.accepted),
            as_lanes(frames.result),
        )
    )


@lean
def _sum_markers(targets, lanes, i, robust):
    """Write the form of the markers of a node; return cost, weight and outliers.

    The last is not negative if the robust weights of most of its markers are low.
    """
    R, c, body = lanes.R[i], lanes.c[i], lanes.body[i]
    zero = spread(0.0)
    cost, w, sx, sy, sz = zero, zero, zero, zero, zero
    xx, xy, xz, yy, yz, zz = zero, zero, zero, zero, zero, zero
    tx, ty, tz, fx, fy, fz = zero, zero, zero, zero, zero, zero
    n_seen, kept = zero, zero
    for k in range(targets.start[i], targets.start[i + 1]):
        y, m = lanes.seen[k], targets.position[k]
        a, b, d = rotate(R, m)
        rx, ry, rz = y[0] - c[0] - a, y[1] - c[1] - b, y[2] - c[2] - d
        square = rx * rx + ry * ry + rz * rz
        weight = lanes.weight[k]
        if robust:
            share = 1.0 / (1.0 + targets.softness[k] * square)
            cost += weight * share * square
            seen = select_positive(weight, spread(1.0), zero)
            n_seen, kept = n_seen + seen, kept + seen * share * share
            weight = weight * share * share
        else:
            cost += weight * square
        wa, wb, wd = weight * a, weight * b, weight * d
        rx, ry, rz = weight * rx, weight * ry, weight * rz
        w, sx, sy, sz = w + weight, sx + wa, sy + wb, sz + wd
        xx, xy, xz = xx + wa * a, xy + wa * b, xz + wa * d
        yy, yz, zz = yy + wb * b, yz + wb * d, zz + wd * d
        fx, fy, fz = fx + rx, fy + ry, fz + rz
        tx, ty = tx + (b * rz - d * ry), ty + (d * rx - a * rz)
        tz += a * ry - b * rx
    body[0], body[1], body[2] = yy + zz, -xy, -xz
    body[3], body[4], body[5] = xx + zz, -yz, xx + yy
    body[6], body[7], body[8] = zero, -sz, sy
    body[9], body[10], body[11] = sz, zero, -sx
    body[12], body[13], body[14] = -sy, sx, zero
    body[15], body[16], body[17] = w, zero, zero
    body[18], body[19], body[20] = w, zero, w
    body[21], body[22], body[23] = tx, ty, tz
    body[24], body[25], body[26] = fx, fy, fz
    outliers = select_positive(n_seen - 1.0, MIN_SEEN_SHARE * n_seen - kept, -1.0)
    return cost, w, outliers


@lean
def evaluate_lanes(tree, targets, lanes, robust):
    """Place all nodes and write the forms of their markers.

    Returns:
        Cost, total weight, and a number that is not negative if most of the markers of
        some node count as outliers.
    """
    cost, weight, outliers = spread(0.0), spread(0.0), spread(-1.0)
    for i in range(len(tree.parent)):
        place_node(tree, i, lanes.root, lanes.q, lanes.R, lanes.c)
        if tree.is_hinge[i]:
            axis = rotate(lanes.R[tree.parent[i]], tree.axis[i])
            lanes.axis[i, 0], lanes.axis[i, 1], lanes.axis[i, 2] = axis
        part, seen, most = _sum_markers(targets, lanes, i, robust)
        cost, weight = cost + part, weight + seen
        outliers = select_positive(most - outliers, most, outliers)
    return cost, weight, outliers


@lean
def _prior_residual(tree, lanes, i):
    """Return the rotation from the pose of a node to the expected one, in the world."""
    q, p = lanes.expected[i], lanes.q[i]
    w, x, y, z = multiply_quaternions(
        (q[0], q[1], q[2], q[3]), (p[0], -p[1], -p[2], -p[3])
    )
    s = select_positive(w, spread(2.0), spread(-2.0))
    e = s * x, s * y, s * z
    return e if i == 0 else rotate(lanes.R[tree.parent[i]], e)


@lean
def _information_on(tree, lanes, i):
    """Return information on a node's rotation, and that on its axes in sum."""
    body, axis = lanes.body[i], lanes.axis[i]
    J = body[0], body[1], body[2], body[3], body[4], body[5]
    if tree.is_hinge[i]:
        least = dot(axis, symmetric_times(*J, axis))
        return least, least
    return (
        least_eigenvalue_bound(J[0], J[3], J[5], J[1], J[2], J[4]),
        J[0] + J[3] + J[5],
    )


@lean
def _eliminate_node(tree, lanes, i, extra, weight, e):
    """Eliminate one joint with prior; see `eliminate_ball`."""
    body, axis = lanes.body[i], lanes.axis[i]
    if tree.is_hinge[i]:
        return eliminate_hinge(body, axis, extra, weight * dot(axis, e))
    pull = weight * e[0], weight * e[1], weight * e[2]
    return eliminate_ball(body, extra, pull)


@lean
def _vector_between(a, b):
    """Return the vector from a to b."""
    return b[0] - a[0], b[1] - a[1], b[2] - a[2]


@lean
def eliminate_lanes(tree, lanes, prior, fades):
    """Eliminate all joints of all lanes.

    Returns:
        The displacement of the root, the predicted decrease of the cost, and the cost
        of the prior by the shares of the step before and by those of this one.
    """
    zero, damping, p = spread(0.0), lanes.damping[0], -1
    decrease, before, now = zero, zero, zero
    none = zero, zero, zero
    left = ((*none, *none), (none, none, none), (*none, *none), none, none)
    for i in range(len(tree.parent) - 1, -1, -1):
        information, trace = _information_on(tree, lanes, i)
        share, last = prior_share(information, prior[i + 1], fades), lanes.share[i + 1]
        lanes.share[i + 1], lanes.information[i + 1] = share, information
        e, weight = none, share * prior[i + 1]
        if any_positive(share + last):
            e = _prior_residual(tree, lanes, i)
            square = prior[i + 1] * dot(e, e)
            before, now = before + last * square, now + share * square
        extra = weight + damping * trace / 3.0 + TINY_INFORMATION
        gain, left = _eliminate_node(tree, lanes, i, extra, weight, e)
        decrease, p = decrease + gain, tree.parent[i]
        if p >= 0:
            add_to_parent(lanes.body[p], left, _vector_between(lanes.c[p], lanes.c[i]))
    M = left[2]
    information = least_eigenvalue_bound(M[0], M[3], M[5], M[1], M[2], M[4])
    share, last = prior_share(information, prior[0], fades), lanes.share[0]
    lanes.share[0], lanes.information[0] = share, information
    e = _vector_between(lanes.root, lanes.expected_root)
    square, weight = prior[0] * dot(e, e), share * prior[0]
    extra = weight + damping * (M[0] + M[3] + M[5]) / 3.0 + TINY_INFORMATION
    pull = weight * e[0], weight * e[1], weight * e[2]
    move, gain = solve_root(left, extra, pull)
    return move, decrease + gain, before + last * square, now + share * square


@lean
def _keep(accepted, new, pose, base):
    """Write the pose after a step, or the last accepted one if this is none."""
    for k in range(len(pose)):
        old = base[k]
        base[k] = select_positive(accepted, pose[k], old)
        pose[k] = select_positive(accepted, new[k], old)


@lean
def _turn_node(tree, lanes, i, w, v):
    """Return the rotation of a joint by the step, in the world and in its parent."""
    p, body = tree.parent[i], lanes.body[i]
    if tree.is_hinge[i]:
        angle, a, b = substitute_hinge(body, w, v), tree.axis[i], lanes.axis[i]
        world = angle * b[0], angle * b[1], angle * b[2]
        return world, (angle * a[0], angle * a[1], angle * a[2])
    d = substitute_ball(body, w, v)
    return d, d if i == 0 else rotate_back(lanes.R[p], d)


@lean
def step_lanes(tree, lanes, move):
    """Take the step in every lane; return its square, and the margin to the limits.

    A pose that is not accepted is replaced by the last accepted one.
    """
    accepted, margin, zero = lanes.accepted[0], spread(1.0), spread(0.0)
    square, root = dot(move, move), lanes.root
    new = root[0] + move[0], root[1] + move[1], root[2] + move[2]
    _keep(accepted, new, root, lanes.base_root)
    for i in range(len(tree.parent)):
        p, w, v, q = tree.parent[i], (zero, zero, zero), move, lanes.q[i]
        if p >= 0:
            rotation, of = lanes.rotation[p], lanes.move[p]
            w = rotation[0], rotation[1], rotation[2]
            x, y, z = cross(w, _vector_between(lanes.c[p], lanes.c[i]))
            v = x + of[0], y + of[1], z + of[2]
        d, back = _turn_node(tree, lanes, i, w, v)
        square += dot(d, d)
        for k in range(3):
            lanes.rotation[i, k], lanes.move[i, k] = w[k] + d[k], v[k]
        new_q = retraction(q, back)
        if tree.has_limits[i]:
            margin = lesser(margin, limit_margin(tree, i, new_q))
        _keep(accepted, new_q, q, lanes.base[i])
    return square, margin


@inlined
def iterate_lanes(tree, targets, lanes, settings):
    """Evaluate all lanes and eliminate their joints; return the step of the root.

    `result` gets all numbers but STEP and MARGIN.
    """
    cost, weight, outliers = evaluate_lanes(tree, targets, lanes, settings.robust)
    move, decrease, before, now = eliminate_lanes(
        tree, lanes, settings.prior, not settings.guided
    )
    result = lanes.result
    result[COST], result[WEIGHT], result[DECREASE] = cost, weight, decrease
    result[COMPARED], result[TOTAL], result[OUTLIERS] = (
        cost + before,
        cost + now,
        outliers,
    )
    return move
