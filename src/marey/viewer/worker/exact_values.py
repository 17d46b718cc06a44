"""Exact values of one marker or joint at every recorded frame."""

import numpy as np

from marey.errors import OptionError
from marey.io.formats.html import (
    SceneArrays,
    clinical_angles,
    joint_gaps,
    marker_residuals,
    scene_subjects,
)
from marey.motion import Motion
from marey.numerics import geometry
from marey.solution import Solution
from marey.take import Take


def encode_exact_values(
    content: Solution | Motion | Take,
    *,
    take: int,
    marker: int | None = None,
    subject: int | None = None,
    joint: int | None = None,
) -> bytes:
    """Return the encoded values of a marker or a joint at every recorded frame.

    The values are arrays in single precision. Of a marker: `points`, its position in
    metres, and `residual`, its distance in metres from its predicted position on the
    skeleton. Of a joint: `points`, its centre in metres; `angles`, unwrapped ZXY Euler
    angles in degrees; `clinical`, its clinical angles in degrees, if it has any; and
    `gap`, the distance in metres between the centre as the one body predicts it and as
    the other does. An unknown value is NaN.

    Args:
        content: The content of the open file, with edits.
        take: Index of the take.
        marker: Index of a marker in the take.
        subject: Index of a subject, with `joint`.
        joint: Index of a joint of the subject.

    Raises:
        OptionError: If there is no such take, marker or joint.
    """
    takes = content.takes if isinstance(content, Solution) else (content,)
    chosen = takes[_check_index("take", take, len(takes))]
    motions = [content] if isinstance(content, Motion) else []
    if isinstance(content, Solution):
        motions = [person.motions[take] for person in content.subjects]
    arrays = SceneArrays()
    if marker is not None and isinstance(chosen, Take):
        column = _check_index("marker", marker, len(chosen.labels))
        arrays.floats("points", chosen.points[:, column])
        arrays.floats("residual", marker_residuals(chosen, motions)[:, column])
        return arrays.encode({"take": take, "first": 0})
    number = _check_index("subject", subject, len(motions))
    motion = motions[number]
    index = _check_index("joint", joint, motion.skeleton.n_joints)
    angles = geometry.euler_continuous(motion.wxyz[:, index : index + 1], "ZXY")
    arrays.floats("points", motion.T_world_joint()[:, index, :3, 3])
    arrays.floats("angles", np.degrees(angles[:, 0]))
    clinical = clinical_angles(motion)
    if clinical is not None and motion.skeleton.names[index] in clinical.joints:
        of_joint = np.array(clinical.joints) == motion.skeleton.names[index]
        arrays.floats("clinical", clinical.degrees[:, of_joint])
    if isinstance(content, Solution):
        bodies = content.bodies[take]
        gaps = joint_gaps(scene_subjects(content)[number], bodies, content.joints)
        arrays.floats("gap", gaps[:, index])
    return arrays.encode({"take": take, "first": 0})


def _check_index(name: str, value: int | None, count: int) -> int:
    """Return a valid index; raise `OptionError` otherwise."""
    if value is None or not 0 <= value < count:
        raise OptionError(name, found=value, needed=f"a number from 0 to {count - 1}")
    return value
