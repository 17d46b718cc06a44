"""Spheres and circles through the positions of markers that rotate about one point."""

from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float
from scipy.special import chdtri

from marey.errors import DataError
from marey.joints.ball.closed_form import FREE_SD_M, NOISE_UNCERTAINTY
from marey.joints.options import check_choice
from marey.joints.sphere import algebraic, geometric
from marey.joints.sphere.moments import SphereMoments, compute_moments, pool_moments
from marey.joints.sphere.sandwich import sandwich_covariance

SphereEstimator = Literal["geometric", "corrected", "kasa"]
SphereKind = Literal["ball", "hinge", "fixed"]

MIN_POSITIONS = 4
"""Positions of one marker that determine a sphere (Knight2007, Sec. 2)."""

FALSE_ALARM_RATE = 1e-3
"""Probability of taking pure noise for motion. Higher calls fewer joints fixed and
fewer joints hinges. Chosen by hand."""

MAX_PLAY_RAD = np.radians(0.4)
"""Rotation across the axis of a hinge, in radians rms, that counts as play of its pin.
No test can separate play from motion, for both are real. The pins of a recorded
pendulum have 0.31 to 0.34 degrees of play. Twice the value changes no joint of the real
recordings; half makes balls of pins."""

MAX_PLAY_NOISE_RATIO = 4.0
"""Noise of a circle over that of a sphere above which rotation across the axis is not
play: for motion about a centre the sphere would fit far better. Twice the value changes
no joint of the real recordings; half makes balls of pins."""

MAX_CIRCLE_NOISE = 0.2
"""Noise of a circle over its radius above which it is no circle. A disc would give
0.33, a ball of points 0.52. Half or twice the value changes no known decision."""


def _nan_vector() -> Float[np.ndarray, " 3"]:
    return np.full(3, np.nan)


def _nan_matrix() -> Float[np.ndarray, "3 3"]:
    return np.full((3, 3), np.nan)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Sphere:
    """The point or axis about which markers rotate, and its uncertainty."""

    center: Float[np.ndarray, " 3"] = field(default_factory=_nan_vector)
    """In metres; of a hinge the point of the axis nearest to the markers' mean. NaN
    where unknown, see `reason`."""

    radius: Float[np.ndarray, " marker"]
    """Distance of each marker from the centre, of a hinge from its axis; in metres,
    without the bias that noise adds. NaN for markers that were never seen."""

    kind: SphereKind = "fixed"
    """"ball": a sphere; "hinge": a circle or cylinder; "fixed": hardly any motion."""

    axis: Float[np.ndarray, " 3"] = field(default_factory=_nan_vector)
    """Unit axis of a hinge; NaN for other kinds."""

    noise: float = float("nan")
    """Standard deviation of one position along its radius, in metres."""

    spread: Float[np.ndarray, " 3"]
    """Standard deviation of the positions along their three principal directions,
    ascending, in metres."""

    covariance: Float[np.ndarray, "3 3"] = field(default_factory=_nan_matrix)
    """Covariance of the centre in square metres; very large along the axis of a hinge,
    where every point is equally good."""

    axis_covariance: Float[np.ndarray, "3 3"] = field(default_factory=_nan_matrix)
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
        kind: SphereKind | Literal["auto"] = "auto",
    ) -> Sphere:
        """Return the sphere of all positions so far; see `fit_sphere`."""
        return fit_sphere_to_moments(self.moments, estimator=estimator, kind=kind)


def fit_sphere(
    points: Float[np.ndarray, "frame *marker 3"],
    *,
    estimator: SphereEstimator = "geometric",
    kind: SphereKind | Literal["auto"] = "auto",
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
    sphere = fit_sphere_to_moments(
        moments, estimator=estimator, kind=kind, axis=axis, noise=noise
    )
    if sphere.reason:
        return sphere
    if estimator == "geometric":
        sphere = _refine(points, sphere)
        basis = sphere.basis
        equation = geometric.estimating_equation(points, sphere.center, basis)
        covariance = basis @ equation.covariance @ basis.T
    else:
        covariance = sandwich_covariance(center_influence(points, sphere, estimator))
    if sphere.kind == "hinge" and axis is None:
        influence = algebraic.axis_influence(points, moments, sphere.axis)
        sphere = replace(sphere, axis_covariance=sandwich_covariance(influence))
    return _with_center_covariance(sphere, covariance)


def fit_sphere_to_moments(
    moments: SphereMoments,
    *,
    estimator: SphereEstimator = "corrected",
    kind: SphereKind | Literal["auto"] = "auto",
    axis: Float[np.ndarray, " 3"] | None = None,
    noise: Float[np.ndarray, "3 3"] | None = None,
) -> Sphere:
    """Return the sphere of moments alone; for "geometric" its start, "corrected"."""
    check_choice("estimator", estimator, get_args(SphereEstimator))
    check_choice("kind", kind, ("auto", *get_args(SphereKind)))
    reason = _why_no_fit(moments)
    if reason:
        return _no_sphere(moments, reason)
    value, vector = np.linalg.eigh(algebraic.mean_covariance(moments))
    axis_given, axis = axis is not None, vector[:, 0] if axis is None else axis
    bias_corrected = estimator != "kasa"
    fit = algebraic.fit_bias_corrected if bias_corrected else algebraic.fit_kasa
    bases = {"ball": np.eye(3), "hinge": _plane(axis)}
    fits = {
        name: fit(moments, basis)
        for name, basis in bases.items()
        if kind in (name, "auto")
    }
    if kind == "auto":
        kind = _classify(moments, (value, vector), bases["hinge"], fits, noise)
    if kind == "fixed":
        return _no_sphere(moments, "the motion is too small to show a centre")
    center, variance = fits[kind]
    basis = bases[kind]
    _, square, _ = algebraic.squared_distances(moments, center, basis)
    radius = np.sqrt((square - 3.0 * variance).clip(0.0))
    sphere = Sphere(
        center=center,
        radius=np.where(moments.count > 0, radius, np.nan),
        kind=kind,
        noise=float(np.sqrt(variance)),
        spread=np.sqrt(value.clip(0.0)),
    )
    if kind == "hinge":
        sphere = replace(sphere, axis=axis)
    if kind == "hinge" and not axis_given:
        covariance = algebraic.white_noise_axis_covariance(moments, variance)
        sphere = replace(sphere, axis_covariance=covariance)
    covariance = algebraic.white_noise_covariance(
        moments, center, variance, basis, bias_corrected=bias_corrected
    )
    return _with_center_covariance(sphere, covariance)


def center_influence(
    points: Float[np.ndarray, "frame marker 3"],
    sphere: Sphere,
    estimator: SphereEstimator,
) -> Float[np.ndarray, "frame 3"]:
    """Return the influence of each frame on a "kasa" or "corrected" centre."""
    return algebraic.center_influence(
        points,
        compute_moments(points),
        sphere.center,
        sphere.noise**2,
        sphere.basis,
        bias_corrected=estimator != "kasa",
    )


def _refine(points: np.ndarray, sphere: Sphere) -> Sphere:
    """Return the sphere with the geometric centre, its radii and noise."""
    basis = sphere.basis
    center = geometric.refine_center(points, sphere.center, basis)
    # A cap lost in the noise is best fitted by a plane, with a centre at infinity.
    if np.linalg.norm(center - sphere.center) > np.nanmax(sphere.radius):
        center = sphere.center
    error, radius = geometric.radial_errors(points, center, basis)
    n_positions = np.isfinite(points).all(axis=-1).sum()
    freedom = n_positions - basis.shape[1] - len(radius)
    variance = np.sum(error**2) / max(freedom, 1)
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
    moments: SphereMoments,
    principal: tuple[np.ndarray, np.ndarray],
    plane: np.ndarray,
    fits: dict[str, tuple[np.ndarray, float]],
    noise: np.ndarray | None,
) -> SphereKind:
    """Return the kind of motion from the principal moments and the noise.

    The markers of a hinge move out of their plane by no more than noise and play, and
    in that plane a circle fits about as well as a sphere. A small cap of a sphere is
    flat too, but fills a disc: no circle fits it with a noise much below its radius.

    Args:
        moments: Of the positions.
        principal: Eigenvalues (ascending) and eigenvectors of their covariance.
        plane: Basis of the plane across the axis.
        fits: Centre and noise variance of a "ball" and of a "hinge".
        noise: Prior covariance of the noise.
    """
    value, vector = principal
    expected = np.zeros(3)
    if noise is not None:
        expected = np.einsum("ik,ij,jk->k", vector, noise, vector)
    freedom = algebraic.degrees_of_freedom(moments, np.eye(3))
    limit = (1.0 + NOISE_UNCERTAINTY) * chdtri(freedom, FALSE_ALARM_RATE) / freedom
    rounding = algebraic.ROUNDING * value[-1]
    ball, hinge = (max(fits[kind][1], rounding) for kind in ("ball", "hinge"))
    at_rest = _rest_noise_ratio(freedom) * min(ball, hinge)
    if (
        value[1] <= max(at_rest, limit * expected[1])
        or value[-1] <= limit * expected[-1]
    ):
        return "fixed"
    _, square, _ = algebraic.squared_distances(moments, fits["hinge"][0], plane)
    if hinge > MAX_CIRCLE_NOISE**2 * square.max():
        return "ball"
    flat = value[0] <= limit * max(hinge, expected[0]) and hinge <= limit * max(
        ball, expected.max()
    )
    within_play = value[0] <= MAX_PLAY_RAD**2 * square.mean()
    play = within_play and hinge <= MAX_PLAY_NOISE_RATIO**2 * ball
    return "hinge" if flat or play else "ball"


def _rest_noise_ratio(freedom: float) -> float:
    """Return the largest moment over the noise variance of markers at rest.

    Their sphere has no radius, and the estimated noise is the difference of two moments
    that are equal then. It is too small by a share that falls only with the fourth root
    of the number of positions. The coefficients are fitted to simulations, of which
    about one in a hundred exceeded this ratio.
    """
    return float(1.0 + 2.5 * freedom**-0.25 + 10.0 * freedom**-0.5)


def _why_no_fit(moments: SphereMoments) -> str:
    """Return why no fit is possible, or an empty string."""
    most = int(moments.count.max(initial=0.0))
    if most < MIN_POSITIONS:
        return f"{most} positions of a marker, {MIN_POSITIONS} are needed"
    if not np.isfinite(moments.fourth).all():
        return "the positions are too large for numbers"
    size = np.trace(algebraic.mean_covariance(moments))
    farthest = np.sum(moments.mean**2, axis=-1).max()
    if size <= (4.0 * np.finfo(float).eps) ** 2 * farthest:
        return "all positions coincide"
    return ""


def _no_sphere(moments: SphereMoments, reason: str) -> Sphere:
    spread = np.full(3, np.nan)
    if moments.count.any() and np.isfinite(moments.second).all():
        value = np.linalg.eigvalsh(algebraic.mean_covariance(moments))
        spread = np.sqrt(value.clip(0.0))
    radius = np.full(len(moments.count), np.nan)
    return Sphere(radius=radius, spread=spread, reason=reason)


def _plane(axis: np.ndarray) -> np.ndarray:
    """Return two unit columns orthogonal to an axis and to each other."""
    return np.asarray(np.linalg.svd(axis[None])[2][1:].T)


def _with_center_covariance(sphere: Sphere, covariance: np.ndarray) -> Sphere:
    """Return the sphere with a covariance that is very large along a hinge's axis."""
    along = np.zeros((3, 3))
    if sphere.kind == "hinge":
        along = FREE_SD_M**2 * np.outer(sphere.axis, sphere.axis)
    return replace(sphere, covariance=covariance + along)


def _by_marker(points: np.ndarray) -> np.ndarray:
    if points.ndim not in (2, 3):
        raise DataError(
            "points", found=f"{points.ndim} axes", needed="frame, marker, coordinate"
        )
    return points[:, None] if points.ndim == 2 else points
