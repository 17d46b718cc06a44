"""Bones from markers: nimblephysics' bilevel fit, and marey from nothing.

The figure of `peers.inverse_kinematics`. nimblephysics begins with the model, 5 % too
large; marey's calibration with the same one, and `marey.solve` with the markers alone,
without labels. Errors are those of the positions of all joints but the root, of hinges
from their axes.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import marey
from benchmarks.generator.score import joint_errors
from benchmarks.harness.task import Figure, Row, Setting
from benchmarks.peers.figure import make_skeleton, perform, record
from benchmarks.peers.inverse_kinematics import write_problem
from benchmarks.peers.runner import run_peers
from marey.calibration import calibrate
from marey.skeleton import Skeleton
from marey.take import Take

HEADLINE = "joints, rms [mm]"
TOO_LARGE = 1.05
PEERS = ("nimblephysics",)


class Truth(NamedTuple):
    """Joints without the root and axes of hinges, in the world, (frame, joint, 3)."""

    joints: np.ndarray
    axis: np.ndarray

    def at(self, frames: Sequence[int]) -> "Truth":
        """Return those of some frames."""
        return Truth(self.joints[frames], self.axis[frames])


def measure(setting: Setting) -> Iterator[Row]:
    frames = setting.choose(4000, 500)
    skeleton = make_skeleton()
    take = record(skeleton, frames)
    T = perform(skeleton, frames).T_world_joint()[:, 1:]
    is_hinge = np.array([kind == "hinge" for kind in skeleton.kind[1:]])
    axis = np.where(is_hinge[:, None], skeleton.axes[1:, 0], 0.0)
    true = Truth(T[..., :3, 3], np.einsum("fjab,jb->fja", T[..., :3, :3], axis))
    larger = replace(
        skeleton,
        offset=TOO_LARGE * skeleton.offset,
        marker_offset=TOO_LARGE * skeleton.marker_offset,
    )
    yield measure_call("marey.solve, from nothing", partial(solve, take), true)
    yield measure_call("marey, calibration", partial(fit, larger, take), true)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_problem(folder, larger, take)

        def score(answer: Mapping[str, Any]) -> Row:
            joints = np.load(folder / answer["joints"])
            return describe(
                answer["case"], joints, true.at(answer["chosen"]), answer["seconds"]
            )

        yield from run_peers(PEERS, "fit", folder, score, setting)


def solve(take: Take) -> np.ndarray:
    """Return the joints of a solve without labels."""
    labels = tuple(f"{i:03}" for i in range(len(take.labels)))
    options = marey.SolveOptions(whole=False)
    motion = marey.solve(replace(take, labels=labels), options=options).motion
    return np.asarray(motion.T_world_joint()[..., :3, 3])


def fit(skeleton: Skeleton, take: Take) -> np.ndarray:
    """Return the joints of a calibrated skeleton."""
    found = calibrate(skeleton, take).skeleton
    motion = marey.solve_pose(found, take, method="gauss_newton")
    return np.asarray(motion.T_world_joint()[..., :3, 3])


def measure_call(case: str, call: Callable[[], np.ndarray], true: Truth) -> Row:
    """Return the row of a call, its second one."""
    call()
    begin = time.process_time()
    joints = call()
    return describe(case, joints, true, time.process_time() - begin)


def describe(case: str, joints: np.ndarray, true: Truth, seconds: float) -> Row:
    """Return the errors of joints, and the time of a frame."""
    errors = 1e3 * joint_errors(joints, true.joints, true.axis)
    figures: dict[str, Figure] = {
        "joints, median [mm]": float(np.nanmedian(errors)),
        "joints, rms [mm]": float(np.sqrt(np.nanmean(errors**2))),
        "frames": len(true.joints),
        "CPU [s]": seconds,
        "frames/s": len(true.joints) / seconds,
    }
    return Row(case, figures)
