"""Body axes in every frame from few markers, a joint centre and a hinge axis."""

import numpy as np

from marey.numerics import Array, Float, geometry
from marey.numerics.procrustes import shortest_rotations

Path = Float[Array, "frame 3"]


def construct_poses(
    markers: Float[Array, "frame marker 3"], joint: Path, axis: Path
) -> Float[Array, "frame 4 4"]:
    r"""Return body poses constructed from one, two or three markers (Knight2007).

    Implements the three cases of Sec. 2.3, whose formulas are lost in the text and
    reconstructed here, with markers :math:`x_i`, joint centre :math:`c` and hinge axis
    :math:`n`:

    .. math::

       a_1 \parallel n,\ x_2 - c,\ \text{or } x_3 - x_2, \qquad
       a_2 \parallel a_1 \times (x_1 - o), \qquad a_3 = a_1 \times a_2

    for one, two, or three markers and more; :math:`o = c`, or :math:`o = x_2` with
    three markers. The columns :math:`a_i` are unit vectors, the origin is :math:`x_1`,
    and markers beyond the third are not used.

    Args:
        markers: Marker positions in the world, in metres.
        joint: Joint centre in the world, in metres; not used with three markers.
        axis: Hinge axis in the world; used with one marker only.
    """
    count = markers.shape[1]
    first = markers[:, 0]
    if count == 1:
        a1, origin = axis, joint
    elif count == 2:
        a1, origin = markers[:, 1] - joint, joint
    else:
        a1, origin = markers[:, 2] - markers[:, 1], markers[:, 1]
    a1 = geometry.unit_vectors(a1)
    a2 = geometry.unit_vectors(geometry.cross(a1, first - origin))
    R = np.stack([a1, a2, geometry.cross(a1, a2)], axis=-1)
    return geometry.transform(R, first)


def poses_without_twist(
    T_world_parent: Float[Array, "frame 4 4"],
    direction: Path,
    rest: Float[Array, " 3"],
    origin: Path,
) -> Float[Array, "frame 4 4"]:
    """Return poses that swing a body from its rest direction without twist.

    The rotation relative to the parent is the shortest one from the rest direction to
    the given direction (swing-twist decomposition with zero twist).

    Args:
        T_world_parent: Poses of the parent body.
        direction: Direction of the body in the world, of any length.
        rest: Unit direction in the parent's axes where the rotation is zero.
        origin: Origin of the body in the world, in metres.
    """
    R = T_world_parent[:, :3, :3]
    in_parent = np.einsum("fji,fj->fi", R, geometry.unit_vectors(direction))
    swing = geometry.matrix_from_quat(shortest_rotations(rest, in_parent))
    return geometry.transform(R @ swing, origin)
