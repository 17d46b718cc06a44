"""Inverse kinematics: frames per second, one frame's latency, accuracy.

One figure for all: 16 segments, 44 degrees of freedom, 53 markers, 100 Hz, 2 mm noise.
"In sequence" is the compiled tracker alone, "both ways" the same forward and backward
side by side, and "given poses" starts every frame at the pose of the one before, which
is known, side by side in all lanes. "Take" is `solve_pose` of a whole take both ways,
"frame" is one frame at a time as a stream has it. "Threads" is "both ways" in so many
threads at once, each with takes of its own, by the wall clock, the best of its repeats:
the kernels release the lock of the interpreter. "Blocked" is the share of its time,
without that in which it waits for a core, in which a thread waits for another one; it
does not depend on what else runs. "Plain" is the same with singular values by NumPy:
what the cores that are free do at best. The optimum is that of a general
optimiser, run to convergence on 20 frames.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import least_squares

import marey
from benchmarks.harness.task import Figure, Row, Setting
from benchmarks.harness.timing import (
    invert,
    scale,
    spread_of,
    thread_times,
    time_call,
)
from benchmarks.peers.figure import AXES, RATE, make_skeleton, record
from marey.articulated.targets import TargetNames, recording_of
from marey.numerics import geometry
from marey.pose.gauss_newton.directions import track_both_ways
from marey.pose.gauss_newton.fit import GaussNewtonSolver
from marey.pose.gauss_newton.track_kernel import track_frames
from marey.pose.gauss_newton.tracker import PoseTracker
from marey.pose.options import GaussNewtonOptions
from marey.pose.trace import PoseTrace
from marey.skeleton import Skeleton
from marey.take import Take

HEADLINE = "frames/s"
KEY_CASES = ("in sequence, *", "both ways, *", "given poses, *", "take, *")
PLAIN: dict[str, Any] = {"outlier": 0.0, "limits": False}
TRACKERS: Mapping[str, Callable[..., None]] = {
    "in sequence": track_frames,
}
WAYS: Mapping[str, Mapping[str, Any]] = {
    "least squares": PLAIN,
    "limits and outliers": {},
}
FREE = {"root": 3, "ball": 3, "universal": 2, "hinge": 1}
WARM_FRAMES, CONVERGED_FRAMES = 10, 20
THREAD_ROUNDS, THREAD_CALLS, PLAIN_MATRICES = 20, 5, 20_000


def measure(setting: Setting) -> Iterator[Row]:
    skeleton = make_skeleton()
    take = record(skeleton, setting.choose(4000, 1000))
    for name, tracker in TRACKERS.items():
        for way, options in WAYS.items():
            case = f"{name}, {way}"
            yield measure_tracker(case, skeleton, take, tracker, options, setting)
    for way, options in WAYS.items():
        yield measure_both_ways(f"both ways, {way}", skeleton, take, options, setting)
        yield measure_given(f"given poses, {way}", skeleton, take, options, setting)
    yield from measure_threads(skeleton, take, setting)
    for way, options in {**WAYS, "smooth": {"smooth": 100.0}}.items():
        yield measure_take(f"take, {way}", skeleton, take, options, setting)
    for way, options in WAYS.items():
        yield measure_frames(f"frame, {way}", skeleton, take, options)
    yield measure_placement(skeleton, take, setting)
    yield compare_with_optimum(skeleton, take)


def tracker_of(
    skeleton: Skeleton,
    take: Take,
    options: Mapping[str, Any],
    tracker: Callable[..., None] | None = None,
) -> tuple[GaussNewtonSolver, Callable[[int], PoseTrace]]:
    """Return the solver, and a function that tracks the first frames with it.

    Without a tracker the solver chooses, by the number of frames.
    """
    fit = GaussNewtonSolver(
        skeleton, TargetNames.of(take), RATE, GaussNewtonOptions(**options)
    )

    def track(count: int) -> PoseTrace:
        fit.reset()
        recording = take.points[:count], np.zeros((count, 0, 4, 4))
        if tracker is None:
            return fit.track(recording, np.arange(count))
        trace = PoseTrace.empty(count, len(fit.nodes.tree.parent))
        paths, out = (trace.root, trace.q), (trace.root, trace.q, trace.info)
        where = (recording, np.arange(count), tuple(fit.state))
        tracker(fit.problem, *where, fit.settings, paths, out)
        return trace

    return fit, track


def measure_tracker(
    case: str,
    skeleton: Skeleton,
    take: Take,
    tracker: Callable[..., None],
    options: Mapping[str, Any],
    setting: Setting,
) -> Row:
    """Return speed, iterations and marker error of a compiled tracker alone."""
    fit, track = tracker_of(skeleton, take, options, tracker)
    timing = time_call(lambda: track(take.n_frames), setting)
    residual = fit.marker_residuals(take.points, timing.result)
    figures: dict[str, Figure] = {
        "frames/s": invert(timing.cpu, take.n_frames),
        "iterations": float(timing.result.info[1:, 3].mean()),
        "markers [mm]": 1e3 * float(np.sqrt(np.mean(residual**2))),
    }
    return Row(case, figures)


def measure_both_ways(
    case: str,
    skeleton: Skeleton,
    take: Take,
    options: Mapping[str, Any],
    setting: Setting,
) -> Row:
    """Return speed of tracking forward and backward, and the difference of poses.

    The difference is that of the forward poses from those in sequence, in quaternions.
    """
    fit, track = tracker_of(skeleton, take, options, track_frames)
    in_sequence, recording = track(take.n_frames), recording_of(take)
    timing = time_call(lambda: track_both_ways(fit, recording), setting)
    figures: dict[str, Figure] = {
        "frames/s": invert(timing.cpu, 2 * take.n_frames),
        "difference": float(np.abs(timing.result[0].q - in_sequence.q).max()),
    }
    return Row(case, figures)


def measure_threads(skeleton: Skeleton, take: Take, setting: Setting) -> Iterator[Row]:
    """Yield how much more several threads do than one: of poses, and of plain work.

    Numbers of threads take turns, so that other work on the machine concerns all.
    """
    recording, cores = recording_of(take), os.cpu_count() or 1
    fits = [tracker_of(skeleton, take, PLAIN)[0] for _ in range(cores)]
    track = [partial(track_both_ways, one, recording) for one in fits]
    matrices = np.random.default_rng(0).normal(size=(PLAIN_MATRICES, 3, 3))
    plain = [partial(np.linalg.svd, matrices, compute_uv=False)] * cores
    for case, calls, n_frames in (
        ("least squares", track, 2 * take.n_frames),
        ("plain", plain, 0),
    ):
        found = time_threads(calls, setting)
        for count, (seconds, blocked) in found.items():
            figures: dict[str, Figure] = {
                "x one thread": count * found[1].seconds / seconds,
                "blocked [%]": 100.0 * blocked,
            }
            if n_frames:
                figures["frames/s"] = count * n_frames / seconds
            yield Row(f"threads, {count}, {case}", figures)


class Threads(NamedTuple):
    """Least wall seconds of a call, and the median share in which it is blocked."""

    seconds: float
    blocked: float


def time_threads(
    calls: Sequence[Callable[[], object]], setting: Setting
) -> dict[int, Threads]:
    """Return the times of calls by the number of threads, each with a call of its own.

    It is made several times, so that the start of a thread hardly counts.
    """
    repeats = setting.choose(THREAD_CALLS, 2)

    def repeat(call: Callable[[], object]) -> float:
        begin, (run, queued) = time.perf_counter(), thread_times()
        for _ in range(repeats):
            call()
        run, queued = np.subtract(thread_times(), (run, queued))
        return 1.0 - float(run / max(time.perf_counter() - begin - queued, run))

    spent: dict[int, list[float]] = {k: [] for k in range(1, len(calls) + 1)}
    blocked: dict[int, list[float]] = {k: [] for k in spent}
    with ThreadPoolExecutor(len(calls)) as pool:
        for _ in range(setting.choose(THREAD_ROUNDS, 3)):
            for count in spent:
                begin = time.perf_counter()
                runs = [pool.submit(repeat, call) for call in calls[:count]]
                blocked[count] += [run.result() for run in runs]
                spent[count].append((time.perf_counter() - begin) / repeats)
    return {k: Threads(min(spent[k]), float(np.median(blocked[k]))) for k in spent}


def measure_given(
    case: str,
    skeleton: Skeleton,
    take: Take,
    options: Mapping[str, Any],
    setting: Setting,
) -> Row:
    """Return speed from given poses, and the difference from the same in sequence."""
    fit, track = tracker_of(skeleton, take, options, track_frames)
    start, recording = track(take.n_frames), recording_of(take)
    start.q[1:], start.root[1:] = start.q[:-1].copy(), start.root[:-1].copy()
    every, paths = np.arange(take.n_frames), (start.root.copy(), start.q.copy())

    def move() -> PoseTrace:
        trace = start.copy()
        fit.move_to_minima(recording, every, trace, fit.settings, paths)
        return trace

    timing, in_sequence = time_call(move, setting), start.copy()
    out = (in_sequence.root, in_sequence.q, in_sequence.info)
    given = fit.settings._replace(given_start=True)
    state = tuple(fit.state)
    track_frames(fit.problem, recording, every, state, given, paths, out)
    figures: dict[str, Figure] = {
        "frames/s": invert(timing.cpu, take.n_frames),
        "iterations": float(timing.result.info[:, 3].mean()),
        "difference": float(np.abs(timing.result.q - in_sequence.q).max()),
    }
    return Row(case, figures)


def measure_take(
    case: str,
    skeleton: Skeleton,
    take: Take,
    options: Mapping[str, Any],
    setting: Setting,
) -> Row:
    """Return speed and marker error of a whole take."""
    timing = time_call(
        lambda: marey.solve_pose(skeleton, take, method="gauss_newton", **options),
        setting,
    )
    off = np.linalg.norm(timing.result.marker_points() - take.points, axis=-1)
    rms = 1e3 * float(np.sqrt(np.mean(off**2)))
    speed = invert(timing.cpu, take.n_frames)
    return Row(case, {"frames/s": speed, "markers [mm]": rms})


def measure_frames(
    case: str, skeleton: Skeleton, take: Take, options: Mapping[str, Any]
) -> Row:
    """Return the latency of single frames."""
    tracker = PoseTracker(skeleton, take.labels, rate=RATE, **options)
    spent = []
    tracker.update(take.points[0])
    busy = time.process_time()
    for points in take.points:
        begin = time.perf_counter()
        tracker.update(points)
        spent.append(1e6 * (time.perf_counter() - begin))
    figures: dict[str, Figure] = {
        "wall [us]": spread_of(spent[WARM_FRAMES:]),
        "wall of 99 % [us]": float(np.quantile(spent[WARM_FRAMES:], 0.99)),
        "CPU [us]": 1e6 * (time.process_time() - busy) / take.n_frames,
    }
    return Row(case, figures)


def measure_placement(skeleton: Skeleton, take: Take, setting: Setting) -> Row:
    """Return the time of placing single frames from constants."""
    placer = marey.SkeletonPlacer(skeleton, take.labels)

    def place_all() -> None:
        for points in take.points:
            placer.place(points)

    cpu = time_call(place_all, setting).cpu
    figures: dict[str, Figure] = {
        "frames/s": invert(cpu, take.n_frames),
        "CPU [us]": scale(cpu, 1e6 / take.n_frames),
    }
    return Row("frame, SkeletonPlacer.place", figures)


def compare_with_optimum(skeleton: Skeleton, take: Take) -> Row:
    """Return the marker error over that of a converged general optimiser."""
    motion = marey.solve_pose(skeleton, take, method="gauss_newton", **PLAIN)
    found = best = 0.0
    for f in np.linspace(0, take.n_frames - 1, CONVERGED_FRAMES).astype(int).tolist():
        off = residual_function(skeleton, motion, take, f)
        x = np.zeros(3 + sum(FREE[kind] for kind in skeleton.kind))
        found += float(np.sum(off(x) ** 2))
        best += 2.0 * least_squares(off, x, xtol=1e-12, ftol=1e-12, gtol=1e-12).cost
    count = len(take.labels) * CONVERGED_FRAMES
    figures: dict[str, Figure] = {
        "markers [mm]": 1e3 * float(np.sqrt(found / count)),
        "optimum [mm]": 1e3 * float(np.sqrt(best / count)),
        "above optimum": float(np.sqrt(found / best)) - 1.0,
    }
    return Row("take against the optimum", figures)


def residual_function(
    skeleton: Skeleton, motion: marey.Motion, take: Take, f: int
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the residuals of a frame's markers as a function of a change of pose."""

    def off(x: np.ndarray) -> np.ndarray:
        q, at = motion.wxyz[f].copy(), 3
        for i, kind in enumerate(skeleton.kind):
            n = FREE[kind]
            angle = x[at : at + n]
            turn = angle if n == 3 else angle[:1] * AXES[0]
            q[i] = geometry.quat_multiply(geometry.quat_exp(turn), q[i])
            if n == 2:
                second = geometry.quat_exp(angle[1:] * AXES[1])
                q[i] = geometry.quat_multiply(q[i], second)
            at += n
        position = motion.T_world_root[f, :3, 3] + x[:3]
        T = geometry.transform(geometry.matrix_from_quat(q[0]), position)
        joints = skeleton.forward(T[None], q[None])[0][skeleton.marker_joint]
        found = geometry.apply(joints, skeleton.marker_offset)
        return np.asarray(found - take.points[f]).ravel()

    return off
