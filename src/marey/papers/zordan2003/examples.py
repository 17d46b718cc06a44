"""Zordan2003: martial arts and walking, with the truth beside (Sec. 4)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from jaxtyping import Float

from marey import synth
from marey.motion import Motion
from marey.papers.experiment import Effort, Experiment
from marey.papers.zordan2003.pictures import close_ups, filmstrip, spaced, time_lapse
from marey.pose import solve_pose
from marey.pose.physics import fit
from marey.report import Table
from marey.skeleton import Skeleton
from marey.synth import Recording

Array = np.ndarray

RATE, NOISE = 120.0, 2e-3
MARKERS = "set53"

PAPER_FPS = "2-3"

PRINTED: Mapping[str, Any] = {
    "pull": "all",
    "torque": 1.0,
    "limits": False,
    "cutoff": np.inf,
}
"""As the paper has it: every joint pulled, no limits, no spring ever off. Its gain is
not said; this one shows."""

ROUND, KICK = 4.2, 2.2
"""Seconds of a round of punches and a kick, and when the kick begins."""


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """A performance, recorded, and the two skeletons that it is mapped to."""

    recording: Recording
    own: Skeleton
    """The performer's, markers where they are."""

    average: Skeleton
    """An average person's, scaled to the performer's height, with its own template of
    the marker set: "no other specialized adjustments were made"."""


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Poses of one example and what they took."""

    motion: Motion
    seconds: float
    steps: float


def example(motion: str, seconds: float, effort: Effort) -> Example:
    """Return a performer of the usual build, but not the average, in a motion."""
    seed, rate = effort.seed, 30.0 if effort.quick else RATE
    performer = synth.human(seed=seed + 3)
    take = performer.record(
        motion, seconds=seconds, rate=rate, markers=MARKERS, noise=NOISE, seed=seed
    )
    template = synth.human(height=performer.height, seed=0)
    worn = template.record("still", seconds=0.1, rate=RATE, markers=MARKERS)
    return Example(
        take, wearing(performer.skeleton, take), wearing(template.skeleton, worn)
    )


def wearing(skeleton: Skeleton, take: Recording) -> Skeleton:
    """Return a skeleton with the markers of a recording on it."""
    return replace(
        skeleton,
        marker_labels=take.truth.marker_labels,
        marker_joint=take.truth.marker_joint,
        marker_offset=take.truth.marker_offset,
    )


def settled(skeleton: Skeleton, take: Recording, **options: Any) -> Run:
    """Return the postures at rest, timed."""
    start = perf_counter()
    found = fit.fit_physics(skeleton, take, **options)
    return Run(found.motion, perf_counter() - start, float(found.steps.mean()))


def by_gauss_newton(skeleton: Skeleton, take: Recording) -> Run:
    """Return the poses of the default method, timed."""
    start = perf_counter()
    motion = solve_pose(skeleton, take, method="gauss_newton")
    return Run(motion, perf_counter() - start, np.nan)


def virtual_markers(motion: Motion) -> Float[Array, "frame marker 3"]:
    """Return the places of the markers on the body."""
    skeleton = motion.skeleton
    T = motion.T_world_joint()[:, skeleton.marker_joint]
    turned = T[..., :3, :3] @ skeleton.marker_offset[:, :, None]
    return np.asarray(turned[..., 0] + T[..., :3, 3])


def off_markers(motion: Motion, take: Recording) -> Float[Array, "frame marker"]:
    """Return how far every marker is from its place on the body, in metres."""
    return np.asarray(np.linalg.norm(virtual_markers(motion) - take.points, axis=-1))


def off_truth(motion: Motion, take: Recording) -> Float[Array, "frame joint"]:
    """Return how far every joint is from the truth, in metres."""
    true = take.truth.motion.T_world_joint()[..., :3, 3]
    return np.asarray(
        np.linalg.norm(motion.T_world_joint()[..., :3, 3] - true, axis=-1)
    )


def roughness(motion: Motion) -> float:
    """Return the rms acceleration of all joints, in m/s^2: noise makes it large."""
    place = motion.T_world_joint()[..., :3, 3]
    change = np.diff(place, n=2, axis=0) * motion.rate**2
    return float(np.sqrt(np.mean(np.sum(change**2, axis=-1))))


COLUMNS = (
    "skeleton and method",
    "markers off mm, mean",
    "worst",
    "joints off the truth mm, rms",
    "worst",
    "acceleration m/s², rms",
    "frames/s",
)


def compared(case: Example) -> tuple[Table, Motion]:
    """Return one row a method, and the motion of the average skeleton."""
    take = case.recording
    for settle in ("direct", "simulation"):
        settled(case.own, short(take), settle=settle)  # compiled before the clock
    runs = {
        "average, simulated as printed": settled(
            case.average, take, settle="simulation", **PRINTED
        ),
        "average, simulated": settled(case.average, take, settle="simulation"),
        "average, direct": settled(case.average, take),
        "its own, simulated": settled(case.own, take, settle="simulation"),
        "its own, direct": settled(case.own, take),
        "its own, gauss_newton": by_gauss_newton(case.own, take),
    }
    truth = roughness(take.truth.motion)
    rows: list[tuple[str | float, ...]] = [
        ("paper", "", "", "", "", "", PAPER_FPS),
        ("the truth", "", "", 0.0, 0.0, three(truth), ""),
    ]
    for name, run in runs.items():
        away, off = off_markers(run.motion, take), off_truth(run.motion, take)
        rows.append(
            (
                name,
                three(1e3 * away.mean()),
                three(1e3 * away.max()),
                three(1e3 * np.sqrt(np.mean(off**2))),
                three(1e3 * off.max()),
                three(roughness(run.motion)),
                three(take.n_frames / run.seconds),
            )
        )
    return Table(COLUMNS, tuple(rows)), runs["average, simulated"].motion


def short(take: Recording) -> Recording:
    """Return the first frames of a recording."""
    return replace(
        take,
        points=take.points[:3],
        filled=take.filled[:3],
        T_world_sensor=take.T_world_sensor[:3],
    )


def three(value: float) -> float:
    """Return a number with three digits."""
    return float(f"{value:.3g}")


NOTE = (
    "The performer is generated, so the truth is known; the paper shows pictures and "
    "says that postures are believable and smooth. Of the average skeleton, only "
    "scaled to the height, joints are off by what the builds differ, as they are in "
    "the paper. The four gains are the same here and in the other example. Frames per "
    "second are of one core of this machine, first frames included; the paper's of a "
    "Pentium IV at 2.4 GHz. `its own` is the skeleton of the performer."
)


def fighting(effort: Effort) -> Experiment:
    """Punches and kicks: Sec. 4.1 and Figs. 2-4."""
    seconds = 3.4 if effort.quick else 2 * ROUND
    case = example("kick_punch", seconds, effort)
    table, motion = compared(case)
    take = case.recording
    lapse = spaced(motion, KICK, 0.05, 16) + spaced(motion, ROUND + KICK, 0.05, 16)
    stills = spaced(motion, KICK + 0.05, 0.25, 3)
    strip = spaced(motion, KICK, 0.17, 7)
    return Experiment(
        title="Martial arts (Sec. 4.1, Figs. 2-4)",
        tables={"Punches and kicks": table},
        note=NOTE,
        figures={
            "figure-2": time_lapse(motion, lapse, "Kicks in time lapse"),
            "figure-3": close_ups(
                motion,
                take.points,
                virtual_markers(motion),
                stills,
                "Recorded markers gold, those on the body dark",
            ),
            "figure-4": filmstrip(motion, strip, "A kick, 0.17 s from still to still"),
        },
    )


def walking(effort: Effort) -> Experiment:
    """A walk with the gains of the kicks: Sec. 4.2 and Fig. 5."""
    seconds = 2.6 if effort.quick else 6.0
    case = example("walk", seconds, effort)
    table, motion = compared(case)
    strip = spaced(motion, 0.1, 0.5, 6)
    return Experiment(
        title="Walking (Sec. 4.2, Fig. 5)",
        tables={"A walk": table},
        note=NOTE,
        figures={
            "figure-5": filmstrip(motion, strip, "A walk, 0.50 s from still to still")
        },
    )


def gains(effort: Effort) -> Experiment:
    """What the gains do: rest does not feel damping, and torques draw off (Eqs. 1-2).

    "A wide range of values appear adequate from our inspection" (Sec. 2.2).
    """
    case = example("kick_punch", 0.3 if effort.quick else 1.0, effort)
    take, rows = case.recording, []
    usual = settled(case.own, take).motion
    varied: tuple[Mapping[str, Any], ...] = (
        {},
        {"damping": 15.0},
        {"damping": 60.0},
        {"stiffness": 1000.0},
        {"stiffness": 4000.0},
        {"pull": "all", "torque": 0.1},
        {"pull": "all", "torque": 1.0},
        {"pull": "all", "torque": 10.0},
    )
    for some in varied:
        run = settled(case.own, take, settle="simulation", **some)
        direct = settled(case.own, take, **some).motion
        rows.append(
            (
                ", ".join(f"{k} {v}" for k, v in some.items()) or "as they are",
                three(run.steps),
                three(1e3 * _apart(run.motion, direct)),
                three(1e3 * _apart(run.motion, usual)),
                three(1e3 * np.sqrt(np.mean(off_truth(run.motion, take) ** 2))),
            )
        )
    columns = (
        "gains",
        "steps per frame",
        "simulation off the least energy mm",
        "off the usual gains mm, worst",
        "joints off the truth mm, rms",
    )
    return Experiment(
        title="The four gains (Secs. 2.2 and 2.3)",
        tables={"Kicks, its own skeleton": Table(columns, tuple(rows))},
        note="Where the figure rests does not depend on damping or mass, and on the "
        "springs' stiffness only where torques pull against them. Torques on all "
        "joints, as printed, draw the figure off its markers: the stiffer the further.",
    )


def _apart(one: Motion, two: Motion) -> float:
    away = (one.T_world_joint() - two.T_world_joint())[..., :3, 3]
    return float(np.linalg.norm(away, axis=-1).max())
