"""Live streams: from packet to pose, and from nothing to a skeleton.

`live.py SECONDS MARKERS SUBJECTS`: 53 markers at 240 Hz come from an LSL outlet of
another process; the time from the arrival of a sample to its pose is printed, the share
of one core, frames lost, and the memory at the begin and the end.

`live.py memory SECONDS`: a file is played 10 times as fast as it was recorded, a
skeleton is learnt from it, and the memory is printed over time.

`live.py nothing SECONDS`: an exercise of a generated performer without labels is learnt
from nothing: when bodies are right, and joints are within 10 mm.

`live.py real FILE...`: recordings are played as streams. The bone lengths of the
skeleton that was learnt at the end are compared with those of `marey.solve`, and the
jump of joints at a take-over with the residual of the markers.
"""

import gc
import os
import resource
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import replace
from pathlib import Path

import numpy as np

import marey
from marey.anatomy.whole_person import observed_part
from marey.live.lsl_channels import load_pylsl

RATE = 240.0
SLOW_SECONDS = 30.0
"""Seconds that a short recording is played for, so that it is learnt in mid-stream."""


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
    points = np.concatenate([points for _, points in takes], axis=1)
    labels = tuple(label for some, _ in takes for label in some)
    return skeletons, marey.Take(rate=RATE, points=points, labels=labels)


def send(name: str, markers: str, subjects: str) -> None:
    """Offer the walks again and again, until nobody listens."""
    _, take = performers(markers, int(subjects))
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


def follow_lsl(
    seconds: float = 20.0, markers: str = "set53", subjects: int = 1
) -> None:
    """Track known skeletons in a stream of another process."""
    skeletons, take = performers(markers, subjects)
    name = f"marey-bench-{uuid.uuid4()}"
    command = [sys.executable, __file__, "send", name, markers, str(subjects)]
    sender = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    latencies, memory = [], []
    with marey.stream(f"lsl://{name}", skeletons, timeout=30.0) as poses:
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
    print(f"{len(take.labels)} markers at {RATE:g} Hz for {wall:.0f} s")
    print(
        "packet to pose, ms: median {:.2f}, 99 % {:.2f}, largest {:.1f}".format(
            *np.quantile(costs, [0.5, 0.99, 1.0])
        )
    )
    print(f"sent {sent}, received {found.received}, poses {len(latencies)}")
    each = 1e3 * cpu / max(len(latencies), 1)
    print(f"CPU {each:.2f} ms a pose, {cpu / wall:.0%} of one core")
    print(
        f"memory {memory[0]:.0f} -> {memory[-1]:.0f} MB; {os.getloadavg()[0]:.1f} load"
    )


def watch_memory(seconds: float = 300.0) -> None:
    """Print the memory of a stream that is learnt from at 10 times its speed."""
    _, take = performers("set53", 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "walk.npz"
        marey.write(replace(take, rate=120.0), path)
        with marey.stream(f"file:{path}?speed=10&loop=1") as poses:
            start, due = time.monotonic(), 5.0
            for _ in poses:
                spent = time.monotonic() - start
                if spent > due:
                    found = poses.statistics.received
                    print(f"{spent:4.0f} s, {found} frames: {memory_mb():.0f} MB")
                    due += seconds / 10.0
                if spent > seconds:
                    break


def learn_exercise(seconds: float = 60.0) -> None:
    """Print when the skeleton of an exercise without labels is right."""
    figure = marey.synth.human()
    take = figure.record(
        "exercise", rate=120.0, seconds=seconds, markers="set53", noise=5e-4
    )
    truth = take.truth
    true_groups = groups(truth.marker_joint, take.labels)
    joints = [i for i, end in enumerate(truth.motion.skeleton.is_end) if i and not end]
    joints = [i for i in joints if (truth.marker_joint == i).any()]
    T_true = truth.motion.T_world_joint()
    last = None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "exercise.npz"
        labels = tuple(f"m{i}" for i in range(len(take.labels)))
        marey.write(marey.Take(rate=take.rate, points=take.points, labels=labels), path)
        names = dict(zip(labels, take.labels, strict=True))
        with marey.stream(str(path)) as poses:
            for pose in poses:
                if poses.learnt is last:
                    continue
                last = poses.learnt
                found = found_groups(last.skeletons, names)
                places = np.concatenate([p.T_world_joint for p in pose.subjects])
                true = T_true[pose.frame.number, joints, :3, 3]
                apart = np.linalg.norm(true[:, None] - places[:, :3, 3], axis=-1)
                near = int((apart.min(axis=1) < 0.01).sum())
                now = pose.frame.number / take.rate
                print(
                    f"{now:5.1f} s: {len(found & true_groups)} of "
                    f"{len(true_groups)} bodies, {near} of {len(joints)} joints "
                    f"within 10 mm; estimate {last.seconds:.1f} s of the worker, "
                    f"hidden markers {1e3 * np.nanmean(last.marker_error):.1f} mm"
                )

        found = found_groups(poses.skeletons, names)
        count = len(found & true_groups)
        print(f"at the end {count} bodies, {poses.learnt.n_frames} frames")


def found_groups(
    skeletons: tuple[marey.Skeleton, ...], names: dict[str, str]
) -> set[frozenset[str]]:
    """Return the sets of markers on one bone, by their true labels."""
    found: set[frozenset[str]] = set()
    for one in skeletons:
        found |= groups(one.marker_joint, [names[label] for label in one.marker_labels])
    return found


def groups(joint: np.ndarray, labels: tuple[str, ...]) -> set[frozenset[str]]:
    """Return the sets of markers on one bone."""
    return {
        frozenset(label for label, at in zip(labels, joint, strict=True) if at == one)
        for one in set(joint.tolist())
    }


def compare_recordings(*files: str) -> None:
    """Print how far a live skeleton is from that of a whole solve, and jumps."""
    for file in files:
        jumps, steps, residuals = [], [], []
        before: list[marey.LivePose] = []
        last = None
        speed = marey.read(file).duration / SLOW_SECONDS
        with marey.stream(f"file:{file}?speed={min(speed, 1.0):.4f}") as poses:
            for pose in poses:
                is_new, last = poses.learnt is not last, poses.learnt
                before = [*before[-2:], pose]
                change = second_difference(before)
                if change is not None:
                    (jumps if is_new else steps).append(change)
                residuals.append(marker_residual(pose))
            live = poses.skeletons
        solved = marey.solve(file)
        apart = [
            1e3 * abs(one.lengths[i] - other.lengths[other.names.index(name)])
            for one, subject in zip(live, solved.subjects, strict=False)
            for other in [observed_part(subject.skeleton)]
            for i, name in enumerate(one.names)
            if name in other.names
        ]
        print(
            f"{Path(file).name}: {len(apart)} bones, lengths at most "
            f"{max(apart, default=np.nan):.3f} mm apart; {len(jumps)} take-overs, jump "
            f"{1e3 * max(jumps, default=np.nan):.2f} mm at most (other frames "
            f"{1e3 * np.median(steps or [np.nan]):.2f} mm median), residual "
            f"{1e3 * np.nanmedian(residuals):.2f} mm"
        )


def second_difference(poses: list[marey.LivePose]) -> float | None:
    """Return the largest change of a joint's step, in metres, over three frames."""
    numbers = [pose.frame.number for pose in poses]
    if len(poses) < 3 or numbers[2] - numbers[0] != 2 or not poses[0].subjects:
        return None
    places = [
        dict(zip(pose.skeleton.names, pose.T_world_joint[:, :3, 3], strict=True))
        for pose in poses
    ]
    same = [n for n in places[2] if n in places[0] and n in places[1]]
    change = [places[2][n] - 2.0 * places[1][n] + places[0][n] for n in same]
    return float(np.linalg.norm(change, axis=-1).max()) if same else None


def marker_residual(pose: marey.LivePose) -> float:
    """Return the rms distance of the first skeleton's markers, in metres."""
    if pose.skeleton is None:
        return np.nan
    skeleton, T = pose.skeleton, pose.T_world_joint[pose.skeleton.marker_joint]
    places = T[:, :3, 3] + np.einsum("mij,mj->mi", T[:, :3, :3], skeleton.marker_offset)
    seen = dict(zip(pose.frame.labels, pose.frame.points, strict=True))
    apart = [
        np.sum((seen[label] - place) ** 2)
        for label, place in zip(skeleton.marker_labels, places, strict=True)
        if label in seen
    ]
    return float(np.sqrt(np.nanmean(apart))) if apart else np.nan


MODES = {
    "send": send,
    "memory": watch_memory,
    "nothing": learn_exercise,
    "real": compare_recordings,
}

if __name__ == "__main__":
    arguments = sys.argv[1:]
    mode = MODES.get(arguments[0]) if arguments else None
    if mode in (watch_memory, learn_exercise):
        mode(*map(float, arguments[1:]))
    elif mode is not None:
        mode(*arguments[1:])
    else:
        kinds = (float, str, int)
        follow_lsl(*(kind(a) for kind, a in zip(kinds, arguments, strict=False)))
