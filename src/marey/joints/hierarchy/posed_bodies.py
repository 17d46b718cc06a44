"""Skeleton and motion of bodies that were posed from root to leaf."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from marey.bodies import Bodies
from marey.joints.axes_from_points import unit_vectors
from marey.joints.hierarchy.root_to_leaf import BodyConstants, Poses
from marey.joints.stacked_takes import StackedTakes
from marey.motion import Motion
from marey.numerics import geometry
from marey.skeleton import Skeleton
from marey.take import Take

Array = np.ndarray


def motion_from_poses(
    skeleton: Skeleton,
    constants: Sequence[BodyConstants],
    R_rest: Float[Array, "body 3 3"],
    T: Poses,
    take: Take,
) -> Motion:
    """Return the motion of posed bodies; below the root only rotations are used.

    Args:
        skeleton: Skeleton with one joint per body.
        constants: Constants of the bodies, in the order of the joints.
        R_rest: World axes of each body in the rest pose.
        T: World poses of the bodies.
        take: Recording that the frames belong to.
    """
    R = T[..., :3, :3] @ np.swapaxes(R_rest, -1, -2)
    rotations = []
    for part in constants:
        R_parent = R[:, part.parent] if part.parent >= 0 else np.eye(3)
        rotations.append(np.swapaxes(R_parent, -1, -2) @ R[:, part.body])
    root = constants[0]
    position = geometry.apply(T[:, root.body], root.center_in_body)
    return Motion(
        skeleton=skeleton,
        T_world_root=geometry.transform(R[:, root.body], position),
        wxyz=geometry.quat_from_matrix(np.stack(rotations, axis=1)),
        rate=take.rate,
        start=take.start,
        source=take.source,
    )


def skeleton_from_poses(
    bodies: Bodies, constants: Sequence[BodyConstants], T: Poses, stacked: StackedTakes
) -> tuple[Skeleton, Float[Array, "body 3 3"]]:
    """Return the skeleton of posed bodies, and their world axes in its rest pose.

    In the rest pose the bodies stand as in the first of the frames that show the most
    of them. The covariance of an offset is the sum of those of the two joints it joins.

    Args:
        bodies: The bodies in one take, for names and labels.
        constants: Constants of the bodies, parents first.
        T: World poses of the bodies in all takes.
        stacked: Markers of all takes.
    """
    joint_of = {part.body: joint for joint, part in enumerate(constants)}
    frame = int(np.argmax(np.isfinite(T).all(axis=(-1, -2)).sum(axis=1)))
    R_rest = _rest_axes(constants, T, frame)
    root = constants[0]
    center = {part.body: part.center_in_body for part in constants}
    center_covariance = {root.body: np.zeros((3, 3))}
    offset = np.zeros((len(constants), 3))
    covariance = np.full((len(constants), 3, 3), np.nan)
    axes = np.full((len(constants), 2, 3), np.nan)
    offset[0] = geometry.apply(T[frame, root.body], root.center_in_body)
    for i, part in enumerate(constants[1:], start=1):
        R = R_rest[part.parent]
        offset[i] = R @ (part.center_in_parent - center[part.parent])
        axes[i, 0] = R @ part.axis_in_parent
        center_covariance[part.body] = R @ part.covariance @ R.T
        covariance[i] = center_covariance[part.body] + center_covariance[part.parent]
    labels, marker_joint, marker_offset = _markers(
        bodies, constants, T, stacked, R_rest
    )
    along = unit_vectors(offset)
    variance = np.einsum("ji,jik,jk->j", along, covariance, along)
    return Skeleton(
        names=tuple(bodies.names[part.body] for part in constants),
        parent=np.array([joint_of.get(part.parent, -1) for part in constants]),
        offset=offset,
        kind=tuple(part.kind for part in constants),
        axes=axes,
        marker_labels=labels,
        marker_joint=marker_joint,
        marker_offset=marker_offset,
        covariance=covariance,
        length_sd=np.asarray(np.sqrt(variance)),
    ), R_rest


def _rest_axes(
    constants: Sequence[BodyConstants], T: Poses, frame: int
) -> Float[Array, "body 3 3"]:
    """Return the world axes of each body at rest.

    A body that is not seen in the frame has the rotation relative to its parent of the
    first frame that shows both.
    """
    R_rest = np.broadcast_to(np.eye(3), (T.shape[1], 3, 3)).copy()
    for part in constants:
        R = T[:, part.body, :3, :3]
        if part.parent >= 0:
            R = np.swapaxes(T[:, part.parent, :3, :3], -1, -2) @ R
        seen = np.flatnonzero(np.isfinite(R).all(axis=(-1, -2)))
        if not len(seen):
            continue
        R = R[frame if frame in seen else seen[0]]
        R_rest[part.body] = R_rest[part.parent] @ R if part.parent >= 0 else R
    return R_rest


def _markers(
    bodies: Bodies,
    constants: Sequence[BodyConstants],
    T: Poses,
    stacked: StackedTakes,
    R_rest: Float[Array, "body 3 3"],
) -> tuple[tuple[str, ...], Array, Array]:
    """Return label, joint and offset of every marker that is attached to a body."""
    labels, joints, offsets = [], [], []
    for joint, part in enumerate(constants):
        T_body_world = geometry.inverse(T[:, part.body])
        for marker in np.flatnonzero(bodies.marker_body == part.body):
            in_body = geometry.apply(T_body_world, stacked.points[:, marker])
            in_body = in_body[np.isfinite(in_body).all(axis=-1)]
            if len(in_body):
                labels.append(bodies.take.labels[marker])
                joints.append(joint)
                offset = in_body.mean(axis=0) - part.center_in_body
                offsets.append(R_rest[part.body] @ offset)
    marker_joint = np.array(joints, dtype=np.int64)
    return tuple(labels), marker_joint, np.array(offsets).reshape(-1, 3)
