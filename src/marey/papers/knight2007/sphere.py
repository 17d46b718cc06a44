"""Knight2007, Sec. 2.2: Monte-Carlo of centre and radius of a sphere, and run time."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from marey.joints import SphereAccumulator, fit_sphere
from marey.numerics import Array, Bool, Float
from marey.papers.frame import Cells, Drawing, Effort, Experiment, experiment, table
from marey.papers.knight2007.samples import sample_sphere
from marey.papers.measures import rms, time_calls
from marey.papers.plots import Curve, curves_drawing, line_drawing
from marey.plot.style import BLUE, GOLD, GREEN, GREY, INK, RED
from marey.report import Table

RUNS = 5000
MEAN_CENTER = np.array([0.6, -0.2, 0.9])

PUBLISHED = {"mean": 2.93, "sd": 1.31, "shape": 2.378, "scale": 3.302}

ROUNDING_RATIO = 1e-12
"""Noise below this fraction of the coordinates is smaller than their rounding."""

KEPT_QUANTILE = 0.999
"""Quantile of errors above which runs are left out of the Weibull fit: four points may
lie almost in a plane, and their error has no bound. Chosen by hand."""

COUNT_BINS = (4, 10, 30, 100, 300, 1001)
NOISE_RATIO_BINS = (0.0, 0.01, 0.1, 0.3, 1.0, 10.0, np.inf)

POINT_COUNTS = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)


class MonteCarloRuns(NamedTuple):
    """Results of the Monte-Carlo, one value per sphere."""

    n_points: Float[Array, " run"]
    noise: Float[Array, " run"]
    true_radius: Float[Array, " run"]
    error: Float[Array, " run"]
    """Distance of the centre from the true one, in units of sigma / sqrt(N)."""

    uncorrected_radius: Float[Array, " run"]
    """Root mean square distance of the points from the centre found."""

    radius: Float[Array, " run"]
    """The same, corrected for the noise."""

    @property
    def noise_ratio(self) -> Float[Array, " run"]:
        """Noise over radius."""
        return np.asarray(self.noise / self.true_radius)


def run_monte_carlo(rng: np.random.Generator, runs: int) -> MonteCarloRuns:
    """Return the paper's Monte-Carlo with its distributions as printed.

    N ~ U[4, 1000], sigma ~ LogNormal(0, 10), R ~ LogNormal(0.18, 1), the centre
    N(0, 0.5) about (0.6, -0.2, 0.9).
    """
    rows = []
    for _ in range(runs):
        count = int(rng.integers(4, 1001))
        noise, radius = rng.lognormal(0.0, 10.0), rng.lognormal(0.18, 1.0)
        center = MEAN_CENTER + 0.5 * rng.normal(size=3)
        points = center + radius * sample_sphere(rng, count)
        points += noise * rng.normal(size=points.shape)
        sphere = fit_sphere(points, estimator="kasa", kind="ball")
        error = np.linalg.norm(sphere.center - center) / noise * np.sqrt(count)  # Eq. 7
        distance = np.sqrt(np.mean(np.sum((points - sphere.center) ** 2, axis=-1)))
        rows.append((count, noise, radius, error, distance, sphere.radius[0]))
    return MonteCarloRuns(*np.array(rows).T)


@experiment("Monte-Carlo of the sphere fit (Sec. 2.2, Figs. 2 and 3)")
def monte_carlo(effort: Effort) -> Experiment:
    """Centre and radius of noisy spheres: 3 sigma / sqrt(N) (Sec. 2.2, Figs. 2, 3).

    {rounding} of {runs} runs drew a noise below rounding and are left out. A few of
    four or five points, almost in a plane, have errors without bound, which dominate sd
    and Weibull shape: the column of usual runs omits the largest {unusual}, and in 5000
    runs the paper's spread and shape lie between the two. What the paper calls a bias
    is the size of the error: on a whole sphere its mean vanishes and its rms is the
    Cramer-Rao bound, 3. The squared radius grows with the noise, R^2 + 3 sigma^2, and
    is unbiased after correction, until the noise is as large as the sphere.
    """
    runs = run_monte_carlo(np.random.default_rng((effort.seed, 7)), effort.runs(RUNS))
    good = runs.noise > ROUNDING_RATIO * (runs.true_radius + 1.0)
    usual = good & (runs.error <= np.quantile(runs.error[good], KEPT_QUANTILE))
    return Experiment(
        tables={
            "Error of the centre in sigma / sqrt(N)": _summary(
                runs.error[good], runs.error[usual]
            ),
            "The law sigma / sqrt(N): mean error over it, by N and by noise": _law(
                runs, usual
            ),
            "The radius, median over the true one less 1, %": _radii(runs, good),
        },
        facts={
            "rounding": (~good).sum(),
            "runs": len(good),
            "unusual": (good & ~usual).sum(),
        },
        figures={
            "figure-2": weibull_drawing(runs.error[usual]),
            "figure-3": radius_drawing(runs, good),
            "law": law_drawing(runs, usual),
        },
    )


def _weibull(error: Float[Array, " run"]) -> tuple[float, float]:
    """Return shape and scale of the Weibull distribution of errors."""
    shape, _, scale = stats.weibull_min.fit(error, floc=0.0)
    return float(shape), float(scale)


def _summary(every: Float[Array, " run"], usual: Float[Array, " some"]) -> Table:
    ours = every, usual
    theory = [stats.chi(3, scale=np.sqrt(square)) for square in (3.0, 3.5)]
    shapes, scales = zip(*map(_weibull, ours), strict=True)
    published_rms = float(np.hypot(PUBLISHED["mean"], PUBLISHED["sd"]))
    means, sds = [e.mean() for e in ours], [e.std() for e in ours]
    rows: tuple[Cells, ...] = (
        ("runs", 5000.0, *(float(len(e)) for e in ours), "", ""),
        ("mean", PUBLISHED["mean"], *means, *(t.mean() for t in theory)),
        ("sd", PUBLISHED["sd"], *sds, *(t.std() for t in theory)),
        ("rms", published_rms, *map(rms, ours), 3.0, float(np.sqrt(10.5))),
        ("Weibull shape", PUBLISHED["shape"], *shapes, "", ""),
        ("Weibull scale", PUBLISHED["scale"], *scales, "", ""),
    )
    header = (
        " | paper | ours, every run | ours, usual runs | theory, noise << R | "
        "theory, noise >> R"
    )
    return table(header, map(_round_cells, rows))


def _round_cells(row: Cells) -> Cells:
    return tuple(c if isinstance(c, str) else round(float(c), 4) for c in row)


def _bins(
    value: Float[Array, " run"],
    edges: Sequence[float | int],
    chosen: Bool[Array, " run"],
) -> Iterator[tuple[float | int, float | int, Bool[Array, " run"]]]:
    """Yield the ends of every bin, and which of the chosen runs are in it, if any."""
    for low, high in pairwise(edges):
        in_bin = chosen & (value >= low) & (value < high)
        if in_bin.any():
            yield low, high, in_bin


def _law(runs: MonteCarloRuns, usual: Bool[Array, " run"]) -> Table:
    rows: list[Cells] = []
    for what, value, edges in (
        ("N", runs.n_points, COUNT_BINS),
        ("sigma / R", runs.noise_ratio, NOISE_RATIO_BINS),
    ):
        for low, high, in_bin in _bins(value, edges, usual):
            error, n = runs.error[in_bin], float(in_bin.sum())
            words = f"{what} {low:g} to {high - (what == 'N'):g}"
            rows.append((words, n, error.mean(), error.std() / np.sqrt(n)))
    return table(" | runs | mean error | standard error", map(_round_cells, rows))


def _radii(runs: MonteCarloRuns, good: Bool[Array, " run"]) -> Table:
    rows: list[Cells] = []
    for low, high, in_bin in _bins(runs.noise_ratio, NOISE_RATIO_BINS[:-1], good):
        true = runs.true_radius[in_bin]
        off = [
            100.0 * (np.median(r[in_bin] / true) - 1.0)
            for r in (runs.uncorrected_radius, runs.radius)
        ]
        rows.append((f"sigma / R {low:g} to {high:g}", float(in_bin.sum()), *off))
    header = " | runs | uncorrected radius | corrected radius"
    return table(header, map(_round_cells, rows))


def weibull_drawing(error: Float[Array, " run"]) -> Drawing:
    """Return a drawing in the manner of Fig. 2: the density of the error."""
    top = 9.0
    density, edges = np.histogram(error, np.linspace(0.0, top, 61), density=True)
    bars: dict[str, Any] = {"color": GREY, "drawstyle": "steps-mid", "linewidth": 0.8}
    middles = 0.5 * (edges[1:] + edges[:-1])
    curves = [Curve(middles, density, {**bars, "label": f"{len(error)} runs"})]
    x = np.linspace(0.0, top, 400)
    for name, (shape, scale), style in (
        ("paper", (PUBLISHED["shape"], PUBLISHED["scale"]), {"color": RED}),
        ("ours", _weibull(error), {"color": BLUE, "linestyle": "--"}),
    ):
        label = f"{name}: Weibull({shape:.3f}, {scale:.3f})"
        y = stats.weibull_min.pdf(x, shape, scale=scale)
        curves.append(Curve(x, y, {"linewidth": 1.6, "label": label, **style}))
    return curves_drawing(
        "Fig. 2: error of the centre",
        {"": curves},
        ("error of the centre, in σ / √N", "density"),
        size=(6.0, 3.4),
        limits=((0.0, top), None),
    )


def radius_drawing(runs: MonteCarloRuns, good: Bool[Array, " run"]) -> Drawing:
    """Return a drawing in the manner of Fig. 3: the radius against the noise."""
    x = np.geomspace(1e-3, 10.0, 200)
    expected = np.sqrt(1.0 + 3.0 * x**2)
    line: dict[str, Any] = {"color": INK, "linestyle": "--", "linewidth": 1.0}
    panels = {}
    for name, radius, colour, y in (
        ("as published: √(1 + 3 σ²/R²)", runs.uncorrected_radius, RED, expected),
        ("corrected for the noise", runs.radius, BLUE, np.ones_like(x)),
    ):
        ratio = (radius / runs.true_radius)[good]
        dots = {"color": colour, "marker": ".", "markersize": 3, "alpha": 0.45}
        panels[name] = [
            Curve(runs.noise_ratio[good], ratio, {**dots, "linestyle": ""}),
            Curve(x, y, line),
        ]
    return curves_drawing(
        "Fig. 3: the radius",
        panels,
        ("noise over radius, σ / R", "radius found over true radius"),
        size=(8.0, 3.4),
        scales=("log", "linear"),
        limits=((1e-3, 10.0), (0.0, 3.0)),
    )


def law_drawing(runs: MonteCarloRuns, usual: Bool[Array, " run"]) -> Drawing:
    """Return a drawing of the error over sigma against the number of points."""
    error, is_small = runs.error / np.sqrt(runs.n_points), runs.noise_ratio < 0.3
    dots: dict[str, Any] = {"marker": ".", "markersize": 3, "linestyle": ""}
    curves = [
        Curve(
            runs.n_points[usual & chosen],
            error[usual & chosen],
            {"color": colour, "alpha": 0.4, "label": name, **dots},
        )
        for chosen, colour, name in (
            (is_small, BLUE, "σ < 0.3 R"),
            (~is_small, GOLD, "σ ≥ 0.3 R"),
        )
    ]
    x = np.geomspace(4.0, 1000.0, 50)
    bound = {"color": INK, "linewidth": 1.4, "label": "3 / √N"}
    return curves_drawing(
        "The law 3 σ / √N",
        {"": [*curves, Curve(x, 3.0 / np.sqrt(x), bound)]},
        ("points, N", "error of the centre over σ"),
        size=(6.0, 3.6),
        scales=("log", "log"),
        limits=((4.0, 1000.0), (3e-3, 10.0)),
        legend={"loc": "lower left"},
    )


# --- speed ----------------------------------------------------------------------------


SPEED_STYLES = {
    "moments": {"color": BLUE, "marker": "o"},
    "least squares": {"color": RED, "marker": "o"},
    "one more frame": {"color": GREEN, "marker": "o"},
    "full fit": {"color": GREY, "marker": "o"},
}
SPEED_NAMES = {
    "moments": "closed form from moments (Eqs. 2–5)",
    "least squares": "linear least squares",
    "one more frame": "one more frame, streaming",
    "full fit": "full fit: kind, noise, covariance",
}


@experiment("Speed against linear least squares (Fig. 1)")
def speed(effort: Effort) -> Experiment:
    """Run time of closed form, least squares and streaming (Fig. 1).

    The paper shows the closed form ahead of least squares, without numbers. Both read
    every point once and solve a small system; which is ahead is a matter of the
    library, and neither by much. What the moments do have is that they add: one more
    frame costs the same whatever came before, and the whole fit follows from them at
    any time. The full fit also returns the kind of joint, the noise and the covariance.
    """
    rng = np.random.default_rng((effort.seed, 1))
    repeats = effort.runs(50)
    rows: list[Cells] = []
    lines: dict[str, list[tuple[float, float]]] = {name: [] for name in SPEED_NAMES}
    for n_points in [n for n in POINT_COUNTS if n <= effort.runs(POINT_COUNTS[-1])]:
        points = sample_sphere(rng, n_points) + 0.01 * rng.normal(size=(n_points, 3))
        found = {}
        for name, call in _methods(points).items():
            call()
            found[name] = float(1e6 * np.median(time_calls(call, repeats)))
            lines[name].append((float(n_points), found[name]))
        ratio = round(found["least squares"] / found["moments"], 2)
        rows.append((f"{n_points}", *(round(t, 1) for t in found.values()), ratio))
    names = " | ".join(f"{name} µs" for name in lines)
    drawing = line_drawing(
        "Fig. 1: speed, this machine",
        {"": lines},
        ("points", "time, µs"),
        SPEED_STYLES,
        names=SPEED_NAMES,
    )
    caption = f"Median of {repeats} runs, one thread of this machine"
    return Experiment(
        tables={caption: table(f"points | {names} | least squares / moments", rows)},
        figures={"figure-1": drawing},
    )


def _methods(points: Float[Array, "point 3"]) -> dict[str, Callable[[], object]]:
    stream = SphereAccumulator()
    stream.update(points)
    return {
        "moments": lambda: _moments(points),
        "least squares": lambda: _least_squares(points),
        "one more frame": lambda: stream.update(points[:1]),
        "full fit": lambda: fit_sphere(points),
    }


def _moments(points: Float[Array, "point 3"]) -> Float[Array, " 3"]:
    """Return the centre by Knight2007, Eqs. 2-5, and nothing else."""
    mean = points.mean(axis=0)
    y = points - mean
    second = y.T @ y
    third = y.T @ np.einsum("pi,pi->p", y, y)
    return np.asarray(mean + 0.5 * np.linalg.solve(second, third))


def _least_squares(points: Float[Array, "point 3"]) -> Float[Array, " 3"]:
    """Return the centre of |x|^2 = 2 c.x + (R^2 - |c|^2), solved for c and the rest."""
    A = np.concatenate([2.0 * points, np.ones((len(points), 1))], axis=1)
    square = np.einsum("pi,pi->p", points, points)
    return np.asarray(np.linalg.lstsq(A, square, rcond=None)[0][:3])
