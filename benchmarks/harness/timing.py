"""Time and memory of a call: warm-up, repeats, medians with their spread."""

import contextlib
import ctypes
import gc
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness.task import Setting, Spread

MIB = 2**20
REPEATS, QUICK_REPEATS = 5, 2
"""Least number of repeats."""

SECONDS, QUICK_SECONDS = 2.0, 0.1
"""Processor time for which a short call is repeated."""

MOST_REPEATS = 200


class Timing(NamedTuple):
    """Seconds of one call on the processor and on the wall clock; what it returned."""

    cpu: Spread
    wall: Spread
    result: Any


def time_call(call: Callable[[], Any], setting: Setting) -> Timing:
    """Return the times of a call, after a first one that compiles and fills caches."""
    result = call()
    repeats = setting.choose(REPEATS, QUICK_REPEATS)
    seconds = setting.choose(SECONDS, QUICK_SECONDS)
    cpu: list[float] = []
    wall: list[float] = []
    while len(cpu) < repeats or (sum(cpu) < seconds and len(cpu) < MOST_REPEATS):
        began, busy = time.perf_counter(), time.process_time()
        result = call()
        cpu.append(time.process_time() - busy)
        wall.append(time.perf_counter() - began)
    return Timing(spread_of(cpu), spread_of(wall), result)


def time_many_frames(
    run: Callable[[int], Any], few: int, many: int, setting: Setting
) -> Spread:
    """Return the processor time of one frame, without what happens once.

    The call is made with a few frames and with many, and the difference is taken.
    """
    run(few)
    spent: list[float] = []
    repeats = setting.choose(REPEATS, QUICK_REPEATS)
    seconds = setting.choose(SECONDS, QUICK_SECONDS)
    begin = time.process_time()
    while len(spent) < repeats or (
        time.process_time() - begin < seconds and len(spent) < MOST_REPEATS
    ):
        marks = [time.process_time()]
        for count in (few, many):
            run(count)
            marks.append(time.process_time())
        first, second = np.diff(marks)
        spent.append((second - first) / (many - few))
    return spread_of(spent)


def spread_of(values: Sequence[float]) -> Spread:
    """Return the median and the quartiles."""
    low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
    return Spread(float(median), float(low), float(high))


def scale(spread: Spread, factor: float) -> Spread:
    """Return a spread in another unit."""
    return Spread(*(factor * one for one in spread))


def invert(spread: Spread, numerator: float = 1.0) -> Spread:
    """Return the rates that belong to times."""
    low, high = (numerator / max(one, 1e-12) for one in (spread.high, spread.low))
    return Spread(numerator / max(spread.median, 1e-12), low, high)


def peak_memory(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return by how much the memory of this process grows at most, in MiB."""
    return_free_memory()
    before = resident_mib()
    can_reset = reset_peak()
    result = call()
    peak = status_mib("VmHWM") if can_reset else peak_mib()
    return max(peak - before, 0.0), result


def thread_times() -> tuple[float, float]:
    """Return for how long this thread has run and has waited for a core, in seconds.

    NaN where the system does not say. The rest of the time it waited for something
    else, such as another thread.
    """
    try:
        text = Path("/proc/thread-self/schedstat").read_text()
    except OSError:
        return float("nan"), float("nan")
    run, queued, _ = text.split()
    return int(run) / 1e9, int(queued) / 1e9


def return_free_memory() -> None:
    """Return to the system what the heap has free, or a call would grow into it."""
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def reset_peak() -> bool:
    """Let the peak of this process begin anew; whether the system can do that."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def resident_mib() -> float:
    """Return the memory of this process, in MiB; NaN where the system does not say."""
    return status_mib("VmRSS")


def resident_mib_with_workers() -> float:
    """Return the memory of this process and of those it started, in MiB."""
    parents, resident = {}, {}
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError, ValueError):
            facts = dict(line.split(":", 1) for line in status.read_text().splitlines())
            parents[int(status.parent.name)] = int(facts["PPid"])
            resident[int(status.parent.name)] = facts.get("VmRSS", "0 kB").split()[0]
    family, added = {os.getpid()}, True
    while added:
        added = {one for one, above in parents.items() if above in family} - family
        family |= added
    return sum(int(resident.get(one, 0)) for one in family) / 1024.0 or float("nan")


def status_mib(field: str) -> float:
    """Return a figure of /proc/self/status, in MiB."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return float("nan")
    kib = next(line.split()[1] for line in lines if line.startswith(field))
    return int(kib) / 1024.0


def peak_mib() -> float:
    """Return the largest memory that this process has had, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (MIB if sys.platform == "darwin" else 1024)
