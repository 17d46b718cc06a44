"""Comparison of bodies, joints, tree, bone lengths and motion with the truth."""

from dataclasses import replace
from itertools import combinations

import numpy as np

from marey.bodies import Bodies
from marey.joint_fits import JointFits
from marey.metrics import scores
from marey.metrics.match import (
    adjusted_rand_index,
    match_bodies,
    match_paths,
    relative_motion_rms,
)
from marey.motion import Motion
from marey.numerics import Array, Float, geometry
from marey.numerics.noise import rms_length
from marey.numerics.robust import rms
from marey.skeleton import Skeleton, rotating_joints
from marey.synth.truth import Truth
from marey.tree import Tree

Edge = frozenset[int]


def compare_bodies(bodies: Bodies, truth: Truth) -> scores.BodiesScore:
    """Return the errors of the bodies."""
    match = match_bodies(bodies, truth)
    true, is_real = truth.marker_body, truth.marker_body >= 0
    correct = np.where(bodies.marker_body >= 0, match[bodies.marker_body], -2) == true
    true_bodies = np.unique(np.concatenate([true[is_real], truth.sensor_body]))
    n_marked = len(np.unique(bodies.marker_body[bodies.marker_body >= 0]))
    return scores.BodiesScore(
        found=len(bodies.names) if truth.sensor_body.size else n_marked,
        true=len(true_bodies),
        matched=int(np.sum(match >= 0)),
        ari=_ari(bodies.marker_body, true, is_real),
        ari_shared=_ari(_choose_true_body(bodies, match, true), true, is_real),
        markers_right=float(np.mean(correct[is_real]))
        if is_real.any()
        else float("nan"),
    )


def _ari(found: Array, true: Array, is_real: Array) -> float:
    """Return the adjusted Rand index of the real markers; NaN if there are none."""
    if not is_real.any():
        return float("nan")
    return adjusted_rand_index(found[is_real], true[is_real])


def _choose_true_body(bodies: Bodies, match: Array, true: Array) -> Array:
    """Return one body per marker: the true one if it is among the marker's bodies."""
    best = bodies.marker_body.copy()
    for marker, body in zip(*np.nonzero(bodies.shared), strict=True):
        if match[body] == true[marker] and true[marker] >= 0:
            best[marker] = body
    return best


def joint_errors(
    joints: JointFits, bodies: Bodies, truth: Truth
) -> Float[Array, "joint 4"]:
    """Return the errors of every true joint that has a fit, rms over frames.

    They are the distance of the centres and the part of it perpendicular to a hinge
    axis, both in metres, the angle of the axis in radians (NaN unless it is a hinge),
    and whether the kind is correct.
    """
    match = match_bodies(bodies, truth)
    found_of = {int(true): body for body, true in enumerate(match) if true >= 0}
    row = {frozenset(map(int, pair)): k for k, pair in enumerate(joints.pair)}
    poses = [motion.T_world_joint() for motion in truth.motions]
    errors: list[tuple[float, float, float, bool]] = []
    for parent, child, joint in truth.edges.tolist():
        pair = frozenset((found_of.get(parent, -1), found_of.get(child, -2)))
        if pair in row and joints.fitted[row[pair]]:
            subject = truth.bodies[child, 0]
            T = poses[subject][:, joint]
            skeleton = truth.motions[subject].skeleton
            errors.append(_joint_error(joints, row[pair], bodies, T, skeleton, joint))
    return np.array(errors, dtype=float).reshape(-1, 4)


def compare_joints(
    joints: JointFits, bodies: Bodies, truth: Truth
) -> scores.JointsScore:
    """Return the errors of joint centres and axes, at the true joints."""
    center, off_axis, axis, kind = joint_errors(joints, bodies, truth).T
    return scores.JointsScore(
        found=len(center),
        true=len(truth.edges),
        center=rms(center),
        center_max=float(center.max()) if len(center) else float("nan"),
        off_axis=rms(off_axis),
        axis=rms(axis),
        kinds_right=int(kind.sum()),
    )


def _joint_error(
    joints: JointFits,
    row: int,
    bodies: Bodies,
    T_world_joint: Float[Array, "frame 4 4"],
    skeleton: Skeleton,
    joint: int,
) -> tuple[float, float, float, bool]:
    """Return the errors of one joint, rms over frames.

    They are the distance of the centres, the part of it perpendicular to a hinge axis,
    the angle of the axis, and whether the kind is correct.
    """
    a, b = joints.pair[row]
    T_a, T_b = bodies.T_world_body[:, a], bodies.T_world_body[:, b]
    center = 0.5 * (
        geometry.apply(T_a, joints.center_a[row])
        + geometry.apply(T_b, joints.center_b[row])
    )
    error = center - T_world_joint[:, :3, 3]
    square = np.sum(error**2, axis=-1)
    off_axis, angle = square, float("nan")
    if skeleton.kind[joint] == "hinge":
        axis = T_world_joint[:, :3, :3] @ skeleton.axes[joint, 0]
        off_axis = square - np.sum(error * axis, axis=-1) ** 2
        found = T_a[:, :3, :3] @ joints.axis_a[row]
        sine = np.linalg.norm(np.cross(found, axis), axis=-1)
        cosine = np.abs(np.sum(found * axis, axis=-1))
        angle = rms(np.arctan2(sine, cosine))
    kind_correct = joints.kind[row] == skeleton.kind[joint]
    return (
        rms_length(error),
        float(np.sqrt(np.nanmean(np.maximum(off_axis, 0.0)))),
        angle,
        kind_correct,
    )


def compare_tree(tree: Tree, bodies: Bodies, truth: Truth) -> scores.TreeScore:
    """Return the numbers of correct, wrong and missing edges between true bodies."""
    match = match_bodies(bodies, truth)
    found = set()
    wrong = 0
    for body, parent in enumerate(tree.parent):
        if parent < 0:
            continue
        if match[body] < 0 or match[parent] < 0:
            wrong += 1
        else:
            found.add(frozenset((int(match[body]), int(match[parent]))))
    true = _contracted_edges(truth, {int(row) for row in match if row >= 0})
    return scores.TreeScore(
        right=len(found & true),
        wrong=len(found - true) + wrong,
        missing=len(true - found),
    )


def _contracted_edges(truth: Truth, kept: set[int]) -> set[Edge]:
    """Return the true edges between some bodies, with the other bodies contracted."""
    parent = {int(child): int(up) for up, child, _ in truth.edges}
    children: dict[int, list[int]] = {}
    edges = set()
    for body in kept:
        up = parent.get(body, -1)
        top = body
        while up >= 0 and up not in kept:
            top, up = up, parent.get(up, -1)
        if up >= 0:
            edges.add(frozenset((body, up)))
        elif top != body:
            children.setdefault(top, []).append(body)
    # A missing root leaves separate subtrees; they are joined to the first of them.
    for first, *others in children.values():
        edges |= {frozenset((first, other)) for other in others}
    return edges


Lengths = dict[tuple[int, Edge], float]


def joint_distances(skeleton: Skeleton, body: Array) -> Lengths:
    """Return the distances between the joints on each body.

    Args:
        skeleton: The joints. Fixed joints belong to the body they are fixed to.
        body: Number of the body of each joint; negative = ignore the joint.

    Returns:
        Distances in metres, by body and by the pair of neighbouring bodies that the two
        joints connect to.
    """
    rest = skeleton.rest()[:, :3, 3]
    carrier = rotating_joints(skeleton)
    positions: dict[int, list[tuple[int, Array]]] = {}
    for joint in np.unique(carrier)[1:]:
        parent = carrier[skeleton.parent[joint]]
        child_body, parent_body = int(body[joint]), int(body[parent])
        if child_body >= 0 and parent_body >= 0:
            positions.setdefault(child_body, []).append((parent_body, rest[joint]))
            positions.setdefault(parent_body, []).append((child_body, rest[joint]))
    return {
        (at, frozenset((i, j))): float(np.linalg.norm(p - q))
        for at, joints in positions.items()
        for (i, p), (j, q) in combinations(joints, 2)
    }


def compare_lengths(found: Lengths, true: Lengths) -> scores.SkeletonScore:
    """Return the errors of the distances that both skeletons have."""
    common = [key for key in true if key in found]
    error = np.array([found[key] - true[key] for key in common])
    return scores.SkeletonScore(
        compared=len(common),
        true=len(true),
        rms=rms(error),
        max=float(np.abs(error).max()) if len(error) else float("nan"),
        mean=float(error.mean()) if len(error) else float("nan"),
    )


def moving_joints(skeleton: Skeleton) -> Array:
    """Return the joints that a pose rotates, except the root."""
    joints = np.flatnonzero(skeleton.rotates)
    return joints[joints > 0]


def compare_motion(found: Motion, true: Motion) -> scores.MotionScore:
    """Return the errors of a motion.

    Joints are matched by their positions; their names do not matter.
    """
    true = resample_truth(true, found)
    joints, true_joints = moving_joints(found.skeleton), moving_joints(true.skeleton)
    T_found, T_true = found.T_world_joint(), true.T_world_joint()
    position, true_position = T_found[..., :3, 3], T_true[..., :3, 3]
    rows, columns = match_paths(position[:, joints], true_position[:, true_joints])
    joints, true_joints = joints[rows], true_joints[columns]
    error = position[:, joints] - true_position[:, true_joints]
    distance = np.linalg.norm(error, axis=-1)
    has_joints = distance.size > 0
    per_joint = np.nanmean(distance, axis=0) if has_joints else np.array([np.nan])
    angles = _rotation_errors(
        T_found[:, joints, :3, :3], T_true[:, true_joints, :3, :3]
    )
    return scores.MotionScore(
        matched=len(joints),
        true=len(moving_joints(true.skeleton)),
        position=float(per_joint.mean()),
        position_max=float(per_joint.max()),
        rotation=rms(angles),
        root=_root_error(found, T_found, true),
    )


def resample_truth(true: Motion, found: Motion) -> Motion:
    """Return the true motion, sampled at the times of the found one."""
    same = true.n_frames == found.n_frames and true.rate == found.rate
    if same:
        return true
    times = found.times - found.start + true.start
    last = true.start + true.duration
    return replace(true.at(np.clip(times, true.start, last)), rate=found.rate)


def _rotation_errors(
    found: Float[Array, "frame joint 3 3"], true: Float[Array, "frame joint 3 3"]
) -> Float[Array, "frame joint"]:
    """Return the angles between orientations, after a constant rotation per joint.

    The constant rotation is the mean relative rotation (orthogonal Procrustes).
    """
    relative = np.swapaxes(true, -1, -2) @ found
    mean = geometry.nearest_rotation(np.nansum(relative, axis=0))
    residual = relative @ np.swapaxes(mean, -1, -2)
    return np.asarray(np.linalg.norm(geometry.rotation_log(residual), axis=-1))


def _root_error(found: Motion, T_found: Array, true: Motion) -> float:
    """Return the least rms motion of any found body in the frame of the true root."""
    bodies = np.concatenate([[0], moving_joints(found.skeleton)])
    return float(
        relative_motion_rms(T_found[:, bodies], true.T_world_root[:, None]).min()
    )
