"""Cost of a whole solve against the number of markers, without labels.

20 to 500 markers on the 15 segments of a person of the independent generator.
"""

from collections.abc import Iterator

import numpy as np

import marey
from benchmarks.generator.damage import add_noise
from benchmarks.generator.motion import exercise
from benchmarks.generator.person import make_person
from benchmarks.harness.task import Row, Setting
from benchmarks.scale.slopes import measure_sizes

HEADLINE = "CPU, log-log"
KEY_CASES = ("slope*",)
PLOT = ("markers", "CPU [s]")
LIMIT_S = 7200.0
SIZES = (20, 50, 100, 200, 350, 500)
SECONDS, QUICK_SECONDS = 10.0, 4.0


def measure(setting: Setting) -> Iterator[Row]:
    seconds = setting.choose(SECONDS, QUICK_SECONDS)
    sizes = SIZES[: setting.choose(len(SIZES), 3)]
    once = Setting(quick=True, only=setting.only)
    yield from measure_sizes(
        sizes, "markers", lambda n: record(n, seconds), marey.solve, once
    )


def record(n_markers: int, seconds: float) -> marey.Take:
    """Return an exercise of a person with so many markers, without labels."""
    of_segment = -(-n_markers // 15)
    person = make_person(0, markers_per_segment=of_segment)
    done = exercise(person, seconds)
    order = np.argsort(np.arange(len(person.marker)) % of_segment)
    points = add_noise(done.points, 1e-3)[:, np.sort(order[:n_markers])]
    labels = tuple(f"M{i:03}" for i in range(n_markers))
    return marey.Take(rate=done.rate, points=points, labels=labels)
