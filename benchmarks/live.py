"""Live streams: from packet to pose, beside an outlet in another process.

53 markers at 240 Hz come from an LSL outlet of another process; the time from the
arrival of a sample to its pose is printed, the share of one core, frames lost, and the
memory at the begin and the end. `live.py SECONDS MARKERS` changes both.
"""

import gc
import os
import resource
import subprocess
import sys
import time
import uuid

import numpy as np

import marey
from marey.live.lsl_channels import load_pylsl

RATE = 240.0


def performer(markers: str) -> tuple[marey.Skeleton, marey.Take]:
    """Return the true skeleton with its markers, and a walk."""
    from dataclasses import replace

    figure = marey.synth.human()
    take = figure.record("walk", rate=RATE, seconds=4.0, markers=markers, noise=5e-4)
    truth = take.truth
    skeleton = replace(
        figure.skeleton,
        marker_labels=truth.marker_labels,
        marker_joint=truth.marker_joint,
        marker_offset=truth.marker_offset,
    )
    return skeleton, take


def send(name: str, markers: str) -> None:
    """Offer the walk again and again, until the process is ended."""
    _, take = performer(markers)
    pylsl = load_pylsl(whole_network=False)
    count = 3 * len(take.labels)
    info = pylsl.StreamInfo(name, "MoCap", count, RATE, "float32", name)
    channels = info.desc().append_child("channels")
    for label in take.full_labels:
        for kind in ("PositionX", "PositionY", "PositionZ"):
            channel = channels.append_child("channel")
            channel.append_child_value("marker", label)
            channel.append_child_value("type", kind)
    outlet = pylsl.StreamOutlet(info)
    while not outlet.have_consumers():
        time.sleep(0.01)
    start, number = time.monotonic(), 0
    while outlet.have_consumers():
        outlet.push_sample(take.points[number % take.n_frames].ravel().tolist())
        number += 1
        time.sleep(max(0.0, start + number / RATE - time.monotonic()))
    print(number, flush=True)


def memory_mb() -> float:
    with open("/proc/self/statm") as handle:
        return int(handle.read().split()[1]) * resource.getpagesize() / 2**20


def main(seconds: float = 20.0, markers: str = "set53") -> None:
    skeleton, _ = performer(markers)
    name = f"marey-bench-{uuid.uuid4()}"
    command = [sys.executable, __file__, "send", name, markers]
    sender = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    latencies, costs, memory = [], [], []
    with marey.stream(f"lsl://{name}", skeleton, timeout=30.0) as poses:
        gc.collect()
        start, cpu = time.monotonic(), time.process_time()
        for pose in poses:
            latencies.append(pose.latency)
            if len(latencies) % 240 == 1:
                memory.append(memory_mb())
            if time.monotonic() - start > seconds:
                break
        wall, cpu = time.monotonic() - start, time.process_time() - cpu
        found = poses.statistics
    sent = int(sender.communicate(timeout=30.0)[0])
    costs = np.array(latencies[50:]) * 1e3
    print(f"{len(skeleton.marker_labels)} markers at {RATE:g} Hz for {wall:.0f} s")
    print(
        "packet to pose, ms: median {:.2f}, 99 % {:.2f}, largest {:.1f}".format(
            *np.quantile(costs, [0.5, 0.99, 1.0])
        )
    )
    print(f"sent {sent}, received {found.received}, poses {len(latencies)}")
    print(f"jitter {1e3 * found.jitter:.2f} ms, CPU {cpu / wall:.0%} of one core")
    print(
        f"memory {memory[0]:.0f} -> {memory[-1]:.0f} MB; {os.getloadavg()[0]:.1f} load"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["send"]:
        send(*sys.argv[2:4])
    else:
        main(*(kind(a) for kind, a in zip((float, str), sys.argv[1:], strict=False)))
