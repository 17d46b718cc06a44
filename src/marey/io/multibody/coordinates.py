r"""Rotations of joints as angles about one, two or three axes.

.. math:: R = R(a_1, q_1) \, R(a_2, q_2) \, R(a_3, q_3) \, Z

with axes a that are perpendicular to each other and the rotation Z at which all angles
are zero.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from marey.io.text.rotations import change_axes
from marey.numerics import Array, Float, geometry
from marey.skeleton import Skeleton

PATH_STEPS = 9
"""Rotations on the way from zero to a pose, so that angles are followed without jumps.
More follow rotations of several turns; a joint has less than one."""

GRID_STEPS = 7
"""Angles from one limit to the other at which the range of others is measured. More
find extremes between the limits better and take longer. Chosen by hand."""

ANGLES_OF_KIND = {"root": 0, "fixed": 0, "hinge": 1, "universal": 2, "ball": 3}
"""Number of angles that limits bound, by the kind of a joint."""


@dataclass(frozen=True, slots=True, eq=False)
class RotationSequence:
    """Axes about which a joint rotates one after the other."""

    axes: Float[Array, "angle 3"]
    """Unit axes in the frame of the joint, one to three, at right angles."""

    zero: Float[Array, "3 3"]
    """R_parent_joint at which all angles are zero."""

    def angles(self, wxyz: Float[Array, "frame 4"]) -> Float[Array, "frame angle"]:
        """Return the angles in radians, without jumps, followed from zero.

        Args:
            wxyz: R_parent_joint, which the axes can hold.
        """
        if not len(wxyz):
            return np.zeros((0, len(self.axes)))
        return self._follow(self._from_zero(wxyz)[:, None])[:, 0]

    def ranges(self, skeleton: Skeleton, joint: int) -> Float[Array, "angle 2"]:
        """Return least and greatest angle within the limits of a joint; NaN = free.

        Limits bound swing and twist; angles about other axes are followed to a grid
        within these limits, and the smallest ranges that contain them are kept. The
        angle about the axis of a swing or twist without limits is free. Three angles
        have no ranges if the limits allow gimbal lock: beyond it, every rotation has
        other angles as well.
        """
        grid = _limit_grid(skeleton, joint)
        if grid is None:
            return np.full((len(self.axes), 2), np.nan)
        share = np.linspace(0.0, 1.0, PATH_STEPS)[:, None, None]
        path = _rotations(skeleton, joint, share * grid)
        first = np.repeat(self._from_zero(path[:1, 0])[:-1, None], len(grid), axis=1)
        reached = self._follow(np.concatenate([first, self._relative(path)]))[-1]
        found = np.stack([reached.min(axis=0), reached.max(axis=0)], axis=-1)
        if len(found) == 3 and not np.abs(found[1]).max() < 0.5 * np.pi:
            found[:] = np.nan
        for axis in _free_axes(skeleton, joint):
            found[np.abs(self.axes @ axis).argmax()] = np.nan
        return found

    def _relative(self, wxyz: Float[Array, "*batch 4"]) -> Float[Array, "*batch 4"]:
        """Return rotations relative to that at zero: R Z^T."""
        zero = geometry.quat_from_matrix(self.zero)
        return geometry.quat_multiply(wxyz, geometry.quat_conjugate(zero))

    def _from_zero(self, wxyz: Float[Array, "frame 4"]) -> Float[Array, "more 4"]:
        """Return relative rotations, after a path from zero to the first of them."""
        relative = self._relative(wxyz)
        identity = np.array([1.0, 0.0, 0.0, 0.0])
        share = np.linspace(0.0, 1.0, PATH_STEPS)[:-1]
        path = geometry.quat_slerp(identity, relative[:1], share)
        return np.concatenate([path, relative])

    def _follow(
        self, wxyz: Float[Array, "step item 4"]
    ) -> Float[Array, "_ item angle"]:
        """Return angles of relative rotations; the path from zero is left out."""
        if len(self.axes) == 3:
            x, y, z = self.axes
            frame = np.stack([x, y, np.cross(x, y)])
            angles = geometry.euler_continuous(change_axes(wxyz, frame), "XYZ")
            angles[..., 2] *= np.sign(frame[2] @ z)
        else:
            angles = np.stack(_twists(wxyz, self.axes), axis=-1)
        return angles[PATH_STEPS - 1 :]


def _twists(
    wxyz: Float[Array, "step item 4"], axes: Float[Array, "angle 3"]
) -> list[Float[Array, "step item"]]:
    """Return the angle (rad) about each axis in turn, the twist of what is left."""
    angles = []
    for axis in axes:
        half = np.arctan2(wxyz[..., 1:] @ axis, wxyz[..., 0])
        # Half angles are equal up to half turns, as q and -q are one rotation.
        half = np.unwrap(half, axis=0, period=np.pi)
        angles.append(2.0 * half)
        inverse = geometry.quat_exp(-2.0 * half[..., None] * axis)
        wxyz = geometry.quat_multiply(inverse, wxyz)
    return angles


def _limit_grid(skeleton: Skeleton, joint: int) -> Float[Array, "point angle"] | None:
    """Return swings and twists (rad) within the limits of a joint; None without any."""
    count = ANGLES_OF_KIND[skeleton.kind[joint]]
    limits = skeleton.limits[joint, :count]
    if not np.isfinite(limits).any() or not has_axes(skeleton, joint):
        return None
    # An angle with one limit goes up to half a turn beyond it, one without is zero.
    whole = np.where(np.isnan(limits), [-np.pi, np.pi], limits)
    whole[np.isnan(limits).all(axis=1)] = 0.0
    steps = np.linspace(whole[:, 0], whole[:, 1], GRID_STEPS)
    return np.array(list(product(*map(np.unique, steps.T))))


def _free_axes(skeleton: Skeleton, joint: int) -> list[Float[Array, " 3"]]:
    """Return the unit axes of the swings and of the twist that have no limits."""
    count, (x, y) = ANGLES_OF_KIND[skeleton.kind[joint]], skeleton.axes[joint]
    axes = (x, y, np.cross(x, y))[:count]
    free = np.isnan(skeleton.limits[joint]).all(axis=1)
    return [axis for axis, is_free in zip(axes, free[:count], strict=True) if is_free]


def has_axes(skeleton: Skeleton, joint: int) -> bool:
    """Return whether a joint has the axes that its kind or its limits need."""
    count = 1 if skeleton.kind[joint] == "hinge" else 2
    return bool(np.isfinite(skeleton.axes[joint, :count]).all())


def _rotations(
    skeleton: Skeleton, joint: int, angles: Float[Array, "*batch angle"]
) -> Float[Array, "*batch 4"]:
    """Return R_parent_joint (quaternions) of swings and twist, in radians."""
    x, y = skeleton.axes[joint]
    a = geometry.quat_exp(angles[..., :1] * x)
    if skeleton.kind[joint] == "hinge":
        return a
    if skeleton.kind[joint] == "universal":
        return geometry.quat_multiply(a, geometry.quat_exp(angles[..., 1:2] * y))
    swing = geometry.quat_exp(angles[..., :1] * x + angles[..., 1:2] * y)
    twist = geometry.quat_exp(angles[..., 2:] * np.cross(x, y))
    return geometry.quat_multiply(swing, twist)


def widest_rotation(skeleton: Skeleton, joint: int) -> float:
    r"""Return the largest angle of rotation within the limits of a ball, in radians.

    .. math:: \cos(\theta / 2) = \cos(s / 2) \cos(t / 2)

    with the largest swing s and twist t; NaN if no angle less than pi bounds it.
    """
    swing_x, swing_y, twist = np.abs(skeleton.limits[joint]).max(axis=1)
    swing = np.hypot(swing_x, swing_y)
    if not (swing < np.pi and twist < np.pi):
        return float("nan")
    return float(2.0 * np.arccos(np.cos(0.5 * swing) * np.cos(0.5 * twist)))
