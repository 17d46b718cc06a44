"""Joint centres of a free motion as further markers of a given skeleton.

The bones of a given skeleton fit no recording exactly, and markers on skin alone would
move its joints by centimetres. The centres that the recording shows keep them in place.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from marey.attach.match import JointMatch
from marey.motion import Motion
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.take import Take

CENTER = "joint centre:"
"""Beginning of the labels of joint centres among those of markers."""


def drop_center_findings(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the findings of a calibration that are not about joint centres.

    Its residual is that of markers and centres together.
    """
    return tuple(
        one
        for one in findings
        if one.code != "calibrated" and not one.subject.startswith(CENTER)
    )


def center_labels(skeleton: Skeleton) -> tuple[str, ...]:
    """Return the labels of the joint centres among the markers of a skeleton."""
    return tuple(x for x in skeleton.marker_labels if x.startswith(CENTER))


def add_center_markers(given: Skeleton, matches: Sequence[JointMatch]) -> Skeleton:
    """Return the skeleton with a marker at each joint whose place corresponds."""
    joints = [match.joint for match in matches if match.weight == 1.0]
    labels = tuple(CENTER + given.names[joint] for joint in joints)
    center = np.zeros((len(joints), 3))
    return replace(
        given,
        marker_labels=(*given.marker_labels, *labels),
        marker_joint=np.append(given.marker_joint, joints).astype(np.int64),
        marker_offset=np.concatenate([given.marker_offset, center]),
    )


def drop_center_markers(skeleton: Skeleton) -> Skeleton:
    """Return the skeleton without the markers of `add_center_markers`."""
    labels = skeleton.marker_labels
    kept = [i for i, label in enumerate(labels) if not label.startswith(CENTER)]
    return replace(
        skeleton,
        marker_labels=tuple(labels[i] for i in kept),
        marker_joint=skeleton.marker_joint[kept],
        marker_offset=skeleton.marker_offset[kept],
    )


def add_center_points(
    take: Take, motion: Motion, given: Skeleton, matches: Sequence[JointMatch]
) -> Take:
    """Return the take with the joint centres of a free motion in it as markers."""
    centers = [match for match in matches if match.weight == 1.0]
    points = motion.T_world_joint()[..., :3, 3][:, [match.free for match in centers]]
    labels = tuple(CENTER + given.names[match.joint] for match in centers)
    return Take(
        rate=take.rate,
        points=np.concatenate([take.points, points], axis=1),
        labels=(*take.full_labels, *labels),
        T_world_sensor=take.T_world_sensor,
        sensor_names=take.sensor_names,
        start=take.start,
    )
