"""Zordan2003, Sec. 3: ground contact of a walk, by several methods."""

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from marey.motion import Motion
from marey.papers.experiment import Effort, Experiment
from marey.papers.measures import (
    Cells,
    TimedMotion,
    joint_errors,
    rms,
    rms_acceleration,
    round_to_digits,
)
from marey.papers.zordan2003.performances import (
    first_frames,
    record_performance,
    solve_by_physics,
)
from marey.papers.zordan2003.plots import evenly_spaced_frames, filmstrip
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
"""Coefficient of friction of rubber on a dry floor; the paper gives none."""

METHODS: Mapping[str, Mapping[str, Any]] = {
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
    "joint error mm, rms",
    "of the feet",
    "acceleration m/s², rms",
    "skate mm/s",
    "below the floor mm, max",
    "frames/s",
)


def ground_contact(effort: Effort) -> Experiment:
    """Ground contact of a walk (Sec. 3, Fig. 5)."""
    case = record_performance("walk", 1.5 if effort.quick else 4.0, effort)
    take, skeleton = case.recording, case.performer
    runs = {}
    for name, options in METHODS.items():
        effort.report(f"contact: {name}")
        # Numba compiles at the first call, which is not timed.
        solve_by_physics(skeleton, first_frames(take), **options)
        runs[name] = solve_by_physics(skeleton, take, **options)
    runs["no ground, held afterwards"] = _solve_and_hold(skeleton, take)
    footing = ground_contacts_of(take.truth.motion)
    rows = [_row("truth", take.truth.motion, take, footing, "")]
    for name, run in runs.items():
        fps = round_to_digits(take.n_frames / run.seconds)
        rows.append(_row(name, run.motion, take, footing, fps))
    motion = runs["ground, plants anchored"].motion
    return Experiment(
        title="Feet on the ground (Sec. 3, Fig. 5)",
        tables={"A walk with known plants": Table(COLUMNS, tuple(rows))},
        note="Skate is the mean speed, from frame to frame, of points that are planted "
        "in truth: without a ground it is mostly noise. Friction as printed is a "
        "fraction of the force that presses a sole down. Without gravity that force "
        "nearly vanishes and feet slide; with gravity the weight pulls the figure away "
        "from its markers. Anchored plants need neither and do not depend on earlier "
        "frames. `held afterwards` can follow any method.",
        figures={
            "figure-5-feet": filmstrip(
                motion,
                evenly_spaced_frames(motion, 0.1, 0.25, 7),
                "A walk with its feet held",
            )
        },
    )


def _solve_and_hold(skeleton: Skeleton, take: Recording) -> TimedMotion:
    start = perf_counter()
    motion = fit.fit_physics(skeleton, take).motion
    motion, _ = enforce_contacts(motion, find_ground_contacts(motion, take))
    return TimedMotion(motion, perf_counter() - start)


def _row(
    name: str,
    motion: Motion,
    take: Recording,
    footing: GroundContacts,
    fps: float | str,
) -> Cells:
    error = joint_errors(motion, take)
    feet = [motion.skeleton.index(foot) for foot in set(footing.points.names)]
    cells = (
        1e3 * rms(error),
        1e3 * rms(error[:, feet]),
        rms_acceleration(motion),
        1e3 * footing.skate(motion),
        1e3 * footing.penetration(motion),
    )
    return (name, *map(round_to_digits, cells), fps)
