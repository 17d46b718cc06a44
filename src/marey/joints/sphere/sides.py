"""A joint from the paths of markers, in the axes of one body and of both.

In the axes of one body the markers of the other run on spheres, of which only the radii
count. If both bodies have poses, the two centres must also stay together as the bodies
rotate (OBrien2000). A joint of small range shows little of its sphere, but its rotation
is measured well, and so is the residual.
"""

from dataclasses import dataclass, fields, replace

import numpy as np

from marey.joints.ball.closed_form import FREE_SD_M
from marey.joints.noise import BodyNoise, PoseNoise
from marey.joints.sphere.algebraic import ROUNDING_SHARE, AlgebraicFit
from marey.joints.sphere.fit import (
    MIN_POSITIONS,
    KindChoice,
    Sphere,
    SphereEstimator,
    fit_sphere_to_moments,
    refine_sphere,
)
from marey.joints.sphere.geometric import (
    AxisNoiseBias,
    RadiusEquation,
    axis_noise_bias,
    estimating_equation,
    farthest_position,
    limit_noise_share,
    marker_disagreement,
    pseudo_inverse,
    radial_scatter,
    remove_axis_bias,
    sum_chi_squares,
    take_newton_steps,
)
from marey.joints.sphere.moments import SphereMoments, compute_moments
from marey.joints.sphere.sandwich import sandwich_covariance
from marey.joints.stacked_takes import StackedTakes
from marey.numerics import Array, Float, geometry

Centers = Float[Array, "2 3"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OneSidedFit(Sphere):
    """The sphere that the markers of another body describe in the axes of one body."""

    points: Float[Array, "frame marker 3"]
    """The markers, in metres."""

    influence: Float[Array, "frame 3"]
    """Influence of each frame on the centre, in metres."""

    disagreement: Float[Array, "3 3"]
    """Covariance of the centre due to the disagreement of markers, in square metres."""

    axis_noise: BodyNoise
    """Noise of the body's axes."""

    bias: AxisNoiseBias | None = None
    """Expected score from that noise; only for "geometric" centres."""

    @property
    def known(self) -> bool:
        """Whether there is a centre."""
        return bool(np.isfinite(self.center).all())

    @property
    def marker_distance(self) -> Float[Array, " marker"]:
        """Mean distance from the centre of each marker ever seen, in metres."""
        _, radius = radial_scatter(self.points, self.center, np.eye(3))
        return np.asarray(radius[np.isfinite(radius)])


Sides = tuple[OneSidedFit, OneSidedFit]


@dataclass(frozen=True, slots=True, eq=False)
class MarkerPaths:
    """The markers of one body in the axes of another."""

    points: Float[Array, "frame marker 3"]
    """In metres; no markers if the other body has no axes."""

    moments: SphereMoments
    axis_noise: BodyNoise
    noise: Float[Array, "3 3"]
    """Covariance of a position, in square metres."""

    @classmethod
    def in_body(
        cls,
        takes: StackedTakes,
        body: int,
        moving: int,
        poses: PoseNoise,
        *,
        has_axes: bool,
    ) -> "MarkerPaths":
        """Return the markers of the body `moving` in the axes of `body`.

        Args:
            takes: Poses and markers.
            body: The body in whose axes the joint is estimated.
            moving: The body whose markers describe the sphere.
            poses: Noise of the poses.
            has_axes: Whether the pose of the body determines its axes.
        """
        points = np.full((len(takes.T), 0, 3), np.nan)
        if has_axes:
            points = takes.markers_in_body(body, moving)
        axes = poses.of_body(body)
        posed = poses.of_body(moving) if takes.determined[moving] else None
        moments = compute_moments(points)
        noise = takes.marker_noise_covariance(moments, axes, posed)
        return cls(points, moments, axes, noise)

    def fit_moments(
        self,
        estimator: SphereEstimator,
        kind: KindChoice = "auto",
        axis: Float[Array, " 3"] | None = None,
    ) -> Sphere:
        """Return the sphere of the moments, see `fit_sphere`."""
        return fit_sphere_to_moments(
            self.moments, estimator=estimator, kind=kind, axis=axis, noise=self.noise
        )


def fit_one_side(
    paths: MarkerPaths,
    start: Sphere,
    estimator: SphereEstimator,
    *,
    axis_given: bool = False,
) -> OneSidedFit:
    """Return the joint in a body's axes; unknown if the moments show no centre.

    A "geometric" centre still has the bias of noisy axes, which `remove_bias` removes.

    Args:
        paths: The markers of the other body.
        start: From `MarkerPaths.fit_moments`.
        estimator: As in `fit_sphere`.
        axis_given: Whether the axis of a hinge was known.
    """
    points, sphere = paths.points, start
    if not start.reason:
        sphere = refine_sphere(
            points, paths.moments, start, estimator, axis_given=axis_given
        )
    side = OneSidedFit(
        **{field.name: getattr(sphere, field.name) for field in fields(Sphere)},
        points=points,
        influence=np.zeros((len(points), 3)),
        disagreement=np.zeros((3, 3)),
        axis_noise=paths.axis_noise,
    )
    if sphere.reason:
        return side
    if estimator == "geometric":
        bias = axis_noise_bias(points, side.center, side.basis, paths.axis_noise)
        return replace(side, bias=bias)
    fit = AlgebraicFit(paths.moments, sphere.basis, bias_corrected=estimator != "kasa")
    return replace(side, influence=fit.influence(points))


def remove_bias(side: OneSidedFit) -> OneSidedFit:
    """Return a side whose centre has no bias from noisy axes, with its influences."""
    if side.bias is None:
        return side
    points, basis, bias = side.points, side.basis, side.bias
    center = remove_axis_bias(points, side.center, basis, bias)
    equation = estimating_equation(points, center, basis, bias)
    return replace(
        side,
        center=center,
        influence=equation.influence @ basis.T,
        disagreement=basis @ equation.disagreement @ basis.T,
    )


def fill_missing_side(
    T_a_b: Float[Array, "frame 4 4"], in_a: OneSidedFit, in_b: OneSidedFit
) -> tuple[OneSidedFit, OneSidedFit]:
    """Return both sides with a centre: a missing one is taken from the other side.

    If both are missing, the point midway between the two origins is used.
    """
    if in_a.known and in_b.known:
        return in_a, in_b
    T_b_a = geometry.inverse(T_a_b)
    if not in_a.known and not in_b.known:
        middle = 0.5 * T_a_b[:, :3, 3].mean(axis=0)
        in_a = replace(in_a, center=middle)
        return in_a, replace(in_b, center=mean_position(T_b_a, middle))
    if not in_b.known:
        return in_a, _copy_from_other(T_b_a, in_b, in_a)
    return _copy_from_other(T_a_b, in_a, in_b), in_b


def _copy_from_other(T: Array, side: OneSidedFit, other: OneSidedFit) -> OneSidedFit:
    """Return a side with the centre and axis of the other, moved by T_side_other.

    The scatter of the moved centres counts as its disagreement.
    """
    R = T[:, :3, :3].mean(axis=0)
    axis = R @ other.axis
    centers = geometry.apply(T, other.center)
    scatter = np.cov(centers.T, bias=True)
    return replace(
        side,
        center=centers.mean(axis=0),
        axis=axis / np.linalg.norm(axis),
        axis_covariance=R @ other.axis_covariance @ R.T,
        kind=other.kind,
        influence=other.influence @ R.T,
        disagreement=R @ other.disagreement @ R.T + scatter,
    )


def mean_position(
    T: Float[Array, "frame 4 4"], point: Float[Array, " 3"]
) -> Float[Array, " 3"]:
    """Return the mean over all frames of a point moved by T."""
    return np.asarray(geometry.apply(T, point).mean(axis=0))


def align_along_hinge(
    T_a_b: Float[Array, "frame 4 4"], in_a: OneSidedFit, in_b: OneSidedFit
) -> tuple[OneSidedFit, OneSidedFit]:
    """Return a hinge with its centre midway between the feet of both origins.

    The foot of an origin is the point of the axis nearest to it: the minimum norm
    solution of OBrien2000.
    """
    foot_b = in_b.center - (in_b.center @ in_b.axis) * in_b.axis
    foot_a = in_a.center - (in_a.center @ in_a.axis) * in_a.axis
    half = 0.5 * (mean_position(T_a_b, foot_b) - foot_a) @ in_a.axis
    return (
        replace(in_a, center=foot_a + half * in_a.axis),
        replace(in_b, center=foot_b - half * in_b.axis),
    )


def fallback_center(side: OneSidedFit) -> OneSidedFit:
    """Return the side; if no centre was found, with the mean marker position as one."""
    seen = np.isfinite(side.points).all(axis=-1)
    if side.known or seen.sum(axis=0).max(initial=0) < MIN_POSITIONS:
        return side
    return replace(
        side,
        center=side.points[seen].mean(axis=0),
        noise=float(np.linalg.norm(side.spread)),
        disagreement=FREE_SD_M**2 * np.eye(3),
    )


def fit_both_centers(
    T_a_b: Float[Array, "frame 4 4"], sides: Sides
) -> tuple[Centers, Float[Array, "6 6"]]:
    """Return the centres in a and b that fit radii and residual best.

    Least squares, each term weighted by the inverse of its mean square, with the
    expected scores due to the noise of the axes subtracted. The terms share the noise
    of the orientations, so the covariance is the empirical (sandwich) one over frames.

    Args:
        T_a_b: Pose of b in a, NaN where one of them is occluded.
        sides: The joint in the axes of a and of b, over the same frames; both with as
            many directions in their basis.

    Returns:
        (center_a, center_b) in metres, and their covariance in square metres.
    """
    farthest = max(farthest_position(side.points, np.zeros(3)) for side in sides)
    residual = _ResidualForm(T_a_b, sides)
    basis = block_diagonal(*residual.bases)

    def step(centers: Array) -> Array:
        """Return the Newton step of both centres, in metres."""
        score, hessian = residual.equation(centers.reshape(2, 3))
        parts = [
            RadiusEquation.at(side.points, center, B, side.bias)
            for side, center, B in zip(
                sides, centers.reshape(2, 3), residual.bases, strict=True
            )
        ]
        score = score + np.concatenate([part.score / part.variance for part in parts])
        hessian = hessian + block_diagonal(
            *(part.hessian / part.variance for part in parts)
        )
        return np.asarray(basis @ pseudo_inverse(hessian) @ score)

    start = np.concatenate([side.center for side in sides])
    centers = take_newton_steps(step, start, farthest).reshape(2, 3)
    covariance = _covariance(residual, sides, centers)
    return centers, basis @ covariance @ basis.T


def _covariance(
    residual: "_ResidualForm", sides: Sides, centers: Centers
) -> Float[Array, "both both"]:
    """Return the covariance of (center_a, center_b) in the bases of both sides.

    Radii and residual are weighted by the inverse of their mean square.
    """
    k = sides[0].basis.shape[1]
    score, (_, hessian) = residual.scores(centers), residual.equation(centers)
    of_markers, totals, square, freedom = [], [], 0.0, 0
    for i, (side, center) in enumerate(zip(sides, centers, strict=True)):
        equation = estimating_equation(side.points, center, side.basis, side.bias)
        weight, block = 1.0 / equation.variance, slice(i * k, i * k + k)
        score[:, block] += weight * equation.score.sum(axis=1)
        n_markers = len(equation.hessian)
        of_side = np.zeros((n_markers, 2 * k, 2 * k))
        total = np.zeros((n_markers, 2 * k))
        of_side[:, block, block] = weight * equation.hessian
        total[:, block] = weight * equation.score.sum(axis=0)
        of_markers.append(of_side)
        totals.append(total)
        chi_square, rank = sum_chi_squares(equation.score)
        square, freedom = square + chi_square, freedom + rank
    each, total = np.concatenate(of_markers), np.concatenate(totals)
    hessian = hessian + each.sum(axis=0)
    disagreement = marker_disagreement(hessian, each, total, square, freedom)
    covariance = sandwich_covariance(score @ pseudo_inverse(hessian))
    return np.asarray(covariance + disagreement)


class _ResidualForm:
    r"""The joint residual of a pair, summed over frames about the first centres.

    With the rotations R, the projection P across the axis of a hinge and the residual r
    at the first centres, the mean square at centres displaced by x in a and y in b is

    .. math:: \\overline{|P (r + R y - x)|^2},

    a quadratic form, so that Newton steps need no frames.
    """

    def __init__(self, T_a_b: Float[Array, "frame 4 4"], sides: Sides) -> None:
        from marey.joints.sphere.radii_kernel import sum_residuals  # numba is slow

        self.sides, self.T_a_b = sides, T_a_b
        self.start = np.stack([side.center for side in sides])
        self.bases = sides[0].basis, sides[1].basis
        square = [_displacement_by_noise(side) for side in sides]
        self._square_by_noise = [
            B.T @ M for B, M in zip(self.bases, square, strict=True)
        ]
        self._anchors = np.stack([side.axis_noise.anchor for side in sides])
        information = [
            N @ B for N, B in zip(self._square_by_noise, self.bases, strict=True)
        ]
        self._information_of_noise = block_diagonal(*information)
        B_a, B_b = self.bases
        sums = sum_residuals(T_a_b, self.start[0], self.start[1], B_a @ B_a.T)
        self.count = max(float(sums.count[0]), 1.0)
        self._M = B_a.T @ sums.rotation @ B_b
        self._G = B_b.T @ sums.square_rotation @ B_b
        self._mean, self._in_b = B_a.T @ sums.residual, B_b.T @ sums.in_b
        self._square = float(sums.square[0])
        size = np.eye(len(self._mean))
        self._observed = np.block([[size, -self._M], [-self._M.T, self._G]])

    def _displacement(self, centers: Centers) -> tuple[Array, Array]:
        """Return how far both centres are from the start, along their bases (m)."""
        moved = centers - self.start
        return self.bases[0].T @ moved[0], self.bases[1].T @ moved[1]

    def _expected_score(self, centers: Centers) -> Float[Array, " both"]:
        """Return the expected score of one frame's residual from noise of the axes.

        The mean square of the displacement by noise grows with the arm, so least
        squares shorten the arm; this is half its gradient by the centres.
        """
        arms = centers - self._anchors
        a, b = self._square_by_noise
        return np.concatenate([a @ arms[0], b @ arms[1]])

    def variance(self, centers: Centers) -> float:
        """Return the mean square of one coordinate of the residual."""
        x, y = self._displacement(centers)
        square = self._square + x @ (x - 2.0 * self._mean - 2.0 * self._M @ y)
        square += y @ (self._G @ y + 2.0 * self._in_b)
        size = np.mean(np.sum(centers**2, axis=1))
        return float(max(square, 0.0) / len(x) + ROUNDING_SHARE * size)

    def equation(self, centers: Centers) -> tuple[Array, Array]:
        """Return the sum of the scores and the Hessian, without their noise bias."""
        x, y = self._displacement(centers)
        score = np.concatenate(
            [self._mean + self._M @ y - x, self._M.T @ x - self._G @ y - self._in_b]
        )
        score += self._expected_score(centers)
        observed = self._observed
        corrected = observed - self._information_of_noise
        hessian = limit_noise_share(corrected[None], observed[None])[0]
        scale = self.count / self.variance(centers)
        return scale * score, scale * hessian

    def scores(self, centers: Centers) -> Float[Array, "frame both"]:
        """Return the score of every frame, zero where a body is occluded."""
        from marey.joints.sphere.radii_kernel import write_residual_scores

        B_a, B_b = self.bases
        basis, bias = block_diagonal(B_a, B_b), self._expected_score(centers)
        score = np.zeros((len(self.T_a_b), 6))
        arguments = self.T_a_b, *centers, B_a @ B_a.T, basis @ bias, score
        write_residual_scores(*arguments)
        return np.asarray(score @ basis / self.variance(centers))


def _displacement_by_noise(side: OneSidedFit) -> Float[Array, "3 3"]:
    """Return M with y^T M y, the mean square displacement of a centre at the arm y.

    A noisy rotation w moves the centre by w x y, in the directions of the basis.
    """
    hats = geometry.hat(side.basis.T)
    C = side.axis_noise.rotation_covariance
    return np.asarray(np.einsum("kji,jl,klm->im", hats, C, hats))


def block_diagonal(a: Float[Array, "n k"], b: Float[Array, "m l"]) -> Array:
    """Return the matrix with two blocks on its diagonal and zeros elsewhere."""
    (n, k), (m, j) = a.shape, b.shape
    both = np.zeros((n + m, k + j))
    both[:n, :k], both[n:, k:] = a, b
    return both
