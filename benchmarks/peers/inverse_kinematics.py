"""Inverse kinematics of one figure in every program: speed, and markers at the optimum.

16 segments, 44 degrees of freedom, 53 markers, 100 Hz, 2 mm of noise. Every program
gets the same model, which marey writes (MJCF, .osim), or its arrays, and the same
markers; each is used as its documentation recommends, by the script that is named. The
time is processor time of one thread from the pose of the first frame to that of the
last: each program runs through a few frames and through many, and the difference is
taken, so that models, files, compilation and the first frame do not count. marey is
timed frame after frame, as in a stream, and side by side, as takes are tracked: forward
and backward, in lanes of the processor, where each direction counts its frames. "Above
optimum" is the rms distance of the markers of the program's own model from those
measured, over that of the least-squares optimum of the same frames.
"""

import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import marey
from benchmarks.harness.task import Figure, Row, Setting, Spread
from benchmarks.harness.timing import invert, scale, time_many_frames
from benchmarks.peers.figure import RATE, make_skeleton, perform, record
from benchmarks.peers.runner import run_peers
from benchmarks.speed.pose import PLAIN, tracker_of
from marey.articulated.targets import recording_of
from marey.pose.gauss_newton.directions import track_both_ways
from marey.pose.gauss_newton.fit import GaussNewtonSolver
from marey.pose.trace import PoseTrace
from marey.skeleton import Skeleton
from marey.take import Take

HEADLINE = "frames/s"
PLOT = ("frames/s",)
LIMIT_S = 7200.0
FEW = 10
PEERS = (
    "mujoco",
    "pinocchio",
    "mink",
    "biorbd",
    "nimblephysics",
    "opensim",
    "pose2sim",
)


def measure(setting: Setting) -> Iterator[Row]:
    frames = setting.choose(4000, 1000)
    skeleton = make_skeleton()
    take = record(skeleton, frames)
    fit, track = tracker_of(skeleton, take, {**PLAIN, "tolerance": 1e-13})
    best = fit.marker_residuals(take.points, track(frames))
    for name, options in (("least squares", PLAIN), ("limits and outliers", {})):
        fit, track = tracker_of(skeleton, take, options)
        for how, run, n_ways in (
            ("frame after frame", track, 1),
            ("side by side", partial(track_forward_and_backward, fit, take), 2),
        ):
            seconds = time_many_frames(run, FEW, frames, setting)
            residual = fit.marker_residuals(take.points, run(frames))
            each = scale(seconds, 1.0 / n_ways)
            yield describe(f"marey, {how}, {name}", each, residual, best)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_problem(folder, skeleton, take)

        def score(answer: Mapping[str, Any]) -> Row:
            markers = np.load(folder / answer["markers"])
            off = np.linalg.norm(markers - take.points[: len(markers)], axis=-1)
            return describe(answer["case"], Spread(*answer["seconds"]), off, best)

        yield from run_peers(PEERS, "ik", folder, score, setting)


def track_forward_and_backward(
    fit: GaussNewtonSolver, take: Take, count: int
) -> PoseTrace:
    """Return the forward poses of the first frames, tracked in both directions."""
    return track_both_ways(fit, recording_of(take.cut(0, count)))[0]


def describe(case: str, seconds: Spread, residual: np.ndarray, best: np.ndarray) -> Row:
    """Return the row of a program."""
    rms, least = (
        1e3 * float(np.sqrt(np.mean(one[: len(residual)] ** 2)))
        for one in (residual, best)
    )
    figures: dict[str, Figure] = {
        "frames/s": invert(seconds),
        "frames": len(residual),
        "markers [mm]": rms,
        "above optimum [%]": 100.0 * (rms / least - 1.0),
    }
    return Row(case, figures)


def write_problem(folder: Path, skeleton: Skeleton, take: Take) -> None:
    """Write the figure and the take in every format that a peer reads."""
    motion = perform(skeleton, 2)
    for suffix in ("osim", "mjcf"):
        marey.write(motion, folder / f"figure.{suffix}")
    marey.write(take, folder / "take.trc")
    np.savez(
        folder / "problem.npz",
        names=skeleton.names,
        parent=skeleton.parent,
        offset=skeleton.offset,
        kind=skeleton.kind,
        axes=skeleton.axes,
        labels=skeleton.marker_labels,
        marker_joint=skeleton.marker_joint,
        marker_offset=skeleton.marker_offset,
        points=take.points,
        rate=RATE,
    )
