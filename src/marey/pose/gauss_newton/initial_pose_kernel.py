"""A pose found without any help from earlier ones, compiled; see `fit.py`."""

from typing import no_type_check

import numpy as np

from marey.articulated.kinematics_kernel import copy, fill, place
from marey.articulated.limits_kernel import hinge_turn
from marey.articulated.targets_kernel import reduce, weigh
from marey.numerics.jit import lean
from marey.numerics.kabsch_kernel import diagonalise_4x4, fill_horn_matrix, is_tied

# A body of markers counts as an anchor when it knows its own turn better than this,
# in 1 / rad^2; the root is taken unless another is this many times better.
ANCHOR = 10.0
BETTER = 10.0


@no_type_check
@lean
def _best_turn(work, near):
    """Write the rotation that carries best, from cross moments; return if unique."""
    N, V, q = work.N, work.V, work.turn
    fill_horn_matrix(work.cross, N)
    diagonalise_4x4(N, V)
    best = 0
    for k in range(1, 4):
        if N[k, k] > N[best, best]:
            best = k
    if is_tied(N, best):
        return False
    sign, n = 0.0, 0.0
    for k in range(4):
        sign += V[k, best] * near[k]
        n += V[k, best] * V[k, best]
    n = np.sqrt(n) if sign >= 0.0 else -np.sqrt(n)
    for k in range(4):
        q[k] = V[k, best] / n
    return True


@no_type_check
@lean
def _spread(sums):
    """Return what a body's targets tell of its turn about their centre."""
    w = sums[0]
    if not w > 0.0:
        return 0.0
    x, y, z = sums[1] / w, sums[2] / w, sums[3] / w
    xx, yy = sums[4] - w * x * x, sums[7] - w * y * y
    zz = sums[9] - w * z * z
    d, e, f = -(sums[5] - w * x * y), -(sums[6] - w * x * z), -(sums[8] - w * y * z)
    a, b, c = yy + zz, xx + zz, xx + yy
    minors = a * b - d * d + a * c - e * e + b * c - f * f
    det = a * (b * c - f * f) - d * (d * c - e * f) + e * (d * f - b * e)
    return det / minors if det > 0.0 and minors > 0.0 else 0.0


@no_type_check
@lean
def _central(sums, H):
    """Write the cross moments of a body's places and targets about their centres."""
    for j in range(3):
        for k in range(3):
            H[j, k] = sums[13 + 3 * j + k] - sums[1 + j] * sums[10 + k] / sums[0]


@no_type_check
@lean
def _as_one(work, only, sums):
    """Write the sums of one body, or of all as they stand, as seen from the root."""
    fill(sums, 0.0)
    for i in range(len(work.c)):
        if only not in (-1, i):
            continue
        R, c, own = work.R[i], work.c[i], work.local[i]
        sums[0] += own[0]
        for j in range(3):
            s = R[j, 0] * own[1] + R[j, 1] * own[2] + R[j, 2] * own[3]
            sums[1 + j] += s + own[0] * c[j]
            sums[10 + j] += own[10 + j]
            for k in range(3):
                turned = 0.0
                for m in range(3):
                    turned += R[j, m] * own[13 + 3 * m + k]
                sums[13 + 3 * j + k] += turned + c[j] * own[10 + k]


@no_type_check
@lean
def _anchor(work):
    """Return the body whose targets fix its pose best, if any; the root if good."""
    best = 0
    known = BETTER * _spread(work.local[0])
    for i in range(1, len(work.c)):
        other = _spread(work.local[i])
        if other > known:
            best, known = i, other
    return best if known > ANCHOR else -1


@no_type_check
@lean
def _stand(tree, work, anchor, root, q):
    """Put the root where the anchor, or the figure as it stands, lies best."""
    sums, turn = work.sums, work.turn
    q[0, 0], q[0, 1], q[0, 2], q[0, 3] = 1.0, 0.0, 0.0, 0.0
    fill(root, 0.0)
    place(tree, root, q, work.R, work.c)
    _as_one(work, anchor, sums)
    if not sums[0] > 0.0:
        return
    _central(sums, work.cross)
    if _best_turn(work, q[0]):
        copy(turn, q[0])
    place(tree, root, q, work.R, work.c)
    for j in range(3):
        R = work.R[0, j]
        turned = R[0] * sums[1] + R[1] * sums[2] + R[2] * sums[3]
        root[j] = (sums[10 + j] - turned) / sums[0]


@no_type_check
@lean
def _reach_out(tree, work, prior, root, q):
    """Turn every joint, from the root outward, so that its own targets lie best."""
    H, turn = work.cross, work.turn
    for i in range(1, len(q)):
        sums = work.local[i]
        if not sums[4] + sums[7] + sums[9] > 0.0:
            continue
        place(tree, root, q, work.R, work.c)
        p = tree.parent[i]
        R, c, own = work.R[p], work.c[i], work.R[i]
        for j in range(3):
            for k in range(3):
                # Half the prior keeps to the pose what the targets leave open.
                H[j, k] = 0.0
                for m in range(3):
                    moment = sums[13 + 3 * j + m] - sums[1 + j] * c[m]
                    moment += 0.5 * prior[i + 1] * own[m, j]
                    H[j, k] += moment * R[m, k]
        if tree.hinge[i]:
            a = tree.axis[i]
            sine = a[0] * (H[1, 2] - H[2, 1]) + a[1] * (H[2, 0] - H[0, 2])
            sine += a[2] * (H[0, 1] - H[1, 0])
            cosine = H[0, 0] + H[1, 1] + H[2, 2]
            for j in range(3):
                for k in range(3):
                    cosine -= a[j] * H[j, k] * a[k]
            hinge_turn(a, np.arctan2(sine, cosine), q[i])
        elif _best_turn(work, q[i]):
            copy(turn, q[i])


@no_type_check
@lean
def find(tree, targets, work, points, sensors, origin, root, q, prior):
    """Write a pose that needs no help from earlier ones: the root, then outward."""
    weigh(targets, points, sensors, origin, work, 0.0)
    reduce(targets, points, sensors, origin, work)
    _stand(tree, work, _anchor(work), root, q)
    _reach_out(tree, work, prior, root, q)
