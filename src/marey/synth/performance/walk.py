"""Walking with true foot plants: feet that stand neither slide nor sink.

The feet come first. Each print is fixed on the ground; the foot rolls over it from heel
to ball and flies to the next print. The pelvis moves along above them, and the legs
follow in closed form.
"""

import numpy as np
from jaxtyping import Float

from marey.motion import Contact
from marey.numerics import geometry
from marey.synth.figures.figure import Figure, Limb, Pose, root_pose
from marey.synth.performance.curves import bump, curved, quintic, rise, through
from marey.synth.performance.gait import Course, Gait, course_of, leg_length, styled
from marey.synth.performance.limbs import place_limb, world_of
from marey.synth.performance.upper_body import carried, idle

Array = np.ndarray
UP = np.array([0.0, 0.0, 1.0])


def foot_poses(
    figure: Figure,
    leg: Limb,
    gait: Gait,
    course: Course,
    times: Float[Array, " frame"],
) -> Float[Array, "frame 4 4"]:
    """Return T_world_foot: rolling over each print, flying to the next."""
    strides = course.phase(times, leg)
    number = np.floor(strides)
    share = strides - number
    here = _prints(figure, leg, gait, course, number)
    there = _prints(figure, leg, gait, course, number + 1.0)
    stand = _rolled(figure, leg, gait, here, share)
    flight = _flight(figure, leg, gait, here, there, share)
    flown = np.clip((share - leg.stance) / (1.0 - leg.stance), 0.0, 1.0)
    veer = here[:, 3] + rise(flown) * (there[:, 3] - here[:, 3])
    R = geometry.rotation_exp(veer[:, None] * UP) @ _pitched(through(share, gait.roll))
    return geometry.transform(R, np.where((flown > 0.0)[:, None], flight, stand))


def _pitched(pitch: Array) -> Array:
    return geometry.rotation_exp(pitch[:, None] * np.array([0.0, 1.0, 0.0]))


def _prints(
    figure: Figure, leg: Limb, gait: Gait, course: Course, number: Array
) -> Float[Array, "frame 4"]:
    """Return ankle place and heading of the flat foot of each step."""
    time = (number + 0.5 * leg.stance + leg.phase - course.start) * course.period
    heading = course.heading(time)
    zero = np.zeros_like(time)
    along = np.stack([np.cos(heading), np.sin(heading), zero], axis=-1)
    left = np.stack([-np.sin(heading), np.cos(heading), zero], axis=-1)
    rest = figure.skeleton.rest()[:, :3, 3]
    ahead = rest[leg.end, 0] - rest[0, 0] + gait.ahead * leg_length(figure, leg)
    ground = -figure.skeleton.offset[leg.tips[-1], 2]
    place = course.place(time) + ahead * along + gait.width * rest[leg.end, 1] * left
    veer = heading + leg.side * gait.toe_out
    return np.concatenate([place + ground * UP, veer[:, None]], axis=-1)


def _lever(figure: Figure, leg: Limb, gait: Gait, share: Array) -> Array:
    """Return the point the foot turns about: the heel until it is flat, then the ball.

    In the foot's frame.
    """
    flat = 0.5 * (gait.roll[1][0] + gait.roll[2][0])
    offset = figure.skeleton.offset
    heel, ball = offset[leg.tips[0]], offset[leg.tips[-1]]
    return np.asarray(np.where((share < flat)[:, None], heel, ball))


def _rolled(
    figure: Figure, leg: Limb, gait: Gait, prints: Array, share: Array
) -> Float[Array, "frame 3"]:
    """Return the ankle of a foot that rolls over its print."""
    lever = _lever(figure, leg, gait, share)
    still = np.eye(3) - _pitched(through(share, gait.roll))
    R = geometry.rotation_exp(prints[:, 3:] * UP)
    return np.asarray(prints[:, :3] + np.einsum("fij,fj->fi", R @ still, lever))


def _flight(
    figure: Figure, leg: Limb, gait: Gait, here: Array, there: Array, share: Array
) -> Float[Array, "frame 3"]:
    """Return the ankle in flight, joined to both stands up to the acceleration."""
    span = 1.0 - leg.stance
    s = np.clip((share - leg.stance) / span, 0.0, 1.0)
    off, off_slope, off_bend = _edge(figure, leg, gait, here, leg.stance)
    down, down_slope, down_bend = _edge(figure, leg, gait, there, 0.0)
    t = s[:, None]
    way = quintic(t, off, span * off_slope, down, span * down_slope)
    way = way + curved(t, span**2 * off_bend, span**2 * down_bend)
    lift = gait.clearance * leg_length(figure, leg) * bump(s)
    return np.asarray(way + lift[:, None] * UP)


def _edge(
    figure: Figure, leg: Limb, gait: Gait, prints: Array, share: float
) -> tuple[Array, Array, Array]:
    """Return place, slope and curvature of the ankle where a stand begins or ends.

    Those are knots of the roll, where its second derivative is zero.
    """
    _, pitch, slope = next(knot for knot in gait.roll if knot[0] == share)
    shares = np.full(len(prints), share)
    lever = _lever(figure, leg, gait, shares)
    R = geometry.rotation_exp(prints[:, 3:] * UP)
    along = np.array([1.0, 0.0, 1.0])
    quarter = _pitched(np.array([pitch + 0.5 * np.pi]))[0] * along
    half = _pitched(np.array([pitch + np.pi]))[0] * along
    first = -slope * np.einsum("fij,fj->fi", R @ quarter, lever)
    second = -(slope**2) * np.einsum("fij,fj->fi", R @ half, lever)
    return _rolled(figure, leg, gait, prints, shares), first, second


def pelvis_path(
    figure: Figure, gait: Gait, course: Course, times: Float[Array, " frame"]
) -> Float[Array, "frame 4 4"]:
    """Return T_world_root: along the path, bobbing and swaying over the legs."""
    leg = figure.legs[0]
    length = leg_length(figure, leg)
    beat = 2.0 * np.pi * course.phase(times, leg)
    middle = 2.0 * np.pi * 0.5 * leg.stance
    heading = course.heading(times)
    rest = figure.skeleton.offset[0, 2]
    z = rest - (1.0 - gait.height) * length
    z = z + gait.bob * length * np.cos(2.0 * (beat - 2.0 * np.pi * gait.crest))
    side = gait.sway * length * np.cos(beat - middle)
    left = np.stack([-np.sin(heading), np.cos(heading), np.zeros_like(z)], axis=-1)
    place = course.place(times) + side[:, None] * left + z[:, None] * UP
    rotvec = np.stack(
        [
            gait.pelvis_list * np.cos(beat - 0.8),
            np.full_like(z, gait.lean),
            heading - gait.pelvis_turn * np.cos(beat),
        ],
        axis=-1,
    )
    return root_pose(place, rotvec)


def step(
    figure: Figure,
    gait: Gait,
    course: Course,
    times: Float[Array, " frame"],
    T_world_root: Float[Array, "frame 4 4"],
    angles: Float[Array, "frame joint 3"],
) -> Float[Array, "frame joint 3"]:
    """Return the angles with every leg placed on its foot's path."""
    angles = angles.copy()
    T = world_of(figure.skeleton, T_world_root, angles)
    for leg in figure.legs:
        foot = foot_poses(figure, leg, gait, course, times)
        heading = course.heading(times) + 0.5 * leg.side * gait.toe_out
        R = geometry.rotation_exp(heading[:, None] * UP)
        axis = R @ figure.skeleton.axes[leg.middle, 0]
        swing = course.phase(times, leg)
        twist = gait.knee_twist * np.sin(2.0 * np.pi * (swing - 0.45))
        parent = T[:, figure.skeleton.parent[leg.upper]]
        angles[:, leg.joints] = place_limb(
            figure.skeleton, leg.joints, parent, foot, axis, twist
        )
    return angles


def plants(
    figure: Figure, gait: Gait, course: Course, seconds: float
) -> tuple[Contact, ...]:
    """Return the contacts of all feet, in order of their beginning."""
    contacts = []
    for leg in figure.legs:
        first = int(np.floor(course.phase(np.array(0.0), leg)))
        last = int(np.ceil(course.phase(np.array(seconds), leg)))
        for number in range(first, last + 1):
            contacts += _plant(figure, leg, gait, course, number)
    inside = [c for c in contacts if c.end > 0.0 and c.start < seconds]
    return tuple(sorted(inside, key=lambda contact: contact.start))


def _plant(
    figure: Figure, leg: Limb, gait: Gait, course: Course, number: int
) -> list[Contact]:
    prints = _prints(figure, leg, gait, course, np.array([float(number)]))
    R = geometry.rotation_exp(prints[0, 3] * UP)
    began = (number + leg.phase - course.start) * course.period
    spans = [(0.0, gait.roll[2][0]), (gait.roll[1][0], leg.stance)]
    if len(leg.tips) == 1:
        spans = [(0.0, leg.stance)]
    return [
        Contact(
            figure.skeleton.names[tip],
            began + start * course.period,
            began + end * course.period,
            prints[0, :3] + R @ figure.skeleton.offset[tip],
        )
        for tip, (start, end) in zip(leg.tips, spans, strict=True)
    ]


def walk(
    figure: Figure, times: Float[Array, " frame"], *, seconds: float, seed: int
) -> Pose:
    """Return an easy walk straight ahead at a steady pace.

    Args:
        figure: A figure with legs.
        times: Seconds.
        seconds: Length of the whole walk.
        seed: Draws the walker's style and the foot that is down first.
    """
    return _walk(figure, times, seconds, seed, turn=0.0)


def circle(
    figure: Figure, times: Float[Array, " frame"], *, seconds: float, seed: int
) -> Pose:
    """Return a walk round a circle, some five metres across for a person."""
    return _walk(figure, times, seconds, seed, turn=0.5)


def _walk(
    figure: Figure, times: Array, seconds: float, seed: int, *, turn: float
) -> Pose:
    rng = np.random.default_rng([seed, 1])
    gait = styled(figure, rng, turn=turn)
    course = course_of(figure, gait, start=rng.uniform(0.0, 1.0))
    T_world_root = pelvis_path(figure, gait, course, times)
    angles = carried(figure, gait, course, times)
    angles = angles + idle(figure, angles, times, rng)
    angles = step(figure, gait, course, times, T_world_root, angles)
    return Pose(T_world_root, angles, plants(figure, gait, course, seconds))
