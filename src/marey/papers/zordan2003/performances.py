"""Zordan2003, Sec. 4: martial arts and walking of a performer whose truth is known."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import marey
from marey import synth
from marey.attach import place_template, scale_skeleton
from marey.numerics import Array, Float
from marey.papers import measures
from marey.papers.frame import Cells, Effort, Experiment, experiment, table
from marey.papers.measures import TimedMotion
from marey.papers.stills import evenly_spaced_frames, filmstrip, stills
from marey.pose import fit_physics
from marey.report import Table
from marey.synth import Recording

RATE, NOISE_M = 120.0, 2e-3
MARKERS = "set53"

HEIGHT_M = 1.72
"""Height of the performer; the average skeleton was made for 1.80 m."""

PAPER_FPS = "2-3"

PUBLISHED_OPTIONS: Mapping[str, Any] = {
    "pull": "all",
    "torque": 1.0,
    "limits": False,
    "cutoff": np.inf,
    "shared_within": 0.05,
}
"""The paper's model: torques on every joint, no limits, no spring ever switched off,
markers near a joint on both bodies. The paper does not give the gain of the torques,
nor how near; both are chosen by hand."""

ROUND_SECONDS, KICK_START_S = 4.2, 2.2
"""Length of a round of punches and a kick, and when the kick begins."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordedPerformance:
    """A recorded performance and the two skeletons that it is mapped to."""

    recording: Recording
    performer: marey.Skeleton
    """The performer's true skeleton, with the true positions of the markers."""

    average: marey.Skeleton
    """The skeleton of another person, scaled to the performer's height, with a template
    of the marker set: "no other specialized adjustments were made"."""


def record_performance(
    motion: str, seconds: float, effort: Effort
) -> RecordedPerformance:
    """Return a motion of a performer whose build differs from the average.

    The template was put on the average skeleton on another day: its markers and those
    of the performer are misplaced independently.
    """
    # Odd seeds draw the performer, even ones the average skeleton and its template.
    seed, rate = 2 * effort.seed + 1, RATE if effort.full else 30.0
    performer, other = synth.human(HEIGHT_M, seed=seed), synth.human(seed=seed + 1)
    take = performer.record(
        motion, seconds=seconds, rate=rate, markers=MARKERS, noise=NOISE_M, seed=seed
    )
    fitting = other.record(
        "still", seconds=0.1, rate=rate, markers=MARKERS, seed=seed + 1
    )
    template = fitting.true_skeleton
    scaled = scale_skeleton(template, performer.height / other.height)
    average = place_template(scaled, template)
    return RecordedPerformance(take, take.true_skeleton, average)


def solve_by_physics(
    skeleton: marey.Skeleton, take: marey.Take, **options: Any
) -> TimedMotion:
    """Return the postures at equilibrium; steps are means over the frames."""
    solved, seconds = measures.timed(fit_physics, skeleton, take, **options)
    return TimedMotion(solved.motion, seconds, float(solved.steps.mean()))


def solve_by_gauss_newton(skeleton: marey.Skeleton, take: Recording) -> TimedMotion:
    """Return the poses of marey's default method."""
    return TimedMotion(
        *measures.timed(marey.solve_pose, skeleton, take, method="gauss_newton")
    )


def marker_residuals(
    motion: marey.Motion, take: Recording
) -> Float[Array, "frame marker"]:
    """Return the distance of every marker from its position on the body, in metres."""
    difference = motion.marker_points() - take.points
    return np.asarray(np.linalg.norm(difference, axis=-1))


def compare_methods(case: RecordedPerformance) -> tuple[Table, marey.Motion]:
    """Return one row per method, and the simulated motion of the average skeleton."""
    take, performer, average = case.recording, case.performer, case.average
    for settle in ("direct", "simulation"):
        # Numba compiles at the first call, which is not timed.
        solve_by_physics(performer, take.cut(0, 3), settle=settle)
    simulated = {"settle": "simulation"}
    runs = {
        "average, simulated as printed": solve_by_physics(
            average, take, **simulated, **PUBLISHED_OPTIONS
        ),
        "average, simulated": solve_by_physics(average, take, **simulated),
        "average, direct": solve_by_physics(average, take),
        "performer, simulated": solve_by_physics(performer, take, **simulated),
        "performer, direct": solve_by_physics(performer, take),
        "performer, gauss_newton": solve_by_gauss_newton(performer, take),
    }
    (acceleration,) = measures.rounded(measures.rms_acceleration(take.truth.motion))
    rows: list[Cells] = [
        ("paper", "", "", "", "", "", PAPER_FPS),
        ("truth", "", "", 0.0, 0.0, acceleration, ""),
    ]
    for name, run in runs.items():
        residual_mm = 1e3 * marker_residuals(run.motion, take)
        error_mm = 1e3 * measures.joint_errors(run.motion, take)
        cells = measures.rounded(
            residual_mm.mean(),
            residual_mm.max(),
            measures.rms(error_mm),
            error_mm.max(),
            measures.rms_acceleration(run.motion),
            take.n_frames / run.seconds,
        )
        rows.append((name, *cells))
    header = (
        "skeleton and method | marker residual mm, mean | max | joint error mm, rms | "
        "max | acceleration m/s², rms | frames/s"
    )
    return table(header, rows), runs["average, simulated"].motion


@experiment("Martial arts (Sec. 4.1, Figs. 2-4)")
def martial_arts(effort: Effort) -> Experiment:
    """Punches and kicks (Sec. 4.1, Figs. 2-4).

    The performer is generated, so the truth is known; the paper shows pictures and says
    that postures are believable and smooth. The average skeleton is only scaled to the
    height; its joint errors are the differences of build, and of where its template and
    the performer have their markers, as in the paper. The four
    gains are the same here and in the other experiment. Frames per second are of one
    core of this machine and include the first frames; the paper's are of a Pentium IV
    at 2.4 GHz. `performer` is the skeleton of the performer.
    """
    case = record_performance("kick_punch", 2 * ROUND_SECONDS, effort)
    methods, motion = compare_methods(case)
    lapse = [
        frame
        for start in (KICK_START_S, ROUND_SECONDS + KICK_START_S)
        for frame in evenly_spaced_frames(motion, start, 0.05, 16)
    ]
    close_ups = evenly_spaced_frames(motion, KICK_START_S + 0.05, 0.25, 3)
    strip = evenly_spaced_frames(motion, KICK_START_S, 0.17, 7)
    return Experiment(
        tables={"Punches and kicks": methods},
        figures={
            "figure-2": stills(motion, [lapse], "Kicks in time lapse", (6.0, 4.2)),
            "figure-3": stills(
                motion,
                [[frame] for frame in close_ups],
                "Recorded markers gold, those on the body dark",
                (2.6, 4.2),
                case.recording.points,
            ),
            "figure-4": filmstrip(motion, strip, "A kick, 0.17 s from still to still"),
        },
    )


@experiment("Walking (Sec. 4.2, Fig. 5)")
def walking(effort: Effort) -> Experiment:
    """A walk with the gains of the kicks (Sec. 4.2, Fig. 5).

    Performer, skeletons and gains are those of the martial arts.
    """
    seconds = 6.0 if effort.full else 2.6
    methods, motion = compare_methods(record_performance("walk", seconds, effort))
    strip = evenly_spaced_frames(motion, 0.1, 0.5, 6)
    drawing = filmstrip(motion, strip, "A walk, 0.50 s from still to still")
    return Experiment(tables={"A walk": methods}, figures={"figure-5": drawing})


GAINS: tuple[Mapping[str, Any], ...] = (
    {},
    {"damping": 15.0},
    {"damping": 60.0},
    {"stiffness": 1000.0},
    {"stiffness": 4000.0},
    {"pull": "all", "torque": 0.1},
    {"pull": "all", "torque": 1.0},
    {"pull": "all", "torque": 10.0},
)
"""Gains that are changed from the defaults, one row of the table each."""


@experiment("The four gains (Secs. 2.2 and 2.3)")
def gains(effort: Effort) -> Experiment:
    """Effect of the gains: damping does not move the equilibrium (Eqs. 1-2).

    "A wide range of values appear adequate from our inspection" (Sec. 2.2). The
    equilibrium does not depend on damping or mass. It depends on the stiffness of the
    springs only where torques pull against them. Torques on all joints, as printed,
    pull the figure away from its markers: the stiffer, the further.
    """
    case = record_performance("kick_punch", 1.0 if effort.full else 0.3, effort)
    take, skeleton = case.recording, case.performer
    default = solve_by_physics(skeleton, take).motion
    rows: list[Cells] = []
    for options in GAINS:
        run = solve_by_physics(skeleton, take, settle="simulation", **options)
        direct = solve_by_physics(skeleton, take, **options).motion
        cells = measures.rounded(
            run.steps,
            1e3 * measures.joint_distances(run.motion, direct).max(),
            1e3 * measures.joint_distances(run.motion, default).max(),
            1e3 * measures.rms(measures.joint_errors(run.motion, take)),
        )
        changed = ", ".join(f"{k} {v}" for k, v in options.items()) or "defaults"
        rows.append((changed, *cells))
    header = (
        "gains | steps per frame | distance from the least energy mm, max | "
        "distance from the default gains mm, max | joint error mm, rms"
    )
    return Experiment(tables={"Kicks, skeleton of the performer": table(header, rows)})
