"""Scenes: several figures in one volume, holding things and each other."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from marey.errors import OptionError
from marey.motion import Contact, Motion
from marey.numerics import geometry
from marey.synth.corruption.options import corruption_of
from marey.synth.figures.build import (
    Flesh,
    Row,
    Y,
    Z,
    neutral_of,
    shapes_of,
    skeleton_of,
)
from marey.synth.figures.figure import Figure, Limb, Pose, as_motion, sample_times
from marey.synth.figures.figures import human
from marey.synth.performance.curves import pulse, rise
from marey.synth.performance.limbs import place_limb, world_of
from marey.synth.performance.motions import eased_root, standing, tip_contacts
from marey.synth.record import Sensors, capture
from marey.synth.truth import Link, Recording

Array = np.ndarray
SceneName = Literal["together", "handover", "clasp"]

# Distance of two people who hand something over or shake hands, in statures, and how
# far each stands aside so that their right hands face each other.
HANDOVER_APART, CLASP_APART, ASIDE = 0.76, 0.58, 0.06

# Seconds an arm takes to reach out or to come back.
REACH_SECONDS = 0.8

# Half the time during which both hold the thing that is handed over, in seconds.
BOTH_HOLD = 0.2


def prop(length: float = 0.5) -> Figure:
    """Return a stick, one rigid body, its ends marked by joints.

    Args:
        length: In metres, 0.05 to 5.
    """
    if not 0.05 <= length <= 5.0:
        raise OptionError("length", found=length, needed="0.05 to 5 m")
    rows = [
        Row("Prop", "", (0.0, 0.0, 1.0), "root"),
        Row("PropStart", "Prop", (-0.5, 0.0, 0.0)),
        Row("PropEnd", "Prop", (0.5, 0.0, 0.0)),
    ]
    ends = ((-0.5, 0.0, 0.0), (0.5, 0.0, 0.0))
    skeleton = skeleton_of(rows, length)
    stick = Flesh("Stick", "Prop", *ends, (0.05, 0.05), (0.05, 0.05), Y, Z, 8.0)
    return Figure(
        name="prop",
        skeleton=skeleton,
        shapes=shapes_of([stick], skeleton, length),
        neutral=neutral_of(rows),
        motions=("swing", "still"),
    )


def scene(
    name: SceneName = "handover",
    *,
    seconds: float = 8.0,
    rate: float = 120.0,
    markers: str | int | None = None,
    sensors: Sensors = False,
    labels: bool = True,
    seed: int = 0,
    corruption: Any = None,
    **options: Any,
) -> Recording:
    """Return one recording of two people, with what they hold.

    "together": they walk side by side. "handover": one gives a stick to the other in
    the middle of the take. "clasp": their right hands meet exactly for the middle half
    of it, a closed loop. Who holds whom, and when, stands in `truth.links`.

    Args:
        name: The scene.
        seconds: Length, 4 s or more.
        rate: Frames per second.
        markers: As in `record`; the stick has its own.
        sensors: As in `record`.
        labels: As in `record`; subjects are "A", "B" and "PROP".
        seed: Draws the people, their ways, placement and corruption.
        corruption: What goes wrong.
        **options: Single options of `Corruption`.
    """
    if name not in _SCENES:
        raise OptionError("name", found=name, needed=", ".join(_SCENES))
    if seconds < 4.0:
        raise OptionError("seconds", found=seconds, needed="4 or more")
    people = human(1.82, seed=2 * seed), human(1.70, seed=2 * seed + 1)
    figures, motions, links = _SCENES[name](people, seconds, rate, seed)
    return capture(
        figures,
        motions,
        names=("A", "B", "PROP")[: len(figures)],
        markers=markers,
        sensors=sensors,
        labels=labels,
        seed=seed,
        corruption=corruption_of(corruption, options),
        links=links,
    )


People = tuple[Figure, Figure]
Played = tuple[tuple[Figure, ...], tuple[Motion, ...], tuple[Link, ...]]


def _together(people: People, seconds: float, rate: float, seed: int) -> Played:
    motions = tuple(
        _moved(
            figure.perform("walk", seconds=seconds, rate=rate, seed=2 * seed + i),
            geometry.transform(np.eye(3), np.array([0.3 * i, 1.0 - 2.0 * i, 0.0])),
        )
        for i, figure in enumerate(people)
    )
    return people, motions, ()


def _facing(people: People, apart: float) -> tuple[Array, Array]:
    """Return T_world_stage of two people who face each other."""
    stature = 0.5 * (people[0].height + people[1].height)
    place = stature * np.array([-0.5 * apart, ASIDE, 0.0])
    turned = np.diag([-1.0, -1.0, 1.0])
    return geometry.transform(np.eye(3), place), geometry.transform(turned, -place)


def _handover(people: People, seconds: float, rate: float, seed: int) -> Played:
    times = sample_times(seconds, rate)
    middle = 0.5 * seconds
    stick = prop()
    height = 0.62 * people[0].height
    T_world_prop = _carried_prop(times, middle, height)
    still = np.zeros((len(times), 3, 3))
    carried = as_motion(stick.skeleton, Pose(T_world_prop, still), rate)
    motions, links = [], []
    spans = ((0.0, middle + BOTH_HOLD), (middle - BOTH_HOLD, seconds))
    stages = _facing(people, HANDOVER_APART)
    for i, (figure, stage) in enumerate(zip(people, stages, strict=True)):
        start, end = spans[i]
        held = np.clip(times, start, end)
        T_world_hand = _carried_prop(held, middle, height) @ _grip(figure, i)
        share = pulse(times, start, end, REACH_SECONDS)
        goal = geometry.inverse(stage) @ T_world_hand
        pose = _reaching(figure, times, seconds, goal, share)
        motions.append(_moved(as_motion(figure.skeleton, pose, rate), stage))
        hand = figure.skeleton.index("RightHand")
        links.append(Link(i, hand, 2, 0, start, end))
    return (*people, stick), (*motions, carried), tuple(links)


def _carried_prop(
    times: Float[Array, " frame"], middle: float, height: float
) -> Float[Array, "frame 4 4"]:
    """Return the stick's way: near A, still while both hold it, then near B."""
    go = rise((times - middle + 1.5) / 1.2) + rise((times - middle - 0.3) / 1.2)
    away = 1.0 - pulse(times, middle - 0.3, middle + 0.3, 1.2)
    place = np.zeros((len(times), 3))
    place[:, 0] = 0.12 * (go - 1.0)
    place[:, 1] = 0.03 * away * np.sin(2.0 * times)
    place[:, 2] = height + 0.03 * away * np.sin(3.1 * times)
    turn = np.zeros_like(place)
    turn[:, 1] = 0.12 * away * np.sin(1.7 * times)
    turn[:, 2] = 0.2 * away * np.sin(2.3 * times)
    return geometry.transform(geometry.rotation_exp(turn), place)


def _grip(figure: Figure, holder: int) -> Float[Array, "4 4"]:
    """Return T_prop_hand: the palm closes on the holder's end of the stick."""
    palm = 0.6 * figure.skeleton.offset[figure.skeleton.index("RightHandEnd")]
    facing = np.diag([-1.0, -1.0, 1.0]) if holder else np.eye(3)
    R = facing @ _held_out(0.05)
    end = np.array([0.18 if holder else -0.18, 0.0, 0.0])
    return geometry.transform(R, end - R @ palm)


def _held_out(pitch: float) -> Float[Array, "3 3"]:
    """Return the rotation of a right hand held out: fingers on and down, thumb up."""
    ahead = geometry.rotation_exp(np.array([0.0, 0.0, 0.5 * np.pi + 0.2]))
    thumb_up = geometry.rotation_exp(np.array([1.3, 0.0, 0.0]))
    return np.asarray(
        geometry.rotation_exp(np.array([0.0, pitch, 0.0])) @ thumb_up @ ahead
    )


def _clasp(people: People, seconds: float, rate: float, seed: int) -> Played:
    times = sample_times(seconds, rate)
    start, end = 0.25 * seconds, 0.75 * seconds
    height = 0.60 * people[0].height
    motions = []
    for figure, stage in zip(people, _facing(people, CLASP_APART), strict=True):
        held = np.clip(times, start, end)
        shaken = pulse(held, start + 0.5, end - 0.5, 0.5)
        meet = np.zeros((len(times), 3))
        meet[:, 2] = height + 0.05 * shaken * np.sin(6.0 * (held - start))
        R = stage[:3, :3] @ _held_out(0.33)
        palm = figure.skeleton.offset[figure.skeleton.index("RightHandEnd")]
        hand = np.tile(geometry.transform(R, -R @ palm), (len(times), 1, 1))
        hand[:, :3, 3] += meet
        share = pulse(times, start, end, REACH_SECONDS)
        goal = geometry.inverse(stage) @ hand
        pose = _reaching(figure, times, seconds, goal, share)
        motions.append(_moved(as_motion(figure.skeleton, pose, rate), stage))
    ends = [figure.skeleton.index("RightHandEnd") for figure in people]
    link = Link(0, ends[0], 1, ends[1], start, end)
    return people, (motions[0], motions[1]), (link,)


def _reaching(
    figure: Figure,
    times: Array,
    seconds: float,
    T_stage_hand: Float[Array, "frame 4 4"],
    share: Float[Array, " frame"],
) -> Pose:
    """Return a standing figure whose right hand goes to a goal by a share of the way.

    At a share of one the hand is exactly there.
    """
    skeleton = figure.skeleton
    T_stage_root = eased_root(figure, times, sway=0.006)
    angles = np.tile(figure.neutral, (len(times), 1, 1))
    angles[:, skeleton.index("Spine"), 0] += 0.10 * share
    angles = standing(figure, T_stage_root, angles)
    arm = figure.arms[1]
    T = world_of(skeleton, T_stage_root, angles)
    parent = T[:, skeleton.parent[arm.upper]]
    axis = np.tile([0.0, -0.9, 0.4], (len(times), 1))
    goal = _arm_angles(figure, arm, parent, T_stage_hand, axis)
    joints = list(arm.joints)
    angles[:, joints] += share[:, None, None] * (goal - angles[:, joints])
    contacts: list[Contact] = []
    for leg in figure.legs:
        contacts += tip_contacts(figure, leg.tips, [(0.0, seconds)])
    return Pose(T_stage_root, angles, tuple(contacts))


def _arm_angles(
    figure: Figure, arm: Limb, parent: Array, T_world_hand: Array, axis: Array
) -> Float[Array, "frame 3 3"]:
    """Return arm angles for a hand pose, the forearm taking the wrist's twist."""
    skeleton, still = figure.skeleton, np.zeros(len(axis))
    first = place_limb(skeleton, arm.joints, parent, T_world_hand, axis, still)
    # The twist axes of forearm and wrist are the same line, so it can be handed on.
    forearm = first[:, 2, 2]
    return place_limb(skeleton, arm.joints, parent, T_world_hand, axis, forearm)


def _moved(motion: Motion, T_world_stage: Float[Array, "4 4"]) -> Motion:
    """Return a motion carried elsewhere, contacts and all."""
    contacts = tuple(
        replace(c, anchor=geometry.apply(T_world_stage, c.anchor))
        for c in motion.contacts
    )
    return replace(
        motion, T_world_root=T_world_stage @ motion.T_world_root, contacts=contacts
    )


_SCENES: dict[str, Any] = {
    "together": _together,
    "handover": _handover,
    "clasp": _clasp,
}
