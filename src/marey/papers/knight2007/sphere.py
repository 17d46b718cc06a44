"""Knight2007, Sec. 2.2: Monte-Carlo of centre and radius of a sphere, and run time."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float
from scipy import stats

from marey.joints.sphere.gdke import SphereAccumulator, fit_sphere
from marey.papers.experiment import Effort, Experiment
from marey.papers.knight2007 import plots as plots
from marey.papers.knight2007.samples import sample_sphere
from marey.papers.measures import Cells, time_calls
from marey.report import Table

Array = np.ndarray

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


@dataclass(frozen=True, slots=True, eq=False)
class MonteCarloRuns:
    """Results of the Monte-Carlo, one value per sphere."""

    count: Float[Array, " run"]
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


def monte_carlo(effort: Effort) -> Experiment:
    """Centre and radius of noisy spheres: 3 sigma / sqrt(N) (Sec. 2.2, Figs. 2, 3)."""
    runs = run_monte_carlo(np.random.default_rng((effort.seed, 7)), effort.runs(RUNS))
    good = runs.noise > ROUNDING_RATIO * (runs.true_radius + 1.0)
    usual = good & (runs.error <= np.quantile(runs.error[good], KEPT_QUANTILE))
    fitted = _weibull(runs.error[usual])
    return Experiment(
        title="Monte-Carlo of the sphere fit (Sec. 2.2, Figs. 2 and 3)",
        tables={
            "Error of the centre in sigma / sqrt(N)": _summary(
                runs.error[good], runs.error[usual]
            ),
            "The law sigma / sqrt(N): mean error over it, by N and by noise": _law(
                runs, usual
            ),
            "The radius, median over the true one less 1, %": _radii(runs, good),
        },
        note=(
            f"{(~good).sum()} of {len(good)} runs drew a noise below rounding "
            "and are left out. A few of four or five points, almost in a plane, have "
            "errors without bound, which dominate sd and Weibull shape: the "
            f"column of usual runs omits the largest {(good & ~usual).sum()}, and "
            "in 5000 runs the paper's spread and shape lie between the two. What the "
            "paper calls a bias is the size of the error: on a whole "
            "sphere its mean vanishes and its rms is the Cramer-Rao bound, 3. The "
            "squared radius grows with the noise, R^2 + 3 sigma^2, and is unbiased "
            "after correction, until the noise is as large as the sphere."
        ),
        figures={
            "figure-2": plots.weibull_drawing(runs.error[usual], fitted, PUBLISHED),
            "figure-3": plots.radius_drawing(
                runs.noise_ratio[good],
                (runs.uncorrected_radius / runs.true_radius)[good],
                (runs.radius / runs.true_radius)[good],
            ),
            "law": plots.law_drawing(
                runs.count[usual],
                runs.noise_ratio[usual],
                (runs.error / np.sqrt(runs.count))[usual],
            ),
        },
    )


def _weibull(error: Float[Array, " run"]) -> dict[str, float]:
    shape, _, scale = stats.weibull_min.fit(error, floc=0.0)
    return {"shape": float(shape), "scale": float(scale)}


def _summary(every: Float[Array, " run"], usual: Float[Array, " some"]) -> Table:
    small, large = stats.chi(3, scale=np.sqrt(3.0)), stats.chi(3, scale=np.sqrt(3.5))
    ours, fits = (every, usual), (_weibull(every), _weibull(usual))
    rms = [float(np.sqrt(np.mean(e**2))) for e in ours]
    rows: tuple[Cells, ...] = (
        ("runs", 5000.0, *(float(len(e)) for e in ours), "", ""),
        (
            "mean",
            PUBLISHED["mean"],
            *(e.mean() for e in ours),
            small.mean(),
            large.mean(),
        ),
        ("sd", PUBLISHED["sd"], *(e.std() for e in ours), small.std(), large.std()),
        ("rms", _rms_published(), *rms, 3.0, float(np.sqrt(10.5))),
        ("Weibull shape", PUBLISHED["shape"], *(f["shape"] for f in fits), "", ""),
        ("Weibull scale", PUBLISHED["scale"], *(f["scale"] for f in fits), "", ""),
    )
    columns = (
        "",
        "paper",
        "ours, every run",
        "ours, usual runs",
        "theory, noise << R",
        "theory, noise >> R",
    )
    return Table(columns, tuple(_round_cells(row) for row in rows))


def _rms_published() -> float:
    return float(np.hypot(PUBLISHED["mean"], PUBLISHED["sd"]))


def _round_cells(row: Cells) -> Cells:
    return tuple(c if isinstance(c, str) else round(float(c), 4) for c in row)


def _law(runs: MonteCarloRuns, usual: Bool[Array, " run"]) -> Table:
    rows = []
    for what, value, edges in (
        ("N", runs.count, COUNT_BINS),
        ("sigma / R", runs.noise_ratio, NOISE_RATIO_BINS),
    ):
        for low, high in pairwise(edges):
            in_bin = usual & (value >= low) & (value < high)
            if in_bin.any():
                error = runs.error[in_bin]
                standard_error = error.std() / np.sqrt(in_bin.sum())
                words = f"{what} {low:g} to {high - (what == 'N'):g}"
                rows.append((words, float(in_bin.sum()), error.mean(), standard_error))
    columns = ("", "runs", "mean error", "standard error")
    return Table(columns, tuple(_round_cells(row) for row in rows))


def _radii(runs: MonteCarloRuns, good: Bool[Array, " run"]) -> Table:
    rows = []
    for low, high in pairwise(NOISE_RATIO_BINS[:-1]):
        in_bin = good & (runs.noise_ratio >= low) & (runs.noise_ratio < high)
        if not in_bin.any():
            continue
        true = runs.true_radius[in_bin]
        off = [
            100.0 * (np.median(r[in_bin] / true) - 1.0)
            for r in (runs.uncorrected_radius, runs.radius)
        ]
        rows.append((f"sigma / R {low:g} to {high:g}", float(in_bin.sum()), *off))
    columns = ("", "runs", "uncorrected radius", "corrected radius")
    return Table(columns, tuple(_round_cells(row) for row in rows))


# --- speed ----------------------------------------------------------------------------


def speed(effort: Effort) -> Experiment:
    """Run time of closed form, least squares and streaming (Fig. 1)."""
    rng = np.random.default_rng((effort.seed, 1))
    lengths = POINT_COUNTS[: -2 if effort.quick else None]
    repeats = 5 if effort.quick else 25
    rows: list[Cells] = []
    lines: dict[str, list[tuple[float, float]]] = {}
    for n_points in lengths:
        points = sample_sphere(rng, n_points) + 0.01 * rng.normal(size=(n_points, 3))
        found = {
            name: _microseconds(call, repeats)
            for name, call in _methods(points).items()
        }
        rows.append(
            (
                f"{n_points}",
                *(round(t, 1) for t in found.values()),
                round(found["least squares"] / found["moments"], 2),
            )
        )
        for name, t in found.items():
            lines.setdefault(name, []).append((float(n_points), t))
    columns = (
        "points",
        *(f"{name} µs" for name in lines),
        "least squares / moments",
    )
    return Experiment(
        title="Speed against linear least squares (Fig. 1)",
        tables={
            f"Median of {repeats} runs, one thread of this machine": Table(
                columns, tuple(rows)
            )
        },
        note=(
            "The paper shows the closed form ahead of least squares, without numbers. "
            "Both read every point once and solve a small system; which is ahead is a "
            "matter of the library, and neither by much. What the moments do have is "
            "that they add: one more frame costs the same whatever came before, and "
            "the whole fit follows from them at any time. The full fit also returns "
            "the kind of joint, the noise and the covariance."
        ),
        figures={"figure-1": plots.speed_drawing(lines)},
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


def _microseconds(call: Callable[[], object], repeats: int) -> float:
    call()
    return float(1e6 * np.median(time_calls(call, repeats)))
