"""Reading a large C3D file: speed, and memory over the size of the file.

265 markers over 40,000 frames (4,000 in a quick run), 2 % of them missing. The others
run in processes of their own.
"""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import marey
from benchmarks.harness.task import Figure, Row, Setting, Spread
from benchmarks.harness.timing import MIB, invert, peak_memory, time_call
from benchmarks.peers.runner import run_peers
from marey.io.file import File
from marey.io.formats import c3d

HEADLINE = "MB/s"
MARKERS, FRAMES, QUICK_FRAMES = 265, 40_000, 4_000
PEERS = ("ezc3d", "c3d")


def measure(setting: Setting) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "take.c3d"
        write_file(path, setting.choose(FRAMES, QUICK_FRAMES))
        size = path.stat().st_size

        def describe(case: str, seconds: Spread, memory: float) -> Row:
            figures: dict[str, Figure] = {
                "MB/s": invert(seconds, size / 1e6),
                "CPU [s]": seconds,
                "memory / file": memory / size,
            }
            return Row(f"{case}, {size / 1e6:.0f} MB", figures)

        def score(answer: Mapping[str, Any]) -> Row:
            return describe(answer["case"], Spread(*answer["seconds"]), answer["bytes"])

        for case, read in (
            ("marey, arrays (c3d.load)", lambda: c3d.load(path)),
            ("marey, take", lambda: c3d.read_take(File(path, "c3d"))),
        ):
            peak, _ = peak_memory(read)
            yield describe(case, time_call(read, setting).cpu, peak * MIB)
        yield from run_peers(PEERS, "read", folder, score, setting)


def write_file(path: Path, n_frames: int) -> None:
    """Write a file of random points, and what every problem has."""
    rng = np.random.default_rng(0)
    points = rng.normal(1.0, 0.3, (n_frames, MARKERS, 3))
    points[rng.random((n_frames, MARKERS)) < 0.02] = np.nan
    labels = tuple(f"M{i:03}" for i in range(MARKERS))
    marey.write(marey.Take(rate=100.0, points=points, labels=labels), path)
    np.savez(path.with_name("problem.npz"), points=np.zeros((0, 0, 3)))
