"""Skeleton and motion of a known tree, estimated from the root to the leaves.

Knight2007, Secs. 2.3-2.6. The markers of the root determine its pose. In the axes of
the root the markers of a child move on spheres about their joint. Joint and markers
together determine the pose of the child, even if its markers alone are too few. The
same is done for the children of that child, and so on to the leaves. The estimate
consists of constants, with which any later frame is posed directly, without inverse
kinematics.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from marey.bodies import Bodies
from marey.errors import DataError, OptionError
from marey.joints.hierarchy.root_to_leaf import (
    AxesMethod,
    BodyConstants,
    PosePropagation,
    Poses,
    pose_body,
)
from marey.joints.sphere.fit import SphereEstimator
from marey.joints.stacked_takes import StackedTakes, with_common_markers
from marey.motion import Motion
from marey.numerics import Array, Float, geometry
from marey.report import Finding, mark_name
from marey.skeleton import Skeleton, bone_length_sd
from marey.tree import breadth_first_order


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Hierarchy:
    """A tree of bodies with all constants that are needed to pose a frame directly."""

    names: tuple[str, ...]
    constants: tuple[BodyConstants, ...]
    """Constants of the bodies, parents before children."""

    skeleton: Skeleton
    R_rest: Float[Array, "body 3 3"]
    """World axes of each body in the rest pose."""

    findings: tuple[Finding, ...] = ()

    def pose(self, bodies: Bodies) -> Motion:
        """Return the motion of the same bodies in any take, frame by frame.

        Below the root only the rotations of the posed bodies are used.

        Raises:
            DataError: If the bodies are not those of the hierarchy.
        """
        if bodies.names != self.names:
            raise DataError("bodies", found=bodies.names, needed=self.names)
        stacked = StackedTakes((bodies,))
        T = np.full((len(stacked.T), len(self.names), 4, 4), np.nan)
        for part in self.constants:
            T[:, part.body] = pose_body(stacked, part, T)
        R = T[..., :3, :3] @ np.swapaxes(self.R_rest, -1, -2)
        rotations = []
        for part in self.constants:
            R_parent = R[:, part.parent] if part.parent >= 0 else np.eye(3)
            rotations.append(np.swapaxes(R_parent, -1, -2) @ R[:, part.body])
        root = self.constants[0]
        position = geometry.apply(T[:, root.body], root.center_in_body)
        return Motion(
            skeleton=self.skeleton,
            T_world_root=geometry.transform(R[:, root.body], position),
            wxyz=geometry.quat_from_matrix(np.stack(rotations, axis=1)),
            rate=bodies.take.rate,
            start=bodies.take.start,
            source=bodies.take.source,
        )


def estimate_hierarchy(
    takes: Sequence[Bodies],
    parent: Mapping[str, str],
    *,
    axes: AxesMethod = "weighted",
    estimator: SphereEstimator = "geometric",
) -> Hierarchy:
    """Return the constants of a tree of bodies, estimated from root to leaf.

    Implements Knight2007, Secs. 2.3-2.6. `BodyConstants.pose_source` says which data
    determine the pose of a body:

    - "sensor": its 6-DoF sensor.
    - "points", with axes="weighted": its markers, its joint and, for a single marker on
      a hinge, a point of the axis, fitted as one rigid body. Each point has a weight by
      how well it keeps its position. The paper does not weight points.
    - "constructed", with axes="constructed": one, two or three points, as in the paper.
    - "direction": one marker on a ball joint, or markers on a line with it. The twist
      about this line is not observable and is set to zero relative to the parent. The
      paper takes the direction in which the marker moves least for an axis, about which
      a ball joint does not rotate.
    - "parent": no motion relative to the parent reveals a joint, so the body is fixed
      to its parent.

    Args:
        takes: The same bodies in one or several takes; the joints are fitted to all.
        parent: Name of each body's parent; the root has none, or "".
        axes: "weighted", or "constructed" for the method of the paper.
        estimator: See `fit_sphere`.

    Raises:
        DataError: If there is not exactly one root, a name is unknown, or the root has
            no sensor and fewer than three markers that are not on one line.
        OptionError: If `axes` is not known.
    """
    if axes not in ("weighted", "constructed"):
        raise OptionError("axes", found=axes, needed='"weighted" or "constructed"')
    takes = with_common_markers(takes)
    names = takes[0].names
    order, parents = _root_to_leaf_order(names, parent)
    propagation = PosePropagation(takes, axes, estimator)
    stacked, T = propagation.stacked, propagation.T
    constants: list[BodyConstants] = []
    findings: list[Finding] = []
    for body in order:
        if parents[body] < 0:
            part = propagation.estimate_root(body, names[body])
        else:
            part = propagation.estimate_child(body, parents[body])
        propagation.pose(part)
        constants.append(part)
        findings += _findings(names, part, is_seen=bool(np.isfinite(T[:, body]).any()))
    skeleton, R_rest = _skeleton_from_poses(takes[0], constants, T, stacked)
    return Hierarchy(
        names=names,
        constants=tuple(constants),
        skeleton=skeleton,
        R_rest=R_rest,
        findings=tuple(findings),
    )


def _root_to_leaf_order(
    names: tuple[str, ...], parent: Mapping[str, str]
) -> tuple[list[int], list[int]]:
    """Return the bodies with parents before children, and the parent of every body.

    Raises:
        DataError: If the parents are no tree of these bodies.
    """
    unknown = {name for pair in parent.items() for name in pair if name} - set(names)
    if unknown:
        raise DataError(
            "parents", found=sorted(unknown), needed=f"bodies of {', '.join(names)}"
        )
    parents = [names.index(parent[n]) if parent.get(n) else -1 for n in names]
    roots = [names[body] for body, above in enumerate(parents) if above < 0]
    if len(roots) != 1:
        raise DataError("parents", found=f"roots {roots}", needed="exactly one root")
    order = breadth_first_order(np.array(parents), [parents.index(-1)])
    if len(order) < len(names):
        rest = sorted(set(names) - {names[body] for body in order})
        raise DataError("parents", found=f"a cycle of {rest}", needed="a tree")
    return order, parents


def _findings(
    names: tuple[str, ...], constants: BodyConstants, *, is_seen: bool
) -> list[Finding]:
    """Return what the data do not determine about one body."""
    body, source = names[constants.body], constants.pose_source
    if source not in ("direction", "parent"):
        return []
    name, parent = mark_name(body), mark_name(names[constants.parent])
    if source == "direction":
        code = "body-twist-unknown"
        message = (
            f"the twist of {name} about its length is not visible and set to zero; add "
            "a marker off that line"
        )
    elif is_seen:
        code = "body-fixed"
        message = (
            f"{name} hardly moves relative to {parent} and is fixed to it; bend it"
        )
    else:
        code = "body-unseen"
        message = f"{name} is never seen together with {parent}; record both together"
    return [Finding(code, "joints", "warning", message, body)]


def _skeleton_from_poses(
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
        if part.kind == "hinge":
            axes[i, 0] = R @ part.axis_in_parent
        center_covariance[part.body] = R @ part.covariance @ R.T
        covariance[i] = center_covariance[part.body] + center_covariance[part.parent]
    labels, marker_joint, marker_offset = _markers(
        bodies, constants, T, stacked, R_rest
    )
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
        length_sd=bone_length_sd(offset, covariance),
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
    """Return label, joint and offset (m) of every marker that is attached to a body."""
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
