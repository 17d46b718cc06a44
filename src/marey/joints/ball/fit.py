"""Joints between 6-DoF bodies: the points, one in each, that stay together.

Implements OBrien2000, Eqs. 7-13 and Secs. 3.1-3.2, for all pairs at once, and goes
beyond it. Departures: orientations are noisy too, which pulls the centres of the paper
towards the sensors, so the default takes that noise out and, for the pairs that fit
best, maximises the likelihood; whether a direction is determined follows from the
predicted error of the centre, not from a singular value alone; every answer has a
covariance. `estimator="least_squares"` is the paper as it stands.
"""

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float, Int

from marey.bodies import Bodies
from marey.errors import OptionError
from marey.joint_fits import JointFits
from marey.joints.assemble_fits import Draft, centers_of, distances, packed
from marey.joints.ball.averaged_gap import slow_gaps
from marey.joints.ball.closed_form import (
    Closed,
    System,
    plain_system,
    shrunk_back,
    solve,
    system_of,
)
from marey.joints.ball.gauss_helmert import most_likely
from marey.joints.ball.hinge import is_universal, universal_axes
from marey.joints.ball.normal_equations import Equations, equations, pairs_of, sum_pairs
from marey.joints.ball.pair_frames import (
    Frames,
    Relative,
    anchored,
    correlation_of,
    nearest_pairs,
    without_spikes,
)
from marey.joints.ball.third_body import mediation
from marey.joints.noise import PoseNoise, measure_noise

Array = np.ndarray
Estimator = Literal["auto", "least_squares", "corrected", "likelihood"]

_RANGES: dict[str, tuple[float, float, str]] = {
    "noise": (0.0, 1.0, "m"),
    "turn_noise": (0.0, 1.0, "rad"),
    "max_sd": (1e-6, 100.0, "m"),
    "refine": (0, 10**6, "pairs"),
}

# Measured noise is taken back to this many times what the best fit of a body leaves:
# fast motion at a low rate passes for noise, but never fits a joint.
ROOM = 1.25

# R^T R farther from the identity than this is no rotation: scaled or sheared.
RIGID = 1e-3

# The sums lose the residual in rounding below this share of the bodies' distance.
CANCELLED = 1e-4

# Gaps below this share of the bodies' distance are rounding: nothing to weigh.
EXACT = 1e-9

# Gaps this many times the best of both bodies are no joint: nothing to look at.
FAR = 3.0

# Share of the seeming information that is taken for true at least.
LEAST_TOLD = 0.05

# Frames looked at when asking for a universal joint.
MOST_TURNS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class BallOptions:
    """How joints between 6-DoF bodies are found."""

    estimator: Estimator = "auto"
    """"least_squares": OBrien2000. "corrected": without its bias from noisy
    orientations. "likelihood": Gauss-Helmert, every pair. "auto": likelihood for the
    pairs that fit best, corrected for the others."""

    robust: bool = True
    """Whether frames that stand far out are left out of the fit and its residual. Only
    the pairs that fit best are looked at; never for "least_squares"."""

    noise: float | None = None
    """Standard deviation per axis of a sensor's position, or of a marker, 0 to 1 m;
    None = measured."""

    turn_noise: float | None = None
    """Standard deviation per axis of a sensor's orientation, 0 to 1 rad; None =
    measured. Bodies of markers have it from `noise`."""

    max_sd: float = 0.05
    """Predicted standard deviation of the centre, 1e-6 to 100 m, beyond which a
    direction counts as free: one free direction makes a hinge."""

    refine: int = 4
    """How many of each body's best pairs are looked at frame by frame, 0 or more;
    those whose gap is thrice the best of both bodies are not."""

    mediation: bool = True
    """Whether to ask which third body explains a pair's gap; NaN when not."""

    def __post_init__(self) -> None:
        if self.estimator not in get_args(Estimator):
            needed = f"one of {', '.join(get_args(Estimator))}"
            raise OptionError("estimator", found=self.estimator, needed=needed)
        for name, (low, high, unit) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                needed = f"{low:g} to {high:g} {unit}"
                raise OptionError(name, found=value, needed=needed)


def options_of(options: dict[str, Any]) -> BallOptions:
    """Return checked options.

    Raises:
        OptionError: If a name is not known or a value is out of range.
    """
    known = [f.name for f in fields(BallOptions)]
    for name, value in options.items():
        if name not in known:
            raise OptionError(name, found=value, needed=f"one of {', '.join(known)}")
    return BallOptions(**options)


def fit(takes: tuple[Bodies, ...], **options: Any) -> JointFits:
    """Return a joint for every pair of bodies.

    Args:
        takes: The same bodies in one or several takes; the sums of all are one fit.
        **options: Fields of `BallOptions`.

    Raises:
        OptionError: If an option is not known or out of range.
    """
    chosen = options_of(options)
    return _Fit(takes, chosen).run()


class _Fit:
    """One call of `fit`: the takes, the options and what is found on the way."""

    def __init__(self, takes: tuple[Bodies, ...], options: BallOptions) -> None:
        self.takes, self.options = takes, options
        self.pair = pairs_of(len(takes[0].names))
        self.noise = measure_noise(
            takes, noise=options.noise, turn_noise=options.turn_noise
        )
        self.frames = Frames(takes, self.noise.anchor)
        self.kept: dict[int, Array] = {}

    def run(self) -> JointFits:
        sums = sum_pairs(anchored(self.frames.T, self.noise.anchor), self.frames.seen)
        raw = equations(sums, self.pair)
        self.plain = plain_system(raw)
        rough = solve(self.plain, max_sd=self.options.max_sd)
        self.noise = believable(self.noise, raw, rough, self.pair)
        rows = self._looked_at(rough)
        draft = self._draft(self._without_spikes(raw, rough, rows), rows)
        if self.options.estimator in ("auto", "likelihood"):
            draft = replace(draft, closed=self._most_likely(draft, rows))
        draft = replace(draft, closed=self._exact_residuals(draft, rows))
        mediated = np.full(len(self.pair), np.nan)
        if self.options.mediation:
            mediated = mediation(self.takes, sums, self.pair)
        distance = distances(self.takes[0], self.pair, centers_of(draft)[0])
        fits = packed(draft, distance=distance, mediated=mediated)
        slow, slow_noise = slow_gaps(
            self.takes, self.noise, self.pair, max_sd=self.options.max_sd
        )
        fits = replace(fits, averaged_residual=slow, averaged_noise=slow_noise)
        return self._with_universals(fits, draft, rows)

    def _looked_at(self, rough: Closed) -> Int[Array, " row"]:
        """Return the pairs that are looked at frame by frame."""
        if self.options.estimator == "likelihood":
            return np.flatnonzero(np.isfinite(rough.residual))
        rows = nearest_pairs(self.pair, rough.residual, self.options.refine)
        near = rough.residual <= FAR * best_of(self.pair, rough.residual)
        return np.asarray(rows[near[rows]])

    def _draft(self, raw: Equations, rows: Int[Array, " row"]) -> Draft:
        """Return the closed-form answer, its doubts widened by slow gaps."""
        system, max_sd = self._system(raw), self.options.max_sd
        closed = solve(system, max_sd=max_sd)
        correlation = np.ones(len(self.pair))
        for row in rows.tolist():
            if self._rigid(row, raw):
                gaps = self._relative(row).residual(closed.u[row])
                correlation[row] = correlation_of(gaps)
        if len(rows):
            closed = solve(system, max_sd=max_sd, correlation=correlation)
        return Draft(self.pair, self.noise, system, closed, correlation)

    def _system(self, raw: Equations) -> System:
        if self.options.estimator == "least_squares":
            return self.plain
        return system_of(raw, self.noise, self.pair)

    def _without_spikes(
        self, raw: Equations, rough: Closed, rows: Int[Array, " row"]
    ) -> Equations:
        """Return the equations of pairs without the frames that stand out."""
        if not self.options.robust or self.options.estimator == "least_squares":
            return raw
        clean = [x.copy() for x in (raw.count, raw.A, raw.g, raw.square)]
        for row in rows.tolist():
            if not self._rigid(row, raw):
                continue
            relative = self.frames.pair(*self.pair[row].tolist())
            kept = without_spikes(relative, rough.u[row])
            if not kept.all():
                self.kept[row] = kept
                part = relative.only(kept).equations()
                new = (part.count, part.A, part.g, part.square)
                for values, value in zip(clean, new, strict=True):
                    values[row] = value[0]
        return Equations(*clean)

    def _rigid(self, row: int, raw: Equations) -> bool:
        off = raw.A[row] - np.eye(6)
        return bool(max(np.abs(off[:3, :3]).max(), np.abs(off[3:, 3:]).max()) < RIGID)

    def _relative(self, row: int) -> Relative:
        relative = self.frames.pair(*self.pair[row].tolist())
        kept = self.kept.get(row)
        return relative if kept is None else relative.only(kept)

    def _most_likely(self, draft: Draft, rows: Int[Array, " row"]) -> Closed:
        """Return the centres with the likeliest in place of those of some pairs."""
        closed, raw = draft.closed, draft.system.raw
        u, covariance = closed.u.copy(), closed.covariance.copy()
        worth = closed.residual > EXACT * np.sqrt(raw.square)
        for row in rows.tolist():
            if worth[row] and self._rigid(row, raw):
                found = self._likely_pair(draft, row)
                if found is not None:
                    u[row], covariance[row] = found
        return replace(closed, u=u, covariance=covariance)

    def _likely_pair(self, draft: Draft, row: int) -> tuple[Array, Array] | None:
        a, b = self.pair[row]
        free = draft.system.vector[row, :, :3][:, draft.closed.free[row]]
        relative = self._relative(row)
        shift = self.noise.shift[a] + self.noise.shift[b]
        likely = most_likely(
            relative.R_a_b,
            relative.gap_a,
            draft.closed.u[row],
            turn_a=self.noise.turn[a],
            turn_b=self.noise.turn[b],
            # Noise-free poses with a gap: all frames alike then.
            shift=float(max(shift, (1e-3 * draft.closed.residual[row]) ** 2)),
            free=free,
            robust=self.options.robust,
        )
        if likely is None:
            return None
        if not likely.used.all():
            kept = self.kept.get(row, np.ones(len(likely.used), dtype=bool)).copy()
            kept[kept] = likely.used
            self.kept[row] = kept
        scale = float(likely.scale) * draft.correlation[row]
        K = self.noise.shrinkage()
        return likely.u, scale * _spread(likely.information, K[a], K[b], free)

    def _exact_residuals(self, draft: Draft, rows: Int[Array, " row"]) -> Closed:
        """Return residuals taken from the frames where sums have lost the digits."""
        closed, raw = draft.closed, draft.system.raw
        small = closed.residual < CANCELLED * np.sqrt(raw.square)
        residual = raw.rms(closed.u)
        for row in np.union1d(rows, np.flatnonzero(small)).tolist():
            a, b = self.pair[row].tolist()
            gaps = self.frames.gaps(a, b, closed.u[row])
            gaps = gaps[self.kept.get(row, slice(None))]
            residual[row] = np.sqrt(np.mean(np.sum(gaps**2, axis=1)))
        return replace(closed, residual=residual)

    def _with_universals(self, fits: JointFits, draft: Draft, rows: Array) -> JointFits:
        """Return the fits with balls that turn about two axes only named so."""
        raw = draft.system.raw
        rows = np.array(
            [
                row
                for row in rows.tolist()
                if fits.kind[row] == "ball" and self._rigid(row, raw)
                if fits.residual[row] <= self.options.max_sd and raw.count[row] > 2
            ],
            dtype=np.int64,
        )
        if not len(rows):
            return fits
        turns = [self._relative(row).R_a_b for row in rows.tolist()]
        picks = [np.linspace(0, len(R) - 1, MOST_TURNS).astype(np.int64) for R in turns]
        axis_a, axis_b, third = universal_axes(
            np.stack([R[pick] for R, pick in zip(turns, picks, strict=True)])
        )
        spin = np.trace(self.noise.turn, axis1=1, axis2=2) / 3.0
        count = np.minimum(raw.count[rows], MOST_TURNS)
        value = draft.system.value[rows]
        two = is_universal(third, value, spin[self.pair[rows]].sum(axis=1), count)
        kind = list(fits.kind)
        for row in rows[two]:
            kind[row] = "universal"
        all_a, all_b = fits.axis_a.copy(), fits.axis_b.copy()
        all_a[rows[two]], all_b[rows[two]] = axis_a[two], axis_b[two]
        return replace(fits, kind=tuple(kind), axis_a=all_a, axis_b=all_b)


def _spread(
    information: Float[Array, "6 6"], K_a: Array, K_b: Array, free: Array
) -> Float[Array, "6 6"]:
    """Return the covariance of likely centres, zero along the free directions.

    Of what the frames seem to tell, noise may have made up nearly all; a twentieth
    always counts as told.
    """
    true = shrunk_back(information[None], K_a[None], K_b[None])[0]
    value, vector = np.linalg.eigh(information)
    known = value > 1e-12 * value[-1]
    root = vector[:, known] * np.sqrt(value[known])
    inverse = vector[:, known] / np.sqrt(value[known])
    share, turn = np.linalg.eigh(inverse.T @ true @ inverse)
    true = (root @ turn * np.maximum(share, LEAST_TOLD)) @ (root @ turn).T
    across = np.eye(6) - free @ free.T
    return np.linalg.pinv(across @ true @ across, rcond=1e-12, hermitian=True)


def best_of(
    pair: Int[Array, "pair 2"], residual: Float[Array, " pair"]
) -> Float[Array, " pair"]:
    """Return the smallest residual of each pair's two bodies, the larger of the two."""
    best = np.full(pair.max(initial=0) + 1, np.inf)
    for column in pair.T:
        np.fmin.at(best, column, residual)
    return np.asarray(best[pair].max(axis=1))


def believable(
    noise: PoseNoise, raw: Equations, rough: Closed, pair: Int[Array, "pair 2"]
) -> PoseNoise:
    """Return the noise, less where a body's joints fit better than it would allow.

    Orientations that are no rotations are left as they are: no noise is taken out.
    """
    expected = noise.gap(pair, rough.u)
    known = np.isfinite(expected) & (expected > 0.0)
    share = np.where(known, rough.residual**2 / np.where(known, expected, 1.0), np.inf)
    factor = np.ones(len(noise.shift))
    for column in pair.T:
        np.minimum.at(factor, column, ROOM * np.where(known, share, np.inf))
    off = np.abs(raw.A - np.eye(6))
    for body, block in zip(pair.T, (off[:, :3, :3], off[:, 3:, 3:]), strict=True):
        bent = body[np.nanmax(np.nan_to_num(block), axis=(1, 2)) > RIGID]
        factor[bent] = 0.0
    return noise.scaled(np.minimum(factor, 1.0))
