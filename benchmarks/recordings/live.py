"""Recordings played as streams: the skeleton at the end against that of a solve.

Bones: largest difference of their lengths. Jumps: largest change of a joint's step when
an estimate takes over, beside the median of other frames.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import marey
from benchmarks.harness.task import Figure, Row, Setting
from marey.anatomy.whole_person import observed_part

HEADLINE = "bones [mm]"
SLOW_SECONDS = 30.0
"""Seconds that a short recording is played for, so that it is learnt in mid-stream."""

FILES = ("cmu/02_05.c3d", "cmu/07_01.c3d", "addbio_uhlrich_s4/walking1.trc")


def measure(setting: Setting) -> Iterator[Row]:
    roots = [Path(r) for r in os.environ.get("MAREY_DATA", "").split(os.pathsep) if r]
    for name in FILES[: setting.choose(len(FILES), 1)]:
        path = next((r / name for r in roots if (r / name).is_file()), None)
        if path is None:
            yield Row(name, skipped="not below MAREY_DATA")
        elif setting.wants(name):
            yield compare_with_solve(path)


def compare_with_solve(path: Path) -> Row:
    """Return how far a live skeleton is from that of a whole solve, and jumps."""
    jumps, steps, residuals = [], [], []
    before: list[marey.LivePose] = []
    last = None
    speed = marey.read(path).duration / SLOW_SECONDS
    with marey.stream(f"file:{path}?speed={min(speed, 1.0):.4f}") as poses:
        for pose in poses:
            is_new, last = poses.learnt is not last, poses.learnt
            before = [*before[-2:], pose]
            change = second_difference(before)
            if change is not None:
                (jumps if is_new else steps).append(change)
            residuals.append(marker_residual(pose))
        live = poses.skeletons
    solved = marey.solve(path)
    apart = [
        1e3 * abs(one.lengths[i] - other.lengths[other.names.index(name)])
        for one, subject in zip(live, solved.subjects, strict=False)
        for other in [observed_part(subject.skeleton)]
        for i, name in enumerate(one.names)
        if name in other.names
    ]
    figures: dict[str, Figure] = {
        "bones": len(apart),
        "bones [mm]": max(apart, default=np.nan),
        "take-overs": len(jumps),
        "jump [mm]": 1e3 * max(jumps, default=np.nan),
        "other frames [mm]": 1e3 * float(np.median(steps or [np.nan])),
        "markers [mm]": 1e3 * float(np.nanmedian(residuals)),
    }
    return Row(path.name, figures)


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
