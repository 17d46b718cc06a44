"""Knight2007, Figs. 4 and 5: a karate pose and a dance of two, drawn and measured."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import marey
from marey import synth
from marey.joints import estimate_hierarchy
from marey.numerics import Array, Float, geometry
from marey.papers.frame import Cells, Drawing, Effort, Experiment, experiment, table
from marey.papers.knight2007.joints import (
    MARKER_NOISE_M,
    METHOD_OPTIONS,
    joint_errors,
)
from marey.papers.measures import timed
from marey.papers.plots import equalise_scales, make_panels
from marey.papers.recordings import true_bodies
from marey.plot.primitives import Camera, draw_bones, draw_markers
from marey.plot.style import BLUE, FAINT, GOLD, INK

RATE = 60.0
SECONDS = 80
"""Length of a full take, in seconds; a tenth of it is enough for a quick look."""

DANCE_DISTANCE_M = 0.9
"""Distance of the hips of two dancers who face each other, in metres."""


class PlacedPerformer(NamedTuple):
    """A performer whose skeleton was estimated and placed in every frame."""

    take: synth.Recording
    motions: dict[str, marey.Motion]
    """The motion by each method."""


@experiment("A karate pose and a salsa dance (Figs. 4 and 5)")
def performers(effort: Effort) -> Experiment:
    """A karate pose and two dancers with 41 markers each, root to leaf (Figs. 4, 5).

    The paper shows one frame of a performer of ACCAD and one of two dancers of CMU, and
    gives no numbers. Here the performers are generated, so that the truth is known:
    punches and kicks, and two people who step, bend and turn about each other. Each
    segment has the markers of a usual set of 41, often one or two. The constants come
    from another take, an exercise of the performer, since kicks hardly move the neck
    and the wrists; then every frame is placed on its own, ours by `SkeletonPlacer`. In
    the figures the true skeleton is light, markers are gold.
    """
    seconds = float(effort.runs(SECONDS))
    rows: list[Cells] = []
    karate = [_place(effort, "karate", *_karate(seconds, effort.seed))]
    leader, follower = _dance(seconds, effort.seed)
    dancers = [
        _place(effort, "salsa, leader", *leader),
        _place(effort, "salsa, follower", *follower),
    ]
    for performer, cells in (*karate, *dancers):
        del performer
        rows += cells
    header = (
        "performer | median joint mm | worst joint mm | constants s | frames per second"
    )
    caption = f"Generated performers, 41 markers, {seconds:g} s, 1 mm of noise"
    kick = _highest_foot(karate[0][0].take)
    middle = len(dancers[0][0].take.points) // 2
    return Experiment(
        tables={caption: table(header, rows)},
        figures={
            "figure-4": stills_drawing(
                "Fig. 4: a karate pose", [one for one, _ in karate], kick
            ),
            "figure-5": stills_drawing(
                "Fig. 5: a salsa dance", [one for one, _ in dancers], middle
            ),
        },
    )


def _karate(seconds: float, seed: int) -> tuple[synth.Figure, marey.Motion]:
    """Return a performer who punches and kicks."""
    figure = synth.human(seed=seed)
    return figure, figure.perform("kick_punch", seconds=seconds, rate=RATE, seed=seed)


def _dance(
    seconds: float, seed: int
) -> tuple[tuple[synth.Figure, marey.Motion], tuple[synth.Figure, marey.Motion]]:
    """Return two people who face each other in the middle of their dance."""
    figures = [synth.human(seed=seed + 1), synth.human(seed=seed + 2)]
    leader, follower = (
        figure.perform("chicken_walk", seconds=seconds, rate=RATE, seed=seed + k)
        for k, figure in enumerate(figures)
    )
    middle = leader.n_frames // 2
    facing = _level_pose(leader.T_world_root[middle])
    apart = geometry.transform(
        geometry.rotation_exp(np.array([0.0, 0.0, np.pi])),
        np.array([DANCE_DISTANCE_M, 0.0, 0.0]),
    )
    here = geometry.inverse(_level_pose(follower.T_world_root[middle]))
    moved = facing @ apart @ here @ follower.T_world_root
    wxyz = follower.wxyz.copy()
    wxyz[:, 0] = geometry.quat_from_matrix(moved[:, :3, :3])
    follower = replace(follower, T_world_root=moved, wxyz=wxyz, contacts=())
    return (figures[0], leader), (figures[1], follower)


def _level_pose(T: Float[Array, "4 4"]) -> Float[Array, "4 4"]:
    """Return the pose on the ground below a root, with its heading."""
    yaw = float(np.arctan2(T[1, 0], T[0, 0]))
    R = geometry.rotation_exp(np.array([0.0, 0.0, yaw]))
    return np.asarray(geometry.transform(R, T[:3, 3] * [1.0, 1.0, 0.0]))


def _place(
    effort: Effort, name: str, figure: synth.Figure, motion: marey.Motion
) -> tuple[PlacedPerformer, list[Cells]]:
    """Return a performer placed by both methods, and the rows of the table."""
    duration = motion.n_frames / RATE
    exercise = figure.perform("exercise", seconds=duration, rate=RATE, seed=effort.seed)
    to_learn, take = (
        synth.capture(
            (figure,),
            (one,),
            names=("",),
            markers="sparse41",
            seed=effort.seed,
            corruption=synth.Corruption(noise=MARKER_NOISE_M),
        )
        for one in (exercise, motion)
    )
    bodies, learnt_from = true_bodies(take), true_bodies(to_learn)
    motions: dict[str, marey.Motion] = {}
    rows: list[Cells] = []
    for method, options in METHOD_OPTIONS.items():
        effort.report(f"performers: {name}, {method}")
        found, seconds = timed(
            estimate_hierarchy,
            (learnt_from,),
            _parents(figure, bodies.names),
            **options,
        )
        if method == "ours":
            place_frames(found.skeleton, take.cut(0, 2))  # compiled kernels load once
            motions[method], placing = timed(place_frames, found.skeleton, take)
        else:
            motions[method], placing = timed(found.pose, bodies)
        error = 1e3 * joint_errors(take, motions[method])
        rows.append(
            (
                f"{name}, {method}",
                round(float(np.median(error)), 1),
                round(float(error.max()), 1),
                round(seconds, 2),
                round(take.n_frames / placing, -2),
            )
        )
    return PlacedPerformer(take, motions), rows


def place_frames(skeleton: marey.Skeleton, take: marey.Take) -> marey.Motion:
    """Return the motion of a skeleton that is placed in every frame on its own."""
    placer = marey.SkeletonPlacer(skeleton, take.labels)
    placed = [placer.place(points) for points in take.points]
    root, wxyz = (np.array(part) for part in zip(*placed, strict=True))
    T = geometry.transform(geometry.matrix_from_quat(wxyz[:, 0]), root)
    return marey.Motion(skeleton=skeleton, T_world_root=T, wxyz=wxyz, rate=take.rate)


def _parents(figure: synth.Figure, bodies: Sequence[str]) -> dict[str, str]:
    """Return the nearest body above each that has markers."""
    names, parent = figure.skeleton.names, figure.skeleton.parent
    tree = {}
    for body in bodies[1:]:
        above = int(parent[names.index(body)])
        while names[above] not in bodies:
            above = int(parent[above])
        tree[body] = names[above]
    return tree


def _highest_foot(take: synth.Recording) -> int:
    """Return the frame in which a foot is highest."""
    motion = take.truth.motion
    feet = [i for i, name in enumerate(motion.skeleton.names) if name.endswith("Foot")]
    height = motion.T_world_joint()[:, feet, 2, 3].max(axis=1)
    return int(np.argmax(height))


def stills_drawing(
    title: str, performers: Sequence[PlacedPerformer], frame: int
) -> Drawing:
    """Return a drawing of one frame, a panel for each method.

    Args:
        title: Title of the figure.
        performers: The performers.
        frame: Number of the frame.
    """
    view = Camera.facing(performers[0].take.truth.motion.T_world_root[frame], 60.0)

    def draw(figure: Any) -> None:
        every = list(make_panels(figure, len(METHOD_OPTIONS), (8.0, 4.2), title))
        for axes, method in zip(every, METHOD_OPTIONS, strict=True):
            for one, colour in zip(performers, (BLUE, INK), strict=False):
                _draw_performer(axes, one, method, frame, view, colour)
            axes.set_title(method, fontsize=9, color=INK)
        equalise_scales(every, 0.55)

    return draw


def _draw_performer(
    axes: Any,
    performer: PlacedPerformer,
    method: str,
    frame: int,
    view: Camera,
    colour: str,
) -> None:
    """Draw the true bones, the estimated ones and the markers of one frame."""
    for motion, shade, width in (
        (performer.take.truth.motion, FAINT, 5.0),
        (performer.motions[method], colour, 2.4),
    ):
        spots = view.project(motion.T_world_joint()[frame, :, :3, 3])
        parent = motion.skeleton.parent
        draw_bones(axes, spots, parent, [shade] * len(parent), width)
    draw_markers(axes, view.project(performer.take.points[frame]), GOLD, 10.0)
