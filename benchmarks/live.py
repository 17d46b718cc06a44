"""Live streams: from packet to pose, and from nothing to a skeleton.

`live.py SECONDS MARKERS SUBJECTS`: 53 markers at 240 Hz come from an LSL outlet of
another process. Printed are the time from the arrival of a sample to its pose, the CPU
time of a pose, the share of one core, how many of the frames that were sent came, and
the memory at the begin and the end.

`live.py memory SECONDS`: a file is played 10 times as fast as it was recorded, a
skeleton is learnt from it, and the memory is printed over time.

`live.py nothing SECONDS`: an exercise of a generated performer without labels, in which
every joint moves once within so many seconds, is learnt from nothing: when bodies and
their links are right, and joints are within 10 mm. `live.py prefix SECONDS END...`: the
same of the first so many seconds, on any machine, without and with labels.

`live.py real FILE...`: recordings are played as streams. The bone lengths of the
skeleton that was learnt at the end are compared with those of `marey.solve`.

`live.py pops FILE...`: the jump of joints when the skeleton of the first part of a
recording is taken over, against the residual of the markers.
"""

import gc
import os
import resource
import subprocess
import sys
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import marey
from marey.anatomy.whole_person import observed_part
from marey.live import Frame, open_source
from marey.live.learning import Learnt
from marey.live.learning.estimate import estimate_skeletons_of_stream
from marey.live.live_stream import RECENT_FRAMES
from marey.live.lsl_channels import load_pylsl
from marey.live.posing.performers import Performers
from marey.pose import solve_pose

RATE = 240.0
JUDGED_SECONDS = 2.0
"""Seconds before an estimate in which its joints are compared with the true ones."""

TAKE_OVER_SHARES = (0.2, 0.4, 0.6, 0.8)
"""Parts of a recording after which its skeleton is taken over."""


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


def memory_mb() -> float:
    with open("/proc/self/statm") as handle:
        return int(handle.read().split()[1]) * resource.getpagesize() / 2**20


def follow_lsl(
    seconds: float = 20.0, markers: str = "set53", subjects: int = 1
) -> None:
    """Track known skeletons in a stream of another process, to its last frame."""
    skeletons, take = performers(markers, subjects)
    name, count = f"marey-bench-{uuid.uuid4()}", int(seconds * RATE)
    command = [sys.executable, __file__, "send", name, markers, str(subjects)]
    sender = subprocess.Popen([*command, str(count)])
    latencies, costs, memory = [], [], []
    with marey.stream(f"lsl://{name}", skeletons, timeout=30.0) as poses:
        gc.collect()
        start, cpu, spent = time.monotonic(), time.process_time(), time.thread_time()
        for pose in poses:
            latencies.append(pose.latency)
            costs.append(time.thread_time() - spent)
            if len(latencies) % 240 == 1:
                memory.append(memory_mb())
            if poses.statistics.received == count:
                break
            spent = time.thread_time()
        wall, cpu = time.monotonic() - start, time.process_time() - cpu
        found = poses.statistics
    sender.wait(timeout=30.0)
    print(f"{len(take.labels)} markers at {RATE:g} Hz for {wall:.0f} s")
    for what, values in (("packet to pose", latencies), ("CPU of a pose", costs)):
        places = np.quantile(1e3 * np.array(values[50:]), [0.5, 0.99, 1.0])
        print(
            "{}, ms: median {:.2f}, 99 % {:.2f}, largest {:.1f}".format(what, *places)
        )
    print(f"sent {count}, received {found.received}, poses {len(latencies)}")
    each = 1e3 * cpu / max(len(latencies), 1)
    print(f"CPU of all threads {each:.2f} ms a pose, {cpu / wall:.0%} of one core")
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


def record_exercise(seconds: float) -> marey.synth.Recording:
    """Return an exercise in which every joint moves once, one after the other."""
    return marey.synth.human().record(
        "exercise", rate=120.0, seconds=seconds, markers="set53", noise=5e-4
    )


def learn_exercise(seconds: float = 60.0) -> None:
    """Print when the skeleton of an exercise without labels is right, as it streams.

    All of it comes twice.
    """
    take = record_exercise(seconds)
    labels = tuple(f"m{i}" for i in range(len(take.labels)))
    twice = np.concatenate([take.points, take.points])
    learnt: list[tuple[int, Learnt]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "exercise.npz"
        marey.write(marey.Take(rate=take.rate, points=twice, labels=labels), path)
        with marey.stream(str(path)) as poses:
            for pose in poses:
                newest = poses.learnt
                if newest and (not learnt or newest is not learnt[-1][1]):
                    learnt.append((pose.frame.number, newest))
    learnt.append((len(twice), poses.learnt))
    for number, estimate in learnt:
        print(judge_estimate(take, labels, twice, number, estimate), flush=True)


def estimate_exercise(seconds: float = 60.0, *ends: float) -> None:
    """Print how right the skeleton of the first seconds of an exercise is.

    What a stream learns does not depend on the machine here. Labels come without and
    with the knowledge of people that they bring.
    """
    take = record_exercise(seconds)
    for is_named in (False, True):
        labels = take.labels
        if not is_named:
            labels = tuple(f"m{i}" for i in range(len(take.labels)))
        for end in ends:
            n = int(end * take.rate)
            part = marey.Take(rate=take.rate, points=take.points[:n], labels=labels)
            estimate = estimate_skeletons_of_stream(part, None)
            line = judge_estimate(take, labels, take.points, n, estimate)
            print("labelled  " if is_named else "unlabelled", line, flush=True)


def judge_estimate(
    take: marey.synth.Recording,
    labels: tuple[str, ...],
    points: np.ndarray,
    number: int,
    estimate: Learnt,
) -> str:
    """Return how right the skeletons were that came at a frame, in a line."""
    truth = take.truth
    true_skeleton = truth.motion.skeleton
    names = dict(zip(labels, take.labels, strict=True))
    true_groups = groups(truth.marker_joint, take.labels)
    found = found_groups(estimate.skeletons, names)
    true_links = linked_groups(true_skeleton, truth.marker_joint, take.labels)
    links = set().union(
        *(
            linked_groups(one, one.marker_joint, [names[n] for n in one.marker_labels])
            for one in estimate.skeletons
        )
    )
    joints = [j for j in np.unique(truth.marker_joint) if true_skeleton.parent[j] >= 0]
    rows = np.arange(max(0, number - int(JUDGED_SECONDS * take.rate)), number)
    judged = marey.Take(rate=take.rate, points=points[rows], labels=labels)
    places = np.concatenate(
        [
            solve_pose(one, judged).T_world_joint()[..., :3, 3]
            for one in estimate.skeletons
        ],
        axis=1,
    )
    true = truth.motion.T_world_joint()[rows % take.n_frames][:, joints][..., :3, 3]
    square = np.sum((true[:, :, None] - places[:, None]) ** 2, axis=-1).mean(axis=0)
    error = 1e3 * np.sqrt(square.min(axis=1))
    return (
        f"{number / take.rate:5.1f} s: {len(found & true_groups)} of "
        f"{len(true_groups)} bodies, {len(links & true_links)} of {len(true_links)} "
        f"links, {int((error < 10.0).sum())} of {len(joints)} joints within 10 mm "
        f"(largest {error.max():.1f}); estimate of {estimate.n_frames} frames took "
        f"{estimate.seconds:.1f} s"
    )


def linked_groups(
    skeleton: marey.Skeleton, joint: np.ndarray, labels: Sequence[str]
) -> set[frozenset[frozenset[str]]]:
    """Return the pairs of bodies that a joint links, each by its set of markers."""
    on = {
        int(one): frozenset(n for n, at in zip(labels, joint, strict=True) if at == one)
        for one in np.unique(joint)
    }
    links = set()
    for one, members in on.items():
        above = int(skeleton.parent[one])
        while above >= 0 and above not in on:
            above = int(skeleton.parent[above])
        if above >= 0:
            links.add(frozenset((members, on[above])))
    return links


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
    """Print how far a live skeleton is from that of a whole solve."""
    for file in files:
        with marey.stream(f"file:{file}") as poses:
            for _ in poses:
                pass
        live, solved = poses.skeletons, marey.solve(file)
        apart = [
            1e3 * abs(one.lengths[i] - other.lengths[other.names.index(name)])
            for one, subject in zip(live, solved.subjects, strict=False)
            for other in [observed_part(subject.skeleton)]
            for i, name in enumerate(one.names)
            if name in other.names
        ]
        print(
            f"{Path(file).name}: {len(apart)} bones, lengths at most "
            f"{max(apart, default=np.nan):.3f} mm apart",
            flush=True,
        )


def measure_pops(*files: str) -> None:
    """Print how far joints jump when new skeletons are taken over, on any machine.

    Skeletons of the first part of a recording are taken over at its end, with the
    means of a stream.
    """
    for file in files:
        take = marey.read(file)
        source = open_source(f"file:{file}?speed=0", 1.0)
        shown: list[marey.LivePose] = []
        recent: deque[Frame] = deque(maxlen=RECENT_FRAMES)
        due = {int(share * take.n_frames) for share in TAKE_OVER_SHARES}
        performers, before = Performers((), False, {}), None
        jumps, steps, residuals = [], [], []
        while (frame := source.receive(1.0)) is not None:
            is_new = frame.number in due
            if is_new:
                learnt = estimate_skeletons_of_stream(first_part(take, frame), before)
                is_new, before = learnt.better, learnt.skeletons
                if is_new:
                    performers.take_over(
                        learnt.names, learnt.skeletons, tuple(recent), take.rate
                    )
            shown = [*shown[-2:], performers.update(frame)]
            recent.append(frame)
            change = second_difference(shown)
            if change is not None:
                (jumps if is_new else steps).append(change)
            residuals.append(marker_residual(shown[-1]))
        print(
            f"{Path(file).name}: {len(jumps)} take-overs, jump "
            f"{1e3 * max(jumps, default=np.nan):.2f} mm at most; other frames "
            f"{1e3 * np.median(steps):.2f} mm in the median, "
            f"{1e3 * np.quantile(steps, 0.99):.2f} at 99 %; residual "
            f"{1e3 * np.nanmedian(residuals):.2f} mm",
            flush=True,
        )


def first_part(take: marey.Take, frame: Frame) -> marey.Take:
    """Return what a stream has kept of a recording before a frame."""
    n = frame.number
    return replace(
        take,
        points=take.points[:n],
        T_world_sensor=take.T_world_sensor[:n],
        filled=take.filled[:n],
        confidence=take.confidence[:n],
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
    "prefix": estimate_exercise,
    "real": compare_recordings,
    "pops": measure_pops,
}

if __name__ == "__main__":
    arguments = sys.argv[1:]
    mode = MODES.get(arguments[0]) if arguments else None
    if mode in (watch_memory, learn_exercise, estimate_exercise):
        mode(*map(float, arguments[1:]))
    elif mode is not None:
        mode(*arguments[1:])
    else:
        kinds = (float, str, int)
        follow_lsl(*(kind(a) for kind, a in zip(kinds, arguments, strict=False)))
