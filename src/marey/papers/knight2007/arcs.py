"""Knight2007, Secs. 2.1 and 2.2, extended from whole spheres to caps and arcs."""

from collections.abc import Callable

import numpy as np

from marey.joints import SphereEstimator, SphereKind, fit_sphere
from marey.numerics import Array, Float, geometry
from marey.papers.frame import Cells, Drawing, Effort, Experiment, experiment, table
from marey.papers.joint_samples import CenterErrors, error_panels, measure_grid
from marey.papers.knight2007 import samples
from marey.papers.measures import rms
from marey.report import Table

ESTIMATORS: tuple[SphereEstimator, ...] = ("kasa", "corrected", "geometric")
RUNS = 100
POINTS = 1000

HALF_ANGLES_DEG = (10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0)
CAP_NOISES = (0.003, 0.01, 0.03)

HALF_ARCS_DEG = (15.0, 30.0, 57.3, 90.0, 180.0)
ARC_NOISES = (0.01, 0.05)

MAX_CONDITION_NUMBER = 100.0
"""Condition number of C above which motion is called planar. The paper gives none;
chosen by hand."""


Sample = Callable[[np.random.Generator, int, float], Float[Array, "point 3"]]
"""Draws a number of points of an angle on the unit sphere."""


def compare_estimators(
    effort: Effort,
    rng: np.random.Generator,
    sample: Sample,
    words: tuple[str, str],
    angles_deg: tuple[float, ...],
    noises: tuple[float, ...],
) -> tuple[Table, Drawing]:
    """Return errors of centres by angle and noise, as a table and a drawing.

    Args:
        effort: Number of runs and progress.
        rng: Draws samples and noise.
        sample: Draws points of a cap or an arc.
        words: What the samples are, and the name of their angle.
        angles_deg: Angles of the samples, in degrees.
        noises: Standard deviations of a coordinate, as fractions of the radius.
    """
    shape, angle = words
    # An arc determines the centre in its plane only.
    kind: SphereKind = "ball" if sample is samples.sample_cap else "hinge"
    n = 3 if kind == "ball" else 2

    def estimate(
        rng: np.random.Generator, degrees: float, noise: float
    ) -> CenterErrors:
        directions = sample(rng, POINTS, float(np.radians(degrees)))
        points = directions + noise * rng.normal(size=directions.shape)
        bound = samples.cramer_rao_bound(directions[:, :n], noise)
        errors: dict[str, Array] = {}
        for name in ESTIMATORS:
            sphere = fit_sphere(points, estimator=name, kind=kind)
            errors[name] = sphere.center[None, :n]
        return CenterErrors(errors, bound**2)

    settings = [(degrees, noise, rng) for noise in noises for degrees in angles_deg]
    cells = measure_grid(effort, shape, "", estimate, settings, RUNS)
    rows: list[Cells] = [
        (
            f"{c.swing:g}",
            100.0 * c.noise,
            round(100.0 * c.bias["kasa"], 3),
            *(round(100.0 * size, 3) for size in c.rms.values()),
            round(c.over_bound("kasa"), 2),
            round(c.over_bound("geometric"), 2),
        )
        for c in cells
    ]
    header = (
        f"{angle} ° | noise / R % | paper bias | paper rms | corrected rms | "
        "geometric rms | bound | paper / bound | geometric / bound"
    )
    names = (*ESTIMATORS, "bound")
    drawing = samples.error_drawing(
        f"Centres from {shape}",
        error_panels(cells, "noise {:.1%} of the radius", names, 100.0),
        f"{angle}, °",
        "error of the centre, % of the radius",
    )
    return table(header, rows), drawing


def _caption(what: str, effort: Effort) -> str:
    return (
        f"Error of the centre on {what}, % of the radius, {POINTS} points, "
        f"{effort.runs(RUNS)} runs per row"
    )


@experiment("Where the bias of the closed form is not small (beyond Sec. 2.2)")
def caps(effort: Effort) -> Experiment:
    """Bias of the closed form on a cap of the sphere (beyond Sec. 2.2).

    The paper's Monte-Carlo covers whole spheres, on which the bias cancels. A hip shows
    a cap: noise inflates C in c = mean + C^-1 S / 2 and biases the centre towards the
    markers. Corrected subtracts the noise from C; geometric is the least squares of the
    radii. Where the bound approaches the radius (10°, 3 %), no estimator determines the
    centre.
    """
    rng = np.random.default_rng((effort.seed, 2))
    words = ("caps of a sphere", "half angle")
    errors, drawing = compare_estimators(
        effort, rng, samples.sample_cap, words, HALF_ANGLES_DEG, CAP_NOISES
    )
    return Experiment(
        tables={_caption("a cap", effort): errors}, figures={"caps": drawing}
    )


@experiment("Planar motion: circle, cylinder and the kind of joint (Eq. 6)")
def circles(effort: Effort) -> Experiment:
    """Circles and cylinders by the null vector, and the test for a hinge (Eq. 6).

    Eq. 6 on an arc has the bias of Eq. 5 on a cap. The paper recognises a hinge by the
    condition number of C, here above 100 (it gives no threshold). That test also calls
    small caps planar, never recognises markers at rest, and misses planes that noise
    has filled. Ours tests every moment against the noise; an arc of ±20° with 3 % of
    noise is not significant and is called fixed.
    """
    rng = np.random.default_rng((effort.seed, 6))
    words = ("arcs of a circle", "half arc")
    errors, drawing = compare_estimators(
        effort, rng, samples.sample_arc, words, HALF_ARCS_DEG, ARC_NOISES
    )
    return Experiment(
        tables={
            _caption("an arc", effort): errors,
            "Three markers on a cylinder, 300 frames": _cylinders(rng, effort),
            "Kind of joint recognised, %": _kinds(rng, effort),
        },
        figures={"circles": drawing},
    )


def _cylinders(rng: np.random.Generator, effort: Effort) -> Table:
    """Return errors of axis and centre of a hinge, and the NEES of the axis."""
    rows: list[Cells] = []
    runs = effort.runs(RUNS)
    for degrees in HALF_ARCS_DEG[:-1]:
        distances, tilts, nees = [], [], []
        for _ in range(runs):
            points = samples.sample_cylinder(rng, 300, np.radians(degrees), 3)
            sphere = fit_sphere(points + 0.01 * rng.normal(size=points.shape))
            if sphere.kind != "hinge":
                continue
            tilt = (sphere.axis * np.sign(sphere.axis[2]))[:2]
            distances.append(np.linalg.norm(sphere.center[:2]))
            tilts.append(np.linalg.norm(tilt))
            covariance = sphere.axis_covariance[:2, :2]
            nees.append(tilt @ np.linalg.solve(covariance, tilt))
        rows.append(
            (
                f"{degrees:g}",
                round(100.0 * len(nees) / runs, 1),
                round(100.0 * rms(distances), 3),
                round(float(np.degrees(rms(tilts))), 3),
                round(float(np.mean(nees)), 2),
            )
        )
    header = (
        "half arc ° | recognised as hinge % | distance from axis, % of R | "
        "axis error ° | axis NEES (2 if covariance is right)"
    )
    return table(header, rows)


def _kinds(rng: np.random.Generator, effort: Effort) -> Table:
    """Return the rate of right kinds, by marey and by a condition number."""
    runs = effort.runs(RUNS)
    rows: list[Cells] = []
    for noise in (0.001, 0.01, 0.03):
        for name, draw in _MOTIONS.items():
            right = np.zeros(2)
            for _ in range(runs):
                points = draw(rng)
                points = points + noise * rng.normal(size=points.shape)
                kinds = (_kind_by_condition(points), fit_sphere(points).kind)
                right += [kind == name.partition(",")[0] for kind in kinds]
            rows.append((name, 100.0 * noise, *(100.0 * right / runs)))
    return table("motion | noise / R % | condition number | ours", rows)


def _kind_by_condition(points: Float[Array, "point 3"]) -> str:
    value = np.linalg.eigvalsh(np.cov(points.T, bias=True))
    return "hinge" if value[-1] > MAX_CONDITION_NUMBER * value[0] else "ball"


def _rotate_marker(rng: np.random.Generator) -> Float[Array, "point 3"]:
    R = geometry.rotation_exp(0.5 * rng.normal(size=(400, 3)))
    return np.asarray(R @ np.array([0.8, 0.0, 0.6]))


_MOTIONS: dict[str, Callable[[np.random.Generator], Array]] = {
    "ball, 30° rms": _rotate_marker,
    "ball, a cap of 15°": lambda rng: samples.sample_cap(rng, 400, np.radians(15.0)),
    "hinge, ±57°": lambda rng: samples.sample_arc(rng, 400, 1.0),
    "hinge, ±20°": lambda rng: samples.sample_arc(rng, 400, np.radians(20.0)),
    "fixed": lambda rng: np.tile([1.0, 0.0, 0.0], (400, 1)),
}
