"""Joints between 6-DoF bodies: the points, one in each body, that stay together.

Implements OBrien2000, Eqs. 7-13 and Secs. 3.1-3.2, for all pairs at once. Departures:
orientations are noisy too, which draws the centres of the paper towards the sensors, so
the default removes that bias and, for the pairs with the smallest residuals, maximises
the likelihood; whether a direction is determined follows from the predicted error of
the centre, not from a singular value alone; every answer has a covariance.
`estimator="least_squares"` is the method as published.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.bodies import Bodies
from marey.joint_fits import JointFits
from marey.joints.ball.assemble_fits import (
    PairEstimates,
    assemble_joint_fits,
    centers_from_origins,
    marker_distances,
)
from marey.joints.ball.averaged_residual import averaged_residuals
from marey.joints.ball.closed_form import (
    CenterEstimates,
    EigenSystem,
    bias_corrected_system,
    solve_centers,
    uncorrected_system,
    undo_rotation_shrinkage,
)
from marey.joints.ball.gauss_helmert import fit_gauss_helmert
from marey.joints.ball.hinge import is_universal, universal_axes
from marey.joints.ball.normal_equations import (
    NormalEquations,
    Pairs,
    PerPair,
    all_pairs,
    form_normal_equations,
)
from marey.joints.ball.pair_frames import (
    RelativePoses,
    StackedPoses,
    best_pairs,
    correlation_length,
    find_inliers,
    sum_pairs_at_anchors,
)
from marey.joints.ball.third_body import mediation_ratios
from marey.joints.noise import (
    MIN_INFORMATION_SHARE,
    PoseNoise,
    estimate_pose_noise,
    rotation_shrinkage,
)
from marey.joints.options import check_choice, check_range
from marey.options import options_from

Array = np.ndarray
Rows = Int[Array, " row"]
BallEstimator = Literal["auto", "least_squares", "corrected", "likelihood"]

_RANGES: dict[str, tuple[float, float, str]] = {
    "noise": (0.0, 1.0, "m"),
    "turn_noise": (0.0, 1.0, "rad"),
    "max_sd": (1e-6, 100.0, "m"),
    "refine": (0, 10**6, "pairs"),
}

NOISE_HEADROOM = 1.25
"""Largest noise variance of a body over the mean square residual of its best joint.
Fast motion at a low frame rate is mistaken for noise, but with that much noise no joint
would fit so well.
Higher accepts more motion as noise. Chosen by hand."""

MAX_NON_ROTATION = 1e-3
"""Largest entry of mean(R^T R) - I of an orientation that is a rotation; above it the
pose scales or shears. Chosen by hand."""

CANCELLATION_SHARE = 1e-4
"""Residual over the distance of the bodies below which the sums have lost it in
rounding, so that it is computed from the frames. Higher costs time. Chosen by hand."""

EXACT_SHARE = 1e-9
"""Residual over the distance of the bodies below which data are exact and the
likelihood has nothing to weight. Chosen by hand."""

MAX_RESIDUAL_RATIO = 3.0
"""Residual of a pair over the smallest residual of its bodies above which the two are
not joined, and are not refined. Higher costs time. Chosen by hand."""

MIN_NOISE_SHARE = 1e-3
"""Smallest standard deviation of the positions over the residual of the pair. With
exact poses and a residual all frames then get about the same weight. Chosen by hand."""

MAX_ROTATIONS = 1000
"""Frames used in the search for the axes of a universal joint. Higher costs time.
Chosen by hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BallOptions:
    """How joints between 6-DoF bodies are estimated."""

    estimator: BallEstimator = "auto"
    """"least_squares": OBrien2000. "corrected": without its bias from noisy
    orientations. "likelihood": Gauss-Helmert, every pair. "auto": likelihood for the
    pairs with the smallest residuals, corrected for the others."""

    robust: bool = True
    """Whether spikes are left out of the fit and its residual. Only the pairs that are
    refined are searched for spikes; never for "least_squares"."""

    noise: float | None = None
    """Standard deviation per axis of a sensor's position, or of a marker, 0 to 1 m;
    None = estimated."""

    turn_noise: float | None = None
    """Standard deviation per axis of a sensor's orientation, 0 to 1 rad; None =
    estimated. For bodies of markers it follows from `noise`."""

    max_sd: float = 0.05
    """Predicted standard deviation of the centre, 1e-6 to 100 m, above which a
    direction counts as free: one free direction makes a hinge."""

    refine: int = 4
    """How many of each body's best pairs are refined frame by frame, 0 or more; pairs
    whose residual is three times the smallest of both bodies are not."""

    mediation: bool = True
    """Whether to compute which part of a pair's residual a third body explains; NaN
    when not."""

    def __post_init__(self) -> None:
        check_choice("estimator", self.estimator, get_args(BallEstimator))
        for name, (low, high, unit) in _RANGES.items():
            value = getattr(self, name)
            if value is not None:
                check_range(name, value, low, high, unit)


def fit(takes: tuple[Bodies, ...], **options: Any) -> JointFits:
    """Return a joint for every pair of bodies.

    Args:
        takes: The same bodies in one or several takes; the sums of all are one fit.
        **options: Fields of `BallOptions`.

    Raises:
        OptionError: If an option is not known or out of range.
    """
    return _BallFit(takes, options_from(BallOptions, options)).run()


class _BallFit:
    """One call of `fit`: the takes, the options and the intermediate results."""

    def __init__(self, takes: tuple[Bodies, ...], options: BallOptions) -> None:
        self.takes, self.options = takes, options
        self.pair = all_pairs(len(takes[0].names))
        self.noise = estimate_pose_noise(
            takes, noise=options.noise, turn_noise=options.turn_noise
        )
        self.poses = StackedPoses(takes, self.noise.anchor)
        self.inliers: dict[int, Array] = {}
        """Inlier frames of the pairs that have outliers, by row."""

    def run(self) -> JointFits:
        options = self.options
        sums = sum_pairs_at_anchors(self.poses.T, self.noise.anchor)
        raw = form_normal_equations(sums, self.pair)
        self.uncorrected = uncorrected_system(raw)
        rough = solve_centers(self.uncorrected, max_sd=options.max_sd)
        self.noise = cap_noise_by_residual(self.noise, raw, rough, self.pair)
        self.is_rotation = np.all(_non_rotation(raw) < MAX_NON_ROTATION, axis=1)
        rows = self._refined_rows(rough)
        estimates = self._closed_form(self._without_spikes(raw, rough, rows), rows)
        if options.estimator in ("auto", "likelihood"):
            likely = self._maximise_likelihood(estimates, rows)
            estimates = replace(estimates, centers=likely)
        estimates = replace(estimates, centers=self._exact_residuals(estimates, rows))
        mediated = np.full(len(self.pair), np.nan)
        if options.mediation:
            mediated = mediation_ratios(self.takes, sums, self.pair)
        u = centers_from_origins(estimates)[0]
        distance = marker_distances(self.takes[0], self.pair, u)
        fits = assemble_joint_fits(estimates, distance=distance, mediated=mediated)
        averaged, averaged_noise = averaged_residuals(
            self.takes, self.noise, self.pair, max_sd=options.max_sd
        )
        fits = replace(fits, averaged_residual=averaged, averaged_noise=averaged_noise)
        return self._classify_universal(fits, estimates, rows)

    def _refined_rows(self, rough: CenterEstimates) -> Rows:
        """Return the pairs that are refined frame by frame."""
        if self.options.estimator == "likelihood":
            return np.flatnonzero(np.isfinite(rough.residual))
        rows = best_pairs(self.pair, rough.residual, self.options.refine)
        return np.asarray(rows[candidate_pairs(self.pair, rough.residual)[rows]])

    def _without_spikes(
        self, raw: NormalEquations, rough: CenterEstimates, rows: Rows
    ) -> NormalEquations:
        """Return the equations without the spikes of the refined pairs."""
        if not self.options.robust or self.options.estimator == "least_squares":
            return raw
        count, A = raw.count.copy(), raw.A.copy()
        g, square = raw.g.copy(), raw.square.copy()
        for row in rows[self.is_rotation[rows]].tolist():
            relative = self._relative_poses(row)
            inlier = find_inliers(relative, rough.u[row])
            if not inlier.all():
                self.inliers[row] = inlier
                part = relative.select(inlier).equations()
                count[row], A[row] = part.count[0], part.A[0]
                g[row], square[row] = part.g[0], part.square[0]
        return NormalEquations(count, A, g, square)

    def _closed_form(self, raw: NormalEquations, rows: Rows) -> PairEstimates:
        """Return the closed-form centres, with covariances for correlated residuals."""
        system, max_sd = self._system(raw), self.options.max_sd
        centers = solve_centers(system, max_sd=max_sd)
        correlation = np.ones(len(self.pair))
        for row in rows[self.is_rotation[rows]].tolist():
            residual = self._relative_poses(row).residual(centers.u[row])
            correlation[row] = correlation_length(residual)
        if len(rows):
            centers = solve_centers(system, max_sd=max_sd, correlation=correlation)
        return PairEstimates(self.pair, self.noise, system, centers, correlation)

    def _system(self, raw: NormalEquations) -> EigenSystem:
        if self.options.estimator == "least_squares":
            return self.uncorrected
        return bias_corrected_system(raw, self.noise, self.pair)

    def _relative_poses(self, row: int) -> RelativePoses:
        """Return the relative poses of a pair in its inlier frames."""
        relative = self.poses.relative_poses(*self.pair[row].tolist())
        inlier = self.inliers.get(row)
        return relative if inlier is None else relative.select(inlier)

    def _maximise_likelihood(
        self, estimates: PairEstimates, rows: Rows
    ) -> CenterEstimates:
        """Return the centres, those of some pairs replaced by the likeliest."""
        centers = estimates.centers
        u, covariance = centers.u.copy(), centers.covariance.copy()
        noisy = centers.residual > EXACT_SHARE * np.sqrt(estimates.system.raw.square)
        for row in rows[(noisy & self.is_rotation)[rows]].tolist():
            found = self._likeliest_centers(estimates, row)
            if found is not None:
                u[row], covariance[row] = found
        return replace(centers, u=u, covariance=covariance)

    def _likeliest_centers(
        self, estimates: PairEstimates, row: int
    ) -> tuple[Array, Array] | None:
        """Return the likeliest centres of a pair and their covariance, if any."""
        a, b = self.pair[row]
        centers, noise = estimates.centers, self.noise
        free = estimates.system.eigenvectors[row, :, :3][:, centers.free[row]]
        relative = self._relative_poses(row)
        variance = noise.position_variance[a] + noise.position_variance[b]
        smallest = (MIN_NOISE_SHARE * centers.residual[row]) ** 2
        likely = fit_gauss_helmert(
            relative.R_a_b,
            relative.t_a_b,
            centers.u[row],
            C_a=noise.rotation_covariance[a],
            C_b=noise.rotation_covariance[b],
            position_variance=float(max(variance, smallest)),
            free=free,
            robust=self.options.robust,
        )
        if likely is None:
            return None
        if not likely.used.all():
            inlier = np.ones(len(likely.used), dtype=bool)
            inlier = self.inliers.get(row, inlier).copy()
            inlier[inlier] = likely.used
            self.inliers[row] = inlier
        scale = float(likely.scale) * estimates.correlation[row]
        K = rotation_shrinkage(noise.rotation_covariance)
        return likely.u, scale * _covariance(likely.information, K[a], K[b], free)

    def _exact_residuals(self, estimates: PairEstimates, rows: Rows) -> CenterEstimates:
        """Return the centres with residuals from the frames, not from the sums.

        For the refined pairs, and where the sums have lost the digits.
        """
        centers, raw = estimates.centers, estimates.system.raw
        lost = centers.residual < CANCELLATION_SHARE * np.sqrt(raw.square)
        residual = raw.rms_residual(centers.u)
        for row in np.union1d(rows, np.flatnonzero(lost)).tolist():
            a, b = self.pair[row].tolist()
            vectors = self.poses.world_residuals(a, b, centers.u[row])
            vectors = vectors[self.inliers.get(row, slice(None))]
            residual[row] = np.sqrt(np.mean(np.sum(vectors**2, axis=1)))
        return replace(centers, residual=residual)

    def _classify_universal(
        self, fits: JointFits, estimates: PairEstimates, rows: Rows
    ) -> JointFits:
        """Return the fits with balls that rotate about two axes called universal."""
        raw = estimates.system.raw
        ball = np.array([kind == "ball" for kind in fits.kind], dtype=bool)
        tested = ball & self.is_rotation & (raw.count > 2)
        rows = rows[(tested & (fits.residual <= self.options.max_sd))[rows]]
        if not len(rows):
            return fits
        rotations = []
        for row in rows.tolist():
            R = self._relative_poses(row).R_a_b
            rotations.append(R[np.linspace(0, len(R) - 1, MAX_ROTATIONS).astype(int)])
        axis_a, axis_b, third_angle = universal_axes(np.stack(rotations))
        variance = np.trace(self.noise.rotation_covariance, axis1=1, axis2=2) / 3.0
        found = is_universal(
            third_angle,
            estimates.system.eigenvalues[rows],
            variance[self.pair[rows]].sum(axis=1),
            np.minimum(raw.count[rows], MAX_ROTATIONS),
        )
        kind, all_a, all_b = list(fits.kind), fits.axis_a.copy(), fits.axis_b.copy()
        for row in rows[found]:
            kind[row] = "universal"
        all_a[rows[found]], all_b[rows[found]] = axis_a[found], axis_b[found]
        return replace(fits, kind=tuple(kind), axis_a=all_a, axis_b=all_b)


def _covariance(
    information: Float[Array, "6 6"], K_a: Array, K_b: Array, free: Array
) -> Float[Array, "6 6"]:
    """Return the covariance of likely centres, zero along the free directions.

    The inverse of the information without the part that noise of the orientations has
    produced; in every direction at least `MIN_INFORMATION_SHARE` of it counts.
    """
    corrected = undo_rotation_shrinkage(information[None], K_a[None], K_b[None])[0]
    value, vector = np.linalg.eigh(information)
    known = value > 1e-12 * value[-1]
    root = vector[:, known] * np.sqrt(value[known])
    inverse_root = vector[:, known] / np.sqrt(value[known])
    share, axes = np.linalg.eigh(inverse_root.T @ corrected @ inverse_root)
    axes = root @ axes
    corrected = (axes * np.maximum(share, MIN_INFORMATION_SHARE)) @ axes.T
    across = np.eye(6) - free @ free.T
    return np.linalg.pinv(across @ corrected @ across, rcond=1e-12, hermitian=True)


def best_residual_of_bodies(pair: Pairs, residual: PerPair) -> PerPair:
    """Return the larger of the smallest residuals of each pair's two bodies."""
    best = np.full(pair.max(initial=0) + 1, np.inf)
    for column in pair.T:
        np.fmin.at(best, column, residual)
    return np.asarray(best[pair].max(axis=1))


def _non_rotation(raw: NormalEquations) -> Float[Array, "pair 2"]:
    """Return the largest entry of mean(R^T R) - I of both bodies of each pair."""
    deviation = np.abs(raw.A - np.eye(6))
    return np.stack(
        [deviation[:, :3, :3].max(axis=(1, 2)), deviation[:, 3:, 3:].max(axis=(1, 2))],
        axis=1,
    )


def cap_noise_by_residual(
    noise: PoseNoise, raw: NormalEquations, rough: CenterEstimates, pair: Pairs
) -> PoseNoise:
    """Return the noise, reduced where a body's joints fit better than it would allow.

    Orientations that are not rotations get no noise, so that none is removed.
    """
    expected = noise.mean_square_residual(pair, rough.u)
    known = np.isfinite(expected) & (expected > 0.0)
    ratio = np.where(known, rough.residual**2 / np.where(known, expected, 1.0), np.inf)
    factor = np.ones(len(noise.position_variance))
    for column in pair.T:
        np.minimum.at(factor, column, NOISE_HEADROOM * ratio)
    sheared = np.nan_to_num(_non_rotation(raw)) > MAX_NON_ROTATION
    factor[pair[sheared]] = 0.0
    return noise.scale(np.minimum(factor, 1.0))


def candidate_pairs(pair: Pairs, residual: PerPair) -> Bool[Array, " pair"]:
    """Return which pairs may be joined: their residual is near the best of a body."""
    return np.asarray(
        residual <= MAX_RESIDUAL_RATIO * best_residual_of_bodies(pair, residual)
    )
