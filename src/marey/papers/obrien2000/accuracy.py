"""OBrien2000, Sec. 3.1: errors of joint centres against the Cramer-Rao bound.

The paper has no experiment of this kind. It shows how far the tables of linkages and
people can depend on the method.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from marey.bodies import Bodies
from marey.joints import fit_joints
from marey.papers import joint_samples as joint_samples
from marey.papers.experiment import Effort, Experiment
from marey.papers.measures import Cells
from marey.papers.plots import PAPER, accuracy_drawing
from marey.report import Table

Array = np.ndarray
JointSample = tuple[Bodies, Float[Array, "2 3"], Float[Array, "6 6"]]
"""Bodies, their true joint centres in metres, and the Cramer-Rao bound."""

ESTIMATORS = ("least_squares", "corrected", "auto")
RUNS = 200

SWINGS_DEG = (5.0, 10.0, 20.0, 45.0)
ROTATION_NOISES_DEG = (0.1, 0.5, 1.0, 2.0)
SENSOR_NOISE_M = 1e-3

THIGH_SWINGS_DEG = (5.0, 10.0, 20.0, 35.0)
MARKER_NOISES_MM = (0.2, 1.0, 3.0)

# Four markers on a thigh and four on a pelvis, seen from the hip, in millimetres.
THIGH = ((70, 30, -160), (-50, 60, -230), (40, -50, -290), (0, 50, -370))
PELVIS = ((200, 60, 100), (-30, 70, 120), (190, -100, 120), (-20, -80, 110))
HIP_MARKERS_M = 1e-3 * np.array([THIGH, PELVIS])


@dataclass(frozen=True, slots=True)
class CenterAccuracy:
    """Errors of joint centres over many runs of one setting."""

    swing: float
    """Range of motion: rms rotation about each axis, in degrees."""

    noise: float
    """Standard deviation of orientations in degrees, or of markers in millimetres."""

    rms: dict[str, float]
    """Error of a centre by estimator, rms in metres."""

    bound: float
    """Cramer-Rao bound of that error, in metres."""

    nees: float
    """Normalised estimation error squared; 3 if the stated covariance is right."""

    @classmethod
    def from_runs(
        cls,
        swing: float,
        noise: float,
        squared_errors: Mapping[str, Sequence[float]],
        variances: Sequence[float],
        nees: Sequence[float],
    ) -> "CenterAccuracy":
        """Return means over runs: squared errors and bounds in m^2, and the NEES."""
        means = {name: np.mean(values) for name, values in squared_errors.items()}
        rms = {name: float(np.sqrt(mean)) for name, mean in means.items()}
        bound = float(np.sqrt(np.mean(variances)))
        return cls(swing, noise, rms, bound, float(np.mean(nees)))

    @property
    def ratio(self) -> float:
        """Error of the default estimator over the bound."""
        return self.rms["auto"] / self.bound


def sensor_sample(
    rng: np.random.Generator, swing: float, noise: float, n_frames: int = 3000
) -> JointSample:
    """Return a joint seen by two 6-DoF sensors with 1 mm of noise.

    Args:
        rng: Draws motion and noise.
        swing: Rms rotation about each axis, in degrees.
        noise: Standard deviation of orientations per axis, in degrees.
        n_frames: Number of frames.
    """
    rotation_noise = float(np.radians(noise))
    R_b_a = joint_samples.ball_joint_rotations(
        rng, n_frames, np.full(3, np.radians(swing))
    )
    T = joint_samples.poses_of_joined_bodies(rng, R_b_a)
    bodies = joint_samples.bodies_from_sensors(
        joint_samples.add_pose_noise(rng, T, SENSOR_NOISE_M, rotation_noise)
    )
    centers = np.stack([joint_samples.CENTER_A, joint_samples.CENTER_B])
    return (
        bodies,
        centers,
        joint_samples.cramer_rao_bound_of_sensors(T, SENSOR_NOISE_M, rotation_noise),
    )


def marker_sample(
    rng: np.random.Generator, swing: float, noise: float, n_frames: int = 1000
) -> JointSample:
    """Return a hip seen by four markers on the thigh and four on the pelvis.

    Args:
        rng: Draws motion and noise.
        swing: Rms rotation of the thigh about two axes, in degrees; half of it about
            its own length.
        noise: Standard deviation of markers per axis, in millimetres.
        n_frames: Number of frames.
    """
    R_b_a = joint_samples.ball_joint_rotations(
        rng, n_frames, np.radians(swing) * np.array([1, 1, 0.5])
    )
    centers = np.zeros((2, 3))
    T = joint_samples.poses_of_joined_bodies(rng, R_b_a, centers[0], centers[1])
    bodies = joint_samples.bodies_from_markers(rng, T, HIP_MARKERS_M, 1e-3 * noise)
    return (
        bodies,
        centers,
        joint_samples.cramer_rao_bound_of_markers(
            T, HIP_MARKERS_M, centers, 1e-3 * noise
        ),
    )


def measure_accuracy(
    sample: Callable[[np.random.Generator, float, float], JointSample],
    swing: float,
    noise: float,
    *,
    seed: Sequence[int],
    runs: int,
) -> CenterAccuracy:
    """Return the errors of all estimators over many runs of one setting."""
    rng = np.random.default_rng(seed)
    squared: dict[str, list[float]] = {name: [] for name in ESTIMATORS}
    variances, nees = [], []
    for _ in range(runs):
        bodies, centers, bound = sample(rng, swing, noise)
        for name in ESTIMATORS:
            fits = fit_joints(bodies, estimator=name, mediation=False)
            error = np.stack([fits.center_a[0], fits.center_b[0]]) - centers
            squared[name].append(np.sum(error**2) / 2.0)
        variances.append(np.trace(bound) / 2.0)
        # `error` and `fits` are those of the last estimator, the default.
        nees += [
            error[k] @ np.linalg.solve(fits.covariance[0][s, s], error[k])
            for k, s in enumerate((slice(0, 3), slice(3, 6)))
        ]
    return CenterAccuracy.from_runs(swing, noise, squared, variances, nees)


def accuracy_table(cells: Sequence[CenterAccuracy], unit: str) -> Table:
    """Return a table with one row per setting and one column per estimator."""
    columns = (
        "range °",
        f"noise {unit}",
        "paper mm",
        "unbiased mm",
        "ours mm",
        "bound mm",
        "paper / bound",
        "ours / bound",
        "NEES",
    )
    rows: list[Cells] = [
        (
            f"{c.swing:g}",
            c.noise,
            *(1e3 * c.rms[name] for name in ESTIMATORS),
            1e3 * c.bound,
            round(c.rms["least_squares"] / c.bound, 3),
            round(c.ratio, 3),
            round(c.nees, 3),
        )
        for c in cells
    ]
    return Table(columns, tuple(rows))


NOTE = (
    "The paper's method is ordinary least squares; noisy orientations bias its centres "
    "towards the sensors. Unbiased is least squares with that bias removed, ours the "
    "default (maximum likelihood). The bound is that of Cramer and Rao, the least "
    "error of any unbiased estimator. NEES is the normalised estimation error squared: "
    "3 if the stated covariance is right."
)


def sensors(effort: Effort) -> Experiment:
    """Joint centres from 6-DoF sensors, against the Cramer-Rao bound."""
    cells = []
    for i, swing in enumerate(SWINGS_DEG):
        for j, noise in enumerate(ROTATION_NOISES_DEG):
            effort.report(f"sensors: range {swing:g}°, noise {noise:g}°")
            seed = (effort.seed, 41, i, j)
            runs = effort.runs(RUNS)
            cells.append(
                measure_accuracy(sensor_sample, swing, noise, seed=seed, runs=runs)
            )
    caption = f"3000 frames, 1 mm of position noise, {effort.runs(RUNS)} runs a row"
    return Experiment(
        title="Joint centres from 6-DoF sensors (Sec. 3.1)",
        tables={caption: accuracy_table(cells, "°")},
        note=NOTE,
        figures={"accuracy-sensors": _accuracy_panels(cells, "orientation noise", "°")},
    )


def markers(effort: Effort) -> Experiment:
    """Joint centres from bodies of markers, against the Cramer-Rao bound."""
    cells = []
    for i, noise in enumerate(MARKER_NOISES_MM):
        for j, swing in enumerate(THIGH_SWINGS_DEG):
            effort.report(f"markers: range {swing:g}°, noise {noise:g} mm")
            seed = (effort.seed, 42, i, j)
            runs = effort.runs(RUNS)
            cells.append(
                measure_accuracy(marker_sample, swing, noise, seed=seed, runs=runs)
            )
    caption = f"A hip, 4 + 4 markers, 1000 frames, {effort.runs(RUNS)} runs a row"
    return Experiment(
        title="Joint centres from optical markers (Sec. 3.1)",
        tables={caption: accuracy_table(cells, "mm")},
        note=NOTE + " The positions of markers on their bodies are known.",
        figures={"accuracy-markers": _accuracy_panels(cells, "marker noise", " mm")},
    )


def _accuracy_panels(
    cells: Sequence[CenterAccuracy], what: str, unit: str
) -> Callable[..., None]:
    panels = {}
    for noise in sorted({c.noise for c in cells}):
        row = [c for c in cells if c.noise == noise]
        panels[f"{what} {noise:g}{unit}"] = {
            PAPER: [(c.swing, 1e3 * c.rms["least_squares"]) for c in row],
            "unbiased": [(c.swing, 1e3 * c.rms["corrected"]) for c in row],
            "ours": [(c.swing, 1e3 * c.rms["auto"]) for c in row],
            "bound": [(c.swing, 1e3 * c.bound) for c in row],
        }
    return accuracy_drawing(panels)
