"""Poses by physics: frames per second of both solvers, and their difference.

The generated human of 53 markers, 120 Hz, 2 mm noise, punches and a walk, one set of
gains; without ground, with anchored plants, and with friction. The time is CPU time of
one thread from the first frame to the last, with the models and the robust fit before;
without compilation. The paper had 2-3 frames/s.
Run with one thread: OMP_NUM_THREADS=1 python benchmarks/physics.py
"""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from marey import Motion, solve_pose, synth
from marey.pose.physics import fit_physics
from marey.skeleton import Skeleton
from marey.synth import Recording

PAPER_FRAMES_PER_S = 2.5
NOISE_M = 2e-3
TAKES = {"kick_punch": 3.4, "walk": 2.5}


def recorded(motion: str, seconds: float) -> tuple[Skeleton, Recording]:
    figure = synth.human(seed=0)
    take = figure.record(motion, seconds=seconds, markers="set53", noise=NOISE_M)
    with_markers = replace(
        figure.skeleton,
        marker_labels=take.truth.marker_labels,
        marker_joint=take.truth.marker_joint,
        marker_offset=take.truth.marker_offset,
    )
    return with_markers, take


def timed(run: Callable[[], Any], repeats: int) -> tuple[Any, float]:
    run()
    spent = []
    for _ in range(repeats):
        start = time.process_time()
        found = run()
        spent.append(time.process_time() - start)
    return found, float(np.median(spent))


def joints(motion: Motion) -> np.ndarray:
    return np.asarray(motion.T_world_joint()[..., :3, 3])


def main() -> None:
    head = ("motion", "method", "frames/s", "x paper", "x simulation", "steps")
    head += ("rms off truth mm", "off direct mm")
    print(("{:11} {:14}" + 6 * " {:>13}").format(*head))
    for name, seconds in TAKES.items():
        skeleton, take = recorded(name, seconds)
        solvers: dict[str, Callable[[], Any]] = {
            "direct": lambda s=skeleton, t=take: fit_physics(s, t),
            "direct, ground": lambda s=skeleton, t=take: fit_physics(
                s, t, ground="found"
            ),
            "simulation": lambda s=skeleton, t=take: fit_physics(
                s, t, settle="simulation"
            ),
            "sim., ground": lambda s=skeleton, t=take: fit_physics(
                s, t, settle="simulation", ground="found"
            ),
            "sim., friction": lambda s=skeleton, t=take: fit_physics(
                s, t, settle="simulation", ground="found", friction=0.8
            ),
            "gauss_newton": lambda s=skeleton, t=take: solve_pose(
                s, t, method="gauss_newton"
            ),
        }
        runs = {w: timed(run, 1 if "sim" in w else 5) for w, run in solvers.items()}
        slow = runs["simulation"][1]
        for solver, (found, spent) in runs.items():
            motion = found if isinstance(found, Motion) else found.motion
            error = joints(motion) - joints(take.truth.motion)
            rms = np.sqrt(np.mean(np.sum(error**2, axis=-1)))
            like = "direct, ground" if "ground" in solver else "direct"
            direct = runs[like][0].motion
            difference = np.linalg.norm(joints(motion) - joints(direct), axis=-1).max()
            steps = "" if found is motion else f"{found.steps.mean():.1f}"
            speed = take.n_frames / spent
            print(
                f"{name:11} {solver:14} {speed:13.0f} "
                f"{speed / PAPER_FRAMES_PER_S:13.0f} {slow / spent:13.1f} {steps:>13} "
                f"{1e3 * rms:13.2f} {1e3 * difference:13.4f}"
            )


if __name__ == "__main__":
    main()
