"""Bodies and markers of several takes, stacked along the frames."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from marey.bodies import Bodies
from marey.joints.noise import BodyNoise
from marey.joints.sphere.moments import SphereMoments
from marey.numerics import Array, Float, geometry
from marey.take import Take

ROUNDING_SHARE = 1e-12
"""Rounding error of positions over the largest coordinate of the recording. Higher
treats more of the motion as rounding. Chosen by hand."""


class StackedTakes:
    """All frames of all takes: poses of the bodies and positions of their markers.

    Bodies have the same axes in all takes. Markers of different takes are matched by
    their labels; a marker that a take lacks is NaN there. A body without
    markers, a 6-DoF sensor, has its origin as its only marker.
    """

    def __init__(self, takes: Sequence[Bodies]) -> None:
        takes = _with_common_columns(takes)
        self.T = np.concatenate([take.T_world_body for take in takes])
        self.T_body_world = geometry.inverse(self.T)
        self.determined = np.all([take.determined for take in takes], axis=0)
        self.points = np.concatenate([take.take.points for take in takes])
        first = takes[0].marker_body[:, None] == np.arange(len(takes[0].names))
        self.member = takes[0].shared | first
        """Which markers belong to which bodies; on a joint, to several."""
        self._extent = np.abs(np.nan_to_num(self.T[..., :3, 3])).max(initial=0.0)

    def markers_in_body(self, body: int, moving: int) -> Float[Array, "frame marker 3"]:
        """Return the markers of the body `moving` in the axes of `body`, in metres.

        Markers that belong to both bodies are left out. A sensor has its origin.
        """
        from marey.joints.stacked_takes_kernel import markers_in_body  # numba is slow

        points, on_body = self.points, self.member[:, moving] & ~self.member[:, body]
        if not self.member[:, moving].any():
            points, on_body = self.T[:, moving, None, :3, 3].copy(), np.ones(1, bool)
        columns = np.flatnonzero(on_body)
        return np.asarray(markers_in_body(self.T_body_world, body, points, columns))

    def markers_in_world(
        self, body: int, *, without: int | None = None
    ) -> Float[Array, "frame marker 3"]:
        """Return the markers of a body in the world, in metres; of a sensor its origin.

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

    def relative_poses(self, a: int, b: int) -> Float[Array, "frame 4 4"]:
        """Return the poses of b in a; NaN where one of them has none."""
        from marey.joints.stacked_takes_kernel import relative_poses  # numba is slow

        return np.asarray(relative_poses(self.T_body_world, self.T, a, b))

    def marker_noise_covariance(
        self, moments: SphereMoments, axes: BodyNoise, moving: BodyNoise | None
    ) -> Float[Array, "3 3"]:
        r"""Return the covariance of the noise of markers in the axes of a body.

        The mean over all positions, in square metres, of the noise of the markers and
        of the axes. A marker at the arm y from the body's anchor has the covariance

        .. math:: [y]_\times C [y]_\times^T + \sigma^2 I

        from the rotation covariance C and the position variances of both bodies.

        Args:
            moments: Moments of the markers in the axes of a body.
            axes: Noise of that body.
            moving: Noise of the body that carries the markers; None if it has no axes.
                Its markers then count as exact: their noise is unknown, and an estimate
                from their fast motion would be too large.
        """
        weight = moments.count / max(moments.count.sum(), 1.0)
        arm = moments.mean - axes.anchor
        second = np.tensordot(weight, moments.second, axes=1)
        second += (weight * arm.T) @ arm
        C = axes.rotation_covariance
        # The mean of [y] C [y]^T over all arms y, expanded in second moments.
        size, both = np.trace(second), second @ C
        from_rotation = (
            (np.trace(C) * size - np.trace(both)) * np.eye(3) + both + both.T
        )
        from_rotation -= size * C + np.trace(C) * second
        variance = axes.position_variance + (ROUNDING_SHARE * self._extent) ** 2
        if moving is not None:
            # The variance of one marker is that of the centroid times their number.
            variance += moving.position_variance * len(moments.count)
        return np.asarray(from_rotation + variance * np.eye(3))


def with_common_markers(takes: Sequence[Bodies]) -> tuple[Bodies, ...]:
    """Return the takes with the markers of all takes, and the axes of the first.

    A marker that a take lacks is NaN there. It belongs to the body, and has the noise,
    that it has in the first take which contains it.
    """
    takes = (takes[0], *(take.align_axes(takes[0]) for take in takes[1:]))
    return _with_common_columns(takes)


def _with_common_columns(takes: Sequence[Bodies]) -> tuple[Bodies, ...]:
    """Return the takes with the markers of all takes, in the same order."""
    if all(take.marker_names == takes[0].marker_names for take in takes):
        return tuple(takes)
    names = dict.fromkeys(name for take in takes for name in take.marker_names)
    column = {name: i for i, name in enumerate(names)}
    columns = [[column[name] for name in take.marker_names] for take in takes]
    shared = np.zeros((len(column), len(takes[0].names)), dtype=bool)
    body = np.full(len(column), -1)
    noise = np.full(len(column), np.nan)
    # The first take comes last, and so overwrites the others.
    for take, own in zip(reversed(takes), reversed(columns), strict=True):
        shared[own] |= take.shared
        body[own] = np.where(take.marker_body >= 0, take.marker_body, body[own])
        if len(take.marker_noise):
            noise[own] = take.marker_noise
    labels = tuple(label for label, _ in column)
    return tuple(
        replace(
            _move_columns(take, own, labels),
            shared=shared,
            marker_body=body,
            marker_noise=noise if np.isfinite(noise).any() else np.zeros(0),
        )
        for take, own in zip(takes, columns, strict=True)
    )


def _move_columns(
    bodies: Bodies, columns: Sequence[int], labels: tuple[str, ...]
) -> Bodies:
    """Return a take with its markers in other columns; those it lacks are NaN.

    Args:
        bodies: The bodies of the take.
        columns: The new column of each marker.
        labels: The labels of all columns.
    """
    take, n = bodies.take, len(labels)
    points = np.full((len(take.points), n, 3), np.nan)
    offset, confidence = np.full((n, 3), np.nan), np.zeros(n)
    points[:, columns] = take.points
    offset[columns] = bodies.marker_offset
    confidence[columns] = bodies.marker_confidence
    moved = Take(
        rate=take.rate,
        points=points,
        labels=labels,
        T_world_sensor=take.T_world_sensor,
        sensor_names=take.sensor_names,
    )
    return replace(
        bodies, take=moved, marker_offset=offset, marker_confidence=confidence
    )
