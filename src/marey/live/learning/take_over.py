"""Taking over a new skeleton in mid-stream without a jump."""

from collections.abc import Sequence

import numpy as np

from marey.live.posing.tracking import SubjectPose
from marey.numerics import Array, Float, geometry
from marey.skeleton import Skeleton

FADE_S = 0.5
"""Seconds in which joints move from where the old skeleton had them to where the new
one has them. Higher is smoother, and shows the old skeleton for longer."""


class Fade:
    """Shows a new skeleton where the old one was, and lets the difference vanish.

    Joints are the same if most markers and sensors of their bones are; of bones without
    any, if they have the same name. The difference of a joint's pose, seen from the new
    one, is scaled down along a screw motion; joints that are new move with their
    parents.

    Args:
        old: The poses that were shown last.
        new: The pose of the new skeleton in the same frame.
        frames: Frames in which the difference vanishes.
    """

    def __init__(
        self, old: Sequence[SubjectPose], new: SubjectPose, frames: float
    ) -> None:
        skeleton = new.skeleton
        self._twist = np.full((skeleton.n_joints, 6), np.nan)
        for joint, T in _same_joints(old, skeleton).items():
            offset = geometry.inverse(new.T_world_joint[joint]) @ T
            self._twist[joint] = geometry.transform_log(offset)
        self._frames, self._n = frames, 0

    @property
    def has_ended(self) -> bool:
        """Whether nothing is left of the difference."""
        return self._n >= self._frames

    def update(self, pose: SubjectPose) -> Float[Array, "joint 4 4"]:
        """Return the joints to show in the next frame, in metres."""
        share = min(self._n / self._frames, 1.0)
        self._n += 1
        left = 1.0 - share * share * (3.0 - 2.0 * share)
        offset = geometry.transform_exp(left * np.nan_to_num(self._twist))
        T, parent = pose.T_world_joint, pose.skeleton.parent
        shown = T @ offset
        for joint in np.flatnonzero(np.isnan(self._twist[:, 0])).tolist():
            if (above := parent[joint]) >= 0:
                T_parent_joint = geometry.inverse(T[above]) @ T[joint]
                shown[joint] = shown[above] @ T_parent_joint
        return np.asarray(shown)


def _same_joints(
    old: Sequence[SubjectPose], skeleton: Skeleton
) -> dict[int, Float[Array, "4 4"]]:
    """Return the old pose of each joint of a skeleton that was there before."""
    owner = {
        name: (subject, joint)
        for subject in old
        for name, joint in _joint_of_each_target(subject.skeleton).items()
    }
    same = {
        joint: subject.T_world_joint[subject.skeleton.names.index(name)]
        for subject in old
        for joint, name in enumerate(skeleton.names)
        if name in subject.skeleton.names
    }
    targets = _joint_of_each_target(skeleton)
    for joint in sorted(set(targets.values())):
        before = [owner.get(name) for name, at in targets.items() if at == joint]
        known = [one for one in before if one is not None]
        if known:
            subject, was = max(known, key=known.count)
            same[joint] = subject.T_world_joint[was]
    return same


def _joint_of_each_target(skeleton: Skeleton) -> dict[str, int]:
    """Return the joint whose bone each marker and sensor is on, by name."""
    names = (*skeleton.marker_labels, *skeleton.sensor_names)
    joints = (*skeleton.marker_joint.tolist(), *skeleton.sensor_joint.tolist())
    return dict(zip(names, joints, strict=True))
