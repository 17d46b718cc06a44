"""Time and accuracy of all joints of 16 bodies, and of joints of a stream.

Processor time, so that a busy machine does not change the ratios. For one thread run
OPENBLAS_NUM_THREADS=1 python benchmarks/joints.py
"""

import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

import marey
from marey.numerics import geometry

BODIES, FRAMES = 16, 5400


def recording(n_frames: int = FRAMES) -> marey.Bodies:
    """Return 16 sensors: a human's fifteen and one on a stick in the left hand."""
    take = marey.synth.human(seed=0).record(
        "exercise",
        sensors=True,
        markers="none",
        seconds=n_frames / 120.0,
        rate=120.0,
        noise=2e-3,
        turn_noise=0.01,
    )
    T = take.T_world_sensor
    stick = T[:, -1] @ geometry.transform(np.eye(3), np.array([0.3, 0.0, 0.0]))
    T = np.concatenate([T, stick[:, None]], axis=1)
    names = (*take.sensor_names, "Stick")
    return marey.segment(marey.Take(rate=120.0, T_world_sensor=T, sensor_names=names))


def solve_pair_by_pair(bodies: marey.Bodies) -> np.ndarray:
    """Return the centres of all pairs, each stacked and solved separately."""
    T = bodies.T_world_body
    found = []
    for a, b in zip(*np.triu_indices(T.shape[1], k=1), strict=True):
        Q = np.concatenate([T[:, a, :3, :3], -T[:, b, :3, :3]], axis=-1)
        d = T[:, b, :3, 3] - T[:, a, :3, 3]
        found.append(np.linalg.lstsq(Q.reshape(-1, 6), d.ravel(), rcond=None)[0])
    return np.array(found)


def best_time(call: Callable[[], Any], runs: int = 3) -> tuple[float, Any]:
    """Return the smallest processor time of some runs, in seconds, and a result."""
    seconds = []
    for _ in range(runs):
        begin = time.process_time()
        result = call()
        seconds.append(time.process_time() - begin)
    return min(seconds), result


def time_all_pairs(bodies: marey.Bodies) -> None:
    """Print the time of all pairs at once and its ratio to pair by pair."""
    reference, centers = best_time(lambda: solve_pair_by_pair(bodies))
    print(f"{BODIES} bodies, 120 pairs, {FRAMES} frames      ms   ratio  difference, m")
    print(f"{'lstsq, pair by pair':<34} {1e3 * reference:>9.1f}")
    bare = {"refine": 0, "mediation": False, "noise": 2e-3, "turn_noise": 0.01}
    for name, options in (
        ("least_squares, centres only", {"estimator": "least_squares", **bare}),
        ("least_squares, all fields", {"estimator": "least_squares"}),
        ("corrected, all fields", {"estimator": "corrected"}),
        ("auto (likelihood where it may be)", {}),
        ("likelihood, every pair", {"estimator": "likelihood"}),
    ):
        marey.fit_joints(bodies, **options)  # compiled kernels load once
        seconds, fits = best_time(lambda o=options: marey.fit_joints(bodies, **o))
        found = np.concatenate([fits.center_a, fits.center_b], axis=1)
        ball = np.array([kind not in ("hinge", "fixed") for kind in fits.kind])
        difference = np.abs(found - centers)[ball].max()
        ratio = reference / seconds
        print(f"{name:<34} {1e3 * seconds:>9.1f} {ratio:>7.1f} {difference:>13.1e}")


def measure_accuracy(bodies: marey.Bodies) -> None:
    """Print the error of the centres of each estimator."""
    take = marey.synth.human(seed=0).record(
        "exercise", sensors=True, markers="none", seconds=FRAMES / 120.0, rate=120.0
    )
    T = take.T_world_sensor
    exact = marey.fit_joints(marey.segment(take))
    row = {tuple(pair): k for k, pair in enumerate(exact.pair.tolist())}
    noisy = marey.Take(
        rate=120.0,
        T_world_sensor=bodies.T_world_body[:, : T.shape[1]],
        sensor_names=take.sensor_names,
    )
    print()
    print("Centres of the 14 joints, 2 mm and 0.01 rad of noise      rms, mm")
    edges = [tuple(sorted(edge[:2])) for edge in take.truth.edges.tolist()]
    for estimator in ("least_squares", "corrected", "auto"):
        fits = marey.fit_joints(marey.segment(noisy), estimator=estimator)
        error = [fits.center_a[row[e]] - exact.center_a[row[e]] for e in edges]
        rms = np.sqrt(np.mean(np.sum(np.square(error), axis=1)))
        print(f"{estimator:<55} {1e3 * rms:>9.3f}")


def compare_methods(bodies: marey.Bodies) -> None:
    """Print the time of every method, on sensors and on bodies of four markers."""
    take = marey.synth.human(seed=0).record(
        "exercise", markers=4, seconds=FRAMES / 120.0, rate=120.0, noise=1e-3
    )
    template = {
        take.truth.skeleton.names[joint]: [
            take.labels[m] for m in np.flatnonzero(take.truth.marker_joint == joint)
        ]
        for joint in np.unique(take.truth.marker_joint)
    }
    markers = marey.segment(take, method="template", template=template)
    print()
    print(f"All pairs by method, {FRAMES} frames            sensors, ms  markers, ms")
    for method in ("ball", "gdke"):
        marey.fit_joints(bodies, method=method)  # compiled kernels load once
        spent = [
            best_time(lambda b=one, m=method: marey.fit_joints(b, method=m))[0]
            for one in (bodies, markers)
        ]
        print(f"{method:<40} {1e3 * spent[0]:>12.1f} {1e3 * spent[1]:>12.1f}")


def time_stream(bodies: marey.Bodies) -> None:
    """Print time per frame and memory of a stream."""
    T = bodies.T_world_body
    print()
    print("Stream of 16 bodies                                 us per frame")
    occluded = T.copy()
    occluded[::2, 3] = np.nan
    for name, frames, forgetting in (
        ("all seen", T, 1.0),
        ("all seen, forgetting", T, 0.999),
        ("every other frame with an occlusion", occluded, 0.999),
    ):
        accumulator = marey.JointAccumulator(BODIES, forgetting=forgetting)
        begin = time.process_time()
        for frame in frames:
            accumulator.update(frame)
        each = (time.process_time() - begin) / len(frames)
        print(f"{name:<52} {1e6 * each:>11.1f}")
    seconds, _ = best_time(accumulator.fits)
    print(f"{'all 120 joints from the sums':<52} {1e6 * seconds:>11.1f}")
    tracemalloc.start()
    sizes = []
    for _ in range(3):
        for frame in T:
            accumulator.update(frame)
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    print(f"memory held after 1, 2, 3 x {FRAMES} frames, kB: ", end="")
    print(", ".join(f"{size / 1024:.0f}" for size in sizes))


def main() -> int:
    bodies = recording()
    time_all_pairs(bodies)
    measure_accuracy(bodies)
    compare_methods(bodies)
    time_stream(bodies)
    return 0


if __name__ == "__main__":
    sys.exit(main())
