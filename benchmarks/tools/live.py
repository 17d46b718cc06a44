"""What a stream learns and shows, and how soon.

    python -m benchmarks.tools.live prefix SECONDS END...
    python -m benchmarks.tools.live pops FILE...
    python -m benchmarks.tools.live latency SECONDS
    python -m benchmarks.tools.live memory SECONDS
    python -m benchmarks.tools.live names FILE...

`prefix`: how right the skeleton of the first seconds of an exercise is, in which every
joint moves once within so many seconds, without and with labels: bodies, their links,
and joints within 10 mm. `pops`: the jump of joints when the skeleton of the first part
of a recording is taken over, against the residual of the markers. For both the load of
the machine does not matter. `latency`: time from a packet to its poses, of 53 markers
with one performer and of 110 markers with two, on a quiet machine. `memory`: that of
this process, and with its worker, while a walk is learnt from at 10 times its speed.
`names`: how often points without labels get another name, in pieces of recordings and
of generated motions, with all frames and with three of seven lost, and how many of
those of a known skeleton have their own label.
"""

import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import marey
from benchmarks.accuracy.live import found_groups, groups
from benchmarks.harness.task import Row, Spread
from benchmarks.recordings.live import marker_residual, second_difference
from benchmarks.speed.live import follow_lsl, watch_memory
from marey.live import Frame, open_source
from marey.live.frame import UNLABELLED
from marey.live.labelling import PointLabeller
from marey.live.learning import Learnt
from marey.live.learning.estimate import estimate_skeletons_of_stream
from marey.live.live_stream import RECENT_FRAMES
from marey.live.posing.performers import Performers
from marey.pose import solve_pose

JUDGED_SECONDS = 2.0
"""Seconds before an estimate in which its joints are compared with the true ones."""

PIECE_FRAMES, MAX_PIECES = 100, 9
"""Frames of a piece in which changes of names are counted, and pieces of a motion."""

GENERATED = (
    ("walk", 120.0, 5.0),
    ("walk", 60.0, 5.0),
    ("jump", 120.0, 5.0),
    ("jump", 60.0, 5.0),
    ("kick_punch", 60.0, 5.0),
    ("swing", 60.0, 5.0),
    ("exercise", 60.0, 12.0),
)
"""Motions in which changes of names are counted: frames per second, and seconds."""

TAKE_OVER_SHARES = (0.2, 0.4, 0.6, 0.8)
"""Parts of a recording after which its skeleton is taken over."""


def record_exercise(seconds: float) -> marey.synth.Recording:
    """Return an exercise in which every joint moves once, one after the other."""
    return marey.synth.human().record(
        "exercise", rate=120.0, seconds=seconds, markers="set53", noise=5e-4
    )


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
        performers, before = Performers((), (), False, {}), None
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


def measure_latency(seconds: float = 60.0) -> None:
    """Print the time from a packet to its poses, of one and of two performers."""
    for subjects in (1, 2):
        print_row(follow_lsl(seconds, "set53", subjects))


def measure_memory(seconds: float = 300.0) -> None:
    """Print the memory of a stream that is learnt from, six times."""
    for row in watch_memory(seconds):
        print_row(row)


def measure_names(*files: str) -> None:
    """Print how often the points of clouds get another name, on any machine."""
    for file in files:
        take = marey.read(file)
        print_names(Path(file).name, cut_pieces(take.points, MAX_PIECES))
    for motion, rate, seconds in GENERATED:
        takes = [
            marey.synth.human().record(
                motion,
                rate=rate,
                seconds=seconds,
                markers="set53",
                noise=5e-4,
                seed=seed,
            )
            for seed in range(3)
        ]
        n_each = MAX_PIECES // len(takes)
        pieces = [one for take in takes for one in cut_pieces(take.points, n_each)]
        print_names(f"{motion} at {rate:g} Hz", pieces)
        right, wrong = count_right(takes[0])
        print(f"  of a known skeleton {right:.1%} right, {wrong:.1%} another's")


def cut_pieces(points: np.ndarray, count: int) -> list[np.ndarray]:
    """Return pieces of a recording at even distances."""
    count = min(count, len(points) // PIECE_FRAMES)
    starts = np.linspace(0, len(points) - PIECE_FRAMES, count).astype(int)
    return [points[start : start + PIECE_FRAMES] for start in starts]


def print_names(case: str, pieces: Sequence[np.ndarray]) -> None:
    """Print the changes of names in pieces, with all frames and with some."""
    every = range(PIECE_FRAMES)
    some = [i for i in every if i % 7 < 4]
    n_all, n_some = (
        sum(count_renamed(piece, frames) for piece in pieces)
        for frames in (every, some)
    )
    n = len(pieces)
    print(f"{case:20s} {n} pieces: {n_all} changes; of {len(some)} frames {n_some}")


def name_cloud(
    labeller: PointLabeller, points: np.ndarray, number: int, rng: np.random.Generator
) -> tuple[Frame, dict[int, str]]:
    """Return a frame without labels as it is named, and the names by marker."""
    shown = rng.permutation(np.flatnonzero(np.isfinite(points[:, 0])))
    bare = tuple(f"{UNLABELLED}{k}" for k in range(len(shown)))
    cloud = Frame(number=number, arrival=0.0, points=points[shown], labels=bare)
    frame = labeller.label(cloud)
    named = zip(frame.labels, frame.points, strict=True)
    name_at = {tuple(point): name for name, point in named}
    return frame, {int(marker): name_at[tuple(points[marker])] for marker in shown}


def count_renamed(points: np.ndarray, frames: Sequence[int]) -> int:
    """Return how often a marker gets another name than it had when seen before."""
    rng, labeller = np.random.default_rng(0), PointLabeller()
    last: dict[int, str] = {}
    count = 0
    for i in frames:
        _, names = name_cloud(labeller, points[i], i, rng)
        count += sum(last.get(one, name) != name for one, name in names.items())
        last |= names
    return count


def count_right(take: marey.synth.Recording) -> tuple[float, float]:
    """Return the shares of markers with the right label, and with that of another.

    A known skeleton is tracked, of which the third frame has all labels.
    """
    rng, labeller = np.random.default_rng(0), PointLabeller()
    performers = Performers(["a"], [take.true_skeleton], False, {})
    performers.prepare(take.rate)
    labels, right, wrong = take.full_labels, 0, 0
    for i, points in enumerate(take.points):
        frame, names = name_cloud(labeller, points, i, rng)
        if i == 2:
            known = {name: labels[marker] for marker, name in names.items()}
            labeller.rename(known)
            frame = frame.rename(known)
        elif i > 2:
            right += sum(labels[marker] == name for marker, name in names.items())
            wrong += sum(
                name in labels and labels[marker] != name
                for marker, name in names.items()
            )
        labeller.expect(performers.update(frame))
    performers.close()
    count = (take.n_frames - 3) * len(labels)
    return right / count, wrong / count


def print_row(row: Row) -> None:
    """Print a row of figures as they come."""
    print(row.case, flush=True)
    for name, value in row.figures.items():
        number = value.median if isinstance(value, Spread) else value
        print(f"  {name:28s} {number:9.2f}", flush=True)


if __name__ == "__main__":
    marey.use_compiled_kernels()
    if sys.argv[1] == "prefix":
        estimate_exercise(*map(float, sys.argv[2:]))
    elif sys.argv[1] == "pops":
        measure_pops(*sys.argv[2:])
    elif sys.argv[1] == "names":
        measure_names(*sys.argv[2:])
    elif sys.argv[1] == "memory":
        measure_memory(*map(float, sys.argv[2:]))
    else:
        measure_latency(*map(float, sys.argv[2:]))
