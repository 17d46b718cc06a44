"""Poses of single frames as they arrive."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from marey.errors import DataError
from marey.pose.gauss_newton.driver import HEAD, Follower, Names
from marey.pose.options import GaussNewtonOptions, options_of
from marey.skeleton import Skeleton

Array = np.ndarray

NO_SENSORS = np.zeros((0, 4, 4))


class PoseTracker:
    """A skeleton that follows frames one by one, each from those before it.

    What `solve_pose` does with "gauss_newton" for a whole take, for a stream: nothing
    of the future is used, so `smooth` does not apply, and outliers are told by the
    standard deviations given.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        labels: Sequence[str] = (),
        sensor_names: Sequence[str] = (),
        *,
        rate: float,
        **options: Any,
    ) -> None:
        """Make ready to follow.

        Args:
            skeleton: A skeleton with markers or sensors.
            labels: One label per marker of the stream.
            sensor_names: One name per sensor of the stream.
            rate: Frames per second.
            **options: Fields of `GaussNewtonOptions`.

        Raises:
            DataError: If the stream has none of the skeleton's markers and sensors.
            OptionError: If an option is not known or out of range.
        """
        if not 0.0 < rate < np.inf:
            raise DataError("rate", found=rate, needed="a positive number of hertz")
        names = Names(tuple(labels), tuple(labels), tuple(sensor_names))
        self._fit = Follower(
            skeleton, names, rate, options_of(GaussNewtonOptions, options)
        )
        n = len(self._fit.nodes.tree.parent)
        self._shape = (len(labels), len(sensor_names))
        self._q, self._root = np.empty((1, n, 4)), np.empty((1, 3))
        self._info = np.zeros((1, HEAD + n + 1))
        self._frame = np.zeros(1, dtype=np.int64)
        from marey.pose.gauss_newton.reacquire_kernel import (  # numba is slow
            ease_back,
            nothing_shown,
        )
        from marey.pose.gauss_newton.track_kernel import track

        self._track, self._ease_back = track, ease_back
        self._shown = nothing_shown(n)

    def update(
        self,
        points: Float[Array, "marker 3"],
        T_world_sensor: Float[Array, "sensor 4 4"] = NO_SENSORS,
    ) -> tuple[Float[Array, " 3"], Float[Array, "joint 4"]]:
        """Return the root's place, in metres, and R_parent_joint as quaternions.

        The root's rotation is that of the first joint. A frame in which nothing is seen
        gives the expected pose. A joint that comes back into sight goes smoothly to
        where it is, within a quarter of a second.

        Args:
            points: Positions of the stream's markers in metres, NaN where unseen.
            T_world_sensor: Poses of its sensors, NaN where unseen.
        """
        if (len(points), len(T_world_sensor)) != self._shape:
            raise DataError(
                "frame",
                found=f"{len(points)} markers, {len(T_world_sensor)} sensors",
                needed=f"{self._shape[0]} markers, {self._shape[1]} sensors",
            )
        fit, q = self._fit, self._q
        afresh = fit.afresh
        self._track(
            fit.nodes.tree,
            fit.targets,
            fit.work,
            np.array(points[None], dtype=float),
            np.array(T_world_sensor[None], dtype=float),
            self._frame,
            tuple(fit.state),
            fit.habits,
            (self._root, q),
            q,
            self._root,
            self._info,
        )
        known, shown = self._info[0, HEAD:], self._shown
        prior, rate = fit.habits.prior, fit.rate
        self._ease_back(
            fit.nodes.tree,
            fit.work,
            known,
            prior,
            afresh,
            rate,
            self._root[0],
            q[0],
            shown,
        )
        return shown.root.copy(), fit.nodes.rotations(shown.q[None])[0]

    def rest(self) -> None:
        """Forget where the figure is: the next frame finds it afresh."""
        self._fit.rest()
