"""What is worth knowing about a fitted motion."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool

from marey.pose._follow import LOST, Follower, Trace
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.take import Take

# A joint out of sight for less than this, in seconds, is not worth a word.
SHORT = 0.25

# A marker out of its place in more than this share of its frames is misplaced.
OFTEN = 0.2


def doubts(
    skeleton: Skeleton, take: Take, fit: Follower, trace: Trace
) -> tuple[Finding, ...]:
    """Return frames without anything seen, joints out of sight, markers that stray."""
    return (
        *_unseen_frames(trace),
        *_lost_frames(trace),
        *_unseen_joints(skeleton, take, fit, trace),
        *_strays(skeleton, take, fit, trace),
    )


def _unseen_frames(trace: Trace) -> Iterator[Finding]:
    for first, last in runs(trace.info[:, 1] == 0.0):
        yield Finding(
            "pose-unseen",
            "pose",
            "warning",
            f"nothing is seen in frames {first} to {last}: the pose there is a guess",
            frames=(first, last),
            value=float(last - first + 1),
        )


def _lost_frames(trace: Trace) -> Iterator[Finding]:
    cost, seen, left = trace.info[:, 0], trace.info[:, 1], trace.info[:, 2]
    for first, last in runs((cost > LOST**2 * seen) | (left < 0.5 * seen)):
        yield Finding(
            "pose-lost",
            "pose",
            "warning",
            f"most markers do not fit the skeleton in frames {first} to {last}: "
            "look for swapped labels, or a skeleton of someone else",
            frames=(first, last),
            value=float(last - first + 1),
        )


def _unseen_joints(
    skeleton: Skeleton, take: Take, fit: Follower, trace: Trace
) -> Iterator[Finding]:
    some = trace.info[:, 1] > 0.0
    for joint, kind in enumerate(skeleton.kind):
        if kind in ("root", "fixed"):
            continue
        block = fit.nodes.of_joint[joint] + 1
        guessed = some & (trace.known[:, block] < fit.habits.prior[block])
        for first, last in runs(guessed):
            seconds = (last - first + 1) / take.rate
            if seconds < SHORT:
                continue
            yield Finding(
                "joint-unseen",
                "pose",
                "info" if seconds < 1.0 else "warning",
                f"too little is seen of it for {seconds:.2g} s: "
                "its rotation there is a guess",
                subject=skeleton.names[joint],
                frames=(first, last),
                value=seconds,
            )


def _strays(
    skeleton: Skeleton, take: Take, fit: Follower, trace: Trace
) -> Iterator[Finding]:
    if fit.options.outlier == 0.0 or not len(fit.worn.marker):
        return
    away = fit.away(take.points, trace)
    off = away**2 * fit.targets.soft > 1.0
    seen = np.isfinite(away).sum(axis=0)
    for k in np.flatnonzero(off.sum(axis=0) > OFTEN * np.maximum(seen, 1)):
        share = off[:, k].sum() / seen[k]
        yield Finding(
            "marker-stray",
            "pose",
            "warning",
            f"is out of its place in {share:.0%} of its frames: it may have slipped, "
            "or its label belongs to another",
            subject=skeleton.marker_labels[fit.worn.marker[k]],
            value=float(share),
        )


def runs(flags: Bool[np.ndarray, " frame"]) -> list[tuple[int, int]]:
    """Return first and last frame of every run of flags."""
    edges = np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    return [(int(a), int(b)) for a, b in zip(starts, ends, strict=True)]
