"""Joints as points that keep their distance to the markers of both bodies.

Implements DeAguiar2006, Eqs. 2-4 and Sec. 4. With the markers of both bodies in the
axes of one of them, the joint is the point whose distance to every marker varies least,
with a penalty on its mean distance; without the penalty a point far away would do as
well. Where motion is small the penalty draws the joint towards the markers: `ball` and
`gdke` have no such bias and come much nearer to the Cramer-Rao bound.

Departures. The paper aligns the markers of the second body with those of the first,
which taken literally has no meaning; here both are moved by the alignment of the first.
Its penalty of 1/5 is a length in the millimetres of its data; here its unit is the
noise of the markers. Its answer depends on which body comes first; here it is the mean
over both. Directions that the motion leaves free, along a hinge, follow from the
rotations of the bodies, as in `ball`. `printed=True` undoes all departures but the
first.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from marey.bodies import Bodies
from marey.errors import DataError
from marey.joint_fits import JointFits
from marey.joints.ball.assemble_fits import PairEstimates, assemble_joint_fits
from marey.joints.ball.closed_form import MAX_SD_M, bias_corrected_system, solve_centers
from marey.joints.ball.evidence import mediation_ratios
from marey.joints.ball.fit import fit_roughly
from marey.joints.ball.normal_equations import PerPair, all_pairs
from marey.joints.ball.pair_frames import center_gaps
from marey.joints.noise import estimate_pose_noise
from marey.joints.sphere.fit import MIN_POSITIONS
from marey.joints.sphere.sandwich import sandwich_covariance
from marey.joints.stacked_takes import StackedTakes
from marey.numerics import Array, Bool, Float, geometry
from marey.numerics.noise import rms_length
from marey.numerics.resampling import evenly_spaced
from marey.options import Options, number, options_from

PUBLISHED_ALPHA = 0.2
"""Penalty on the mean distance, published in DeAguiar2006, Sec. 4."""

MIN_DISTANCE_SHARE = 1e-9
"""Smallest distance to a marker over the extent of the markers. A joint exactly at a
marker has no direction to it. Chosen by hand."""

LBFGS_ITERATIONS, NEWTON_ITERATIONS = 200, 12
"""Largest number of L-BFGS-B iterations, which find the valley, and of Newton steps,
which find its bottom."""

TINY_GRADIENT = 1e-7
"""Gradient, over the extent of the markers, at which L-BFGS-B stops."""

MIN_CURVATURE_SHARE = 1e-12
"""Curvature over the largest one below which a direction is flat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceOptions(Options):
    """How joints are estimated from distances."""

    alpha: float = number(PUBLISHED_ALPHA, low=0.0, high=1e3)
    """Weight of the mean distance relative to its variance, 0 to 1000; in units of the
    noise of the markers, or in millimetres when `printed`."""

    printed: bool = False
    """Whether to follow the paper literally: the penalty in millimetres, one point in
    the first body of each pair, moved to the second, and every joint a ball."""

    max_sd: float = number(MAX_SD_M, above=0.0)
    """Predicted standard deviation of the centre, above 0 m, above which a direction
    counts as free: one makes a hinge. Not used when `printed`."""


def fit(takes: tuple[Bodies, ...], **options: Any) -> JointFits:
    """Return a joint for every pair of bodies that have markers.

    A body of one or two markers, whose axes are undetermined, is only seen from the
    other body. The covariance is that of the noise plus the square of the bias of the
    penalty; the bias of noisy axes is not in it. `averaged_residual` is NaN.

    Args:
        takes: The same bodies in one or several takes; all takes are one fit.
        **options: Fields of `DistanceOptions`.

    Raises:
        DataError: If a body has no markers: a 6-DoF sensor has no distances to keep.
        OptionError: If an option is not known or out of range.
    """
    chosen = options_from(DistanceOptions, options)
    markers = _PairMarkers(takes, chosen)
    T, pair = markers.stacked.T, all_pairs(len(takes[0].names))
    noise = estimate_pose_noise(takes)
    sums, raw, _, noise = fit_roughly(T, noise, pair, chosen.max_sd)
    system = bias_corrected_system(raw, noise, pair)
    centers = solve_centers(system, max_sd=chosen.max_sd)
    anchors = noise.anchor[pair].reshape(-1, 6)
    joints = [
        markers.fit_joint(int(a), int(b), guess)
        for (a, b), guess in zip(pair, centers.u + anchors, strict=True)
    ]
    u = np.array([center for center, _ in joints])
    centers = replace(
        centers,
        u=u - anchors,
        residual=np.where(np.isfinite(u).all(axis=1), centers.residual, np.nan),
        free=centers.free & (not chosen.printed),
        has_play=centers.has_play & (not chosen.printed),
        covariance=np.array([covariance for _, covariance in joints]),
    )
    mediated = mediation_ratios(takes, sums, pair)
    estimates = PairEstimates(pair, noise, system, centers)
    fits = assemble_joint_fits(estimates, takes[0], mediated)
    both = np.stack([fits.center_a, fits.center_b], axis=1)
    gaps = (center_gaps(T, *one) for one in zip(pair, both, strict=True))
    return replace(fits, residual=np.array([rms_length(gap) for gap in gaps]))


def joint_costs(
    takes: tuple[Bodies, ...], fits: JointFits, alpha: float = PUBLISHED_ALPHA
) -> PerPair:
    """Return the cost of joints by Eq. 2, in square metres; NaN for unknown joints.

    The paper builds its minimum spanning tree from these costs. They mix the penalty,
    and the number of markers, with how well a joint fits; the residual does not.

    Args:
        takes: The bodies of the joints, in one or several takes.
        fits: The joints, of which the centre in the first body counts.
        alpha: The penalty in millimetres.
    """
    markers = _PairMarkers(takes, DistanceOptions(alpha=alpha, printed=True))
    cost = np.full(len(fits.pair), np.nan)
    for row in np.flatnonzero(fits.fitted).tolist():
        a, b = fits.pair[row].tolist()
        of_pair = markers.cost(a, b, markers.both_seen(a, b))
        cost[row], _ = of_pair.value_and_gradient(fits.center_a[row], 1e-3 * alpha)
    return cost


class DistanceCost:
    r"""The cost of joints between two bodies, in the axes of one of them.

    DeAguiar2006, Eqs. 2-4, for the joint c and the markers x of both bodies:

    .. math:: \tfrac12 \sum_m \left( \mathrm{var}_f |c - x_{fm}|
        + \alpha \, \mathrm{mean}_f |c - x_{fm}| \right),

    with its gradient and Hessian.

    Args:
        points: Markers of both bodies in the axes of the first, in metres; NaN where
            occluded.
        on_first: Which markers are on the first body, and so hardly move.
    """

    def __init__(
        self, points: Float[Array, "frame marker 3"], on_first: Bool[Array, " marker"]
    ) -> None:
        seen = np.isfinite(points).all(axis=-1)
        ever_seen = seen.any(axis=0)
        seen, self.on_first = seen[:, ever_seen], on_first[ever_seen]
        x = np.where(seen[..., None], points[:, ever_seen], 0.0)
        self.x = x.transpose(2, 1, 0)
        self.weight = (seen / seen.sum(axis=0)).T
        self.mean = np.einsum("kmf,mf->mk", self.x, self.weight)
        center = self.mean.mean(axis=0)
        self.extent = float(np.sqrt(np.mean(np.sum((self.mean - center) ** 2, axis=1))))

    def _distances(self, center: Array) -> tuple[Array, Array, Array]:
        """Return distances, their means by marker, and directions from the markers."""
        arm = center[:, None, None] - self.x
        d = np.sqrt(np.einsum("kmf,kmf->mf", arm, arm))
        d = np.maximum(d, MIN_DISTANCE_SHARE * self.extent)
        return d, np.einsum("mf,mf->m", d, self.weight), arm / d  # Eq. 4

    def value_and_gradient(
        self, center: Float[Array, "3"], alpha: float
    ) -> tuple[float, Float[Array, "3"]]:
        """Return the cost of a joint in square metres, and its gradient in metres.

        Args:
            center: The joint in the body's axes.
            alpha: Weight of the mean distance, in metres.
        """
        d, mean, direction = self._distances(center)
        error = d - mean[:, None]
        variance = np.einsum("mf,mf,mf->m", error, error, self.weight)  # Eq. 3
        value = 0.5 * np.sum(variance + alpha * mean)  # Eq. 2
        derivative = self.weight * (error + 0.5 * alpha)
        return float(value), np.einsum("kmf,mf->k", direction, derivative)

    def hessian(self, center: Array, alpha: float) -> Float[Array, "3 3"]:
        """Return the second derivatives of the cost."""
        d, mean, direction = self._distances(center)
        mean_direction = np.einsum("kmf,mf->mk", direction, self.weight)
        curvature = self.weight * (0.5 * alpha - mean[:, None]) / d
        H = (len(mean) + curvature.sum()) * np.eye(3)
        H = H - mean_direction.T @ mean_direction
        return np.asarray(
            H - np.einsum("kmf,lmf,mf->kl", direction, direction, curvature)
        )

    def start(self) -> Float[Array, "3"]:
        """Return the point (m) midway between the nearest markers of the two bodies."""
        first, second = self.mean[self.on_first], self.mean[~self.on_first]
        if not len(first) or not len(second):
            return np.asarray(self.mean.mean(axis=0))
        distance = np.linalg.norm(first[:, None] - second, axis=-1)
        i, j = np.unravel_index(distance.argmin(), distance.shape)
        return np.asarray(0.5 * (first[i] + second[j]))

    def minimum(
        self, alpha: float, guess: Float[Array, "3"] | None = None
    ) -> Float[Array, "3"]:
        """Return the point of least cost.

        The cost has several local minima, and the paper does not say where to start.
        Here the search starts midway between the two nearest markers and at a guess,
        and the lower of the two minima counts.
        """
        starts = [self.start()]
        if guess is not None and np.isfinite(guess).all():
            starts.append(guess)
        ends = [self._descend(start, alpha) for start in starts]
        return min(ends, key=lambda center: self.value_and_gradient(center, alpha)[0])

    def _descend(self, start: Array, alpha: float) -> Array:
        """Return the local minimum, in metres, by L-BFGS-B and Newton steps."""
        from scipy.optimize import minimize

        size = max(self.extent, np.finfo(float).tiny)

        def scaled_cost(z: Array) -> tuple[float, Array]:
            value, gradient = self.value_and_gradient(start + size * z, alpha)
            return value / size**2, gradient / size

        found = minimize(
            scaled_cost,
            np.zeros(3),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": LBFGS_ITERATIONS, "ftol": 0.0, "gtol": TINY_GRADIENT},
        )
        return self._newton(start + size * found.x, alpha)

    def _newton(self, center: Array, alpha: float) -> Array:
        """Return the centre after Newton steps, as long as they halve the gradient."""
        _, gradient = self.value_and_gradient(center, alpha)
        for _ in range(NEWTON_ITERATIONS):
            moved = center - _inverse(self.hessian(center, alpha)) @ gradient
            _, after = self.value_and_gradient(moved, alpha)
            if not np.linalg.norm(after) < 0.5 * np.linalg.norm(gradient):
                break
            center, gradient = moved, after
        return center

    def influence(self, center: Array, alpha: float) -> Float[Array, "frame 3"]:
        """Return the influence of each frame on a centre of least cost, in metres."""
        d, mean, direction = self._distances(center)
        mean_direction = np.einsum("kmf,mf->km", direction, self.weight)
        error = self.weight * (d - mean[:, None])
        score = np.einsum("kmf,mf->fk", direction - mean_direction[..., None], error)
        inverse = _inverse(self.hessian(center, alpha))
        return np.asarray(-(score - score.mean(axis=0)) @ inverse)

    def penalty_bias(self, center: Array) -> Float[Array, "3"]:
        """Return the displacement of a centre of least cost due to the penalty."""
        return np.asarray(center - self._newton(center, 0.0))


def _inverse(H: Float[Array, "3 3"]) -> Float[Array, "3 3"]:
    """Return the inverse of a Hessian along the directions in which the cost curves."""
    return np.asarray(np.linalg.pinv(H, rcond=MIN_CURVATURE_SHARE, hermitian=True))


class _PairMarkers:
    """The markers of all bodies, to be seen in the axes of each of them.

    Raises:
        DataError: If a body has no markers.
    """

    def __init__(self, takes: tuple[Bodies, ...], options: DistanceOptions) -> None:
        has_markers = takes[0].shared.any(axis=0)
        if not has_markers.all():
            names = ", ".join(np.array(takes[0].names)[~has_markers].tolist())
            raise DataError(
                "joints by distance",
                found=f"bodies without markers: {names}",
                needed='markers on every body; the method "ball" takes 6-DoF sensors',
            )
        self.options, self.stacked = options, StackedTakes(takes)
        sample = evenly_spaced(len(self.stacked.T))
        self.T, self.points = self.stacked.T[sample], self.stacked.points[sample]
        self.T_body_world = geometry.inverse(self.T)
        self.noise = _marker_noise(takes[0])

    def fit_joint(
        self, a: int, b: int, guess: Float[Array, "6"]
    ) -> tuple[Float[Array, "6"], Float[Array, "6 6"]]:
        """Return (center_a, center_b) of a pair and their covariance.

        The mean of the estimates in the axes of both bodies; NaN if they are hardly
        ever seen together.

        Args:
            a: The first body.
            b: The second.
            guess: First guess of (center_a, center_b).
        """
        both = self.both_seen(a, b)
        if both.sum() < MIN_POSITIONS:
            return np.full(6, np.nan), np.full((6, 6), np.nan)
        T_a_b = (self.T_body_world[:, a] @ self.T[:, b])[both]
        views = []
        if self._is_used(a, b, first=True):
            to_b = geometry.inverse(T_a_b).mean(axis=0)
            views.append(self._view(a, b, both, guess[:3], to_b))
        if self._is_used(b, a, first=False):
            view = self._view(b, a, both, guess[3:], T_a_b.mean(axis=0))
            views.append(np.roll(view, len(guess) // 2, axis=1))
        u, bias, *influence = np.mean(views, axis=0)
        return u, sandwich_covariance(np.array(influence)) + np.outer(bias, bias)

    def _view(
        self, body: int, other: int, frames: Array, guess: Array, to_other: Array
    ) -> Float[Array, "row 6"]:
        """Return a joint in a body's axes, and the same moved to the other body.

        The rows are the centre, the bias of the penalty and the influence of each
        frame.
        """
        mean_square = 0.5 * (self.noise[body] ** 2 + self.noise[other] ** 2)
        unit = float(np.sqrt(mean_square))
        printed = 1e-3 * self.options.alpha  # in metres
        alpha = printed if self.options.printed else self.options.alpha * unit
        cost = self.cost(body, other, frames)
        center = cost.minimum(alpha, guess)
        bias, influence = cost.penalty_bias(center), cost.influence(center, alpha)
        in_body = np.stack([center, bias, *influence])
        in_other = in_body @ to_other[:3, :3].T
        in_other[0] += to_other[:3, 3]
        return np.concatenate([in_body, in_other], axis=1)

    def _is_used(self, body: int, other: int, *, first: bool) -> bool:
        """Return whether a joint is estimated in a body's axes: they must be known."""
        if self.options.printed:
            return first
        determined = self.stacked.determined
        return bool(determined[body] or not determined[other])

    def both_seen(self, a: int, b: int) -> Bool[Array, " frame"]:
        """Return the frames that show two bodies."""
        return np.asarray(np.isfinite(self.T[:, [a, b]]).all(axis=(1, 2, 3)))

    def cost(
        self, body: int, other: int, frames: Bool[Array, " frame"]
    ) -> DistanceCost:
        """Return the cost of joints between two bodies in the axes of the first."""
        member = self.stacked.member
        on_pair = member[:, body] | member[:, other]
        points = self.points[frames][:, on_pair]
        local = geometry.apply(self.T_body_world[frames, body, None], points)
        return DistanceCost(local, member[on_pair, body] & ~member[on_pair, other])


def _marker_noise(bodies: Bodies) -> Float[Array, " body"]:
    """Return the noise of each body's markers, one standard deviation in metres."""
    noise = bodies.rms.copy()
    for body in range(len(noise)):
        on_body = bodies.marker_body == body
        if len(bodies.marker_noise) and on_body.any():
            # The noise of a single marker is never zero; the rms of a body may be.
            typical = float(np.median(bodies.marker_noise[on_body]))
            noise[body] = np.fmin(noise[body], typical)
    return np.asarray(np.nan_to_num(noise))
