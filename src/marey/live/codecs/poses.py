"""Poses from the numbers of packets, which may be anything."""

import numpy as np

from marey.numerics import Array, Float, geometry
from marey.numerics.thresholds import MIN_DETERMINANT


def make_poses(
    position: Float[Array, "item 3"], wxyz: Float[Array, "item 4"]
) -> Float[Array, "item 4 4"]:
    """Return poses of positions in metres and quaternions of any length.

    NaN where a component is not finite or the quaternion has no length.
    """
    if not len(wxyz):
        return np.zeros((0, 4, 4))
    with np.errstate(all="ignore"):
        length = np.sqrt((wxyz * wxyz).sum(axis=1))
    known = np.isfinite(length) & (length > 0.0) & np.isfinite(position).all(axis=1)
    T = np.full((len(wxyz), 4, 4), np.nan)
    R = geometry.matrix_from_quat(wxyz[known] / length[known, None])
    T[known] = geometry.transform(R, position[known])
    return T


def hide_non_poses(T: Float[Array, "item 4 4"]) -> Float[Array, "item 4 4"]:
    """Return poses; NaN where an orientation is far from a rotation by its volume."""
    with np.errstate(all="ignore"):
        volume = np.linalg.det(T[:, :3, :3])
    known = (volume > MIN_DETERMINANT) & (volume < 1.0 / MIN_DETERMINANT)
    return np.where(known[:, None, None], T, np.nan)
