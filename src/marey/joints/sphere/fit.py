"""Spheres and circles through the positions of markers that rotate about one point."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from marey.errors import DataError
from marey.joints.ball.closed_form import FREE_SD_M, NOISE_UNCERTAINTY
from marey.joints.noise import FALSE_ALARM_RATE
from marey.joints.sphere import algebraic, geometric
from marey.joints.sphere.algebraic import AlgebraicFit
from marey.joints.sphere.moments import SphereMoments, compute_moments, pool_moments
from marey.joints.sphere.sandwich import sandwich_covariance
from marey.numerics import Float
from marey.numerics.robust import chi_squared_quantile
from marey.numerics.thresholds import FEW, MAX_PLAY_RAD
from marey.options import Options, choice

SphereEstimator = Literal["geometric", "corrected", "kasa"]
SphereKind = Literal["ball", "hinge", "fixed"]
KindChoice = Literal["auto", "ball", "hinge", "fixed"]

MIN_POSITIONS = 4
"""Positions of one marker that determine a sphere (Knight2007, Sec. 2)."""

MAX_PLAY_NOISE_RATIO = 4.0
"""Noise of a circle over that of a sphere above which rotation across the axis is not
play: for motion about a centre the sphere would fit far better. Twice the value changes
no joint of the real recordings; half makes balls of pins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GdkeOptions(Options):
    """How joints are fitted to the paths of markers."""

    estimator: Literal["geometric", "corrected", "kasa"] = choice(
        "geometric", "corrected", "kasa"
    )
    """"kasa" is Knight2007 as published, biased on less than a full sphere;
    "corrected" removes that bias; "geometric" is the least squares of the radii."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SphereOptions(GdkeOptions):
    """How one sphere is fitted."""

    kind: Literal["auto", "ball", "hinge", "fixed"] = choice(
        "auto", "ball", "hinge", "fixed"
    )
    """The kind of motion when it is known; "auto" decides."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Sphere:
    """The point or axis about which markers rotate, and its uncertainty."""

    center: Float[np.ndarray, " 3"]
    """In metres; of a hinge the point of the axis nearest to the markers' mean. NaN
    where unknown, see `reason`."""

    radius: Float[np.ndarray, " marker"]
    """Distance of each marker from the centre, of a hinge from its axis; in metres,
    without the bias that noise adds. NaN for markers that were never seen."""

    kind: SphereKind
    """"ball": a sphere; "hinge": a circle or cylinder; "fixed": hardly any motion."""

    axis: Float[np.ndarray, " 3"]
    """Unit axis of a hinge; NaN for other kinds."""

    noise: float
    """Standard deviation of one position along its radius, in metres."""

    spread: Float[np.ndarray, " 3"]
    """Standard deviation of the positions along their three principal directions,
    ascending, in metres."""

    covariance: Float[np.ndarray, "3 3"]
    """Covariance of the centre in square metres; very large along the axis of a hinge,
    where every point is equally good."""

    axis_covariance: Float[np.ndarray, "3 3"]
    """Covariance of the axis of a hinge, estimated from the plane in which its markers
    move, in square radians; NaN for other kinds, and where the axis was given."""

    reason: str = ""
    """Why there is no centre; empty when there is one."""

    @property
    def basis(self) -> Float[np.ndarray, "3 directions"]:
        """Unit columns: the directions in which the fit can move the centre."""
        return _plane(self.axis) if self.kind == "hinge" else np.eye(3)


class SphereAccumulator:
    """A sphere fit that grows with the data, in constant memory.

    Positions may come in any order, from any time and take; each call costs what its
    own positions cost. `fit` uses the moments alone: the estimators "corrected" and
    "kasa".
    """

    def __init__(self, n_markers: int = 1) -> None:
        self.moments = compute_moments(np.zeros((0, n_markers, 3)))

    def update(self, points: Float[np.ndarray, "frame *marker 3"]) -> None:
        """Add positions, in metres; NaN where a marker is occluded."""
        self.moments = pool_moments(self.moments, compute_moments(_by_marker(points)))

    def fit(
        self,
        *,
        estimator: Literal["corrected", "kasa"] = "corrected",
        kind: KindChoice = "auto",
    ) -> Sphere:
        """Return the sphere of all positions so far; see `fit_sphere`."""
        return fit_sphere_to_moments(self.moments, estimator=estimator, kind=kind)


def fit_sphere(
    points: Float[np.ndarray, "frame *marker 3"],
    *,
    estimator: SphereEstimator = "geometric",
    kind: KindChoice = "auto",
    axis: Float[np.ndarray, " 3"] | None = None,
    noise: Float[np.ndarray, "3 3"] | None = None,
) -> Sphere:
    r"""Return the point about which markers rotate, in the frame in which it is fixed.

    All markers share the centre, each has its own radius. Implements Knight2007, Eqs.
    1-6, whose Delogne-Kasa estimator is `estimator="kasa"`:

    .. math:: c = \bar x + C^{-1} S / 2 \quad \text{(Eq. 5)}.

    Departures: on less than a full sphere that estimator is drawn towards the markers,
    because noise widens C. "corrected" subtracts the noise, C - sigma^2 I, with sigma
    from the radii, until both agree. "geometric" starts there and minimises the sum of
    the squared errors of the radii. Whether motion is planar is a test against the
    noise, not a fixed condition number. Radii are corrected for the noise: R^2 =
    mean|x - c|^2 - 3 sigma^2.

    Args:
        points: Positions in metres, NaN where unknown; one marker or several.
        estimator: "geometric", "corrected" or "kasa".
        kind: "ball" or "hinge" when it is known; "auto" decides.
        axis: Unit axis of a hinge when it is known; else the direction along which
            the markers move least.
        noise: Prior covariance of the positions' noise, in square metres; the
            scatter of the radii counts where it is larger.

    Returns:
        The sphere; without a centre, and with a reason, where the motion gives none.

    Raises:
        OptionError: If an option is not known.
    """
    points = _by_marker(points)
    moments = compute_moments(points)
    start = fit_sphere_to_moments(
        moments, estimator=estimator, kind=kind, axis=axis, noise=noise
    )
    if start.reason:
        return start
    sphere = refine_sphere(
        points, moments, start, estimator, axis_given=axis is not None
    )
    if estimator == "geometric":
        basis = sphere.basis
        equation = geometric.estimating_equation(points, sphere.center, basis)
        covariance = basis @ equation.covariance @ basis.T
    else:
        fit = AlgebraicFit(moments, sphere.basis, bias_corrected=estimator != "kasa")
        covariance = sandwich_covariance(fit.influence(points))
    return _with_free_axis(replace(sphere, covariance=covariance))


def refine_sphere(
    points: Float[np.ndarray, "frame marker 3"],
    moments: SphereMoments,
    start: Sphere,
    estimator: SphereEstimator,
    *,
    axis_given: bool,
) -> Sphere:
    """Return `fit_sphere` without the covariance of the centre.

    Args:
        points: As in `fit_sphere`.
        moments: Of the points.
        start: From `fit_sphere_to_moments`, with a centre.
        estimator: As in `fit_sphere`.
        axis_given: Whether the axis of a hinge was known.
    """
    sphere = _refine(points, start) if estimator == "geometric" else start
    if sphere.kind == "hinge" and not axis_given:
        influence = algebraic.axis_influence(points, moments, sphere.axis)
        sphere = replace(sphere, axis_covariance=sandwich_covariance(influence))
    return sphere


def fit_sphere_to_moments(
    moments: SphereMoments,
    *,
    estimator: SphereEstimator = "corrected",
    kind: KindChoice = "auto",
    axis: Float[np.ndarray, " 3"] | None = None,
    noise: Float[np.ndarray, "3 3"] | None = None,
) -> Sphere:
    """Return the sphere of moments alone; for "geometric" its start, "corrected"."""
    SphereOptions(estimator=estimator, kind=kind)
    reason = _why_no_fit(moments)
    if reason:
        return _no_sphere(moments, reason)
    value, vector = np.linalg.eigh(moments.covariance)
    axis_given, axis = axis is not None, vector[:, 0] if axis is None else axis
    bases = {"ball": np.eye(3), "hinge": _plane(axis)}
    fits = {
        name: AlgebraicFit(moments, basis, bias_corrected=estimator != "kasa")
        for name, basis in bases.items()
        if kind in (name, "auto")
    }
    if kind == "auto":
        kind = _classify((value, vector), fits["ball"], fits["hinge"], noise)
    if kind == "fixed":
        return _no_sphere(moments, "the motion is too small to show a centre")
    fit = fits[kind]
    radius = np.sqrt((fit.square - len(fit.center) * fit.variance).clip(0.0))
    covariance, axis_covariance = np.full((2, 3, 3), np.nan)
    if estimator != "geometric":
        covariance = fit.covariance()
    if kind == "hinge" and not axis_given:
        axis_covariance = algebraic.white_noise_axis_covariance(moments, fit.variance)
    sphere = Sphere(
        center=fit.center,
        radius=np.where(moments.count > 0, radius, np.nan),
        kind=kind,
        axis=axis if kind == "hinge" else np.full(3, np.nan),
        noise=float(np.sqrt(fit.variance)),
        spread=np.sqrt(value.clip(0.0)),
        covariance=covariance,
        axis_covariance=axis_covariance,
    )
    return _with_free_axis(sphere)


def _refine(points: np.ndarray, sphere: Sphere) -> Sphere:
    """Return the sphere with the geometric centre, its radii and noise."""
    basis = sphere.basis
    center = geometric.refine_center(points, sphere.center, basis)
    # A cap lost in the noise is best fitted by a plane, with a centre at infinity.
    if np.linalg.norm(center - sphere.center) > np.nanmax(sphere.radius):
        center = sphere.center
    square, radius = geometric.radial_scatter(points, center, basis)
    n_positions = int(np.count_nonzero(~np.isnan(points[..., 0])))
    freedom = n_positions - basis.shape[1] - len(radius)
    variance = square / max(freedom, 1)
    # Noise across the radius lengthens it, by half its variance over the radius.
    across = 0.5 * (basis.shape[1] - 1) * variance
    bias = np.divide(across, radius, out=np.zeros_like(radius), where=radius > 0.0)
    return replace(
        sphere,
        center=center,
        radius=(radius - bias).clip(0.0),
        noise=float(np.sqrt(variance)),
    )


def _classify(
    principal: tuple[np.ndarray, np.ndarray],
    ball: AlgebraicFit,
    hinge: AlgebraicFit,
    noise: np.ndarray | None,
) -> SphereKind:
    """Return the kind of motion from the principal moments and the noise.

    The markers of a hinge move out of their plane by no more than noise and play, and
    in that plane a circle fits about as well as a sphere. A small cap of a sphere is
    flat too, but fills a disc: no circle fits it with a noise much below its radius.

    Args:
        principal: Eigenvalues (ascending) and eigenvectors of their covariance.
        ball: Fit of a sphere.
        hinge: Fit of a circle in the plane across the axis.
        noise: Prior covariance of the noise.
    """
    value, vector = principal
    expected = np.zeros(3)
    if noise is not None:
        expected = np.einsum("ik,ij,jk->k", vector, noise, vector)
    freedom = ball.freedom
    limit = chi_squared_quantile(FALSE_ALARM_RATE, round(freedom)) / freedom
    limit *= 1.0 + NOISE_UNCERTAINTY
    rounding = algebraic.ROUNDING_SHARE * value[-1]
    ball_noise, hinge_noise = (max(fit.variance, rounding) for fit in (ball, hinge))
    at_rest = _rest_noise_ratio(freedom) * min(ball_noise, hinge_noise)
    if (
        value[1] <= max(at_rest, limit * expected[1])
        or value[-1] <= limit * expected[-1]
    ):
        return "fixed"
    # A disc has a noise of 0.33 of its radius, a ball of points 0.52.
    if hinge_noise > FEW**2 * hinge.square.max():
        return "ball"
    is_flat = value[0] <= limit * max(hinge_noise, expected[0])
    is_flat = is_flat and hinge_noise <= limit * max(ball_noise, expected.max())
    has_play = value[0] <= MAX_PLAY_RAD**2 * hinge.square.mean()
    has_play = has_play and hinge_noise <= MAX_PLAY_NOISE_RATIO**2 * ball_noise
    return "hinge" if is_flat or has_play else "ball"


def _rest_noise_ratio(freedom: float) -> float:
    """Return the largest moment over the noise variance of markers at rest.

    Their sphere has no radius, and the estimated noise is the difference of two moments
    that are equal then. It is too small by a share that falls only with the fourth root
    of the number of positions. The coefficients are fitted to simulations, of which
    about one in a hundred exceeded this ratio.
    """
    root = np.sqrt(freedom)
    return float(1.0 + 2.5 / np.sqrt(root) + 10.0 / root)


def _why_no_fit(moments: SphereMoments) -> str:
    """Return why no fit is possible, or an empty string."""
    most = int(moments.count.max(initial=0.0))
    if most < MIN_POSITIONS:
        return f"{most} positions of a marker, {MIN_POSITIONS} are needed"
    if not np.isfinite(moments.fourth).all():
        return "the positions are too large for numbers"
    size = np.trace(moments.covariance)
    farthest = np.sum(moments.mean**2, axis=-1).max()
    if size <= algebraic.ROUNDING_SHARE**2 * farthest:
        return "all positions coincide"
    return ""


def _no_sphere(moments: SphereMoments, reason: str) -> Sphere:
    """Return a sphere without a centre, and why there is none."""
    spread = np.full(3, np.nan)
    if moments.count.any() and np.isfinite(moments.second).all():
        value = np.linalg.eigvalsh(moments.covariance)
        spread = np.sqrt(value.clip(0.0))
    vector, matrix = np.full(3, np.nan), np.full((3, 3), np.nan)
    return Sphere(
        center=vector,
        radius=np.full(len(moments.count), np.nan),
        kind="fixed",
        axis=vector,
        noise=np.nan,
        spread=spread,
        covariance=matrix,
        axis_covariance=matrix,
        reason=reason,
    )


def _plane(axis: np.ndarray) -> np.ndarray:
    """Return two unit columns orthogonal to an axis and to each other."""
    return np.asarray(np.linalg.svd(axis[None])[2][1:].T)


def _with_free_axis(sphere: Sphere) -> Sphere:
    """Return the sphere with a covariance that is very large along a hinge's axis."""
    if sphere.kind != "hinge":
        return sphere
    along = FREE_SD_M**2 * np.outer(sphere.axis, sphere.axis)
    return replace(sphere, covariance=sphere.covariance + along)


def _by_marker(points: np.ndarray) -> np.ndarray:
    n_axes = points.ndim - 1
    if n_axes not in (1, 2):
        raise DataError(
            "points", found=f"{points.ndim} axes", needed="frame, marker, coordinate"
        )
    return points[:, None] if n_axes == 1 else points
