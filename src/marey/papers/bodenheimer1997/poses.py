"""Bodenheimer1997: inverse kinematics of a walk and of two reaches (Sec. 3.2)."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from jaxtyping import Float

from marey import synth
from marey.motion import Motion
from marey.papers.bodenheimer1997.plots import curves_drawing
from marey.papers.bodenheimer1997.takes import (
    LOW_REACH,
    MEDIUM_REACH,
    RATE,
    REACH_SECONDS,
    WALK_SECONDS,
    PreparedTake,
    perform_reach,
    perform_walk,
    prepare,
    record_magnetic,
)
from marey.papers.experiment import Effort, Experiment
from marey.papers.measures import (
    Cells,
    TimedMotion,
    joint_errors,
    rms,
    round_to_digits,
)
from marey.pose import fit_pose, mask_joints
from marey.pose.bfgs import fit
from marey.pose.reference import compare_joint_use
from marey.report import Table

Array = np.ndarray

SHOULDER = "RightUpperArm"
HANDS = ("LeftHand", "RightHand")
EFFECTORS = (*HANDS, "LeftFoot", "RightFoot")
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
    """Return the poses of least fitness by BFGS; outlier joints have no weight."""
    start = perf_counter()
    seen = mask_joints(ready.skeleton, ready.take, ready.is_outlier)
    found = fit.fit(ready.skeleton, seen, **options)
    seconds = perf_counter() - start
    return TimedMotion(found.motion, seconds, int(found.steps.sum()))


def solve_by_gauss_newton(ready: PreparedTake, **options: Any) -> TimedMotion:
    """Return the poses of marey's default method; it counts no steps."""
    start = perf_counter()
    motion, _ = fit_pose(
        ready.skeleton,
        ready.take,
        method="gauss_newton",
        ignore=ready.is_outlier,
        **options,
    )
    return TimedMotion(motion, perf_counter() - start, 0)


def distances_from_data(
    ready: PreparedTake, motion: Motion
) -> Float[Array, "frame joint"]:
    """Return the distance of every joint from the data; NaN where they are outliers."""
    difference = motion.T_world_joint()[..., :3, 3] - ready.virtual.positions
    return np.where(ready.is_outlier, np.nan, np.linalg.norm(difference, axis=-1))


def rms_mm(distance_m: Array) -> float:
    """Return the root mean square in millimetres, rounded to three digits."""
    return round_to_digits(1e3 * rms(distance_m))


def walking(effort: Effort) -> Experiment:
    """A walk of 6.7 s: iterations, seconds and residuals (Sec. 3.2)."""
    figure = synth.human(seed=effort.seed)
    ready = prepare(
        record_magnetic(figure, perform_walk(figure, effort.seed), effort.seed)
    )
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
    n_tagged = int(ready.is_outlier.any(axis=1).sum())
    return Experiment(
        title=f"A walk of {WALK_SECONDS} s at {RATE:g} frames per second (Sec. 3.2)",
        tables={
            "Inverse kinematics": _walk_table(runs, ready),
            "End effectors, rms mm": compare_end_effectors(
                ready, runs["BFGS, quaternions"].motion
            ),
        },
        note=f"{ready.take.n_frames} frames of 13 sensors; in {n_tagged} of them "
        "joints were tagged and ignored. The paper's machine was a Pentium 133, its "
        "figure has 44 degrees of freedom, ours 48. It says that the fit is extremely "
        "good, and shows no number. End effectors are the wrists and ankles as sensors "
        "place them (before), and those of the articulated skeleton (after).",
    )


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
            round_to_digits(run.seconds, 2),
            rms_mm(distances_from_data(ready, run.motion)),
            rms_mm(joint_errors(run.motion, ready.recording)),
        )
        for name, run in runs.items()
    ]
    columns = (
        "method",
        "iterations",
        "per frame",
        "seconds",
        "residual mm",
        "error mm",
    )
    return Table(columns, tuple(rows))


def compare_end_effectors(ready: PreparedTake, motion: Motion) -> Table:
    """Return errors of hands and feet before and after, and how far they moved."""
    skeleton = ready.skeleton
    weighted = solve_by_bfgs(ready, weights=dict.fromkeys(EFFECTORS, 100.0)).motion
    true = ready.recording.truth.motion.T_world_joint()[..., :3, 3]
    before = np.linalg.norm(ready.virtual.positions - true, axis=-1)
    rows = []
    for name in EFFECTORS:
        joint = skeleton.index(name)
        good = ~ready.is_outlier[:, joint]
        rows.append(
            (
                name,
                rms_mm(before[good, joint]),
                rms_mm(joint_errors(motion, ready.recording)[good, joint]),
                rms_mm(distances_from_data(ready, motion)[good, joint]),
                rms_mm(distances_from_data(ready, weighted)[good, joint]),
            )
        )
    columns = (
        "effector",
        "error before",
        "error after",
        "moved",
        "moved, with 100 times the weight",
    )
    return Table(columns, tuple(rows))


def reaching(effort: Effort) -> Experiment:
    """Two reaches: one is the reference motion of the other (Sec. 3.2, Figs. 7-9)."""
    figure = synth.human(seed=effort.seed + 1)
    low, medium = (
        prepare(
            record_magnetic(
                figure, perform_reach(figure, height, early=early), effort.seed + 3
            )
        )
        for height, early in ((LOW_REACH, 0.08), (MEDIUM_REACH, 0.0))
    )
    printed = {
        "rotation": "euler",
        "weights": WEIGHTS_WITHOUT_SENSOR,
        "tolerance": LOOSE_TOLERANCE,
    }
    other = solve_by_bfgs(medium, **printed)
    with_reference = {**printed, "reference": other.motion}
    runs = {
        "low reach": solve_by_bfgs(low, **printed),
        "low reach, reference as start": solve_by_bfgs(
            low, **with_reference, reference_sd=np.inf
        ),
        "low reach, reference": solve_by_bfgs(low, **with_reference),
        "low reach, Gauss-Newton": solve_by_gauss_newton(
            low, weights=WEIGHTS_WITHOUT_SENSOR
        ),
        "low reach, Gauss-Newton, reference": solve_by_gauss_newton(
            low, weights=WEIGHTS_WITHOUT_SENSOR, reference=other.motion
        ),
    }
    table = _use_table(runs, low, medium, other.motion)
    return Experiment(
        title=f"A low reach like a medium one, {REACH_SECONDS} s (Sec. 3.2, Figs. 7-9)",
        tables={"Joint use, matched in time": table},
        note="Upper arms and thighs have no sensor; inverse kinematics determines "
        "them. The twist of a straight arm may be that of the shoulder or of the "
        "forearm. As an initial value only, as printed, the reference helps little if "
        "a solver converges from anywhere; as a weak prior (0.5 rad) it determines "
        "what the data do not. Angles are rms over the reach, matched by dynamic time "
        "warping.",
        figures={"figures-7-9": _figures(runs, other.motion)},
    )


def _use_table(
    runs: dict[str, TimedMotion], low: PreparedTake, medium: PreparedTake, other: Motion
) -> Table:
    """Return the similarity of the shoulder in each solution and in another reach."""
    paper = {"low reach": (1278, 37.08), "low reach, reference as start": (3295, 232.0)}
    rows: list[Cells] = [
        (
            name,
            *paper.get(name, ("", "")),
            run.steps or "",
            round_to_digits(run.seconds, 2),
            *_shoulder_use(run.motion, other),
            rms_mm(
                np.where(
                    low.is_outlier, np.nan, joint_errors(run.motion, low.recording)
                )
            ),
        )
        for name, run in runs.items()
    ]
    truths = low.recording.truth.motion, medium.recording.truth.motion
    rows.append(("truth", "", "", "", "", *_shoulder_use(*truths), 0))
    columns = (
        "motion",
        "paper iterations",
        "paper s",
        "iterations",
        "s",
        "shoulder, from medium reach °",
        "of its curves °",
        "joint error mm",
    )
    return Table(columns, tuple(rows))


def _shoulder_use(motion: Motion, other: Motion) -> tuple[float, float]:
    """Return the difference of the shoulder and of its curves, in degrees."""
    use = compare_joint_use(motion, other)
    shoulder = use.names.index(SHOULDER)
    angle, curves = np.degrees([use.rotation_rms[shoulder], use.euler_rms[shoulder]])
    return round(float(angle), 1), round(float(curves), 1)


def _figures(runs: dict[str, TimedMotion], other: Motion) -> Any:
    shown = {
        "low reach (Fig. 7)": runs["low reach"].motion,
        "medium reach (Fig. 8)": other,
        "low, by reference (Fig. 9)": runs["low reach, reference"].motion,
    }
    curves = {}
    for name, motion in shown.items():
        angles = motion.euler("XYZ")[:, motion.skeleton.index(SHOULDER)]
        curves[name] = angles - 2 * np.pi * np.round(angles.mean(axis=0) / (2 * np.pi))
    return curves_drawing(curves, RATE, "Angles of the right shoulder, XYZ")
