"""Frames side by side against frames in sequence: the same poses on every recording.

Every recording is solved; then the poses of each of its subjects are solved alone, by
the engine as it is (sequences of frames in the lanes of the processor, long ones in
halves) and by the sequential tracker, frame after frame, without a cut. That is done by
least squares, with limits and outliers of a given scale, and by default, where scales
are estimated first.

- joints: largest distance of a joint from where the other engine has it, over all
  joints and frames; rotations: largest difference of a rotation of a joint;
- unsteady: solves of poses in which that distance is more than 1 um, and in which the
  sequential tracker differs by more than 1 um from itself, too, if coordinates change
  by 1 nm (most of 4 draws, "by 1 nm"). Which minimum is found is then no matter of the
  engine. Their joints count apart;
- CPU: of both, all solves of poses together.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import marey
from benchmarks.harness.task import Row, Setting
from benchmarks.speed.pose import PLAIN
from benchmarks.tools.answers import SUFFIXES, folders
from marey.articulated.targets import Recording
from marey.errors import MareyError
from marey.numerics import Array, geometry
from marey.pose import fit_pose
from marey.pose.gauss_newton import fit, halves
from marey.pose.trace import PoseTrace
from marey.skeleton import Skeleton, marker_columns
from marey.take import Take

HEADLINE = "joints [mm]"
KEY_CASES = ("all",)
LIMIT_S = 7200.0
DOUBTED_M, DISTURBANCE_M, DRAWS = 1e-6, 1e-9, 4
WAYS: Sequence[Mapping[str, Any]] = (PLAIN, {"adapt": False}, {})


class InSequence(fit.GaussNewtonSolver):
    """The same solver, which takes sequences one after the other, frame by frame."""

    def run_streams(
        self,
        recording: Recording,
        streams: Sequence[Array],
        trace: PoseTrace,
        settings: Any,
        paths: tuple[Array, Array],
        states: Any,
    ) -> None:
        """Solve sequences of frames in order; each is of one direction of time."""
        n = len(recording[0])
        for lane, stream in enumerate(streams):
            if len(stream):
                first = stream[0] - stream[0] % n
                rows = slice(first, first + n)
                out = trace.root[rows], trace.q[rows], trace.info[rows]
                state = tuple(values[lane] for values in states)
                own_paths = paths[0][rows], paths[1][rows]
                self._track_frames(
                    self.problem,
                    recording,
                    stream - first,
                    state,
                    settings,
                    own_paths,
                    out,
                )


@dataclass
class Score:
    """Figures of one recording, or the worst and the sums of several."""

    takes: int = 0
    subjects: int = 0
    frames: int = 0
    joints_m: float = 0.0
    rotations: float = 0.0
    unsteady: int = 0
    unsteady_m: float = np.nan
    disturbed_m: float = np.nan
    in_sequence_s: float = 0.0
    in_lanes_s: float = 0.0

    def __add__(self, other: "Score") -> "Score":
        both = {
            one.name: (getattr(self, one.name), getattr(other, one.name))
            for one in fields(self)
        }
        worst = [name for name in both if name.endswith("_m") or name == "rotations"]
        largest: dict[str, Any] = {
            name: float(np.fmax(*both.pop(name))) for name in worst
        }
        return Score(**largest, **{name: sum(two) for name, two in both.items()})

    def figures(self) -> dict[str, float]:
        """Return what a row shows."""
        return {
            "takes": self.takes,
            "subjects": self.subjects,
            "frames": self.frames,
            HEADLINE: 1e3 * self.joints_m,
            "rotations [deg]": float(np.degrees(self.rotations)),
            "unsteady": self.unsteady,
            "unsteady, joints [mm]": 1e3 * self.unsteady_m,
            "by 1 nm [mm]": 1e3 * self.disturbed_m,
            "in sequence, CPU [s]": self.in_sequence_s,
            "in lanes, CPU [s]": self.in_lanes_s,
        }


def measure(setting: Setting) -> Iterator[Row]:
    if not folders():
        yield Row("recordings", skipped="no recordings: MAREY_DATA names no folder")
        return
    found: list[Score] = []
    every = list(recordings())
    for folder, paths in every[: setting.choose(len(every), 2)]:
        if setting.wants(folder):
            scores = list(map(compare_file, paths))
            found += scores
            of_folder = sum(scores, Score())
            if of_folder.subjects:
                yield Row(folder, of_folder.figures())
    yield Row("all", sum(found, Score()).figures())


def recordings() -> Iterator[tuple[str, list[Path]]]:
    """Yield every folder below MAREY_DATA, and its recordings."""
    for root in folders():
        for folder in sorted(path for path in root.iterdir() if path.is_dir()):
            paths = (path for path in folder.rglob("*") if path.is_file())
            yield folder.name, sorted(p for p in paths if p.suffix.lower() in SUFFIXES)


def compare_file(path: Path) -> Score:
    """Return the differences of all subjects; none where marey refuses the file."""
    try:
        solution = marey.solve(path, options=marey.SolveOptions(whole=False))
    except MareyError:
        return Score()
    (take,) = solution.takes
    score = Score(takes=1)
    for subject in solution.subjects:
        skeleton = subject.motions[0].skeleton
        if (marker_columns(skeleton, take) >= 0).any():
            score += sum((compare(skeleton, take, way) for way in WAYS), Score())
            score.subjects += 1
            score.frames += take.n_frames
    return score


def compare(skeleton: Skeleton, take: Take, options: Mapping[str, Any]) -> Score:
    """Return the differences of poses side by side from those in sequence."""
    side, in_lanes_s = pose_timed(skeleton, take, options)
    with in_sequence():
        sequence, in_sequence_s = pose_timed(skeleton, take, options)
        apart_m, disturbed_m = joint_difference(side, sequence), 0.0
        if apart_m > DOUBTED_M:
            others = (disturb(take, draw) for draw in range(DRAWS))
            moved = (pose_timed(skeleton, other, options)[0] for other in others)
            disturbed_m = max(joint_difference(one, sequence) for one in moved)
    score = Score(in_sequence_s=in_sequence_s, in_lanes_s=in_lanes_s)
    if disturbed_m > DOUBTED_M:
        score.unsteady, score.unsteady_m = 1, apart_m
        score.disturbed_m = disturbed_m
        return score
    turn = geometry.quat_multiply(geometry.quat_conjugate(sequence.wxyz), side.wxyz)
    score.joints_m = apart_m
    score.rotations = float(np.nanmax(angles_of(turn), initial=0.0))
    return score


@contextmanager
def in_sequence() -> Iterator[None]:
    """Let poses be solved by the sequential tracker, and takes not be cut."""
    with (
        patch.object(fit, "GaussNewtonSolver", InSequence),
        patch.object(halves, "MIN_OVERLAPS", np.inf),
    ):
        yield


def joint_difference(one: marey.Motion, other: marey.Motion) -> float:
    """Return the largest distance of a joint in one motion from the other, in m."""
    apart = one.T_world_joint()[..., :3, 3] - other.T_world_joint()[..., :3, 3]
    return float(np.nanmax(np.linalg.norm(apart, axis=-1), initial=0.0))


def disturb(take: Take, draw: int) -> Take:
    """Return the take with noise of a nanometre."""
    rng = np.random.default_rng(draw)
    noise = rng.normal(scale=DISTURBANCE_M, size=take.points.shape)
    return replace(take, points=take.points + noise)


def angles_of(wxyz: np.ndarray) -> np.ndarray:
    """Return the angles of rotations, exact near zero."""
    return np.asarray(
        2.0 * np.arcsin(np.linalg.norm(wxyz[..., 1:], axis=-1).clip(0, 1))
    )


def pose_timed(
    skeleton: Skeleton, take: Take, options: Mapping[str, Any]
) -> tuple[marey.Motion, float]:
    """Return the poses of a take, and the processor time of their solution."""
    begin = time.process_time()
    motion, _ = fit_pose(skeleton, take, method="gauss_newton", **options)
    return motion, time.process_time() - begin
