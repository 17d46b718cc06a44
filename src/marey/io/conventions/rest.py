r"""Other rest poses of a skeleton: T, A, arms hanging, or that of the first frame.

With R the orientations of the joints in the new rest pose, in the old frames, offsets
and rotations become

.. math::
    o'_j = R_{p} o_j, \qquad q'_j = R_{p} q_j R_j^{-1}

with p the parent of j, so that every joint stays where it is in every frame, and again
all joint frames are aligned with the world at rest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from marey.anatomy import names as vrm
from marey.anatomy.name_schemes import recognise_joints
from marey.anatomy.t_pose import LEFTWARD, UP, facing_rotation, shortest_rotation
from marey.errors import DataError, OptionError
from marey.motion import Motion
from marey.numerics import Array, Float, geometry
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.tree import ancestors_of, children_of

REST_POSES = ("t", "a", "n", "first")
"""Rest poses by name: T, A, neutral, and the first frame."""

ARM_DROP = {"t": 0.0, "a": 0.25 * np.pi, "n": 0.5 * np.pi}
"""Angle of the arms below the horizontal, in radians: 45 degrees in an A-pose."""

SAME_ROTATION = 1e-12
"""Largest element of the difference of two equal rotation matrices."""


def rest_rotations(
    skeleton: Skeleton, motions: Sequence[Motion], rest: str
) -> Float[Array, "joint 3 3"]:
    """Return the orientations of all joints in a rest pose, in their present frames.

    In "t", "a" and "n" the legs hang and the arms are stretched sideways, 45 degrees
    below, or hang; forearms and hands are in line with them, all by the shortest
    rotation. Trunk, head and feet keep their orientation.

    Raises:
        OptionError: If the pose is one of people, and the skeleton is not.
        DataError: If the first frame is wanted, and no frame is known.
    """
    if rest == "first":
        return _first_known(motions)
    part = recognise_joints(skeleton.names)
    bare = [vrm.without_subject(name) for name in skeleton.names]
    if not vrm.is_person(set(part.values())) or vrm.has_tail(bare):
        raise OptionError(
            "rest", found=rest, needed="a person; others have the first frame: first"
        )
    place = skeleton.rest()[:, :3, 3]
    joint_of = {name: joint for joint, name in part.items()}
    body = facing_rotation(*(place[joint_of[n]] for n in vrm.both_sides(vrm.UPPER_LEG)))
    R = np.tile(np.eye(3), (skeleton.n_joints, 1, 1))
    hands = vrm.both_sides(vrm.HAND)
    for joint, parent in enumerate(skeleton.parent.tolist()):
        goal = _goal(part.get(joint, ""), ARM_DROP[rest])
        bone = _bone(skeleton, joint, part)
        above = ancestors_of(skeleton.parent, joint)[1:]
        below_hand = any(part.get(one) in hands for one in above)
        if above and (skeleton.kind[joint] == "fixed" or below_hand):
            R[joint] = R[parent]
        elif goal is not None:
            R[joint] = shortest_rotation(bone, body @ goal)
    return R


def _first_known(motions: Sequence[Motion]) -> Float[Array, "joint 3 3"]:
    """Return R_world_joint of the first frame in which all joints are known."""
    for motion in motions:
        R = motion.T_world_joint()[..., :3, :3]
        known = np.isfinite(R).all(axis=(1, 2, 3))
        if known.any():
            return np.asarray(R[known.argmax()])
    raise DataError("rest", found="no frame with all joints", needed="a known frame")


def _goal(part: str, drop: float) -> Float[Array, " 3"] | None:
    """Return the direction of a limb's bone, of a person that faces +x."""
    bare, side = vrm.without_side(part), vrm.side_of(part)
    if bare in (vrm.UPPER_LEG, vrm.LOWER_LEG):
        return -UP
    if bare not in (vrm.UPPER_ARM, vrm.LOWER_ARM, vrm.HAND):
        return None
    outward = LEFTWARD if side == vrm.LEFT else -LEFTWARD
    return np.asarray(np.cos(drop) * outward - np.sin(drop) * UP)


def _bone(
    skeleton: Skeleton, joint: int, part: Mapping[int, str]
) -> Float[Array, " 3"]:
    """Return the offset of the farthest child, of those with known names if any has."""
    children = children_of(skeleton.parent, joint)
    if not children:
        return np.zeros(3)
    chosen = [child for child in children if child in part] or children
    longest = max(chosen, key=lambda child: float(skeleton.lengths[child]))
    return np.asarray(skeleton.offset[longest])


def change_rest_pose(
    skeleton: Skeleton, motions: Sequence[Motion], R: Float[Array, "joint 3 3"]
) -> tuple[Skeleton, tuple[Motion, ...], tuple[Finding, ...]]:
    """Return a skeleton with another rest pose and its motions, which stay the same.

    Joints that the new pose bends become balls without limits, which are reported.

    Args:
        skeleton: The skeleton.
        motions: Its motions.
        R: Orientations of the joints in the new rest pose, in their present frames.
    """
    R_parent = R[np.maximum(skeleton.parent, 0)]
    R_parent[0] = np.eye(3)
    bent = np.abs(R - R_parent).max(axis=(1, 2)) > SAME_ROTATION
    bent[0] = False
    limited = np.isfinite(skeleton.limits).any(axis=(1, 2))
    lost = bent & (limited | np.isin(skeleton.kind, ["hinge", "universal"]))
    T_sensor = skeleton.T_joint_sensor.copy()
    T_sensor[:, :3] = R[skeleton.sensor_joint] @ T_sensor[:, :3]
    changed = replace(
        skeleton,
        offset=np.einsum("jik,jk->ji", R_parent, skeleton.offset),
        kind=tuple(
            "ball" if is_lost else kind
            for kind, is_lost in zip(skeleton.kind, lost, strict=True)
        ),
        axes=np.where(bent[:, None, None], np.nan, skeleton.axes @ R.swapaxes(1, 2)),
        limits=np.where(bent[:, None, None], np.nan, skeleton.limits),
        marker_offset=np.einsum(
            "mik,mk->mi", R[skeleton.marker_joint], skeleton.marker_offset
        ),
        T_joint_sensor=T_sensor,
        covariance=R_parent @ skeleton.covariance @ R_parent.swapaxes(1, 2),
    )
    moved = tuple(_change_motion(motion, changed, R, R_parent) for motion in motions)
    return changed, moved, _report_lost(skeleton, lost)


def _change_motion(
    motion: Motion,
    skeleton: Skeleton,
    R: Float[Array, "joint 3 3"],
    R_parent: Float[Array, "joint 3 3"],
) -> Motion:
    """Return the motion of the skeleton in another rest pose: R_parent q R^-1."""
    before = geometry.quat_from_matrix(R_parent)
    after = geometry.quat_conjugate(geometry.quat_from_matrix(R))
    wxyz = geometry.quat_multiply(before, geometry.quat_multiply(motion.wxyz, after))
    T = motion.T_world_root.copy()
    T[:, :3, :3] = T[:, :3, :3] @ R[0].T
    variance = np.einsum("jik,fjk->fji", R**2, motion.angle_sd**2)
    return replace(
        motion,
        skeleton=skeleton,
        T_world_root=T,
        wxyz=wxyz,
        angle_sd=np.sqrt(variance),
    )


def _report_lost(skeleton: Skeleton, lost: Array) -> tuple[Finding, ...]:
    """Return a finding that lists the joints that lose their limits."""
    names = [
        name for name, is_lost in zip(skeleton.names, lost, strict=True) if is_lost
    ]
    if not names:
        return ()
    message = (
        f"{len(names)} joints are bent in the new rest pose and lose their limits: "
        f"{', '.join(names[:4])}{', ...' if len(names) > 4 else ''}"
    )
    return (
        Finding("rest-limits-lost", "write", "info", message, value=float(len(names))),
    )
