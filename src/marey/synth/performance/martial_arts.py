"""Martial arts: guard, two punches and a kick, with exact foot contacts."""

from typing import NamedTuple

import numpy as np

from marey.motion import Contact
from marey.numerics import Array, Float, geometry
from marey.synth.figures.figure import Figure, FigureLimb, PoseSequence, root_poses
from marey.synth.performance.angles import angles_of_joint
from marey.synth.performance.curves import (
    Angles,
    LimbAngles,
    Poses,
    Times,
    pulse,
    random_waves,
)
from marey.synth.performance.gait import contacts_at, leg_length
from marey.synth.performance.two_bone_ik import align_bone, joint_poses, solve_limb

ROUND_SECONDS = 4.2
"""Time of one round: left punch, right punch, kick, guard. Chosen by hand."""

ACTION_PULSES = {
    "left": (0.45, 0.55, 0.26),
    "right": (1.25, 1.38, 0.30),
    "raised": (2.25, 2.75, 0.38),
    "extended": (2.45, 2.55, 0.20),
}
"""Start, end and ramp of each action in a round, in seconds, as `pulse` takes them: the
two punches, the raised knee and the extended leg. Chosen by hand."""

STANCE_FEET = {1.0: (0.24, 0.13, 0.15), -1.0: (-0.24, -0.16, -0.70)}
"""Position ahead and to the left, in leg lengths, and yaw in radians of each foot in
the fighting stance, by side. Chosen by hand."""

PUNCH_DIRECTION = {1.0: (0.73, 0.68, 0.05), -1.0: (0.94, 0.34, 0.05)}
"""Directions of the punches in the frame of the chest, by side, for a left arm. Those
of a right arm are mirrored. Chosen by hand."""

RAISED_LEG_DEGREES = (88.0, 12.0, 0.0, 112.0)
EXTENDED_LEG_DEGREES = (96.0, 10.0, 0.0, 10.0)
"""Angles of the kicking leg: hip flexion, abduction, twist, knee flexion. Chosen by
hand."""


class Actions(NamedTuple):
    """How far each action has gone, from 0 to 1, over time."""

    left: Times
    """Punch of the left arm."""

    right: Times
    raised: Times
    """Knee of the right leg."""

    extended: Times
    """The kick."""


def kick_punch(
    figure: Figure, times: Times, seconds: float, rng: np.random.Generator
) -> PoseSequence:
    """Return rounds of left punch, right punch and a kick with the right leg.

    Args:
        figure: A figure with two legs and two arms.
        times: Seconds.
        seconds: Length of the whole motion.
        rng: Random stream of the small motion of the pelvis.
    """
    skeleton = figure.skeleton
    clock = times % ROUND_SECONDS
    now = Actions(*(pulse(clock, *span) for span in ACTION_PULSES.values()))
    T_world_root = _pelvis_poses(figure, times, now, rng)
    angles = _trunk_angles(figure, now)
    for arm in figure.arms:
        punch = now.left if arm.side > 0.0 else now.right
        angles[:, [arm.upper, arm.middle]] = _arm_angles(figure, arm, punch)
    T = joint_poses(skeleton, T_world_root, angles)
    contacts: list[Contact] = []
    for leg in figure.legs:
        T_world_foot = _stance_foot(figure, leg)
        foot = np.tile(T_world_foot, (len(T), 1, 1))
        axis = foot[:, :3, :3] @ skeleton.axes[leg.middle, 0]
        stance, spans = (
            solve_limb(skeleton, leg.joints, T, foot, axis),
            [(0.0, seconds)],
        )
        if leg.side < 0.0:
            stance, spans = _kick_angles(stance, now), _right_foot_spans(seconds)
        angles[:, leg.joints] = stance
        anchors = geometry.apply(T_world_foot, skeleton.offset)
        contacts += contacts_at(skeleton, anchors, leg.tips, spans)
    return PoseSequence(T_world_root, angles, tuple(contacts))


def _pelvis_poses(
    figure: Figure, times: Times, now: Actions, rng: np.random.Generator
) -> Poses:
    """Return T_world_root: low, rotated, and over the left foot during the kick."""
    left, right, raised, _ = now
    length = leg_length(figure, figure.legs[0])
    sway = 0.012 * length * random_waves(rng, times, 3, hertz=0.5)
    position = figure.skeleton.offset[0] + sway
    position[:, 2] -= 0.10 * length - 0.02 * length * raised
    position[:, 0] += length * (0.03 * left + 0.06 * right + 0.10 * raised)
    position[:, 1] += 0.08 * length * raised
    rotvec = np.zeros_like(position)
    rotvec[:, 1] = 0.06 - 0.16 * raised
    rotvec[:, 2] = -0.45 - 0.12 * left + 0.50 * right + 0.40 * raised
    return root_poses(position, rotvec)


def _trunk_angles(figure: Figure, now: Actions) -> Angles:
    left, right, _, extended = now
    names = figure.skeleton.names
    angles = np.tile(figure.neutral, (len(left), 1, 1))
    spine, neck = names.index("Spine"), names.index("Neck")
    angles[:, spine, 0] = 0.12 - 0.25 * extended
    angles[:, spine, 2] = 0.25 * left - 0.30 * right
    angles[:, neck, 2] = -0.30 - 0.25 * left + 0.30 * right
    return angles


def _arm_angles(
    figure: Figure, arm: FigureLimb, punch: Array
) -> Float[Array, "frame 2 3"]:
    """Return angles (rad) of shoulder and elbow, blended between guard and punch."""
    skeleton = figure.skeleton
    guard = _shoulder_angles(figure, arm, (0.35, 0.25, -0.9), (0.35, -0.9, -0.25))
    straight = _shoulder_angles(
        figure, arm, PUNCH_DIRECTION[arm.side], (0.1, -0.35, -1.0)
    )
    share = punch[:, None]
    shoulder = guard + share * (straight - guard)
    elbow = np.zeros((len(punch), 3))
    elbow[:, 0] = np.radians(118.0) + punch * np.radians(8.0 - 118.0)
    high = skeleton.limits[arm.middle, 2, 1]
    elbow[:, 2] = np.nan_to_num(high) * 0.4 * punch
    return np.stack([shoulder, elbow], axis=1)


def _shoulder_angles(
    figure: Figure,
    arm: FigureLimb,
    direction: tuple[float, float, float],
    axis: tuple[float, float, float],
) -> Float[Array, "1 3"]:
    """Return shoulder angles for a direction of the upper arm and an elbow axis.

    Both are given for a left arm. For a right arm they are mirrored, the axis as an
    axial vector.
    """
    flip = np.array([1.0, arm.side, 1.0])
    goal = flip * np.array(direction)
    axis_goal = arm.side * flip * np.array(axis)
    bone = figure.skeleton.offset[arm.middle]
    R = align_bone(bone, figure.skeleton.axes[arm.middle, 0], goal, axis_goal)
    return angles_of_joint(
        figure.skeleton, arm.upper, geometry.quat_from_matrix(R)[None]
    )


def _kick_angles(stance: LimbAngles, now: Actions) -> LimbAngles:
    """Return the leg angles, blended from stance to a raised and extended leg."""
    knee_up, kick = np.radians(RAISED_LEG_DEGREES), np.radians(EXTENDED_LEG_DEGREES)
    free = stance.copy()
    free[:, 0] = knee_up[:3] + now.extended[:, None] * (kick - knee_up)[:3]
    free[:, 1] = 0.0
    free[:, 1, 0] = knee_up[3] + now.extended * (kick - knee_up)[3]
    free[:, 2] = np.radians([8.0, 0.0, 0.0])
    return np.asarray(stance + now.raised[:, None, None] * (free - stance))


def _stance_foot(figure: Figure, leg: FigureLimb) -> Float[Array, "4 4"]:
    """Return the pose of a foot in the fighting stance."""
    ahead, left, heading = STANCE_FEET[leg.side]
    height = -figure.skeleton.offset[leg.tips[0], 2]
    length = leg_length(figure, figure.legs[0])
    position = np.array([ahead * length, left * length, height])
    R = geometry.rotation_exp(np.array([0.0, 0.0, heading]))
    return geometry.transform(R, position)


def _right_foot_spans(seconds: float) -> list[tuple[float, float]]:
    """Return the spans of time in which the kicking foot is on the ground."""
    start, end, ramp = ACTION_PULSES["raised"]
    edges = [0.0]
    for k in range(int(np.ceil(seconds / ROUND_SECONDS))):
        edges += [k * ROUND_SECONDS + start - ramp, k * ROUND_SECONDS + end + ramp]
    return [*zip(edges[::2], [*edges[1::2], seconds], strict=True)]
