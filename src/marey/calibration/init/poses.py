"""Sampled frames, and initial poses from root to leaf."""

from collections.abc import Sequence

import numpy as np

from marey.articulated.targets import as_c_float64
from marey.calibration.model import FramePoses, ModelParameters
from marey.numerics import Array, Float, Int, geometry
from marey.numerics.procrustes import points_seen
from marey.numerics.thresholds import MARKER_NOISE_M, MIN_SAMPLES

MIN_VISIBILITY = 0.5
"""A frame is sampled if it shows at least this share of the most markers ever seen at
once. Higher samples fewer, better frames. Chosen by hand."""

JOINT_WEIGHT, PARENT_AXES_WEIGHT = 3.0, 0.005
"""Weights of a segment's joint and of its parent's axes, where a marker has weight 1.
Higher follows the markers less; a joint of weight 1 leads a run and people without
labels to other minima, centimetres away. Chosen by hand."""


N_FRAME_PAIRS = 45
"""Pairs of consecutive frames, evenly in time, from which the white share is estimated.
More take longer. Chosen by hand."""

MIN_PAIR_VISIBILITY = 0.5
"""Share of the markers that both frames of a pair must show. Higher leaves fewer pairs.
Chosen by hand."""


def sample_frames(
    points: Float[Array, "frame marker _"], max_frames: int
) -> Int[Array, " sample"]:
    """Return frames evenly in time among those that are well seen."""
    count = points_seen(points).sum(axis=1)
    frames = np.flatnonzero(count >= max(MIN_VISIBILITY * count.max(initial=0), 1))
    if len(frames) <= max_frames:
        return frames
    sample = np.linspace(0, len(frames) - 1, max_frames).round().astype(int)
    return np.asarray(frames[sample])


def sample_frame_pairs(
    points: Float[Array, "frame point _"],
    lag: int = 1,
    markers: Int[Array, " marker"] | slice = slice(None),
) -> Float[Array, "_ 2 marker _"]:
    """Return pairs of frames, evenly in time among those well seen.

    Args:
        points: Markers over time.
        lag: Frames from the first of a pair to the second.
        markers: Which of them, in which order.
    """
    seen = points_seen(points)[:, markers]
    both_seen = (seen[:-lag] & seen[lag:]).mean(axis=1)
    pairs = np.flatnonzero(both_seen >= MIN_PAIR_VISIBILITY)
    sample = np.linspace(0, max(len(pairs) - 1, 0), N_FRAME_PAIRS).round().astype(int)
    first = pairs[np.unique(sample)[: len(pairs)]]
    return np.stack([points[first], points[first + lag]], axis=1)[:, :, markers]


def sample_takes(
    takes: Sequence[Float[Array, "_ marker _"]], frames_per_take: int
) -> Float[Array, "sample marker _"]:
    """Return frames of the takes of a session, more of those with more motion.

    Frames are distributed in proportion to the spread of the poses, with `MIN_SAMPLES`
    of a take at least: however long a person stands still, it is one pose.

    Args:
        takes: Markers of every take.
        frames_per_take: Most frames of a take on average.
    """
    if len(takes) == 1:
        frames = sample_frames(takes[0], max(frames_per_take, MIN_SAMPLES))
        return np.asarray(takes[0][frames])
    spread = np.array([pose_spread(points) for points in takes])
    share = spread / spread.sum() if spread.any() else 1.0 / len(takes)
    counts = np.maximum(frames_per_take * len(takes) * share, MIN_SAMPLES)
    counts = np.broadcast_to(counts.round().astype(int), len(takes))
    sampled = [
        points[sample_frames(points, n)]
        for points, n in zip(takes, counts.tolist(), strict=True)
    ]
    return np.concatenate(sampled)


def pose_spread(points: Float[Array, "frame marker _"]) -> float:
    """Return the rms change of the distances between markers over time, in metres."""
    points = points[sample_frames(points, MIN_SAMPLES), :, :3]
    distance = geometry.lengths(points[:, :, None] - points[:, None])
    seen = np.isfinite(distance)
    count = np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen, distance, 0.0).sum(axis=0) / count
    square = np.where(seen, (distance - mean) ** 2, 0.0)
    return float(np.sqrt(square.sum() / max(int(seen.sum()), 1)))


def initial_poses(
    parameters: ModelParameters, observed: Float[Array, "frame marker _"]
) -> FramePoses:
    """Return a pose for every frame by weighted Kabsch fits from root to leaf.

    Each segment is fitted to its markers, its joint, and with little weight to the axes
    of its parent, so that even a single marker gives a rotation.

    Args:
        parameters: Parameters of the model, with the markers of one session.
        observed: Measured markers in the order of the model, perhaps with confidences.
    """
    from marey.calibration.init.poses_kernel import pose_segments

    model, m = parameters.model, parameters.marker_offset[0]
    n = len(model.names)
    T_root = _root_poses(parameters, observed[..., :3])
    joint = np.empty((len(observed), n, 3))
    R = np.empty((len(observed), n, 3, 3))
    joint[:, 0], R[:, 0] = T_root[:, :3, 3], T_root[:, :3, :3]
    square = np.bincount(model.marker_segment, np.sum(m**2, axis=1), n)
    count = np.maximum(np.diff(model.first_marker), 1)
    pose_segments(
        (model.tables.parent, model.tables.first_marker),
        as_c_float64(parameters.joint_offset),
        as_c_float64(m),
        np.sqrt(square / count) + MARKER_NOISE_M,
        (JOINT_WEIGHT, PARENT_AXES_WEIGHT),
        as_c_float64(observed),
        joint,
        R,
    )
    return FramePoses(observed, joint[:, 0].copy(), R)


def _root_poses(
    parameters: ModelParameters, points: Array
) -> Float[Array, "frame 4 4"]:
    """Return the pose of the root: from its own markers, or from all if too few."""
    model, m = parameters.model, parameters.marker_offset[0]
    markers = model.markers_of(0)
    T = geometry.kabsch(m[markers], points[:, markers])
    missing = ~np.isfinite(T).all(axis=(1, 2))
    if missing.any():
        T[missing] = geometry.kabsch(parameters.rest_markers(), points[missing])
    return _fill_missing_poses(T, points)


def _fill_missing_poses(T: Array, points: Array) -> Float[Array, "frame 4 4"]:
    """Return poses with those of the nearest frame where they are missing.

    If all are missing, the root is unrotated at the mean of the markers.
    """
    determined = np.flatnonzero(np.isfinite(T).all(axis=(1, 2)))
    if len(determined):
        distance = np.abs(np.arange(len(T))[:, None] - determined)
        return np.asarray(T[determined[distance.argmin(axis=1)]])
    seen = np.isfinite(points).all(axis=-1)
    total = np.where(seen[..., None], points, 0.0).sum(axis=1)
    mean = total / np.maximum(seen.sum(axis=1), 1)[:, None]
    return geometry.transform(np.eye(3), mean)
