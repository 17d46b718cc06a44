"""Poses of the joints of a tree from their rotations in their parents, compiled."""

# mypy: ignore-errors

import numpy as np

from marey.numerics.jit import lean, njit
from marey.numerics.vector3_kernel import place, rotate, rotation_columns


@njit(cache=True)
def place_joints(parent, offset, T_world_root, wxyz, out):
    """Fill out (frame, joint, 4, 4) with T_world_joint, from root to leaves.

    Parents come before their children. Where a rotation, an offset or the pose of the
    parent is not known, the pose is NaN throughout.
    """
    for n in range(len(out)):
        for joint in range(len(parent)):
            T = out[n, joint]
            if parent[joint] < 0:
                copy_transform(T_world_root[n], T)
            else:
                T_parent = out[n, parent[joint]]
                place_joint(T_parent, offset[joint], wxyz[n, joint], T)


@lean
def copy_transform(T, out):
    """Copy a matrix of 4 x 4."""
    for i in range(4):
        for j in range(4):
            out[i, j] = T[i, j]


@lean
def place_joint(T_parent, offset, q, out):
    """Fill T_world_joint from that of the parent (OBrien2000, Eqs. 4-5)."""
    a, b, d = rotation_columns(q)
    a, b, d = rotate(T_parent, a), rotate(T_parent, b), rotate(T_parent, d)
    c = place(T_parent, T_parent[:3, 3], offset)
    is_known = np.isfinite(a[0] + b[0] + d[0] + c[0] + c[1] + c[2])
    for i in range(3):
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = a[i], b[i], d[i], c[i]
        out[3, i] = 0.0
    out[3, 3] = 1.0
    if not is_known:
        for i in range(4):
            for j in range(4):
                out[i, j] = np.nan
