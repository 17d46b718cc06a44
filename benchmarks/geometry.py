"""Kabsch poses per second against two plain versions, and the cost of importing marey.

Run: python benchmarks/geometry.py
"""

import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from marey.numerics import geometry

MARKERS = 5
POSES = 200_000
NAIVE_POSES = 2_000


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


def rate(fit: Callable[..., np.ndarray], n_poses: int) -> tuple[float, float]:
    """Return poses per second, the best of three, and the root mean square residual."""
    cluster, seen = recording(n_poses)
    fit(cluster, seen[:1])
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        T = fit(cluster, seen)
        seconds.append(time.perf_counter() - begin)
    off = geometry.apply(T[:, None], cluster) - seen
    return n_poses / min(seconds), float(np.sqrt(np.mean(np.sum(off**2, axis=-1))))


def import_seconds(statement: str) -> float:
    """Return how long a statement takes in a new interpreter, the best of five."""
    code = (
        "import time; begin = time.perf_counter(); "
        f"{statement}; print(time.perf_counter() - begin)"
    )
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, capture_output=True, check=True) for _ in range(5)]
    return min(float(run.stdout) for run in runs)


def main() -> None:
    print(f"Kabsch, {MARKERS} markers      poses/s   ratio   residual, mm")
    base = 0.0
    for name, fit, count in (
        ("marey.numerics.geometry.kabsch", geometry.kabsch, POSES),
        ("stacked numpy SVD", batched_svd, POSES),
        ("loop of numpy SVDs", one_by_one, NAIVE_POSES),
    ):
        speed, residual = rate(fit, count)
        base = base or speed
        print(
            f"{name:<22} {speed:>10,.0f} {base / speed:>7.1f} {1e3 * residual:>14.4f}"
        )
    print()
    print("Import                    seconds")
    for statement in ("import numpy", "import marey", "import marey; marey.Take"):
        print(f"{statement:<25} {import_seconds(statement):>7.3f}")


if __name__ == "__main__":
    main()
