"""Contact points: the ends of bones and the markers that may touch the ground."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from marey.motion import Motion
from marey.numerics import Array, Bool, Float, Int, geometry
from marey.numerics.resampling import frame_blocks
from marey.numerics.robust import finite_median
from marey.numerics.thresholds import (
    FEW,
    FRAMES_PER_CHUNK,
    MARKER_NOISE_M,
    VELOCITY_TIME_S,
)
from marey.skeleton import Skeleton, rotating_joints

Poses = Float[Array, "frame joint 4 4"]

SAME_PLACE = 0.018
"""Distance within which two positions are one, in heights of the figure (3 cm for a
person of 1.7 m). Raising it merges a small step with the plant before it, and counts
lifted feet as standing. Chosen by hand."""

VELOCITY_WINDOW_S = 0.5 * VELOCITY_TIME_S
"""Half of the time over which velocity is measured, in seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class ContactPoints:
    """Points on the outermost bodies: heels, toes, fingertips, or markers there."""

    joint: Int[Array, " point"]
    """The joint in whose frame each point is fixed."""

    offset: Float[Array, "point 3"]
    """Position in the joint's frame, in metres."""

    names: tuple[str, ...]
    """Name of each point's joint: an end has a name of its own, a marker has the name
    of its bone."""

    body: Int[Array, " point"]
    """The rotating joint that moves each point; points of one body keep their
    distances."""

    is_sole: Bool[Array, " point"]
    """Whether the point is the end of a bone. A marker or sensor sits on top of a foot.
    It may dip below its standing height when the foot rolls over its toes, so it does
    not determine the height of the ground."""

    def positions(self, T_world_joint: Poses) -> Float[Array, "frame point 3"]:
        """Return the positions of the points in the world, in metres."""
        return geometry.apply_selected(T_world_joint, self.joint, self.offset)

    def select(
        self, which: Int[Array, " some"] | Bool[Array, " point"]
    ) -> "ContactPoints":
        """Return some of the points."""
        return ContactPoints(
            self.joint[which],
            self.offset[which],
            tuple(np.array(self.names, dtype=object)[which]),
            self.body[which],
            self.is_sole[which],
        )


class MotionPoses:
    """Poses of all joints of a motion, made in blocks of frames.

    Together, those of a long recording would be several times as large as it is.
    """

    def __init__(self, motion: Motion) -> None:
        self.motion = motion

    @cached_property
    def _single_block(self) -> Poses:
        return self.motion.T_world_joint()

    def blocks(self) -> Iterator[tuple[slice, Poses]]:
        """Yield consecutive frames with the poses of all joints in them."""
        motion = self.motion
        if motion.n_frames <= FRAMES_PER_CHUNK:
            yield slice(None), self._single_block
            return
        for frames in frame_blocks(motion.n_frames):
            root, wxyz = motion.T_world_root[frames], motion.wxyz[frames]
            yield frames, motion.skeleton.forward(root, wxyz)

    def map(self, function: Callable[[Poses], Array]) -> Array:
        """Return what a function makes of the poses of any frames, for all frames."""
        return np.concatenate([function(T) for _, T in self.blocks()])

    def at(self, frame: Int[Array, " pose"], joint: Int[Array, " pose"]) -> Array:
        """Return single poses (pose, 4, 4), each of one joint in one frame."""
        poses, order = np.empty((len(frame), 4, 4)), np.argsort(frame, kind="stable")
        first = done = 0
        for _, T in self.blocks():
            end = int(np.searchsorted(frame, first + len(T), sorter=order))
            inside = order[done:end]
            poses[inside] = T[frame[inside] - first, joint[inside]]
            first, done = first + len(T), end
        return poses

    @cached_property
    def figure_height(self) -> float:
        """Height of the figure in metres; NaN without a complete frame.

        The median over frames of the distance along z from the lowest to the highest
        marker, or joint where there are no markers.
        """
        skeleton = self.motion.skeleton
        joint, offset = skeleton.marker_joint, skeleton.marker_offset
        if len(skeleton.marker_labels) > 1:
            height = self.map(lambda T: np.ptp(_heights(T, joint, offset), axis=1))
        else:
            height = self.map(lambda T: np.ptp(T[..., 2, 3], axis=1))
        return finite_median(height, default=np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class PointTracks:
    """Points through time."""

    positions: Float[Array, "frame point 3"]
    """In metres; NaN where unknown."""

    visibility: Float[Array, "frame point"]
    """Weight of each position, 0 to 1."""

    rate: float
    """Frames per second."""

    figure_height: float
    """In metres."""

    @property
    def half_window(self) -> int:
        """Half of the window of the velocity, in frames; at most that of the take."""
        longest = max(len(self.positions) // 2, 1)
        return min(max(round(VELOCITY_WINDOW_S * self.rate), 1), longest)

    def reverse(self) -> "PointTracks":
        """Return the tracks with time reversed."""
        return replace(
            self, positions=self.positions[::-1], visibility=self.visibility[::-1]
        )


def find_contact_points(
    motion: Motion, poses: MotionPoses | None = None
) -> ContactPoints:
    """Return the points of a figure that may touch the ground.

    The points sit on the outermost bodies, and on the parents of these that get as low:
    the heel of a foot whose toes are a body of their own. A body has its ends of bones
    as points where they get lower than its markers, as soles do. Otherwise it has its
    markers, because a single end of a bone may be only the mean of them.

    Args:
        motion: The motion.
        poses: Its poses, if they are at hand.
    """
    poses = poses or MotionPoses(motion)
    every = _all_points(motion.skeleton)
    n_ends = np.count_nonzero(_is_observed_end(motion.skeleton))
    is_end = np.arange(len(every.joint)) < n_ends
    height = poses.map(lambda T: _heights(T, every.joint, every.offset))
    known = np.isfinite(height).all(axis=1)
    if not len(every.joint) or not known.any():
        return every.select(np.zeros(0, dtype=np.int64))
    low = np.array([np.quantile(track[known], FEW) for track in height.T])
    tolerance = 0.5 * SAME_PLACE * poses.figure_height
    parents, leaves = _parent_bodies(motion.skeleton), _leaf_bodies(motion.skeleton)
    keep = np.zeros(len(low), dtype=bool)
    for body in set(every.body.tolist()):
        on_body = every.body == body
        children = [leaf for leaf in leaves if parents[leaf] == body]
        lowest = low[np.isin(every.body, children)].min(initial=-np.inf)
        is_as_low = children and low[on_body].min() < lowest + tolerance
        if body in leaves or is_as_low:
            keep |= _lower_kind(on_body, is_end, low, tolerance)
    return every.select(keep)


def find_limb_tips(motion: Motion) -> ContactPoints:
    """Return points of every outermost body: its joint, its ends, and its mean.

    A hand may be held by its palm, by a finger or at the wrist.
    """
    skeleton = motion.skeleton
    every, rest = _all_points(skeleton), skeleton.rest()
    joint, offset = [], [np.zeros((0, 3))]
    for body in _leaf_bodies(skeleton):
        points = every.select(every.body == body)
        at_rest = geometry.apply(rest[points.joint], points.offset)
        in_body = geometry.apply(geometry.inverse(rest[body]), at_rest)
        ends = in_body[skeleton.is_end[points.joint]]
        mean = in_body.mean(axis=0)[None] if len(in_body) else ends
        offset.append(np.concatenate([np.zeros((1, 3)), ends, mean]))
        joint += [body] * len(offset[-1])
    return make_contact_points(
        skeleton,
        np.array(joint, dtype=np.int64),
        np.concatenate(offset),
        np.zeros(len(joint), dtype=bool),
    )


def make_contact_points(
    skeleton: Skeleton,
    joint: Int[Array, " point"],
    offset: Float[Array, "point 3"],
    is_end: Bool[Array, " point"],
) -> ContactPoints:
    """Return points of a skeleton from their joints and offsets in metres.

    An end of a bone is a sole unless a sensor sits there.
    """
    is_sole = is_end.copy()
    is_sole[is_end] &= ~_is_at_sensor(skeleton, joint[is_end])
    names = tuple(skeleton.names[j] for j in joint)
    return ContactPoints(
        joint, offset, names, rotating_joints(skeleton)[joint], is_sole
    )


def _heights(
    T_world_joint: Poses, joint: Int[Array, " point"], offset: Float[Array, "point 3"]
) -> Float[Array, "frame point"]:
    """Return the heights of points that are fixed to joints, in metres."""
    row = T_world_joint[:, joint, 2]
    return np.asarray(np.einsum("fpk,pk->fp", row[..., :3], offset) + row[..., 3])


def _all_points(skeleton: Skeleton) -> ContactPoints:
    """Return all ends of observed bones, then all markers."""
    ends = np.flatnonzero(_is_observed_end(skeleton))
    joint = np.concatenate([ends, skeleton.marker_joint]).astype(np.int64)
    offset = np.concatenate([np.zeros((len(ends), 3)), skeleton.marker_offset])
    return make_contact_points(
        skeleton, joint, offset, np.arange(len(joint)) < len(ends)
    )


def _is_observed_end(skeleton: Skeleton) -> Bool[Array, " joint"]:
    """Return the ends of bones, without those that are placed by anatomy only."""
    return np.asarray(skeleton.is_end & skeleton.observed)


def _lower_kind(
    on_body: Bool[Array, " point"],
    is_end: Bool[Array, " point"],
    low: Float[Array, " point"],
    tolerance: float,
) -> Bool[Array, " point"]:
    """Return the ends of a body, or its markers where these are lower."""
    ends, markers = on_body & is_end, on_body & ~is_end
    margin = low[markers].min(initial=np.inf) - low[ends].min(initial=np.inf)
    ends_are_lower = margin > (0.0 if ends.sum() > 1 else tolerance)
    return np.asarray(ends if ends_are_lower else markers)


def _is_at_sensor(skeleton: Skeleton, ends: Int[Array, " end"]) -> Bool[Array, " end"]:
    """Return which ends of bones are only the position of a sensor."""
    between = skeleton.offset[ends][:, None] - skeleton.T_joint_sensor[:, :3, 3]
    same = geometry.lengths(between) < MARKER_NOISE_M
    same &= skeleton.parent[ends][:, None] == skeleton.sensor_joint
    return np.asarray(same.any(axis=1))


def _parent_bodies(skeleton: Skeleton) -> dict[int, int]:
    """Return the parent of every body; -1 for the root."""
    body = rotating_joints(skeleton)
    return {int(j): int(body[skeleton.parent[j]]) if j else -1 for j in np.unique(body)}


def _leaf_bodies(skeleton: Skeleton) -> list[int]:
    """Return the bodies without children; a root with one child counts as well."""
    parents = _parent_bodies(skeleton)
    n_children = Counter(parents.values())
    return [body for body in parents if n_children[body] <= (1 if body == 0 else 0)]
