"""Inverse kinematics: frames per second, one frame's latency, accuracy.

One figure for all: 16 segments, 44 degrees of freedom, 53 markers, 100 Hz, 2 mm noise.
"In sequence" is the compiled tracker alone, "both ways" the same forward and backward
side by side, and "given poses" starts every frame at the pose of the one before, which
is known, side by side in all lanes. "Take" is `solve_pose` of a whole take both ways,
"frame" is one frame at a time as a stream has it. "Threads" is "both ways" of so many
takes at once, each in a thread of its own, by the wall clock, the best of its repeats:
the kernels release the lock of the interpreter. The optimum is that of a general
optimiser, run to convergence on 20 frames.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np
from scipy.optimize import least_squares

import marey
from benchmarks.harness.task import Figure, Row, Setting
from benchmarks.harness.timing import invert, scale, spread_of, time_call
from benchmarks.peers.figure import AXES, RATE, make_skeleton, record
from marey.articulated.targets import TargetNames, recording_of
from marey.numerics import geometry
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
WARM_FRAMES, CONVERGED_FRAMES, THREAD_ROUNDS = 10, 20, 40


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
    timing = time_call(lambda: fit.track_both_ways(recording), setting)
    figures: dict[str, Figure] = {
        "frames/s": invert(timing.cpu, 2 * take.n_frames),
        "difference": float(np.abs(timing.result[0].q - in_sequence.q).max()),
    }
    return Row(case, figures)


def measure_threads(skeleton: Skeleton, take: Take, setting: Setting) -> Iterator[Row]:
    """Yield the speed of tracking takes at once, one in each of several threads.

    Numbers of threads take turns, so that other work on the machine concerns all.
    """
    recording, counts = recording_of(take), range(1, (os.cpu_count() or 1) + 1)
    fits = [tracker_of(skeleton, take, PLAIN)[0] for _ in counts]
    least = dict.fromkeys(counts, np.inf)
    with ThreadPoolExecutor(len(counts)) as pool:
        for _ in range(setting.choose(THREAD_ROUNDS, 3)):
            for count in counts:
                begin = time.perf_counter()
                runs = (
                    pool.submit(one.track_both_ways, recording) for one in fits[:count]
                )
                wait(list(runs))
                least[count] = min(least[count], time.perf_counter() - begin)
    for count, seconds in least.items():
        figures: dict[str, Figure] = {
            "frames/s": 2 * count * take.n_frames / seconds,
            "x one thread": count * least[1] / seconds,
        }
        yield Row(f"threads, {count}, least squares", figures)


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
