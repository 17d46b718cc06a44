"""Skeletons that are given, on two takes of CMU 02: marker residuals and joints.

For each take: the published motion of the subject, the published skeleton (ASF) with
poses of marey, the skeleton that the other take gave, and a free solve.

- markers: distances of the markers from where the skeleton has them, rms. On the
  published motion each marker sits at its mean place on the bone where it moves least;
- joints: distances of hips, knees, ankles, shoulders and elbows from those of the
  published motion, median. That motion is no truth.
"""

import os
from collections.abc import Iterator

import numpy as np

import marey
from benchmarks.harness.task import Row, Setting
from benchmarks.recordings.takes import MM, find
from marey.anatomy.name_schemes import recognise_joints
from marey.numerics import geometry
from marey.skeleton import Skeleton

TAKES = ("02_01", "02_05")
JOINTS = {
    "UpperLeg": "hip",
    "LowerLeg": "knee",
    "Foot": "ankle",
    "UpperArm": "shoulder",
    "LowerArm": "elbow",
}
SIDES = ("Left", "Right")
HEADLINE = "markers [mm]"


def published_joints(take: str) -> dict[str, np.ndarray]:
    """Return the published positions of the joints by anatomical name, in metres."""
    with np.load(find("cmu", f"{take}_ref_joints.npz")) as data:
        column = {name: k for k, name in enumerate(data["joint"].tolist())}
        position = data["pos_mm"] / MM
    return {
        side + name: position[:, column[f"{side[0].lower()}_{joint}"]]
        for side in SIDES
        for name, joint in JOINTS.items()
    }


def published_marker_rms(take: str) -> float:
    """Return the distance of the markers from their places on the published motion."""
    motion = marey.read_motion(
        find("cmu", f"{take}.amc"), skeleton=find("cmu", "02.asf")
    )
    T_world_joint = motion.T_world_joint()
    points = marey.read(find("cmu", f"{take}.c3d")).points
    joint_of = {name: k for k, name in recognise_joints(motion.skeleton.names).items()}
    published = published_joints(take)
    # The file has other horizontal axes than the markers.
    here, there = (
        np.concatenate(arrays)
        for arrays in zip(
            *(
                (T_world_joint[:, joint_of[name], :3, 3], position)
                for name, position in published.items()
            ),
            strict=True,
        )
    )
    T_world_joint = geometry.kabsch(here, there) @ T_world_joint
    spread = []
    for joint in range(motion.skeleton.n_joints):
        T_joint_world = geometry.inverse(T_world_joint[:, joint])
        local = geometry.apply(T_joint_world[:, None], points)
        off = local - np.nanmean(local, axis=0)
        spread.append(np.sum(off**2, axis=-1))
    square = np.array(spread)
    best = np.nanmean(square, axis=1).argmin(axis=0)
    chosen = square[best, :, np.arange(points.shape[1])]
    return MM * float(np.sqrt(np.nanmean(chosen)))


def figures(solution: marey.Solution, take: str) -> dict[str, float]:
    """Return the residual of the markers and the distance of the joints."""
    (measured,), motion = solution.takes, solution.motion
    columns = [measured.full_labels.index(x) for x in motion.skeleton.marker_labels]
    error = motion.marker_points() - measured.points[:, columns]
    position = motion.T_world_joint()[..., :3, 3]
    joint_of = {name: k for k, name in recognise_joints(motion.skeleton.names).items()}
    off = [
        np.linalg.norm(position[:, joint_of[name]] - there, axis=-1)
        for name, there in published_joints(take).items()
    ]
    return {
        HEADLINE: MM * float(np.sqrt(np.nanmean(np.sum(error**2, axis=-1)))),
        "joints [mm]": MM * float(np.median(off)),
    }


def measure(setting: Setting) -> Iterator[Row]:
    if not os.environ.get("MAREY_DATA"):
        yield Row("CMU 02", skipped="no recordings: MAREY_DATA names no folder")
        return
    skeletons: dict[str, Skeleton] = {}
    for take in TAKES:
        free = marey.solve(find("cmu", f"{take}.c3d"))
        skeletons[take] = free.skeleton
        yield Row(f"{take}, free", figures(free, take))
    for take, other in zip(TAKES, reversed(TAKES), strict=True):
        path = find("cmu", f"{take}.c3d")
        yield Row(f"{take}, published", {HEADLINE: published_marker_rms(take)})
        given = marey.solve(path, skeleton=find("cmu", "02.asf"))
        yield Row(f"{take}, ASF", figures(given, take))
        given = marey.solve(path, skeleton=skeletons[other])
        yield Row(f"{take}, other take", figures(given, take))
