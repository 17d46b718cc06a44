"""A virtual skeleton from sensors alone, frame by frame, without inverse kinematics.

What a director watches while recording (Bodenheimer1997, Sec. 2): limbs that stand
where their own sensors say, bones between them inferred, and joints that come apart
where the calibration deteriorates. What it gives is also what lengths are estimated
from, and what poses are fitted to.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from marey.errors import DataError
from marey.numerics import geometry, robust
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.take import Take
from marey.virtual.limbs import LAYOUTS as LAYOUTS
from marey.virtual.limbs import Limb as Limb
from marey.virtual.limbs import bend_axis, check_limbs, drivers, limbs_of
from marey.virtual.rotations import swung, twisted, unit
from marey.virtual.zero import zeroed as zeroed

Array = np.ndarray

RESOLUTION = 2e-3
"""Scatter of a gap, in metres, below which wild ones are not looked for."""

APART = 0.03
"""Joints further apart than this on the whole, in metres, are reported; and those
whose gap has grown by more."""


@dataclass(frozen=True, slots=True, eq=False)
class VirtualPose:
    """The virtual skeleton in one frame."""

    T_world_joint: Float[Array, "joint 4 4"]
    """Pose of every joint, in metres."""

    separation: Float[Array, " joint"]
    """Distance of where a joint's two bones put it, in metres; NaN where only one of
    them says so."""


@dataclass(frozen=True, slots=True, eq=False)
class VirtualMotion:
    """The virtual skeleton over a take; its bones are not of constant length."""

    skeleton: Skeleton
    take: Take
    T_world_joint: Float[Array, "frame joint 4 4"]
    separation: Float[Array, "frame joint"]
    limbs: tuple[Limb, ...]

    @property
    def positions(self) -> Float[Array, "frame joint 3"]:
        """Where the joints are, in metres."""
        return self.T_world_joint[..., :3, 3]

    def as_take(self) -> Take:
        """Return the joints as if each wore a sensor, for `solve_pose`.

        "The data used in this step is not the sensor data, but data which represents
        the translation and rotation for each joint" (Sec. 2.2).
        """
        mine = [self.skeleton.index(limb.joint) for limb in self.limbs]
        return replace(
            self.take,
            T_world_sensor=self.T_world_joint[:, mine],
            sensor_names=tuple(limb.joint for limb in self.limbs),
        )

    def wild_joints(
        self, *, wild: float = robust.OUTLIER_SCALES, doubtful: float = robust.SUSPECT_SCALES
    ) -> Bool[Array, "frame joint"]:
        """Return the joints that are wildly off, frame by frame, for `solve_pose`.

        A sensor that is off shows where the limbs it drives part from others. Of the
        sensors that have part in a gap, the one is blamed that explains most; all that
        it drives is tagged. What no gap shows, such as a hand's rotation, is not told.

        Args:
            wild: Scales of a gap beyond which it is wild; see `marey.numerics.robust.tag_outliers`.
            doubtful: The same next to a wild one.
        """
        driven = drivers(self.skeleton, self.limbs)
        above = np.maximum(self.skeleton.parent, 0)
        gaps = np.flatnonzero(np.isfinite(self.separation).any(axis=0))
        off = robust.tag_outliers(
            self.separation[:, gaps], wild=wild, doubtful=doubtful, least=RESOLUTION
        )
        ends = (driven[gaps] | driven[above[gaps]]).astype(np.int64)
        guilty = robust.attribute_outliers(off, ends)
        return np.asarray(guilty.astype(np.int64) @ driven.T.astype(np.int64) > 0)

    def findings(self) -> tuple[Finding, ...]:
        """Return the joints whose two bones stand apart, or more and more so."""
        return tuple(
            finding
            for joint, name in enumerate(self.skeleton.names)
            for finding in _gaping(name, self.separation[:, joint])
        )


class VirtualSkeleton:
    """Sensors that drive a skeleton, one frame after the other."""

    def __init__(
        self,
        skeleton: Skeleton,
        sensor_names: Sequence[str] = (),
        *,
        layout: str | Sequence[str] = "",
        limbs: Sequence[Limb] = (),
    ) -> None:
        """Make ready.

        Args:
            skeleton: With its sensors' offsets; `zeroed` sets them from a zero pose.
            sensor_names: The sensors of the stream, in its order; those of the
                skeleton when left out.
            layout: "13", "18", or names of the bones whose sensors are used; all when
                left out.
            limbs: How every bone is placed, parents first; from the layout when left
                out.

        Raises:
            OptionError: If the layout is not known, or names a bone that is not there,
                or a limb names a joint or a sensor that is not there.
            DataError: If the root wears no sensor of the layout.
        """
        names = tuple(sensor_names) or skeleton.sensor_names
        self.skeleton = skeleton
        self.limbs = tuple(limbs) or limbs_of(skeleton, names, layout)
        check_limbs(self.limbs, skeleton, names)
        self._n_sensors = len(names)
        self._by_joint = {skeleton.index(limb.joint): limb for limb in self.limbs}
        worn = {j: limb.sensor for j, limb in self._by_joint.items() if limb.sensor}
        own = [skeleton.sensor_names.index(sensor) for sensor in worn.values()]
        self._wearer = tuple(worn)
        self._column = [names.index(sensor) for sensor in worn.values()]
        self._T_sensor_joint = geometry.inverse(skeleton.T_joint_sensor[own])
        self._bones = {
            joint: _Bone(skeleton, joint, limb)
            for joint, limb in self._by_joint.items()
            if limb.how == "pointed"
        }
        self.rest()

    def rest(self) -> None:
        """Forget the last frame."""
        self._R = np.tile(np.eye(3), (self.skeleton.n_joints, 1, 1))
        self._root = self.skeleton.offset[0]

    def update(self, T_world_sensor: Float[Array, "sensor 4 4"]) -> VirtualPose:
        """Return the virtual skeleton of one frame.

        A limb whose sensor is not seen keeps its last rotation in its parent, the one
        at rest if there is none; the root stays where it was.

        Args:
            T_world_sensor: Poses of the stream's sensors, NaN where unseen.
        """
        if len(T_world_sensor) != self._n_sensors:
            raise DataError(
                "frame",
                found=f"{len(T_world_sensor)} sensors",
                needed=f"{self._n_sensors}",
            )
        told = T_world_sensor[self._column] @ self._T_sensor_joint
        seen = np.isfinite(told).all(axis=(-1, -2))
        said = {j: told[k] for k, j in enumerate(self._wearer) if seen[k]}
        skeleton = self.skeleton
        T = np.empty((skeleton.n_joints, 4, 4))
        apart = np.full(skeleton.n_joints, np.nan)
        T[..., 3, :] = [0.0, 0.0, 0.0, 1.0]
        for joint, parent in enumerate(skeleton.parent):
            above = T[parent] if parent >= 0 else np.eye(4)
            start = self._root
            if parent >= 0:
                start = above[:3, :3] @ skeleton.offset[joint] + above[:3, 3]
            held = above[:3, :3] @ self._R[joint]
            R, place = self._place(joint, held, start, said)
            T[joint, :3, :3], T[joint, :3, 3] = R, place
            if R is not held:  # else rounding would grow from frame to frame
                self._R[joint] = above[:3, :3].T @ R
            if parent >= 0 and place is not start:
                apart[joint] = np.sqrt((place - start) @ (place - start))
        self._root = T[0, :3, 3].copy()
        return VirtualPose(T, apart)

    def _place(
        self, joint: int, held: Array, start: Array, said: dict[int, Array]
    ) -> tuple[Array, Array]:
        """Return rotation and place of a joint's limb, or what is held of them.

        Args:
            joint: Whose limb.
            held: Its rotation as it was in its parent.
            start: Where its parent puts it.
            said: Poses of limbs by their sensors, of those that are seen.
        """
        limb = self._by_joint.get(joint)
        if limb is None:
            return held, start
        own = said.get(joint)
        if limb.how == "pointed":
            return self._bones[joint].placed(held, start, own, said)
        if own is None or limb.how == "carried":
            return held, start
        return own[:3, :3], start if limb.how == "hung" else own[:3, 3]


class _Bone:
    """A limb that points to the joint of another."""

    def __init__(self, skeleton: Skeleton, joint: int, limb: Limb) -> None:
        self.to, self.far = skeleton.index(limb.to), limb.far
        rest = skeleton.rest()[:, :3, 3]
        self.offset = rest[self.to] - rest[joint]
        self.bone = unit(self.offset)
        self.length = float(np.linalg.norm(self.offset))
        axis = bend_axis(skeleton, self.to)
        side = -np.cross(axis, self.bone)
        self.side = unit(side)
        self.up = limb.aside * self.side - _along(skeleton, self.to)
        self.size = float(np.linalg.norm(self.up))
        # The limb it points to may bend about no known axis, or end without a bone.
        self.knows_twist = bool(np.isfinite([self.side, self.up]).all())

    def placed(
        self,
        held: Float[Array, "3 3"],
        start: Float[Array, " 3"],
        own: Float[Array, "4 4"] | None,
        said: dict[int, Array],
    ) -> tuple[Array, Array]:
        """Return the limb's rotation and place.

        Args:
            held: Its rotation as it was in its parent.
            start: Where its parent puts its joint.
            own: Its pose by its own sensor, if that is seen.
            said: Poses of limbs by their sensors, of those that are seen.
        """
        other = said.get(self.to)
        if other is not None:
            end = other[:3, 3]
        elif own is not None:
            end = own[:3, :3] @ self.offset + own[:3, 3]
        else:
            return held, start
        R, way = held if own is None else own[:3, :3], unit(end - start)
        if np.isnan(way[0]) or np.isnan(self.bone[0]):
            return R, start
        R = swung(R, self.bone, way)
        if own is None and other is not None and self.knows_twist:
            R = twisted(R, way, self.side, other[:3, :3] @ self.up, self.size)
        return R, end - self.length * way if self.far else start


def _along(skeleton: Skeleton, joint: int) -> Float[Array, " 3"]:
    """Return where a joint's bone points at rest: to its farthest child."""
    offset = skeleton.offset[skeleton.parent == joint]
    if not len(offset):
        return np.full(3, np.nan)
    return unit(offset[np.linalg.norm(offset, axis=1).argmax()])


def follow(
    skeleton: Skeleton,
    take: Take,
    *,
    layout: str | Sequence[str] = "",
    limbs: Sequence[Limb] = (),
) -> VirtualMotion:
    """Return the virtual skeleton in every frame of a take.

    Implements Bodenheimer1997, Sec. 2.1. Primary limbs keep the pose that their own
    sensors tell, so that an error stays where it is made; others are inferred by
    direction and up vector. Departure: where an up vector says little, the twist keeps
    to what it was in the parent by the squared sine of the angle, instead of being
    animated by hand.

    Args:
        skeleton: With its sensors.
        take: The recording; sensors are matched by name.
        layout: As for `VirtualSkeleton`.
        limbs: As for `VirtualSkeleton`.

    Raises:
        DataError: If the root's sensor is not in the take.
        OptionError: As for `VirtualSkeleton`.
    """
    if not take.sensor_names:
        raise DataError("virtual skeleton", found="no sensors", needed="6-DoF sensors")
    virtual = VirtualSkeleton(skeleton, take.sensor_names, layout=layout, limbs=limbs)
    poses = [virtual.update(T) for T in take.T_world_sensor]
    n = skeleton.n_joints
    return VirtualMotion(
        skeleton,
        take,
        np.array([pose.T_world_joint for pose in poses]).reshape(-1, n, 4, 4),
        np.array([pose.separation for pose in poses]).reshape(-1, n),
        virtual.limbs,
    )


def jointed(skeleton: Skeleton) -> Skeleton:
    """Return the skeleton as if every joint wore a sensor: fits `as_take`."""
    n = skeleton.n_joints
    return replace(
        skeleton,
        marker_labels=(),
        marker_joint=np.zeros(0, dtype=np.int64),
        marker_offset=np.zeros((0, 3)),
        sensor_names=skeleton.names,
        sensor_joint=np.arange(n),
        T_joint_sensor=np.tile(np.eye(4), (n, 1, 1)),
    )


def _gaping(name: str, apart: Float[Array, " frame"]) -> tuple[Finding, ...]:
    """Return what is to be said of one joint."""
    known = apart[np.isfinite(apart)]
    quarter = len(known) // 4
    if quarter == 0:
        return ()
    first, last = (float(np.median(p)) for p in (known[:quarter], known[-quarter:]))
    whole = float(np.median(known))
    if last - first > APART:
        return (
            Finding(
                "joint-parting",
                "virtual",
                "warning",
                f"its two bones came apart, from {100 * first:.1f} to "
                f"{100 * last:.1f} cm: a sensor has moved, calibrate again",
                subject=name,
                value=last - first,
            ),
        )
    if whole > APART:
        return (
            Finding(
                "joint-apart",
                "virtual",
                "warning",
                f"its two bones are {100 * whole:.1f} cm apart: check the lengths and "
                "the offsets of the sensors",
                subject=name,
                value=whole,
            ),
        )
    return ()
