"""Live streams: time from the arrival of a packet to its pose, and memory.

53 markers of each performer at 240 Hz come from an LSL outlet of another process, with
4 of a box beside two performers. "Sent to pose" is from the sender's clock, which is
that of this machine; "latency" from the arrival, so without transport. Then a walk is
played 10 times as fast as it was recorded, and a skeleton is learnt from it.
"""

import gc
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

import marey
from benchmarks.harness.task import Figure, Row, Setting
from benchmarks.harness.timing import (
    resident_mib,
    resident_mib_with_workers,
    spread_of,
)
from benchmarks.speed.lsl_sender import RATE, performers

HEADLINE = "latency of 99 % [ms]"
WARM_FRAMES = 50


def measure(setting: Setting) -> Iterator[Row]:
    for subjects in setting.choose((1, 2), (1,)):
        yield follow_lsl(setting.choose(20.0, 4.0), "set53", subjects)
    yield from watch_memory(setting.choose(120.0, 10.0))


def follow_lsl(seconds: float, markers: str, subjects: int) -> Row:
    """Return the row of known skeletons that are tracked in a stream."""
    skeletons, take = performers(markers, subjects)
    name = f"marey-bench-{uuid.uuid4()}"
    module = "benchmarks.speed.lsl_sender"
    sent = int(seconds * RATE)
    command = [sys.executable, "-m", module, name, markers, str(subjects), str(sent)]
    sender = subprocess.Popen(command)
    latencies, totals, costs, memory = [], [], [], []
    with marey.stream(f"lsl://{name}", skeletons, timeout=30.0) as poses:
        gc.collect()
        start, cpu, spent = time.monotonic(), time.process_time(), time.thread_time()
        for pose in poses:
            latencies.append(1e3 * pose.latency)
            # LSL stamps samples by the monotonic clock.
            totals.append(1e3 * (pose.frame.arrival - pose.frame.time) + latencies[-1])
            costs.append(1e3 * (time.thread_time() - spent))
            if len(latencies) % RATE == 1:
                memory.append(resident_mib())
            if poses.statistics.received == sent:
                break
            spent = time.thread_time()
        wall, cpu = time.monotonic() - start, time.process_time() - cpu
        found = poses.statistics
    sender.wait(timeout=30.0)
    figures: dict[str, Figure] = {
        "sent to pose [ms]": spread_of(totals[WARM_FRAMES:]),
        "sent to pose of 99 % [ms]": float(np.quantile(totals[WARM_FRAMES:], 0.99)),
        "latency [ms]": spread_of(latencies[WARM_FRAMES:]),
        "latency of 99 % [ms]": float(np.quantile(latencies[WARM_FRAMES:], 0.99)),
        "CPU of a pose [ms]": spread_of(costs[WARM_FRAMES:]),
        "CPU of 99 % [ms]": float(np.quantile(costs[WARM_FRAMES:], 0.99)),
        "of one core [%]": 100.0 * cpu / wall,
        "sent": sent,
        "received": found.received,
        "lost": sent - found.received,
        "poses": len(latencies),
        "memory at first [MiB]": memory[0],
        "memory at last [MiB]": memory[-1],
    }
    return Row(f"{len(take.labels)} markers at {RATE:g} Hz, LSL", figures)


def watch_memory(seconds: float) -> Iterator[Row]:
    """Yield the memory of a stream that is learnt from at 10 times its speed."""
    _, take = performers("set53", 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "walk.npz"
        marey.write(replace(take, rate=120.0), path)
        with marey.stream(f"file:{path}?speed=10&loop=1") as poses:
            start, due = time.monotonic(), 5.0
            for _ in poses:
                spent = time.monotonic() - start
                if spent > due:
                    case = f"learning for {spent:.0f} s"
                    received = poses.statistics.received
                    figures: dict[str, Figure] = {
                        "received": received,
                        "memory [MiB]": resident_mib(),
                        "with the worker [MiB]": resident_mib_with_workers(),
                    }
                    yield Row(case, figures)
                    due += (seconds - 5.0) / 5.0
                if spent > seconds:
                    break
