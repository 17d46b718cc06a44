"""Joints as points that keep their distance to the markers of both bodies.

Implements DeAguiar2006, Eqs. 2-4 and Sec. 4. The markers of both bodies are seen from
one of them; the joint is the point there whose distance to every marker varies least,
with a penalty on its mean distance, or a point far away would do as well. Where motion
is small that penalty draws the joint towards the markers: `ball` and `gdke` have no
such pull, and come much nearer to the least error possible.

Departures. The paper aligns the markers of the second body with those of the first,
which says nothing if meant literally; here both are moved by the alignment of the
first. Its penalty of 1/5 is a length, in the millimetres of its data; here it counts in
units of the markers' noise. Its answer depends on which body comes first; here it is
the mean of both views. What the motion leaves free, along a hinge, is told by the
turning of the bodies, as in `ball`. `printed=True` undoes all but the first.
"""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from marey.bodies import Bodies
from marey.errors import DataError, OptionError
from marey.joint_fits import JointFits
from marey.joints.assemble_fits import Draft, centers_of, distances, packed
from marey.joints.ball.closed_form import Closed, plain_system, solve, system_of
from marey.joints.ball.fit import believable
from marey.joints.ball.normal_equations import equations, pairs_of, seen_in, sum_pairs
from marey.joints.ball.pair_frames import anchored
from marey.joints.ball.third_body import mediation
from marey.joints.distance.energy import Paths
from marey.joints.noise import measure_noise
from marey.joints.sphere.fit import MIN_POSITIONS
from marey.joints.sphere.geometric import scatter
from marey.joints.stacked_takes import Crowd
from marey.numerics import geometry

Array = np.ndarray

PUBLISHED_ALPHA = 0.2
MILLIMETRE = 1e-3

MOST_FRAMES = 400
"""Frames looked at, evenly spread over all takes: more tell hardly anything new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceOptions:
    """How joints are found from distances."""

    alpha: float = PUBLISHED_ALPHA
    """How much the mean distance counts beside its variance, 0 to 1000: times the noise
    of the markers, or millimetres when `printed`."""

    printed: bool = False
    """Whether to take the paper at its word: the penalty in millimetres, one point in
    the first body of each pair, carried to the second, and every joint a ball."""

    max_sd: float = 0.05
    """Predicted standard deviation of the centre, 1e-6 to 100 m, beyond which a
    direction counts as free: one makes a hinge. Not asked when `printed`."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.alpha <= 1e3:
            raise OptionError("alpha", found=self.alpha, needed="0 to 1000")
        if not 1e-6 <= self.max_sd <= 100.0:
            raise OptionError("max_sd", found=self.max_sd, needed="1e-6 to 100 m")


def fit(takes: tuple[Bodies, ...], **options: Any) -> JointFits:
    """Return a joint for every pair of bodies that have markers.

    A body of one or two markers, whose axes are soft, is seen from the other one only.
    The covariance is that of the noise, with the square of what the penalty moved; the
    pull of noisy axes is not in it. `averaged_residual` is not told.

    Args:
        takes: The same bodies in one or several takes, which count as one.
        **options: Fields of `DistanceOptions`.

    Raises:
        DataError: If a body has no markers: a 6-DoF sensor has no distances to keep.
        OptionError: If an option is not known or out of range.
    """
    known = [field.name for field in fields(DistanceOptions)]
    for name, value in options.items():
        if name not in known:
            raise OptionError(name, found=value, needed=f"one of {', '.join(known)}")
    chosen = DistanceOptions(**options)
    _check(takes[0])
    crowd = Crowd(takes)
    pair = pairs_of(len(takes[0].names))
    noise = measure_noise(takes, noise=None, turn_noise=None)
    seen = seen_in(crowd.T)
    sums = sum_pairs(anchored(crowd.T, noise.anchor), seen)
    raw = equations(sums, pair)
    rough = solve(plain_system(raw), max_sd=chosen.max_sd)
    noise = believable(noise, raw, rough, pair)
    system = system_of(raw, noise, pair)
    closed = solve(system, max_sd=chosen.max_sd)
    views = _Views(crowd, takes[0], chosen)
    guess = (closed.u + noise.anchor[pair].reshape(-1, 6)).reshape(-1, 2, 3)
    found = [
        views.joint(int(a), int(b), near)
        for (a, b), near in zip(pair, guess, strict=True)
    ]
    u = np.array([joint.u for joint in found]).reshape(-1, 6)
    closed = Closed(
        u - noise.anchor[pair].reshape(-1, 6),
        np.where(np.isfinite(u).all(axis=1), closed.residual, np.nan),
        np.zeros_like(closed.free) if chosen.printed else closed.free,
        closed.sd,
        np.array([joint.covariance for joint in found]).reshape(-1, 6, 6),
    )
    draft = Draft(pair, noise, system, closed, np.ones(len(pair)))
    fits = packed(
        draft,
        distance=distances(takes[0], pair, centers_of(draft)[0]),
        mediated=mediation(takes, sums, pair),
    )
    residual = [
        _rms_gap(crowd.T[:, a], crowd.T[:, b], *ends)
        for (a, b), *ends in zip(pair, fits.center_a, fits.center_b, strict=True)
    ]
    return replace(fits, residual=np.array(residual))


def costs(
    takes: tuple[Bodies, ...], fits: JointFits, alpha: float = PUBLISHED_ALPHA
) -> Float[Array, " pair"]:
    """Return what Eq. 2 makes of joints, in square metres; NaN where there is none.

    The paper hangs its tree by these. They mix the penalty, and the number of markers,
    with how well a joint fits; the residual does not.

    Args:
        takes: The bodies of the joints, in one or several takes.
        fits: The joints, of which the centre in the first body counts.
        alpha: The penalty in millimetres.
    """
    _check(takes[0])
    views = _Views(Crowd(takes), takes[0], DistanceOptions(alpha=alpha, printed=True))
    cost = np.full(len(fits.pair), np.nan)
    for row in np.flatnonzero(fits.fitted).tolist():
        a, b = fits.pair[row].tolist()
        paths = views.paths(a, b, views.both(a, b))
        cost[row], _ = paths.energy(fits.center_a[row], MILLIMETRE * alpha)
    return cost


def _check(bodies: Bodies) -> None:
    worn = bodies.shared.any(axis=0)
    if not worn.all():
        bare = ", ".join(np.array(bodies.names)[~worn].tolist())
        raise DataError(
            "joints by distance",
            found=f"bodies without markers: {bare}",
            needed='markers on every body; the method "ball" takes 6-DoF sensors',
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Joint:
    """A joint between two bodies, before it is packed."""

    u: Float[Array, "6"]
    """The centre in the first body and in the second."""

    covariance: Float[Array, "6 6"]


_NO_JOINT = _Joint(np.full(6, np.nan), np.full((6, 6), np.nan))


class _Views:
    """The markers of all bodies, as each of them sees the others."""

    def __init__(self, crowd: Crowd, bodies: Bodies, options: DistanceOptions) -> None:
        step = max(-(-len(crowd.T) // MOST_FRAMES), 1)
        self.crowd, self.options = crowd, options
        self.T, self.points = crowd.T[::step], crowd.points[::step]
        self.back = geometry.inverse(self.T)
        self.noise = _noise_of(bodies)

    def joint(self, a: int, b: int, guess: Float[Array, "2 3"]) -> _Joint:
        """Return the joint of a pair, not known where they were hardly seen together.

        The mean of what the two bodies see, each view carried to the other body.

        Args:
            a: The first body.
            b: The second.
            guess: Where the joint may be, in a and in b.
        """
        T_a_b, both = self.back[:, a] @ self.T[:, b], self.both(a, b)
        if both.sum() < MIN_POSITIONS:
            return _NO_JOINT
        alpha = self.options.alpha * (
            MILLIMETRE
            if self.options.printed
            else float(np.sqrt(0.5 * (self.noise[a] ** 2 + self.noise[b] ** 2)))
        )
        to_b = geometry.inverse(T_a_b[both]).mean(axis=0)
        to_a = T_a_b[both].mean(axis=0)
        found = [
            _seen_by(
                self.paths(body, other, both), near, alpha, to_other, first=body == a
            )
            for body, other, near, to_other in (
                (a, b, guess[0], to_b),
                (b, a, guess[1], to_a),
            )
            if self._serves(body, other, first=body == a)
        ]
        share = 1.0 / len(found)
        u = share * np.sum([view.u for view in found], axis=0)
        moves = share * np.sum([view.moves for view in found], axis=0)
        pulled = share * np.sum([view.pulled for view in found], axis=0)
        return _Joint(u, scatter(moves) + np.outer(pulled, pulled))

    def _serves(self, body: int, other: int, *, first: bool) -> bool:
        """Return whether a body's view counts: its axes must be known."""
        if self.options.printed:
            return first
        return bool(self.crowd.determined[body] or not self.crowd.determined[other])

    def both(self, a: int, b: int) -> Bool[Array, " frame"]:
        """Return the frames that show two bodies."""
        return np.asarray(np.isfinite(self.T[:, [a, b]]).all(axis=(1, 2, 3)))

    def paths(self, body: int, other: int, both: Bool[Array, " frame"]) -> Paths:
        """Return the markers of two bodies as the first sees them."""
        member = self.crowd.member
        worn = member[:, body] | member[:, other]
        points = self.points[both][:, worn]
        local = geometry.apply(self.back[both, body, None], points)
        return Paths(local, member[worn, body] & ~member[worn, other])


def _noise_of(bodies: Bodies) -> Float[Array, " body"]:
    """Return the noise of each body's markers, one standard deviation in metres."""
    noise = bodies.rms.copy()
    for body in range(len(noise)):
        mine = bodies.marker_body == body
        if len(bodies.marker_noise) and mine.any():
            # That of a marker is never told as none; what the body shows may be.
            typical = float(np.median(bodies.marker_noise[mine]))
            noise[body] = np.fmin(noise[body], typical)
    return np.asarray(np.nan_to_num(noise))


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """A joint as one of its bodies sees it, as (center_a, center_b)."""

    u: Float[Array, "6"]
    moves: Float[Array, "frame 6"]
    """How far the noise of each frame moved it."""

    pulled: Float[Array, "6"]
    """How far the penalty moved it."""


def _seen_by(
    paths: Paths,
    guess: Float[Array, "3"],
    alpha: float,
    to_other: Float[Array, "4 4"],
    *,
    first: bool,
) -> _View:
    center = paths.minimum(alpha, guess)
    moves, pulled = paths.doubt(center, alpha)
    R, shift = to_other[:3, :3], to_other[:3, 3]

    def both(own: Array, carried: Array) -> Array:
        return np.concatenate([own, carried] if first else [carried, own], axis=-1)

    return _View(
        both(center, R @ center + shift),
        both(moves, moves @ R.T),
        both(pulled, R @ pulled),
    )


def _rms_gap(T_a: Array, T_b: Array, center_a: Array, center_b: Array) -> float:
    gap = geometry.apply(T_a, center_a) - geometry.apply(T_b, center_b)
    square = np.sum(gap**2, axis=-1)
    known = np.isfinite(square)
    return float(np.sqrt(square[known].mean())) if known.any() else float("nan")
