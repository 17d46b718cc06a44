"""From nothing to a skeleton: when a stream without labels has bodies and joints right.

Exercises of two generators, in which joints move one after the other, at 100 Hz with
noise of 0.5 mm. Each row is an estimate that takes over while the stream goes on; the
last of each is that of the whole stream. Joints are compared a second later, as those
that are shown pass to a new skeleton smoothly. "Worker" is how long an estimate took,
by the wall clock: on a busy machine estimates come later.
"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

import marey
from benchmarks.accuracy.subjects import GENERATORS, Subject, record
from benchmarks.harness.task import Figure, Row, Setting

HEADLINE = "bodies right"
KEY_CASES = ("*, at the end",)
PLOT = ("time [s]", "bodies right", "joints within 10 mm")
NEAR_M = 0.01
PASSING_S = 1.0
"""Seconds after which the joints that are shown are those of a new skeleton."""


def measure(setting: Setting) -> Iterator[Row]:
    seconds = setting.choose(60.0, 12.0)
    for generator in GENERATORS:
        if setting.wants(generator):
            subject = record(
                generator, "exercise", seconds=seconds, noise=5e-4, labels=False
            )
            yield from follow_learning(generator, subject)


def follow_learning(case: str, subject: Subject) -> Iterator[Row]:
    """Yield a row for each estimate that takes over, and one at the end."""
    take = subject.take
    known = {label: label for label in take.labels}
    true_groups = groups(subject.marker_body, take.labels)
    last, first_frame, is_due = None, 0, False
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "exercise.npz"
        marey.write(
            marey.Take(rate=take.rate, points=take.points, labels=take.labels), path
        )
        with marey.stream(str(path)) as poses:
            for pose in poses:
                if poses.learnt is not last:
                    last, first_frame, is_due = poses.learnt, pose.frame.number, True
                if is_due and pose.frame.number - first_frame >= PASSING_S * take.rate:
                    is_due = False
                    seconds = first_frame / take.rate
                    found = found_groups(last.skeletons, known) & true_groups
                    figures: dict[str, Figure] = {
                        "time [s]": seconds,
                        "bodies right": len(found),
                        "of bodies": len(true_groups),
                        **score_pose(pose, subject),
                        "worker [s]": last.seconds,
                        "hidden markers [mm]": 1e3
                        * float(np.nanmean(last.marker_error)),
                    }
                    yield Row(f"{case}, after {seconds:.1f} s", figures)
    found = found_groups(poses.skeletons, known) & true_groups
    figures = {"bodies right": len(found), "of bodies": len(true_groups)}
    yield Row(f"{case}, at the end", figures)


def score_pose(pose: marey.LivePose, subject: Subject) -> dict[str, Figure]:
    """Return how many of the true joints have a joint nearby."""
    inner = np.flatnonzero(subject.parent >= 0)
    true = subject.joints[pose.frame.number, inner]
    places = np.concatenate([one.T_world_joint[:, :3, 3] for one in pose.subjects])
    apart = np.linalg.norm(true[:, None] - places, axis=-1).min(axis=1)
    return {
        "joints within 10 mm": int((apart < NEAR_M).sum()),
        "of joints": len(inner),
    }


def found_groups(
    skeletons: Sequence[marey.Skeleton], names: dict[str, str]
) -> set[frozenset[str]]:
    """Return the sets of markers on one bone, by their true labels."""
    found: set[frozenset[str]] = set()
    for one in skeletons:
        found |= groups(one.marker_joint, [names[label] for label in one.marker_labels])
    return found


def groups(joint: np.ndarray, labels: Sequence[str]) -> set[frozenset[str]]:
    """Return the sets of markers on one bone."""
    return {
        frozenset(label for label, at in zip(labels, joint, strict=True) if at == one)
        for one in set(joint.tolist())
    }
