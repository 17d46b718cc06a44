"""Knight2007, Secs. 2.1 and 2.2, where its data were whole spheres: caps and arcs."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from jaxtyping import Float

from marey.joints.sphere.fit import SphereEstimator, SphereKind
from marey.joints.sphere.gdke import fit_sphere
from marey.numerics import geometry
from marey.papers.experiment import Effort, Experiment
from marey.papers.knight2007 import plots as plots
from marey.papers.knight2007 import samples as samples
from marey.report import Table

Array = np.ndarray

ESTIMATORS: tuple[SphereEstimator, ...] = ("kasa", "corrected", "geometric")
RUNS = 100
POINTS = 1000

HALF_ANGLES = (10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0)
CAP_NOISES = (0.003, 0.01, 0.03)

REACHES = (15.0, 30.0, 57.3, 90.0, 180.0)
ARC_NOISES = (0.01, 0.05)

# The paper names no threshold for its condition number; a plane needs a large one.
CONDITION = 100.0


def caps(effort: Effort) -> Experiment:
    """On a cap of the sphere the bias of the closed form is not small."""
    rng = np.random.default_rng((effort.seed, 2))
    rows, panels = [], {}
    for noise in CAP_NOISES:
        effort.say(f"caps: noise {100 * noise:g} % of the radius")
        lines: dict[str, list[tuple[float, float]]] = {}
        for degrees in HALF_ANGLES:
            found = _errors(
                rng,
                partial(samples.cap, rng, POINTS, np.radians(degrees)),
                noise,
                effort.runs(RUNS),
                np.eye(3),
            )
            rows.append(_row(degrees, noise, found))
            for name, value in found.items():
                lines.setdefault(name, []).append((degrees, 100.0 * value[0]))
        panels[f"noise {100 * noise:g} % of the radius"] = lines
    return Experiment(
        title="Where the bias of the closed form is not small (beyond Sec. 2.2)",
        tables={
            _caption("a cap", effort): Table(_columns("half angle °"), tuple(rows))
        },
        note=(
            "The paper's Monte-Carlo covers whole spheres, on which the bias cancels. "
            "A hip shows a cap: noise widens C in c = mean + C^-1 S / 2 and draws the "
            "centre towards the markers. Corrected takes the noise off C; geometric is "
            "the least squares of the radii. Where the bound nears the radius itself "
            "(10°, 3 %), no estimator knows the centre."
        ),
        figures={
            "caps": plots.error_drawing(
                "Centres from caps of a sphere", panels, "half angle of the cap, °"
            )
        },
    )


def circles(effort: Effort) -> Experiment:
    """Circles and cylinders by the null vector, and how a hinge is told (Eq. 6)."""
    rng = np.random.default_rng((effort.seed, 6))
    rows, panels = [], {}
    for noise in ARC_NOISES:
        effort.say(f"circles: noise {100 * noise:g} % of the radius")
        lines: dict[str, list[tuple[float, float]]] = {}
        for degrees in REACHES:
            found = _errors(
                rng,
                partial(samples.arc, rng, POINTS, np.radians(degrees)),
                noise,
                effort.runs(RUNS),
                np.eye(3)[:, :2],
            )
            rows.append(_row(degrees, noise, found))
            for name, value in found.items():
                lines.setdefault(name, []).append((degrees, 100.0 * value[0]))
        panels[f"noise {100 * noise:g} % of the radius"] = lines
    return Experiment(
        title="Planar motion: circle, cylinder and the kind of joint (Eq. 6)",
        tables={
            _caption("an arc", effort): Table(_columns("reach ±°"), tuple(rows)),
            "Three markers on a cylinder, 300 frames": _cylinders(rng, effort),
            "Kind of joint told right, %": _kinds(rng, effort),
        },
        note=(
            "Eq. 6 on an arc has the bias of Eq. 5 on a cap. The paper tells a hinge "
            "by the condition number of C, here above 100 (it names no threshold): "
            "that also calls small caps planar, never finds markers at rest, and "
            "misses planes that noise has filled. Ours holds every moment against "
            "the noise; an arc of ±20° with 3 % of noise is lost in that, and called "
            "fixed."
        ),
        figures={
            "circles": plots.error_drawing(
                "Centres from arcs of a circle", panels, "arc to either side, °"
            )
        },
    )


def _caption(what: str, effort: Effort) -> str:
    return (
        f"Error of the centre on {what}, % of the radius, {POINTS} points, "
        f"{effort.runs(RUNS)} runs a row"
    )


def _errors(
    rng: np.random.Generator,
    shape: Callable[[], Float[Array, "point 3"]],
    noise: float,
    runs: int,
    basis: Float[Array, "3 directions"],
) -> dict[str, tuple[float, float]]:
    """Return rms error and bias of each estimator, radius 1, and the bound."""
    centers: dict[str, list[Array]] = {name: [] for name in ESTIMATORS}
    least = []
    kind: SphereKind = "ball" if basis.shape[1] == 3 else "hinge"
    for _ in range(runs):
        way = shape()
        points = way + noise * rng.normal(size=way.shape)
        least.append(samples.bound_of(way @ basis, noise) ** 2)
        for name in ESTIMATORS:
            sphere = fit_sphere(points, estimator=name, kind=kind)
            centers[name].append(sphere.center @ basis)
    found = {
        name: (
            float(np.sqrt(np.mean(np.sum(np.square(c), axis=1)))),
            float(np.linalg.norm(np.mean(c, axis=0))),
        )
        for name, c in centers.items()
    }
    return found | {"bound": (float(np.sqrt(np.mean(least))), 0.0)}


def _columns(first: str) -> tuple[str, ...]:
    return (
        first,
        "noise / R %",
        "paper bias",
        *(f"{name} rms" for name in ("paper", *ESTIMATORS[1:])),
        "bound",
        "paper / bound",
        "geometric / bound",
    )


def _row(
    degrees: float, noise: float, found: dict[str, tuple[float, float]]
) -> tuple[str | float, ...]:
    bound = found["bound"][0]
    return (
        f"{degrees:g}",
        100.0 * noise,
        round(100.0 * found["kasa"][1], 3),
        *(round(100.0 * found[name][0], 3) for name in ESTIMATORS),
        round(100.0 * bound, 3),
        round(found["kasa"][0] / bound, 2),
        round(found["geometric"][0] / bound, 2),
    )


def _cylinders(rng: np.random.Generator, effort: Effort) -> Table:
    """Return how well axis and distance from it are found, and known to be."""
    rows = []
    for degrees in REACHES[:-1]:
        off, turned, nees = [], [], []
        for _ in range(effort.runs(RUNS)):
            points = samples.cylinder(rng, 300, np.radians(degrees), 3)
            sphere = fit_sphere(points + 0.01 * rng.normal(size=points.shape))
            if sphere.kind != "hinge":
                continue
            axis = sphere.axis * np.sign(sphere.axis[2])
            tilt = axis[:2]
            off.append(np.sum(sphere.center[:2] ** 2))
            turned.append(np.sum(tilt**2))
            doubt = sphere.axis_covariance[:2, :2]
            nees.append(tilt @ np.linalg.solve(doubt, tilt))
        rows.append(
            (
                f"{degrees:g}",
                round(100.0 * len(off) / effort.runs(RUNS), 1),
                round(100.0 * float(np.sqrt(np.mean(off))), 3),
                round(float(np.degrees(np.sqrt(np.mean(turned)))), 3),
                round(float(np.mean(nees)), 2),
            )
        )
    columns = (
        "reach ±°",
        "told a hinge %",
        "off the axis, % of R",
        "axis off °",
        "axis NEES (2 is honest)",
    )
    return Table(columns, tuple(rows))


def _kinds(rng: np.random.Generator, effort: Effort) -> Table:
    """Return how often the kind is right, by us and by a condition number."""
    runs = effort.runs(RUNS)
    rows = []
    for noise in (0.001, 0.01, 0.03):
        for name, draw in _MOTIONS.items():
            right = np.zeros(2)
            for _ in range(runs):
                points = draw(rng)
                points = points + noise * rng.normal(size=points.shape)
                mine = fit_sphere(points).kind
                theirs = _by_condition(points)
                true = name.partition(",")[0]
                right += [theirs == true, mine == true]
            rows.append((name, 100.0 * noise, *(100.0 * right / runs)))
    columns = ("motion", "noise / R %", "condition number", "ours")
    return Table(columns, tuple(tuple(row) for row in rows))


def _by_condition(points: Float[Array, "point 3"]) -> str:
    value = np.linalg.eigvalsh(np.cov(points.T, bias=True))
    return "hinge" if value[-1] > CONDITION * value[0] else "ball"


def _turned(
    rng: np.random.Generator, swing: Sequence[float]
) -> Float[Array, "point 3"]:
    R = geometry.rotation_exp(np.asarray(swing) * rng.normal(size=(400, 3)))
    return np.asarray(R @ np.array([0.8, 0.0, 0.6]))


_MOTIONS: dict[str, Callable[[np.random.Generator], Array]] = {
    "ball, 30° rms": lambda rng: _turned(rng, (0.5, 0.5, 0.5)),
    "ball, a cap of 15°": lambda rng: samples.cap(rng, 400, np.radians(15.0)),
    "hinge, ±57°": lambda rng: samples.arc(rng, 400, 1.0),
    "hinge, ±20°": lambda rng: samples.arc(rng, 400, np.radians(20.0)),
    "fixed": lambda rng: np.tile([1.0, 0.0, 0.0], (400, 1)),
}
