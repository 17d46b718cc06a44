"""Matching of found bodies, joints and paths with true ones."""

import numpy as np

from marey.bodies import Bodies
from marey.numerics import Bool, Float, Int, geometry
from marey.numerics.robust import mean_where
from marey.segmentation.clusters.model_selection import rand_matrix
from marey.skeleton import Skeleton
from marey.synth.truth import Truth

MAX_MATCH_FRAMES = 200
"""Approximate number of frames in which the motions of two bodies are compared. More
frames take more time. Chosen by hand."""

MAX_MATCH_DISTANCE_M = 0.1
"""Largest rms motion of a sensor's body in the frame of its true body, in metres. A
larger value accepts worse matches. Chosen by hand."""

POSITION_WEIGHT = 1e-3
"""Weight of the distance between two bodies, against their relative motion. It decides
between bodies that never move against each other. Chosen by hand."""

CROSS_ARM_M = 0.1
"""Distance of six points on the axes of a body from its origin, in metres. The points
represent its pose; a larger value gives rotations more weight. Chosen by hand."""

UNSEEN_DISTANCE_M = 1e3
"""Distance of two bodies that have no frame in common, in metres: larger than any real
one."""

UNSEEN_PATH_DISTANCE_M = 1e6
"""Distance of two points that have no frame in common, in metres: larger than any real
one."""


def adjusted_rand_index(
    first: Int[np.ndarray, " item"], second: Int[np.ndarray, " item"]
) -> float:
    """Return the adjusted Rand index: 1 = equal groups, 0 = agreement by chance.

    Each item with group -1 forms a group of its own.
    """
    return float(rand_matrix([_single_groups(first), _single_groups(second)])[0, 1])


def _single_groups(group: Int[np.ndarray, " item"]) -> Int[np.ndarray, " item"]:
    """Return groups in which each -1 has a number of its own."""
    single = group.max(initial=0) + 1 + np.arange(len(group))
    return np.where(group >= 0, group, single)


def min_cost_assignment(
    cost: Float[np.ndarray, "row column"],
) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
    """Return the one-to-one assignment of rows to columns with the least total cost."""
    from scipy.optimize import linear_sum_assignment  # slow to import

    rows, columns = linear_sum_assignment(cost)
    return np.asarray(rows), np.asarray(columns)


def _match_by_count(
    n_shared: Float[np.ndarray, "row column"],
) -> Int[np.ndarray, " row"]:
    """Return the column of each row that maximises the total count; -1 = none."""
    return _match_rows(-n_shared, n_shared > 0.0)


def _match_rows(
    cost: Float[np.ndarray, "row column"], accepted: Bool[np.ndarray, "row column"]
) -> Int[np.ndarray, " row"]:
    """Return the column of each row in the assignment of least cost; -1 = none.

    Pairs that are not accepted count for the assignment and are left out afterwards.
    """
    rows, columns = min_cost_assignment(cost)
    match = np.full(len(cost), -1, dtype=np.int64)
    match[rows] = np.where(accepted[rows, columns], columns, -1)
    return match


def match_bodies(bodies: Bodies, truth: Truth) -> Int[np.ndarray, " body"]:
    """Return the row of `truth.bodies` of each found body; -1 = no true body.

    Bodies with markers are matched to share as many markers as possible (linear sum
    assignment). Bodies without markers have sensors; they are matched so that they
    move as little as possible in the frames of their true bodies.
    """
    n_shared = _shared_marker_counts(bodies, truth)
    match = _match_by_count(n_shared)
    unmarked = np.flatnonzero(n_shared.sum(axis=1) == 0.0)
    unmatched = np.setdiff1d(np.arange(len(truth.bodies)), match)
    if len(unmarked) and len(unmatched):
        true = truth.T_world_body()[:, unmatched]
        nearest = match_poses(bodies.T_world_body[:, unmarked], true)
        match[unmarked[nearest >= 0]] = unmatched[nearest[nearest >= 0]]
    return match


def match_poses(
    found: Float[np.ndarray, "frame body 4 4"],
    true: Float[np.ndarray, "frame true 4 4"],
) -> Int[np.ndarray, " body"]:
    """Return for each found body the true body with the same motion; -1 = none."""
    motion = relative_motion_rms(found, true)
    # The positions decide between bodies that never move against each other.
    offset = found[:1, :, None, :3, 3] - true[:1, None, :, :3, 3]
    distance = np.nan_to_num(np.linalg.norm(offset, axis=-1)).sum(axis=0)
    return _match_rows(
        motion + POSITION_WEIGHT * distance, motion < MAX_MATCH_DISTANCE_M
    )


def _shared_marker_counts(
    bodies: Bodies, truth: Truth
) -> Float[np.ndarray, "body true"]:
    """Return how many markers each found and each true body have in common."""
    count = np.zeros((len(bodies.names), len(truth.bodies)))
    known = (bodies.marker_body >= 0) & (truth.marker_body >= 0)
    np.add.at(count, (bodies.marker_body[known], truth.marker_body[known]), 1.0)
    return count


def relative_motion_rms(
    found: Float[np.ndarray, "frame body 4 4"],
    true: Float[np.ndarray, "frame true 4 4"],
) -> Float[np.ndarray, "body true"]:
    """Return the rms motion of found bodies in the frames of true bodies, in metres.

    The motion is that of six points on the axes of the found body, about their means.
    """
    step = max(len(found) // MAX_MATCH_FRAMES, 1)
    relative = geometry.inverse(true[::step, None]) @ found[::step, :, None]
    cross = CROSS_ARM_M * np.concatenate([np.eye(3), -np.eye(3)])
    points = geometry.apply(relative[..., None, :, :], cross)
    seen = np.isfinite(points).all(axis=(-1, -2))
    count = np.maximum(seen.sum(axis=0), 1)[..., None, None]
    points = np.where(seen[..., None, None], points, 0.0)
    mean = points.sum(axis=0) / count
    deviation = np.where(seen[..., None, None], points - mean, 0.0)
    square = np.sum(deviation**2, axis=(0, -1, -2)) / (len(cross) * count[..., 0, 0])
    return np.where(seen.any(axis=0), np.sqrt(square), UNSEEN_DISTANCE_M)


def match_joints(
    skeleton: Skeleton, truth: Truth, subject: int, columns: Int[np.ndarray, " marker"]
) -> Int[np.ndarray, " joint"]:
    """Return the true joint that shares the most markers with each joint; -1 = none.

    Args:
        skeleton: The skeleton found.
        truth: The truth of the recording.
        subject: The true figure that the skeleton belongs to.
        columns: The column of each marker in the recording; -1 = not recorded.
    """
    true = truth.motions[subject].skeleton
    count = np.zeros((skeleton.n_joints, true.n_joints))
    for marker, joint in zip(columns, skeleton.marker_joint, strict=True):
        if marker >= 0 and truth.marker_subject[marker] == subject:
            count[joint, truth.marker_joint[marker]] += 1.0
    return _match_by_count(count)


def match_paths(
    found: Float[np.ndarray, "frame joint 3"], true: Float[np.ndarray, "frame true 3"]
) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
    """Return the assignment of moving points to true ones of least mean distance."""
    distance = np.linalg.norm(found[:, :, None] - true[:, None], axis=-1)
    seen = np.isfinite(distance)
    mean = mean_where(distance, seen, default=UNSEEN_PATH_DISTANCE_M)
    return min_cost_assignment(mean)
