"""What the scripts of all peers share; only NumPy is imported.

    python run_NAME.py PROBLEM FOLDER quick|full

A script offers problems as functions of a `Problem`, which yield answers; each answer
is written as one line of JSON. What a library prints is kept off that stream.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

REPEATS, QUICK_REPEATS = 5, 2

Answer = dict[str, Any]


class Problem:
    """A folder with a figure and a take, and the size of the run."""

    def __init__(self, folder: str, size: str) -> None:
        """Read the arrays of the problem."""
        self.folder = Path(folder)
        self.quick = size == "quick"
        self.repeats = QUICK_REPEATS if self.quick else REPEATS
        with np.load(self.folder / "problem.npz", allow_pickle=False) as arrays:
            self.arrays = dict(arrays)

    def __getitem__(self, name: str) -> Any:
        """Return an array of the problem."""
        return self.arrays[name]

    @property
    def points(self) -> np.ndarray:
        """Markers, (frame, marker, 3), in metres with z up."""
        return np.asarray(self.arrays["points"])

    def count(self, full: int, quick: int) -> int:
        """Return a number of frames for this size."""
        return min(quick if self.quick else full, len(self.points))

    def answer(
        self, case: str, run: Callable[[int], Any], markers: Any, frames: int, few: int
    ) -> Answer:
        """Return time per frame, and where the markers of the model were.

        Args:
            case: What was done.
            run: Solves the first frames, so many.
            markers: A function that does the same and returns the markers.
            frames: Number of frames of the longer run.
            few: Of the shorter run; the difference of times is that of the frames
                between.
        """
        name = f"{abs(hash(case))}.npy"
        np.save(self.folder / name, markers(frames))
        seconds = seconds_per_frame(run, few, frames, self.repeats)
        return {"case": case, "seconds": seconds, "frames": frames, "markers": name}


def seconds_per_frame(
    run: Callable[[int], Any], few: int, many: int, repeats: int
) -> list[float]:
    """Return median and quartiles of the processor time of one frame."""
    spent = []
    for _ in range(repeats):
        marks = [time.process_time()]
        for count in (few, many):
            run(count)
            marks.append(time.process_time())
        first, second = np.diff(marks)
        spent.append((second - first) / (many - few))
    low, median, high = np.quantile(spent, [0.25, 0.5, 0.75])
    return [float(median), float(low), float(high)]


def read_locations(path: Path, labels: Sequence[str]) -> np.ndarray:
    """Return the markers that OpenSim's tool reports, with z up."""
    lines = path.read_text().splitlines()
    head = lines.index("endheader")
    columns = lines[head + 1].split("\t")[1::3]
    table = np.loadtxt(path, skiprows=head + 2)[:, 1:]
    table = table.reshape(len(table), -1, 3)
    order = [columns.index(f"{label}_tx") for label in labels]
    x, y, z = np.moveaxis(table[:, order], -1, 0)
    return np.stack([x, -z, y], axis=-1)


def time_reading(case: str, read: Callable[[str], Any], problem: Problem) -> Answer:
    """Return the times of reading the file, and the growth of memory at its peak."""
    path, spent = str(problem.folder / "take.c3d"), []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(problem.repeats):
        begin = time.process_time()
        kept = read(path)
        spent.append(time.process_time() - begin)
        del kept
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    low, median, high = np.quantile(spent, [0.25, 0.5, 0.75])
    return {"case": case, "seconds": [median, low, high], "bytes": 1024 * peak}


def serve(**problems: Callable[[Problem], Iterator[Answer]]) -> None:
    """Solve the problem that the command line names."""
    name, folder, size = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for answer in problems[name](Problem(folder, size)):
        print(json.dumps(answer), file=answers, flush=True)
