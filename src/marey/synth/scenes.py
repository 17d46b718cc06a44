"""Scenes: recordings of two people who walk together, hand over or shake hands."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from marey.errors import OptionError
from marey.motion import Motion
from marey.numerics import Array, Float, geometry
from marey.synth.corruption.options import merge_options
from marey.synth.figures.build import JointSpec, SurfaceRow, Y, Z, build_figure
from marey.synth.figures.figure import (
    Figure,
    PoseSequence,
    motion_from_poses,
    sample_times,
)
from marey.synth.figures.figures import human
from marey.synth.performance.curves import pulse, smoothstep
from marey.synth.performance.motions import reach
from marey.synth.recording import Sensors, capture
from marey.synth.truth import Link, Recording

SceneName = Literal["together", "handover", "clasp"]

HANDOVER_DISTANCE, CLASP_DISTANCE, SIDE_OFFSET = 0.76, 0.58, 0.06
"""Distance between two people in a handover and in a handshake, and sideways offset of
each that brings their right hands opposite each other, in statures. Chosen by hand."""

REACH_SECONDS = 0.8
"""Time in which an arm reaches out or returns, in seconds. Chosen by hand."""

BOTH_HOLD_SECONDS = 0.2
"""Half the time in which both people hold the stick, in seconds. Chosen by hand."""


def prop(length: float = 0.5) -> Figure:
    """Return a stick: one rigid body with a fixed joint at each end.

    Args:
        length: Length in metres, 0.05 to 5.
    """
    if not 0.05 <= length <= 5.0:
        raise OptionError("length", found=length, needed="0.05 to 5 m")
    rows = [
        JointSpec("Prop", "", (0.0, 0.0, 1.0), "root"),
        JointSpec("PropStart", "Prop", (-0.5, 0.0, 0.0)),
        JointSpec("PropEnd", "Prop", (0.5, 0.0, 0.0)),
    ]
    ends = ((-0.5, 0.0, 0.0), (0.5, 0.0, 0.0))
    stick = SurfaceRow("Stick", "Prop", *ends, (0.05, 0.05), (0.05, 0.05), Y, Z, 8.0)
    return build_figure("prop", rows, [stick], ("swing", "still"), scale=length)


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
    """Return one recording of two people and the stick they hold, if any.

    "together": they walk side by side. "handover": one gives a stick to the other in
    the middle of the take. "clasp": their right hands meet exactly during the middle
    half of the take, which closes a kinematic loop. `truth.links` lists the holds.

    Args:
        name: Name of the scene.
        seconds: Length, 4 s or more.
        rate: Frames per second.
        markers: As in `record`; the stick has its own markers.
        sensors: As in `record`.
        labels: As in `record`; subjects are "A", "B" and "PROP".
        seed: Seed of people, motions, marker placement and corruption.
        corruption: The errors to add. Default: none.
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
        corruption=merge_options(corruption, options),
        links=links,
    )


People = tuple[Figure, Figure]
SceneParts = tuple[tuple[Figure, ...], tuple[Motion, ...], tuple[Link, ...]]


def _together(people: People, seconds: float, rate: float, seed: int) -> SceneParts:
    """Return two people who move side by side."""
    motions = tuple(
        _transform_motion(
            figure.perform("walk", seconds=seconds, rate=rate, seed=2 * seed + i),
            geometry.transform(np.eye(3), np.array([0.3 * i, 1.0 - 2.0 * i, 0.0])),
        )
        for i, figure in enumerate(people)
    )
    return people, motions, ()


def _facing(people: People, distance: float) -> tuple[Array, Array]:
    """Return T_world_stage (m) of two people who face each other."""
    stature = 0.5 * (people[0].height + people[1].height)
    position = stature * np.array([-0.5 * distance, SIDE_OFFSET, 0.0])
    half_turn = np.diag([-1.0, -1.0, 1.0])
    return geometry.transform(np.eye(3), position), geometry.transform(
        half_turn, -position
    )


def _handover(people: People, seconds: float, rate: float, seed: int) -> SceneParts:
    """Return two people, one of whom gives the other a stick."""
    times = sample_times(seconds, rate)
    middle = 0.5 * seconds
    stick = prop()
    height = 0.62 * people[0].height
    T_world_prop = _prop_poses(times, middle, height)
    still = np.zeros((len(times), 3, 3))
    prop_motion = motion_from_poses(
        stick.skeleton, PoseSequence(T_world_prop, still), rate
    )
    motions, links = [], []
    spans = ((0.0, middle + BOTH_HOLD_SECONDS), (middle - BOTH_HOLD_SECONDS, seconds))
    stages = _facing(people, HANDOVER_DISTANCE)
    for i, (figure, stage) in enumerate(zip(people, stages, strict=True)):
        start, end = spans[i]
        hold_times = np.clip(times, start, end)
        T_world_hand = _prop_poses(hold_times, middle, height) @ _grip(figure, i)
        share = pulse(times, start, end, REACH_SECONDS)
        motions.append(_reach_on_stage(figure, share, stage, T_world_hand, rate))
        hand = figure.skeleton.index("RightHand")
        links.append(Link(i, hand, 2, 0, start, end))
    return (*people, stick), (*motions, prop_motion), tuple(links)


def _prop_poses(
    times: Float[Array, " frame"], middle: float, height: float
) -> Float[Array, "frame 4 4"]:
    """Return T_world_prop (m): near A, still while both hold the stick, then near B."""
    progress = smoothstep((times - middle + 1.5) / 1.2) + smoothstep(
        (times - middle - 0.3) / 1.2
    )
    motion = 1.0 - pulse(times, middle - 0.3, middle + 0.3, 1.2)
    position = np.zeros((len(times), 3))
    position[:, 0] = 0.12 * (progress - 1.0)
    position[:, 1] = 0.03 * motion * np.sin(2.0 * times)
    position[:, 2] = height + 0.03 * motion * np.sin(3.1 * times)
    rotvec = np.zeros_like(position)
    rotvec[:, 1] = 0.12 * motion * np.sin(1.7 * times)
    rotvec[:, 2] = 0.2 * motion * np.sin(2.3 * times)
    return geometry.transform(geometry.rotation_exp(rotvec), position)


def _grip(figure: Figure, holder: int) -> Float[Array, "4 4"]:
    """Return T_prop_hand (m) of a palm that grips the holder's end of the stick."""
    palm = 0.6 * figure.skeleton.offset[figure.skeleton.index("RightHandEnd")]
    facing = np.diag([-1.0, -1.0, 1.0]) if holder else np.eye(3)
    R = facing @ _extended_hand(0.05)
    end = np.array([0.18 if holder else -0.18, 0.0, 0.0])
    return geometry.transform(R, end - R @ palm)


def _extended_hand(pitch: float) -> Float[Array, "3 3"]:
    """Return the rotation of an extended right hand: fingers forward, thumb up."""
    ahead = geometry.rotation_exp(np.array([0.0, 0.0, 0.5 * np.pi + 0.2]))
    thumb_up = geometry.rotation_exp(np.array([1.3, 0.0, 0.0]))
    return np.asarray(
        geometry.rotation_exp(np.array([0.0, pitch, 0.0])) @ thumb_up @ ahead
    )


def _clasp(people: People, seconds: float, rate: float, seed: int) -> SceneParts:
    """Return two people who shake hands."""
    times = sample_times(seconds, rate)
    start, end = 0.25 * seconds, 0.75 * seconds
    height = 0.60 * people[0].height
    motions = []
    for figure, stage in zip(people, _facing(people, CLASP_DISTANCE), strict=True):
        hold_times = np.clip(times, start, end)
        shake = pulse(hold_times, start + 0.5, end - 0.5, 0.5)
        meeting_point = np.zeros((len(times), 3))
        meeting_point[:, 2] = height + 0.05 * shake * np.sin(6.0 * (hold_times - start))
        R = stage[:3, :3] @ _extended_hand(0.33)
        palm = figure.skeleton.offset[figure.skeleton.index("RightHandEnd")]
        T_world_hand = np.tile(geometry.transform(R, -R @ palm), (len(times), 1, 1))
        T_world_hand[:, :3, 3] += meeting_point
        share = pulse(times, start, end, REACH_SECONDS)
        motions.append(_reach_on_stage(figure, share, stage, T_world_hand, rate))
    ends = [figure.skeleton.index("RightHandEnd") for figure in people]
    link = Link(0, ends[0], 1, ends[1], start, end)
    return people, (motions[0], motions[1]), (link,)


def _reach_on_stage(
    figure: Figure,
    share: Float[Array, " frame"],
    T_world_stage: Float[Array, "4 4"],
    T_world_hand: Float[Array, "frame 4 4"],
    rate: float,
) -> Motion:
    """Return the reach of a figure that stands somewhere for a hand pose."""
    hand = geometry.inverse(T_world_stage) @ T_world_hand
    motion = reach(figure, share, lambda _: hand, rate=rate, lean=0.10, sway=0.006)
    return _transform_motion(motion, T_world_stage)


def _transform_motion(motion: Motion, T_world_stage: Float[Array, "4 4"]) -> Motion:
    """Return a motion and its contacts transformed to another part of the world."""
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
