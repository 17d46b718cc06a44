"""Constants of a body from the poses of its parent, and its pose from the constants.

The steps of the root-to-leaf pass of Knight2007, Sec. 2.3. In the axes of the parent
the markers of a child move on spheres about their joint. Joint and markers together
then determine the pose of the child, and its noise follows from that of the parent.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from marey.bodies import Bodies
from marey.errors import DataError
from marey.joints.axes_from_points import (
    construct_poses,
    poses_without_twist,
)
from marey.joints.noise import BodyNoise, estimate_pose_noise
from marey.joints.sphere.fit import Sphere, SphereEstimator, fit_sphere
from marey.joints.sphere.moments import compute_moments
from marey.joints.stacked_takes import StackedTakes
from marey.numerics import Array, Float, empty_array, geometry
from marey.numerics.procrustes import fit_rigid
from marey.numerics.thresholds import FEW
from marey.skeleton import Kind

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
    """Return a position that is not known."""
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
    """Unit axis of a hinge in the parent's axes, or of one marker as published; NaN for
    other kinds."""

    covariance: Float[Array, "3 3"] = field(
        default_factory=lambda: np.full((3, 3), np.nan)
    )
    """Covariance of `center_in_parent`, in square metres."""

    radial_noise: float = 0.0
    """Standard deviation of the markers along their radius, in metres; 0 without a
    sphere fit."""

    off_axis_rotation: float = 0.0
    """Root mean square rotation of a hinge across its axis, in radians."""

    center_in_body: Float[Array, " 3"] = empty_array(3)
    """Joint centre in the body's own axes, in metres; zero for the root."""

    points_in_body: Float[Array, "point 3"] = empty_array(0, 3)
    """Markers, then the joint and a point of its axis, in the body's own axes; with the
    pose source "direction" its rest direction in the parent's axes."""

    weights: Float[Array, " point"] = empty_array(0)
    """Weight of each of these points in the pose of the body."""

    pose_source: PoseSource
    """Data that determine the pose: see `estimate_hierarchy`."""


class PosePropagation:
    """Poses of the bodies of some takes and their noise, as far as they are known.

    A body is estimated from a parent that has a pose, is posed itself, and may then be
    the parent of others.

    Args:
        takes: The same bodies in one or several takes.
        axes: As in `estimate_hierarchy`.
        estimator: As in `fit_sphere`.
    """

    stacked: StackedTakes
    """Markers and recorded poses of all takes."""

    T: Poses
    """World poses of the bodies so far; NaN for the others."""

    noise: dict[int, BodyNoise]
    """Noise of the bodies that have a pose."""

    def __init__(
        self,
        takes: Sequence[Bodies],
        axes: AxesMethod = "weighted",
        estimator: SphereEstimator = "geometric",
    ) -> None:
        self.stacked, self.noise = StackedTakes(takes), {}
        self.T = np.full(self.stacked.T.shape, np.nan)
        self._axes, self._estimator = axes, estimator
        self._recorded_noise = estimate_pose_noise(takes)

    def use_recorded_pose(self, body: int) -> None:
        """Pose a body as it was recorded."""
        self.T[:, body] = self.stacked.T[:, body]
        self.noise[body] = self._recorded_noise.of_body(body)

    def estimate_root(self, body: int, name: str) -> BodyConstants:
        """Return the constants of the root: its own sensor, or three markers or more.

        Raises:
            DataError: If the markers do not determine a pose.
        """
        if not self.stacked.member[:, body].any():
            return BodyConstants(body=body, kind="root", pose_source="sensor")
        fit = fit_rigid(self.stacked.markers_in_world(body))
        if not fit.determined:
            count = self.stacked.member[:, body].sum()
            raise DataError(
                f"root {name}",
                found=f"{count} markers, too few or on one line",
                needed="3 markers that are not",
            )
        return BodyConstants(
            body=body,
            kind="root",
            points_in_body=fit.offset,
            weights=_weights(fit.sd),
            pose_source="points" if self._axes == "weighted" else "constructed",
        )

    def estimate_child(self, body: int, parent: int) -> BodyConstants:
        """Return the constants of a body whose parent has a pose."""
        markers = self.stacked.markers_in_world(body, without=parent)
        T_parent_world = geometry.inverse(self.T[:, parent])[:, None]
        in_parent = geometry.apply(T_parent_world, markers)
        sphere = self._fit_joint(body, parent, in_parent)
        if sphere.reason:
            return BodyConstants(
                body=body,
                parent=parent,
                kind="fixed",
                center_in_parent=_mean_seen(in_parent.reshape(-1, 3)),
                pose_source="parent",
            )
        radius = np.nanmax(sphere.radius)
        constants = BodyConstants(
            body=body,
            parent=parent,
            kind=sphere.kind,
            center_in_parent=sphere.center,
            axis_in_parent=self._axis_of(sphere, in_parent),
            covariance=sphere.covariance,
            radial_noise=sphere.noise,
            off_axis_rotation=sphere.spread[0] / radius if radius > 0.0 else 0.0,
            pose_source="sensor",
        )
        return self._add_points(constants, sphere, in_parent)

    def _fit_joint(self, body: int, parent: int, in_parent: Markers) -> Sphere:
        """Return the sphere that a body describes in the axes of its parent."""
        noise = self._marker_noise(body, parent)
        sphere = fit_sphere(in_parent, estimator=self._estimator, noise=noise)
        if sphere.reason and not self.stacked.determined[parent]:
            # The noise predicted from few markers is rough: it may classify a hinge,
            # but it must not reject the joint.
            sphere = fit_sphere(in_parent, estimator=self._estimator)
        if (self.stacked.member[:, [body, parent]].sum(axis=0) == 1).all():
            return _keep_near_marker(in_parent, sphere)
        if sphere.reason or _has_radius(in_parent, sphere):
            return sphere
        near = fit_sphere(in_parent, estimator="kasa", kind=sphere.kind)
        return replace(near, covariance=sphere.covariance)

    def _add_points(
        self, constants: BodyConstants, sphere: Sphere, in_parent: Markers
    ) -> BodyConstants:
        """Return the constants with the joint, and the points, in the body's axes."""
        body, stacked = constants.body, self.stacked
        joint, axis = _joint_in_world(constants, self.T[:, constants.parent])
        if not stacked.member[:, body].any():
            in_body = geometry.apply(geometry.inverse(stacked.T[:, body]), joint)
            return replace(constants, center_in_body=_mean_seen(in_body))
        arm = AXIS_POINT_DISTANCE_RATIO * np.nanmean(sphere.radius)
        markers = stacked.markers_in_world(body)
        constants = _from_points(constants, markers, joint, axis, arm, self._axes)
        if constants.pose_source != "direction":
            return constants
        rest = geometry.unit_vectors(_mean_seen(in_parent[:, 0] - sphere.center))
        return replace(constants, points_in_body=rest[None], weights=np.ones(1))

    def _axis_of(self, sphere: Sphere, in_parent: Markers) -> Float[Array, " 3"]:
        """Return the axis of a hinge; as published, the null vector of one marker.

        The paper takes the direction of least motion as the axis of a single marker,
        whatever the joint.
        """
        if self._axes == "weighted" or in_parent.shape[1] > 1:
            return sphere.axis
        _, vectors = np.linalg.eigh(compute_moments(in_parent).covariance)
        return np.asarray(vectors[:, 0])

    def _marker_noise(self, body: int, parent: int) -> Float[Array, "3 3"] | None:
        """Return the covariance of a body's markers in the axes of its parent.

        It is in square metres, and None if the noise of the parent is not known.
        """
        if not np.isfinite(self.noise[parent].rotation_covariance).all():
            return None
        markers = self.stacked.markers_in_world(body)
        T_parent_world = geometry.inverse(self.T[:, parent])[:, None]
        in_parent = geometry.apply(T_parent_world, markers)
        is_posed = self.stacked.determined[body]
        moving = self._recorded_noise.of_body(body) if is_posed else None
        return self.stacked.marker_noise_covariance(
            compute_moments(in_parent), self.noise[parent], moving
        )

    def pose(self, constants: BodyConstants) -> None:
        """Pose a body by its constants, and propagate the noise of its parent to it."""
        body, parent = constants.body, constants.parent
        self.T[:, body] = pose_body(self.stacked, constants, self.T)
        if self.stacked.determined[body] or parent < 0:
            T = geometry.inverse(self.T[:, body]) @ self.stacked.T[:, body]
            recorded = self._recorded_noise.of_body(body)
            self.noise[body] = _noise_in_posed_axes(recorded, T)
        else:
            n_markers = int(self.stacked.member[:, body].sum())
            R = mean_relative_rotation(self.T, body, parent)
            self.noise[body] = _noise_through_joint(
                constants, self.noise[parent], n_markers, R
            )


def _keep_near_marker(in_parent: Markers, sphere: Sphere) -> Sphere:
    """Return the sphere of a single marker in the axes of another single one.

    Such axes are a convention or rough, and a path in them need not be a sphere: least
    squares may place its centre anywhere. The estimator of the paper keeps it near the
    marker; it is used where the two disagree by a tenth of the radius.
    """
    if sphere.reason:
        return sphere
    near = fit_sphere(in_parent, estimator="kasa", kind=sphere.kind)
    apart = np.linalg.norm(near.center - sphere.center)
    return near if apart > FEW * np.nanmax(sphere.radius) else sphere


def _has_radius(in_parent: Markers, sphere: Sphere) -> bool:
    """Return whether the centre is further from the markers than its uncertainty.

    In a few frames markers move on a piece of a sphere that is nearly plane, and least
    squares may place its centre metres away.
    """
    arm = sphere.center - _mean_seen(in_parent.reshape(-1, 3))
    return bool(arm @ sphere.covariance @ arm < (arm @ arm) ** 2)


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
    if axes == "constructed":
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
    """Return the mean (m) of the points that are not NaN; NaN if all are."""
    seen = points[np.isfinite(points).all(axis=-1)]
    return np.asarray(seen.mean(axis=0)) if len(seen) else _nan_vector()


def mean_relative_rotation(T: Poses, body: int, parent: int) -> Float[Array, "3 3"]:
    """Return the mean of R_body_parent over the frames that show both; NaN if none."""
    R = np.swapaxes(T[:, body, :3, :3], 1, 2) @ T[:, parent, :3, :3]
    R = R[np.isfinite(R).all(axis=(1, 2))]
    return np.asarray(R.mean(axis=0)) if len(R) else np.full((3, 3), np.nan)


UNKNOWN_NOISE = BodyNoise(np.full((3, 3), np.nan), np.nan, _nan_vector())


def _noise_in_posed_axes(noise: BodyNoise, T_posed_recorded: PosePath) -> BodyNoise:
    """Return the noise of a recorded body in the axes that it was posed with."""
    T = T_posed_recorded[np.isfinite(T_posed_recorded).all(axis=(1, 2))]
    if not len(T):
        return UNKNOWN_NOISE
    R = T[:, :3, :3].mean(axis=0)
    anchor = geometry.apply(T, noise.anchor).mean(axis=0)
    C = R @ noise.rotation_covariance @ R.T
    return BodyNoise(C, noise.position_variance, anchor)


def _noise_through_joint(
    constants: BodyConstants,
    parent: BodyNoise,
    n_markers: int,
    R_body_parent: Float[Array, "3 3"],
) -> BodyNoise:
    r"""Return the noise of a body that is posed by its joint and few markers.

    The joint moves with the parent. Its position variance per axis is

    .. math:: v_\text{joint} = v + \tfrac{1}{3} \operatorname{tr}([r] C [r]^T)

    with the position variance :math:`v` and rotation covariance :math:`C` of the parent
    and the lever arm :math:`r` from the parent's anchor to the joint. About the axis
    :math:`n` of a hinge the markers determine the rotation; across it the body has the
    noise of the parent and the play :math:`w` of the hinge:

    .. math:: C_\text{body} = P R C R^T P + w^2 P + \frac{\sigma^2}{n^T J n} n n^T,
              \qquad P = I - n n^T

    with the inertia :math:`J` of the markers about the joint and their radial noise
    :math:`\sigma`. The rotation covariance is NaN below a ball joint: the twist then
    depends on how far few markers are from a line, which is too rough to classify a
    hinge by.

    Args:
        constants: Constants of the body.
        parent: Noise of its parent.
        n_markers: How many of the points of the body are markers.
        R_body_parent: Mean rotation from the parent's axes to the body's.
    """
    if not np.isfinite(R_body_parent).all():
        return UNKNOWN_NOISE
    C = parent.rotation_covariance
    arm = constants.center_in_parent - parent.anchor
    if constants.pose_source == "parent":
        return BodyNoise(C, parent.position_variance, -arm)
    lever = geometry.hat(arm)
    variance = parent.position_variance + np.trace(lever @ C @ lever.T) / len(arm)
    center = constants.center_in_body
    if constants.kind != "hinge":
        return BodyNoise(np.full((3, 3), np.nan), variance, center)
    axis = R_body_parent @ constants.axis_in_parent
    axis = axis / np.linalg.norm(axis)
    arms = constants.points_in_body[:n_markers] - center
    inertia = np.sum(arms**2) * np.eye(3) - arms.T @ arms
    # The radii vary by the noise of marker and joint relative to each other.
    about = constants.radial_noise**2 / (axis @ inertia @ axis)
    projection = np.eye(3) - np.outer(axis, axis)
    across = projection @ R_body_parent
    C = across @ C @ across.T + constants.off_axis_rotation**2 * projection
    return BodyNoise(C + about * np.outer(axis, axis), variance, center)
