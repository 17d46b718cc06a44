"""Spheres and circles through the positions of markers that turn about one point."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float
from scipy.special import chdtri

from marey.errors import DataError, OptionError
from marey.joints.ball.closed_form import DOUBT, FREE
from marey.joints.sphere import algebraic, geometric
from marey.joints.sphere.moments import Moments, moments_of, pooled

Estimator = Literal["geometric", "corrected", "kasa"]
SphereKind = Literal["ball", "hinge", "fixed"]

MIN_POSITIONS = 4

# Chance of taking noise for motion, when the noise is all there is.
FALSE_ALARM = 1e-3

# No statistics can tell the play of a pin from motion: both are there. A turn across
# the axis below this, rms in radians, is play, as long as a circle's noise stays within
# so many times that of a sphere: were it motion about a centre, the sphere would fit
# far better. The pins of a pendulum that was recorded play by 0.31 to 0.34 degrees.
# Twice either changes no joint of real recordings, half of either makes balls of pins.
PLAY, PLAY_NOISE = np.radians(0.4), 4.0

# A circle counts as one while its noise stays under this share of its radius. A disc
# would give 0.33, a blob 0.52; half or twice this changes no decision known to us.
CLEAR_CIRCLE = 0.2


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Sphere:
    """The point (or axis) about which markers turn, and how far it can be trusted."""

    center: Float[np.ndarray, " 3"]
    """In metres; of a hinge the point of the axis nearest to the markers' mean. NaN
    where unknown, see `reason`."""

    radius: Float[np.ndarray, " marker"]
    """Distance of each marker from the centre, of a hinge from its axis; in metres,
    freed from what noise adds. NaN for markers that were never seen."""

    kind: SphereKind
    """"ball": a sphere; "hinge": a circle or cylinder; "fixed": hardly any motion."""

    axis: Float[np.ndarray, " 3"]
    """Unit axis of a hinge; NaN for other kinds."""

    noise: float
    """Standard deviation of one position along its radius, in metres."""

    spread: Float[np.ndarray, " 3"]
    """How far the markers moved along the three main directions (rms, ascending), in
    metres."""

    covariance: Float[np.ndarray, "3 3"]
    """Covariance of the centre in square metres; of a hinge along its axis, where
    every point is as good, a very large one."""

    axis_covariance: Float[np.ndarray, "3 3"]
    """Covariance of a hinge's axis, found from the plane in which its markers move, in
    square radians; NaN for other kinds, and where the axis was given."""

    reason: str = ""
    """Why there is no centre; empty when there is one."""

    @property
    def basis(self) -> Float[np.ndarray, "3 directions"]:
        """Unit columns that span what the fit could move the centre in."""
        if self.kind != "hinge":
            return np.eye(3)
        return _across(self.axis)


class SphereAccumulator:
    """A sphere fit that grows with the data, in constant memory.

    Positions may come in any order, from any time and take; each call costs what its
    own positions cost. `fit` uses the moments alone: the estimators "corrected" and
    "kasa".
    """

    def __init__(self, n_markers: int = 1) -> None:
        self.moments = moments_of(np.zeros((0, n_markers, 3)))

    def update(self, points: Float[np.ndarray, "frame *marker 3"]) -> None:
        """Take in more positions, in metres; NaN where a marker was not seen."""
        self.moments = pooled(self.moments, moments_of(_by_marker(points)))

    def fit(
        self,
        *,
        estimator: Literal["corrected", "kasa"] = "corrected",
        kind: SphereKind | Literal["auto"] = "auto",
    ) -> Sphere:
        """Return the sphere of all positions so far; see `fit_sphere`."""
        return sphere_of(self.moments, estimator=estimator, kind=kind)


def fit_sphere(
    points: Float[np.ndarray, "frame *marker 3"],
    *,
    estimator: Estimator = "geometric",
    kind: SphereKind | Literal["auto"] = "auto",
    axis: Float[np.ndarray, " 3"] | None = None,
    noise: Float[np.ndarray, "3 3"] | None = None,
) -> Sphere:
    """Return the point about which markers turn, given in the frame it is fixed in.

    All markers share the centre, each has its own radius. Implements Knight2007, Eqs.
    1-6, whose estimator is `estimator="kasa"`: c = mean + C^-1 S / 2. Departures: on
    less than a full sphere that estimator is drawn towards the markers, because noise
    widens C; "corrected" takes the noise off again, C - sigma^2 I, with sigma from the
    radii, until both agree. "geometric" goes on from there to the least squares of the
    radii themselves. Whether motion is planar is decided against the noise, not by a
    fixed condition number, and radii are freed from the noise: R^2 = mean|x - c|^2 -
    3 sigma^2.

    Args:
        points: Positions in metres, NaN where unknown; one marker or several.
        estimator: "geometric", "corrected" or "kasa".
        kind: "ball" or "hinge" when it is known; "auto" decides.
        axis: Unit axis of a hinge when it is known; else the direction across which
            the markers move least.
        noise: Covariance of the positions' noise as far as it is known beforehand, in
            square metres; what the radii show counts where it is more.

    Returns:
        The sphere; without a centre, and with a reason, where the motion gives none.

    Raises:
        OptionError: If an option is not known.
    """
    points = _by_marker(points)
    sphere = sphere_of(
        moments_of(points), estimator=estimator, kind=kind, axis=axis, noise=noise
    )
    if sphere.reason:
        return sphere
    if estimator == "geometric":
        sphere = _polished(points, sphere)
    basis = sphere.basis
    if estimator == "geometric":
        inner = geometric.equation(points, sphere.center, basis).covariance
        covariance = basis @ inner @ basis.T
    else:
        moves = influence(points, sphere, plain=estimator == "kasa")
        covariance = geometric.scatter(moves)
    if sphere.kind == "hinge" and axis is None:
        moves = algebraic.axis_influence(points, moments_of(points), sphere.axis)
        sphere = replace(sphere, axis_covariance=geometric.scatter(moves))
    return replace(sphere, covariance=covariance + _along_axis(sphere))


def sphere_of(
    moments: Moments,
    *,
    estimator: Estimator = "corrected",
    kind: SphereKind | Literal["auto"] = "auto",
    axis: Float[np.ndarray, " 3"] | None = None,
    noise: Float[np.ndarray, "3 3"] | None = None,
) -> Sphere:
    """Return the sphere of moments alone; "geometric" gives its start, "corrected"."""
    _check("estimator", estimator, get_args(Estimator))
    _check("kind", kind, ("auto", *get_args(SphereKind)))
    reason = _lacking(moments)
    if reason:
        return _unknown(moments, reason)
    value, vector = np.linalg.eigh(algebraic.mean_second(moments))
    given, axis = axis is not None, vector[:, 0] if axis is None else axis
    plain = estimator == "kasa"
    step = algebraic.kasa if plain else algebraic.corrected
    plane = _across(axis)
    bases = {"ball": np.eye(3), "hinge": plane}
    wanted = [kind] if kind in bases else list(bases)
    fits = {name: step(moments, bases[name]) for name in wanted if kind != "fixed"}
    if kind == "auto":
        kind = _kind(moments, (value, vector), plane, fits, noise)
    if kind == "fixed":
        return _unknown(moments, "the motion is too small to show a centre")
    center, variance = fits[kind]
    basis = bases[kind]
    _, square, _ = algebraic.distances(moments, center, basis)
    radius = np.sqrt((square - 3.0 * variance).clip(0.0))
    sphere = Sphere(
        center=center,
        radius=np.where(moments.count > 0, radius, np.nan),
        kind=kind,
        axis=axis if kind == "hinge" else np.full(3, np.nan),
        noise=float(np.sqrt(variance)),
        spread=np.sqrt(value.clip(0.0)),
        covariance=algebraic.covariance_of(
            moments, center, variance, basis, plain=plain
        ),
        axis_covariance=_axis_covariance(moments, None if given else kind, variance),
    )
    return replace(sphere, covariance=sphere.covariance + _along_axis(sphere))


def influence(
    points: Float[np.ndarray, "frame marker 3"], sphere: Sphere, *, plain: bool
) -> Float[np.ndarray, "frame 3"]:
    """Return how far the noise of each frame moved a "kasa" or "corrected" centre."""
    return algebraic.influence(
        points,
        moments_of(points),
        sphere.center,
        sphere.noise**2,
        sphere.basis,
        plain=plain,
    )


def _polished(points: np.ndarray, sphere: Sphere) -> Sphere:
    basis = sphere.basis
    center = geometric.polish(points, sphere.center, basis)
    # A cap lost in the noise is best fitted by a plane: a centre out of all reach.
    if np.linalg.norm(center - sphere.center) > np.nanmax(sphere.radius):
        center = sphere.center
    error, _, radius = geometric.radial(points, center, basis)
    spare = np.isfinite(points).all(axis=-1).sum() - basis.shape[1] - len(radius)
    variance = np.sum(error**2) / max(spare, 1)
    # Noise across the radius lengthens it, by half its variance over the radius.
    across = 0.5 * (basis.shape[1] - 1) * variance
    longer = np.divide(across, radius, out=np.zeros_like(radius), where=radius > 0.0)
    return replace(
        sphere,
        center=center,
        radius=(radius - longer).clip(0.0),
        noise=float(np.sqrt(variance)),
    )


def _kind(
    moments: Moments,
    main: tuple[np.ndarray, np.ndarray],
    plane: np.ndarray,
    fits: dict[str, tuple[np.ndarray, float]],
    noise: np.ndarray | None,
) -> SphereKind:
    """Return the kind of motion, its main moments (ascending) held against the noise.

    A hinge leaves no more than noise and its play across its plane, and in that plane
    a circle fits about as well as a sphere does. A small cap of a sphere is flat too,
    but it fills a disc, and no circle much larger than its noise runs through that.
    """
    value, vector = main
    expected = np.zeros(3)
    if noise is not None:
        expected = np.einsum("ik,ij,jk->k", vector, noise, vector)
    spare = algebraic.freedom(moments, np.eye(3))
    limit = (1.0 + DOUBT) * chdtri(spare, FALSE_ALARM) / spare
    floor = algebraic.ROUNDING * value[-1]
    ball, hinge = (max(fits[kind][1], floor) for kind in ("ball", "hinge"))
    lost = value[1] <= max(_at_rest(spare) * min(ball, hinge), limit * expected[1])
    if lost or value[-1] <= limit * expected[-1]:
        return "fixed"
    _, square, _ = algebraic.distances(moments, fits["hinge"][0], plane)
    if hinge > CLEAR_CIRCLE**2 * square.max():
        return "ball"
    flat = value[0] <= limit * max(hinge, expected[0]) and hinge <= limit * max(
        ball, expected.max()
    )
    play = value[0] <= PLAY**2 * square.mean() and hinge <= PLAY_NOISE**2 * ball
    return "hinge" if flat or play else "ball"


def _at_rest(spare: float) -> float:
    """Return how many times its noise a moment of markers at rest may seem to be.

    Their sphere has no radius, and its noise is the difference of two moments that are
    equal then: it comes out too small, by a share that falls with the fourth root of
    the number of positions only. One in some hundred simulated ones was beyond this.
    """
    return float(1.0 + 2.5 * spare**-0.25 + 10.0 * spare**-0.5)


def _lacking(moments: Moments) -> str:
    """Return why no fit is possible, or nothing."""
    most = int(moments.count.max(initial=0.0))
    if most < MIN_POSITIONS:
        return f"{most} positions of a marker, {MIN_POSITIONS} are needed"
    if not np.isfinite(moments.fourth).all():
        return "the positions are too large for numbers"
    size = np.trace(algebraic.mean_second(moments))
    far = np.sum(moments.mean**2, axis=-1).max()
    if size <= (4.0 * np.finfo(float).eps) ** 2 * far:
        return "all positions coincide"
    return ""


def _unknown(moments: Moments, reason: str) -> Sphere:
    none = np.full(3, np.nan)
    seen = moments.count.any() and np.isfinite(moments.second).all()
    value = np.linalg.eigvalsh(algebraic.mean_second(moments)) if seen else none
    return Sphere(
        center=none,
        radius=np.full(len(moments.count), np.nan),
        kind="fixed",
        axis=none,
        noise=float("nan"),
        spread=np.sqrt(value.clip(0.0)),
        covariance=np.full((3, 3), np.nan),
        axis_covariance=np.full((3, 3), np.nan),
        reason=reason,
    )


def _across(axis: np.ndarray) -> np.ndarray:
    """Return two unit columns square to an axis and to each other."""
    return np.asarray(np.linalg.svd(axis[None])[2][1:].T)


def _along_axis(sphere: Sphere) -> np.ndarray:
    if sphere.kind != "hinge":
        return np.zeros((3, 3))
    return np.asarray(FREE**2 * np.outer(sphere.axis, sphere.axis))


def _axis_covariance(
    moments: Moments, kind: SphereKind | None, variance: float
) -> np.ndarray:
    if kind != "hinge":
        return np.full((3, 3), np.nan)
    return algebraic.axis_covariance_of(moments, variance)


def _by_marker(points: np.ndarray) -> np.ndarray:
    if points.ndim not in (2, 3):
        raise DataError(
            "points", found=f"{points.ndim} axes", needed="frame, marker, coordinate"
        )
    return points[:, None] if points.ndim == 2 else points


def _check(option: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise OptionError(option, found=value, needed=f"one of {', '.join(known)}")
