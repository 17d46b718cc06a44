"""Cost of solving takes of one person together against their number.

Walks and exercises of 5 s with 53 labelled markers.
"""

from collections.abc import Iterator

import marey
from benchmarks.harness.task import Row, Setting
from benchmarks.scale.slopes import measure_sizes

HEADLINE = "CPU, log-log"
KEY_CASES = ("slope*",)
PLOT = ("takes", "CPU [s]")
LIMIT_S = 7200.0
SIZES = (1, 2, 4, 8, 16, 32)


def measure(setting: Setting) -> Iterator[Row]:
    seconds = setting.choose(5.0, 2.0)
    sizes = SIZES[: setting.choose(len(SIZES), 3)]
    once = Setting(quick=True, only=setting.only)
    yield from measure_sizes(
        sizes, "takes", lambda n: record(n, seconds), marey.solve, once
    )


def record(n_takes: int, seconds: float) -> list[marey.Take]:
    """Return takes of one person."""
    person = marey.synth.human(seed=0)
    return [
        person.record(
            ("walk", "exercise")[number % 2],
            seconds=seconds,
            rate=100.0,
            markers="set53",
            noise=1e-3,
            seed=number,
        )
        for number in range(n_takes)
    ]
