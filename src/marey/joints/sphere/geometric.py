r"""Geometric sphere fits: least squares of the radii themselves.

The centre c minimises the variance of the radii |x - c| of every marker, summed over
markers (the radius of a marker is the mean of its distances). At the minimum the scores
of all positions sum to zero:

.. math:: \sum_{f,m} e_{fm} j_{fm} = 0,

with the error e of a radius and its derivative j. The influence of a frame on the
centre is its score times the inverse Hessian; the sum of the squared influences is the
sandwich covariance.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from marey.joints.noise import MIN_INFORMATION_SHARE, BodyNoise
from marey.joints.sphere.algebraic import ROUNDING_SHARE, Basis, Center
from marey.joints.sphere.sandwich import sandwich_covariance
from marey.numerics import Float
from marey.numerics.resampling import evenly_spaced
from marey.numerics.robust import chi_squared_survival

if TYPE_CHECKING:
    from marey.joints.sphere.radii_kernel import RadiusSums

MAX_ITERATIONS = 20
"""Largest number of Gauss-Newton steps."""

TINY_STEP = 1e-7
"""Step over the distance of the farthest marker below which an iteration has converged.
Higher stops earlier."""

DISAGREEMENT_LEVEL = 0.01
"""Significance level of the test that markers disagree on the centre. Higher widens
the covariance more often; a tenth misses a doubtful shoulder of HDM05. Chosen by
hand."""

MAX_STEP_RADII = 0.5
"""Largest displacement of the centre over the radius; farther away the quadratic model
does not hold and the start is kept. Chosen by hand."""

Points = Float[np.ndarray, "frame marker 3"]
Scores = Float[np.ndarray, "frame marker directions"]


@dataclass(frozen=True, slots=True, eq=False)
class AxisNoiseBias:
    """Expected score of a marker's position due to the noise of the axes."""

    center: Center
    """The centre at which it was computed."""

    score: Float[np.ndarray, "marker directions"]
    derivative: Float[np.ndarray, "marker directions directions"]
    """Derivative of the score by the centre."""

    def at(
        self, center: Center, basis: Basis
    ) -> Float[np.ndarray, "marker directions"]:
        """Return the expected score at another centre, to first order."""
        moved = basis.T @ (center - self.center)
        return np.asarray(self.score + self.derivative @ moved)


@dataclass(frozen=True, slots=True, eq=False)
class EstimatingEquation:
    """Scores of all positions at a centre; at the best centre they sum to zero."""

    score: Scores
    """Score of each marker in each frame."""

    hessian: Float[np.ndarray, "marker directions directions"]
    """Negative derivative of the sum of each marker's scores by the centre."""

    variance: float
    """Mean squared error of a radius, in square metres."""

    @property
    def influence(self) -> Float[np.ndarray, "frame directions"]:
        """Influence of each frame on the centre, in metres."""
        return np.asarray(
            self.score.sum(axis=1) @ pseudo_inverse(self.hessian.sum(axis=0))
        )

    @property
    def disagreement(self) -> Float[np.ndarray, "directions directions"]:
        """Covariance of the centre due to the disagreement of markers."""
        square, freedom = sum_chi_squares(self.score)
        return marker_disagreement(
            self.hessian.sum(axis=0),
            self.hessian,
            self.score.sum(axis=0),
            square,
            freedom - self.score.shape[2],
        )

    @property
    def covariance(self) -> Float[np.ndarray, "directions directions"]:
        """Sandwich covariance of the centre, in square metres."""
        return np.asarray(sandwich_covariance(self.influence) + self.disagreement)


def sum_chi_squares(score: Scores) -> tuple[float, int]:
    """Return the chi-square of the sums of each marker's scores, and its freedom."""
    from marey.joints.sphere.symmetric_kernel import count_rank

    square, freedom = 0.0, 0
    for m in range(score.shape[1]):
        covariance, total = sandwich_covariance(score[:, m]), score[:, m].sum(axis=0)
        square += float(total @ pseudo_inverse(covariance, 1e-9) @ total)
        freedom += count_rank(covariance, len(total) * np.finfo(float).eps)
    return square, freedom


def marker_disagreement(
    hessian: Float[np.ndarray, "n n"],
    of_markers: Float[np.ndarray, "marker n n"],
    score: Float[np.ndarray, "marker n"],
    square: float,
    freedom: int,
) -> Float[np.ndarray, "n n"]:
    """Return the covariance of an estimate due to the disagreement of markers.

    Markers on skin slide with the motion of the limb, equally in every frame: all
    frames share one error. Single markers then give different centres. If a chi-square
    test finds that they disagree, this is the jackknife covariance over markers;
    otherwise it is zero.

    Args:
        hessian: Of all markers, and of what else is fitted.
        of_markers: The part of each marker.
        score: Sum of each marker's scores.
        square: From `sum_chi_squares`.
        freedom: Its freedom, without that of the estimate.
    """
    n = len(score)
    if n < 2 or freedom < 1:
        return np.zeros_like(hessian)
    if chi_squared_survival(square, freedom) >= DISAGREEMENT_LEVEL:
        return np.zeros_like(hessian)
    steps = np.stack(
        [pseudo_inverse(hessian - of_markers[m]) @ score[m] for m in range(n)]
    )
    return np.asarray((1.0 - 1.0 / n) * steps.T @ steps)


@dataclass(frozen=True, slots=True, eq=False)
class RadiusEquation:
    """The sums of an `EstimatingEquation` over all positions, without their scores."""

    score: Float[np.ndarray, " directions"]
    hessian: Float[np.ndarray, "directions directions"]
    variance: float
    """Mean squared error of a radius, in square metres."""

    @classmethod
    def at(
        cls, points: Points, center: Center, basis: Basis, bias: AxisNoiseBias | None
    ) -> "RadiusEquation":
        """Return the sums at a centre."""
        sums = _sum_radii(points, center, basis)
        score, hessian = sums.score, _hessian(sums)
        if bias is not None:
            score = score - sums.count[:, None] * bias.at(center, basis)
            hessian += sums.count[:, None, None] * bias.derivative
        hessian = limit_noise_share(hessian, sums.gauss_newton)
        return cls(score.sum(axis=0), hessian.sum(axis=0), _radius_variance(sums))


def refine_center(points: Points, center: Center, basis: Basis) -> Center:
    """Return the nearby centre whose distances to each marker vary least.

    Gauss-Newton steps, which end when one does not reduce the cost.
    """
    from marey.joints.sphere import radii_kernel  # numba is slow to import

    P = basis @ basis.T
    points = np.ascontiguousarray(points)
    limits = ROUNDING_SHARE, TINY_STEP, MAX_ITERATIONS
    found = radii_kernel.refine_center(points, center, P, *limits)
    return np.asarray(found)


def remove_axis_bias(
    points: Points, center: Center, basis: Basis, bias: AxisNoiseBias
) -> Center:
    """Return a refined centre without the bias from the noise of the axes.

    Noise of the axes moves markers sideways, by a distance that increases with their
    distance from the anchor, and more in some directions than in others. It lengthens
    some radii more than others, in correlation with their derivatives, and so biases
    the fit. Newton steps find the centre at which the scores minus their expectation
    sum to zero.
    """

    def step(moved: Center) -> Center:
        equation = RadiusEquation.at(points, moved, basis, bias)
        return np.asarray(basis @ pseudo_inverse(equation.hessian) @ equation.score)

    return take_newton_steps(step, center, farthest_position(points, center))


def take_newton_steps(
    step: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    farthest: float,
) -> np.ndarray:
    """Return where Newton steps converge, or the start if that is far from it.

    Args:
        step: The step from a point.
        start: The first point.
        farthest: Distance of the farthest marker from the start, in metres.
    """
    point = start
    for _ in range(MAX_ITERATIONS):
        taken = step(point)
        point = point + taken
        if not np.linalg.norm(point - start) < MAX_STEP_RADII * farthest:
            return start
        if np.linalg.norm(taken) <= TINY_STEP * farthest:
            break
    return point


def radial_scatter(
    points: Points, center: Center, basis: Basis
) -> tuple[float, Float[np.ndarray, " marker"]]:
    """Return the sum of the squared errors of the radii, and each marker's radius.

    In square metres and metres; the radius of a marker that was never seen is NaN.
    """
    sums = _sum_radii(points, center, basis)
    return float(sums.square.sum()), np.where(sums.count > 0, sums.radius, np.nan)


def _sum_radii(points: Points, center: Center, basis: Basis) -> "RadiusSums":
    """Return the sums over the radii, in the basis; mean directions in the world."""
    from marey.joints.sphere.radii_kernel import sum_radii  # numba is slow to import

    sums: RadiusSums = sum_radii(np.ascontiguousarray(points), center, basis @ basis.T)
    if basis.shape[0] == basis.shape[1]:
        return sums
    return sums._replace(
        score=sums.score @ basis,
        gauss_newton=basis.T @ sums.gauss_newton @ basis,
        turning=basis.T @ sums.turning @ basis,
    )


def estimating_equation(
    points: Points, center: Center, basis: Basis, bias: AxisNoiseBias | None = None
) -> EstimatingEquation:
    """Return the scores of all positions, without the bias from noisy axes.

    The first term of the Hessian is that of Gauss and Newton. Noise makes it too large,
    because it rotates the radii; the second-order term corrects that.
    """
    from marey.joints.sphere.radii_kernel import write_scores  # numba is slow to import

    sums, points = _sum_radii(points, center, basis), np.ascontiguousarray(points)
    expected = np.zeros((points.shape[1], basis.shape[1]))
    hessian = _hessian(sums)
    if bias is not None:
        expected = bias.at(center, basis)
        hessian += sums.count[:, None, None] * bias.derivative
    score = np.empty(points.shape)
    write_scores(points, center, basis @ basis.T, sums, expected @ basis.T, score)
    hessian = limit_noise_share(hessian, sums.gauss_newton)
    in_basis = score if basis.shape[0] == basis.shape[1] else score @ basis
    return EstimatingEquation(in_basis, hessian, _radius_variance(sums))


def _radius_variance(sums: "RadiusSums") -> float:
    """Return the mean squared error of a radius, in square metres."""
    square = float(sums.square.sum()) / max(float(sums.count.sum()), 1.0)
    return square + ROUNDING_SHARE * float(sums.radius.max()) ** 2


def _hessian(sums: "RadiusSums") -> Float[np.ndarray, "marker directions directions"]:
    """Return the second derivatives of half the squared radius errors, by marker.

    Those of Gauss-Newton and the curvature of the spheres; without unit.
    """
    identity = np.eye(sums.score.shape[1])
    curvature = sums.curvature[:, None, None] * identity - sums.turning
    return np.asarray(sums.gauss_newton + curvature)


def axis_noise_bias(
    points: Points, center: Center, basis: Basis, noise: BodyNoise
) -> AxisNoiseBias:
    """Return the expected score due to the noise of the axes, near a centre.

    The mean over a sample of the frames that show a marker; its derivative by the
    centre is a forward difference.
    """
    seen = np.flatnonzero(np.isfinite(points[..., 0]).any(axis=1))
    points = points[seen[evenly_spaced(len(seen))]]
    step = np.sqrt(np.finfo(float).eps) * farthest_position(points, center)
    score = _expected_score(points, center, basis, noise)
    derivative = np.zeros((*score.shape, score.shape[1]))
    for i, direction in enumerate(basis.T):
        moved = _expected_score(points, center + step * direction, basis, noise)
        derivative[:, :, i] = (moved - score) / step
    return AxisNoiseBias(
        center, score, 0.5 * (derivative + np.swapaxes(derivative, 1, 2))
    )


def farthest_position(points: Points, center: Center) -> float:
    """Return the largest distance of a position from a centre, in metres."""
    from marey.joints.sphere import radii_kernel  # numba is slow to import

    return float(radii_kernel.farthest_position(np.ascontiguousarray(points), center))


def limit_noise_share(
    hessian: Float[np.ndarray, "part n n"], observed: Float[np.ndarray, "part n n"]
) -> Float[np.ndarray, "part n n"]:
    """Return Hessians whose sum keeps a minimal share of the observed information.

    In every direction at least `MIN_INFORMATION_SHARE` of the observed one: the
    Hessians are blended with the observed ones as far as needed.
    """
    from marey.joints.sphere import radii_kernel  # numba is slow to import

    both = np.ascontiguousarray(hessian), np.ascontiguousarray(observed)
    share = radii_kernel.share_of_observed(*both, MIN_INFORMATION_SHARE, ROUNDING_SHARE)
    return np.asarray(hessian + share * (observed - hessian))


def _expected_score(
    points: Points, center: Center, basis: Basis, noise: BodyNoise
) -> Float[np.ndarray, "marker directions"]:
    """Return the expected score of a position of each marker from noise of the axes."""
    from marey.joints.sphere.radii_kernel import expected_score  # numba is slow

    arguments = center, basis @ basis.T, noise.rotation_covariance, noise.anchor
    values = [np.ascontiguousarray(value) for value in (points, *arguments)]
    return np.asarray(expected_score(*values) @ basis)


def pseudo_inverse(H: np.ndarray, rcond: float = ROUNDING_SHARE) -> np.ndarray:
    """Return the pseudo-inverse of a symmetric matrix."""
    from marey.joints.sphere import symmetric_kernel  # numba is slow to import

    return np.asarray(symmetric_kernel.pseudo_inverse(np.ascontiguousarray(H), rcond))
