"""The rest pose of a skeleton that is none of a person: a typical frame."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from marey.bodies import Bodies
from marey.errors import DataError
from marey.numerics import Array, Float, Int
from marey.numerics.thresholds import FRAMES_PER_CHUNK


def find_rest_frame(bodies: Bodies, order: Int[Array, " body"]) -> int:
    """Return the medoid frame among those that show most bodies.

    The similarity of two frames is the sum over bodies of the trace of the relative
    rotation, taken in the root's frame; the medoid has the largest sum of similarities.

    Args:
        bodies: The bodies over time.
        order: The bodies of one tree, the root first.
    """
    n_seen = bodies.seen[:, order].sum(axis=1)
    frames = np.flatnonzero(n_seen == n_seen.max())
    rotations = partial(_rotations_in_root, bodies, order, frames)
    total = np.sum([block.sum(axis=0) for block in rotations()], axis=0)
    similarity = [block @ total for block in rotations()]
    return int(frames[np.concatenate(similarity).argmax()])


def _rotations_in_root(
    bodies: Bodies, order: Int[Array, " body"], frames: Int[Array, " some"]
) -> Iterator[Float[Array, "block number"]]:
    """Yield the rotations of bodies in the root's frame, in blocks of frames.

    The matrices of all bodies are one row per frame; zero for unknown ones.
    """
    for first in range(0, len(frames), FRAMES_PER_CHUNK):
        some = frames[first : first + FRAMES_PER_CHUNK]
        R = np.nan_to_num(bodies.T_world_body[np.ix_(some, order)][:, :, :3, :3])
        # One product per frame, of the root with all bodies side by side.
        beside = R.swapaxes(1, 2).reshape(len(some), 3, -1)
        yield (R[:, 0].swapaxes(-1, -2) @ beside).reshape(len(some), -1)


def rest_rotations(
    bodies: Bodies, order: Int[Array, " body"], frame: int
) -> Float[Array, "joint 3 3"]:
    """Return the orientation of every body in a frame, or in the nearest that has one.

    Raises:
        DataError: If a body has no pose in any frame.
    """
    R = bodies.T_world_body[frame, order, :3, :3].copy()
    for i in np.flatnonzero(~np.isfinite(R).all(axis=(1, 2))):
        seen = np.flatnonzero(bodies.seen[:, order[i]])
        if len(seen) == 0:
            raise DataError(
                f"body {bodies.names[order[i]]}", found="no pose", needed="at least one"
            )
        nearest = seen[np.abs(seen - frame).argmin()]
        R[i] = bodies.T_world_body[nearest, order[i], :3, :3]
    return np.asarray(R)
