"""Zordan2003, Sec. 3: the walk with its feet on the ground, before and after."""

from collections.abc import Mapping
from time import perf_counter
from typing import Any

import numpy as np

from marey.motion import Motion
from marey.papers.experiment import Effort, Experiment
from marey.papers.zordan2003.examples import (
    Run,
    example,
    off_truth,
    roughness,
    settled,
    short,
    three,
)
from marey.papers.zordan2003.pictures import filmstrip, spaced
from marey.pose.contact.ground_contacts import (
    GroundContacts,
    enforce_contacts,
    find_ground_contacts,
    ground_contacts_of,
)
from marey.pose.physics import fit
from marey.report import Table
from marey.skeleton import Skeleton
from marey.synth import Recording

FRICTION = 0.8
"""Of rubber on a dry floor; the paper does not say its own."""

WAYS: Mapping[str, Mapping[str, Any]] = {
    "no ground": {},
    "ground, plants anchored": {"ground": "found"},
    "the same, simulated": {"ground": "found", "settle": "simulation"},
    "ground and friction as printed, simulated": {
        "ground": "found",
        "friction": FRICTION,
        "settle": "simulation",
    },
    "the same under its weight": {
        "ground": "found",
        "friction": FRICTION,
        "settle": "simulation",
        "gravity": 9.81,
    },
}

COLUMNS = (
    "method",
    "joints off the truth mm, rms",
    "feet",
    "acceleration m/s², rms",
    "skate mm/s",
    "below the floor mm, worst",
    "frames/s",
)


def standing(effort: Effort) -> Experiment:
    """A walk whose feet are on the ground: Sec. 3 and Fig. 5."""
    case = example("walk", 1.5 if effort.quick else 4.0, effort)
    take, skeleton = case.recording, case.own
    runs = {}
    for name, options in WAYS.items():
        effort.say(f"contact: {name}")
        settled(skeleton, short(take), **options)  # compiled before the clock
        runs[name] = settled(skeleton, take, **options)
    runs["no ground, held afterwards"] = _held(skeleton, take)
    footing = ground_contacts_of(take.truth.motion)
    rows = [_row("the truth", take.truth.motion, take, footing, "")]
    for name, run in runs.items():
        fps = three(take.n_frames / run.seconds)
        rows.append(_row(name, run.motion, take, footing, fps))
    motion = runs["ground, plants anchored"].motion
    return Experiment(
        title="Feet on the ground (Sec. 3, Fig. 5)",
        tables={"A walk with known plants": Table(COLUMNS, tuple(rows))},
        note="Skate is the mean speed of points that are planted in truth, from frame "
        "to frame: without a ground it is mostly noise. Friction as printed is a share "
        "of what presses a sole down; without gravity that is next to nothing, so "
        "feet slide on unless the figure has its weight, which in turn draws it off "
        "its markers. Plants that keep to anchors need neither, and do not depend on "
        "the frames before. `held afterwards` is what any method can have.",
        figures={
            "figure-5-feet": filmstrip(
                motion, spaced(motion, 0.1, 0.25, 7), "A walk with its feet held"
            )
        },
    )


def _held(skeleton: Skeleton, take: Recording) -> Run:
    start = perf_counter()
    motion = fit.fit_physics(skeleton, take).motion
    motion, _ = enforce_contacts(motion, find_ground_contacts(motion, take))
    return Run(motion, perf_counter() - start, np.nan)


def _row(
    name: str,
    motion: Motion,
    take: Recording,
    footing: GroundContacts,
    fps: float | str,
) -> tuple[str | float, ...]:
    off = off_truth(motion, take)
    feet = [motion.skeleton.index(foot) for foot in set(footing.points.names)]
    return (
        name,
        three(1e3 * np.sqrt(np.mean(off**2))),
        three(1e3 * np.sqrt(np.mean(off[:, feet] ** 2))),
        three(roughness(motion)),
        three(1e3 * footing.skate(motion)),
        three(1e3 * footing.penetration(motion)),
        fps,
    )
