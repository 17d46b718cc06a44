"""Cost of a whole solve against the number of bodies: chains of rods, 4 markers each.

Every rod swings on the one before; without labels.
"""

from collections.abc import Iterator

import numpy as np

import marey
from benchmarks.generator.rotations import smooth_noise, turn
from benchmarks.harness.task import Row, Setting
from benchmarks.scale.slopes import measure_sizes

HEADLINE = "CPU, log-log"
KEY_CASES = ("slope*",)
PLOT = ("bodies", "CPU [s]")
LIMIT_S = 7200.0
SIZES = (2, 4, 8, 16, 32, 64)
ROD_M, MARKERS, RATE = 0.3, 4, 100.0


def measure(setting: Setting) -> Iterator[Row]:
    seconds = setting.choose(10.0, 4.0)
    sizes = SIZES[: setting.choose(len(SIZES), 3)]
    once = Setting(quick=True, only=setting.only)
    yield from measure_sizes(
        sizes, "bodies", lambda n: record(n, seconds), marey.solve, once
    )


def record(n_bodies: int, seconds: float) -> marey.Take:
    """Return a chain of rods in motion."""
    rng = np.random.default_rng([n_bodies, 43])
    time = np.arange(round(seconds * RATE)) / RATE
    R = turn(0.4 * smooth_noise(rng, time, 3, 0.6))
    joint = 0.2 * smooth_noise(rng, time, 3, 0.4)
    points, middle = [], np.array([0.0, 0.0, ROD_M / 2.0])
    for _ in range(n_bodies):
        place = rng.uniform(-0.05, 0.05, (MARKERS, 3)) - middle
        points.append(joint[:, None] + np.einsum("fij,mj->fmi", R, place))
        joint = joint + R @ np.array([0.0, 0.0, -ROD_M])
        R = R @ turn(0.35 * smooth_noise(rng, time, 3, 0.8))
    seen = np.concatenate(points, axis=1)
    seen = seen + rng.normal(scale=1e-3, size=seen.shape)
    labels = tuple(f"M{i:03}" for i in range(seen.shape[1]))
    return marey.Take(rate=RATE, points=seen, labels=labels)
