"""Poses in wrong minima: how far they depend on the direction of time.

Every recording is solved; then the poses of its first subject are solved alone, from
the recording as it is and played backwards, tracked one way as a stream is, and both
ways as takes are by default:

- differ: share of the frames in which a joint lies more than 20 mm elsewhere when the
  recording is played backwards;
- markers: rms of all residuals;
- hidden: error of markers that were hidden from the solver;
- large steps: rotations of a joint by more than 20 degrees from one frame to the next;
- alone: how many of these are as large between both frames solved each by itself. The
  markers of these frames make them, not the frames before or after.

Generated people come first, whose truth is known: frames with a joint more than 20 and
50 mm off. "Left out" are recordings that the method was not built on.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np

import marey
from benchmarks.harness.task import Figure, Row, Setting, mean_of
from benchmarks.harness.timing import time_call
from marey import synth
from marey.errors import DataError
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
HEADLINE = "differ [%]"
KEY_CASES = ("mean, *",)
MOST_FRAMES = 1_000_000
LIMIT_S = 7200.0


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


def rotation_steps(q: np.ndarray) -> np.ndarray:
    """Return the rotation of every joint from frame to frame, in radians."""
    step = geometry.quat_multiply(geometry.quat_conjugate(q[:-1]), q[1:])
    return np.asarray(np.linalg.norm(geometry.quat_log(step), axis=-1))


def count_steps_of_frames(
    skeleton: Skeleton, take: Take, large: np.ndarray, options: Mapping[str, Any]
) -> int:
    """Return how many steps are large between frames that are solved by themselves.

    None is between frames of which one shows no marker of the skeleton.

    Args:
        skeleton: Its joints.
        take: The recording.
        large: Frame before the step, and joint, of each large step.
        options: How to solve.
    """

    def pose(frame: int) -> np.ndarray:
        alone = take.cut(frame, frame + 1)
        try:
            motion, _ = fit_pose(skeleton, alone, method="gauss_newton", **options)
        except DataError:
            return np.full((len(skeleton.names), 4), np.nan)
        return np.asarray(motion.wxyz[0])

    frames = np.unique([large[:, 0], large[:, 0] + 1]).tolist()
    alone = {frame: pose(frame) for frame in frames}
    return sum(
        bool(rotation_steps(np.stack([alone[f], alone[f + 1]]))[0, j] > LARGE_STEP)
        for f, j in large.tolist()
    )


def measure_way(
    skeleton: Skeleton, take: Take, options: Mapping[str, Any], setting: Setting
) -> dict[str, Figure]:
    """Return the figures of one recording by one way of solving its poses."""

    def pose(some: Take) -> marey.Motion:
        return fit_pose(skeleton, some, method="gauss_newton", **options)[0]

    timing = time_call(lambda: pose(take), setting)
    motion = timing.result
    columns = marker_columns(skeleton, take)
    other = pose(play_backwards(take)).T_world_joint()[::-1, :, :3, 3]
    apart = np.linalg.norm(motion.T_world_joint()[..., :3, 3] - other, axis=-1)
    fewer, hidden = hide_some(take, columns[columns >= 0])
    error = residuals(pose(fewer), take, columns)[hidden[:, columns[columns >= 0]]]
    large = np.argwhere(rotation_steps(motion.wxyz) > LARGE_STEP)
    return {
        "differ [%]": 100.0 * float(np.mean(apart.max(axis=1) > FAR_M)),
        "markers [mm]": 1e3
        * float(np.sqrt(np.nanmean(residuals(motion, take, columns) ** 2))),
        "hidden, median [mm]": 1e3 * float(np.median(error)),
        "hidden, rms [mm]": 1e3 * float(np.sqrt(np.mean(error**2))),
        "large steps": len(large),
        "alone": count_steps_of_frames(skeleton, take, large, options),
        "CPU [s]": timing.cpu,
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
    """Return the skeleton of the first subject, and the first frames, cleaned."""
    take = marey.read(path)
    take = take.cut(0, min(frames, take.n_frames))
    solution = marey.solve(take, options=marey.SolveOptions(whole=False))
    return solution.subjects[0].motions[0].skeleton, solution.takes[0]


def measure(setting: Setting) -> Iterator[Row]:
    yield from score_generated(setting)
    if not os.environ.get("MAREY_DATA"):
        yield Row("recordings", skipped="no recordings: MAREY_DATA names no folder")
        return
    for title, names in (("built on", BUILT_ON), ("left out", LEFT_OUT)):
        chosen = tuple(name for name in names if setting.wants(name))
        yield from score_recordings(
            title, chosen[: setting.choose(len(chosen), 1)], setting
        )


def score_recordings(
    title: str, names: tuple[str, ...], setting: Setting
) -> Iterator[Row]:
    """Yield the figures of recordings, and their means by way."""
    every: dict[str, list[dict[str, Figure]]] = {way: [] for way in WAYS}
    for path in recordings(names):
        skeleton, take = solved(path, setting.choose(MOST_FRAMES, 300))
        for way, options in WAYS.items():
            every[way].append(measure_way(skeleton, take, options, setting))
            yield Row(f"{path.stem}, {take.n_frames} frames, {way}", every[way][-1])
    for way, rows in every.items():
        if rows:
            mean = {name: mean_of([row[name] for row in rows]) for name in rows[0]}
            yield Row(f"mean, {title}, {way}", mean)


def score_generated(setting: Setting) -> Iterator[Row]:
    """Yield the shares of frames of generated people with a joint far off."""
    for name, damage in list(DAMAGES.items())[: setting.choose(len(DAMAGES), 2)]:
        shares: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
        for take, skeleton in islice(generated(**damage), setting.choose(None, 2)):
            true = take.truth.motion.T_world_joint()[..., :3, 3]
            for way, options in WAYS.items():
                motion = fit_pose(skeleton, take, method="gauss_newton", **options)[0]
                off = motion.T_world_joint()[..., :3, 3] - true
                worst = np.linalg.norm(off, axis=-1).max(axis=1)
                shares[way].append((np.mean(worst > FAR_M), np.mean(worst > LOST_M)))
        for way, values in shares.items():
            far, lost = 100.0 * np.mean(values, axis=0)
            figures = {"> 20 mm [%]": far, "> 50 mm [%]": lost}
            yield Row(f"generated, {name}, {way}", figures)


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
            yield take, take.true_skeleton
