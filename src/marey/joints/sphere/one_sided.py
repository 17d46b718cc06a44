"""A joint in the axes of one body, from the paths of the other body's markers."""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from jaxtyping import Float

from marey.joints.ball.closed_form import FREE_SD_M
from marey.joints.noise import PoseNoise
from marey.joints.sphere.fit import (
    MIN_POSITIONS,
    SphereEstimator,
    SphereKind,
    center_influence,
    fit_sphere,
)
from marey.joints.sphere.geometric import (
    AxisNoise,
    AxisNoiseBias,
    axis_noise_bias,
    estimating_equation,
    remove_axis_bias,
)
from marey.joints.stacked_takes import StackedTakes
from marey.numerics import geometry

Array = np.ndarray


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OneSidedFit:
    """The sphere that the markers of another body describe in the axes of one body."""

    points: Float[Array, "frame marker 3"]
    """The markers, in metres."""

    spread: Float[Array, " 3"]
    """As in `Sphere`, and so are the five fields that follow."""

    center: Float[Array, " 3"]
    axis: Float[Array, " 3"]
    axis_covariance: Float[Array, "3 3"]
    kind: SphereKind
    noise: float
    influence: Float[Array, "frame 3"]
    """Influence of each frame on the centre, in metres."""

    disagreement: Float[Array, "3 3"] = field(default_factory=lambda: np.zeros((3, 3)))
    """Covariance of the centre due to the disagreement of markers, in square metres."""

    basis: Float[Array, "3 directions"]
    """Directions in which the fit could move the centre."""

    axis_noise: AxisNoise
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
        distance = np.linalg.norm(self.points - self.center, axis=-1)
        known = np.isfinite(distance)
        seen = known.any(axis=0)
        total = np.where(known, distance, 0.0).sum(axis=0)[seen]
        return np.asarray(total / known.sum(axis=0)[seen])


def fit_one_side(
    takes: StackedTakes,
    body: int,
    moving: int,
    poses: PoseNoise,
    *,
    estimator: SphereEstimator,
    kind: SphereKind | Literal["auto"] = "auto",
    axis: Float[Array, " 3"] | None = None,
) -> OneSidedFit:
    """Return the joint in a body's axes; unknown if the body has none.

    Args:
        takes: Poses and markers.
        body: The body in whose axes the joint is estimated.
        moving: The body whose markers describe the sphere.
        poses: Noise of the poses.
        estimator: As in `fit_sphere`.
        kind: As in `fit_sphere`.
        axis: As in `fit_sphere`.
    """
    axis_noise = AxisNoise(poses.rotation_covariance[body], poses.anchor[body])
    points = np.full((len(takes.T), 0, 3), np.nan)
    if takes.determined[body]:
        points = takes.markers_in_body(body, moving)
    posed = moving if takes.determined[moving] else None
    noise = takes.marker_noise_covariance(points, poses, body, posed)
    sphere = fit_sphere(points, estimator=estimator, kind=kind, axis=axis, noise=noise)
    side = OneSidedFit(
        points=points,
        spread=sphere.spread,
        center=sphere.center,
        axis=sphere.axis,
        axis_covariance=sphere.axis_covariance,
        kind=sphere.kind,
        noise=sphere.noise,
        influence=np.zeros((len(points), 3)),
        basis=sphere.basis,
        axis_noise=axis_noise,
    )
    if sphere.reason:
        return side
    if estimator != "geometric":
        influence = center_influence(points, sphere, estimator)
        return replace(side, influence=influence)
    return _without_axis_bias(side)


def _without_axis_bias(side: OneSidedFit) -> OneSidedFit:
    """Return a side whose centre has no bias from noisy axes."""
    points, basis = side.points, side.basis
    bias = axis_noise_bias(points, side.center, basis, side.axis_noise)
    center = remove_axis_bias(points, side.center, basis, bias)
    equation = estimating_equation(points, center, basis, bias)
    return replace(
        side,
        center=center,
        influence=equation.influence @ basis.T,
        disagreement=basis @ equation.disagreement @ basis.T,
        bias=bias,
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
    """Return a side with the centre and axis of the other, moved by T_side_other."""
    R = T[:, :3, :3].mean(axis=0)
    axis = R @ other.axis
    return replace(
        side,
        center=mean_position(T, other.center),
        axis=axis / np.linalg.norm(axis),
        axis_covariance=R @ other.axis_covariance @ R.T,
        kind=other.kind,
        influence=other.influence @ R.T,
        disagreement=R @ other.disagreement @ R.T,
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
