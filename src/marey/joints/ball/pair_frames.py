"""Relative poses of one pair of bodies, and their residuals frame by frame."""

from dataclasses import dataclass

import numpy as np

from marey.joints.ball.normal_equations import NormalEquations, Pairs, PerPair
from marey.numerics import Array, Bool, Float, Int, geometry
from marey.numerics.noise import median_variance
from marey.numerics.robust import runs
from marey.numerics.thresholds import MIN_SAMPLES

TUKEY_CUTOFF_SIGMAS = 8.0
"""Standard deviations of a whitened residual at which Tukey's biweight reaches zero.
Higher keeps more spikes; lower takes weight from good frames. Chosen by hand."""

MAX_SPIKE_FRAMES = 5
"""Longest run of frames that can be a spike. A longer run is motion of the bodies, not
an error of the instrument; without it two bodies that rarely move would seem rigid.
Chosen by hand."""

MAX_SPIKE_SHARE = 0.05
"""Largest share of frames that can be spikes. Where more deviate, that is how the
bodies move, in frames that are not in the order of time. Higher lets less of a real
motion into the fit. Chosen by hand."""

ROUNDING_SHARE = 1e-6
"""Residual over the distance of the bodies below which no frame is called a spike: it
may be rounding."""

MAX_ITERATIONS = 6
"""Rounds of leaving out spikes and fitting again. Two or three usually converge; if
they do not, the last round counts."""


@dataclass(frozen=True, slots=True, eq=False)
class RelativePoses:
    """Poses of body b in body a, over the frames that show both."""

    R_a_b: Float[Array, "frame 3 3"]
    t_a_b: Float[Array, "frame 3"]
    """From the anchor of a to that of b, in the axes of a, in metres."""

    def residual(self, u: Float[Array, "6"]) -> Float[Array, "frame 3"]:
        """Return center_a minus center_b in the axes of a, in metres (Eq. 8).

        Args:
            u: (center_a, center_b) relative to the anchors.
        """
        center_b = np.einsum("fij,j->fi", self.R_a_b, u[3:])
        return np.asarray(u[:3] - self.t_a_b - center_b)

    def select(self, frames: Bool[Array, " frame"]) -> "RelativePoses":
        """Return some of the frames."""
        return RelativePoses(self.R_a_b[frames], self.t_a_b[frames])

    def equations(self) -> NormalEquations:
        """Return the normal equations of this pair; orientations must be rotations."""
        n = len(self.t_a_b)
        M = self.R_a_b.mean(axis=0)
        A = np.eye(6)[None].copy()
        A[0, :3, 3:], A[0, 3:, :3] = -M, -M.T
        mean_in_b = np.einsum("fji,fj->i", self.R_a_b, self.t_a_b) / n
        g = np.concatenate([self.t_a_b.mean(axis=0), -mean_in_b])[None]
        square = np.array([np.mean(np.sum(self.t_a_b**2, axis=1))])
        return NormalEquations(np.array([float(n)]), A, g, square)


def center_gaps(
    T_world_body: Float[Array, "frame body 4 4"],
    pair: Int[Array, "2"],
    centers: Float[Array, "2 3"],
) -> Float[Array, "frame 3"]:
    """Return a joint's centre in the first body minus that in the second, in metres.

    Args:
        T_world_body: Poses of all bodies.
        pair: The two bodies.
        centers: The centre in the axes of each of them, in metres.
    """
    in_world = geometry.apply(T_world_body[:, pair], centers)
    return np.asarray(in_world[:, 0] - in_world[:, 1])


def tukey_weights(
    residual: Float[Array, "frame 3"],
    precision: Float[Array, "#frame 3 3"],
    min_square: float = 0.0,
) -> Float[Array, " frame"]:
    """Return weights of frames, 0 to 1: Tukey's biweight of their deviation.

    The deviation is the Mahalanobis distance of a residual from the median of the five
    frames around it. Its scale is that of the median frame.

    Args:
        residual: In metres, in the order of time.
        precision: Inverse covariance of every residual, or of all.
        min_square: Squared deviation that is never called a spike.
    """
    from marey.joints.ball.gauss_helmert_kernel import squared_norms, subtract_medians

    if len(residual) < MIN_SAMPLES:
        return np.ones(len(residual))
    deviation = np.empty_like(residual)
    subtract_medians(residual, deviation)
    square = np.empty(len(residual))
    P = np.broadcast_to(precision, (len(residual), 3, 3))
    squared_norms(deviation, np.require(P, requirements=["C", "W"]), square)
    limit = max(TUKEY_CUTOFF_SIGMAS**2 * median_variance(square), min_square)
    if not limit > 0.0:
        return np.ones(len(residual))
    weight = np.maximum(1.0 - square / limit, 0.0) ** 2
    spike = weight == 0.0
    for first, last in runs(spike):
        spike[first : last + 1] &= last - first < MAX_SPIKE_FRAMES
    if spike.mean() > MAX_SPIKE_SHARE:
        return np.ones(len(residual))
    weight[(weight == 0.0) & ~spike] = 1.0
    return np.asarray(weight)


def find_inliers(
    relative: RelativePoses, u: Float[Array, "6"]
) -> Bool[Array, " frame"]:
    """Return the frames whose residual is no spike.

    Each round leaves the spikes out and fits again, until the same frames remain.
    """
    distance = np.sqrt(np.mean(np.sum(relative.t_a_b**2, axis=1)))
    min_square = float(ROUNDING_SHARE * distance) ** 2
    inlier = np.ones(len(relative.t_a_b), dtype=bool)
    for _ in range(MAX_ITERATIONS):
        weight = tukey_weights(relative.residual(u), np.eye(3)[None], min_square)
        before, inlier = inlier, weight > 0.0
        if np.array_equal(before, inlier):
            break
        raw = relative.select(inlier).equations()
        u = np.linalg.lstsq(raw.A[0], raw.g[0], rcond=1e-10)[0]
    return inlier


def correlation_length(
    residual: Float[Array, "frame 3"], n_fitted_means: int = 0
) -> float:
    r"""Return the number of frames per independent residual, 1 or more.

    The integrated autocorrelation time

    .. math:: 1 + 2 \sum_k \rho_k,

    up to the first autocorrelation that is not significant (two standard errors of
    white noise). Those after it fall geometrically, as they have fallen up to there.

    A fit that removes m means from n residuals makes each of the 2 L + 1 terms of that
    sum smaller by m / n of the sum; the result makes up for it.

    Args:
        residual: Deviations of a fit.
        n_fitted_means: Means of each column that the fit has removed.
    """
    n = len(residual)
    if n < MIN_SAMPLES:
        return 1.0
    size = 1 << (2 * n - 1).bit_length()
    power = np.abs(np.fft.rfft(residual, size, axis=0)) ** 2
    autocovariance = np.fft.irfft(power.sum(axis=1), size)[: n // 4]
    if not autocovariance[0] > 0.0:
        return 1.0
    correlation = autocovariance / autocovariance[0]
    end = int(np.argmax(correlation < 2.0 / np.sqrt(n)))
    significant = correlation[1 : end if end > 0 else len(correlation)]
    n_lags = 2 * len(significant) + 1
    tail = 0.0
    if len(significant):
        factor = significant[-1] ** (1.0 / len(significant))
        tail = significant[-1] * factor / max(1.0 - factor, 1.0 / n)
    frames = 1.0 + 2.0 * float(significant.sum() + tail)
    kept = max(1.0 - n_fitted_means * n_lags / n, 1.0 / n)
    return min(frames / kept, float(n))


def best_pairs(pair: Pairs, residual: PerPair, per_body: int) -> Int[Array, " row"]:
    """Return the rows of the `per_body` pairs of each body with least residual."""
    chosen = set()
    for body in np.unique(pair):
        rows = np.flatnonzero((pair == body).any(axis=1) & np.isfinite(residual))
        best = rows[np.argsort(residual[rows], kind="stable")]
        chosen |= set(best[:per_body].tolist())
    return np.array(sorted(chosen), dtype=np.int64)
