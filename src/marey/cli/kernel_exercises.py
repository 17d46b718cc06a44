"""Small tasks that call every kernel, so that each is compiled as users will call it.

A kernel is compiled for the types of its arguments, and these are best known by those
who call it: so the recordings of synthetic performers are solved.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marey import synth
from marey.calibration import calibrate
from marey.editing import solve
from marey.io import read, read_motion, write
from marey.pipeline import SolveOptions
from marey.pipeline.progress import Clock
from marey.pipeline.run import estimate_bodies
from marey.pipeline.stages.takes import clean_takes
from marey.pose import solve_pose
from marey.pose.closed_form.placer import SkeletonPlacer
from marey.pose.gauss_newton.tracker import PoseTracker

RATE = 60.0
"""Frames per second of the recordings. Higher only takes longer."""

SECONDS = 2.0
"""Length of the recordings in seconds: one stride, so that all joints have moved."""


def record(seed: int = 0, sensors: bool = False) -> synth.Recording:
    """Return a recording of a person who walks."""
    markers = "none" if sensors else "set53"
    return synth.human(seed=seed).record(
        "walk", seconds=SECONDS, rate=RATE, markers=markers, sensors=sensors, noise=1e-3
    )


def fit_bodies(take: synth.Recording, **options: Any) -> None:
    """Clean and segment markers, and fit joints and the tree."""
    chosen = SolveOptions(**options)
    takes = clean_takes((take,), chosen)
    estimate_bodies(takes, chosen, Clock(None))


def fit_bodies_and_joints() -> None:
    """Find bodies with and without labels, and their joints."""
    fit_bodies(record(), segment="labels")
    fit_bodies(record(), segment="overlap")


def fit_poses() -> None:
    """Fit the poses of a known skeleton, to a whole take and frame by frame."""
    take = record()
    skeleton = take.true_skeleton
    solve_pose(skeleton, take)
    tracker = PoseTracker(skeleton, skeleton.marker_labels, rate=take.rate)
    placer = SkeletonPlacer(skeleton, skeleton.marker_labels)
    for points in take.points[:2]:
        tracker.update_poses(points)
        placer.place(points)


def calibrate_skeleton() -> None:
    """Fit bones and markers of a known skeleton."""
    take = record()
    calibrate(take.true_skeleton, take)


def solve_markers() -> None:
    """Solve recordings of markers whole; a second take is a second session."""
    solve(record())
    solve([record(), record(seed=1)])


def solve_sensors() -> None:
    """Solve a recording of 6-DoF sensors whole."""
    solve(record(sensors=True))


def read_text() -> None:
    """Read the text formats whose numbers are parsed by kernels."""
    take = record()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("a.trc", "a.csv"):
            write(take, Path(folder) / name)
            read(Path(folder) / name)
        for name in ("a.bvh", "a.amc"):
            write(take.truth.motions[0], Path(folder) / name)
            read_motion(Path(folder) / name)


def fit_other_poses() -> None:
    """Fit poses by the other methods: one direction of time, least squares, springs."""
    take = record()
    skeleton = take.true_skeleton
    solve_pose(skeleton, take, both_ways=False)
    for method in ("bfgs", "physics"):
        solve_pose(skeleton, take, method=method)
    solve_pose(skeleton, take.cut(0, 2), method="physics", settle="simulation")


def fit_other_joints() -> None:
    """Fit joints by the other methods, which are slow for all pairs of a person."""
    hinge = synth.hinge_pair().record("swing", seconds=SECONDS, rate=RATE, noise=1e-3)
    fit_bodies(hinge, joints="gdke")
    fit_bodies(hinge, joints="distance")


@dataclass(frozen=True, slots=True)
class Exercise:
    """A task that compiles the kernels it calls."""

    title: str
    run: Callable[[], None]
    seconds: float
    """CPU seconds of its compilation, measured on one core of an AMD EPYC (2022): its
    share of the bar. A wrong one makes the time left wrong, and nothing else."""

    rare: bool = False
    """Whether only a method that has to be asked for needs these kernels."""


EXERCISES = {
    "bodies": Exercise("bodies and joints", fit_bodies_and_joints, 25.0),
    "poses": Exercise("poses", fit_poses, 30.0),
    "calibration": Exercise("calibration", calibrate_skeleton, 20.0),
    "text": Exercise("text formats", read_text, 8.0),
    "joint methods": Exercise("other joint methods", fit_other_joints, 5.0, rare=True),
    "pose methods": Exercise("other pose methods", fit_other_poses, 30.0, rare=True),
}
"""Tasks that compile different kernels, by name; they may run at once."""

WHOLE = (solve_markers, solve_sensors)
"""Tasks that also call the kernels between the stages."""
