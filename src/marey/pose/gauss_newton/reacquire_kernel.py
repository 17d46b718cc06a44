"""Smooth transitions of joints that reappear after an occlusion, compiled.

The extrapolated rotation of an occluded joint differs from the measured one when its
markers reappear. A stream adds this offset to the measured rotation and lets it fade
(`fade_offsets_after`); a whole take adds it gradually to the last extrapolated frames
(`blend_offsets_before`). Offsets are rotation vectors in the axes of the parent, so
that a hinge stays on its axis; for the root's position they are metres.
"""

# mypy: ignore-errors

from typing import NamedTuple

import numpy as np

from marey.articulated.limits_kernel import TINY, clamp_to_limits, write_change
from marey.numerics.jit import lean, njit
from marey.numerics.vector3_kernel import (
    dot,
    multiply_quaternions,
    set_values,
    set_vector,
)

BLEND_SPEED = 5.0
"""Mean speed of a transition, in rad/s or m/s. Higher makes transitions shorter. Chosen
by hand."""


class ShownPose(NamedTuple):
    """The pose that a stream shows, and its transitions by block (root, then nodes)."""

    root: np.ndarray
    q: np.ndarray
    frames_unseen: np.ndarray  # (block): frames since it was seen last
    offset: np.ndarray  # (block, 3): shown minus measured, when it reappeared
    n_frames: np.ndarray  # (block): frames that the offset takes to fade
    frames_left: np.ndarray  # (block): how many of these are to come


def make_shown_pose(n: int) -> ShownPose:
    """Return the initial state of a stream, for a tree of n nodes."""
    return ShownPose(
        np.zeros(3),
        np.zeros((n, 4)),
        np.zeros(n + 1, dtype=np.int64),
        np.zeros((n + 1, 3)),
        np.zeros(n + 1, dtype=np.int64),
        np.zeros(n + 1, dtype=np.int64),
    )


@lean
def _add_offset(b, offset, share, pose, out):
    """Write block b of a pose moved by a share of an offset; `out` may be the pose."""
    if b == 0:
        for k in range(3):
            out[0][k] = pose[0][k] + share * offset[k]
        return
    angle = np.sqrt(dot(offset, offset))
    s = np.sin(0.5 * share * angle) / angle if angle > TINY else 0.5 * share
    turn = np.cos(0.5 * share * angle), s * offset[0], s * offset[1], s * offset[2]
    set_values(out[1][b - 1], multiply_quaternions(turn, pose[1][b - 1]))


@lean
def _transition_frames(offset, rate):
    """Return the number of frames of a transition: few for a small offset."""
    speed = BLEND_SPEED / rate[0]
    return int(min(np.sqrt(dot(offset, offset)) / speed, rate[1]))


@lean
def _smoothstep(share):
    """Return the smoothstep curve 3 x^2 - 2 x^3: from 0 to 1, flat at both ends."""
    return share * share * (3.0 - 2.0 * share)


@njit(cache=True)
def fade_offsets_after(information, prior, restarted, rate, pose, shown):
    """Write the pose that a stream shows for a frame; return whether a joint is moved.

    An offset takes at most as long to fade as its joint was unseen.

    Args:
        information: Information of the frame's targets on each block.
        prior: Information on each block below which it counts as unseen.
        restarted: Whether the pose was found without help of earlier frames.
        rate: Frames per second, and of the longest transition.
        pose: Position of the root, in metres, and quaternions of all nodes.
        shown: The `ShownPose` of the last frame; gets that of this one.
    """
    is_moved, now = False, (shown.root, shown.q)
    for b in range(len(prior)):
        unseen, offset = information[b] < prior[b], shown.offset[b]
        if restarted:
            shown.frames_left[b] = 0
        elif shown.frames_unseen[b] > 0 and not unseen:
            write_change(b, now, pose, True, offset)
            count = min(_transition_frames(offset, rate), shown.frames_unseen[b])
            shown.frames_left[b] = shown.n_frames[b] = count
        shown.frames_unseen[b] = shown.frames_unseen[b] + 1 if unseen else 0
        share = _smoothstep(shown.frames_left[b] / (shown.n_frames[b] + 1.0))
        shown.frames_left[b] = max(shown.frames_left[b] - 1, 0)
        if share > 0.0:
            _add_offset(b, offset, share, pose, now)
            is_moved = True
        elif b == 0:
            set_vector(shown.root, pose[0])
        else:
            set_values(shown.q[b - 1], pose[1][b - 1])
    return is_moved


@lean
def _keep_hidden_subtrees(tree, hidden):
    """Unmark the blocks that have a seen descendant, frame by frame."""
    for f in range(len(hidden)):
        for i in range(len(tree.parent) - 1, 0, -1):
            hidden[f, tree.parent[i] + 1] &= hidden[f, i + 1]
        hidden[f, 0] &= hidden[f, 1]


@njit(cache=True)
def blend_offsets_before(tree, work, unseen, rate, root, q):
    """Blend the last unseen frames towards the pose at reappearance, in place.

    A node moves only while its whole subtree is unseen as well.

    Args:
        tree: The kinematic tree.
        work: Scratch.
        unseen: Whether each block is unseen, by frame.
        rate: Frames per second, and of the longest transition.
        root: Position of the root in every frame, in metres.
        q: Quaternions of all nodes in every frame.
    """
    hidden, offset = unseen.copy(), np.empty(3)
    _keep_hidden_subtrees(tree, hidden)
    for b in range(hidden.shape[1]):
        for f in range(1, len(q)):
            if unseen[f, b] or not hidden[f - 1, b]:
                continue
            write_change(b, (root[f], q[f]), (root[f - 1], q[f - 1]), True, offset)
            longest = _transition_frames(offset, rate)
            count = 0
            while count < min(longest, f) and hidden[f - 1 - count, b]:
                count += 1
            for step in range(1, count + 1):
                share, frame = _smoothstep(step / (count + 1.0)), f - 1 - count + step
                pose = (root[frame], q[frame])
                _add_offset(b, offset, share, pose, pose)
                clamp_to_limits(tree, work, q[frame])
