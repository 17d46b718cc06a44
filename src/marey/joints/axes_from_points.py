"""Body axes in every frame from few markers, a joint and perhaps its axis."""

import numpy as np
from jaxtyping import Float

from marey.numerics import geometry
from marey.numerics.procrustes import shortest_rotations

Array = np.ndarray
Path = Float[Array, "frame 3"]


def constructed(
    markers: Float[Array, "frame marker 3"], joint: Path, axis: Path
) -> Float[Array, "frame 4 4"]:
    """Return body poses built from one, two or three markers, as in Knight2007.

    The three cases of its Sec. 2.3, whose formulas the text leaves to be rebuilt: the
    first column is the hinge's axis (one marker), the direction from the joint to the
    second marker (two), or from the second to the third (three or more). The second is
    square to that and to the way to the first marker, from the joint or, with three,
    from the second marker; the third completes the axes. The origin is the first
    marker. No marker beyond the third is used.
    """
    count = markers.shape[1]
    first = markers[:, 0]
    if count == 1:
        one, base = axis, joint
    elif count == 2:
        one, base = markers[:, 1] - joint, joint
    else:
        one, base = markers[:, 2] - markers[:, 1], markers[:, 1]
    one = unit(one)
    two = unit(np.cross(one, first - base))
    R = np.stack([one, two, np.cross(one, two)], axis=-1)
    return geometry.transform(R, first)


def swung(
    T_world_parent: Float[Array, "frame 4 4"],
    direction: Path,
    rest: Float[Array, " 3"],
    origin: Path,
) -> Float[Array, "frame 4 4"]:
    """Return poses that turn from the parent's by the shortest way, without twist.

    Args:
        T_world_parent: The parent body.
        direction: Where the body points, in the world.
        rest: Where it points in the parent's axes when it is not turned at all.
        origin: The body's origin in the world.
    """
    R = T_world_parent[:, :3, :3]
    seen = np.einsum("fji,fj->fi", R, unit(direction))
    turn = geometry.matrix_from_quat(shortest_rotations(rest, seen))
    return geometry.transform(R @ turn, origin)


def unit(v: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3"]:
    """Return vectors of length one; NaN where there is no direction."""
    length = np.linalg.norm(v, axis=-1, keepdims=True)
    return np.asarray(v / np.where(length > 0.0, length, np.nan))
