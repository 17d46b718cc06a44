"""Kabsch poses per second against two plain versions, and the cost of importing marey.

A cluster of 5 markers with 1 mm of noise; residual is the distance of a marker from
where the pose has it, rms.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.harness.task import Row, Setting
from benchmarks.harness.timing import invert, spread_of, time_call
from marey.numerics import geometry

HEADLINE = "poses/s"
MARKERS = 5


def measure(setting: Setting) -> Iterator[Row]:
    poses, naive_poses = setting.choose((200_000, 2_000), (20_000, 500))
    for name, fit, count in (
        ("marey.numerics.geometry.kabsch", geometry.kabsch, poses),
        ("stacked NumPy SVD", batched_svd, poses),
        ("loop of NumPy SVDs", one_by_one, naive_poses),
    ):
        yield measure_fit(name, fit, count, setting)
    for statement in ("import numpy", "import marey", "import marey; marey.Take"):
        runs = [import_seconds(statement) for _ in range(setting.choose(5, 3))]
        yield Row(statement, {"wall [s]": spread_of(runs)})


def measure_fit(
    name: str, fit: Callable[..., np.ndarray], n_poses: int, setting: Setting
) -> Row:
    """Return poses per second and the residual of one way to fit."""
    cluster, seen = recording(n_poses)
    timing = time_call(lambda: fit(cluster, seen), setting)
    off = geometry.apply(timing.result[:, None], cluster) - seen
    residual = 1e3 * float(np.sqrt(np.mean(np.sum(off**2, axis=-1))))
    speed = invert(timing.cpu, n_poses)
    return Row(name, {"poses/s": speed, "residual [mm]": residual})


def recording(n_poses: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a cluster of markers and where it was seen, with 1 mm of noise."""
    rng = np.random.default_rng(1)
    cluster = 0.1 * rng.normal(size=(MARKERS, 3))
    T = geometry.transform_exp(rng.normal(size=(n_poses, 6)))
    seen = geometry.apply(T[:, None], cluster)
    return cluster, seen + 1e-3 * rng.normal(size=seen.shape)


def batched_svd(cluster: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Return the poses by one stacked singular value decomposition."""
    mean_b, mean_a = cluster.mean(axis=-2), seen.mean(axis=-2)
    H = np.einsum("mi,nmj->nij", cluster - mean_b, seen - mean_a[:, None])
    U, _, Vt = np.linalg.svd(H)
    Vt[:, 2] *= np.sign(np.linalg.det(U) * np.linalg.det(Vt))[:, None]
    R = Vt.mT @ U.mT
    return geometry.transform(R, mean_a - R @ mean_b)


def one_by_one(cluster: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Return the poses by a loop over single decompositions."""
    return np.concatenate([batched_svd(cluster, one[None]) for one in seen])


def import_seconds(statement: str) -> float:
    """Return how long a statement takes in a new interpreter."""
    code = (
        "import time; begin = time.perf_counter(); "
        f"{statement}; print(time.perf_counter() - begin)"
    )
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, check=True)
    return float(run.stdout)
