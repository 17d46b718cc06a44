"""Martial arts: a guard, two punches and a kick, over feet that stand."""

import numpy as np
from jaxtyping import Float

from marey.motion import Contact
from marey.numerics import geometry
from marey.synth.figures.figure import Figure, Limb, Pose, root_pose
from marey.synth.performance.angles import angles_of
from marey.synth.performance.curves import pulse, waves
from marey.synth.performance.limbs import aim, place_limb, world_of

Array = np.ndarray

# One round: left punch, right punch, kick, and back to the guard. Seconds.
ROUND = 4.2
LEFT_PUNCH, RIGHT_PUNCH = (0.45, 0.55, 0.26), (1.25, 1.38, 0.30)
CHAMBER, EXTEND = (2.25, 2.75, 0.38), (2.45, 2.55, 0.20)

# The fighting stance: feet ahead and behind, in shares of the leg, and their headings.
FEET = {1.0: (0.24, 0.13, 0.15), -1.0: (-0.24, -0.16, -0.70)}

# Directions of the punches in the turned chest, a right arm's mirrored.
STRAIGHT = {1.0: (0.73, 0.68, 0.05), -1.0: (0.94, 0.34, 0.05)}

# Kicking leg, degrees: hip flexion, abduction, twist, then knee.
CHAMBERED, EXTENDED = (88.0, 12.0, 0.0, 112.0), (96.0, 10.0, 0.0, 10.0)


def kick_punch(
    figure: Figure, times: Float[Array, " frame"], *, seconds: float, seed: int
) -> Pose:
    """Return rounds of left punch, right punch and a kick with the right leg.

    Args:
        figure: A figure with two legs and two arms.
        times: Seconds.
        seconds: Length of the whole motion.
        seed: Draws how the fighter shifts about.
    """
    rng = np.random.default_rng([seed, 6])
    clock = times % ROUND
    left, right = pulse(clock, *LEFT_PUNCH), pulse(clock, *RIGHT_PUNCH)
    aloft, out = pulse(clock, *CHAMBER), pulse(clock, *EXTEND)
    T_world_root = _hips(figure, times, left, right, aloft, rng)
    angles = _trunk(figure, len(times), left, right, out)
    for arm in figure.arms:
        punch = left if arm.side > 0.0 else right
        angles[:, [arm.upper, arm.middle]] = _arm(figure, arm, punch)
    T = world_of(figure.skeleton, T_world_root, angles)
    contacts: list[Contact] = []
    for leg in figure.legs:
        angles[:, leg.joints] = _stood(figure, leg, T)
        spans = [(0.0, seconds)]
        if leg.side < 0.0:
            angles[:, leg.joints] = _kick(angles[:, leg.joints], aloft, out)
            spans = _right_stands(seconds)
        contacts += _contacts(figure, leg, spans)
    return Pose(T_world_root, angles, tuple(contacts))


def _hips(
    figure: Figure,
    times: Array,
    left: Array,
    right: Array,
    aloft: Array,
    rng: np.random.Generator,
) -> Float[Array, "frame 4 4"]:
    """Return the pelvis: low, turned aside, over the left foot during the kick."""
    length = _length(figure)
    shift = 0.012 * length * waves(rng, times, 3, hertz=0.5)
    place = figure.skeleton.offset[0] + shift
    place[:, 2] -= 0.10 * length - 0.02 * length * aloft
    place[:, 0] += length * (0.03 * left + 0.06 * right + 0.10 * aloft)
    place[:, 1] += 0.08 * length * aloft
    rotvec = np.zeros_like(place)
    rotvec[:, 1] = 0.06 - 0.16 * aloft
    rotvec[:, 2] = -0.45 - 0.12 * left + 0.50 * right + 0.40 * aloft
    return root_pose(place, rotvec)


def _trunk(
    figure: Figure, count: int, left: Array, right: Array, out: Array
) -> Float[Array, "frame joint 3"]:
    names = figure.skeleton.names
    angles = np.tile(figure.neutral, (count, 1, 1))
    spine, neck = names.index("Spine"), names.index("Neck")
    angles[:, spine, 0] = 0.12 - 0.25 * out
    angles[:, spine, 2] = 0.25 * left - 0.30 * right
    angles[:, neck, 2] = -0.30 - 0.25 * left + 0.30 * right
    return angles


def _arm(figure: Figure, arm: Limb, punch: Array) -> Float[Array, "frame 2 3"]:
    """Return shoulder and elbow between the guard and the punch."""
    skeleton = figure.skeleton
    guard = _aimed(figure, arm, (0.35, 0.25, -0.9), (0.35, -0.9, -0.25))
    straight = _aimed(figure, arm, STRAIGHT[arm.side], (0.1, -0.35, -1.0))
    share = punch[:, None]
    shoulder = guard + share * (straight - guard)
    elbow = np.tile(np.zeros(3), (len(punch), 1))
    elbow[:, 0] = np.radians(118.0) + punch * np.radians(8.0 - 118.0)
    high = skeleton.limits[arm.middle, 2, 1]
    elbow[:, 2] = np.nan_to_num(high) * 0.4 * punch
    return np.stack([shoulder, elbow], axis=1)


def _aimed(
    figure: Figure,
    arm: Limb,
    direction: tuple[float, float, float],
    axis: tuple[float, float, float],
) -> Float[Array, "1 3"]:
    """Return shoulder angles for a left arm's direction and elbow axis, or a right's.

    The axis mirrors as an axial vector.
    """
    flip = np.array([1.0, arm.side, 1.0])
    goal = flip * np.array(direction)
    axis_goal = arm.side * flip * np.array(axis)
    bone = figure.skeleton.offset[arm.middle]
    R = aim(bone, figure.skeleton.axes[arm.middle, 0], goal, axis_goal)
    return angles_of(figure.skeleton, arm.upper, geometry.quat_from_matrix(R)[None])


def _kick(planted: Array, aloft: Array, out: Array) -> Float[Array, "frame 3 3"]:
    """Return a leg drawn up, stretched out and put back where it stood."""
    up, far = np.radians(CHAMBERED), np.radians(EXTENDED)
    free = planted.copy()
    free[:, 0] = up[:3] + out[:, None] * (far - up)[:3]
    free[:, 1] = 0.0
    free[:, 1, 0] = up[3] + out * (far - up)[3]
    free[:, 2] = np.radians([8.0, 0.0, 0.0])
    return np.asarray(planted + aloft[:, None, None] * (free - planted))


def _stood(figure: Figure, leg: Limb, T: Array) -> Float[Array, "frame 3 3"]:
    skeleton = figure.skeleton
    foot = np.tile(_print(figure, leg), (len(T), 1, 1))
    axis = foot[:, :3, :3] @ skeleton.axes[leg.middle, 0]
    parent = T[:, skeleton.parent[leg.upper]]
    still = np.zeros(len(T))
    return place_limb(skeleton, leg.joints, parent, foot, axis, still)


def _print(figure: Figure, leg: Limb) -> Float[Array, "4 4"]:
    """Return the pose of a foot in the fighting stance."""
    ahead, aside, heading = FEET[leg.side]
    height = -figure.skeleton.offset[leg.tips[0], 2]
    length = _length(figure)
    place = np.array([ahead * length, aside * length, height])
    return geometry.transform(
        geometry.rotation_exp(np.array([0.0, 0.0, heading])), place
    )


def _length(figure: Figure) -> float:
    leg = figure.legs[0]
    return float(figure.skeleton.lengths[[leg.middle, leg.end]].sum())


def _right_stands(seconds: float) -> list[tuple[float, float]]:
    start, end, ramp = CHAMBER
    edges = [0.0]
    for k in range(int(np.ceil(seconds / ROUND))):
        edges += [k * ROUND + start - ramp, k * ROUND + end + ramp]
    return [*zip(edges[::2], [*edges[1::2], seconds], strict=True)]


def _contacts(
    figure: Figure, leg: Limb, spans: list[tuple[float, float]]
) -> list[Contact]:
    foot = _print(figure, leg)
    return [
        Contact(
            figure.skeleton.names[tip],
            start,
            end,
            geometry.apply(foot, figure.skeleton.offset[tip]),
        )
        for tip in leg.tips
        for start, end in spans
    ]
