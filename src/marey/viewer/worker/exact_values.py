"""Exact values of one marker or joint at every recorded frame."""

import numpy as np

from marey.errors import OptionError
from marey.io.formats.html import (
    SceneArrays,
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
    angles in degrees; and `gap`, the distance in metres between the centre as the one
    body predicts it and as the other does. An unknown value is NaN.

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
    arrays = SceneArrays()
    chosen = takes[_check_index("take", take, len(takes))]
    if marker is not None and isinstance(chosen, Take):
        column = _check_index("marker", marker, len(chosen.labels))
        motions: list[Motion] = []
        if isinstance(content, Solution):
            motions = [subject.motions[take] for subject in content.subjects]
        arrays.floats("points", chosen.points[:, column])
        arrays.floats("residual", marker_residuals(chosen, motions)[:, column])
    else:
        _add_joint(arrays, content, take, subject, joint)
    return arrays.encode({"take": take, "first": 0})


def _add_joint(
    arrays: SceneArrays,
    content: Solution | Motion | Take,
    take: int,
    subject: int | None,
    joint: int | None,
) -> None:
    motions: tuple[Motion, ...] = ()
    if isinstance(content, Solution):
        motions = tuple(person.motions[take] for person in content.subjects)
    elif isinstance(content, Motion):
        motions = (content,)
    subject_index = _check_index("subject", subject, len(motions))
    motion = motions[subject_index]
    joint_index = _check_index("joint", joint, motion.skeleton.n_joints)
    arrays.floats("points", motion.T_world_joint()[:, joint_index, :3, 3])
    angles = geometry.euler_continuous(
        motion.wxyz[:, joint_index : joint_index + 1], "ZXY"
    )
    arrays.floats("angles", np.degrees(angles[:, 0]))
    if isinstance(content, Solution):
        gaps = joint_gaps(
            scene_subjects(content)[subject_index], content.bodies[take], content.joints
        )
        arrays.floats("gap", gaps[:, joint_index])


def _check_index(name: str, value: int | None, count: int) -> int:
    """Return a valid index; raise `OptionError` otherwise."""
    if value is None or not 0 <= value < count:
        raise OptionError(name, found=value, needed=f"a number from 0 to {count - 1}")
    return value
