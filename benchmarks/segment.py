"""Times of pair statistics against NumPy, and of a whole solve by stage."""

import time

import numpy as np

import marey
from marey.segmentation.clusters.pair_statistics import pair_deviations, pair_statistics

MARKERS, FRAMES, CHUNK = 300, 4000, 100


def main() -> None:
    time_distances()
    time_stages()


def shortest(call, repeats=3):
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def time_distances():
    points = np.random.default_rng(0).normal(size=(FRAMES, MARKERS, 3))
    pair_deviations(points[:, :4])
    pair_statistics([points[:, :4]])
    slow = shortest(lambda: numpy_deviations(points), repeats=1)
    print(f"distances of {MARKERS} markers, {FRAMES} frames        s   ratio")
    print(f"{'NumPy, chunk by chunk':<40} {slow:6.3f}")
    for name, call in (
        ("mean and deviation, all frames", lambda: pair_deviations(points)),
        ("robust spread, 600 frames", lambda: pair_statistics([points])),
    ):
        seconds = shortest(call)
        print(f"{name:<40} {seconds:6.3f} {slow / seconds:7.1f}")


def numpy_deviations(points):
    """Standard deviation of all distances, chunk by chunk."""
    count, total, square = np.zeros((3, MARKERS, MARKERS))
    for first in range(0, FRAMES, CHUNK):
        part = points[first : first + CHUNK]
        distance = np.linalg.norm(part[:, :, None] - part[:, None], axis=-1)
        count += np.isfinite(distance).sum(axis=0)
        total += np.nansum(distance, axis=0)
        square += np.nansum(distance**2, axis=0)
    return np.sqrt(square / count - (total / count) ** 2)


def time_stages():
    performer = marey.synth.human(seed=0)
    print("\nwhole solve, warm: s (by stage)")
    for markers, frames, method in (
        ("set53", 4000, "labels"),
        ("set53", 4000, "overlap"),
        ("dense110", 4000, "overlap"),
    ):
        take = performer.record(
            "chicken_walk",
            markers=markers,
            seconds=frames / 100.0,
            rate=100.0,
            noise=1e-3,
            soft_tissue=3e-3,
        )
        options = marey.SolveOptions(segment=method)
        marey.solve(take, options=options)
        total, stages = min(time_solve(take, options) for _ in range(3))
        print(f"{len(take.labels)} x {frames}, {method}: {total:.2f} ({stages})")


def time_solve(take, options):
    """Seconds in all, and by stage."""
    begin = time.perf_counter()
    seconds = marey.solve(take, options=options).report.seconds
    total = time.perf_counter() - begin
    parts = [f"{stage} {part:.2f}" for stage, part in seconds.items() if part > 0.005]
    return total, ", ".join(parts)


if __name__ == "__main__":
    main()
