"""Poses by physics: frames per second of both solvers, and their difference.

The generated human of 53 markers, 120 Hz, 2 mm noise, punches and a walk, one set of
gains; without ground, with anchored plants, and with friction. The time has the models
and the robust fit before. "x paper": the paper had 2-3 frames/s.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness.task import Figure, Row, Setting
from benchmarks.harness.timing import invert, time_call
from marey import Motion, solve_pose, synth
from marey.pose.physics import fit_physics
from marey.skeleton import Skeleton
from marey.synth import Recording

HEADLINE = "frames/s"
PAPER_FRAMES_PER_S = 2.5
NOISE_M = 2e-3
TAKES = {"kick_punch": 3.4, "walk": 2.5}
SOLVERS: dict[str, Callable[[Skeleton, Recording], Any]] = {
    "direct": fit_physics,
    "direct, ground": partial(fit_physics, ground="found"),
    "simulation": partial(fit_physics, settle="simulation"),
    "simulation, ground": partial(fit_physics, settle="simulation", ground="found"),
    "simulation, friction": partial(
        fit_physics, settle="simulation", ground="found", friction=0.8
    ),
    "gauss_newton": partial(solve_pose, method="gauss_newton"),
}


def measure(setting: Setting) -> Iterator[Row]:
    for name, seconds in TAKES.items():
        yield from compare_solvers(
            name, *recorded(name, setting.choose(seconds, 1.0)), setting
        )


def compare_solvers(
    name: str, skeleton: Skeleton, take: Recording, setting: Setting
) -> Iterator[Row]:
    """Yield speed and error of every solver on one take."""
    direct: dict[str, Motion] = {}
    for solver, solve in SOLVERS.items():
        once = setting if "simulation" not in solver else Setting(quick=True)
        timing = time_call(lambda s=solve: s(skeleton, take), once)
        found = timing.result
        motion = found if isinstance(found, Motion) else found.motion
        direct.setdefault("ground" if "," in solver else "free", motion)
        like = direct["ground" if "," in solver else "free"]
        difference = np.linalg.norm(joints(motion) - joints(like), axis=-1).max()
        error = joints(motion) - joints(take.truth.motion)
        rms = np.sqrt(np.mean(np.sum(error**2, axis=-1)))
        speed = invert(timing.cpu, take.n_frames)
        figures: dict[str, Figure] = {
            "frames/s": speed,
            "x paper": speed.median / PAPER_FRAMES_PER_S,
            "iterations": np.nan if found is motion else found.steps.mean(),
            "joint positions [mm]": 1e3 * rms,
            "off direct [mm]": 1e3 * difference,
        }
        yield Row(f"{name}, {solver}", figures)


def recorded(motion: str, seconds: float) -> tuple[Skeleton, Recording]:
    """Return the true skeleton with markers, and the take."""
    figure = synth.human(seed=0)
    take = figure.record(motion, seconds=seconds, markers="set53", noise=NOISE_M)
    return take.true_skeleton, take


def joints(motion: Motion) -> np.ndarray:
    """Return the positions of all joints."""
    return np.asarray(motion.T_world_joint()[..., :3, 3])
