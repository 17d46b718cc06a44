"""Slopes of cost against size on log-log axes, in rows of their own."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

import marey
from benchmarks.harness.task import Figure, Row, Setting, Spread
from benchmarks.harness.timing import peak_memory, time_call

LONG_S = 1.0
"""Processor time of a solve that is measured once."""


def measure_sizes(
    sizes: Sequence[int],
    unit: str,
    make: Callable[[int], marey.Take | Sequence[marey.Take]],
    solve: Callable[[marey.Take | Sequence[marey.Take]], object],
    setting: Setting,
) -> Iterator[Row]:
    """Yield cost and memory of every size, then the slopes of both.

    The first size is solved once before all. The slope of the last half is that of the
    larger sizes, where what happens once does not count any more.
    """
    costs, memories = [], []
    solve(make(sizes[0]))
    for size in sizes:
        takes = make(size)
        began = time.process_time()
        peak, _ = peak_memory(partial(solve, takes))
        cpu = Spread(*[time.process_time() - began] * 3)
        if cpu.median < LONG_S:
            cpu = time_call(partial(solve, takes), setting).cpu
        costs.append(cpu.median)
        memories.append(max(peak, 1.0))
        yield Row(f"{size:,} {unit}", {unit: size, "CPU [s]": cpu, "peak [MiB]": peak})
    half = len(sizes) // 2
    for case, some in (
        ("slope", slice(None)),
        ("slope, larger half", slice(half, None)),
    ):
        if len(sizes[some]) > 1:
            figures: dict[str, Figure] = {
                "CPU, log-log": slope(sizes[some], costs[some]),
                "peak, log-log": slope(sizes[some], memories[some]),
            }
            yield Row(case, figures)


def slope(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Return the exponent of a power law, least squares of logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])
