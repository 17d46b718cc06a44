"""Which found body is which true one."""

import numpy as np
from jaxtyping import Float, Int

from marey.bodies import Bodies
from marey.numerics import geometry
from marey.skeleton import Skeleton
from marey.synth.truth import Truth

# Frames looked at when bodies are matched by how they move.
FRAMES = 200

# Farthest (metres, rms) a sensor's body may wander in the frame of its true one.
FARTHEST = 0.1

# Weight of the distance between two bodies against how they move.
TIE_BREAK = 1e-3

# Half size of the cross of points that stands for a body's pose, in metres.
CROSS = 0.1


def adjusted_rand_index(
    first: Int[np.ndarray, " item"], second: Int[np.ndarray, " item"]
) -> float:
    """Return how far two groupings agree: 1 = the same, 0 = no more than by chance.

    Hubert and Arabie (1985). Items of group -1 are groups of their own.
    """
    a, b = _own_groups(first), _own_groups(second)
    table = np.zeros((a.max(initial=-1) + 1, b.max(initial=-1) + 1))
    np.add.at(table, (a, b), 1.0)
    pairs, total = _pairs(table).sum(), _pairs(np.array(float(len(a))))
    in_a, in_b = _pairs(table.sum(axis=1)).sum(), _pairs(table.sum(axis=0)).sum()
    if total == 0.0 or in_a == in_b == 0.0 or in_a == in_b == total:
        return float(np.array_equal(a, b)) if total else 1.0
    chance = in_a * in_b / total
    return float((pairs - chance) / (0.5 * (in_a + in_b) - chance))


def _pairs(count: np.ndarray) -> np.ndarray:
    return np.asarray(0.5 * count * (count - 1.0))


def _own_groups(group: np.ndarray) -> Int[np.ndarray, " item"]:
    """Return groups numbered in order of appearance, each -1 a new one."""
    alone = np.flatnonzero(group < 0)
    group = group.astype(np.int64)
    group[alone] = group.max(initial=0) + 1 + np.arange(len(alone))
    _, index, inverse = np.unique(group, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(index))
    return np.asarray(rank[inverse])


def assign(
    cost: Float[np.ndarray, "row column"],
) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
    """Return the one-to-one pairing of rows with columns of the least total cost."""
    from scipy.optimize import linear_sum_assignment  # slow to import

    rows, columns = linear_sum_assignment(cost)
    return np.asarray(rows), np.asarray(columns)


def match_bodies(bodies: Bodies, truth: Truth) -> Int[np.ndarray, " body"]:
    """Return the row of `truth.bodies` of each found body; -1 = no true body.

    Bodies with markers are matched so that the markers in common are as many as can be;
    those without (sensors) by how little they move in the frame of the true body.
    """
    match = np.full(len(bodies.names), -1, dtype=np.int64)
    overlap = _overlap(bodies, truth)
    rows, columns = assign(-overlap)
    shared = overlap[rows, columns] > 0.0
    match[rows[shared]] = columns[shared]
    bare = np.flatnonzero(overlap.sum(axis=1) == 0.0)
    free = np.setdiff1d(np.arange(len(truth.bodies)), match)
    if len(bare) and len(free):
        true = truth.T_world_body()[:, free]
        near = match_poses(bodies.T_world_body[:, bare], true)
        match[bare[near >= 0]] = free[near[near >= 0]]
    return match


def match_poses(
    found: Float[np.ndarray, "frame body 4 4"],
    true: Float[np.ndarray, "frame true 4 4"],
) -> Int[np.ndarray, " body"]:
    """Return for each pose over time the true one it goes along with; -1 = none."""
    away = wander(found, true)
    # Bodies that never move against each other are told apart by where they are.
    apart = found[:1, :, None, :3, 3] - true[:1, None, :, :3, 3]
    nearness = np.nan_to_num(np.linalg.norm(apart, axis=-1)).sum(axis=0)
    rows, columns = assign(away + TIE_BREAK * nearness)
    near = away[rows, columns] < FARTHEST
    match = np.full(found.shape[1], -1, dtype=np.int64)
    match[rows[near]] = columns[near]
    return match


def _overlap(bodies: Bodies, truth: Truth) -> Float[np.ndarray, "body true"]:
    count = np.zeros((len(bodies.names), len(truth.bodies)))
    known = (bodies.marker_body >= 0) & (truth.marker_body >= 0)
    np.add.at(count, (bodies.marker_body[known], truth.marker_body[known]), 1.0)
    return count


def wander(
    found: Float[np.ndarray, "frame body 4 4"],
    true: Float[np.ndarray, "frame true 4 4"],
) -> Float[np.ndarray, "body true"]:
    """Return the rms distance by which bodies move in the frames of true bodies."""
    step = max(len(found) // FRAMES, 1)
    relative = geometry.inverse(true[::step, None]) @ found[::step, :, None]
    cross = CROSS * np.concatenate([np.eye(3), -np.eye(3)])
    points = geometry.apply(relative[..., None, :, :], cross)
    seen = np.isfinite(points).all(axis=(-1, -2))
    count = np.maximum(seen.sum(axis=0), 1)[..., None, None]
    points = np.where(seen[..., None, None], points, 0.0)
    mean = points.sum(axis=0) / count
    away = np.where(seen[..., None, None], points - mean, 0.0)
    square = np.sum(away**2, axis=(0, -1, -2)) / (len(cross) * count[..., 0, 0])
    return np.where(seen.any(axis=0), np.sqrt(square), 1e3)


def match_joints(
    skeleton: Skeleton,
    truth: Truth,
    subject: int,
    columns: Int[np.ndarray, " marker"],
) -> Int[np.ndarray, " joint"]:
    """Return the true joint whose body carries the most of each joint's markers.

    Args:
        skeleton: The skeleton found.
        truth: What is known.
        subject: The true figure that it is.
        columns: The skeleton's markers in the recording; -1 where it has none.
    """
    true = truth.motions[subject].skeleton
    count = np.zeros((skeleton.n_joints, true.n_joints))
    for marker, joint in zip(columns, skeleton.marker_joint, strict=True):
        if marker >= 0 and truth.marker_subject[marker] == subject:
            count[joint, truth.marker_joint[marker]] += 1.0
    rows, columns = assign(-count)
    match = np.full(skeleton.n_joints, -1, dtype=np.int64)
    shared = count[rows, columns] > 0.0
    match[rows[shared]] = columns[shared]
    return match


def match_paths(
    found: Float[np.ndarray, "frame joint 3"], true: Float[np.ndarray, "frame true 3"]
) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
    """Return the pairing of two sets of moving points with the least mean distance."""
    away = np.linalg.norm(found[:, :, None] - true[:, None], axis=-1)
    seen = np.isfinite(away)
    mean = np.where(seen, away, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen.any(axis=0), mean, 1e6)
    return assign(mean)
