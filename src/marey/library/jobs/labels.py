"""Labels of a take without them, from the markers on its subject's skeleton."""

from dataclasses import replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from marey.anatomy.names import without_subject
from marey.library.jobs.describe import sample_frames
from marey.motion import Motion
from marey.numerics import Float, geometry
from marey.pose import fit_pose
from marey.skeleton import Skeleton
from marey.take import Take

MAX_ITERATIONS = 10
"""Most rounds of poses and labels; most takes need two or three."""

MAX_DISTANCE_M = 0.06
"""Farthest that a marker may be, in the median, from where the skeleton predicts its
label, in metres. Higher labels more markers, and more of them wrong: neighbours on a
limb are this far apart. Chosen by hand."""


def label_take(take: Take, skeleton: Skeleton, motion: Motion) -> Take:
    """Return a take with the labels of the markers on a skeleton.

    Iterative closest points on trajectories: where the skeleton predicts each label is
    compared with every marker over the whole take, labels are assigned by the Hungarian
    method, and the pose is fitted to them again, until labels stay. Markers that no
    label predicts keep their own.

    Args:
        take: The recording; its labels are not those of the skeleton.
        skeleton: The subject's skeleton with its labelled markers.
        motion: Poses of the same joints, estimated without labels.
    """
    index = [motion.skeleton.index(name) for name in skeleton.names]
    T_world_joint = motion.T_world_joint()[:, index]
    labelled = take
    for _ in range(MAX_ITERATIONS):
        before = labelled.labels
        labelled = _assign(take, skeleton, T_world_joint)
        if labelled.labels == before:
            break
        posed, _ = fit_pose(skeleton, labelled, method="gauss_newton")
        T_world_joint = posed.T_world_joint()
    return labelled


def _assign(
    take: Take, skeleton: Skeleton, T_world_joint: Float[np.ndarray, "frame joint 4 4"]
) -> Take:
    """Return the take with the labels that poses of the skeleton predict."""
    frames = sample_frames(take)
    T_world_marker = T_world_joint[frames][:, skeleton.marker_joint]
    predicted = geometry.apply(T_world_marker, skeleton.marker_offset)
    distance = _median_distance(predicted, take.points[frames])
    labels = list(take.labels)
    rows, columns = linear_sum_assignment(np.minimum(distance, 2.0 * MAX_DISTANCE_M))
    for label, marker in zip(rows, columns, strict=True):
        if distance[label, marker] < MAX_DISTANCE_M:
            labels[marker] = without_subject(skeleton.marker_labels[label])
    return replace(take, labels=tuple(labels))


def _median_distance(
    predicted: Float[np.ndarray, "frame label 3"],
    points: Float[np.ndarray, "frame marker 3"],
) -> Float[np.ndarray, "label marker"]:
    """Return the median over time of all distances; infinite if never both known."""
    median = np.full((predicted.shape[1], points.shape[1]), np.inf)
    for label in range(predicted.shape[1]):
        distance = np.linalg.norm(points - predicted[:, label : label + 1], axis=-1)
        known = np.isfinite(distance)
        seen = known.any(axis=0)
        median[label, seen] = np.nanmedian(
            np.where(known, distance, np.nan)[:, seen], axis=0
        )
    return median
