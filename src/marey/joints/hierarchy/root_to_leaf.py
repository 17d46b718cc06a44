"""Constants of a body from the poses of its parent, and its pose from the constants.

One step of the root-to-leaf pass of Knight2007, Sec. 2.3: in the axes of the parent the
markers of a child move on spheres about their joint; joint and markers together then
determine the pose of the child.
"""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from jaxtyping import Float

from marey.errors import DataError
from marey.joints.axes_from_points import (
    construct_poses,
    poses_without_twist,
    unit_vectors,
)
from marey.joints.sphere.fit import SphereEstimator, fit_sphere
from marey.joints.stacked_takes import StackedTakes
from marey.numerics import geometry
from marey.numerics.procrustes import fit_rigid
from marey.skeleton import Kind

Array = np.ndarray
Path = Float[Array, "frame 3"]
PosePath = Float[Array, "frame 4 4"]
Poses = Float[Array, "frame body 4 4"]
Markers = Float[Array, "frame marker 3"]
AxesMethod = Literal["weighted", "constructed"]
PoseSource = Literal["sensor", "points", "constructed", "direction", "parent"]

AXIS_POINT_DISTANCE_RATIO = 0.5
"""Distance from the joint of the point on a hinge axis that stands in for a second
marker, as a fraction of the mean marker radius. Higher gives the axis more weight
against the marker. Chosen by hand."""


def _nan_vector() -> Array:
    return np.full(3, np.nan)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BodyConstants:
    """Everything that is constant over time and needed to pose one body."""

    body: int
    parent: int = -1
    """Parent body; -1 = root."""

    kind: Kind
    center_in_parent: Float[Array, " 3"] = field(default_factory=_nan_vector)
    """Joint centre in the parent's axes, in metres; NaN for the root."""

    axis_in_parent: Float[Array, " 3"] = field(default_factory=_nan_vector)
    """Unit axis of a hinge in the parent's axes; NaN for other kinds."""

    covariance: Float[Array, "3 3"] = field(
        default_factory=lambda: np.full((3, 3), np.nan)
    )
    """Covariance of `center_in_parent`, in square metres."""

    radial_noise: float = 0.0
    """Standard deviation of the markers along their radius, in metres; 0 without a
    sphere fit."""

    off_axis_rotation: float = 0.0
    """Root mean square rotation of a hinge across its axis, in radians."""

    center_in_body: Float[Array, " 3"] = field(default_factory=lambda: np.zeros(3))
    """Joint centre in the body's own axes, in metres; zero for the root."""

    points_in_body: Float[Array, "point 3"] = field(
        default_factory=lambda: np.zeros((0, 3))
    )
    """Markers, then the joint and a point of its axis, in the body's own axes; with the
    pose source "direction" its rest direction in the parent's axes."""

    weights: Float[Array, " point"] = field(default_factory=lambda: np.zeros(0))
    """Weight of each of these points in the pose of the body."""

    pose_source: PoseSource
    """Data that determine the pose: see `estimate_hierarchy`."""


def root_constants(
    stacked: StackedTakes, body: int, name: str, axes: AxesMethod
) -> BodyConstants:
    """Return the constants of the root: its own sensor, or three markers or more.

    Raises:
        DataError: If the markers do not determine a pose.
    """
    if not stacked.member[:, body].any():
        return BodyConstants(body=body, kind="root", pose_source="sensor")
    fit = fit_rigid(stacked.markers_in_world(body))
    if not fit.determined:
        raise DataError(
            f"root {name}",
            found=f"{stacked.member[:, body].sum()} markers, too few or on one line",
            needed="3 markers that are not",
        )
    return BodyConstants(
        body=body,
        kind="root",
        points_in_body=fit.offset,
        weights=_weights(fit.sd),
        pose_source="points" if axes == "weighted" else "constructed",
    )


def estimate_child(
    stacked: StackedTakes,
    body: int,
    parent: int,
    T_world_parent: PosePath,
    axes: AxesMethod,
    estimator: SphereEstimator,
    noise: Float[Array, "3 3"] | None,
) -> BodyConstants:
    """Return the constants of a body whose parent is posed.

    Args:
        stacked: Markers and sensor poses of all takes.
        body: The child.
        parent: Its parent.
        T_world_parent: Poses of the parent.
        axes: As in `estimate_hierarchy`.
        estimator: As in `fit_sphere`.
        noise: Covariance of the markers in the parent's axes, in square metres.
    """
    T_parent_world = geometry.inverse(T_world_parent)
    in_parent = geometry.apply(
        T_parent_world[:, None], stacked.markers_in_world(body, without=parent)
    )
    sphere = fit_sphere(in_parent, estimator=estimator, noise=noise)
    if sphere.reason and not stacked.determined[parent]:
        # The noise predicted from few markers is rough: it may classify a hinge, but
        # it must not reject the joint.
        sphere = fit_sphere(in_parent, estimator=estimator)
    if sphere.reason:
        return BodyConstants(
            body=body,
            parent=parent,
            kind="fixed",
            center_in_parent=_mean_seen(in_parent.reshape(-1, 3)),
            pose_source="parent",
        )
    constants = BodyConstants(
        body=body,
        parent=parent,
        kind=sphere.kind,
        center_in_parent=sphere.center,
        axis_in_parent=sphere.axis,
        covariance=sphere.covariance,
        radial_noise=sphere.noise,
        off_axis_rotation=sphere.spread[0] / np.nanmax(sphere.radius),
        pose_source="sensor",
    )
    joint, axis = _joint_in_world(constants, T_world_parent)
    if not stacked.member[:, body].any():
        center = _mean_seen(geometry.apply(geometry.inverse(stacked.T[:, body]), joint))
        return replace(constants, center_in_body=center)
    arm = AXIS_POINT_DISTANCE_RATIO * np.nanmean(sphere.radius)
    constants = _from_points(
        constants, stacked.markers_in_world(body), joint, axis, arm, axes
    )
    if constants.pose_source != "direction":
        return constants
    rest = unit_vectors(_mean_seen(in_parent[:, 0] - sphere.center))
    return replace(constants, points_in_body=rest[None], weights=np.ones(1))


def _from_points(
    constants: BodyConstants,
    markers: Markers,
    joint: Path,
    axis: Path,
    arm: float,
    axes: AxesMethod,
) -> BodyConstants:
    """Return the constants with the points of the body: markers, joint, axis point.

    If the points lie on a line, only the direction of the body is known.
    """
    points = _with_joint_points(markers, joint, axis, arm)
    n_markers = markers.shape[1]
    fit = fit_rigid(points)
    if not fit.determined:
        return replace(constants, pose_source="direction")
    source: PoseSource = "points"
    if axes == "constructed" and (n_markers > 1 or constants.kind == "hinge"):
        T_body_world = geometry.inverse(construct_poses(markers, joint, axis))
        local = geometry.apply(T_body_world[:, None], points)
        in_body = np.stack([_mean_seen(path) for path in np.swapaxes(local, 0, 1)])
        weights, source = np.ones(len(in_body)), "constructed"
    else:
        in_body, weights = fit.offset, _weights(fit.sd)
    return replace(
        constants,
        center_in_body=in_body[n_markers],
        points_in_body=in_body,
        weights=weights,
        pose_source=source,
    )


def pose_body(stacked: StackedTakes, constants: BodyConstants, T: Poses) -> PosePath:
    """Return the pose of a body in every frame, given the pose of its parent.

    The points of a body are fitted by the weighted Kabsch algorithm.
    """
    source, parent = constants.pose_source, constants.parent
    if source == "sensor":
        return np.asarray(stacked.T[:, constants.body])
    joint, axis = _joint_in_world(constants, T[:, parent])
    if source == "parent":
        return geometry.transform(T[:, parent, :3, :3], joint)
    points = stacked.markers_in_world(constants.body)
    if source == "direction":
        direction, rest = points[:, 0] - joint, constants.points_in_body[0]
        return poses_without_twist(T[:, parent], direction, rest, joint)
    if source == "constructed":
        return construct_poses(points, joint, axis)
    if parent >= 0:
        axis_point = constants.points_in_body[-1]
        arm = float(np.linalg.norm(axis_point - constants.center_in_body))
        points = _with_joint_points(points, joint, axis, arm)
    return geometry.kabsch(constants.points_in_body, points, constants.weights)


def _joint_in_world(
    constants: BodyConstants, T_world_parent: PosePath
) -> tuple[Path, Path]:
    """Return the paths of joint centre and axis; NaN for a root, which has none."""
    R = T_world_parent[:, :3, :3]
    joint = geometry.apply(T_world_parent, constants.center_in_parent)
    return joint, np.einsum("fij,j->fi", R, constants.axis_in_parent)


def _with_joint_points(
    markers: Array, joint: Array, axis: Array, arm: float
) -> Float[Array, "frame point 3"]:
    """Return markers, joint and, if there is one marker only, a point of the axis."""
    points = [markers, joint[:, None]]
    if markers.shape[1] == 1 and np.isfinite(axis).any():
        points.append((joint + arm * axis)[:, None])
    return np.concatenate(points, axis=1)


def _weights(sd: Float[Array, " point"]) -> Float[Array, " point"]:
    r"""Return weights by how well points keep their position in the body.

    .. math:: w_i = \frac{2 \bar v}{v_i + \bar v}, \qquad v_i = \mathrm{sd}_i^2

    The mean variance :math:`\bar v` keeps the weights between 0 and 2, so that no point
    decides alone.
    """
    variance = np.where(np.isfinite(sd), sd, 0.0) ** 2
    mean = variance.mean()
    return np.ones(len(sd)) if mean == 0.0 else 2.0 * mean / (variance + mean)


def _mean_seen(points: Float[Array, "point 3"]) -> Float[Array, " 3"]:
    """Return the mean of the points that are not NaN; NaN if all are."""
    seen = points[np.isfinite(points).all(axis=-1)]
    return np.asarray(seen.mean(axis=0)) if len(seen) else _nan_vector()
