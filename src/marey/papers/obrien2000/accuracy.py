"""OBrien2000: how near the joint centres come to the least error possible.

The paper has no experiment of this kind: it is what its method, and ours, would need to
show before the tables of linkages and people mean anything.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from marey.bodies import Bodies
from marey.joints import fit_joints
from marey.papers import pairs as pairs
from marey.papers.experiment import Effort, Experiment
from marey.papers.plots import PAPER, accuracy_drawing
from marey.report import Table

Array = np.ndarray
Sample = tuple[Bodies, Float[Array, "2 3"], Float[Array, "6 6"]]
"""Bodies, their true centres, and the bound."""

ESTIMATORS = ("least_squares", "corrected", "auto")
RUNS = 200

SWINGS = (5.0, 10.0, 20.0, 45.0)
TURN_NOISES = (0.1, 0.5, 1.0, 2.0)
SENSOR_NOISE = 1e-3

THIGH_SWINGS = (5.0, 10.0, 20.0, 35.0)
MARKER_NOISES = (0.2, 1.0, 3.0)

# Four markers on a thigh and four on a pelvis, seen from the hip, in millimetres.
THIGH = ((70, 30, -160), (-50, 60, -230), (40, -50, -290), (0, 50, -370))
PELVIS = ((200, 60, 100), (-30, 70, 120), (190, -100, 120), (-20, -80, 110))
HIP_MARKERS = 1e-3 * np.array([THIGH, PELVIS])


@dataclass(frozen=True, slots=True)
class Cell:
    """Many runs of one setting."""

    swing: float
    """Rms of the joint's rotation about each axis, in degrees."""

    noise: float
    """Of orientations in degrees, or of markers in millimetres."""

    rms: dict[str, float]
    """Error of a centre by estimator, in metres."""

    bound: float
    """The least possible, in metres."""

    nees: float
    """Squared error in the metric of its own covariance; 3 when that is honest."""

    @property
    def ratio(self) -> float:
        """Error of the default against the bound."""
        return self.rms["auto"] / self.bound


def sensor_sample(
    rng: np.random.Generator, swing: float, noise: float, n_frames: int = 3000
) -> Sample:
    """Return a joint seen by two 6-DoF sensors with 1 mm of noise.

    Args:
        rng: Draws it.
        swing: Rms rotation about each axis, in degrees.
        noise: Of the orientations per axis, in degrees.
        n_frames: Length.
    """
    turn = float(np.radians(noise))
    R_b_a = pairs.swinging(rng, n_frames, np.full(3, np.radians(swing)))
    T = pairs.joined(rng, R_b_a)
    bodies = pairs.as_sensors(pairs.shaken(rng, T, SENSOR_NOISE, turn))
    centers = np.stack([pairs.CENTER_A, pairs.CENTER_B])
    return bodies, centers, pairs.bound_of_sensors(T, SENSOR_NOISE, turn)


def marker_sample(
    rng: np.random.Generator, swing: float, noise: float, n_frames: int = 1000
) -> Sample:
    """Return a hip seen by four markers on the thigh and four on the pelvis.

    Args:
        rng: Draws it.
        swing: Rms rotation of the thigh about two axes, in degrees; half of it about
            its own length.
        noise: Of the markers per axis, in millimetres.
        n_frames: Length.
    """
    R_b_a = pairs.swinging(rng, n_frames, np.radians(swing) * np.array([1, 1, 0.5]))
    centers = np.zeros((2, 3))
    T = pairs.joined(rng, R_b_a, centers[0], centers[1])
    bodies = pairs.as_markers(rng, T, HIP_MARKERS, 1e-3 * noise)
    return (
        bodies,
        centers,
        pairs.bound_of_markers(T, HIP_MARKERS, centers, 1e-3 * noise),
    )


def cell(
    sample: Callable[[np.random.Generator, float, float], Sample],
    swing: float,
    noise: float,
    *,
    seed: Sequence[int],
    runs: int,
) -> Cell:
    """Return what many runs of one setting give."""
    rng = np.random.default_rng(seed)
    square: dict[str, list[float]] = {name: [] for name in ESTIMATORS}
    least, nees = [], []
    for _ in range(runs):
        bodies, centers, bound = sample(rng, swing, noise)
        for name in ESTIMATORS:
            fits = fit_joints(bodies, estimator=name, mediation=False)
            off = np.stack([fits.center_a[0], fits.center_b[0]]) - centers
            square[name].append(np.sum(off**2) / 2.0)
        least.append(np.trace(bound) / 2.0)
        # `off` and `fits` are those of the last estimator, the default.
        nees += [
            off[k] @ np.linalg.solve(fits.covariance[0][s, s], off[k])
            for k, s in enumerate((slice(0, 3), slice(3, 6)))
        ]
    rms = {name: float(np.sqrt(np.mean(values))) for name, values in square.items()}
    return Cell(swing, noise, rms, float(np.sqrt(np.mean(least))), float(np.mean(nees)))


def table_of(cells: Sequence[Cell], unit: str) -> Table:
    """Return cells as a table, the paper's method beside the others."""
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
    rows: list[tuple[str | float, ...]] = [
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
    "The paper's method is plain least squares; noisy orientations pull its centres "
    "towards the sensors. Unbiased is the same with that taken out, ours the default "
    "(maximum likelihood). The bound is that of Cramer and Rao, the least error any "
    "unbiased estimator can have. NEES is the squared error of a centre in the metric "
    "of its own stated covariance: 3 when the stated errors are honest."
)


def sensors(effort: Effort) -> Experiment:
    """Joint centres from 6-DoF sensors, against the least error possible."""
    cells = []
    for i, swing in enumerate(SWINGS):
        for j, noise in enumerate(TURN_NOISES):
            effort.say(f"sensors: range {swing:g}°, noise {noise:g}°")
            seed = (effort.seed, 41, i, j)
            runs = effort.runs(RUNS)
            cells.append(cell(sensor_sample, swing, noise, seed=seed, runs=runs))
    caption = f"3000 frames, 1 mm of position noise, {effort.runs(RUNS)} runs a row"
    return Experiment(
        title="Joint centres from 6-DoF sensors (Sec. 3.1)",
        tables={caption: table_of(cells, "°")},
        note=NOTE,
        figures={"accuracy-sensors": _drawing(cells, "orientation noise", "°")},
    )


def markers(effort: Effort) -> Experiment:
    """Joint centres from bodies of markers, against the least error possible."""
    cells = []
    for i, noise in enumerate(MARKER_NOISES):
        for j, swing in enumerate(THIGH_SWINGS):
            effort.say(f"markers: range {swing:g}°, noise {noise:g} mm")
            seed = (effort.seed, 42, i, j)
            runs = effort.runs(RUNS)
            cells.append(cell(marker_sample, swing, noise, seed=seed, runs=runs))
    caption = f"A hip, 4 + 4 markers, 1000 frames, {effort.runs(RUNS)} runs a row"
    return Experiment(
        title="Joint centres from optical markers (Sec. 3.1)",
        tables={caption: table_of(cells, "mm")},
        note=NOTE + " The markers' places on their bodies are known.",
        figures={"accuracy-markers": _drawing(cells, "marker noise", " mm")},
    )


def _drawing(cells: Sequence[Cell], what: str, unit: str) -> Callable[..., None]:
    panels = {}
    for noise in sorted({c.noise for c in cells}):
        mine = [c for c in cells if c.noise == noise]
        panels[f"{what} {noise:g}{unit}"] = {
            PAPER: [(c.swing, 1e3 * c.rms["least_squares"]) for c in mine],
            "unbiased": [(c.swing, 1e3 * c.rms["corrected"]) for c in mine],
            "ours": [(c.swing, 1e3 * c.rms["auto"]) for c in mine],
            "bound": [(c.swing, 1e3 * c.bound) for c in mine],
        }
    return accuracy_drawing(panels)
