"""Motions by name: functions of time, independent of the frame rate."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from marey.motion import Contact, Motion
from marey.numerics import Array, Float
from marey.synth.figures.figure import (
    Figure,
    FigureLimb,
    PoseSequence,
    motion_from_poses,
    root_poses,
)
from marey.synth.performance import walk as walking
from marey.synth.performance.curves import (
    Angles,
    LimbAngles,
    Poses,
    Times,
    bump,
    pulse,
    quintic_spline,
    random_waves,
    smoothstep,
)
from marey.synth.performance.gait import Walk, contacts_at, draw_gait, leg_length
from marey.synth.performance.martial_arts import kick_punch
from marey.synth.performance.two_bone_ik import joint_poses, solve_limb

Rng = np.random.Generator
UP = np.array([0.0, 0.0, 1.0])

EXERCISE_RANGE, SWING_RANGE = 0.92, 0.7
"""Share of each joint's range that "exercise" and "swing" use. Larger values move the
joints closer to their limits. Chosen by hand."""

STANDING_DROP = 0.012
"""Drop of the pelvis of a standing figure below straight legs, as a share of the leg
length. Larger values bend the knees more. Chosen by hand."""


def stand_on_legs(figure: Figure, T_world_root: Poses, angles: Angles) -> Angles:
    """Return the angles with legs that keep the feet at their rest positions."""
    angles = angles.copy()
    rest = figure.skeleton.rest()
    T = joint_poses(figure.skeleton, T_world_root, angles)
    for leg in figure.legs:
        foot = np.tile(rest[leg.end], (len(T), 1, 1))
        angles[:, leg.joints] = solve_standing_leg(figure, leg, T, foot)
    return angles


def solve_standing_leg(
    figure: Figure,
    leg: FigureLimb,
    T_world_joint: Float[Array, "frame joint 4 4"],
    T_world_foot: Poses,
) -> LimbAngles:
    """Return the angles of a leg for a foot pose, with the knee above the foot."""
    axis = T_world_foot[:, :3, :3] @ figure.skeleton.axes[leg.middle, 0]
    level_axis = axis * np.array([1.0, 1.0, 0.0])
    return solve_limb(
        figure.skeleton, leg.joints, T_world_joint, T_world_foot, level_axis
    )


def standing_root_poses(figure: Figure, times: Times, sway: float = 0.0) -> Array:
    """Return T_world_root of a standing figure that sways by `sway` metres."""
    position = np.tile(figure.skeleton.offset[0], (len(times), 1))
    if figure.legs:
        position[:, 2] -= STANDING_DROP * leg_length(figure, figure.legs[0])
    position[:, 0] += sway * np.sin(1.3 * times)
    position[:, 1] += sway * np.sin(0.9 * times)
    return root_poses(position, np.zeros_like(position))


def rest_contacts(
    figure: Figure, tips: Sequence[int], spans: Sequence[tuple[float, float]]
) -> list[Contact]:
    """Return contacts of joints that touch the ground where they are at rest."""
    rest = figure.skeleton.rest()[:, :3, 3]
    return contacts_at(figure.skeleton, rest, tips, spans)


def still(figure: Figure, times: Times, seconds: float, rng: Rng) -> PoseSequence:
    """Return a figure that stands still."""
    T_world_root = standing_root_poses(figure, times)
    angles = np.tile(figure.neutral, (len(times), 1, 1))
    angles = stand_on_legs(figure, T_world_root, angles)
    contacts = rest_contacts(figure, figure.tips, [(0.0, seconds)])
    return PoseSequence(T_world_root, angles, tuple(contacts))


def reach(
    figure: Figure,
    share: Times,
    hand: Callable[[Float[Array, "frame joint 4 4"]], Poses],
    *,
    rate: float,
    lean: float = 0.0,
    sway: float = 0.0,
) -> Motion:
    """Return a figure that stands and reaches out with its right hand.

    Args:
        figure: A figure with arms.
        share: 0 leaves the arm at rest, 1 puts the hand at its goal.
        hand: Function from the poses of all joints at rest to the goal of the hand.
        rate: Frames per second.
        lean: Bend of the spine at the goal, in radians.
        sway: Sway of the pelvis, in metres.
    """
    skeleton, arm = figure.skeleton, figure.arms[1]
    times = np.arange(len(share)) / rate
    T_world_root = standing_root_poses(figure, times, sway)
    angles = np.tile(figure.neutral, (len(times), 1, 1))
    angles[:, skeleton.index("Spine"), 0] += lean * share
    angles = stand_on_legs(figure, T_world_root, angles)
    T = joint_poses(skeleton, T_world_root, angles)
    goal, axis = hand(T), np.tile([0.0, -0.9, 0.4], (len(times), 1))
    arm_angles = solve_limb(skeleton, arm.joints, T, goal, axis)
    # Forearm and wrist twist about the same line, so the forearm can take the twist.
    arm_angles = solve_limb(skeleton, arm.joints, T, goal, axis, arm_angles[:, 2, 2])
    joints = list(arm.joints)
    angles[:, joints] += share[:, None, None] * (arm_angles - angles[:, joints])
    contacts = rest_contacts(figure, figure.tips, [(0.0, float(times[-1]))])
    poses = PoseSequence(T_world_root, angles, tuple(contacts))
    return motion_from_poses(skeleton, poses, rate)


def exercise(figure: Figure, times: Times, seconds: float, rng: Rng) -> PoseSequence:
    """Return a range-of-motion exercise: one joint after another moves in its range.

    It follows the "exercise" sets of OBrien2000, Sec. 4. A ball joint circles inside
    its limits and twists. A leg leaves the ground while its joints move. A spine with
    legs at both ends moves only a little.
    """
    moving = figure.moving_joints
    slot = seconds / len(moving)
    spans = {joint: (i * slot, (i + 1) * slot) for i, joint in enumerate(moving)}
    goals = {
        joint: _circle_in_limits(figure, joint, times / slot, rng) for joint in moving
    }
    legs = {joint for leg in figure.legs for joint in leg.joints}
    T_world_root = standing_root_poses(figure, times, sway=0.01 if figure.legs else 0.0)
    angles = np.tile(figure.neutral, (len(times), 1, 1))
    for joint in [j for j in moving if j not in legs]:
        share = 0.1 if joint in _leg_parents(figure) else 1.0
        goal = share * goals[joint]
        angles = _blend_to_goal(angles, joint, goal, times, spans[joint])
    angles = stand_on_legs(figure, T_world_root, angles)
    contacts: list[Contact] = []
    for leg in figure.legs:
        begin, end = spans[leg.upper][0], spans[leg.end][1]
        early, late = begin - 0.35 * slot, end + 0.35 * slot
        raised = pulse(times, begin, end, 0.35 * slot)
        angles = _raise_leg(figure, leg, angles, raised)
        for joint in leg.joints:
            angles = _blend_to_goal(angles, joint, goals[joint], times, spans[joint])
        contacts += rest_contacts(figure, leg.tips, [(0.0, early), (late, seconds)])
    contacts = [c for c in contacts if c.end > c.start]
    return PoseSequence(T_world_root, angles, tuple(contacts))


def _leg_parents(figure: Figure) -> set[int]:
    """Return the moving bodies that are parents of legs, without the root."""
    body = figure.body_of
    parents = (figure.skeleton.parent[leg.upper] for leg in figure.legs)
    return {int(body[parent]) for parent in parents} - {0}


def _blend_to_goal(
    angles: Array, joint: int, goal: Array, times: Array, span: tuple[float, float]
) -> Array:
    """Return the angles (rad), one joint blended to its goal within a span of time."""
    begin, end = span
    ramp = 0.25 * (end - begin)
    window = pulse(times, begin + ramp, end - ramp, ramp)[:, None]
    angles = angles.copy()
    angles[:, joint] += window * (goal - angles[:, joint])
    return angles


def _raise_leg(figure: Figure, leg: FigureLimb, angles: Array, share: Array) -> Array:
    """Return the angles (rad) with one leg raised by bending hip and knee."""
    high = figure.skeleton.limits[:, 0, 1]
    result = angles.copy()
    for joint in (leg.upper, leg.middle):
        goal = 0.8 * high[joint]
        result[:, joint, 0] += share * (goal - angles[:, joint, 0])
    result[:, leg.end] *= 1.0 - share[:, None]
    return result


def _circle_in_limits(
    figure: Figure, joint: int, share: Array, rng: Rng
) -> Float[Array, "frame 3"]:
    """Return angles (rad) that circle within the limits of a joint while it twists."""
    low, high = np.nan_to_num(figure.skeleton.limits[joint]).T
    angle = 2.0 * np.pi * (1.5 * share + rng.uniform())
    u = np.stack([np.cos(angle), np.sin(angle), np.sin(1.7 * angle)], axis=-1)
    return np.asarray(0.5 * (low + high) + 0.5 * EXERCISE_RANGE * (high - low) * u)


def swing(figure: Figure, times: Times, seconds: float, rng: Rng) -> PoseSequence:
    """Return a motion of all degrees of freedom at once, the root included.

    A figure with legs moves in the air, without ground contact.
    """
    root_motion = figure.root_travel * random_waves(rng, times, 6, hertz=0.15)
    position = figure.skeleton.offset[0] + root_motion[:, :3] * [0.5, 0.5, 0.15]
    if figure.legs:
        position[:, 2] += leg_length(figure, figure.legs[0])
    angles = np.tile(figure.neutral, (len(times), 1, 1))
    angles = swing_joints(figure, figure.moving_joints, angles, times, rng)
    return PoseSequence(root_poses(position, 0.6 * root_motion[:, 3:]), angles)


def swing_joints(
    figure: Figure,
    joints: Sequence[int],
    angles: Angles,
    times: Times,
    rng: Rng,
) -> Angles:
    """Return the angles with smooth random motion of these joints in their range."""
    angles = angles.copy()
    limits = np.nan_to_num(figure.skeleton.limits)
    u = random_waves(rng, times, 3 * figure.skeleton.n_joints).reshape(angles.shape)
    for joint in joints:
        low, high = limits[joint].T
        middle = 0.5 * (0.5 * (low + high) + figure.neutral[joint])
        room = np.minimum(high - middle, middle - low)
        angles[:, joint] = middle + SWING_RANGE * room * u[:, joint]
    return angles


def chicken_walk(
    figure: Figure, times: Times, seconds: float, rng: Rng
) -> PoseSequence:
    """Return an exaggerated walk that moves every degree of freedom.

    It follows the "walk" sets of OBrien2000, Sec. 4: exaggerated legs, bending waist,
    waving arms. The foot contacts are exact; the legs wave during the swing phase.
    """
    default = draw_gait(figure, rng, turn_rate=0.4)
    gait = replace(
        default,
        stride_length=0.72 * default.stride_length,
        stride_seconds=1.25 * default.stride_seconds,
        foot_clearance=default.foot_clearance + 0.14,
        pelvis_sway=2.0 * default.pelvis_sway,
        pelvis_rotation=0.16,
        pelvis_obliquity=0.08,
    )
    walk = Walk(figure, gait, rng.uniform(0.0, 1.0))
    T_world_root = walking.pelvis_poses(walk, times)
    angles = np.tile(figure.neutral, (len(times), 1, 1))
    legs = {joint for leg in figure.legs for joint in leg.joints}
    upper = [joint for joint in figure.moving_joints if joint not in legs]
    angles = swing_joints(figure, upper, angles, times, rng)
    angles = walking.solve_legs(walk, times, T_world_root, angles)
    for leg in figure.legs:
        angles = _wave_swing_leg(walk, leg, times, angles, rng)
    return PoseSequence(T_world_root, angles, walking.foot_contacts(walk, seconds))


def _wave_swing_leg(
    walk: Walk, leg: FigureLimb, times: Times, angles: Angles, rng: Rng
) -> Angles:
    """Return the angles with random motion of a leg during its swing phase."""
    strides = walk.phase(times, leg)
    flight = (strides - np.floor(strides) - leg.stance) / (1.0 - leg.stance)
    window = bump(flight)[:, None]
    u = random_waves(rng, times, 9, hertz=0.6).reshape(-1, 3, 3)
    limits = np.nan_to_num(walk.figure.skeleton.limits)
    angles = angles.copy()
    for i, joint in enumerate(leg.joints):
        low, high = limits[joint].T
        goal = 0.5 * (low + high) + 0.45 * (high - low) * u[:, i]
        share = window * np.array([0.25, 0.7, 0.7])
        angles[:, joint] += share * (goal - angles[:, joint])
    return angles


JUMP_SECONDS = 1.5
"""Time of one jump, in seconds. Chosen by hand."""

CROUCH_KNOTS = (
    (0.0, 0.0, 0.0),
    (0.26, 1.0, 0.0),
    (0.40, 0.05, -3.0),
    (0.53, 0.45, 0.0),
    (0.66, 0.1, 3.0),
    (0.80, 0.9, 0.0),
    (1.0, 0.0, 0.0),
)
"""Knots of the crouch depth in one jump: share of the jump, share of the greatest
depth, slope. The figure bends, takes off, tucks its legs up, lands and rises. Chosen
by hand."""

FLIGHT_SPAN = (0.40, 0.66)
"""Shares of the jump at take-off and landing. Chosen by hand."""


def jump(figure: Figure, times: Times, seconds: float, rng: Rng) -> PoseSequence:
    """Return repeated jumps. A figure without legs hops along a random path."""
    number = np.floor(times / JUMP_SECONDS)
    share = times / JUMP_SECONDS - number
    flight = (share - FLIGHT_SPAN[0]) / (FLIGHT_SPAN[1] - FLIGHT_SPAN[0])
    if figure.legs:
        return _jump_on_legs(figure, share, flight, seconds)
    return _hop_without_legs(figure, times, number, flight, seconds, rng)


def _stance_spans(seconds: float) -> list[tuple[float, float]]:
    """Return the spans of time between the flights, in seconds."""
    count = int(np.ceil(seconds / JUMP_SECONDS))
    edges = [0.0]
    for k in range(count):
        edges += [(k + mark) * JUMP_SECONDS for mark in FLIGHT_SPAN]
    return [*zip(edges[::2], [*edges[1::2], (count + 1) * JUMP_SECONDS], strict=True)]


def _jump_on_legs(
    figure: Figure, share: Array, flight: Array, seconds: float
) -> PoseSequence:
    length = leg_length(figure, figure.legs[0])
    lift = 0.28 * length * bump(flight)
    depth = quintic_spline(share, CROUCH_KNOTS)
    position = np.tile(figure.skeleton.offset[0], (len(share), 1))
    position[:, 2] += lift - length * (STANDING_DROP + 0.20 * depth)
    position[:, 0] -= 0.07 * length * depth
    lean = np.zeros_like(position)
    lean[:, 1] = 0.55 * depth
    T_world_root = root_poses(position, lean)
    angles = np.tile(figure.neutral, (len(share), 1, 1))
    for arm in figure.arms:
        forward = -0.65 * depth + 1.6 * bump(0.5 * (flight + 0.6))
        angles[:, arm.upper] = walking.hanging_arm_angles(figure, arm, forward)
    T = joint_poses(figure.skeleton, T_world_root, angles)
    rest = figure.skeleton.rest()
    contacts: list[Contact] = []
    for leg in figure.legs:
        foot = np.tile(rest[leg.end], (len(T), 1, 1))
        foot[:, :3, 3] += lift[:, None] * UP
        angles[:, leg.joints] = solve_standing_leg(figure, leg, T, foot)
        contacts += rest_contacts(figure, leg.tips, _stance_spans(seconds))
    return PoseSequence(T_world_root, angles, tuple(contacts))


def _hop_without_legs(
    figure: Figure,
    times: Array,
    number: Array,
    flight: Array,
    seconds: float,
    rng: Rng,
) -> PoseSequence:
    """Return hops along a random path. The lowest joint rests between the flights."""
    skeleton = figure.skeleton
    hops = int(np.ceil(seconds / JUMP_SECONDS)) + 1
    stride, yaw_steps = 0.3 * figure.height, rng.uniform(-0.6, 0.9, hops)
    headings = np.concatenate([[0.0], np.cumsum(yaw_steps)])
    directions = np.stack([np.cos(headings), np.sin(headings), np.zeros(hops + 1)], -1)
    stops = np.concatenate(
        [np.zeros((1, 3)), np.cumsum(stride * directions[:-1], axis=0)]
    )
    k, s = number.astype(np.int64), smoothstep(flight)
    position = skeleton.offset[0] + stops[k] + s[:, None] * (stops[k + 1] - stops[k])
    position = position + (0.22 * figure.height * bump(flight))[:, None] * UP
    heading = headings[k] + s * (headings[k + 1] - headings[k])
    rotvec = heading[:, None] * UP
    rotvec[:, 1] = 0.25 * bump(flight)
    angles = np.tile(figure.neutral, (len(times), 1, 1))
    angles = swing_joints(figure, figure.moving_joints, angles, times, rng)
    ground = int(np.argmin(skeleton.rest()[:, 2, 3]))
    foot = skeleton.offset[0] + skeleton.offset[ground]
    contacts = tuple(
        Contact(skeleton.names[ground], start, end, foot + stop)
        for (start, end), stop in zip(_stance_spans(seconds), stops, strict=False)
    )
    return PoseSequence(root_poses(position, rotvec), angles, contacts)


Perform = Callable[[Figure, Times, float, Rng], PoseSequence]
"""Function of a figure, times, the length in seconds and a random stream."""

MOTIONS: dict[str, tuple[Perform, int]] = {
    "exercise": (exercise, 2),
    "walk": (walking.walk, 1),
    "circle": (walking.circle, 1),
    "chicken_walk": (chicken_walk, 4),
    "kick_punch": (kick_punch, 6),
    "jump": (jump, 5),
    "swing": (swing, 3),
    "still": (still, 0),
}
"""Each motion, and the number of its random stream."""

DEFAULT_SECONDS = {name: 30.0 if name == "exercise" else 10.0 for name in MOTIONS}
