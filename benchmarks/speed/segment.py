"""Pair statistics against NumPy.

Distances of all pairs of markers: mean and standard deviation over all frames, and the
robust spread.
"""

from collections.abc import Iterator

import numpy as np

from benchmarks.harness.task import Row, Setting
from benchmarks.harness.timing import time_call
from marey.segmentation.clusters.pair_statistics import pair_deviations, pair_statistics

HEADLINE = "x NumPy"
FRAMES, CHUNK = 4000, 100


def measure(setting: Setting) -> Iterator[Row]:
    markers = setting.choose(150, 50)
    points = np.random.default_rng(0).normal(size=(FRAMES, markers, 3))
    slow = time_call(lambda: numpy_deviations(points), setting).cpu
    size = f"{markers} markers, {FRAMES} frames"
    yield Row(f"NumPy, chunk by chunk, {size}", {"CPU [s]": slow})
    for name, call in (
        ("mean and deviation, all frames", lambda: pair_deviations(points)),
        ("robust spread, at most 100,000 positions", lambda: pair_statistics([points])),
    ):
        cpu = time_call(call, setting).cpu
        yield Row(name, {"CPU [s]": cpu, "x NumPy": slow.median / cpu.median})


def numpy_deviations(points: np.ndarray) -> np.ndarray:
    """Return the standard deviation of all distances, chunk by chunk."""
    markers = points.shape[1]
    count, total, square = np.zeros((3, markers, markers))
    for first in range(0, len(points), CHUNK):
        part = points[first : first + CHUNK]
        distance = np.linalg.norm(part[:, :, None] - part[:, None], axis=-1)
        count += np.isfinite(distance).sum(axis=0)
        total += np.nansum(distance, axis=0)
        square += np.nansum(distance**2, axis=0)
    return np.sqrt(np.maximum(square / count - (total / count) ** 2, 0.0))
