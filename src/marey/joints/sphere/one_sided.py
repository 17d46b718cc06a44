"""A joint as one of its two bodies sees it."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Float

from marey.joints.ball.closed_form import FREE
from marey.joints.noise import PoseNoise
from marey.joints.sphere.fit import (
    MIN_POSITIONS,
    Estimator,
    SphereKind,
    fit_sphere,
    influence,
)
from marey.joints.sphere.geometric import Bias, Tilt, bias_of, equation, leveled
from marey.joints.stacked_takes import Crowd
from marey.numerics import geometry

Array = np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """The joint in one body's axes, from the paths of the other body's markers."""

    points: Float[Array, "frame marker 3"]
    center: Float[Array, " 3"]
    axis: Float[Array, " 3"]
    axis_covariance: Float[Array, "3 3"]
    kind: SphereKind
    noise: float
    spread: Float[Array, " 3"]
    moves: Float[Array, "frame 3"]
    """How far the noise of each frame moved the centre."""

    extra: Float[Array, "3 3"]
    """What the disagreement of markers adds to its covariance."""

    basis: Float[Array, "3 directions"]
    """Directions that the fit could move the centre in."""

    tilt: Tilt
    """Noise of the body's axes."""

    bias: Bias | None
    """What that does to a "geometric" centre."""

    @property
    def known(self) -> bool:
        """Whether there is a centre."""
        return bool(np.isfinite(self.center).all())

    @property
    def away(self) -> Float[Array, " marker"]:
        """Mean distance of each marker ever seen from the centre, in metres."""
        away = np.linalg.norm(self.points - self.center, axis=-1)
        known = np.isfinite(away)
        seen = known.any(axis=0)
        total = np.where(known, away, 0.0).sum(axis=0)[seen]
        return np.asarray(total / known.sum(axis=0)[seen])


def side_of(
    crowd: Crowd,
    body: int,
    moving: int,
    poses: PoseNoise,
    *,
    estimator: Estimator,
    kind: SphereKind | Literal["auto"] = "auto",
    axis: Float[Array, " 3"] | None = None,
) -> Side:
    """Return the joint in a body's axes; unknown where it has none."""
    tilt = Tilt(poses.turn[body], poses.anchor[body])
    if not crowd.determined[body]:
        return _nothing(np.full((len(crowd.T), 0, 3), np.nan), np.full(3, np.nan), tilt)
    points = crowd.seen_from(body, moving)
    known = moving if crowd.determined[moving] else None
    noise = crowd.noise(points, poses, body, known)
    sphere = fit_sphere(points, estimator=estimator, kind=kind, axis=axis, noise=noise)
    if sphere.reason:
        return _nothing(points, sphere.spread, tilt)
    center, basis, bias = sphere.center, sphere.basis, None
    if estimator == "geometric":
        bias = bias_of(points, center, basis, tilt)
        center = leveled(points, center, basis, bias)
        here = equation(points, center, basis, bias)
        moves, extra = here.moves @ basis.T, basis @ here.disagreement @ basis.T
    else:
        moves = influence(points, sphere, plain=estimator == "kasa")
        extra = np.zeros((3, 3))
    return Side(
        points=points,
        center=center,
        axis=sphere.axis,
        axis_covariance=sphere.axis_covariance,
        kind=sphere.kind,
        noise=sphere.noise,
        spread=sphere.spread,
        moves=moves,
        extra=extra,
        basis=basis,
        tilt=tilt,
        bias=bias,
    )


def _nothing(points: Array, spread: Array, tilt: Tilt) -> Side:
    none = np.full(3, np.nan)
    return Side(
        points=points,
        center=none,
        axis=none,
        axis_covariance=np.full((3, 3), np.nan),
        kind="fixed",
        noise=float("nan"),
        spread=spread,
        moves=np.zeros((len(points), 3)),
        extra=np.zeros((3, 3)),
        basis=np.eye(3),
        tilt=tilt,
        bias=None,
    )


def completed(
    T_a_b: Float[Array, "frame 4 4"], in_a: Side, in_b: Side
) -> tuple[Side, Side]:
    """Return both sides known: what one does not show is taken from the other."""
    if not in_a.known and not in_b.known:
        middle = 0.5 * T_a_b[:, :3, 3].mean(axis=0)
        in_a = replace(in_a, center=middle)
        return in_a, replace(in_b, center=carried(geometry.inverse(T_a_b), middle))
    if not in_b.known:
        return in_a, _taken_over(geometry.inverse(T_a_b), in_b, in_a)
    if not in_a.known:
        return _taken_over(T_a_b, in_a, in_b), in_b
    return in_a, in_b


def _taken_over(T: Array, side: Side, other: Side) -> Side:
    """Return a side with the centre and axis of the other, carried by T_side_other."""
    R = T[:, :3, :3].mean(axis=0)
    axis = R @ other.axis
    return replace(
        side,
        center=carried(T, other.center),
        axis=axis / np.linalg.norm(axis),
        axis_covariance=R @ other.axis_covariance @ R.T,
        kind=other.kind,
        moves=other.moves @ R.T,
        extra=R @ other.extra @ R.T,
    )


def carried(
    T: Float[Array, "frame 4 4"], point: Float[Array, " 3"]
) -> Float[Array, " 3"]:
    """Return the mean place of a point over all frames."""
    return np.asarray(geometry.apply(T, point).mean(axis=0))


def slid_together(
    T_a_b: Float[Array, "frame 4 4"], in_a: Side, in_b: Side
) -> tuple[Side, Side]:
    """Return a hinge's two centres at the point midway between its bodies' feet."""
    foot_b = in_b.center - (in_b.center @ in_b.axis) * in_b.axis
    foot_a = in_a.center - (in_a.center @ in_a.axis) * in_a.axis
    half = 0.5 * (carried(T_a_b, foot_b) - foot_a) @ in_a.axis
    return (
        replace(in_a, center=foot_a + half * in_a.axis),
        replace(in_b, center=foot_b - half * in_b.axis),
    )


def at_least_a_place(side: Side) -> Side:
    """Return a side that shows no centre with the markers' mean place as one."""
    seen = np.isfinite(side.points).all(axis=-1)
    if side.known or seen.sum(axis=0).max(initial=0) < MIN_POSITIONS:
        return side
    return replace(
        side,
        center=side.points[seen].mean(axis=0),
        noise=float(np.linalg.norm(side.spread)),
        extra=FREE**2 * np.eye(3),
    )
