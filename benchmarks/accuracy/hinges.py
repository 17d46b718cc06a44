"""Hinges and ball joints of sensors whose noise is correlated, and a real pendulum.

Two sensors on a joint, 10 s at 60 Hz, with first-order autoregressive noise of 1 mm and
10 mrad; the case says its correlation from frame to frame. NEES is the mean squared
error over its stated variance, per degree of freedom: of the axis four, of the centre
five, without the direction along the axis. 1 is exact.

The pendulum has four bodies of markers and three hinges. Its links are as long as the
pins are apart, in mm; the drawing says 520.7.
"""

import os
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np

import marey
from benchmarks.generator.rotations import Array, smooth_noise, turn
from benchmarks.harness.task import Figure, Row, Setting

HEADLINE = "hinges found"
CORRELATIONS = (0.0, 0.3, 0.6, 0.9)
PLACE_SD_M, TURN_SD = 1e-3, 0.01
RATE_HZ, FRAMES, SETTLING = 60.0, 600, 100
BEND = 0.4
"""Standard deviation of the angle of a joint, about each axis, in radians."""

CENTERS = np.array([[0.03, -0.12, 0.05], [-0.08, 0.04, 0.20]])
"""The joint in the frames of both sensors, in metres."""

FREE_SD_M = 10.0
"""Stated standard deviation along the axis of a hinge."""

TRIALS = ("mech_pendulum/pendulum_01.trc", "mech_pendulum/pendulum_03.trc")


def measure(setting: Setting) -> Iterator[Row]:
    draws = setting.choose(100, 10)
    for correlation in CORRELATIONS:
        case = f"correlation {correlation:g}"
        if setting.wants(case):
            yield Row(case, score_kinds(correlation, draws))
    for path in filter(Path.is_file, find_trials()):
        if setting.wants(path.stem):
            yield Row(path.stem, score_pendulum(path))


def score_kinds(correlation: float, draws: int) -> dict[str, Figure]:
    """Return how many joints are found as what they are, and the NEES of hinges."""
    axes, centers, hinges, balls = [], [], 0, 0
    for seed in range(draws):
        rng = np.random.default_rng([seed, 43])
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        fits = fit_pair(rng, axis, correlation)
        if fits.kind == ("hinge",):
            hinges += 1
            of_axis, of_center = normalized_errors(fits, axis)
            axes.append(of_axis)
            centers.append(of_center)
        balls += fit_pair(rng, None, correlation).kind == ("ball",)
    return {
        "joints": draws,
        "hinges found": hinges,
        "NEES of the axis": float(np.mean(axes)) if axes else np.nan,
        "NEES of the centre": float(np.mean(centers)) if centers else np.nan,
        "balls found": balls,
    }


def fit_pair(
    rng: np.random.Generator, axis: Array | None, correlation: float
) -> marey.JointFits:
    """Return the joint of two sensors, a hinge about an axis of both or a ball."""
    time = np.arange(FRAMES) / RATE_HZ
    angles = BEND * smooth_noise(rng, time, 3, 1.0)
    R = turn(angles) if axis is None else about_axis(axis, angles[:, 0])
    R_first = turn(smooth_noise(rng, time, 3, 1.0))
    R_second = R_first @ R
    place = 0.5 * smooth_noise(rng, time, 3, 1.0)
    T = np.tile(np.eye(4), (FRAMES, 2, 1, 1))
    T[:, 0, :3, :3], T[:, 1, :3, :3] = R_first, R_second
    T[:, 0, :3, 3] = place - R_first @ CENTERS[0]
    T[:, 1, :3, 3] = place - R_second @ CENTERS[1]
    add_noise(rng, T, correlation)
    take = marey.Take(rate=RATE_HZ, T_world_sensor=T, sensor_names=("first", "second"))
    return marey.fit_joints(marey.segment(take))


def about_axis(axis: Array, angle: Array) -> Array:
    """Return rotations about an axis (Rodrigues)."""
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    s, c = np.sin(angle)[:, None, None], np.cos(angle)[:, None, None]
    return np.asarray(np.eye(3) + s * cross + (1.0 - c) * (cross @ cross))


def add_noise(rng: np.random.Generator, T: Array, correlation: float) -> None:
    """Add autoregressive noise to positions and rotations of poses."""
    noise = rng.normal(size=(SETTLING + len(T), T.shape[1], 6))
    for frame in range(1, len(noise)):
        fresh = np.sqrt(1.0 - correlation**2) * noise[frame]
        noise[frame] = correlation * noise[frame - 1] + fresh
    T[..., :3, 3] += PLACE_SD_M * noise[SETTLING:, :, :3]
    small = TURN_SD * noise[SETTLING:, :, 3:]
    T[..., :3, :3] = T[..., :3, :3] @ turn(small.reshape(-1, 3)).reshape(
        *small.shape[:2], 3, 3
    )


def normalized_errors(fits: marey.JointFits, axis: Array) -> tuple[float, float]:
    """Return the squared errors of axis and centre of a hinge over their variances."""
    true = np.concatenate([axis, axis])
    found = np.concatenate([fits.axis_a[0], fits.axis_b[0]])
    error = np.sign(found @ true) * found - true
    of_axis = error @ np.linalg.pinv(fits.axis_covariance[0], rcond=1e-6) @ error
    across = np.linalg.svd(true[:, None])[0][:, 1:]
    center = np.concatenate([fits.center_a[0], fits.center_b[0]])
    off = across.T @ (center - CENTERS.ravel())
    # Without the direction that is free, whose tilt would hide all others.
    covariance = fits.covariance[0] - FREE_SD_M**2 * np.outer(found, found)
    of_center = off @ np.linalg.solve(across.T @ covariance @ across, off)
    return of_axis / 4.0, of_center / 5.0


def find_trials() -> list[Path]:
    """Return where the trials may be."""
    folders = os.environ.get("MAREY_DATA", "").split(os.pathsep)
    return [Path(folder) / trial for folder in folders for trial in TRIALS]


def score_pendulum(path: Path) -> dict[str, Figure]:
    """Return the hinges of a trial, and the lengths of the links between them."""
    skeleton = marey.solve(marey.read(path, up="y")).skeleton
    hinges = [j for j, kind in enumerate(skeleton.kind) if kind == "hinge"]
    found: dict[str, Figure] = {"joints": 3, "hinges found": len(hinges)}
    for j, k in combinations(hinges, 2):
        start = {skeleton.parent[j]: skeleton.offset[j], j: np.zeros(3)}
        if skeleton.parent[k] in start:
            link = skeleton.offset[k] - start[skeleton.parent[k]]
            found[f"link {len(found) - 1} [mm]"] = 1e3 * float(np.linalg.norm(link))
    return found
