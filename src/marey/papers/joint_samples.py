"""Two generated bodies with a known joint: errors of its centre against the bound."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import marey
from marey.numerics import Array, Float, geometry
from marey.papers.frame import Effort
from marey.papers.plots import Panels

CENTER_A = np.array([0.03, -0.12, 0.05])
CENTER_B = np.array([-0.08, 0.04, 0.20])
"""Centre of the joint in both bodies, in metres: 13 cm and 22 cm from the origins."""

REST_ROTATION = np.array([0.4, 0.9, -0.2])
"""R_b_a at rest, as a rotation vector in radians."""

N_SINES = 6
RATE = 60.0


def smooth_curves(
    rng: np.random.Generator, n_frames: int, n: int, hertz: float = 1.0
) -> Float[Array, "frame curve"]:
    """Return smooth curves of variance one: six sines of 0.1 Hz up to `hertz`."""
    times = np.arange(n_frames)[:, None, None] / RATE
    f = rng.uniform(0.1, hertz, (N_SINES, n))
    phase = rng.uniform(0.0, 2.0 * np.pi, (N_SINES, n))
    sines = np.sin(2.0 * np.pi * f * times + phase)
    curve = np.sum(rng.normal(size=(N_SINES, n)) * sines, axis=1)
    return np.asarray(curve / curve.std(axis=0))


def ball_joint_rotations(
    rng: np.random.Generator, n_frames: int, swing: Float[Array, " 3"]
) -> Float[Array, "frame 3 3"]:
    """Return R_b_a of a ball joint; `swing` = rms angle about each axis, in rad."""
    angles = swing * smooth_curves(rng, n_frames, 3)
    return np.asarray(
        geometry.rotation_exp(angles) @ geometry.rotation_exp(REST_ROTATION)
    )


def poses_of_joined_bodies(
    rng: np.random.Generator,
    R_b_a: Float[Array, "frame 3 3"],
    center_a: Float[Array, " 3"] = CENTER_A,
    center_b: Float[Array, " 3"] = CENTER_B,
) -> Float[Array, "frame 2 4 4"]:
    """Return T_world_body of two bodies with a joint; the second moves at random."""
    n = len(R_b_a)
    R_b = geometry.rotation_exp(smooth_curves(rng, n, 3))
    t_b = 0.5 * smooth_curves(rng, n, 3)
    R_a = R_b @ R_b_a
    t_a = t_b + R_b @ center_b - R_a @ center_a
    poses = [geometry.transform(R_a, t_a), geometry.transform(R_b, t_b)]
    return np.stack(poses, axis=1)


def add_pose_noise(
    rng: np.random.Generator,
    T: Float[Array, "frame body 4 4"],
    noise: float = 1e-3,
    turn_noise: float = 0.01,
) -> Float[Array, "frame body 4 4"]:
    """Return poses with white noise of positions (m) and of rotations (rad)."""
    T = T.copy()
    shape = (*T.shape[:2], 3)
    T[..., :3, 3] += noise * rng.normal(size=shape)
    T[..., :3, :3] @= geometry.rotation_exp(turn_noise * rng.normal(size=shape))
    return T


def bodies_from_sensors(
    T_world_body: Float[Array, "frame body 4 4"], rate: float = 60.0
) -> marey.Bodies:
    """Return bodies that are 6-DoF sensors."""
    names = tuple(f"body{i}" for i in range(T_world_body.shape[1]))
    take = marey.Take(rate=rate, T_world_sensor=T_world_body, sensor_names=names)
    return marey.segment(take)


def bodies_from_markers(
    rng: np.random.Generator,
    T_world_body: Float[Array, "frame body 4 4"],
    offsets: Float[Array, "body marker 3"],
    noise: float,
) -> marey.Bodies:
    """Return bodies posed by noisy markers with known positions on them.

    Args:
        rng: Draws the noise.
        T_world_body: The true poses.
        offsets: Markers of each body, in its coordinates, in metres.
        noise: Standard deviation per axis of a marker, in metres.
    """
    n_bodies, n_markers = offsets.shape[:2]
    points = geometry.apply(T_world_body[:, :, None], offsets)
    points = points + noise * rng.normal(size=points.shape)
    T = geometry.kabsch(offsets, points)
    residual = np.linalg.norm(geometry.apply(T[:, :, None], offsets) - points, axis=-1)
    body = np.repeat(np.arange(n_bodies), n_markers)
    take = marey.Take(
        rate=RATE,
        points=points.reshape(len(points), -1, 3),
        labels=tuple(f"m{i}" for i in range(len(body))),
    )
    return marey.Bodies(
        take=take,
        names=tuple(f"body{i}" for i in range(n_bodies)),
        T_world_body=T,
        determined=np.ones(n_bodies, dtype=bool),
        marker_body=body,
        shared=body[:, None] == np.arange(n_bodies),
        marker_confidence=np.ones(len(body)),
        body_confidence=np.ones(n_bodies),
        marker_offset=offsets.reshape(-1, 3),
        rms=np.sqrt(np.mean(residual**2, axis=(0, 2))),
    )


def cramer_rao_bound_of_sensors(
    T_world_body: Float[Array, "frame 2 4 4"],
    noise: float,
    turn_noise: float,
    center_a: Float[Array, " 3"] = CENTER_A,
    center_b: Float[Array, " 3"] = CENTER_B,
) -> Float[Array, "6 6"]:
    """Return the Cramer-Rao bound of the covariance of (center_a, center_b)."""
    rotation_covariance = np.tile(turn_noise**2 * np.eye(3), (2, 1, 1))
    arms = np.stack([center_a, center_b])
    return _bound(T_world_body, arms, rotation_covariance, np.full(2, noise**2))


def cramer_rao_bound_of_markers(
    T_world_body: Float[Array, "frame 2 4 4"],
    offsets: Float[Array, "2 marker 3"],
    centers: Float[Array, "2 3"],
    noise: float,
) -> Float[Array, "6 6"]:
    """Return the bound for bodies posed by a rigid fit to markers.

    The rotation of a rigid fit has the covariance sigma^2 I^-1, with the inertia I of
    the markers about their centroid; the centroid has sigma^2 / n.
    """
    centroid = offsets.mean(axis=1)
    arm = offsets - centroid[:, None]
    square = np.sum(arm**2, axis=(1, 2))[:, None, None]
    inertia = square * np.eye(3) - np.swapaxes(arm, 1, 2) @ arm
    rotation_covariance = noise**2 * np.linalg.inv(inertia)
    variance = np.full(2, noise**2 / offsets.shape[1])
    return _bound(T_world_body, centers - centroid, rotation_covariance, variance)


def _bound(
    T_world_body: Float[Array, "frame 2 4 4"],
    arms: Float[Array, "2 3"],
    rotation_covariance: Float[Array, "2 3 3"],
    variance: Float[Array, " 2"],
) -> Float[Array, "6 6"]:
    r"""Return the inverse Fisher information of both centres.

    Every frame measures A (center_a, center_b) = 0 with A = (R_a, -R_b) and the
    covariance S of the residual; the information is the sum of A^T S^-1 A.

    Args:
        T_world_body: True poses.
        arms: Centres relative to the reference points of the bodies, in metres.
        rotation_covariance: Covariance of the rotation of each body, in rad^2.
        variance: Variance per axis of each reference point, in m^2.
    """
    R = T_world_body[..., :3, :3]
    lever = R @ geometry.hat(arms)
    S = np.sum(lever @ rotation_covariance @ np.swapaxes(lever, -1, -2), axis=1)
    S = S + variance.sum() * np.eye(3)
    A = np.concatenate([R[:, 0], -R[:, 1]], axis=-1)
    information = np.sum(np.swapaxes(A, 1, 2) @ np.linalg.inv(S) @ A, axis=0)
    return np.asarray(np.linalg.inv(information))


# --- errors over many runs ------------------------------------------------------------

SENSOR_NOISE_M = 1e-3

THIGH_SWINGS_DEG = (5.0, 10.0, 20.0, 35.0)
MARKER_NOISES_MM = (0.2, 1.0, 3.0)

# Four markers on a thigh and four on a pelvis, seen from the hip, in millimetres.
THIGH = ((70, 30, -160), (-50, 60, -230), (40, -50, -290), (0, 50, -370))
PELVIS = ((200, 60, 100), (-30, 70, 120), (190, -100, 120), (-20, -80, 110))
HIP_MARKERS_M = 1e-3 * np.array([THIGH, PELVIS])


class JointSample(NamedTuple):
    """Two bodies with a joint, recorded with noise."""

    bodies: marey.Bodies
    centers: Float[Array, "2 3"]
    """True centre of the joint in both bodies, in metres."""

    bound: Float[Array, "6 6"]
    """Cramer-Rao bound of the covariance of both centres, in m^2."""


def sensor_sample(rng: np.random.Generator, swing: float, noise: float) -> JointSample:
    """Return 3000 frames of a joint seen by two 6-DoF sensors with 1 mm of noise.

    Args:
        rng: Draws motion and noise.
        swing: Rms rotation about each axis, in degrees.
        noise: Standard deviation of orientations per axis, in degrees.
    """
    noises = SENSOR_NOISE_M, float(np.radians(noise))
    R_b_a = ball_joint_rotations(rng, 3000, np.full(3, np.radians(swing)))
    T = poses_of_joined_bodies(rng, R_b_a)
    bodies = bodies_from_sensors(add_pose_noise(rng, T, *noises))
    centers = np.stack([CENTER_A, CENTER_B])
    return JointSample(bodies, centers, cramer_rao_bound_of_sensors(T, *noises))


def marker_sample(rng: np.random.Generator, swing: float, noise: float) -> JointSample:
    """Return 1000 frames of a hip, with four markers on thigh and pelvis each.

    Args:
        rng: Draws motion and noise.
        swing: Rms rotation of the thigh about two axes, in degrees; half of it about
            its own length.
        noise: Standard deviation of markers per axis, in millimetres.
    """
    swings = np.radians(swing) * np.array([1, 1, 0.5])
    centers, sd = np.zeros((2, 3)), 1e-3 * noise
    T = poses_of_joined_bodies(rng, ball_joint_rotations(rng, 1000, swings), *centers)
    bodies = bodies_from_markers(rng, T, HIP_MARKERS_M, sd)
    bound = cramer_rao_bound_of_markers(T, HIP_MARKERS_M, centers, sd)
    return JointSample(bodies, centers, bound)


class CenterErrors(NamedTuple):
    """Centres of a joint or a sphere by several estimators, from one sample."""

    errors: Mapping[str, Float[Array, "center direction"]]
    """Difference from the true centres by estimator, in metres."""

    variance: float
    """Cramer-Rao bound of the squared error of a centre, in m^2."""

    covariances: Sequence[Float[Array, "3 3"]] = ()
    """Covariance of each centre that the last of the estimators states, in m^2."""


@dataclass(frozen=True, slots=True)
class CenterAccuracy:
    """Errors of joint centres over many runs of one setting."""

    swing: float
    """Range of motion: rms rotation about each axis, in degrees."""

    noise: float
    """Standard deviation of orientations in degrees, or of markers in millimetres."""

    rms: Mapping[str, float]
    """Error of a centre by estimator, rms in metres; last the Cramer-Rao "bound"."""

    bias: Mapping[str, float]
    """Length of the mean error by estimator, in metres."""

    nees: float
    """Normalised estimation error squared; 3 if the stated covariance is right."""

    def over_bound(self, estimator: str) -> float:
        """Return the error of an estimator over the bound."""
        return self.rms[estimator] / self.rms["bound"]


Estimate = Callable[[np.random.Generator, float, float], CenterErrors]
"""Draws a sample of a range of motion and a noise, and estimates its centres."""


def measure_accuracy(
    estimate: Estimate, swing: float, noise: float, rng: np.random.Generator, runs: int
) -> CenterAccuracy:
    """Return the errors of all estimators over many runs of one setting."""
    every: dict[str, list[Array]] = {}
    variances, nees = [], []
    for _ in range(runs):
        errors, variance, covariances = estimate(rng, swing, noise)
        for name, error in errors.items():
            every.setdefault(name, []).append(error)
        variances.append(variance)
        default = list(errors.values())[-1]
        nees += [
            float(error @ np.linalg.solve(covariance, error))
            for error, covariance in zip(default, covariances, strict=False)
        ]
    rms, bias = {}, {}
    for name, samples in every.items():
        rms[name] = float(np.sqrt(np.mean(np.sum(np.square(samples), axis=-1))))
        bias[name] = float(np.linalg.norm(np.mean(samples, axis=(0, 1))))
    rms["bound"] = float(np.sqrt(np.mean(variances)))
    return CenterAccuracy(swing, noise, rms, bias, float(np.mean(nees or [np.nan])))


Setting = tuple[float, float, Sequence[int] | np.random.Generator]
"""Range of motion, noise, and the seed or stream of random numbers."""


def measure_grid(
    effort: Effort,
    name: str,
    unit: str,
    estimate: Estimate,
    settings: Iterable[Setting],
    runs: int,
) -> list[CenterAccuracy]:
    """Return the errors of every setting.

    Args:
        effort: Number of runs and progress.
        name: Name of the experiment.
        unit: Unit of the noise, such as " mm".
        estimate: Draws samples and estimates centres.
        settings: The settings.
        runs: Runs of one setting of a full experiment.
    """
    cells = []
    for swing, noise, seed in settings:
        effort.report(f"{name}: range {swing:g}°, noise {noise:g}{unit}")
        rng = np.random.default_rng(seed)
        runs_here = effort.runs(runs)
        cells.append(measure_accuracy(estimate, swing, noise, rng, runs_here))
    return cells


def error_panels(
    cells: Sequence[CenterAccuracy], title: str, names: Iterable[str], scale: float
) -> Panels:
    """Return errors against the range, one panel per noise, by estimator.

    Args:
        cells: Errors of all settings.
        title: Title of a panel, with a placeholder for the noise.
        names: Estimators to show.
        scale: Factor on the errors.
    """
    return {
        title.format(noise): {
            name: [(c.swing, scale * c.rms[name]) for c in cells if c.noise == noise]
            for name in names
        }
        for noise in sorted({c.noise for c in cells})
    }


def hip_settings(
    effort: Effort, stream: int, noises: Sequence[float], swings: Sequence[float]
) -> list[Setting]:
    """Return all settings of hips: range, noise and seed."""
    return [
        (swing, noise, (effort.seed, stream, i, j))
        for i, noise in enumerate(noises)
        for j, swing in enumerate(swings)
    ]
