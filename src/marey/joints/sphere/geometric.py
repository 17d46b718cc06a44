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

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg import eigh
from scipy.special import chdtri

from marey.joints.noise import MIN_INFORMATION_SHARE, BodyNoise
from marey.joints.sphere.algebraic import ROUNDING, Basis, Center
from marey.joints.sphere.sandwich import sandwich_covariance

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
    """Of the score by the centre."""


@dataclass(frozen=True, slots=True, eq=False)
class EstimatingEquation:
    """Scores of all positions at a centre; at the best centre they sum to zero."""

    score: Scores
    """Of each marker in each frame; the last may be the residual of two centres."""

    hessian: Float[np.ndarray, "marker directions directions"]
    """Negative derivative of the sum of each marker's scores by the centre."""

    has_residual: bool = False
    """Whether the last "marker" is the residual of two centres."""

    @property
    def step(self) -> Float[np.ndarray, " directions"]:
        """The Newton step to the best centre."""
        return np.asarray(self._inverse_hessian @ self.score.sum(axis=(0, 1)))

    @property
    def influence(self) -> Float[np.ndarray, "frame directions"]:
        """Influence of each frame on the centre, in metres."""
        return np.asarray(self.score.sum(axis=1) @ self._inverse_hessian)

    @property
    def _inverse_hessian(self) -> np.ndarray:
        return _inverse(np.asarray(self.hessian.sum(axis=0)))

    @property
    def disagreement(self) -> Float[np.ndarray, "directions directions"]:
        """Covariance of the centre due to the disagreement of markers.

        Markers on skin slide with the motion of the limb, equally in every frame: all
        frames share one error. Single markers then give different centres. If a
        chi-square test finds that they disagree, this is the jackknife covariance over
        markers; otherwise it is zero.
        """
        n_markers = self.score.shape[1] - self.has_residual
        directions = self.score.shape[2]
        total = self.score.sum(axis=0)
        square, freedom = 0.0, 0 if self.has_residual else -directions
        for m in range(n_markers):
            of_marker = sandwich_covariance(self.score[:, m])
            square += total[m] @ _inverse(of_marker, 1e-9) @ total[m]
            freedom += int(np.linalg.matrix_rank(of_marker, hermitian=True))
        limit = chdtri(max(freedom, 1), DISAGREEMENT_LEVEL)
        if n_markers < 2 or freedom < 1 or square <= limit:
            return np.zeros((directions, directions))
        without = self.hessian.sum(axis=0) - self.hessian[:n_markers]
        steps = np.stack([_inverse(without[m]) @ total[m] for m in range(n_markers)])
        return np.asarray((1.0 - 1.0 / n_markers) * steps.T @ steps)

    @property
    def covariance(self) -> Float[np.ndarray, "directions directions"]:
        """Sandwich covariance of the centre, in square metres."""
        return np.asarray(sandwich_covariance(self.influence) + self.disagreement)


def refine_center(points: Points, center: Center, basis: Basis) -> Center:
    """Return the nearby centre whose distances to each marker vary least.

    Gauss-Newton steps, which end when one does not reduce the cost.
    """
    best, best_center = np.inf, center
    for _ in range(MAX_ITERATIONS):
        radii = _radii(points, center, basis)
        cost = float(np.sum(radii.error**2))
        if not cost < best:
            break
        best, best_center = cost, center
        score = np.sum(radii.error[..., None] * radii.jacobian, axis=(0, 1))
        step = _inverse(_outer(radii.jacobian, radii.jacobian).sum(axis=0)) @ score
        center = center + basis @ step
        if np.sum(step**2) <= 1e-22 * radii.radius.max() ** 2:
            break
    return best_center


def remove_axis_bias(
    points: Points, center: Center, basis: Basis, bias: AxisNoiseBias
) -> Center:
    """Return a refined centre without the bias from the noise of the axes.

    Noise of the axes moves markers sideways: farther, the farther they are from the
    anchor, and more in some directions than in others. It lengthens some radii more
    than others, in correlation with their derivatives, and so biases the fit. Newton
    steps find the centre at which the scores minus their expectation sum to zero.
    """

    def step(moved: Center) -> Center:
        equation = estimating_equation(points, moved, basis, bias)
        return np.asarray(basis @ equation.step)

    def farthest(moved: Center) -> float:
        return float(np.nanmax(np.linalg.norm(points - moved, axis=-1)))

    return take_newton_steps(step, center, farthest)


def take_newton_steps(
    step: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    farthest: Callable[[np.ndarray], float],
) -> np.ndarray:
    """Return where Newton steps converge, or the start if that is far from it.

    Args:
        step: The step from a point.
        start: The first point.
        farthest: Distance of the farthest marker from a point, in metres.
    """
    point = start
    for _ in range(MAX_ITERATIONS):
        taken = step(point)
        point = point + taken
        size = farthest(point)
        if not np.linalg.norm(point - start) < MAX_STEP_RADII * size:
            return start
        if np.linalg.norm(taken) <= TINY_STEP * size:
            break
    return point


def radial_errors(
    points: Points, center: Center, basis: Basis
) -> tuple[Float[np.ndarray, "frame marker"], Float[np.ndarray, " marker"]]:
    """Return the error of each radius, and the mean radius of each marker, in metres.

    The error of an occluded marker is zero; the radius of one never seen is NaN.
    """
    radii = _radii(points, center, basis)
    return radii.error, np.where(radii.count > 0, radii.radius, np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class _Radii:
    """Radii of markers about a centre; zero where a marker is occluded."""

    known: Bool[np.ndarray, "frame marker"]
    count: Float[np.ndarray, " marker"]
    direction: Scores
    length: Float[np.ndarray, "frame marker"]
    radius: Float[np.ndarray, " marker"]
    error: Float[np.ndarray, "frame marker"]
    jacobian: Scores
    """Negative derivative of the error by the centre."""


def _radii(points: np.ndarray, center: np.ndarray, basis: np.ndarray) -> _Radii:
    known = np.isfinite(points).all(axis=-1)
    arm = points - center
    if not known.all():
        arm[~known] = 0.0
    arm = arm @ basis
    length = np.sqrt(np.einsum("fmi,fmi->fm", arm, arm))
    direction = arm / np.where(length > 0.0, length, 1.0)[..., None]
    count = known.sum(axis=0).astype(float)
    per_frame = 1.0 / np.maximum(count, 1.0)
    radius = length.sum(axis=0) * per_frame
    error = (length - radius) * known
    mean_direction = direction.sum(axis=0) * per_frame[:, None]
    jacobian = (direction - mean_direction) * known[..., None]
    return _Radii(known, count, direction, length, radius, error, jacobian)


def estimating_equation(
    points: Points, center: Center, basis: Basis, bias: AxisNoiseBias | None = None
) -> EstimatingEquation:
    """Return the scores of all positions, without the bias from noisy axes.

    The first term of the Hessian is that of Gauss and Newton. Noise makes it too large,
    because it rotates the radii; the second-order term corrects that.
    """
    radii = _radii(points, center, basis)
    curvature = radii.error / np.where(radii.length > 0.0, radii.length, np.inf)
    gauss_newton = _outer(radii.jacobian, radii.jacobian)
    identity = np.eye(basis.shape[1])
    hessian = gauss_newton + curvature.sum(axis=0)[:, None, None] * identity
    hessian -= _outer(curvature[..., None] * radii.direction, radii.direction)
    score = radii.error[..., None] * radii.jacobian
    if bias is not None:
        moved = basis.T @ (center - bias.center)
        score -= radii.known[..., None] * (bias.score + bias.derivative @ moved)
        hessian += radii.count[:, None, None] * bias.derivative
    return EstimatingEquation(score, limit_noise_share(hessian, gauss_newton))


def axis_noise_bias(
    points: Points, center: Center, basis: Basis, noise: BodyNoise
) -> AxisNoiseBias:
    """Return the expected score due to the noise of the axes, near a centre.

    Its derivative by the centre is a forward difference.
    """
    farthest = float(np.nanmax(np.linalg.norm(points - center, axis=-1)))
    step = np.sqrt(np.finfo(float).eps) * farthest
    score = _expected_score(points, center, basis, noise)
    derivative = np.zeros((*score.shape, score.shape[1]))
    for i, direction in enumerate(basis.T):
        moved = _expected_score(points, center + step * direction, basis, noise)
        derivative[:, :, i] = (moved - score) / step
    return AxisNoiseBias(
        center, score, 0.5 * (derivative + np.swapaxes(derivative, 1, 2))
    )


def _outer(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the sums over frames of a b^T, one for each marker."""
    return np.asarray(a.transpose(1, 2, 0) @ b.transpose(1, 0, 2))


def limit_noise_share(
    hessian: Float[np.ndarray, "part n n"], observed: Float[np.ndarray, "part n n"]
) -> Float[np.ndarray, "part n n"]:
    """Return Hessians whose sum keeps a minimal share of the observed information.

    In every direction at least `MIN_INFORMATION_SHARE` of the observed one: the
    Hessians are blended with the observed ones as far as needed.
    """
    total, upper = hessian.sum(axis=0), observed.sum(axis=0)
    upper = upper + ROUNDING * np.trace(upper) * np.eye(len(upper))
    if not np.trace(upper) > 0.0:
        return hessian
    smallest = eigh(total, upper, eigvals_only=True)[0]
    lacking = MIN_INFORMATION_SHARE - smallest
    blend = np.clip(lacking / max(1.0 - smallest, ROUNDING), 0.0, 1.0)
    return np.asarray(hessian + blend * (observed - hessian))


def _expected_score(
    points: np.ndarray, center: np.ndarray, basis: np.ndarray, noise: BodyNoise
) -> np.ndarray:
    """Return the expected score of a position of each marker from noise of the axes.

    To second order in the noise.
    """
    radii = _radii(points, center, basis)
    y = points - noise.anchor
    if not radii.known.all():
        y[~radii.known] = 0.0
    direction = radii.direction @ basis.T
    # Covariance of the displacement of a marker with its component along the radius.
    C = noise.rotation_covariance
    covariance = np.cross(y, np.cross(direction, y) @ C)
    along = np.sum(direction * covariance, axis=-1)
    moments = np.cross(basis.T[:, None, None], y)
    in_basis = np.sum((moments @ C) * moments, axis=(0, -1))
    R = np.where(radii.radius > 0.0, radii.radius, np.inf)
    lengthening = 0.5 * (in_basis - along) / R
    across = (covariance - along[..., None] * direction) @ basis
    score = lengthening[..., None] * radii.jacobian + across / R[:, None]
    return np.asarray(score.sum(axis=0) / np.maximum(radii.count, 1.0)[:, None])


def _inverse(H: np.ndarray, rcond: float = ROUNDING) -> np.ndarray:
    """Return the pseudo-inverse of a symmetric matrix."""
    return np.asarray(np.linalg.pinv(H, rcond=rcond, hermitian=True))
