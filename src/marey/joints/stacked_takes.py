"""Bodies and markers of several takes, stacked along the frames."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from marey.bodies import Bodies, MarkerName
from marey.joints.noise import PoseNoise
from marey.numerics import geometry

Array = np.ndarray

ROUNDING_SHARE = 1e-12
"""Rounding error of positions over the largest coordinate of the recording. Higher
treats more of the motion as rounding. Chosen by hand."""


class StackedTakes:
    """All frames of all takes: poses of the bodies and positions of their markers.

    Bodies have the same axes in all takes. Markers of different takes are matched by
    their labels; a marker that a take does not have is NaN there. A body without
    markers, a 6-DoF sensor, has its origin as its only marker.
    """

    def __init__(self, takes: Sequence[Bodies]) -> None:
        self.T = np.concatenate([take.T_world_body for take in takes])
        self.determined = np.all([take.determined for take in takes], axis=0)
        names = dict.fromkeys(name for take in takes for name in take.marker_names)
        column = {name: i for i, name in enumerate(names)}
        self.points = np.concatenate(
            [points_in_columns(take, column) for take in takes]
        )
        self.member = np.zeros((len(column), len(takes[0].names)), dtype=bool)
        for take in takes:
            rows = [column[name] for name in take.marker_names]
            self.member[rows] |= marker_membership(take)
        self._extent = np.abs(np.nan_to_num(self.T[..., :3, 3])).max(initial=0.0)

    def markers_in_body(self, body: int, moving: int) -> Float[Array, "frame marker 3"]:
        """Return the markers of the body `moving` in the axes of `body`, in metres.

        Markers that belong to both bodies are left out.
        """
        T_body_world = geometry.inverse(self.T[:, body])
        markers = self.markers_in_world(moving, without=body)
        return geometry.apply(T_body_world[:, None], markers)

    def markers_in_world(
        self, body: int, *, without: int | None = None
    ) -> Float[Array, "frame marker 3"]:
        """Return the markers of a body in the world; of a sensor its origin.

        Args:
            body: The body.
            without: Another body whose markers are left out.
        """
        on_body = self.member[:, body]
        if not on_body.any():
            return self.T[:, body, None, :3, 3]
        if without is not None:
            on_body = on_body & ~self.member[:, without]
        return self.points[:, on_body]

    def marker_noise_covariance(
        self,
        points: Float[Array, "frame marker 3"],
        poses: PoseNoise,
        body: int,
        moving: int | None,
    ) -> Float[Array, "3 3"]:
        r"""Return the covariance of the noise of markers in the axes of a body.

        The mean over all positions, in square metres, of the noise of the markers and
        of the axes. A marker at the arm y from the body's anchor has the covariance

        .. math:: [y]_\times C [y]_\times^T + \sigma^2 I

        from the rotation covariance C and the position variances of both bodies.

        Args:
            points: The markers in the axes of `body`.
            poses: Noise of the poses of all bodies.
            body: The body in whose axes the markers are given.
            moving: The body that carries the markers; None if it has no axes. Its
                markers then count as exact: their noise is unknown, and an estimate
                from their fast motion would be too large.
        """
        arm = points[np.isfinite(points).all(axis=-1)] - poses.anchor[body]
        second = arm.T @ arm / max(len(arm), 1)
        C = poses.rotation_covariance[body]
        # The mean of [y] C [y]^T over all arms y, expanded in second moments.
        size, both = np.trace(second), second @ C
        from_rotation = (
            (np.trace(C) * size - np.trace(both)) * np.eye(3) + both + both.T
        )
        from_rotation -= size * C + np.trace(C) * second
        variance = poses.position_variance[body]
        if moving is not None:
            # The variance of one marker is that of the centroid times their number.
            variance = variance + poses.position_variance[moving] * points.shape[1]
        rounding = (ROUNDING_SHARE * self._extent) ** 2
        return np.asarray(from_rotation + (variance + rounding) * np.eye(3))


def marker_membership(bodies: Bodies) -> Bool[Array, "marker body"]:
    """Return which markers belong to which bodies; on a joint, to several."""
    first = bodies.marker_body[:, None] == np.arange(len(bodies.names))
    return np.asarray(bodies.shared | first)


def points_in_columns(
    bodies: Bodies, column: dict[MarkerName, int]
) -> Float[Array, "frame marker 3"]:
    """Return the markers of a take in given columns; NaN for those it lacks."""
    points = np.full((len(bodies.T_world_body), len(column), 3), np.nan)
    points[:, [column[name] for name in bodies.marker_names]] = bodies.take.points
    return points
