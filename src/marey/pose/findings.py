"""What is worth knowing about a fitted motion."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Float

from marey.numerics.robust import runs
from marey.pose.gauss_newton.driver import LOST, Follower, Trace
from marey.report import Finding, mark_name
from marey.skeleton import Skeleton
from marey.take import Take

# A joint out of sight for less than this, in seconds, is not worth a word.
SHORT = 0.25

# A joint out of sight in more than this share of the frames is never seen.
NEVER = 0.9

# A marker out of its place in more than this share of its frames is misplaced.
OFTEN = 0.2

# Markers of a joint at its limit are off by what the limit costs when their mean
# distance is more than so many of their standard deviations.
STRAINED = 5.0

UNSEEN = "nothing is seen in {frames}: the pose there is a guess"
ASTRAY = (
    "most markers do not fit the skeleton in {frames}: "
    "look for swapped labels, or a skeleton of someone else"
)


def doubts(
    skeleton: Skeleton, take: Take, fit: Follower, trace: Trace
) -> tuple[Finding, ...]:
    """Return frames without anything seen, joints out of sight, markers that stray."""
    away = fit.away(take.points, trace)
    cost, seen, left = trace.info[:, :3].T
    lost = (cost > LOST**2 * seen) | (left < 0.5 * seen)
    return (
        *stretches("pose-unseen", seen == 0.0, UNSEEN),
        *stretches("pose-lost", lost, ASTRAY),
        *_unseen_joints(skeleton, take, fit, trace),
        *_held_joints(skeleton, fit, trace, away),
        *_strays(skeleton, fit, away),
    )


def stretches(
    code: str, flags: Bool[np.ndarray, " frame"], words: str
) -> Iterator[Finding]:
    """Return a warning for every run of flagged frames, which `words` name."""
    for first, last in runs(flags):
        yield Finding(
            code,
            "pose",
            "warning",
            words.format(frames=f"frames {first} to {last}"),
            frames=(first, last),
            value=float(last - first + 1),
        )


def _unseen_joints(
    skeleton: Skeleton, take: Take, fit: Follower, trace: Trace
) -> Iterator[Finding]:
    some = trace.info[:, 1] > 0.0
    never = []
    for joint, kind in enumerate(skeleton.kind):
        if kind in ("root", "fixed"):
            continue
        block = fit.nodes.of_joint[joint] + 1
        guessed = some & (trace.known[:, block] < fit.habits.prior[block])
        if guessed.sum() > NEVER * some.sum():
            never.append(skeleton.names[joint])
            continue
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
    if never:
        yield Finding(
            "joint-never-seen",
            "pose",
            "warning",
            f"too few markers to see a rotation of {', '.join(map(mark_name, never))}: "
            "what is not seen of it is a guess in all frames",
            value=float(len(never)),
        )


def _held_joints(
    skeleton: Skeleton,
    fit: Follower,
    trace: Trace,
    away: Float[np.ndarray, "frame marker"],
) -> Iterator[Finding]:
    if not fit.nodes.tree.limited.any():
        return
    held = fit.held(trace)
    for joint, name in enumerate(skeleton.names):
        first, last = fit.nodes.first_of_joint[joint], fit.nodes.of_joint[joint]
        mine = slice(*fit.targets.start[last : last + 2])
        at = np.flatnonzero(held[:, first : last + 1].any(axis=1))
        if skeleton.kind[joint] == "fixed" or not len(at) or mine.start == mine.stop:
            continue
        seen = np.isfinite(away[at, mine])
        off = np.where(seen, away[at, mine], 0.0).sum(axis=1)
        off = off / np.maximum(seen.sum(axis=1), 1)
        strained = off > STRAINED * fit.options.marker_sd
        share = strained.sum() / len(away)
        if share > OFTEN:
            yield Finding(
                "joint-held",
                "pose",
                "warning",
                f"is held by its limits in {share:.0%} of the frames with its markers "
                f"{1e3 * np.median(off[strained]):.0f} mm off: it bends the other "
                "way, or its limits are too narrow",
                subject=name,
                frames=(int(at[strained][0]), int(at[strained][-1])),
                value=float(share),
            )


def _strays(
    skeleton: Skeleton, fit: Follower, away: Float[np.ndarray, "frame marker"]
) -> Iterator[Finding]:
    if fit.options.outlier == 0.0 or not len(fit.worn.marker):
        return
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
