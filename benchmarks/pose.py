"""Inverse kinematics: frames per second, one frame's latency, accuracy.

One figure for all: 16 segments, 44 degrees of freedom, 53 markers, 100 Hz, 2 mm noise.
Run with one thread: OMP_NUM_THREADS=1 python benchmarks/pose.py
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import least_squares

import marey
from marey.articulated.targets import TargetNames
from marey.numerics import geometry
from marey.pose.gauss_newton.fit import GaussNewtonSolver
from marey.pose.gauss_newton.lanes import track_in_lanes
from marey.pose.gauss_newton.track_kernel import track_frames
from marey.pose.gauss_newton.tracker import PoseTracker
from marey.pose.options import GaussNewtonOptions
from marey.pose.trace import PoseTrace
from marey.skeleton import Skeleton
from marey.take import Take

FRAMES, RATE, NOISE = 4000, 100.0, 2e-3
REPEATS = 5
TRACKERS = {"in sequence": track_frames, "side by side": track_in_lanes}

# name, parent, kind, offset in the parent, half sizes of the box of its markers, number
SEGMENTS: tuple[
    tuple[str, int, Any, tuple[float, ...], tuple[float, ...], int], ...
] = (
    ("pelvis", -1, "root", (0, 0, 1.0), (0.10, 0.12, 0.05), 4),
    ("abdomen", 0, "universal", (0, 0, 0.08), (0.06, 0.09, 0.05), 2),
    ("chest", 1, "ball", (0, 0, 0.18), (0.09, 0.13, 0.11), 5),
    ("head", 2, "ball", (0, 0, 0.30), (0.08, 0.07, 0.09), 4),
    ("upper_arm_l", 2, "ball", (0, 0.18, 0.22), (0.04, 0.04, 0.13), 3),
    ("forearm_l", 4, "universal", (0, 0, -0.30), (0.04, 0.04, 0.11), 3),
    ("hand_l", 5, "ball", (0, 0, -0.26), (0.04, 0.04, 0.06), 3),
    ("upper_arm_r", 2, "ball", (0, -0.18, 0.22), (0.04, 0.04, 0.13), 3),
    ("forearm_r", 7, "universal", (0, 0, -0.30), (0.04, 0.04, 0.11), 3),
    ("hand_r", 8, "ball", (0, 0, -0.26), (0.04, 0.04, 0.06), 3),
    ("thigh_l", 0, "ball", (0, 0.09, -0.08), (0.06, 0.06, 0.18), 4),
    ("shank_l", 10, "hinge", (0, 0, -0.42), (0.05, 0.05, 0.18), 3),
    ("foot_l", 11, "ball", (0, 0, -0.42), (0.09, 0.04, 0.03), 3),
    ("thigh_r", 0, "ball", (0, -0.09, -0.08), (0.06, 0.06, 0.18), 4),
    ("shank_r", 13, "hinge", (0, 0, -0.42), (0.05, 0.05, 0.18), 3),
    ("foot_r", 14, "ball", (0, 0, -0.42), (0.09, 0.04, 0.03), 3),
)
AXES = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
LIMIT = np.radians(100.0)


def make_skeleton() -> Skeleton:
    rng = np.random.default_rng(7)
    joint = np.repeat(np.arange(16), [s[5] for s in SEGMENTS])
    size = np.array([s[4] for s in SEGMENTS])[joint]
    return Skeleton(
        names=tuple(s[0] for s in SEGMENTS),
        parent=np.array([s[1] for s in SEGMENTS]),
        offset=np.array([s[3] for s in SEGMENTS], dtype=float),
        kind=tuple(s[2] for s in SEGMENTS),
        axes=np.tile(AXES, (16, 1, 1)),
        limits=np.tile([-LIMIT, LIMIT], (16, 3, 1)),
        marker_labels=tuple(f"M{i}" for i in range(len(joint))),
        marker_joint=joint,
        marker_offset=rng.uniform(-1.0, 1.0, (len(joint), 3)) * size,
    )


def perform(skeleton: Skeleton) -> marey.Motion:
    """Return slow sums of sines at every joint, as people move."""
    rng = np.random.default_rng(3)
    t = np.arange(FRAMES) / RATE
    f, phase = rng.uniform(0.15, 1.2, (2, 3, 16, 3)) * [[[[1.0]]], [[[5.0]]]]
    wave = np.sin(2.0 * np.pi * f * t[:, None, None, None] + phase)
    angles = (0.2 / (1.0 + np.arange(3.0))[:, None, None] * wave).sum(axis=1)
    wxyz = np.empty((FRAMES, 16, 4))
    for i, kind in enumerate(skeleton.kind):
        if kind in ("root", "ball"):
            wxyz[:, i] = geometry.quat_exp(angles[:, i])
            continue
        wxyz[:, i] = geometry.quat_exp(angles[:, i, :1] * AXES[0])
        if kind == "universal":
            second = geometry.quat_exp(angles[:, i, 1:2] * AXES[1])
            wxyz[:, i] = geometry.quat_multiply(wxyz[:, i], second)
    position = skeleton.offset[0] + 0.5 * angles[:, 1]
    T = geometry.transform(geometry.matrix_from_quat(wxyz[:, 0]), position)
    return marey.Motion(skeleton=skeleton, T_world_root=T, wxyz=wxyz, rate=RATE)


def record(skeleton: Skeleton) -> Take:
    """Return the take of the performance, with noise."""
    clean = perform(skeleton).marker_points()
    noise = np.random.default_rng(5).normal(scale=NOISE, size=clean.shape)
    return Take(rate=RATE, points=clean + noise, labels=skeleton.marker_labels)


def median_time(work: Callable[[], Any]) -> float:
    work()
    spent = []
    for _ in range(REPEATS):
        begin = time.process_time()
        work()
        spent.append(time.process_time() - begin)
    return float(np.median(spent))


def solver_speed(
    skeleton: Skeleton, take: Take, tracker: Callable[..., None], **options: Any
) -> float:
    """Print frames per second of a compiled tracker alone, and its accuracy."""
    fit = GaussNewtonSolver(
        skeleton, TargetNames.of(take), RATE, GaussNewtonOptions(**options)
    )
    none, order = np.zeros((FRAMES, 0, 4, 4)), np.arange(FRAMES)

    def track() -> PoseTrace:
        fit.reset()
        trace = PoseTrace.empty(FRAMES, len(fit.nodes.tree.parent))
        paths, out = (trace.root, trace.q), (trace.root, trace.q, trace.info)
        where = ((take.points, none), order, tuple(fit.state))
        tracker(fit.problem, *where, fit.settings, paths, out)
        return trace

    seconds, trace = median_time(track), track()
    rms = 1e3 * np.sqrt(np.mean(fit.marker_residuals(take.points, trace) ** 2))
    steps = trace.info[1:, 3].mean()
    name = ", ".join(f"{k}={v:g}" for k, v in options.items()) or "limits and outliers"
    speed = FRAMES / seconds
    print(f"{name:<44} {speed:>9.0f} fps  {steps:.2f} steps  rms {rms:.4f} mm")
    return speed


def take_speed(skeleton: Skeleton, take: Take, **options: Any) -> None:
    method = "gauss_newton"
    seconds = median_time(
        lambda: marey.solve_pose(skeleton, take, method=method, **options)
    )
    name = "solve_pose" + "".join(f", {k}={v:g}" for k, v in options.items())
    print(f"{name:<44} {FRAMES / seconds:>9.0f} fps")


def latency(skeleton: Skeleton, take: Take, **options: Any) -> None:
    tracker = PoseTracker(skeleton, take.labels, rate=RATE, **options)
    spent = []
    tracker.update(take.points[0])
    busy = time.process_time()
    for points in take.points:
        begin = time.perf_counter()
        tracker.update(points)
        spent.append(1e6 * (time.perf_counter() - begin))
    name = ", ".join(f"{k}={v:g}" for k, v in options.items()) or "limits and outliers"
    busy = 1e6 * (time.process_time() - busy) / FRAMES
    late = np.quantile(spent[10:], 0.99)
    print(
        f"{name:<44} {np.median(spent[10:]):>9.1f} us median, {late:.1f} us p99,",
        end="",
    )
    print(f" {busy:.1f} us of CPU")


def placement(skeleton: Skeleton, take: Take) -> None:
    """Print the time of placing single frames from constants."""
    placer = marey.SkeletonPlacer(skeleton, take.labels)

    def place_all() -> None:
        for points in take.points:
            placer.place(points)

    each = median_time(place_all) / FRAMES
    name = "SkeletonPlacer.place"
    print(f"{name:<44} {1e6 * each:>9.1f} us of CPU, {1.0 / each:.0f} fps")


def reference(skeleton: Skeleton, take: Take, frames: int = 20) -> None:
    """Print the marker error beside that of a converged general optimiser."""
    motion = marey.solve_pose(
        skeleton, take, method="gauss_newton", outlier=0.0, limits=False
    )
    free = np.array([{"root": 3, "ball": 3, "universal": 2, "hinge": 1}[k]
                     for k in skeleton.kind])  # fmt: skip
    ours = best = 0.0
    for f in np.linspace(0, FRAMES - 1, frames).astype(int):

        def off(x: np.ndarray, f: int = f) -> np.ndarray:
            q, at = motion.wxyz[f].copy(), 3
            for i, n in enumerate(free):
                own = x[at : at + n]
                turn = own if n == 3 else own[:1] * AXES[0]
                q[i] = geometry.quat_multiply(geometry.quat_exp(turn), q[i])
                if n == 2:
                    second = geometry.quat_exp(own[1:] * AXES[1])
                    q[i] = geometry.quat_multiply(q[i], second)
                at += n
            position = motion.T_world_root[f, :3, 3] + x[:3]
            T = geometry.transform(geometry.matrix_from_quat(q[0]), position)
            joints = skeleton.forward(T[None], q[None])[0][skeleton.marker_joint]
            return (
                geometry.apply(joints, skeleton.marker_offset) - take.points[f]
            ).ravel()

        x = np.zeros(3 + free.sum())
        found = least_squares(off, x, xtol=1e-12, ftol=1e-12, gtol=1e-12)
        ours += float(np.sum(off(x) ** 2))
        best += 2.0 * found.cost
    rms = 1e3 * np.sqrt(np.array([ours, best]) / (53 * frames))
    share = rms[0] / rms[1] - 1.0
    print(f"rms of {frames} frames: {rms[0]:.6f} mm, converged {rms[1]:.6f} mm", end="")
    print(f", {share:+.2e} of it")


def main() -> int:
    skeleton = make_skeleton()
    take = record(skeleton)
    print(f"{FRAMES} frames, 16 segments, 44 degrees of freedom, 53 markers, one core")
    for name, tracker in TRACKERS.items():
        print(name)
        solver_speed(skeleton, take, tracker, outlier=0.0, limits=False)
        solver_speed(skeleton, take, tracker)
    print("whole takes, both ways")
    take_speed(skeleton, take)
    take_speed(skeleton, take, smooth=100.0)
    print("one frame at a time")
    latency(skeleton, take, outlier=0.0, limits=False)
    latency(skeleton, take)
    placement(skeleton, take)
    reference(skeleton, take)
    return 0


if __name__ == "__main__":
    sys.exit(main())
