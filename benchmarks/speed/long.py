"""Long recordings and dense ones, warm: processor time and memory of whole solves.

A generated walk of 100,000 frames with 53 labelled markers, once; memory is the peak
above the resident size that holds the take, after a solve of 300 frames, and "x take"
that over the size of its points. Then, medians of repeats: recorded takes of 5,200
frames, `cmu` 01_01 played there and back, and of 6,000; and 500 markers of a generated
person without labels.
"""

import os
import time
from collections.abc import Iterator

import numpy as np

import marey
from benchmarks.harness.task import Figure, Row, Setting
from benchmarks.harness.timing import MIB, peak_memory, time_call
from benchmarks.recordings.takes import find
from benchmarks.scale import frames, markers

HEADLINE = "CPU [s]"
RECORDED_FRAMES, DENSE_MARKERS, DENSE_S = 5_200, 500, 2.0


def measure(setting: Setting) -> Iterator[Row]:
    marey.solve(frames.record(300))
    yield measure_memory("walk, labelled", setting.choose(100_000, 4_000))
    if os.environ.get("MAREY_DATA"):
        yield measure_solve("cmu 01_01 there and back", play_back(), setting)
        hand = marey.read(find("hand_dfki", "recording.tsv"))
        yield measure_solve("hand_dfki", hand, setting)
    else:
        yield Row("recorded takes", skipped="no recordings: MAREY_DATA names no folder")
    dense = markers.record(DENSE_MARKERS, DENSE_S)
    yield measure_solve("exercise, without labels", dense, Setting(quick=True))


def measure_memory(case: str, n_frames: int) -> Row:
    """Return the row of a generated walk that is solved once."""
    take = frames.record(n_frames)
    begin = time.process_time()
    peak, _ = peak_memory(lambda: marey.solve(take))
    figures: dict[str, Figure] = {
        HEADLINE: time.process_time() - begin,
        "peak [MiB]": peak,
        "x take": peak * MIB / take.points.nbytes,
    }
    return Row(name_of(case, take), figures)


def measure_solve(case: str, take: marey.Take, setting: Setting) -> Row:
    """Return the row of a take that is solved several times."""
    cpu = time_call(lambda: marey.solve(take), setting).cpu
    return Row(name_of(case, take), {HEADLINE: cpu})


def name_of(case: str, take: marey.Take) -> str:
    """Return the case with the size of the take."""
    return f"{take.n_frames:,} x {len(take.labels)}, {case}"


def play_back() -> marey.Take:
    """Return a recorded walk played forward, then backward."""
    take = marey.read(find("cmu", "01_01.c3d"))
    there_and_back = np.concatenate([take.points, take.points[::-1]])
    return marey.Take(
        rate=take.rate, points=there_and_back[:RECORDED_FRAMES], labels=take.labels
    )
