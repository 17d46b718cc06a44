"""Figures that move, for tests of calibration: linkages of balls, with their truth."""

from dataclasses import replace

import numpy as np

from marey.numerics import geometry
from marey.skeleton import Skeleton
from marey.take import Take


def linkage(rng, parent=(-1, 0, 1), markers=4, length=0.3, spread=0.08):
    """A tree of bones of one length, markers all around each joint."""
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


def swung(rng, n_joints, n_frames, size, axes=None):
    """Smooth rotations of every joint, of about this size in radians.

    Args:
        axes: Per joint the only axis it turns about, None for a ball.
    """
    time = np.linspace(0.0, 2.0 * np.pi, n_frames)
    turn = np.zeros((n_frames, n_joints, 3))
    for order in (1, 2, 3):
        a, b = rng.normal(size=(2, n_joints, 3))
        turn += a * np.sin(order * time)[:, None, None]
        turn += b * np.cos(order * time)[:, None, None]
    for joint, axis in enumerate(axes or ()):
        if axis is not None:
            turn[:, joint] = turn[:, joint, :1] * np.asarray(axis)
    return geometry.quat_exp(0.5 * size * turn)


def filmed(skeleton, wxyz, rng, noise=0.0, rate=100.0):
    """A take of the skeleton's markers; the root wanders."""
    place = np.cumsum(rng.normal(size=(len(wxyz), 3)) * 0.01, axis=0)
    T_root = geometry.transform(geometry.matrix_from_quat(wxyz[:, 0]), place)
    T = skeleton.forward(T_root, wxyz)
    points = geometry.apply(T[:, skeleton.marker_joint], skeleton.marker_offset)
    points = points + rng.normal(size=points.shape) * noise
    return Take(rate=rate, points=points, labels=skeleton.marker_labels)


def off_by(skeleton, rng, far):
    """The skeleton with joints and markers so far from their places."""
    inner = (skeleton.parent >= 0)[:, None]
    return replace(
        skeleton,
        offset=skeleton.offset + rng.normal(size=skeleton.offset.shape) * far * inner,
        marker_offset=skeleton.marker_offset
        + rng.normal(size=skeleton.marker_offset.shape) * far,
    )


def distances(skeleton):
    """Distances of all joints, markers and parents that move as one, in metres.

    They are what a skeleton is, whatever axes its bones were given.
    """
    found = []
    for joint in range(skeleton.n_joints):
        places = [np.zeros(3), *skeleton.offset[skeleton.parent == joint]]
        places += list(skeleton.marker_offset[skeleton.marker_joint == joint])
        if joint == 0:
            places = places[1:]
        at = np.array(places)
        found.append(np.linalg.norm(at[:, None] - at[None], axis=-1).ravel())
    return np.concatenate(found)
