"""Slopes of cost against size on log-log axes, in rows of their own."""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

import marey
from benchmarks.harness.task import Figure, Row, Setting, Spread
from benchmarks.harness.timing import peak_memory, time_call

LONG_S = 1.0
"""Processor time of a solve that is measured once."""

LEAST_S = 0.01
"""Step of the clock that tells the time of the program from that of the system."""


def measure_sizes(
    sizes: Sequence[int],
    unit: str,
    make: Callable[[int], marey.Take | Sequence[marey.Take]],
    solve: Callable[[marey.Take | Sequence[marey.Take]], object],
    setting: Setting,
) -> Iterator[Row]:
    """Yield cost and memory of every size, then the slopes of both.

    The first size is solved once before all. The slope of the last half is that of the
    larger sizes, where what happens once does not count any more. "System" is the part
    of the processor time in which the system finds memory for arrays, which depends on
    the machine; "program" is the rest.
    """
    costs, memories, own = [], [], []
    solve(make(sizes[0]))
    for size in sizes:
        takes = make(size)
        began = os.times()
        peak, _ = peak_memory(partial(solve, takes))
        program, system = np.subtract(os.times(), began)[:2].tolist()
        cpu = Spread(*[program + system] * 3)
        if cpu.median < LONG_S:
            cpu = time_call(partial(solve, takes), setting).cpu
        costs.append(cpu.median)
        memories.append(max(peak, 1.0))
        own.append(max(cpu.median - system, LEAST_S))
        figures: dict[str, Figure] = {unit: size, "CPU [s]": cpu, "system [s]": system}
        yield Row(f"{size:,} {unit}", figures | {"peak [MiB]": peak})
    half = len(sizes) // 2
    for case, some in (
        ("slope", slice(None)),
        ("slope, larger half", slice(half, None)),
    ):
        if len(sizes[some]) > 1:
            figures = {
                "CPU, log-log": slope(sizes[some], costs[some]),
                "program, log-log": slope(sizes[some], own[some]),
                "peak, log-log": slope(sizes[some], memories[some]),
            }
            yield Row(case, figures)


def slope(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Return the exponent of a power law, least squares of logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])
