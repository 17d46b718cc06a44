"""Bodies and markers of several takes as one row of frames."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from marey.bodies import Bodies, MarkerName
from marey.joints.noise import PoseNoise
from marey.numerics import geometry

Array = np.ndarray

# Share of the size of the recorded space that is lost to rounding.
ROUNDING = 1e-12


class Crowd:
    """All frames of all takes: poses of the bodies and paths of their markers.

    Bodies have the same axes in all takes. Markers are known by their labels: what a
    take does not have is NaN there.
    A body without markers, a 6-DoF sensor, has its origin as its one marker.
    """

    def __init__(self, takes: Sequence[Bodies]) -> None:
        self.T = np.concatenate([take.T_world_body for take in takes])
        self.determined = np.all([take.determined for take in takes], axis=0)
        names = dict.fromkeys(name for take in takes for name in take.marker_names)
        column = {name: i for i, name in enumerate(names)}
        points = [spread_out(take, column) for take in takes]
        self.points = np.concatenate(points)
        self.member = np.zeros((len(column), len(takes[0].names)), dtype=bool)
        for take in takes:
            rows = [column[name] for name in take.marker_names]
            self.member[rows] |= membership(take)
        self._far = np.abs(np.nan_to_num(self.T[..., :3, 3])).max(initial=0.0)

    def seen_from(self, body: int, moving: int) -> Float[Array, "frame marker 3"]:
        """Return the markers of one body in the axes of another, in metres.

        Markers that both bodies share are left out.
        """
        back = geometry.inverse(self.T[:, body])
        return geometry.apply(back[:, None], self.markers(moving, without=body))

    def markers(
        self, body: int, *, without: int | None = None
    ) -> Float[Array, "frame marker 3"]:
        """Return the markers of a body in the world; a sensor's is its origin."""
        mine = self.member[:, body]
        if not mine.any():
            return self.T[:, body, None, :3, 3]
        if without is not None:
            mine = mine & ~self.member[:, without]
        return self.points[:, mine]

    def noise(
        self,
        points: Float[Array, "frame marker 3"],
        poses: PoseNoise,
        body: int,
        moving: int | None,
    ) -> Float[Array, "3 3"]:
        """Return the covariance of the noise of markers in another body's axes.

        The mean over all positions, in square metres: noise of the markers and of the
        axes, whose turning counts for more the further off the markers are. Markers of
        a body without axes of its own (`moving` None) count as free of noise: nothing
        is known of it beforehand, for their quick motion would pass for noise.
        """
        arm = points[np.isfinite(points).all(axis=-1)] - poses.anchor[body]
        second = arm.T @ arm / max(len(arm), 1)
        turn = poses.turn[body]
        # The mean of [arm] turn [arm]^T, written out in second moments.
        size, both = np.trace(second), second @ turn
        tilt = (np.trace(turn) * size - np.trace(both)) * np.eye(3) + both + both.T
        tilt -= size * turn + np.trace(turn) * second
        shift = poses.shift[body]
        if moving is not None:
            shift = shift + poses.shift[moving] * points.shape[1]
        return np.asarray(tilt + (shift + (ROUNDING * self._far) ** 2) * np.eye(3))


def membership(bodies: Bodies) -> Bool[Array, "marker body"]:
    """Return which markers belong to which bodies, joint-line markers to several."""
    own = bodies.marker_body[:, None] == np.arange(len(bodies.names))
    return np.asarray(bodies.shared | own)


def spread_out(
    bodies: Bodies, column: dict[MarkerName, int]
) -> Float[Array, "frame marker 3"]:
    """Return the markers of a take in given columns; NaN for those it lacks."""
    points = np.full((len(bodies.T_world_body), len(column), 3), np.nan)
    points[:, [column[name] for name in bodies.marker_names]] = bodies.take.points
    return points
