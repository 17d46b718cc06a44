"""OBrien2000, Sec. 3.1: errors of joint centres against the Cramer-Rao bound.

The paper has no experiment of this kind. It shows how far the tables of linkages and
people can depend on the method.
"""

from collections.abc import Iterable, Mapping

import numpy as np

import marey
from marey.papers.experiment import Effort, Experiment, experiment, table
from marey.papers.joint_samples import (
    MARKER_NOISES_MM,
    THIGH_SWINGS_DEG,
    AccuracyGrid,
    CenterEstimates,
    Estimate,
    JointSample,
    hip_settings,
    marker_sample,
    sensor_sample,
)
from marey.papers.plots import PAPER, Style, line_drawing
from marey.plot.style import BLUE, GOLD, INK, RED

ESTIMATORS = ("least_squares", "corrected", "auto")
RUNS = 200

SWINGS_DEG = (5.0, 10.0, 20.0, 45.0)
ROTATION_NOISES_DEG = (0.1, 0.5, 1.0, 2.0)

STYLES: Mapping[str, Style] = {
    "least_squares": {"color": RED, "marker": "o"},
    "corrected": {"color": GOLD, "marker": "s"},
    "auto": {"color": BLUE, "marker": "D"},
    "bound": {"color": INK, "linestyle": "--", "linewidth": 1.0},
}
NAMES = {"least_squares": PAPER, "corrected": "unbiased", "auto": "ours"}


def estimate_centers(sample: JointSample) -> CenterEstimates:
    """Return the errors of all estimators in one sample, the default's last."""
    bodies, centers, bound = sample
    errors = {}
    for name in ESTIMATORS:
        fits = marey.fit_joints(bodies, estimator=name, mediation=False)
        errors[name] = np.stack([fits.center_a[0], fits.center_b[0]]) - centers
    covariance = fits.covariance[0]
    covariances = covariance[:3, :3], covariance[3:, 3:]
    return CenterEstimates(errors, covariances, float(np.trace(bound) / 2.0))


def estimate_from_sensors(
    rng: np.random.Generator, swing: float, noise: float
) -> CenterEstimates:
    """Return the errors of one sample of two sensors."""
    return estimate_centers(sensor_sample(rng, swing, noise))


def estimate_from_markers(
    rng: np.random.Generator, swing: float, noise: float
) -> CenterEstimates:
    """Return the errors of one sample of a hip of markers."""
    return estimate_centers(marker_sample(rng, swing, noise))


@experiment("Joint centres from 6-DoF sensors (Sec. 3.1)")
def sensors(effort: Effort) -> Experiment:
    """Joint centres from 6-DoF sensors, against the Cramer-Rao bound.

    The paper's method is ordinary least squares; noisy orientations bias its centres
    towards the sensors. Unbiased is least squares with that bias removed, ours the
    default (maximum likelihood). The bound is that of Cramer and Rao, the least error
    of any unbiased estimator. NEES is the normalised estimation error squared: 3 if
    the stated covariance is right.
    """
    grid = AccuracyGrid(
        name="sensors", noise="orientation noise", unit="°", stream=41, runs=RUNS
    )
    settings = [
        (swing, noise, (i, j))
        for i, swing in enumerate(SWINGS_DEG)
        for j, noise in enumerate(ROTATION_NOISES_DEG)
    ]
    caption = f"3000 frames, 1 mm of position noise, {effort.runs(RUNS)} runs a row"
    return _measure(effort, grid, estimate_from_sensors, settings, caption)


@experiment("Joint centres from optical markers (Sec. 3.1)")
def markers(effort: Effort) -> Experiment:
    """Joint centres from bodies of markers, against the Cramer-Rao bound.

    Estimators, bound and NEES are those of the experiment with sensors. The positions
    of markers on their bodies are known.
    """
    grid = AccuracyGrid(
        name="markers", noise="marker noise", unit=" mm", stream=42, runs=RUNS
    )
    settings = hip_settings(MARKER_NOISES_MM, THIGH_SWINGS_DEG)
    caption = f"A hip, 4 + 4 markers, 1000 frames, {effort.runs(RUNS)} runs a row"
    return _measure(effort, grid, estimate_from_markers, settings, caption)


def _measure(
    effort: Effort,
    grid: AccuracyGrid,
    estimate: Estimate,
    settings: Iterable[tuple[float, float, tuple[int, int]]],
    caption: str,
) -> Experiment:
    cells = grid.measure(effort, estimate, settings)
    header = (
        f"range ° | noise {grid.unit.strip()} | paper mm | unbiased mm | ours mm | "
        "bound mm | paper / bound | ours / bound | NEES"
    )
    rows = (
        (
            f"{c.swing:g}",
            c.noise,
            *(1e3 * c.rms[name] for name in STYLES),
            round(c.over_bound("least_squares"), 3),
            round(c.over_bound("auto"), 3),
            round(c.nees, 3),
        )
        for c in cells
    )
    drawing = line_drawing(
        "Joint centres against the least error possible",
        grid.panels(cells, list(STYLES)),
        ("range of motion, ° rms", "error of a joint centre, mm"),
        STYLES,
        names=NAMES,
    )
    return Experiment(
        tables={caption: table(header, rows)},
        figures={f"accuracy-{grid.name}": drawing},
    )
