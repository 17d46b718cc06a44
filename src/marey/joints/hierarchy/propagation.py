"""Poses and their noise, propagated from body to body along a tree."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from marey.bodies import Bodies
from marey.joints.hierarchy.root_to_leaf import (
    AxesMethod,
    BodyConstants,
    PosePath,
    Poses,
    estimate_child,
    pose_body,
)
from marey.joints.noise import PoseNoise, estimate_pose_noise
from marey.joints.sphere.fit import SphereEstimator
from marey.joints.stacked_takes import StackedTakes
from marey.numerics import geometry

Array = np.ndarray


class PosePropagation:
    """Poses of the bodies of some takes and their noise, as far as they are known.

    A body is estimated from a parent that has a pose, is posed itself, and may then be
    the parent of others.

    Args:
        takes: The same bodies in one or several takes.
    """

    stacked: StackedTakes
    """Markers and recorded poses of all takes."""

    T: Poses
    """World poses of the bodies so far; NaN for the others."""

    _recorded_noise: PoseNoise
    _noise: dict[int, PoseNoise]

    def __init__(self, takes: Sequence[Bodies]) -> None:
        self.stacked = StackedTakes(takes)
        self.T = np.full(self.stacked.T.shape, np.nan)
        self._recorded_noise = estimate_pose_noise(takes, noise=None, turn_noise=None)
        self._noise = {}

    def has_pose(self, body: int) -> bool:
        """Return whether a body was posed."""
        return body in self._noise

    def use_recorded_pose(self, body: int) -> None:
        """Pose a body as it was recorded."""
        self.T[:, body] = self.stacked.T[:, body]
        self._noise[body] = self._recorded_noise.select(body)

    def estimate_child(
        self, body: int, parent: int, axes: AxesMethod, estimator: SphereEstimator
    ) -> BodyConstants:
        """Return the constants of a body whose parent has a pose."""
        noise = self._marker_noise(body, parent)
        T_parent = self.T[:, parent]
        return estimate_child(
            self.stacked, body, parent, T_parent, axes, estimator, noise
        )

    def pose(self, constants: BodyConstants) -> None:
        """Pose a body by its constants, and propagate the noise of its parent to it."""
        body, parent = constants.body, constants.parent
        self.T[:, body] = pose_body(self.stacked, constants, self.T)
        if self.stacked.determined[body] or parent < 0:
            T_recorded = self.stacked.T[:, body]
            self._noise[body] = _noise_in_posed_axes(
                self._recorded_noise.select(body), self.T[:, body], T_recorded
            )
        else:
            n_markers = int(self.stacked.member[:, body].sum())
            R = mean_relative_rotation(self.T, body, parent)
            self._noise[body] = _noise_through_joint(
                constants, self._noise[parent], n_markers, R
            )

    def _marker_noise(self, body: int, parent: int) -> Float[Array, "3 3"] | None:
        """Return the covariance of a body's markers in the axes of its parent.

        It is in square metres, and None if the noise of the parent is not known.
        """
        noise: PoseNoise = self._noise[parent]
        recorded: PoseNoise = self._recorded_noise.select(body)
        if not np.isfinite(noise.rotation_covariance).all():
            return None
        both = PoseNoise(
            np.concatenate([noise.rotation_covariance, recorded.rotation_covariance]),
            np.concatenate([noise.position_variance, recorded.position_variance]),
            np.concatenate([noise.anchor, recorded.anchor]),
        )
        T_parent_world = geometry.inverse(self.T[:, parent])
        markers = geometry.apply(
            T_parent_world[:, None], self.stacked.markers_in_world(body)
        )
        moving = 1 if self.stacked.determined[body] else None
        return self.stacked.marker_noise_covariance(markers, both, 0, moving)


def mean_relative_rotation(T: Poses, body: int, parent: int) -> Float[Array, "3 3"]:
    """Return the mean of R_body_parent over the frames that show both; NaN if none."""
    R = np.swapaxes(T[:, body, :3, :3], 1, 2) @ T[:, parent, :3, :3]
    R = R[np.isfinite(R).all(axis=(1, 2))]
    return np.asarray(R.mean(axis=0)) if len(R) else np.full((3, 3), np.nan)


def _noise_in_posed_axes(
    noise: PoseNoise, T_world_posed: PosePath, T_world_recorded: PosePath
) -> PoseNoise:
    """Return the noise of a recorded body in the axes that it was posed with."""
    T = geometry.inverse(T_world_posed) @ T_world_recorded
    T = T[np.isfinite(T).all(axis=(1, 2))]
    if not len(T):
        return _unknown_noise()
    R = T[:, :3, :3].mean(axis=0)
    anchor = geometry.apply(T, noise.anchor[0]).mean(axis=0)
    return _single_noise(
        R @ noise.rotation_covariance[0] @ R.T, noise.position_variance[0], anchor
    )


def _noise_through_joint(
    constants: BodyConstants,
    parent: PoseNoise,
    n_markers: int,
    R_body_parent: Float[Array, "3 3"],
) -> PoseNoise:
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
        parent: Noise of its parent, alone.
        n_markers: How many of the points of the body are markers.
        R_body_parent: Mean rotation from the parent's axes to the body's.
    """
    if not np.isfinite(R_body_parent).all():
        return _unknown_noise()
    C = parent.rotation_covariance[0]
    arm = constants.center_in_parent - parent.anchor[0]
    if constants.pose_source == "parent":
        return _single_noise(C, parent.position_variance[0], -arm)
    lever = geometry.hat(arm)
    variance = parent.position_variance[0] + np.trace(lever @ C @ lever.T) / 3.0
    center = constants.center_in_body
    if constants.kind != "hinge":
        return _single_noise(np.full((3, 3), np.nan), variance, center)
    axis = R_body_parent @ constants.axis_in_parent
    axis = axis / np.linalg.norm(axis)
    arms = constants.points_in_body[:n_markers] - center
    inertia = np.sum(arms**2) * np.eye(3) - arms.T @ arms
    # The radii vary by the noise of marker and joint relative to each other.
    about = constants.radial_noise**2 / (axis @ inertia @ axis)
    projection = np.eye(3) - np.outer(axis, axis)
    across = projection @ R_body_parent
    C = across @ C @ across.T + constants.off_axis_rotation**2 * projection
    return _single_noise(C + about * np.outer(axis, axis), variance, center)


def _unknown_noise() -> PoseNoise:
    return _single_noise(np.full((3, 3), np.nan), np.nan, np.full(3, np.nan))


def _single_noise(covariance: Array, variance: float, anchor: Array) -> PoseNoise:
    """Return the noise of a single body."""
    return PoseNoise(covariance[None], np.array([variance], dtype=float), anchor[None])
