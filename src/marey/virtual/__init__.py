"""A virtual skeleton from 6-DoF sensors alone, frame by frame, without optimisation.

The monitor of a recording session (Bodenheimer1997, Sec. 2): limbs have the poses of
their own sensors, bones between them are inferred, and joints separate where the
calibration deteriorates. Bone lengths are estimated from it, and poses fitted to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from marey.errors import DataError
from marey.numerics import Array, Bool, Float, geometry, robust
from marey.numerics.thresholds import FEW, MARKER_NOISE_M, OUTLIER_SD, SKIN_MOTION_M
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.take import Take
from marey.virtual.aim import AimedBone
from marey.virtual.limbs import LAYOUTS as LAYOUTS
from marey.virtual.limbs import VirtualLimb as VirtualLimb
from marey.virtual.limbs import check_limbs, driving_sensors, make_limbs
from marey.virtual.zero_pose import calibrate_sensors as calibrate_sensors

MAX_SEPARATION_M = OUTLIER_SD * SKIN_MOTION_M
"""Median separation of a joint, or its growth over the take, in metres, beyond which
it is reported. Higher reports fewer joints."""


@dataclass(frozen=True, slots=True, eq=False)
class VirtualPose:
    """The virtual skeleton in one frame."""

    T_world_joint: Float[Array, "joint 4 4"]
    """Pose of every joint, in metres."""

    separation: Float[Array, " joint"]
    """Distance between the positions that a joint's two bones give it, in metres; NaN
    where only one of them does."""


@dataclass(frozen=True, slots=True, eq=False)
class VirtualMotion:
    """The virtual skeleton over a take; its bones are not of constant length."""

    skeleton: Skeleton
    take: Take
    T_world_joint: Float[Array, "frame joint 4 4"]
    separation: Float[Array, "frame joint"]
    limbs: tuple[VirtualLimb, ...]

    @property
    def positions(self) -> Float[Array, "frame joint 3"]:
        """Positions of the joints, in metres."""
        return self.T_world_joint[..., :3, 3]

    def as_take(self) -> Take:
        """Return a take with one sensor per limb at its joint, for `solve_pose`.

        "The data used in this step is not the sensor data, but data which represents
        the translation and rotation for each joint" (Sec. 2.2).
        """
        joints = [self.skeleton.index(limb.joint) for limb in self.limbs]
        return replace(
            self.take,
            T_world_sensor=self.T_world_joint[:, joints],
            sensor_names=tuple(limb.joint for limb in self.limbs),
        )

    def outlier_joints(
        self,
        *,
        threshold: float = robust.OUTLIER_SCALES,
        adjacent_threshold: float = robust.SUSPECT_SCALES,
    ) -> Bool[Array, "frame joint"]:
        """Return the joints with gross errors, frame by frame, for `solve_pose`.

        A sensor with a gross error separates the limbs that depend on it from others.
        Each outlier of a separation is attributed to the sensor that explains most of
        them, and all joints that depend on this sensor are tagged. An error that
        separates no joint, such as in a hand's rotation, is not found.

        Args:
            threshold: Scales beyond which a separation is an outlier; see
                `marey.numerics.robust.tag_outliers`.
            adjacent_threshold: The same next to an outlier.
        """
        depends = driving_sensors(self.skeleton, self.limbs)
        parent = np.maximum(self.skeleton.parent, 0)
        joints = np.flatnonzero(np.isfinite(self.separation).any(axis=0))
        outliers = robust.tag_outliers(
            self.separation[:, joints],
            outlier=threshold,
            suspect=adjacent_threshold,
            min_scale=MARKER_NOISE_M,
        )
        sensors = (depends[joints] | depends[parent[joints]]).astype(np.int64)
        faulty = robust.attribute_outliers(outliers, sensors)
        return np.asarray(faulty.astype(np.int64) @ depends.T.astype(np.int64) > 0)

    def findings(self) -> tuple[Finding, ...]:
        """Return the joints whose two bones are apart, or move apart."""
        return tuple(
            finding
            for joint, name in enumerate(self.skeleton.names)
            for finding in _separation_findings(name, self.separation[:, joint])
        )


class VirtualSkeleton:
    """A skeleton driven by its sensors, one frame after the other."""

    def __init__(
        self,
        skeleton: Skeleton,
        sensor_names: Sequence[str] = (),
        *,
        layout: str | Sequence[str] = "",
        limbs: Sequence[VirtualLimb] = (),
    ) -> None:
        """Prepare the rules of all limbs.

        Args:
            skeleton: With its sensor offsets; `calibrate_sensors` sets them.
            sensor_names: The sensors of the stream, in its order; those of the
                skeleton when left out.
            layout: "13", "18", or names of the bones whose sensors are used; all when
                left out.
            limbs: The rule of every bone, parents first; from the layout when left
                out.

        Raises:
            OptionError: If the layout is not known, or names a bone that is not there,
                or a limb names a joint or a sensor that is not there.
            DataError: If the root has no sensor of the layout.
        """
        names = tuple(sensor_names) or skeleton.sensor_names
        self.skeleton = skeleton
        self.limbs = tuple(limbs) or make_limbs(skeleton, names, layout)
        check_limbs(self.limbs, skeleton, names)
        self._n_sensors = len(names)
        self._limb_of = {skeleton.index(limb.joint): limb for limb in self.limbs}
        sensor_of = {j: limb.sensor for j, limb in self._limb_of.items() if limb.sensor}
        offsets = [skeleton.sensor_names.index(name) for name in sensor_of.values()]
        self._sensor_joint = tuple(sensor_of)
        self._column = [names.index(sensor) for sensor in sensor_of.values()]
        self._T_sensor_joint = geometry.inverse(skeleton.T_joint_sensor[offsets])
        self._aimed_bones = {
            joint: AimedBone(skeleton, joint, limb)
            for joint, limb in self._limb_of.items()
            if limb.constraint == "aimed"
        }
        self.reset()

    def reset(self) -> None:
        """Forget the last frame."""
        self._R_parent_joint = np.tile(np.eye(3), (self.skeleton.n_joints, 1, 1))
        self._root = self.skeleton.offset[0]

    def update(self, T_world_sensor: Float[Array, "sensor 4 4"]) -> VirtualPose:
        """Return the virtual skeleton of one frame.

        A limb whose sensor is not seen keeps its last rotation in its parent, or that
        at rest; the root keeps its position.

        Args:
            T_world_sensor: Poses of the stream's sensors, NaN where unseen.
        """
        if len(T_world_sensor) != self._n_sensors:
            raise DataError(
                "frame",
                found=f"{len(T_world_sensor)} sensors",
                needed=f"{self._n_sensors}",
            )
        skeleton = self.skeleton
        T_by_sensor = T_world_sensor[self._column] @ self._T_sensor_joint
        is_seen = np.isfinite(T_by_sensor).all(axis=(-1, -2))
        measured = {
            j: T_by_sensor[k] for k, j in enumerate(self._sensor_joint) if is_seen[k]
        }
        T = np.tile(np.eye(4), (skeleton.n_joints, 1, 1))
        separation = np.full(skeleton.n_joints, np.nan)
        for joint, parent in enumerate(skeleton.parent):
            R_parent, start = np.eye(3), self._root
            if parent >= 0:
                R_parent = T[parent, :3, :3]
                start = R_parent @ skeleton.offset[joint] + T[parent, :3, 3]
            kept = R_parent @ self._R_parent_joint[joint]
            R, position = self._limb_pose(joint, kept, start, measured)
            T[joint, :3, :3], T[joint, :3, 3] = R, position
            if R is not kept:  # else rounding would grow from frame to frame
                self._R_parent_joint[joint] = R_parent.T @ R
            if parent >= 0 and position is not start:
                separation[joint] = np.sqrt((position - start) @ (position - start))
        self._root = T[0, :3, 3].copy()
        return VirtualPose(T, separation)

    def _limb_pose(
        self, joint: int, kept: Array, start: Array, measured: dict[int, Array]
    ) -> tuple[Array, Array]:
        """Return rotation and position of a joint's limb by its rule.

        Args:
            joint: The joint of the limb.
            kept: Its rotation if it keeps that in its parent.
            start: Its position by its parent.
            measured: Poses of joints by their sensors, of those that are seen.
        """
        limb = self._limb_of.get(joint)
        if limb is None:
            return kept, start
        if limb.constraint == "aimed":
            return self._aimed_bones[joint].pose(kept, start, measured)
        if joint not in measured or limb.constraint == "rigid":
            return kept, start
        T = measured[joint]
        return T[:3, :3], start if limb.constraint == "oriented" else T[:3, 3]


def compute_motion(
    skeleton: Skeleton,
    take: Take,
    *,
    layout: str | Sequence[str] = "",
    limbs: Sequence[VirtualLimb] = (),
) -> VirtualMotion:
    """Return the virtual skeleton in every frame of a take.

    Implements Bodenheimer1997, Sec. 2.1. Primary limbs have the poses of their own
    sensors, so that an error stays where it is made; others are inferred by direction
    and up vector. Departure: where an up vector is nearly parallel to the limb, its
    share is the squared sine of the angle and the twist otherwise stays as it was in
    the parent; the paper animates it by hand.

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


def with_joint_sensors(skeleton: Skeleton) -> Skeleton:
    """Return the skeleton with one sensor at every joint, as `as_take` has them."""
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


def _separation_findings(
    name: str, separation: Float[Array, " frame"]
) -> tuple[Finding, ...]:
    """Return a finding if a joint's bones are apart, or are at the end of the take."""
    known = separation[np.isfinite(separation)]
    n_few = int(FEW * len(known))
    if n_few == 0:
        return ()
    first, last = (float(np.median(p)) for p in (known[:n_few], known[-n_few:]))
    median = float(np.median(known))
    if last - first > MAX_SEPARATION_M:
        code, value = "joint-separating", last - first
        message = (
            f"its two bones moved apart from {100 * first:.1f} to {100 * last:.1f} cm: "
            "a sensor has slipped, calibrate again"
        )
    elif median > MAX_SEPARATION_M:
        code, value = "joint-separated", median
        message = (
            f"its two bones are {100 * median:.1f} cm apart: check the bone lengths "
            "and the sensor offsets"
        )
    else:
        return ()
    return (Finding(code, "virtual", "warning", message, subject=name, value=value),)
