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
from jaxtyping import Bool, Float

from marey.bodies import Bodies
from marey.errors import DataError
from marey.joint_fits import JointFits
from marey.joints.ball.assemble_fits import (
    PairEstimates,
    assemble_joint_fits,
    centers_from_origins,
    marker_distances,
)
from marey.joints.ball.closed_form import (
    CenterEstimates,
    bias_corrected_system,
    solve_centers,
    uncorrected_system,
)
from marey.joints.ball.fit import cap_noise_by_residual
from marey.joints.ball.normal_equations import PerPair, all_pairs, form_normal_equations
from marey.joints.ball.pair_frames import sum_pairs_at_anchors
from marey.joints.ball.third_body import mediation_ratios
from marey.joints.distance.cost import DistanceCost
from marey.joints.noise import estimate_pose_noise
from marey.joints.options import check_range
from marey.joints.sphere.fit import MIN_POSITIONS
from marey.joints.sphere.sandwich import sandwich_covariance
from marey.joints.stacked_takes import StackedTakes
from marey.numerics import geometry
from marey.options import options_from

Array = np.ndarray

PUBLISHED_ALPHA = 0.2
"""Penalty on the mean distance, published in DeAguiar2006, Sec. 4."""

MILLIMETRE = 1e-3

MAX_FRAMES = 400
"""Frames used, evenly spread over all takes. Higher costs time and hardly adds
information. Chosen by hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceOptions:
    """How joints are estimated from distances."""

    alpha: float = PUBLISHED_ALPHA
    """Weight of the mean distance relative to its variance, 0 to 1000; in units of the
    noise of the markers, or in millimetres when `printed`."""

    printed: bool = False
    """Whether to follow the paper literally: the penalty in millimetres, one point in
    the first body of each pair, moved to the second, and every joint a ball."""

    max_sd: float = 0.05
    """Predicted standard deviation of the centre, 1e-6 to 100 m, above which a
    direction counts as free: one makes a hinge. Not used when `printed`."""

    def __post_init__(self) -> None:
        check_range("alpha", self.alpha, 0.0, 1e3, "")
        check_range("max_sd", self.max_sd, 1e-6, 100.0, "m")


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
    _check_markers(takes[0])
    stacked = StackedTakes(takes)
    pair = all_pairs(len(takes[0].names))
    noise = estimate_pose_noise(takes)
    sums = sum_pairs_at_anchors(stacked.T, noise.anchor)
    raw = form_normal_equations(sums, pair)
    rough = solve_centers(uncorrected_system(raw), max_sd=chosen.max_sd)
    noise = cap_noise_by_residual(noise, raw, rough, pair)
    system = bias_corrected_system(raw, noise, pair)
    centers = solve_centers(system, max_sd=chosen.max_sd)
    anchors = noise.anchor[pair].reshape(-1, 6)
    markers = _PairMarkers(stacked, takes[0], chosen)
    joints = [
        markers.fit_joint(int(a), int(b), guess)
        for (a, b), guess in zip(pair, centers.u + anchors, strict=True)
    ]
    u = np.array([center for center, _ in joints])
    centers = CenterEstimates(
        u - anchors,
        np.where(np.isfinite(u).all(axis=1), centers.residual, np.nan),
        np.zeros_like(centers.free) if chosen.printed else centers.free,
        centers.sd,
        np.array([covariance for _, covariance in joints]),
    )
    estimates = PairEstimates(pair, noise, system, centers, np.ones(len(pair)))
    fits = assemble_joint_fits(
        estimates,
        distance=marker_distances(takes[0], pair, centers_from_origins(estimates)[0]),
        mediated=mediation_ratios(takes, sums, pair),
    )
    residual = [
        _rms_residual(stacked.T[:, a], stacked.T[:, b], *centers_ab)
        for (a, b), *centers_ab in zip(pair, fits.center_a, fits.center_b, strict=True)
    ]
    return replace(fits, residual=np.array(residual))


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
    _check_markers(takes[0])
    options = DistanceOptions(alpha=alpha, printed=True)
    markers = _PairMarkers(StackedTakes(takes), takes[0], options)
    cost = np.full(len(fits.pair), np.nan)
    for row in np.flatnonzero(fits.fitted).tolist():
        a, b = fits.pair[row].tolist()
        of_pair = markers.cost(a, b, markers.both_seen(a, b))
        cost[row], _ = of_pair.value_and_gradient(
            fits.center_a[row], MILLIMETRE * alpha
        )
    return cost


def _check_markers(bodies: Bodies) -> None:
    has_markers = bodies.shared.any(axis=0)
    if not has_markers.all():
        names = ", ".join(np.array(bodies.names)[~has_markers].tolist())
        raise DataError(
            "joints by distance",
            found=f"bodies without markers: {names}",
            needed='markers on every body; the method "ball" takes 6-DoF sensors',
        )


@dataclass(frozen=True, slots=True, eq=False)
class _DistanceView:
    """A joint estimated in the axes of one body, as (center_a, center_b)."""

    u: Float[Array, "6"]
    influence: Float[Array, "frame 6"]
    """Influence of each frame on the centres."""

    penalty_bias: Float[Array, "6"]
    """Displacement of the centres due to the penalty."""


class _PairMarkers:
    """The markers of all bodies, to be seen in the axes of each of them."""

    def __init__(
        self, stacked: StackedTakes, bodies: Bodies, options: DistanceOptions
    ) -> None:
        step = max(-(-len(stacked.T) // MAX_FRAMES), 1)
        self.stacked, self.options = stacked, options
        self.T, self.points = stacked.T[::step], stacked.points[::step]
        self.T_body_world = geometry.inverse(self.T)
        self.noise = _marker_noise(bodies)

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
        alpha = self._alpha(a, b)
        views = []
        if self._is_used(a, b, first=True):
            to_b = geometry.inverse(T_a_b).mean(axis=0)
            views.append(_fit_view(self.cost(a, b, both), guess[:3], alpha, to_b))
        if self._is_used(b, a, first=False):
            to_a = T_a_b.mean(axis=0)
            view = _fit_view(self.cost(b, a, both), guess[3:], alpha, to_a)
            views.append(_swap_bodies(view))
        share = 1.0 / len(views)
        u = share * np.sum([view.u for view in views], axis=0)
        influence = share * np.sum([view.influence for view in views], axis=0)
        bias = share * np.sum([view.penalty_bias for view in views], axis=0)
        return u, sandwich_covariance(influence) + np.outer(bias, bias)

    def _alpha(self, a: int, b: int) -> float:
        """Return the weight of the mean distance, in metres."""
        if self.options.printed:
            return self.options.alpha * MILLIMETRE
        mean_square = 0.5 * (self.noise[a] ** 2 + self.noise[b] ** 2)
        return self.options.alpha * float(np.sqrt(mean_square))

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


def _fit_view(
    cost: DistanceCost,
    guess: Float[Array, "3"],
    alpha: float,
    to_other: Float[Array, "4 4"],
) -> _DistanceView:
    """Return a joint as (centre in the body, centre moved to the other body)."""
    center = cost.minimum(alpha, guess)
    influence, bias = cost.influence(center, alpha), cost.penalty_bias(center)
    R, t = to_other[:3, :3], to_other[:3, 3]
    return _DistanceView(
        np.concatenate([center, R @ center + t]),
        np.concatenate([influence, influence @ R.T], axis=1),
        np.concatenate([bias, R @ bias]),
    )


def _swap_bodies(view: _DistanceView) -> _DistanceView:
    """Return a view with the two bodies in the opposite order."""
    order = [3, 4, 5, 0, 1, 2]
    return _DistanceView(
        view.u[order], view.influence[:, order], view.penalty_bias[order]
    )


def _rms_residual(T_a: Array, T_b: Array, center_a: Array, center_b: Array) -> float:
    """Return the root mean square distance of two centres; NaN without frames."""
    residual = geometry.apply(T_a, center_a) - geometry.apply(T_b, center_b)
    square = np.sum(residual**2, axis=-1)
    known = np.isfinite(square)
    return float(np.sqrt(square[known].mean())) if known.any() else float("nan")
