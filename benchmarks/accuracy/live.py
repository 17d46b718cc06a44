"""From nothing to a skeleton: when a stream without labels has bodies and joints right.

An exercise with 53 markers at 120 Hz, noise 0.5 mm. Each row is an estimate that takes
over while the stream goes on; the last is that of the whole stream.
"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

import marey
from benchmarks.harness.task import Figure, Row, Setting

HEADLINE = "bodies right"
KEY_CASES = ("at the end",)
PLOT = ("time [s]", "bodies right", "joints within 10 mm")
NEAR_M = 0.01
RATE = 120.0


def measure(setting: Setting) -> Iterator[Row]:
    take = marey.synth.human().record(
        "exercise",
        rate=RATE,
        seconds=setting.choose(60.0, 12.0),
        markers="set53",
        noise=5e-4,
    )
    labels = tuple(f"m{i}" for i in range(len(take.labels)))
    hidden = marey.Take(rate=take.rate, points=take.points, labels=labels)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "exercise.npz"
        marey.write(hidden, path)
        yield from follow_learning(
            path, take, dict(zip(labels, take.labels, strict=True))
        )


def follow_learning(
    path: Path, take: marey.synth.Recording, names: dict[str, str]
) -> Iterator[Row]:
    """Yield a row for each estimate that takes over."""
    truth, last = take.truth, None
    true_groups = groups(truth.marker_joint, take.labels)
    joints = [i for i, end in enumerate(truth.motion.skeleton.is_end) if i and not end]
    joints = [i for i in joints if (truth.marker_joint == i).any()]
    T_true = truth.motion.T_world_joint()
    with marey.stream(str(path)) as poses:
        for pose in poses:
            if poses.learnt is last:
                continue
            last = poses.learnt
            places = np.concatenate([p.T_world_joint for p in pose.subjects])
            true = T_true[pose.frame.number, joints, :3, 3]
            apart = np.linalg.norm(true[:, None] - places[:, :3, 3], axis=-1)
            found = found_groups(last.skeletons, names) & true_groups
            seconds = pose.frame.number / take.rate
            figures: dict[str, Figure] = {
                "time [s]": seconds,
                "bodies right": len(found),
                "of bodies": len(true_groups),
                "joints within 10 mm": int((apart.min(axis=1) < NEAR_M).sum()),
                "of joints": len(joints),
                "worker [s]": last.seconds,
                "hidden markers [mm]": 1e3 * float(np.nanmean(last.marker_error)),
            }
            yield Row(f"after {seconds:.1f} s", figures)
    found = found_groups(poses.skeletons, names) & true_groups
    figures = {"bodies right": len(found), "of bodies": len(true_groups)}
    yield Row("at the end", figures)


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
