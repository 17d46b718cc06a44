"""Bodies posed from root to leaf as a skeleton and its motion."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from marey.bodies import Bodies
from marey.joints.stacked_takes import Crowd
from marey.motion import Motion
from marey.numerics import geometry
from marey.skeleton import Kind, Skeleton
from marey.take import Take

Array = np.ndarray
How = Literal["sensor", "points", "constructed", "swung", "carried"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Constants:
    """What stays the same in every frame of one body."""

    body: int
    parent: int
    """Parent body; -1 = root."""

    center_parent: Float[Array, " 3"]
    """The joint in the parent's axes, in metres; NaN for the root."""

    axis_parent: Float[Array, " 3"]
    """Unit axis of a hinge in the parent's axes; NaN for other kinds."""

    kind: Kind
    covariance: Float[Array, "3 3"]
    """Covariance of `center_parent`, in square metres."""

    noise: float
    """Standard deviation of its markers along their radius, in metres; 0 where there
    is no sphere."""

    wobble: float
    """How far a hinge turns across its axis, as its markers show, rms in radians."""

    center: Float[Array, " 3"]
    """The joint in the body's own axes; zero for the root."""

    places: Float[Array, "point 3"]
    """Markers, then the joint and points of its axis, in the body's own axes."""

    weights: Float[Array, " point"]
    how: How
    """Where the pose comes from: see `estimate_hierarchy`."""


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """Which body is which joint: parents first, joint i being body `order[i]`."""

    order: list[int]
    parent: list[int]
    """Parent body of each joint; -1 = root."""

    center: Float[Array, "joint 3"]
    """Each joint in its own body's axes."""

    R_rest: Float[Array, "body 3 3"]

    def motion(
        self, skeleton: Skeleton, T: Float[Array, "frame body 4 4"], take: Take
    ) -> Motion:
        """Return the motion of body poses; only their turns are used below the root."""
        R = T[..., :3, :3] @ np.swapaxes(self.R_rest, -1, -2)
        turns = []
        for body, parent in zip(self.order, self.parent, strict=True):
            above = R[:, parent] if parent >= 0 else np.eye(3)
            turns.append(np.swapaxes(above, -1, -2) @ R[:, body])
        root = self.order[0]
        place = geometry.apply(T[:, root], self.center[0])
        return Motion(
            skeleton=skeleton,
            T_world_root=geometry.transform(R[:, root], place),
            wxyz=geometry.quat_from_matrix(np.stack(turns, axis=1)),
            rate=take.rate,
            start=take.start,
            source=take.source,
        )


def skeleton_of(
    bodies: Bodies,
    parts: Sequence[Constants],
    T: Float[Array, "frame body 4 4"],
    crowd: Crowd,
) -> tuple[Skeleton, Float[Array, "body 3 3"]]:
    """Return the skeleton of posed bodies, and their axes in its rest pose.

    At rest the bodies stand as in the first frame that shows most of them.
    """
    joint_of = {part.body: i for i, part in enumerate(parts)}
    frame = int(np.argmax(np.isfinite(T).all(axis=(-1, -2)).sum(axis=1)))
    R_rest = _rest(parts, T, frame)
    own = {part.body: part.center for part in parts}
    upper = {parts[0].body: np.zeros((3, 3))}
    offset = np.zeros((len(parts), 3))
    covariance = np.full((len(parts), 3, 3), np.nan)
    axes = np.full((len(parts), 2, 3), np.nan)
    for i, part in enumerate(parts):
        if part.parent < 0:
            offset[i] = geometry.apply(T[frame, part.body], part.center)
            continue
        R = R_rest[part.parent]
        offset[i] = R @ (part.center_parent - own[part.parent])
        axes[i, 0] = R @ part.axis_parent
        covariance[i] = R @ part.covariance @ R.T + upper[part.parent]
        upper[part.body] = R @ part.covariance @ R.T
    labels, joint, place = _markers(bodies, parts, T, crowd, R_rest)
    return Skeleton(
        names=tuple(bodies.names[part.body] for part in parts),
        parent=np.array([joint_of.get(part.parent, -1) for part in parts]),
        offset=offset,
        kind=tuple(part.kind for part in parts),
        axes=axes,
        marker_labels=labels,
        marker_joint=joint,
        marker_offset=place,
        covariance=covariance,
        length_sd=_length_sd(offset, covariance),
    ), R_rest


def _rest(parts: Sequence[Constants], T: Array, frame: int) -> Array:
    """Return each body's axes at rest; of one not seen there, as it first stood."""
    R_rest = np.broadcast_to(np.eye(3), (T.shape[1], 3, 3)).copy()
    for part in parts:
        R = T[:, part.body, :3, :3]
        if part.parent >= 0:
            R = np.swapaxes(T[:, part.parent, :3, :3], -1, -2) @ R
        known = np.flatnonzero(np.isfinite(R).all(axis=(-1, -2)))
        if not len(known):
            continue
        first = R[frame if frame in known else known[0]]
        R_rest[part.body] = R_rest[part.parent] @ first if part.parent >= 0 else first
    return R_rest


def _markers(
    bodies: Bodies, parts: Sequence[Constants], T: Array, crowd: Crowd, R_rest: Array
) -> tuple[tuple[str, ...], Array, Array]:
    """Return label, joint and place of every marker that sits on a body."""
    labels, joints, places = [], [], []
    for joint, part in enumerate(parts):
        mine = np.flatnonzero(bodies.marker_body == part.body)
        back = geometry.inverse(T[:, part.body])
        for marker in mine:
            local = geometry.apply(back, crowd.points[:, marker])
            known = np.isfinite(local).all(axis=-1)
            if known.any():
                labels.append(bodies.take.labels[marker])
                joints.append(joint)
                way = local[known].mean(axis=0) - part.center
                places.append(R_rest[part.body] @ way)
    index = np.array(joints, dtype=np.int64)
    return tuple(labels), index, np.array(places).reshape(-1, 3)


def _length_sd(offset: Array, covariance: Array) -> Array:
    length = np.linalg.norm(offset, axis=-1, keepdims=True)
    along = offset / np.where(length > 0.0, length, np.nan)
    variance = np.einsum("ji,jik,jk->j", along, covariance, along)
    return np.asarray(np.sqrt(variance))
