"""Motions by name: functions of time, the same curve at every frame rate."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from marey.motion import Contact
from marey.synth.figures.figure import Figure, Limb, Pose, root_pose
from marey.synth.performance import walk as walking
from marey.synth.performance.curves import bump, pulse, rise, through, waves
from marey.synth.performance.gait import Course, course_of, leg_length, styled
from marey.synth.performance.limbs import place_limb, world_of
from marey.synth.performance.martial_arts import kick_punch
from marey.synth.performance.upper_body import hanging

Array = np.ndarray
Times = Float[np.ndarray, " frame"]
UP = np.array([0.0, 0.0, 1.0])

# Share of each joint's range that "exercise" goes through, and that "swing" does.
EXERCISED, SWUNG = 0.92, 0.7

# Share of the leg by which a standing figure's pelvis is lower than at full stretch.
EASE = 0.012


def standing(
    figure: Figure,
    T_world_root: Float[Array, "frame 4 4"],
    angles: Float[Array, "frame joint 3"],
) -> Float[Array, "frame joint 3"]:
    """Return the angles with the legs standing, the feet where they are at rest."""
    angles = angles.copy()
    rest = figure.skeleton.rest()
    T = world_of(figure.skeleton, T_world_root, angles)
    for leg in figure.legs:
        foot = np.tile(rest[leg.end], (len(T), 1, 1))
        angles[:, leg.joints] = planted(figure, leg, T, foot)
    return angles


def planted(
    figure: Figure,
    leg: Limb,
    T_world_joint: Float[Array, "frame joint 4 4"],
    T_world_foot: Float[Array, "frame 4 4"],
) -> Float[Array, "frame 3 3"]:
    """Return the angles of a leg whose foot is in a pose, the knee over the foot."""
    skeleton = figure.skeleton
    axis = T_world_foot[:, :3, :3] @ skeleton.axes[leg.middle, 0]
    flat = axis * np.array([1.0, 1.0, 0.0])
    parent = T_world_joint[:, skeleton.parent[leg.upper]]
    still = np.zeros(len(T_world_foot))
    return place_limb(skeleton, leg.joints, parent, T_world_foot, flat, still)


def eased_root(figure: Figure, times: Times, sway: float = 0.0) -> Array:
    """Return T_world_root of standing at ease, swaying a little, in metres."""
    place = np.tile(figure.skeleton.offset[0], (len(times), 1))
    if figure.legs:
        place[:, 2] -= EASE * leg_length(figure, figure.legs[0])
    place[:, 0] += sway * np.sin(1.3 * times)
    place[:, 1] += sway * np.sin(0.9 * times)
    return root_pose(place, np.zeros_like(place))


def tip_contacts(
    figure: Figure, tips: Sequence[int], spans: Sequence[tuple[float, float]]
) -> list[Contact]:
    """Return contacts of feet that stand where they are at rest."""
    rest = figure.skeleton.rest()[:, :3, 3]
    names = figure.skeleton.names
    return [
        Contact(names[tip], start, end, rest[tip])
        for tip in tips
        for start, end in spans
    ]


def still(figure: Figure, times: Times, *, seconds: float, seed: int) -> Pose:
    """Return no motion at all: the figure stands at ease."""
    T_world_root = eased_root(figure, times)
    angles = np.tile(figure.neutral, (len(times), 1, 1))
    angles = standing(figure, T_world_root, angles)
    tips = [tip for leg in figure.legs for tip in leg.tips]
    contacts = tip_contacts(figure, tips, [(0.0, seconds)])
    return Pose(T_world_root, angles, tuple(contacts))


def exercise(figure: Figure, times: Times, *, seconds: float, seed: int) -> Pose:
    """Return one joint after another going through its range.

    After the "exercise" sets of OBrien2000, Sec. 4. A ball joint is led round the rim
    of its range and twisted; a leg whose turn it is leaves the ground. A back that
    stands on legs at both ends moves only a little.
    """
    rng = np.random.default_rng([seed, 2])
    moving = figure.moving
    turn = seconds / len(moving)
    spans = {joint: (i * turn, (i + 1) * turn) for i, joint in enumerate(moving)}
    goals = {
        joint: _round_the_rim(figure, joint, times / turn, rng) for joint in moving
    }
    legs = {joint for leg in figure.legs for joint in leg.joints}
    T_world_root = eased_root(figure, times, sway=0.01 if figure.legs else 0.0)
    angles = np.tile(figure.neutral, (len(times), 1, 1))
    for joint in [j for j in moving if j not in legs]:
        share = 0.1 if joint in _carriers(figure) else 1.0
        angles = _exercised(angles, joint, share * goals[joint], times, spans[joint])
    angles = standing(figure, T_world_root, angles)
    contacts: list[Contact] = []
    for leg in figure.legs:
        begin, end = spans[leg.upper][0], spans[leg.end][1]
        early, late = begin - 0.35 * turn, end + 0.35 * turn
        aloft = pulse(times, begin, end, 0.35 * turn)
        angles = _lifted(figure, leg, angles, aloft)
        for joint in leg.joints:
            angles = _exercised(angles, joint, goals[joint], times, spans[joint])
        contacts += tip_contacts(figure, leg.tips, [(0.0, early), (late, seconds)])
    real = tuple(c for c in contacts if c.end > c.start)
    return Pose(T_world_root, angles, real)


def _carriers(figure: Figure) -> set[int]:
    """Return the moving bodies that legs hang from, the root left out."""
    body = figure.body_of
    parents = (figure.skeleton.parent[leg.upper] for leg in figure.legs)
    return {int(body[parent]) for parent in parents} - {0}


def _exercised(
    angles: Array, joint: int, goal: Array, times: Array, span: tuple[float, float]
) -> Array:
    """Return the angles with one joint led to its goal within its span of time."""
    begin, end = span
    ramp = 0.25 * (end - begin)
    window = pulse(times, begin + ramp, end - ramp, ramp)[:, None]
    angles = angles.copy()
    angles[:, joint] += window * (goal - angles[:, joint])
    return angles


def _lifted(figure: Figure, leg: Limb, angles: Array, aloft: Array) -> Array:
    """Return the angles with one leg raised: hip and knee well bent."""
    high = figure.skeleton.limits[:, 0, 1]
    raised = angles.copy()
    for joint in (leg.upper, leg.middle):
        goal = 0.8 * high[joint]
        raised[:, joint, 0] += aloft * (goal - angles[:, joint, 0])
    raised[:, leg.end] *= 1.0 - aloft[:, None]
    return raised


def _round_the_rim(
    figure: Figure, joint: int, share: Array, rng: np.random.Generator
) -> Float[Array, "frame 3"]:
    """Return angles that circle within a joint's limits while it twists."""
    low, high = np.nan_to_num(figure.skeleton.limits[joint]).T
    angle = 2.0 * np.pi * (1.5 * share + rng.uniform())
    u = np.stack([np.cos(angle), np.sin(angle), np.sin(1.7 * angle)], axis=-1)
    return np.asarray(0.5 * (low + high) + 0.5 * EXERCISED * (high - low) * u)


def swing(figure: Figure, times: Times, *, seconds: float, seed: int) -> Pose:
    """Return all degrees of freedom at once, the root wandering where it may.

    A figure with legs hangs in the air like a puppet.
    """
    rng = np.random.default_rng([seed, 3])
    wander = figure.roams * waves(rng, times, 6, hertz=0.15)
    place = figure.skeleton.offset[0] + wander[:, :3] * [0.5, 0.5, 0.15]
    if figure.legs:
        place[:, 2] += leg_length(figure, figure.legs[0])
    angles = np.tile(figure.neutral, (len(times), 1, 1))
    moved = swung(figure, figure.moving, angles, times, rng)
    return Pose(root_pose(place, 0.6 * wander[:, 3:]), moved)


def swung(
    figure: Figure,
    joints: Sequence[int],
    angles: Float[Array, "frame joint 3"],
    times: Times,
    rng: np.random.Generator,
    size: float = SWUNG,
) -> Float[Array, "frame joint 3"]:
    """Return the angles with these joints wavering through a share of their range."""
    angles = angles.copy()
    limits = np.nan_to_num(figure.skeleton.limits)
    u = waves(rng, times, 3 * figure.skeleton.n_joints).reshape(angles.shape)
    for joint in joints:
        low, high = limits[joint].T
        middle = 0.5 * (0.5 * (low + high) + figure.neutral[joint])
        room = np.minimum(high - middle, middle - low)
        angles[:, joint] = middle + size * room * u[:, joint]
    return angles


def chicken_walk(figure: Figure, times: Times, *, seconds: float, seed: int) -> Pose:
    """Return a walk with every degree of freedom moved as far as it goes.

    After the "walk" sets of OBrien2000, Sec. 4: exaggerated legs, bending waist, waving
    arms. The feet still stand truly; the legs play in the air.
    """
    rng = np.random.default_rng([seed, 4])
    usual = styled(figure, rng, turn=0.4)
    gait = replace(
        usual,
        stride=0.72 * usual.stride,
        seconds=1.25 * usual.seconds,
        clearance=usual.clearance + 0.14,
        sway=2.0 * usual.sway,
        pelvis_turn=0.16,
        pelvis_list=0.08,
    )
    course = course_of(figure, gait, start=rng.uniform(0.0, 1.0))
    T_world_root = walking.pelvis_path(figure, gait, course, times)
    angles = np.tile(figure.neutral, (len(times), 1, 1))
    legs = {joint for leg in figure.legs for joint in leg.joints}
    upper = [joint for joint in figure.moving if joint not in legs]
    angles = swung(figure, upper, angles, times, rng)
    angles = walking.step(figure, gait, course, times, T_world_root, angles)
    for leg in figure.legs:
        angles = _played(figure, leg, course, times, angles, rng)
    return Pose(T_world_root, angles, walking.plants(figure, gait, course, seconds))


def _played(
    figure: Figure,
    leg: Limb,
    course: Course,
    times: Times,
    angles: Array,
    rng: np.random.Generator,
) -> Array:
    """Return the angles with a leg waving about while its foot is in the air."""
    strides = course.phase(times, leg)
    flown = (strides - np.floor(strides) - leg.stance) / (1.0 - leg.stance)
    aloft = bump(flown)[:, None]
    u = waves(rng, times, 9, hertz=0.6).reshape(-1, 3, 3)
    limits = np.nan_to_num(figure.skeleton.limits)
    angles = angles.copy()
    for i, joint in enumerate(leg.joints):
        low, high = limits[joint].T
        goal = 0.5 * (low + high) + 0.45 * (high - low) * u[:, i]
        share = aloft * np.array([0.25, 0.7, 0.7])
        angles[:, joint] += share * (goal - angles[:, joint])
    return angles


JUMP_SECONDS = 1.5
# Depth of the crouch through one jump, as a share of the greatest: bend, spring, fly
# with the legs tucked up, land, rise. The feet are in the air between the two marks.
CROUCH = (
    (0.0, 0.0, 0.0),
    (0.26, 1.0, 0.0),
    (0.40, 0.05, -3.0),
    (0.53, 0.45, 0.0),
    (0.66, 0.1, 3.0),
    (0.80, 0.9, 0.0),
    (1.0, 0.0, 0.0),
)
FLIGHT = (0.40, 0.66)


def jump(figure: Figure, times: Times, *, seconds: float, seed: int) -> Pose:
    """Return jump after jump; a figure without legs hops along and looks about."""
    rng = np.random.default_rng([seed, 5])
    number = np.floor(times / JUMP_SECONDS)
    share = times / JUMP_SECONDS - number
    flown = (share - FLIGHT[0]) / (FLIGHT[1] - FLIGHT[0])
    if figure.legs:
        return _leap(figure, share, flown, seconds)
    return _hop(figure, times, number, flown, seconds, rng)


def _stands(seconds: float) -> list[tuple[float, float]]:
    """Return the spans of time between the flights."""
    count = int(np.ceil(seconds / JUMP_SECONDS))
    edges = [0.0]
    for k in range(count):
        edges += [(k + mark) * JUMP_SECONDS for mark in FLIGHT]
    return [*zip(edges[::2], [*edges[1::2], (count + 1) * JUMP_SECONDS], strict=True)]


def _leap(figure: Figure, share: Array, flown: Array, seconds: float) -> Pose:
    length = leg_length(figure, figure.legs[0])
    lift = 0.28 * length * bump(flown)
    depth = through(share, CROUCH)
    place = np.tile(figure.skeleton.offset[0], (len(share), 1))
    place[:, 2] += lift - length * (EASE + 0.20 * depth)
    place[:, 0] -= 0.07 * length * depth
    lean = np.zeros_like(place)
    lean[:, 1] = 0.55 * depth
    T_world_root = root_pose(place, lean)
    angles = np.tile(figure.neutral, (len(share), 1, 1))
    for arm in figure.arms:
        forward = -0.65 * depth + 1.6 * bump(0.5 * (flown + 0.6))
        angles[:, arm.upper] = hanging(figure, arm, forward)
    T = world_of(figure.skeleton, T_world_root, angles)
    rest = figure.skeleton.rest()
    contacts: list[Contact] = []
    for leg in figure.legs:
        foot = np.tile(rest[leg.end], (len(T), 1, 1))
        foot[:, :3, 3] += lift[:, None] * UP
        angles[:, leg.joints] = planted(figure, leg, T, foot)
        contacts += tip_contacts(figure, leg.tips, _stands(seconds))
    return Pose(T_world_root, angles, tuple(contacts))


def _hop(
    figure: Figure,
    times: Array,
    number: Array,
    flown: Array,
    seconds: float,
    rng: np.random.Generator,
) -> Pose:
    """Return hops along a bent path; the ground joint stays put between flights."""
    skeleton = figure.skeleton
    hops = int(np.ceil(seconds / JUMP_SECONDS)) + 1
    stride, turns = 0.3 * figure.height, rng.uniform(-0.6, 0.9, hops)
    headings = np.concatenate([[0.0], np.cumsum(turns)])
    ways = np.stack([np.cos(headings), np.sin(headings), np.zeros(hops + 1)], -1)
    stops = np.concatenate([np.zeros((1, 3)), np.cumsum(stride * ways[:-1], axis=0)])
    k, s = number.astype(np.int64), rise(flown)
    place = skeleton.offset[0] + stops[k] + s[:, None] * (stops[k + 1] - stops[k])
    place = place + (0.22 * figure.height * bump(flown))[:, None] * UP
    heading = headings[k] + s * (headings[k + 1] - headings[k])
    rotvec = heading[:, None] * UP
    rotvec[:, 1] = 0.25 * bump(flown)
    angles = np.tile(figure.neutral, (len(times), 1, 1))
    angles = swung(figure, figure.moving, angles, times, rng)
    ground = int(np.argmin(skeleton.rest()[:, 2, 3]))
    foot = skeleton.offset[0] + skeleton.offset[ground]
    contacts = tuple(
        Contact(skeleton.names[ground], start, end, foot + stop)
        for (start, end), stop in zip(_stands(seconds), stops, strict=False)
    )
    return Pose(root_pose(place, rotvec), angles, contacts)


MOTIONS: dict[str, Callable[..., Pose]] = {
    "exercise": exercise,
    "walk": walking.walk,
    "circle": walking.circle,
    "chicken_walk": chicken_walk,
    "kick_punch": kick_punch,
    "jump": jump,
    "swing": swing,
    "still": still,
}
SECONDS = {name: 30.0 if name == "exercise" else 10.0 for name in MOTIONS}
