"""Joints that come back into sight go smoothly to where they are, compiled.

What was guessed of a joint while it was out of sight is off when its markers come
back. A stream shows this offset and lets it fade (`ease_back`), a whole take lets it
grow beforehand, while the joint is still out of sight (`lead_back`). Offsets are
rotation vectors in the parent's axes, so that a hinge stays on its axis.
"""

from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from marey.articulated.kinematics_kernel import copy
from marey.articulated.limits_kernel import confine
from marey.numerics.jit import lean

# How fast offsets go at most, in rad/s and m/s, but for those that would then take
# longer than this, in seconds.
FASTEST = 8.0
LONGEST = 0.25


class Return(NamedTuple):
    """What a stream shows of a figure, by block: the root's place, then the nodes."""

    root: np.ndarray
    q: np.ndarray
    gone: np.ndarray  # frames for which it has been out of sight
    offset: np.ndarray
    length: np.ndarray  # frames that the offset takes to fade
    left: np.ndarray  # frames of it to come


@no_type_check
def nothing_shown(n):
    """Return what a stream of a figure with so many nodes begins with."""
    return Return(
        np.zeros(3),
        np.zeros((n, 4)),
        np.zeros(n + 1, dtype=np.int64),
        np.zeros((n + 1, 3)),
        np.zeros(n + 1, dtype=np.int64),
        np.zeros(n + 1, dtype=np.int64),
    )


@no_type_check
@lean
def _between(p, q, out):
    """Write the rotation vector that leads from p to q, from the left."""
    sign = 1.0
    if p[0] * q[0] + p[1] * q[1] + p[2] * q[2] + p[3] * q[3] < 0.0:
        sign = -1.0
    w = sign * (q[0] * p[0] + q[1] * p[1] + q[2] * p[2] + q[3] * p[3])
    x = sign * (-q[0] * p[1] + q[1] * p[0] - q[2] * p[3] + q[3] * p[2])
    y = sign * (-q[0] * p[2] + q[1] * p[3] + q[2] * p[0] - q[3] * p[1])
    z = sign * (-q[0] * p[3] - q[1] * p[2] + q[2] * p[1] + q[3] * p[0])
    sine = np.sqrt(x * x + y * y + z * z)
    scale = 2.0 * np.arctan2(sine, w) / sine if sine > 1e-12 else 2.0
    out[0], out[1], out[2] = scale * x, scale * y, scale * z


@no_type_check
@lean
def _turned(v, share, q, out):
    """Write q, maybe into itself, turned by a share of a rotation vector."""
    angle = np.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    s = np.sin(0.5 * share * angle) / angle if angle > 1e-12 else 0.5 * share
    w, x, y, z = np.cos(0.5 * share * angle), s * v[0], s * v[1], s * v[2]
    a, b, c, d = q[0], q[1], q[2], q[3]
    out[0] = w * a - x * b - y * c - z * d
    out[1] = w * b + x * a + y * d - z * c
    out[2] = w * c + y * a + z * b - x * d
    out[3] = w * d + z * a + x * c - y * b


@no_type_check
@lean
def _frames(offset, rate):
    """Return how many frames an offset takes to go; few if it is small."""
    size = np.sqrt(offset[0] ** 2 + offset[1] ** 2 + offset[2] ** 2)
    # The steepest part of the way is one and a half times the mean.
    return int(min(1.5 * size / FASTEST, LONGEST) * rate)


@no_type_check
@lean
def _way(share):
    """Return how much of a smooth way is done."""
    return share * share * (3.0 - 2.0 * share)


@no_type_check
@njit(cache=True)
def ease_back(tree, work, known, prior, afresh, rate, root, q, shown):
    """Write what a stream shows of a frame.

    An offset fades within the time for which its joint was out of sight at most.

    Args:
        tree: The nodes.
        work: Scratch.
        known: By block, what the frame knows of it.
        prior: By block, how little that is for a block out of sight.
        afresh: Whether the figure was found without help of earlier frames.
        rate: Frames per second.
        root: The root's place.
        q: Rotations of all nodes.
        shown: What was shown of the last frame; gets what is shown of this one.
    """
    moved = False
    for b in range(len(known)):
        unseen, offset = known[b] < prior[b], shown.offset[b]
        if afresh:
            shown.left[b] = 0
        elif shown.gone[b] > 0 and not unseen:
            if b == 0:
                for k in range(3):
                    offset[k] = shown.root[k] - root[k]
            else:
                _between(q[b - 1], shown.q[b - 1], offset)
            shown.left[b] = min(_frames(offset, rate), shown.gone[b])
            shown.length[b] = shown.left[b]
        shown.gone[b] = shown.gone[b] + 1 if unseen else 0
        share = _way(shown.left[b] / (shown.length[b] + 1.0))
        shown.left[b] = max(shown.left[b] - 1, 0)
        if b == 0:
            for k in range(3):
                shown.root[k] = root[k] + share * offset[k]
        elif share > 0.0:
            _turned(offset, share, q[b - 1], shown.q[b - 1])
            moved = True
        else:
            copy(q[b - 1], shown.q[b - 1])
    if moved:
        confine(tree, work, shown.q)


@no_type_check
@njit(cache=True)
def lead_back(tree, work, unseen, rate, root, q):
    """Lead what is out of sight to where it will be seen again, in place.

    A node is led only while all that it carries is out of sight as well.

    Args:
        tree: The nodes.
        work: Scratch.
        unseen: By frame and block, whether it is out of sight.
        rate: Frames per second.
        root: The root's place in every frame.
        q: Rotations of all nodes in every frame.
    """
    n, hidden, offset = len(tree.parent), unseen.copy(), np.empty(3)
    for f in range(len(q)):
        for i in range(n - 1, 0, -1):
            hidden[f, tree.parent[i] + 1] &= hidden[f, i + 1]
        hidden[f, 0] &= hidden[f, 1]
    for b in range(n + 1):
        for f in range(1, len(q)):
            if unseen[f, b] or not hidden[f - 1, b]:
                continue
            if b == 0:
                for k in range(3):
                    offset[k] = root[f, k] - root[f - 1, k]
            else:
                _between(q[f - 1, b - 1], q[f, b - 1], offset)
            most = _frames(offset, rate)
            count = 0
            while count < min(most, f) and hidden[f - 1 - count, b]:
                count += 1
            for step in range(1, count + 1):
                share, at = _way(step / (count + 1.0)), f - 1 - count + step
                if b == 0:
                    for k in range(3):
                        root[at, k] += share * offset[k]
                else:
                    _turned(offset, share, q[at, b - 1], q[at, b - 1])
                    confine(tree, work, q[at])
