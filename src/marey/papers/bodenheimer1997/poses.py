"""Bodenheimer1997: inverse kinematics of a walk and of two reaches (Sec. 3.2)."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from jaxtyping import Float

from marey import synth
from marey.motion import Motion
from marey.papers.bodenheimer1997.plots import curves_drawing
from marey.papers.bodenheimer1997.takes import (
    LOW,
    MEDIUM,
    RATE,
    REACH_SECONDS,
    WALK_SECONDS,
    Prepared,
    prepared,
    reach,
    recorded,
    walk,
)
from marey.papers.experiment import Effort, Experiment
from marey.pose import fit_pose, mask_joints
from marey.pose.bfgs import fit
from marey.pose.reference import compare_joint_use
from marey.report import Table

Array = np.ndarray

SHOULDER = "RightUpperArm"
HANDS = ("LeftHand", "RightHand")
EFFECTORS = (*HANDS, "LeftFoot", "RightFoot")
INFERRED = {
    f"{side}{part}": 0.0
    for side in ("Left", "Right")
    for part in ("UpperArm", "UpperLeg")
}
"""Limbs without a sensor that are left to inverse kinematics."""

LOOSE = 1e-6
"""A frame has converged satisfactorily, for the eye, in squared standard deviations."""


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Poses of one take and what they took."""

    motion: Motion
    steps: int
    seconds: float


def by_bfgs(ready: Prepared, **options: Any) -> Run:
    """Return the poses of least fitness, wild joints ignored."""
    start = perf_counter()
    seen = mask_joints(ready.skeleton, ready.take, ready.wild)
    found = fit.fit(ready.skeleton, seen, **options)
    return Run(found.motion, int(found.steps.sum()), perf_counter() - start)


def by_gauss_newton(ready: Prepared, **options: Any) -> Run:
    """Return the poses of marey's own method, which finds wild joints itself."""
    start = perf_counter()
    motion, _ = fit_pose(
        ready.skeleton, ready.take, method="gauss_newton", ignore=ready.wild, **options
    )
    return Run(motion, 0, perf_counter() - start)


def off_truth(ready: Prepared, motion: Motion) -> Float[Array, "frame joint"]:
    """Return how far every joint is from the truth, in metres."""
    true = ready.recording.truth.motion.T_world_joint()[..., :3, 3]
    return np.asarray(
        np.linalg.norm(motion.T_world_joint()[..., :3, 3] - true, axis=-1)
    )


def off_data(ready: Prepared, motion: Motion) -> Float[Array, "frame joint"]:
    """Return how far every joint is from the data; NaN where those are wild."""
    away = motion.T_world_joint()[..., :3, 3] - ready.virtual.positions
    return np.where(ready.wild, np.nan, np.linalg.norm(away, axis=-1))


def rms_mm(away: Array) -> float:
    """Return the root mean square in millimetres, rounded."""
    return float(f"{1e3 * np.sqrt(np.nanmean(away**2)):.3g}")


def _short(value: float) -> float:
    return float(f"{value:.2g}")


def walking(effort: Effort) -> Experiment:
    """A walk of 6.7 s: iterations, seconds, and how well the skeleton fits."""
    figure = synth.human(seed=effort.seed)
    ready = prepared(recorded(figure, walk(figure, effort.seed), effort.seed))
    printed = {"rotation": "euler", "tolerance": LOOSE}
    ways: dict[str, Callable[[], Run]] = {
        "BFGS, Euler angles, as printed": lambda: by_bfgs(ready, **printed),
        "BFGS, quaternions": lambda: by_bfgs(ready, tolerance=LOOSE),
        "BFGS, quaternions, to the last digit": lambda: by_bfgs(ready),
        "Gauss-Newton": lambda: by_gauss_newton(ready),
    }
    for way in ways.values():
        way()  # compiled before the clock starts
    runs = {name: way() for name, way in ways.items()}
    tagged = int(ready.wild.any(axis=1).sum())
    return Experiment(
        title=f"A walk of {WALK_SECONDS} s at {RATE:g} frames per second (Sec. 3.2)",
        tables={
            "Inverse kinematics": _walk_table(runs, ready),
            "End effectors, rms mm": _effectors(
                ready, runs["BFGS, quaternions"].motion
            ),
        },
        note=f"{ready.take.n_frames} frames of 13 sensors; in {tagged} of them joints "
        "were tagged and ignored. The paper's machine was a Pentium 133, its figure "
        "has 44 degrees of freedom, ours 48. It says that the fit is extremely good, "
        "and shows no number. End effectors are the wrists and ankles as sensors place "
        "them, before, and on the articulated skeleton, after.",
    )


def _walk_table(runs: dict[str, Run], ready: Prepared) -> Table:
    """Return iterations, seconds and fit of every way, the paper's first."""
    rows: list[tuple[str | float, ...]] = [
        ("paper", 4389, round(4389 / (WALK_SECONDS * RATE), 1), 306.0, "", "")
    ]
    rows += [
        (
            name,
            run.steps or "",
            round(run.steps / ready.take.n_frames, 1) if run.steps else "",
            _short(run.seconds),
            rms_mm(off_data(ready, run.motion)),
            rms_mm(off_truth(ready, run.motion)),
        )
        for name, run in runs.items()
    ]
    columns = (
        "method",
        "iterations",
        "per frame",
        "seconds",
        "off the data mm",
        "off the truth mm",
    )
    return Table(columns, tuple(rows))


def _effectors(ready: Prepared, motion: Motion) -> Table:
    """Return how far hands and feet are from the truth, before and after, and moved."""
    skeleton = ready.skeleton
    heavy = by_bfgs(ready, weights=dict.fromkeys(EFFECTORS, 100.0)).motion
    true = ready.recording.truth.motion.T_world_joint()[..., :3, 3]
    before = np.linalg.norm(ready.virtual.positions - true, axis=-1)
    rows = []
    for name in EFFECTORS:
        joint = skeleton.index(name)
        good = ~ready.wild[:, joint]
        rows.append(
            (
                name,
                rms_mm(before[good, joint]),
                rms_mm(off_truth(ready, motion)[good, joint]),
                rms_mm(off_data(ready, motion)[good, joint]),
                rms_mm(off_data(ready, heavy)[good, joint]),
            )
        )
    columns = (
        "effector",
        "before, off the truth",
        "after, off the truth",
        "moved",
        "moved, with 100 times the weight",
    )
    return Table(columns, tuple(rows))


def reaching(effort: Effort) -> Experiment:
    """Two reaches: shoulders that are used alike, with one as the other's reference."""
    figure = synth.human(seed=effort.seed + 1)
    low, medium = (
        prepared(recorded(figure, reach(figure, height, early=early), effort.seed + 3))
        for height, early in ((LOW, 0.08), (MEDIUM, 0.0))
    )
    printed = {"rotation": "euler", "weights": INFERRED, "tolerance": LOOSE}
    other = by_bfgs(medium, **printed)
    led = {**printed, "reference": other.motion}
    runs = {
        "low reach": by_bfgs(low, **printed),
        "low reach, reference as start": by_bfgs(low, **led, reference_sd=np.inf),
        "low reach, reference": by_bfgs(low, **led),
        "low reach, Gauss-Newton": by_gauss_newton(low, weights=INFERRED),
        "low reach, Gauss-Newton, reference": by_gauss_newton(
            low, weights=INFERRED, reference=other.motion
        ),
    }
    table = _use_table(runs, low, medium, other.motion)
    return Experiment(
        title=f"A low reach like a medium one, {REACH_SECONDS} s (Sec. 3.2, Figs. 7-9)",
        tables={"Joint use, matched in time": table},
        note="Upper arms and thighs wear no sensor and are left to inverse kinematics: "
        "where an arm is straight, its twist may be the shoulder's or the forearm's. "
        "As a start only, as printed, the reference helps little once a solver "
        "converges from anywhere; as a weak wish (0.5 rad) it decides what the data "
        "leave open. Angles are rms over the reach, matched by time warping.",
        figures={"figures-7-9": _figures(runs, other.motion)},
    )


def _use_table(
    runs: dict[str, Run], low: Prepared, medium: Prepared, other: Motion
) -> Table:
    """Return how alike the shoulders of each solution and of another reach are used."""
    paper = {"low reach": (1278, 37.08), "low reach, reference as start": (3295, 232.0)}
    rows: list[tuple[str | float, ...]] = [
        (
            name,
            *paper.get(name, ("", "")),
            run.steps or "",
            _short(run.seconds),
            *_shoulder_use(run.motion, other),
            rms_mm(np.where(low.wild, np.nan, off_truth(low, run.motion))),
        )
        for name, run in runs.items()
    ]
    truths = low.recording.truth.motion, medium.recording.truth.motion
    rows.append(("the truth", "", "", "", "", *_shoulder_use(*truths), 0))
    columns = (
        "motion",
        "paper iterations",
        "paper s",
        "iterations",
        "s",
        "shoulder off the medium reach °",
        "its curves °",
        "joints off the truth mm",
    )
    return Table(columns, tuple(rows))


def _shoulder_use(motion: Motion, other: Motion) -> tuple[float, float]:
    """Return how far the shoulder and its curves are from another's, in degrees."""
    use = compare_joint_use(motion, other)
    shoulder = use.names.index(SHOULDER)
    angle, curves = np.degrees([use.rotation_rms[shoulder], use.euler_rms[shoulder]])
    return round(float(angle), 1), round(float(curves), 1)


def _figures(runs: dict[str, Run], other: Motion) -> Any:
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
