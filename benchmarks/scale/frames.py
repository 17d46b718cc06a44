"""Cost of a whole solve against the number of frames.

A generated walk with 53 labelled markers at 100 Hz and 1 mm of noise.
"""

from collections.abc import Iterator

import marey
from benchmarks.harness.task import Row, Setting
from benchmarks.scale.slopes import measure_sizes

HEADLINE = "CPU, log-log"
PLOT = ("frames", "CPU [s]")
LIMIT_S = 14_400.0
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)


def measure(setting: Setting) -> Iterator[Row]:
    sizes = SIZES[: setting.choose(len(SIZES), 3)]
    once = Setting(quick=True, only=setting.only)
    yield from measure_sizes(sizes, "frames", record, marey.solve, once)


def record(n_frames: int) -> marey.Take:
    """Return a walk."""
    return marey.synth.human(seed=0).record(
        "walk", seconds=n_frames / 100.0, rate=100.0, markers="set53", noise=1e-3
    )
