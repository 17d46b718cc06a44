"""OBrien2000, Sec. 3.1: errors of joint centres against the Cramer-Rao bound.

The paper has no experiment of this kind. It shows how far the tables of linkages and
people can depend on the method.
"""

from collections.abc import Iterable, Mapping

import numpy as np

import marey
from marey.papers import joint_samples
from marey.papers.frame import Cells, Effort, Experiment, experiment, table
from marey.papers.joint_samples import CenterErrors, Estimate, JointSample, Setting
from marey.papers.plots import PAPER, Style, line_drawing
from marey.plot.style import BLUE, GOLD, INK, RED

ESTIMATORS = ("least_squares", "corrected", "auto")
RUNS = 150

SWINGS_DEG = (5.0, 10.0, 20.0, 45.0)
ROTATION_NOISES_DEG = (0.1, 0.5, 1.0, 2.0)

STYLES: Mapping[str, Style] = {
    "least_squares": {"color": RED, "marker": "o"},
    "corrected": {"color": GOLD, "marker": "s"},
    "auto": {"color": BLUE, "marker": "D"},
    "bound": {"color": INK, "linestyle": "--", "linewidth": 1.0},
}
NAMES = {"least_squares": PAPER, "corrected": "unbiased", "auto": "ours"}


def estimate_centers(sample: JointSample) -> CenterErrors:
    """Return the errors of all estimators in one sample, the default's last."""
    bodies, centers, bound = sample
    errors = {}
    for name in ESTIMATORS:
        fits = marey.fit_joints(bodies, estimator=name, mediation=False)
        errors[name] = np.stack([fits.center_a[0], fits.center_b[0]]) - centers
    covariances = fits.covariance[0, :3, :3], fits.covariance[0, 3:, 3:]
    return CenterErrors(errors, float(np.trace(bound) / 2.0), covariances)


def estimate_from_sensors(
    rng: np.random.Generator, swing: float, noise: float
) -> CenterErrors:
    """Return the errors of one sample of two sensors."""
    return estimate_centers(joint_samples.sensor_sample(rng, swing, noise))


def estimate_from_markers(
    rng: np.random.Generator, swing: float, noise: float
) -> CenterErrors:
    """Return the errors of one sample of a hip of markers."""
    return estimate_centers(joint_samples.marker_sample(rng, swing, noise))


@experiment("Joint centres from 6-DoF sensors (Sec. 3.1)")
def sensors(effort: Effort) -> Experiment:
    """Joint centres from 6-DoF sensors, against the Cramer-Rao bound.

    The paper's method is ordinary least squares; noisy orientations bias its centres
    towards the sensors. Unbiased is least squares with that bias removed, ours the
    default (maximum likelihood). The bound is that of Cramer and Rao, the least error
    of any unbiased estimator. NEES is the normalised estimation error squared: 3 if
    the stated covariance is right.
    """
    every = ROTATION_NOISES_DEG
    noises = every if effort.full else every[1::2]
    settings = [
        (swing, noise, (effort.seed, 41, i, j))
        for i, swing in enumerate(SWINGS_DEG)
        for j, noise in enumerate(noises)
    ]
    caption = f"3000 frames, 1 mm of position noise, {effort.runs(RUNS)} runs a row"
    return _measure(effort, "sensors", "°", estimate_from_sensors, settings, caption)


@experiment("Joint centres from optical markers (Sec. 3.1)")
def markers(effort: Effort) -> Experiment:
    """Joint centres from bodies of markers, against the Cramer-Rao bound.

    Estimators, bound and NEES are those of the experiment with sensors. The positions
    of markers on their bodies are known.
    """
    every, swings = joint_samples.MARKER_NOISES_MM, joint_samples.THIGH_SWINGS_DEG
    noises = every if effort.full else every[::2]
    settings = joint_samples.hip_settings(effort, 42, noises, swings)
    caption = f"A hip, 4 + 4 markers, 1000 frames, {effort.runs(RUNS)} runs a row"
    return _measure(effort, "markers", " mm", estimate_from_markers, settings, caption)


def _measure(
    effort: Effort,
    name: str,
    unit: str,
    estimate: Estimate,
    settings: Iterable[Setting],
    caption: str,
) -> Experiment:
    cells = joint_samples.measure_grid(effort, name, unit, estimate, settings, RUNS)
    header = (
        f"range ° | noise {unit.strip()} | paper mm | unbiased mm | ours mm | "
        "bound mm | paper / bound | ours / bound | NEES"
    )
    rows: list[Cells] = [
        (
            f"{c.swing:g}",
            c.noise,
            *(1e3 * c.rms[name] for name in STYLES),
            round(c.over_bound("least_squares"), 3),
            round(c.over_bound("auto"), 3),
            round(c.nees, 3),
        )
        for c in cells
    ]
    what = "orientation" if name == "sensors" else "marker"
    title = f"{what} noise {{:g}}{unit}"
    drawing = line_drawing(
        "Joint centres against the least error possible",
        joint_samples.error_panels(cells, title, STYLES, 1e3),
        ("range of motion, ° rms", "error of a joint centre, mm"),
        STYLES,
        names=NAMES,
    )
    return Experiment(
        tables={caption: table(header, rows)}, figures={f"accuracy-{name}": drawing}
    )
