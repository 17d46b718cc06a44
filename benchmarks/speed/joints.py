"""Time and accuracy of all joints of 16 bodies, and of joints of a stream.

120 pairs of 16 sensors; difference is that of the centres from least squares pair by
pair. "Centres" have 2 mm and 0.01 rad of noise. A stream adds each frame to sums.
"""

import time
import tracemalloc
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import marey
from benchmarks.harness.task import Row, Setting, Spread
from benchmarks.harness.timing import scale, time_call
from marey.numerics import geometry

HEADLINE = "CPU [ms]"
BODIES, RATE = 16, 120.0
BARE: dict[str, Any] = {
    "refine": 0,
    "mediation": False,
    "noise": 2e-3,
    "turn_noise": 0.01,
}


def measure(setting: Setting) -> Iterator[Row]:
    n_frames = setting.choose(5400, 1200)
    bodies = recording(n_frames)
    yield from time_all_pairs(bodies, setting)
    yield from measure_accuracy(bodies, n_frames)
    yield from compare_methods(bodies, n_frames, setting)
    yield from time_stream(bodies, setting)


def recording(n_frames: int) -> marey.Bodies:
    """Return 16 sensors: a human's fifteen and one on a stick in the left hand."""
    take = record_sensors(n_frames, noise=2e-3, turn_noise=0.01)
    T = take.T_world_sensor
    stick = T[:, -1] @ geometry.transform(np.eye(3), np.array([0.3, 0.0, 0.0]))
    T = np.concatenate([T, stick[:, None]], axis=1)
    names = (*take.sensor_names, "Stick")
    return marey.segment(marey.Take(rate=RATE, T_world_sensor=T, sensor_names=names))


def record_sensors(n_frames: int, **noise: float) -> marey.synth.Recording:
    """Return an exercise of a human with sensors."""
    return marey.synth.human(seed=0).record(
        "exercise",
        sensors=True,
        markers="none",
        seconds=n_frames / RATE,
        rate=RATE,
        **noise,
    )


def solve_pair_by_pair(bodies: marey.Bodies) -> np.ndarray:
    """Return the centres of all pairs, each stacked and solved separately."""
    T = bodies.T_world_body
    found = []
    for a, b in zip(*np.triu_indices(T.shape[1], k=1), strict=True):
        Q = np.concatenate([T[:, a, :3, :3], -T[:, b, :3, :3]], axis=-1)
        d = T[:, b, :3, 3] - T[:, a, :3, 3]
        found.append(np.linalg.lstsq(Q.reshape(-1, 6), d.ravel(), rcond=None)[0])
    return np.array(found)


def time_all_pairs(bodies: marey.Bodies, setting: Setting) -> Iterator[Row]:
    """Yield time and difference of every estimator, and of `lstsq` pair by pair."""
    reference = time_call(lambda: solve_pair_by_pair(bodies), setting)
    yield Row("lstsq, pair by pair", {"CPU [ms]": scale(reference.cpu, 1e3)})
    for name, options in (
        ("least_squares, centres only", {"estimator": "least_squares", **BARE}),
        ("least_squares, all fields", {"estimator": "least_squares"}),
        ("corrected, all fields", {"estimator": "corrected"}),
        ("auto (likelihood where it may be)", {}),
        ("likelihood, every pair", {"estimator": "likelihood"}),
    ):
        timing = time_call(partial(marey.fit_joints, bodies, **options), setting)
        fits = timing.result
        found = np.concatenate([fits.center_a, fits.center_b], axis=1)
        ball = np.array([kind not in ("hinge", "fixed") for kind in fits.kind])
        yield Row(
            name,
            {
                "CPU [ms]": scale(timing.cpu, 1e3),
                "x lstsq": reference.cpu.median / timing.cpu.median,
                "difference [mm]": 1e3 * np.abs(found - reference.result)[ball].max(),
            },
        )


def measure_accuracy(bodies: marey.Bodies, n_frames: int) -> Iterator[Row]:
    """Yield the error of the centres of each estimator."""
    take = record_sensors(n_frames)
    exact = marey.fit_joints(marey.segment(take))
    row = {tuple(pair): k for k, pair in enumerate(exact.pair.tolist())}
    noisy = marey.Take(
        rate=RATE,
        T_world_sensor=bodies.T_world_body[:, : take.T_world_sensor.shape[1]],
        sensor_names=take.sensor_names,
    )
    edges = [tuple(sorted(edge[:2])) for edge in take.truth.edges.tolist()]
    for estimator in ("least_squares", "corrected", "auto"):
        fits = marey.fit_joints(marey.segment(noisy), estimator=estimator)
        error = [fits.center_a[row[e]] - exact.center_a[row[e]] for e in edges]
        rms = np.sqrt(np.mean(np.sum(np.square(error), axis=1)))
        yield Row(f"centres of 14 joints, {estimator}", {"error [mm]": 1e3 * rms})


def compare_methods(
    bodies: marey.Bodies, n_frames: int, setting: Setting
) -> Iterator[Row]:
    """Yield the time of every method, on sensors and on bodies of four markers."""
    take = marey.synth.human(seed=0).record(
        "exercise", markers=4, seconds=n_frames / RATE, rate=RATE, noise=1e-3
    )
    template = {
        take.truth.skeleton.names[joint]: [
            take.labels[m] for m in np.flatnonzero(take.truth.marker_joint == joint)
        ]
        for joint in np.unique(take.truth.marker_joint)
    }
    markers = marey.segment(take, method="template", template=template)
    for method in ("ball", "gdke"):
        for words, some in (("sensors", bodies), ("markers", markers)):
            timing = time_call(partial(marey.fit_joints, some, method=method), setting)
            yield Row(f"{method}, {words}", {"CPU [ms]": scale(timing.cpu, 1e3)})


def time_stream(bodies: marey.Bodies, setting: Setting) -> Iterator[Row]:
    """Yield time per frame and memory of a stream."""
    T = bodies.T_world_body
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
        yield Row(f"stream, {name}", {"CPU per frame [us]": 1e6 * each})
    cpu: Spread = time_call(accumulator.fits, setting).cpu
    yield Row("stream, all 120 joints from the sums", {"CPU [ms]": scale(cpu, 1e3)})
    tracemalloc.start()
    for times in (1, 2, 3):
        for frame in T:
            accumulator.update(frame)
        held = tracemalloc.get_traced_memory()[0] / 1024
        yield Row(f"stream, held after {times} x {len(T)} frames", {"kB": held})
    tracemalloc.stop()
