"""Initial poses of segments from root to leaf, compiled."""

# mypy: ignore-errors

import numpy as np

from marey.numerics.arrays.new_kernel import empty
from marey.numerics.jit import lean, njit
from marey.numerics.kabsch_kernel import fit_pose, scratch


@lean
def _fill_local(offsets, size, joint_weight, axes_weight, local, weights):
    """Write markers, joint and axes of a segment in its frame, and their weights."""
    n = len(offsets)
    for k in range(n + 4):
        weights[k] = 1.0 if k < n else (joint_weight if k == n else axes_weight)
        for x in range(3):
            local[k, x] = offsets[k, x] if k < n else 0.0
    for axis in range(3):
        local[n + 1 + axis, axis] = size


@lean
def _fill_world(points, joint, R_parent, size, world):
    """Write the same in the world: measured markers, and axes of the parent."""
    n = len(points)
    for x in range(3):
        for k in range(n):
            world[k, x] = points[k, x]
        world[n, x] = joint[x]
        for axis in range(3):
            world[n + 1 + axis, x] = joint[x] + size * R_parent[x, axis]


@lean
def _place_joint(t_parent, R_parent, offset, t):
    """Write the position of a joint that has an offset in its parent."""
    for x in range(3):
        t[x] = t_parent[x]
        for y in range(3):
            t[x] += R_parent[x, y] * offset[y]


@lean
def _copy_rotation(T, R):
    """Write the rotation of a pose, or another rotation."""
    for x in range(3):
        for y in range(3):
            R[x, y] = T[x, y]


@njit(cache=True)
def pose_segments(tables, joint_offset, marker_offset, sizes, weights, points, t, R):
    """Write the poses of all segments below the root by weighted Kabsch fits.

    Args:
        tables: Parent and first marker of each segment.
        joint_offset: Each joint in its parent.
        marker_offset: Each marker in its segment.
        sizes: Length of the axes of each segment that count as points.
        weights: Weights of a joint and of an axis, where a marker has weight 1.
        points: Markers, frames x markers x 3 or more.
        t: Joints, frames x segments x 3; those of the root are read.
        R: Rotations, frames x segments x 3 x 3; those of the root are read.
    """
    parent, first_marker = tables
    joint_weight, axes_weight = weights
    most = points.shape[1] + 4
    local, world, weight = empty((most, 3)), empty((most, 3)), empty(most)
    work, T = scratch(), empty((4, 4))
    for i in range(1, len(parent)):
        p, begin, end = parent[i], first_marker[i], first_marker[i + 1]
        n = end - begin + 4
        _fill_local(
            marker_offset[begin:end], sizes[i], joint_weight, axes_weight, local, weight
        )
        for f in range(len(points)):
            _place_joint(t[f, p], R[f, p], joint_offset[i], t[f, i])
            _fill_world(points[f, begin:end], t[f, i], R[f, p], sizes[i], world)
            fit_pose(local[:n], world[:n], weight[:n], work, T)
            _copy_rotation(T if np.isfinite(T[0, 0]) else R[f, p], R[f, i])
