"""Bodenheimer1997: inverse kinematics of a walk and of two reaches (Sec. 3.2)."""

from collections.abc import Callable
from typing import Any

import numpy as np

import marey
from marey import synth
from marey.numerics import Array
from marey.papers import measures
from marey.papers.bodenheimer1997 import pictures
from marey.papers.bodenheimer1997.takes import (
    LOW_REACH,
    MEDIUM_REACH,
    RATE,
    REACH_SECONDS,
    WALK_SECONDS,
    PreparedTake,
    distances_from_data,
    perform_reach,
    perform_walk,
    prepare,
    record_magnetic,
)
from marey.papers.frame import Cells, Drawing, Effort, Experiment, experiment, table
from marey.papers.measures import TimedMotion
from marey.papers.plots import Curve, curves_drawing
from marey.papers.stills import evenly_spaced_frames, filmstrip
from marey.plot.style import BLUE, GOLD, RED
from marey.pose import compare_joint_use, fit_bfgs, fit_pose, mask_joints
from marey.report import Table

SHOULDER = "RightUpperArm"
HANDS = ("LeftHand", "RightHand")
EFFECTORS = (*HANDS, "LeftFoot", "RightFoot")
FINGERS = "RightHandEnd"
WEIGHTS_WITHOUT_SENSOR = {
    f"{side}{part}": 0.0
    for side in ("Left", "Right")
    for part in ("UpperArm", "UpperLeg")
}
"""Weights of limbs without a sensor, whose poses inverse kinematics determines."""

LOOSE_TOLERANCE = 1e-6
"""Tolerance of the fitness, in squared standard deviations. Chosen by hand: the eye
sees no difference."""


def solve_by_bfgs(ready: PreparedTake, **options: Any) -> TimedMotion:
    """Return the poses of least fitness by BFGS; outlier joints have no weight.

    As in the paper, every frame starts where the one before it ended.
    """

    def solve() -> tuple[marey.Motion, int]:
        seen = mask_joints(ready.skeleton, ready.take, ready.is_outlier)
        found = fit_bfgs(ready.skeleton, seen, both_ways=False, **options)
        return found.motion, int(found.steps.sum())

    (motion, steps), seconds = measures.timed(solve)
    return TimedMotion(motion, seconds, steps)


def solve_by_gauss_newton(ready: PreparedTake, **options: Any) -> TimedMotion:
    """Return the poses of marey's default method; it counts no steps."""
    more = {"method": "gauss_newton", "ignore": ready.is_outlier, **options}
    (motion, _), seconds = measures.timed(fit_pose, ready.skeleton, ready.take, **more)
    return TimedMotion(motion, seconds, 0)


def rms_mm(distance_m: Array) -> float:
    """Return the root mean square in millimetres, rounded to three digits."""
    return measures.round_to_digits(1e3 * measures.rms(distance_m))


@experiment(f"A walk of {WALK_SECONDS} s (Sec. 3.2, Figs. 4 and 10)")
def walking(effort: Effort) -> Experiment:
    """A walk of 6.7 s: iterations, seconds and residuals (Sec. 3.2, Figs. 4 and 10).

    {frames} frames of 13 sensors at {rate:g} Hz; in {tagged} of them joints were tagged
    and ignored. The paper's machine was a Pentium 133, its figure has 44 degrees of
    freedom, ours 48. It says that the fit is extremely good, and shows no number. End
    effectors are the wrists and ankles as sensors place them (before), and those of the
    articulated skeleton (after).
    """
    figure = synth.human(seed=effort.seed)
    walk = perform_walk(figure, effort.seed)
    ready = prepare(record_magnetic(figure, walk, effort.seed))
    printed = {"rotation": "euler", "tolerance": LOOSE_TOLERANCE}
    methods: dict[str, Callable[[], TimedMotion]] = {
        "BFGS, Euler angles, as printed": lambda: solve_by_bfgs(ready, **printed),
        "BFGS, quaternions": lambda: solve_by_bfgs(ready, tolerance=LOOSE_TOLERANCE),
        "BFGS, quaternions, to the last digit": lambda: solve_by_bfgs(ready),
        "Gauss-Newton": lambda: solve_by_gauss_newton(ready),
    }
    for solve in methods.values():
        solve()  # Numba compiles at the first call, which is not timed.
    runs = {name: solve() for name, solve in methods.items()}
    motion = runs["BFGS, quaternions"].motion
    effectors = compare_end_effectors(ready, motion)
    n_tagged = int(ready.is_outlier.any(axis=1).sum())
    return Experiment(
        tables={
            "Inverse kinematics": _walk_table(runs, ready),
            "End effectors, rms mm": effectors,
        },
        facts={"frames": ready.take.n_frames, "tagged": n_tagged, "rate": RATE},
        figures={
            "figure-4": _strip(motion, 0.25, "A walk"),
            "figure-10": pictures.fit_drawing(ready, motion),
        },
    )


def _strip(motion: marey.Motion, spacing: float, what: str) -> Drawing:
    """Return seven stills at equal spacing in seconds."""
    frames = evenly_spaced_frames(motion, 0.1, spacing, 7)
    return filmstrip(motion, frames, f"{what}, {spacing:.2f} s from still to still")


def _walk_table(runs: dict[str, TimedMotion], ready: PreparedTake) -> Table:
    """Return iterations, seconds and errors of every method, the paper's first."""
    rows: list[Cells] = [
        ("paper", 4389, round(4389 / (WALK_SECONDS * RATE), 1), 306.0, "", "")
    ]
    rows += [
        (
            name,
            run.steps or "",
            round(run.steps / ready.take.n_frames, 1) if run.steps else "",
            measures.round_to_digits(run.seconds, 2),
            rms_mm(distances_from_data(ready, run.motion)),
            rms_mm(measures.joint_errors(run.motion, ready.recording)),
        )
        for name, run in runs.items()
    ]
    header = "method | iterations | per frame | seconds | residual mm | error mm"
    return table(header, rows)


def compare_end_effectors(ready: PreparedTake, motion: marey.Motion) -> Table:
    """Return errors of hands and feet before and after, and how far they moved."""
    weighted = solve_by_bfgs(ready, weights=dict.fromkeys(EFFECTORS, 100.0)).motion
    true = ready.recording.truth.motion.T_world_joint()[..., :3, 3]
    distances = (
        np.linalg.norm(ready.virtual.positions - true, axis=-1),
        measures.joint_errors(motion, ready.recording),
        distances_from_data(ready, motion),
        distances_from_data(ready, weighted),
    )
    rows: list[Cells] = []
    for name in EFFECTORS:
        joint = ready.skeleton.index(name)
        good = ~ready.is_outlier[:, joint]
        rows.append((name, *(rms_mm(distance[good, joint]) for distance in distances)))
    header = "effector | error before | error after | moved"
    return table(f"{header} | moved, with 100 times the weight", rows)


@experiment(f"A low reach like a medium one, {REACH_SECONDS} s (Figs. 5-9 and 11)")
def reaching(effort: Effort) -> Experiment:
    """Two reaches: one is the reference motion of the other (Figs. 5-9 and 11).

    Upper arms and thighs have no sensor; inverse kinematics determines them. The twist
    of a straight arm may be that of the shoulder or of the forearm. As an initial value
    only, as printed, the reference helps little if a solver converges from anywhere; as
    a weak prior (0.5 rad) it determines what the data do not. Angles are rms over the
    reach, matched by dynamic time warping. In Fig. 11 the hand of the medium reach
    touches a prop: {captured:.0f} mm from it as sensors place the hand, {solved:.0f} mm
    as the articulated skeleton does.
    """
    figure = synth.human(seed=effort.seed + 1)
    low, medium = (
        prepare(record_magnetic(figure, reach, effort.seed + 3))
        for reach in (
            perform_reach(figure, LOW_REACH, early=0.08),
            perform_reach(figure, MEDIUM_REACH),
        )
    )
    weights = {"weights": WEIGHTS_WITHOUT_SENSOR}
    printed = {"rotation": "euler", "tolerance": LOOSE_TOLERANCE, **weights}
    other = solve_by_bfgs(medium, **printed).motion
    bfgs, gauss_newton = solve_by_bfgs, solve_by_gauss_newton
    # A reference without a standard deviation is the initial value only.
    start = {"reference": other, "reference_sd": np.inf}
    led = {"reference": other}
    runs = {
        "low reach": bfgs(low, **printed),
        "low reach, reference as start": bfgs(low, **printed, **start),
        "low reach, reference": bfgs(low, **printed, **led),
        "low reach, Gauss-Newton": gauss_newton(low, **weights),
        "low reach, Gauss-Newton, reference": gauss_newton(low, **weights, **led),
    }
    return Experiment(
        tables={"Joint use, matched in time": _use_table(runs, low, medium, other)},
        facts={
            name: 1e3 * distance
            for name, distance in pictures.prop_distances(
                medium, other, FINGERS
            ).items()
        },
        figures={
            "figure-5": _strip(runs["low reach"].motion, 0.55, "A low reach"),
            "figure-6": _strip(other, 0.55, "A medium reach"),
            "figures-7-9": _figures(runs, other),
            "figure-11": pictures.phases_drawing(medium, other, FINGERS),
        },
    )


def _use_table(
    runs: dict[str, TimedMotion],
    low: PreparedTake,
    medium: PreparedTake,
    other: marey.Motion,
) -> Table:
    """Return the similarity of the shoulder in each solution and in another reach."""
    paper = {"low reach": (1278, 37.08), "low reach, reference as start": (3295, 232.0)}
    rows: list[Cells] = []
    for name, run in runs.items():
        error = measures.joint_errors(run.motion, low.recording)[~low.is_outlier]
        search = run.steps or "", measures.round_to_digits(run.seconds, 2)
        use = _shoulder_use(run.motion, other)
        rows.append((name, *paper.get(name, ("", "")), *search, *use, rms_mm(error)))
    truths = low.recording.truth.motion, medium.recording.truth.motion
    rows.append(("truth", "", "", "", "", *_shoulder_use(*truths), 0))
    header = (
        "motion | paper iterations | paper s | iterations | s | "
        "shoulder, from medium reach ° | of its curves ° | joint error mm"
    )
    return table(header, rows)


def _shoulder_use(motion: marey.Motion, other: marey.Motion) -> tuple[float, float]:
    """Return the difference of the shoulder and of its curves, in degrees."""
    use = compare_joint_use(motion, other)
    shoulder = use.names.index(SHOULDER)
    angle, curves = np.degrees([use.rotation_rms[shoulder], use.euler_rms[shoulder]])
    return round(float(angle), 1), round(float(curves), 1)


def _figures(runs: dict[str, TimedMotion], other: marey.Motion) -> Drawing:
    shown = {
        "low reach (Fig. 7)": runs["low reach"].motion,
        "medium reach (Fig. 8)": other,
        "low, by reference (Fig. 9)": runs["low reach, reference"].motion,
    }
    panels = {}
    for name, motion in shown.items():
        angles = motion.euler("XYZ")[:, motion.skeleton.index(SHOULDER)]
        angles = angles - 2 * np.pi * np.round(angles.mean(axis=0) / (2 * np.pi))
        panels[name] = [
            Curve(motion.times, np.degrees(y), {"color": colour, "label": axis})
            for y, colour, axis in zip(angles.T, (RED, GOLD, BLUE), "xyz", strict=True)
        ]
    title, labels = "Angles of the right shoulder, XYZ", ("time, s", "angle, °")
    return curves_drawing(title, panels, labels, size=(2.9 * len(panels) + 0.6, 3.0))
