"""Poses in wrong minima: how far they depend on the direction of time, on recordings.

    python benchmarks/minima.py [--frames N] [FILE ...]

Every recording is solved; then the poses of its first subject are solved alone, from
the recording as it is and played backwards. Printed for each, tracked one way as a
stream is, and both ways as takes are by default:

- differ: share of the frames in which a joint lies more than 20 mm elsewhere when the
  recording is played backwards;
- rms: of all marker residuals, in mm;
- hidden: error of markers that were hidden from the solver, median and rms, in mm;
- steps: rotations of a joint by more than 20 degrees from one frame to the next;
- time: of the poses, relative to one way.

Without files: generated people, whose truth is known; then the recordings of MAREY_DATA
on which the method was built, and those that were left out.
"""

import argparse
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import marey
from marey import synth
from marey.numerics import geometry
from marey.pose import fit_pose
from marey.skeleton import Skeleton, marker_columns
from marey.take import Take

BUILT_ON = (
    "cmu/01_01.c3d",
    "cmu/02_05.c3d",
    "cmu/07_01.c3d",
    "cmu/16_07.c3d",
    "hdm05/HDM_dg_06-03_03_120.c3d",
    "ktk/kinematics_tennis_serve_2players.c3d",
    "upperlimb_scapula/example.c3d",
)
LEFT_OUT = (
    "cmu/02_01.c3d",
    "cmu/07_12.c3d",
    "gatech_vsk/nick_freeform_001.c3d",
    "formats_c3d/Dance.c3d",
    "formats_c3d/mocap36.c3d",
    "btk_plugingait/PiG_Motion-FlatFoot-Full.c3d",
    "biobuddy_functional/right_hip.c3d",
    "nimble_upsidedown/trial1.c3d",
    "nimble_sprinter/JA1Gait35.c3d",
    "c3dorg_helenhayes_jump/Sample_Jump2.c3d",
    "c3dorg_lower_sticks/TYPE-3.c3d",
)
WAYS: Mapping[str, Mapping[str, Any]] = {
    "one way": {"both_ways": False},
    "both ways": {},
}
DAMAGES: Mapping[str, Mapping[str, Any]] = {
    "as it is": {},
    "gaps": {"gaps": 0.2},
    "gross errors": {"gross": 0.02},
    "swaps": {"swaps": 6},
    "all of these": {"gaps": 0.15, "gross": 0.01, "swaps": 4},
}
FAR_M, LOST_M, LARGE_STEP = 0.02, 0.05, np.radians(20.0)
HIDDEN_SHARE, HIDDEN_FRAMES = 0.1, 40
REPEATS = 3


def play_backwards(take: Take) -> Take:
    """Return the take in the other direction of time."""
    filled = take.filled[::-1].copy() if take.filled.size else take.filled
    return replace(
        take,
        points=take.points[::-1].copy(),
        T_world_sensor=take.T_world_sensor[::-1].copy(),
        filled=filled,
        events=(),
    )


def hide_some(take: Take, columns: np.ndarray) -> tuple[Take, np.ndarray]:
    """Return the take without a tenth of its markers, drawn anew every 40 frames."""
    rng, points = np.random.default_rng(1), take.points.copy()
    hidden = np.zeros(points.shape[:2], dtype=bool)
    for first in range(0, len(points), HIDDEN_FRAMES):
        some = rng.random(len(columns)) < HIDDEN_SHARE
        hidden[first : first + HIDDEN_FRAMES, columns] = some
    hidden &= np.isfinite(points[..., 0])
    points[hidden] = np.nan
    return replace(take, points=points), hidden


def residuals(motion: marey.Motion, take: Take, columns: np.ndarray) -> np.ndarray:
    """Return the distance of every marker from its model position, in metres."""
    model = motion.marker_points()[:, columns >= 0]
    seen = take.points[:, columns[columns >= 0]]
    return np.asarray(np.linalg.norm(model - seen, axis=-1))


def rotation_steps(motion: marey.Motion) -> np.ndarray:
    """Return the rotation of every joint from frame to frame, in radians."""
    q = motion.wxyz
    step = geometry.quat_multiply(geometry.quat_conjugate(q[:-1]), q[1:])
    return np.asarray(np.linalg.norm(geometry.quat_log(step), axis=-1))


def measure(skeleton: Skeleton, take: Take, **options: Any) -> dict[str, float]:
    """Return the figures of one recording by one way of solving its poses."""

    def pose(some: Take) -> marey.Motion:
        return fit_pose(skeleton, some, method="gauss_newton", **options)[0]

    motion, spent = pose(take), []
    for _ in range(REPEATS):
        begin = time.process_time()
        motion = pose(take)
        spent.append(time.process_time() - begin)
    columns = marker_columns(skeleton, take)
    other = pose(play_backwards(take)).T_world_joint()[::-1, :, :3, 3]
    apart = np.linalg.norm(motion.T_world_joint()[..., :3, 3] - other, axis=-1)
    fewer, hidden = hide_some(take, columns[columns >= 0])
    error = residuals(pose(fewer), take, columns)[hidden[:, columns[columns >= 0]]]
    return {
        "differ": float(np.mean(apart.max(axis=1) > FAR_M)),
        "rms": 1e3 * float(np.sqrt(np.nanmean(residuals(motion, take, columns) ** 2))),
        "median": 1e3 * float(np.median(error)),
        "hidden": 1e3 * float(np.sqrt(np.mean(error**2))),
        "steps": float((rotation_steps(motion) > LARGE_STEP).sum()),
        "seconds": min(spent),
    }


def recordings(names: tuple[str, ...]) -> Iterator[Path]:
    """Yield those of the files that are below MAREY_DATA, or are paths themselves."""
    folders = os.environ.get("MAREY_DATA", "").split(os.pathsep)
    for name in names:
        for path in (Path(folder) / name for folder in folders):
            if path.is_file():
                yield path
                break


def solved(path: Path, frames: int) -> tuple[Skeleton, Take]:
    """Return the skeleton of the first subject, and the cleaned recording."""
    take = marey.read(path)
    if frames:
        take = take.cut(0, min(frames, take.n_frames))
    solution = marey.solve(take, options=marey.SolveOptions(whole=False))
    return solution.subjects[0].motions[0].skeleton, solution.takes[0]


def report(title: str, names: tuple[str, ...], frames: int) -> None:
    """Print the figures of recordings, and their means by way."""
    print(f"{title}\n{'':28} frames           differ   rms  hidden       steps  time")
    every: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for path in recordings(names):
        skeleton, take = solved(path, frames)
        first = 0.0
        for way, options in WAYS.items():
            found = measure(skeleton, take, **options)
            first = first or found["seconds"]
            every[way].append({**found, "seconds": found["seconds"] / first})
            print(f"{path.stem[:27]:28} {take.n_frames:6}", _row(way, every[way][-1]))
    for way, rows in every.items():
        if rows:
            mean = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
            print(f"{'mean':28} {'':6}", _row(way, mean), flush=True)


def _row(way: str, found: Mapping[str, float]) -> str:
    return (
        f"{way:9} {found['differ']:7.2%} {found['rms']:5.2f} {found['median']:5.2f}"
        f" {found['hidden']:5.1f} {found['steps']:6.0f} {found['seconds']:5.2f}"
    )


def report_generated() -> None:
    """Print the shares of frames of generated people with a joint far off."""
    print(f"{'generated people':28} {'':9} > 20 mm  > 50 mm")
    for name, damage in DAMAGES.items():
        shares: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
        for take, skeleton in generated(**damage):
            true = take.truth.motion.T_world_joint()[..., :3, 3]
            for way, options in WAYS.items():
                motion = fit_pose(skeleton, take, method="gauss_newton", **options)[0]
                off = motion.T_world_joint()[..., :3, 3] - true
                worst = np.linalg.norm(off, axis=-1).max(axis=1)
                shares[way].append((np.mean(worst > FAR_M), np.mean(worst > LOST_M)))
        for way, values in shares.items():
            far, lost = np.mean(values, axis=0)
            print(f"{name:28} {way:9} {far:7.1%}  {lost:7.1%}", flush=True)


def generated(**damage: Any) -> Iterator[tuple[Any, Skeleton]]:
    """Yield recordings of people with soft tissue, and their true skeletons."""
    for markers, rate in product(("set53", "sparse41"), (100.0, 30.0)):
        for seed, motion in enumerate(
            ("kick_punch", "exercise", "walk", "chicken_walk")
        ):
            figure = synth.human(seed=5 + seed)
            take = figure.record(
                motion,
                rate=rate,
                seconds=5.0,
                markers=markers,
                noise=1e-3,
                soft_tissue=6e-3,
                seed=seed,
                **damage,
            )
            skeleton = replace(
                figure.skeleton,
                marker_labels=take.truth.marker_labels,
                marker_joint=take.truth.marker_joint,
                marker_offset=take.truth.marker_offset,
            )
            yield take, skeleton


def main() -> None:
    """Report on the files given, or on those of MAREY_DATA."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", help="recordings")
    parser.add_argument("--frames", type=int, default=0, help="cut to so many; 0: all")
    given = parser.parse_args()
    if given.files:
        report("given", tuple(os.path.abspath(f) for f in given.files), given.frames)
        return
    report_generated()
    report("built on", BUILT_ON, given.frames)
    report("left out", LEFT_OUT, given.frames)


if __name__ == "__main__":
    main()
