"""Taking over a new skeleton in mid-stream without a jump."""

from collections.abc import Sequence

import numpy as np

from marey.live.posing.tracking import SubjectPose
from marey.numerics import Array, Float, geometry
from marey.skeleton import Skeleton
from marey.tree import ancestors_of

FADE_S = 0.5
"""Seconds in which joints move from where the old skeleton had them to where the new
one has them. Higher is smoother, and shows the old skeleton for longer."""


class Fade:
    """Shows a new skeleton where the old one was, and lets the difference vanish.

    Joints are the same if most markers and sensors of their bones are; of bones without
    any, if they have the same name. Where the root is another, the joint between two
    bones stays, though the other bone moves about it. The difference of a joint's pose,
    seen from the new one, is scaled down along a screw motion; joints that are new move
    with their parents.

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
    same = {
        joint: subject.T_world_joint[subject.skeleton.names.index(name)]
        for subject in old
        for joint, name in enumerate(skeleton.names)
        if name in subject.skeleton.names
    }
    bones = _same_bones(old, skeleton)
    for joint, (subject, was) in bones.items():
        above = _bone_above(skeleton, joint)
        T = subject.T_world_joint[was].copy()
        if above < 0 <= _bone_above(subject.skeleton, was):
            continue  # The new root: no joint was there, unless it has the same name.
        other, link = bones.get(above, (None, -1))
        if other is subject and _bone_above(subject.skeleton, link) == was:
            # The tree has another root: the bone above was the child of this one.
            T[:3, 3] = subject.T_world_joint[link, :3, 3]
        same[joint] = T
    return same


def _same_bones(
    old: Sequence[SubjectPose], skeleton: Skeleton
) -> dict[int, tuple[SubjectPose, int]]:
    """Return the old joint of each bone most of whose markers and sensors it had."""
    owner = {
        name: (subject, joint)
        for subject in old
        for name, joint in _joint_of_each_target(subject.skeleton).items()
    }
    targets = _joint_of_each_target(skeleton)
    same = {}
    for joint in sorted(set(targets.values())):
        before = [owner.get(name) for name, at in targets.items() if at == joint]
        known = [one for one in before if one is not None]
        if known:
            same[joint] = max(known, key=known.count)
    return same


def _bone_above(skeleton: Skeleton, joint: int) -> int:
    """Return the next joint above whose bone has markers or sensors; -1 if none."""
    carriers = set(_joint_of_each_target(skeleton).values())
    above = ancestors_of(skeleton.parent, joint)[1:]
    return next((one for one in above if one in carriers), -1)


def _joint_of_each_target(skeleton: Skeleton) -> dict[str, int]:
    """Return the joint whose bone each marker and sensor is on, by name."""
    names = (*skeleton.marker_labels, *skeleton.sensor_names)
    joints = (*skeleton.marker_joint.tolist(), *skeleton.sensor_joint.tolist())
    return dict(zip(names, joints, strict=True))
