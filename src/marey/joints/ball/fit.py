"""Joints between 6-DoF bodies: the points, one in each body, that stay together.

Implements OBrien2000, Eqs. 7-13 and Secs. 3.1-3.2, for all pairs at once. Departures:

- Orientations are noisy too, which draws the centres of the paper towards the sensors.
  The default removes that bias. For the pairs with the smallest residuals it maximises
  the likelihood.
- Whether a direction is determined follows from the predicted error of the centre, not
  from a singular value alone.
- Every answer has a covariance.

`estimator="least_squares"` is the method as published.
"""

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np

from marey.bodies import Bodies
from marey.joint_fits import JointFits, smallest_per_body
from marey.joints.ball.assemble_fits import PairEstimates, assemble_joint_fits
from marey.joints.ball.closed_form import (
    MAX_SD_M,
    CenterEstimates,
    EigenSystem,
    bias_corrected_system,
    solve_centers,
    uncorrected_system,
    undo_rotation_shrinkage,
)
from marey.joints.ball.evidence import averaged_residuals, mediation_ratios
from marey.joints.ball.gauss_helmert import fit_gauss_helmert
from marey.joints.ball.hinge import (
    axis_scatter,
    hinge_axes,
    is_universal,
    universal_axes,
    white_axis_scatter,
)
from marey.joints.ball.normal_equations import (
    NormalEquations,
    Pairs,
    PairSums,
    PerPair,
    all_pairs,
    form_normal_equations,
    sum_pairs,
)
from marey.joints.ball.pair_frames import (
    RelativePoses,
    best_pairs,
    center_gaps,
    correlation_length,
    find_inliers,
)
from marey.joints.noise import (
    MIN_INFORMATION_SHARE,
    PoseNoise,
    estimate_pose_noise,
    rotation_shrinkage,
)
from marey.numerics import Array, Bool, Float, Int
from marey.numerics.noise import rms_length
from marey.numerics.procrustes import poses_seen
from marey.numerics.thresholds import MAX_NON_ROTATION, OUTLIER_SD
from marey.options import Options, choice, number, options_from

Rows = Int[Array, " row"]

NOISE_HEADROOM = 1.25
"""Largest noise variance of a body over the mean square residual of its best joint.
Fast motion at a low frame rate is mistaken for noise, but with that much noise no joint
would fit so well. Higher accepts more motion as noise. Chosen by hand."""

ROUNDING_SHARE = 1e-4
"""Residual over the distance of the bodies below which the sums have lost it in
rounding, so that it is computed from the frames. Higher costs time."""

EXACT_SHARE = 1e-9
"""Residual over the distance of the bodies below which data are exact and the
likelihood has nothing to weight. Chosen by hand."""

TINY_NOISE_SHARE = 1e-4
"""Smallest standard deviation of the positions over the residual of the pair. With
exact poses and a residual all frames then get about the same weight."""


ROUNDING_M = 1e-9
"""Residual in metres below which data are exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BallOptions(Options):
    """How joints between 6-DoF bodies are estimated."""

    estimator: Literal["auto", "least_squares", "corrected", "likelihood"] = choice(
        "auto", "least_squares", "corrected", "likelihood"
    )
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

    max_sd: float = number(MAX_SD_M, above=0.0)
    """Predicted standard deviation of the centre, above 0 m, above which a direction
    counts as free: one free direction makes a hinge."""

    refine: int = number(4, low=0)
    """How many of each body's best pairs are refined frame by frame, 0 or more; pairs
    whose residual is three times the smallest of both bodies are not. More take longer;
    chosen by hand."""

    mediation: bool = True
    """Whether to compute which part of a pair's residual a third body explains; NaN
    when not."""

    def __post_init__(self) -> None:
        Options.__post_init__(self)
        for name in ("noise", "turn_noise"):
            value = getattr(self, name)
            good = value is None or 0.0 <= value <= 1.0
            self.check(name, "a number from 0 to 1", good=good)


def fit(takes: tuple[Bodies, ...], **options: Any) -> JointFits:
    """Return a joint for every pair of bodies.

    Args:
        takes: The same bodies in one or several takes; the sums of all are one fit.
        **options: Fields of `BallOptions`.

    Raises:
        OptionError: If an option is not known or out of range.
    """
    return _BallFit(takes, options_from(BallOptions, options)).run()


def fit_roughly(
    T: Float[Array, "frame body 4 4"], noise: PoseNoise, pair: Pairs, max_sd: float
) -> tuple[PairSums, NormalEquations, CenterEstimates, PoseNoise]:
    """Return the least squares of OBrien2000, where every other fit starts.

    Args:
        T: Poses of the bodies in all takes.
        noise: Estimated noise of their poses.
        pair: Bodies (a, b).
        max_sd: As in `BallOptions`.

    Returns:
        Sums, equations and centres of all pairs, and the noise that these allow.
    """
    sums = sum_pairs(T, noise.anchor)
    raw = form_normal_equations(sums, pair)
    centers = solve_centers(uncorrected_system(raw), max_sd=max_sd)
    return sums, raw, centers, _cap_noise(noise, raw, centers, pair)


class _BallFit:
    """One call of `fit`: the takes, the options and the intermediate results."""

    def __init__(self, takes: tuple[Bodies, ...], options: BallOptions) -> None:
        self.takes, self.options = takes, options
        self.pair = all_pairs(len(takes[0].names))
        poses = [take.T_world_body for take in takes]
        T = poses[0] if len(poses) == 1 else np.concatenate(poses)
        self.T = np.require(T, requirements=["C", "W"])
        self.seen = poses_seen(self.T)
        noise = estimate_pose_noise(
            takes, noise=options.noise, turn_noise=options.turn_noise
        )
        self.sums, self.raw, self.rough, self.noise = fit_roughly(
            self.T, noise, self.pair, options.max_sd
        )
        is_rotation = np.all(_non_rotation(self.raw) < MAX_NON_ROTATION, axis=1)
        self.rows = self._refined_rows()
        """Pairs that are refined frame by frame."""
        self.rotated_rows = self.rows[is_rotation[self.rows]]
        """Those whose orientations are rotations."""
        self.inliers: dict[int, Array] = {}
        """Inlier frames of the pairs that have outliers, by row."""
        self.correlation = np.ones(len(self.pair))
        """Frames per independent residual, 1 or more; estimated for refined pairs."""

    def run(self) -> JointFits:
        options, pair = self.options, self.pair
        estimates = self._closed_form()
        if options.estimator in ("auto", "likelihood"):
            likely = self._maximise_likelihood(estimates)
            estimates = replace(estimates, centers=likely)
        estimates = replace(estimates, centers=self._exact_residuals(estimates))
        mediated = np.full(len(pair), np.nan)
        if options.mediation:
            mediated = mediation_ratios(self.takes, self.sums, pair)
        fits = assemble_joint_fits(estimates, self.takes[0], mediated)
        averaged, averaged_noise = averaged_residuals(
            self.takes, self.noise, pair, max_sd=options.max_sd
        )
        fits = replace(fits, averaged_residual=averaged, averaged_noise=averaged_noise)
        return self._classify_universal(fits, estimates)

    def _refined_rows(self) -> Rows:
        residual = self.rough.residual
        if self.options.estimator == "likelihood":
            return np.flatnonzero(np.isfinite(residual))
        rows = best_pairs(self.pair, residual, self.options.refine)
        return np.asarray(rows[candidate_pairs(self.pair, residual)[rows]])

    def _closed_form(self) -> PairEstimates:
        """Return the closed-form centres, with covariances for correlated residuals."""
        max_sd, raw = self.options.max_sd, self.raw
        if self.options.estimator == "least_squares":
            system = uncorrected_system(raw)
        else:
            raw = self._without_spikes() if self.options.robust else raw
            system = bias_corrected_system(raw, self.noise, self.pair)
        centers = solve_centers(system, max_sd=max_sd)
        for row in self.rotated_rows.tolist():
            residual = self._relative_poses(row).residual(centers.u[row])
            self.correlation[row] = correlation_length(residual)
        if len(self.rows):
            centers = solve_centers(
                system,
                max_sd=max_sd,
                correlation=self.correlation,
                noise_ratio=self._noise_ratio(centers),
            )
        scatter = self._axis_scatter(system, centers)
        return PairEstimates(self.pair, self.noise, system, centers, scatter)

    def _axis_scatter(
        self, system: EigenSystem, centers: CenterEstimates
    ) -> Float[Array, "pair 6 6"]:
        """Return the scatter of axes, that of refined hinges from their frames."""
        scatter, (axis_a, axis_b) = white_axis_scatter(system), hinge_axes(system)
        for row in self.rotated_rows[centers.is_hinge[self.rotated_rows]].tolist():
            R_a_b = self._relative_poses(row).R_a_b
            scatter[row] = axis_scatter(R_a_b, axis_a[row], axis_b[row])
        return scatter

    def _noise_ratio(self, centers: CenterEstimates) -> PerPair:
        """Return the variance of all noise of refined pairs over that estimated.

        The residual of a joint contains all noise of both poses. Differences over time
        show only the part of it that is independent from frame to frame. If data
        are exact, both are rounding, and their ratio means nothing.
        """
        expected = self.noise.mean_square_residual(self.pair, centers.u)
        white = self.noise.white_only[self.pair].any(axis=1) & (
            expected > ROUNDING_M**2
        )
        ratio, rows = np.ones(len(self.pair)), self.rotated_rows
        rows = rows[white[rows]]
        ratio[rows] = np.maximum(centers.residual[rows] ** 2 / expected[rows], 1.0)
        return ratio

    def _without_spikes(self) -> NormalEquations:
        """Return the equations without the spikes of the refined pairs."""
        names = [field.name for field in fields(NormalEquations)]
        columns = {name: getattr(self.raw, name).copy() for name in names}
        for row in self.rotated_rows.tolist():
            relative = self._relative_poses(row)
            inlier = find_inliers(relative, self.rough.u[row])
            if not inlier.all():
                self.inliers[row] = inlier
                part = relative.select(inlier).equations()
                for name, values in columns.items():
                    values[row] = getattr(part, name)[0]
        return NormalEquations(**columns)

    def _relative_poses(self, row: int) -> RelativePoses:
        """Return the relative poses of a pair in its inlier frames.

        The orientations must be rotations.
        """
        from marey.joints.ball.gauss_helmert_kernel import write_relative_poses

        a, b = self.pair[row].tolist()
        frames = np.flatnonzero(self.seen[:, a] & self.seen[:, b])
        frames = frames[self.inliers.get(row, slice(None))]
        R_a_b, t_a_b = np.empty((len(frames), 3, 3)), np.empty((len(frames), 3))
        anchor = self.noise.anchor
        write_relative_poses(self.T, frames, a, b, anchor[a], anchor[b], R_a_b, t_a_b)
        return RelativePoses(R_a_b, t_a_b)

    def _maximise_likelihood(self, estimates: PairEstimates) -> CenterEstimates:
        """Return the centres, those of some pairs replaced by the likeliest."""
        centers, rows = estimates.centers, self.rotated_rows
        u, covariance = centers.u.copy(), centers.covariance.copy()
        noisy = centers.residual > EXACT_SHARE * np.sqrt(estimates.system.raw.square)
        for row in rows[noisy[rows]].tolist():
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
        smallest = (TINY_NOISE_SHARE * centers.residual[row]) ** 2
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
        scale = float(likely.scale) * self.correlation[row]
        K = rotation_shrinkage(noise.rotation_covariance)
        return likely.u, scale * _covariance(likely.information, K[a], K[b], free)

    def _exact_residuals(self, estimates: PairEstimates) -> CenterEstimates:
        """Return the centres with residuals from the frames, not from the sums.

        Only residuals of refined pairs, and those that are as small as the rounding of
        the sums, are computed again.
        """
        centers, raw = estimates.centers, estimates.system.raw
        lost = centers.residual < ROUNDING_SHARE * np.sqrt(raw.square)
        residual = raw.rms_residual(centers.u)
        for row in np.union1d(self.rows, np.flatnonzero(lost)).tolist():
            pair = self.pair[row]
            both = centers.u[row].reshape(2, 3) + self.noise.anchor[pair]
            gap = center_gaps(self.T, pair, both)[self.seen[:, pair].all(axis=1)]
            residual[row] = rms_length(gap[self.inliers.get(row, slice(None))])
        return replace(centers, residual=residual)

    def _classify_universal(
        self, fits: JointFits, estimates: PairEstimates
    ) -> JointFits:
        """Return the fits with balls that rotate about two axes called universal."""
        raw, rows = estimates.system.raw, self.rotated_rows
        ball = np.array([kind == "ball" for kind in fits.kind], dtype=bool)
        tested = ball & (raw.count > 2) & (fits.residual <= self.options.max_sd)
        rows = rows[tested[rows]]
        if not len(rows):
            return fits
        axis_a, axis_b, third_angle = universal_axes(
            [self._relative_poses(row).R_a_b for row in rows.tolist()]
        )
        C = self.noise.rotation_covariance
        variance = np.diagonal(C, axis1=1, axis2=2).mean(axis=1)
        found = is_universal(
            third_angle,
            estimates.system.eigenvalues[rows],
            variance[self.pair[rows]].sum(axis=1),
            raw.count[rows],
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


def _non_rotation(raw: NormalEquations) -> Float[Array, "pair 2"]:
    """Return the largest entry of mean(R^T R) - I of both bodies of each pair."""
    deviation = np.abs(raw.A - np.eye(6)).reshape(-1, 2, 3, 2, 3)
    return np.stack([deviation[:, i, :, i].max(axis=(1, 2)) for i in (0, 1)], axis=1)


def _cap_noise(
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
    best = smallest_per_body(pair, residual, int(pair.max(initial=0)) + 1)
    return np.asarray(residual <= OUTLIER_SD * best[pair].max(axis=1))
