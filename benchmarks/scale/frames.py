"""Cost of a whole solve against the number of frames.

A generated walk with 53 labelled markers at 100 Hz and 1 mm of noise; more than 100,000
frames are so many, played there and back.
"""

from collections.abc import Iterator

import numpy as np

import marey
from benchmarks.harness.task import Row, Setting
from benchmarks.scale.slopes import measure_sizes

HEADLINE = "CPU, log-log"
KEY_CASES = ("slope*",)
PLOT = ("frames", "CPU [s]")
LIMIT_S = 14_400.0
MOST_GENERATED = 100_000
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)


def measure(setting: Setting) -> Iterator[Row]:
    sizes = SIZES[: setting.choose(len(SIZES), 3)]
    once = Setting(quick=True, only=setting.only)
    yield from measure_sizes(sizes, "frames", record, marey.solve, once)


def record(n_frames: int) -> marey.Take:
    """Return a walk."""
    seconds = min(n_frames, MOST_GENERATED) / 100.0
    walk = marey.synth.human(seed=0).record(
        "walk", seconds=seconds, rate=100.0, markers="set53", noise=1e-3
    )
    period = 2 * walk.n_frames
    to_and_fro = np.arange(n_frames) % period
    to_and_fro = np.minimum(to_and_fro, period - 1 - to_and_fro)
    return marey.Take(rate=100.0, points=walk.points[to_and_fro], labels=walk.labels)
