"""Linkages of ball joints that move, with their truth, for tests of calibration."""

from dataclasses import replace

import numpy as np

from marey.numerics import geometry
from marey.skeleton import Skeleton
from marey.take import Take


def linkage(rng, parent=(-1, 0, 1), markers=4, length=0.3, spread=0.08):
    """A tree of bones of equal length, with markers around each joint."""
    n = len(parent)
    offset = rng.normal(size=(n, 3))
    offset *= length / np.linalg.norm(offset, axis=1, keepdims=True)
    offset[0] = 0.0
    joint = np.repeat(np.arange(n), markers)
    return Skeleton(
        names=tuple(f"bone{i}" for i in range(n)),
        parent=np.array(parent),
        offset=offset,
        marker_labels=tuple(f"m{k}" for k in range(len(joint))),
        marker_joint=joint,
        marker_offset=rng.normal(size=(len(joint), 3)) * spread,
    )


def random_rotations(rng, n_joints, n_frames, size, axes=None):
    """Smooth random rotations of every joint, of about this size in radians.

    Args:
        axes: Per joint the only axis it rotates about, None for a ball.
    """
    time = np.linspace(0.0, 2.0 * np.pi, n_frames)
    rotation = np.zeros((n_frames, n_joints, 3))
    for order in (1, 2, 3):
        a, b = rng.normal(size=(2, n_joints, 3))
        rotation += a * np.sin(order * time)[:, None, None]
        rotation += b * np.cos(order * time)[:, None, None]
    for joint, axis in enumerate(axes or ()):
        if axis is not None:
            rotation[:, joint] = rotation[:, joint, :1] * np.asarray(axis)
    return geometry.quat_exp(0.5 * size * rotation)


def record_take(skeleton, wxyz, rng, noise=0.0, rate=100.0):
    """A take of the skeleton's markers; the root makes a random walk."""
    position = np.cumsum(rng.normal(size=(len(wxyz), 3)) * 0.01, axis=0)
    T_root = geometry.transform(geometry.matrix_from_quat(wxyz[:, 0]), position)
    T = skeleton.forward(T_root, wxyz)
    points = geometry.apply(T[:, skeleton.marker_joint], skeleton.marker_offset)
    points = points + rng.normal(size=points.shape) * noise
    return Take(rate=rate, points=points, labels=skeleton.marker_labels)


def perturb(skeleton, rng, sd):
    """The skeleton with random errors of joints and markers, in metres."""
    inner = (skeleton.parent >= 0)[:, None]
    return replace(
        skeleton,
        offset=skeleton.offset + rng.normal(size=skeleton.offset.shape) * sd * inner,
        marker_offset=skeleton.marker_offset
        + rng.normal(size=skeleton.marker_offset.shape) * sd,
    )


def rigid_distances(skeleton):
    """Distances of all joints and markers on the same segment, in metres.

    They do not depend on the axes that were chosen for each segment.
    """
    result = []
    for joint in range(skeleton.n_joints):
        points = [np.zeros(3), *skeleton.offset[skeleton.parent == joint]]
        points += list(skeleton.marker_offset[skeleton.marker_joint == joint])
        if joint == 0:
            points = points[1:]
        points = np.array(points)
        result.append(np.linalg.norm(points[:, None] - points[None], axis=-1).ravel())
    return np.concatenate(result)
