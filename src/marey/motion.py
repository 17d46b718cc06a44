"""A skeleton in motion: root pose and joint rotations over time."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from marey.errors import DataError, OptionError
from marey.numerics import Float, empty_array, geometry
from marey.numerics.resampling import (
    SAME_FRAME,
    frame_blocks,
    frames_at_rate,
    snap_to_frames,
)
from marey.skeleton import Skeleton
from marey.take import EvenlySampled, Source

if TYPE_CHECKING:
    import xarray as xr

MAX_CURVED_STEP = 1.0
"""Rotation between neighbouring frames, in radians, above which they are joined by
slerp: the angular velocity is not known well enough for a cubic. Raised, fast motion is
smoother and may overshoot. Chosen by hand."""

# Largest deviation of a quaternion from unit length, or of a matrix from a rotation,
# that counts as rounding: single precision is accepted and normalised.
ROTATION_ROUNDING = 1e-5

# Deviations below this are left as they are, so that a motion that was written and read
# back is equal to the bit.
TINY_ROTATION_ERROR = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Contact:
    """A foot, hand or paw that stays in one position for a while."""

    joint: str
    """Name of the joint whose bone touches."""

    start: float
    """Second at which the contact begins."""

    end: float
    """Second at which it ends."""

    anchor: Float[np.ndarray, " 3"]
    """The point of contact in the world, in metres."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GroundPlane:
    """The ground: the plane z = height + slope[0] x + slope[1] y.

    With a height for each of several points it is one plane per point, all parallel:
    the ground through the positions at which that point stands, as markers sit above
    the sole.
    """

    height: Float[np.ndarray, " *point"] | float = 0.0
    """Height at the origin, in metres."""

    slope: Float[np.ndarray, " 2"] | tuple[float, float] = (0.0, 0.0)
    """Rise along x and y, in metres per metre."""

    def __post_init__(self) -> None:
        numbers = np.append(self.height, self.slope)
        if not np.isfinite(numbers).all():
            raise OptionError(
                "ground plane", found=numbers.tolist(), needed="finite numbers"
            )

    def heights_above(
        self, positions: Float[np.ndarray, "*point 3"]
    ) -> Float[np.ndarray, " *point"]:
        """Return the height of each point above its plane along z, in metres."""
        rise = positions[..., :2] @ np.asarray(self.slope)
        return np.asarray(positions[..., 2] - rise - self.height)

    @property
    def normal(self) -> Float[np.ndarray, " 3"]:
        """Unit vector out of the ground."""
        up = np.array([-self.slope[0], -self.slope[1], 1.0])
        return np.asarray(up / np.linalg.norm(up))

    @property
    def angle(self) -> float:
        """Angle between the ground and the horizontal plane, in radians."""
        return float(np.arctan(np.linalg.norm(self.slope)))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Motion(EvenlySampled):
    """Joint rotations of a skeleton over time; bone lengths never change."""

    skeleton: Skeleton
    T_world_root: Float[np.ndarray, "frame 4 4"]
    """Pose of the root joint, in metres."""

    wxyz: Float[np.ndarray, "frame joint 4"]
    """R_parent_joint as unit quaternions, sign-continuous. The root's parent is the
    world, so its rotation is that of `T_world_root`."""

    rate: float
    """Frames per second; NaN for frames that are not evenly spaced, as `at` gives."""

    start: float = 0.0
    """Time of the first frame in seconds."""

    angle_sd: Float[np.ndarray, "frame joint 3"] = empty_array(0, 0, 3)
    """Standard deviation of each joint rotation about the x, y and z axes of the
    joint's frame, in radians; 0 about axes on which the joint cannot rotate, NaN where
    nothing that was seen determines the angle, or where it is not known."""

    contacts: tuple[Contact, ...] = ()
    source: Source = field(default_factory=Source)
    """The file it was read from, if any, and what was found there."""

    def __post_init__(self) -> None:
        needed = (len(self.T_world_root), self.skeleton.n_joints)
        if self.wxyz.shape[:2] != needed:
            raise DataError("motion.wxyz", found=self.wxyz.shape[:2], needed=needed)
        if self.angle_sd.size == 0:
            object.__setattr__(self, "angle_sd", np.full((*needed, 3), np.nan))
        if self.angle_sd.shape[:2] != needed:
            found = self.angle_sd.shape[:2]
            raise DataError("motion.angle_sd", found=found, needed=needed)
        if not (0.0 < self.rate < np.inf or np.isnan(self.rate)):
            raise DataError(
                "motion.rate", found=self.rate, needed="a positive number of hertz"
            )
        object.__setattr__(self, "T_world_root", _whole(self.T_world_root))
        wxyz = geometry.quat_continuous(_unit(self._rotations_with_root()))
        object.__setattr__(self, "wxyz", wxyz)

    def _rotations_with_root(self) -> Float[np.ndarray, "frame joint 4"]:
        """Return the rotations, the root's taken from its pose where they differ."""
        wxyz = self.wxyz.astype(float, copy=False)
        R = self.T_world_root[:, :3, :3]
        same = (_distance(wxyz[:, 0], R) < TINY_ROTATION_ERROR).all()
        if same and (_norm_error(wxyz[:, 0]) < TINY_ROTATION_ERROR).all():
            return wxyz
        root = geometry.quat_from_matrix(R)
        error = _distance(root, R)
        if (error > ROTATION_ROUNDING).any():
            raise DataError(
                "motion.T_world_root",
                found=f"a matrix {np.nanmax(error):.2g} from the nearest rotation",
                needed="rigid transforms",
            )
        return np.concatenate([root[:, None], wxyz[:, 1:]], axis=1)

    def __repr__(self) -> str:
        return f"Motion({self.n_frames} frames at {self.rate:g} Hz of {self.skeleton})"

    def _repr_html_(self) -> str:
        """Return facts and tables for a notebook."""
        from marey.tables.notebooks import motion_to_html

        return motion_to_html(self)

    @property
    def n_frames(self) -> int:
        """Number of frames."""
        return len(self.wxyz)

    def T_world_joint(self) -> Float[np.ndarray, "frame joint 4 4"]:
        """Return the pose of every joint in the world, in metres."""
        return self.skeleton.forward(self.T_world_root, self.wxyz)

    def marker_points(self) -> Float[np.ndarray, "frame marker 3"]:
        """Return where the skeleton's markers are in the world, in metres."""
        joint, offset = self.skeleton.marker_joint, self.skeleton.marker_offset
        return geometry.apply_selected(self.T_world_joint(), joint, offset)

    def euler(self, order: str = "ZXY") -> Float[np.ndarray, "frame joint 3"]:
        """Return continuous, unwrapped Euler angles in radians.

        Args:
            order: Axes of the three intrinsic rotations, such as "ZXY".
        """
        return geometry.euler_continuous(self.wxyz, order)

    def at(self, time: float | Float[np.ndarray, " time"]) -> "Motion":
        """Return the motion at other times, smooth on SO(3) and exact on its frames.

        Between frames every rotation follows a cubic Hermite curve in the tangent space
        of the earlier frame, with angular velocities from the neighbouring frames; the
        root's position follows the same curve in space.

        Args:
            time: Seconds on the clock of `start`; one or several, in any order.

        Returns:
            One frame per time. `rate` is NaN.

        Raises:
            OptionError: If a time lies outside the motion.
            DataError: If the motion itself is not evenly spaced, or empty.
        """
        wanted = np.atleast_1d(np.asarray(time, dtype=float))
        # If `start` is large, times have few digits left.
        tolerance = SAME_FRAME + 2.0 * np.spacing(np.abs(wanted)) * self._even_rate()
        last = self.n_frames - 1
        position = snap_to_frames((wanted - self.start) * self.rate, tolerance, last)
        inside = (position >= 0.0) & (position <= last)
        if not inside.all():
            raise OptionError(
                "time",
                found=float(wanted[~inside][0]),
                needed=f"{self.start} to {self.start + self.duration} s",
            )
        start = float(wanted[0]) if len(wanted) else self.start
        return self._sample(position, rate=np.nan, start=start)

    def resample(self, rate: float) -> "Motion":
        """Return the motion at another frame rate, over the same time.

        Raises:
            OptionError: If the rate is not a positive number.
        """
        if not 0.0 < rate < np.inf:
            raise OptionError("rate", found=rate, needed="a positive number of hertz")
        position = frames_at_rate(self.n_frames, self._even_rate() / rate)
        return self._sample(position, rate=rate, start=self.start)

    def to_xarray(self, individual: str = "") -> "xr.Dataset":
        """Return a dataset of the joints with the dimensions of `movement`.

        `position` (time, space, keypoint, individual) in metres and `rotation` in the
        world as quaternions w x y z; the coordinate `parent` has the tree.

        Args:
            individual: Name of the subject.

        Raises:
            MissingExtraError: If xarray is not installed.
        """
        from marey.tables import motion_to_xarray  # xarray is slow to import

        return motion_to_xarray(self, individual)

    def rename(self, names: Mapping[str, str], option: str = "names") -> "Motion":
        """Return the motion with other names of some joints, in contacts too.

        Args:
            names: New name of each renamed joint, by its old name.
            option: What gives the names, for the error.

        Raises:
            OptionError: If two joints would have one name.
        """
        contacts = (
            replace(c, joint=names.get(c.joint, c.joint)) for c in self.contacts
        )
        skeleton = self.skeleton.rename(names, option)
        return replace(self, skeleton=skeleton, contacts=tuple(contacts))

    def cut(self, start: int, stop: int) -> "Motion":
        """Return frames `start` up to but not including `stop`, on the same clock."""
        if not 0 <= start < stop <= self.n_frames:
            raise DataError(
                f"frames {start}:{stop}",
                found=f"a motion of {self.n_frames} frames",
                needed=f"0 <= start < stop <= {self.n_frames}",
            )
        first, last = (self.start + i / self._even_rate() for i in (start, stop - 1))
        return replace(
            self,
            T_world_root=self.T_world_root[start:stop],
            wxyz=self.wxyz[start:stop],
            angle_sd=self.angle_sd[start:stop],
            start=first,
            contacts=tuple(
                c for c in self.contacts if c.end >= first and c.start <= last
            ),
        )

    def _even_rate(self) -> float:
        """Return the rate, of a motion that has one."""
        if np.isnan(self.rate) or self.n_frames == 0:
            what = "unevenly spaced" if self.n_frames else "no"
            raise DataError(
                "motion", found=f"{what} frames", needed="frames at one rate"
            )
        return self.rate

    def _sample(self, position: np.ndarray, *, rate: float, start: float) -> "Motion":
        """Return the motion at fractional frame numbers."""
        frame = position.astype(np.int64).clip(0, max(self.n_frames - 2, 0))
        share = position - frame
        wxyz = _curve_rotations(self.wxyz, frame, share)
        position_world = _curve_points(self.T_world_root[:, :3, 3], frame, share)
        T = geometry.transform(geometry.matrix_from_quat(wxyz[:, 0]), position_world)
        return replace(
            self,
            T_world_root=T,
            wxyz=wxyz,
            angle_sd=_interpolate(self.angle_sd, frame, share),
            rate=rate,
            start=start,
        )


def motion_on_clock(
    clock: EvenlySampled,
    skeleton: Skeleton,
    T_world_root: Float[np.ndarray, "frame 4 4"],
    wxyz: Float[np.ndarray, "frame joint 4"],
) -> Motion:
    """Return the motion of a skeleton in the frames of a take, or of another motion."""
    return Motion(
        skeleton=skeleton,
        T_world_root=T_world_root,
        wxyz=wxyz,
        rate=clock.rate,
        start=clock.start,
    )


def _whole(T: Float[np.ndarray, "frame 4 4"]) -> Float[np.ndarray, "frame 4 4"]:
    """Return poses that are NaN as a whole if any component is."""
    if np.isfinite(T).all() and (T[:, 3] == [0.0, 0.0, 0.0, 1.0]).all():
        return T.astype(float, copy=False)
    return geometry.transform(T[:, :3, :3], T[:, :3, 3])


def _unit(
    wxyz: Float[np.ndarray, "frame joint 4"],
) -> Float[np.ndarray, "frame joint 4"]:
    """Return the quaternions normalised, those of unit length unchanged."""
    blocks = (wxyz[frames] for frames in frame_blocks(len(wxyz)))
    if all((_norm_error(block) < TINY_ROTATION_ERROR).all() for block in blocks):
        return wxyz
    error = _norm_error(wxyz)
    if (error > ROTATION_ROUNDING).any():
        worst = np.linalg.norm(wxyz.reshape(-1, 4)[np.nanargmax(error)])
        raise DataError(
            "motion.wxyz",
            found=f"a quaternion of length {worst:.6g}",
            needed="unit quaternions",
        )
    size = np.linalg.norm(wxyz, axis=-1, keepdims=True)
    return np.where(error[..., None] < TINY_ROTATION_ERROR, wxyz, wxyz / size)


def _distance(
    wxyz: Float[np.ndarray, "frame 4"], R: Float[np.ndarray, "frame 3 3"]
) -> Float[np.ndarray, "frame 3 3"]:
    """Return the absolute difference between a matrix and that of a quaternion."""
    difference = geometry.matrix_from_quat(wxyz)
    difference -= R
    return np.asarray(np.abs(difference, out=difference))


def _norm_error(wxyz: Float[np.ndarray, "*batch 4"]) -> Float[np.ndarray, "*batch"]:
    """Return the difference of the norm of each quaternion from one."""
    error = np.asarray(np.einsum("...i,...i->...", wxyz, wxyz))
    np.sqrt(error, out=error)
    error -= 1.0
    return np.asarray(np.abs(error, out=error))


def _curve_rotations(
    wxyz: np.ndarray, frame: np.ndarray, share: np.ndarray
) -> np.ndarray:
    """Return rotations at a fraction of the step from each frame to the next."""
    if len(wxyz) < 2:
        return np.repeat(wxyz, len(frame), axis=0)
    step = geometry.quat_log(
        geometry.quat_multiply(geometry.quat_conjugate(wxyz[:-1]), wxyz[1:])
    )
    speed = _central(step)
    chord = step[frame]
    leaving, arriving = speed[frame], _to_tangent(chord, speed[frame + 1])
    large = np.linalg.norm(chord, axis=-1, keepdims=True) > MAX_CURVED_STEP
    curve = _hermite(chord, leaving, arriving, share[:, None, None])
    straight = share[:, None, None] * chord
    rotation = geometry.quat_exp(np.where(large | ~np.isfinite(curve), straight, curve))
    # A known frame stays exact even if its neighbours are unknown.
    exact = np.where((share == 1.0)[:, None, None], wxyz[frame + 1], wxyz[frame])
    between = geometry.quat_multiply(wxyz[frame], rotation)
    return np.where(((share == 0.0) | (share == 1.0))[:, None, None], exact, between)


def _curve_points(
    points: np.ndarray, frame: np.ndarray, share: np.ndarray
) -> np.ndarray:
    """Return points between frames on cubic Hermite curves, exact in the frames."""
    if len(points) < 2:
        return np.repeat(points, len(frame), axis=0)
    step = np.diff(points, axis=0)
    speed = _central(step)
    chord, s = step[frame], share[:, None]
    curve = _hermite(chord, speed[frame], speed[frame + 1], s)
    between = points[frame] + np.where(np.isfinite(curve), curve, s * chord)
    exact = np.where(s == 1.0, points[frame + 1], points[frame])
    return np.asarray(np.where((s == 0.0) | (s == 1.0), exact, between))


def _interpolate(
    values: np.ndarray, frame: np.ndarray, share: np.ndarray
) -> np.ndarray:
    """Return values between frames: those of the frames, linear between them."""
    if len(values) < 2:
        return np.repeat(values, len(frame), axis=0)
    s = share[:, None, None]
    first, second = values[frame], values[frame + 1]
    between = (1.0 - s) * first + s * second
    exact = np.where(s == 1.0, second, between)
    return np.asarray(np.where(s == 0.0, first, exact))


def _central(step: np.ndarray) -> np.ndarray:
    """Return the velocity at each frame: the mean of the steps on its two sides."""
    inner = 0.5 * (step[1:] + step[:-1])
    return np.concatenate([_end(step[:2]), inner, _end(step[:-3:-1])])


def _end(step: np.ndarray) -> np.ndarray:
    """Return the velocity at an end frame, from the parabola through three frames."""
    return step[:1] if len(step) < 2 else step[:1] + 0.5 * (step[:1] - step[1:2])


def _to_tangent(chord: np.ndarray, speed: np.ndarray) -> np.ndarray:
    """Return the rate of change of a rotation vector, from the body-frame velocity.

    This is the inverse right Jacobian of SO(3) at `chord`, applied to `speed`.
    """
    angle = np.linalg.norm(chord, axis=-1, keepdims=True)
    small = angle < geometry.TINY_ANGLE
    safe = np.where(small, 1.0, angle)
    half = 0.5 * safe
    gain = np.where(small, 1.0 / 12.0, (1.0 - half / np.tan(half)) / safe**2)
    bracket = np.cross(chord, speed)
    return np.asarray(speed + 0.5 * bracket + gain * np.cross(chord, bracket))


def _hermite(
    chord: np.ndarray, leaving: np.ndarray, arriving: np.ndarray, s: np.ndarray
) -> np.ndarray:
    """Return the cubic Hermite curve from 0 to `chord` with these end velocities."""
    rise = s * s * (1.0 + 2.0 * (1.0 - s))
    return np.asarray(
        rise * chord + s * (1.0 - s) ** 2 * leaving + s * s * (s - 1.0) * arriving
    )
