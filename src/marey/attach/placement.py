"""Markers and sensors carried over from one skeleton to another of the same subject.

The two skeletons have other axes, joints and rest poses. For every bone of one that
corresponds to a bone of the other there is a rigid transform between their frames.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from marey.anatomy.t_pose import shortest_rotation
from marey.attach.match import JointMatch, matched_below, nearest_match
from marey.numerics import Array, Float, geometry
from marey.numerics.thresholds import MIN_POSE_POINTS
from marey.skeleton import Skeleton
from marey.tree import ancestors_of


def carry_over(
    given: Skeleton, free: Skeleton, matches: Sequence[JointMatch]
) -> Skeleton:
    """Return the given skeleton with the markers and sensors of the free one.

    Places are rough where the bones of the two differ.

    Args:
        given: Skeleton whose bones are kept; its own markers and sensors are replaced.
        free: Skeleton with markers or sensors.
        matches: Joints that correspond.
    """
    matched = {match.free: match for match in matches}
    T = bone_transforms(given, free, matched)
    marker_T, marker_body = _of_joints(free, matched, T, free.marker_joint)
    sensor_T, sensor_body = _of_joints(free, matched, T, free.sensor_joint)
    return replace(
        given,
        marker_labels=free.marker_labels,
        marker_joint=marker_body,
        marker_offset=geometry.apply(marker_T, free.marker_offset),
        sensor_names=free.sensor_names,
        sensor_joint=sensor_body,
        T_joint_sensor=sensor_T @ free.T_joint_sensor,
    )


def _of_joints(
    free: Skeleton,
    matched: Mapping[int, JointMatch],
    T: Mapping[int, Float[Array, "4 4"]],
    joints: Array,
) -> tuple[Float[Array, "_ 4 4"], Array]:
    """Return T_body_joint of joints of the free skeleton, and the body of each.

    A joint without a match moves with its nearest ancestor that has one.
    """
    rest = free.rest()
    carriers = [nearest_match(free, matched, int(joint)) for joint in joints]
    to_body = [
        T[match.free] @ geometry.inverse(rest[match.free]) @ rest[joint]
        for match, joint in zip(carriers, joints, strict=True)
    ]
    bodies = np.array([match.body for match in carriers], dtype=np.int64)
    return np.array(to_body).reshape(-1, 4, 4), bodies


def bone_transforms(
    given: Skeleton, free: Skeleton, matched: Mapping[int, JointMatch]
) -> dict[int, Float[Array, "4 4"]]:
    """Return T_body_joint by matched joint: the free joint's frame in the given body's.

    Three joints of a bone that are not on a line determine the transform (Kabsch).
    Shoulders and neck are nearly on a line, so the joint of the chest counts as well,
    for the rotation only; without it the chest might be upside down. Another bone has
    the rotation of the bone before it, and then the smallest that brings its direction
    to that of the given one; its joint is at the same place.
    """
    rest_free, rest_given = free.rest(), given.rest()
    T: dict[int, Array] = {}
    for i, match in matched.items():
        below = [matched[j] for j in matched_below(free, matched, i)]
        is_firm = match.weight == 1.0
        is_chest = bool(T) and not is_firm and len(below) >= MIN_POSE_POINTS
        points = [match, *below] if is_firm or is_chest or not below else below
        places = (
            rest_free[[m.free for m in points], :3, 3],
            rest_given[[m.joint for m in points], :3, 3],
        )
        weight = np.array([m.weight for m in points])
        place_weight = np.where([is_chest and m is match for m in points], 0.0, weight)
        before = _rotation_before(free, T, i)
        T_rest = _align_points(*places, weight, place_weight, before)
        T[i] = geometry.inverse(rest_given[match.body]) @ T_rest @ rest_free[i]
    return T


def _rotation_before(
    free: Skeleton, T: Mapping[int, Array], joint: int
) -> Float[Array, "3 3"]:
    """Return the rotation of the nearest ancestor whose transform is known."""
    known = (T[one] for one in ancestors_of(free.parent, joint) if one in T)
    return next(known, np.eye(4))[:3, :3]


def _align_points(
    free: Float[Array, "point 3"],
    given: Float[Array, "point 3"],
    weight: Float[Array, " point"],
    place_weight: Float[Array, " point"],
    R_before: Float[Array, "3 3"],
) -> Float[Array, "4 4"]:
    """Return the transform that carries points of the free rest pose to the given.

    Args:
        free: Points of the free rest pose.
        given: The same points in the given rest pose.
        weight: Weights of the points in the rotation.
        place_weight: Their weights in the translation.
        R_before: Rotation of the bone before.
    """
    if len(free) >= MIN_POSE_POINTS:
        R = geometry.kabsch(free, given, weight)[:3, :3]
        if np.isfinite(R).all():
            ends = (np.average(p, axis=0, weights=place_weight) for p in (free, given))
            center_free, center_given = ends
            return geometry.transform(R, center_given - R @ center_free)
    R = R_before
    if len(free) > 1:
        bone_free, bone_given = (p[1:].mean(axis=0) - p[0] for p in (free, given))
        R = shortest_rotation(R_before @ bone_free, bone_given) @ R_before
    return geometry.transform(R, given[0] - R @ free[0])
