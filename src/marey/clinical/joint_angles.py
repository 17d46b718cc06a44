"""Joint angles of a motion in a clinical convention, with their uncertainty."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

import numpy as np

from marey.anatomy import names as vrm
from marey.clinical.anatomical_axes import SegmentAxes, anatomical_axes
from marey.clinical.conventions import WORLD, AngleRow, Convention, rows_of_sides
from marey.clinical.leg_axes import roll_feet_with_shanks
from marey.clinical.person import Person
from marey.clinical.plug_in_gait import leg_axes_of_wands
from marey.errors import DataError, OptionError
from marey.motion import Motion
from marey.numerics import Array, Float, geometry

if TYPE_CHECKING:
    import pandas as pd


MIRROR = np.diag([1.0, -1.0, 1.0])
"""Swaps left and right."""


@dataclass(frozen=True, slots=True, eq=False)
class JointAngles:
    """Angles of a person over time."""

    names: tuple[str, ...]
    """What each angle is, such as "right_knee_flexion"; positive in that direction."""

    degrees: Float[Array, "frame angle"]
    """NaN where the pose is not known."""

    sd: Float[Array, "frame angle"]
    """Standard deviation in degrees, of the pose alone; NaN where it is not known."""

    zeros: tuple[str, ...]
    """How the zero of each angle was found."""

    joints: tuple[str, ...]
    """Joint of the skeleton that turns the outer segment of each angle."""

    convention: Convention
    times: Float[Array, " frame"]
    """Seconds."""

    def __getitem__(self, name: str) -> Float[Array, " frame"]:
        """Return one angle over time, in degrees.

        Raises:
            DataError: If there is none of this name.
        """
        if name not in self.names:
            raise DataError(
                "angle", found=repr(name), needed=f"one of {', '.join(self.names)}"
            )
        return self.degrees[:, self.names.index(name)]

    def to_pandas(self) -> "pd.DataFrame":
        """Return the angles in degrees as a table over time in seconds.

        Raises:
            MissingExtraError: If pandas is not installed.
        """
        from marey.tables import columns_to_pandas  # pandas is slow to import

        attributes = {"unit": "deg", "convention": self.convention}
        return columns_to_pandas(self.times, self.names, self.degrees, attributes)


def angles(motion: Motion, convention: Convention = "isb") -> JointAngles:
    """Return the joint angles of a person in degrees.

    A segment that the skeleton does not have, or that is not observed, has no angles.

    Args:
        motion: Of a person; joints may have the names of any known scheme.
        convention: "isb" (Wu 2002 and 2005, Grood and Suntay) or "plug-in-gait".

    Raises:
        OptionError: If there is no such convention.
        DataError: If the skeleton has no hips with two legs.
    """
    if convention not in get_args(Convention):
        needed = " or ".join(get_args(Convention))
        raise OptionError("convention", found=convention, needed=needed)
    person = Person.of(motion)
    person.R_world[:] = roll_feet_with_shanks(person)
    axes = anatomical_axes(person)
    if convention == "plug-in-gait":
        axes |= leg_axes_of_wands(person, axes[vrm.HIPS].R)
    columns, joints = [], []
    for side, row in rows_of_sides(convention):
        if row.distal in person.joint and row.proximal in (WORLD, *person.joint):
            columns.append(_angles_of_row(person, axes, side, row))
            joints += [motion.skeleton.names[person.joint[row.distal]]] * 3
    names, degrees, sd, zeros = zip(*columns, strict=True)
    return JointAngles(
        names=tuple(name for three in names for name in three),
        degrees=np.concatenate(degrees, axis=1),
        sd=np.concatenate(sd, axis=1),
        zeros=tuple(zero for zero in zeros for _ in range(3)),
        joints=tuple(joints),
        convention=convention,
        times=motion.times,
    )


Column = tuple[tuple[str, ...], Float[Array, "frame 3"], Float[Array, "frame 3"], str]


def _angles_of_row(
    person: Person, axes: Mapping[str, SegmentAxes], side: str, row: AngleRow
) -> Column:
    """Return names, degrees, standard deviations and zero of the angles of a joint."""
    R_world, distal = person.R_world, person.joint[row.distal]
    R_distal = R_world[:, distal] @ axes[row.distal].R
    zero = axes[row.distal].origin
    if row.proximal == WORLD:
        R_proximal = _heading(person.motion, R_distal)[None]
        above, zero = -1, f"{zero}; direction of walking"
    else:
        above = person.joint[row.proximal]
        R_proximal = R_world[:, above] @ axes[row.proximal].R
        zero = _join(axes[row.proximal].origin, zero)
    R = np.swapaxes(R_proximal, -1, -2) @ R_distal
    mirror = MIRROR if side == vrm.LEFT else np.eye(3)
    R = mirror @ R @ mirror
    angles = _euler(R, row)
    covariance = _rotation_covariance(person, distal, above)
    R_axes = axes[row.distal].R @ mirror
    covariance = R_axes.T @ covariance @ R_axes
    sd = _angle_sd(angles, row.order, covariance)
    signs = np.array(row.signs)
    names = tuple(f"{row.joint}_{angle}" for angle in row.angles)
    return names, np.rad2deg(angles * signs), np.rad2deg(sd), zero


def _join(first: str, second: str) -> str:
    return first if first == second else f"{first}; {second}"


def _heading(motion: Motion, R_pelvis: Float[Array, "frame 3 3"]) -> Array:
    """Return the laboratory's axes (columns), x along the direction of walking.

    For a person who goes less far than is tall, x is the mean direction faced.
    """
    root = motion.T_world_root[:, :3, 3]
    known = root[np.isfinite(root).all(axis=1)]
    way = known[-1] - known[0] if len(known) else np.zeros(3)
    height = float(np.ptp(motion.skeleton.rest()[:, 2, 3]))
    faced = np.nanmean(R_pelvis[:, :, 0], axis=0) if len(known) else np.zeros(3)
    if np.linalg.norm(way[:2]) < height or way[:2] @ faced[:2] < 0.0:
        way = faced
    angle = np.arctan2(way[1], way[0])
    return geometry.rotation_exp(np.array([0.0, 0.0, angle]))


def _euler(R: Float[Array, "frame 3 3"], row: AngleRow) -> Float[Array, "frame 3"]:
    """Return the angles in radians, of the branch that people use.

    The middle rotation of a shoulder is an elevation, and so of its sign; other joints
    have continuous angles, by whole turns within half a turn of zero on average.
    """
    wxyz = geometry.quat_from_matrix(R)
    if row.order[0] == row.order[2]:
        first, middle, last = np.moveaxis(
            geometry.euler_from_quat(wxyz, row.order), -1, 0
        )
        if row.signs[1] < 0:
            first, middle, last = first + np.pi, -middle, last + np.pi
        angles = np.stack([first, middle, last], axis=-1)
        return np.asarray(angles - 2.0 * np.pi * np.round(angles / (2.0 * np.pi)))
    angles = geometry.euler_continuous(wxyz, row.order)
    known = np.isfinite(angles).all(axis=1)
    if known.any():
        turns = np.round(np.median(angles[known], axis=0) / (2.0 * np.pi))
        angles = angles - 2.0 * np.pi * turns
    return np.asarray(angles)


def _rotation_covariance(
    person: Person, distal: int, above: int
) -> Float[Array, "frame 3 3"]:
    """Return the covariance of a segment's rotation against another one above it.

    In the axes of the segment's joint, in square radians: the variances of all joints
    between the two, turned and added.
    """
    motion, R_world = person.motion, person.R_world
    total = np.zeros((motion.n_frames, 3, 3))
    joint = distal
    while joint not in (above, -1):
        R = np.swapaxes(R_world[:, distal], -1, -2) @ R_world[:, joint]
        variance = motion.angle_sd[:, joint] ** 2
        total += (R * variance[:, None, :]) @ np.swapaxes(R, -1, -2)
        joint = int(motion.skeleton.parent[joint])
    return total


def _angle_sd(
    angles: Float[Array, "frame 3"], order: str, covariance: Float[Array, "frame 3 3"]
) -> Float[Array, "frame 3"]:
    r"""Return the standard deviations of Euler angles in radians.

    A small rotation :math:`\delta` in the moved axes changes the angles by
    :math:`J^{-1} \delta`; the columns of J are the axes of the three rotations there.
    They are infinite in gimbal lock.
    """
    first, second, third = geometry.euler_axes(order)
    unit = np.eye(3)
    turn = geometry.rotation_exp(angles[:, 2, None] * unit[third])
    turn_2 = geometry.rotation_exp(angles[:, 1, None] * unit[second]) @ turn
    columns: Sequence[Array] = (
        np.swapaxes(turn_2, -1, -2)[..., first],
        np.swapaxes(turn, -1, -2)[..., second],
        np.broadcast_to(unit[third], (len(angles), 3)),
    )
    J = np.stack(columns, axis=-1)
    sd = np.full_like(angles, np.nan)
    known = np.isfinite(J).all(axis=(1, 2)) & np.isfinite(covariance).all(axis=(1, 2))
    locked = known & (
        np.abs(np.linalg.det(np.where(known[:, None, None], J, unit))) < geometry.GIMBAL
    )
    free = known & ~locked
    inverse = np.linalg.inv(J[free])
    spread = inverse @ covariance[free] @ np.swapaxes(inverse, -1, -2)
    sd[free] = np.sqrt(np.einsum("fii->fi", spread))
    sd[locked] = np.inf
    return sd
