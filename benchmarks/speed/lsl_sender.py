"""Walks that an LSL outlet of another process offers.

python -m benchmarks.speed.lsl_sender NAME MARKERS SUBJECTS FRAMES
"""

import sys
import time
from dataclasses import replace

import numpy as np

import marey
from marey.live.lsl_channels import load_pylsl

RATE = 240.0
BOX = np.array([[2.0, 1.0, 0.0], [2.0, 1.4, 0.0], [2.6, 1.0, 0.0], [2.0, 1.0, 0.5]])
"""Markers of nobody beside two performers, in metres: they have 110 with them."""


def performers(markers: str, subjects: int) -> tuple[list[marey.Skeleton], marey.Take]:
    """Return the true skeletons with their markers, and walks beside each other."""
    figure = marey.synth.human()
    skeletons, takes = [], []
    for number in range(subjects):
        take = figure.record(
            "walk", rate=RATE, seconds=4.0, markers=markers, noise=5e-4, seed=number
        )
        labels = tuple(f"S{number}:{label}" for label in take.labels)
        skeletons.append(
            replace(
                figure.skeleton,
                marker_labels=labels,
                marker_joint=take.truth.marker_joint,
                marker_offset=take.truth.marker_offset,
            )
        )
        takes.append((labels, take.points + np.array([0.0, 2.0 * number, 0.0])))
    if subjects > 1:
        box = tuple(f"BOX:{i}" for i in range(len(BOX)))
        takes.append((box, np.tile(BOX, (len(takes[0][1]), 1, 1))))
    points = np.concatenate([points for _, points in takes], axis=1)
    labels = tuple(label for some, _ in takes for label in some)
    return skeletons, marey.Take(rate=RATE, points=points, labels=labels)


def send(name: str, markers: str, subjects: str, count: str) -> None:
    """Offer so many frames of the walks, and wait until the reader has gone."""
    _, take = performers(markers, int(subjects))
    pylsl = load_pylsl(whole_network=False)
    n_channels = 3 * len(take.labels)
    info = pylsl.StreamInfo(name, "MoCap", n_channels, RATE, "float32", name)
    channels = info.desc().append_child("channels")
    for label in take.full_labels:
        for kind in ("PositionX", "PositionY", "PositionZ"):
            channel = channels.append_child("channel")
            channel.append_child_value("marker", label)
            channel.append_child_value("type", kind)
    outlet = pylsl.StreamOutlet(info)
    while not outlet.have_consumers():
        time.sleep(0.01)
    start = time.monotonic()
    for number in range(int(count)):
        time.sleep(max(0.0, start + number / RATE - time.monotonic()))
        outlet.push_sample(take.points[number % take.n_frames].ravel().tolist())
    while outlet.have_consumers():
        time.sleep(0.01)


if __name__ == "__main__":
    send(*sys.argv[1:])
