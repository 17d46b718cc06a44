"""A virtual skeleton in a stream of sensors: no optimisation, separations shown."""

from dataclasses import replace

import numpy as np

from marey.errors import DataError
from marey.live.frame import Frame
from marey.live.posing.tracking import SubjectPose, columns_of
from marey.skeleton import Skeleton
from marey.take import match_labels
from marey.virtual import VirtualSkeleton, calibrate_sensors


class VirtualTracker:
    """Follows the sensors of a skeleton directly (Bodenheimer1997, Sec. 2).

    Args:
        skeleton: A skeleton with sensors.
        rate: Frames per second.
        name: Name of the subject.
    """

    def __init__(self, skeleton: Skeleton, rate: float, name: str = "") -> None:
        if not skeleton.sensor_names:
            needed = "a skeleton with sensors; markers need no virtual skeleton"
            raise DataError("virtual skeleton", found="no sensors", needed=needed)
        self.skeleton, self.rate = skeleton, rate
        self.name = name or skeleton.names[0]
        self._virtual = VirtualSkeleton(skeleton)
        self._last = np.full((len(skeleton.sensor_names), 4, 4), np.nan)

    def update(self, frame: Frame) -> SubjectPose:
        """Return the virtual skeleton in a frame.

        Raises:
            DataError: If a name matches several sensors.
        """
        names = self.skeleton.sensor_names
        T = columns_of(frame.T_world_sensor, match_labels(names, frame.sensor_names))
        pose = self._virtual.update(T)
        seen = np.isfinite(T[:, 0, 0])
        self._last[seen] = T[seen]
        return SubjectPose(
            self.name,
            self.skeleton,
            pose.T_world_joint,
            int(seen.sum()),
            pose.separation,
        )

    def set_zero_pose(self) -> None:
        """Take the newest poses of the sensors for the rest pose of the skeleton.

        Raises:
            DataError: If a sensor was never seen.
        """
        skeleton = calibrate_sensors(self.skeleton, self._last[None])
        self.skeleton = replace(skeleton, names=self.skeleton.names)
        self._virtual = VirtualSkeleton(self.skeleton)
