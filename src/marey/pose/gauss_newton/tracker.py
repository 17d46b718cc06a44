"""Poses of single frames as they arrive."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from marey.articulated.targets import NO_SENSORS, TargetNames
from marey.errors import DataError
from marey.numerics import Array, Float
from marey.numerics.robust import normal_length_quantile
from marey.numerics.thresholds import OUTLIER_SD, VELOCITY_TIME_S
from marey.options import options_from
from marey.pose.gauss_newton.fit import GaussNewtonSolver
from marey.pose.options import UNSEEN_S, GaussNewtonOptions
from marey.pose.trace import PoseTrace
from marey.skeleton import Skeleton

MEDIAN_LENGTH = normal_length_quantile(0.5)
"""Median length of a residual, in standard deviations along one axis."""


class PoseTracker:
    """A skeleton that is tracked through a stream, frame by frame.

    It does for a stream what `solve_pose` with "gauss_newton" does for a whole take.
    Future frames are not used, so `smooth` does not apply. With `adapt`, the scales of
    outliers follow the residuals of the frames that have come, one scale per body: by
    a factor of e in `VELOCITY_TIME_S` at most, and never below the standard deviation
    of the options. As in a whole take, none counts that is larger than `OUTLIER_SD`
    times their median.
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
        """Prepare the tables.

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
        # numba is slow to import
        from marey.pose.gauss_newton.reacquire_kernel import (
            fade_offsets_after,
            make_shown_pose,
        )
        from marey.pose.gauss_newton.residual_scale_kernel import update_scales

        if not 0.0 < rate < np.inf:
            raise DataError("rate", found=rate, needed="a positive number of hertz")
        self._names = TargetNames.of_stream(labels, sensor_names)
        chosen = options_from(GaussNewtonOptions, options)
        self._fit = GaussNewtonSolver(skeleton, self._names, rate, chosen)
        n = len(self._fit.nodes.tree.parent)
        self._trace = PoseTrace.empty(1, n)
        self._frame = np.zeros(1, dtype=np.int64)
        self._fade_offsets, self._shown = fade_offsets_after, make_shown_pose(n)
        self._update_scales = update_scales
        self._scale_settings = self._choose_scale_settings(rate)
        self._scale_m = np.full(n, self._fit.options.marker_sd)

    def _choose_scale_settings(self, rate: float) -> tuple[float, ...]:
        """Return the numbers of `ScaleSettings`."""
        options = self._fit.options
        outlier = options.outlier if options.adapt else 0.0
        gain = 1.0 / (rate * VELOCITY_TIME_S)
        return MEDIAN_LENGTH, gain, options.marker_sd, outlier, OUTLIER_SD

    def update(
        self,
        points: Float[Array, "marker 3"],
        T_world_sensor: Float[Array, "sensor 4 4"] = NO_SENSORS,
    ) -> tuple[Float[Array, " 3"], Float[Array, "joint 4"]]:
        """Return the position of the root (m) and R_parent_joint as quaternions.

        The rotation of the root is that of the first joint. A frame without any target
        gives the predicted pose. A joint that reappears moves smoothly to its measured
        rotation, within a quarter of a second.

        Args:
            points: Positions of the stream's markers in metres, NaN where unseen.
            T_world_sensor: Poses of its sensors, NaN where unseen.
        """
        self._solve(points, T_world_sensor)
        shown = self._shown
        return shown.root.copy(), self._fit.nodes.joint_rotations(shown.q[None])[0]

    def update_poses(
        self,
        points: Float[Array, "marker 3"],
        T_world_sensor: Float[Array, "sensor 4 4"] = NO_SENSORS,
        *,
        n_frames: int = 1,
    ) -> Float[Array, "joint 4 4"]:
        """Return T_world_joint of every joint in metres; see `update`.

        Args:
            points: Positions of the stream's markers in metres, NaN where unseen.
            T_world_sensor: Poses of its sensors, NaN where unseen.
            n_frames: Frames since the last one; more than 1 if some were lost.
        """
        self._solve(points, T_world_sensor, n_frames)
        return self._fit.nodes.joint_poses(self._shown.root, self._shown.q)

    def _solve(
        self,
        points: Float[Array, "marker 3"],
        T_world_sensor: Float[Array, "sensor 4 4"],
        n_frames: int = 1,
    ) -> None:
        """Track the next frame, solved from scratch if it does not fit after a gap.

        Limbs are lost more easily where frames are, and a wait before the next attempt
        would last longer.
        """
        self._names.check_frame(points, T_world_sensor)
        fit, trace, shown = self._fit, self._trace, self._shown
        restarted = fit.needs_initial_pose
        recording = (
            np.array(points[None], dtype=float),
            np.array(T_world_sensor[None], dtype=float),
        )
        is_after_gap = n_frames > 1
        if is_after_gap:
            fit.stretch_time(float(n_frames))
            fit.state.restart_wait[:] = 0
        fit.run(recording, self._frame, trace)
        pose = trace.root, trace.q
        self._update_scales(
            fit.problem, recording[0], pose, self._scale_settings, self._scale_m
        )
        is_moved = self._fade_offsets(
            trace.information[0],
            fit.settings.prior,
            restarted,
            (fit.rate, UNSEEN_S * fit.rate),
            (trace.root[0], trace.q[0]),
            shown,
        )
        if is_after_gap:
            fit.stretch_time(1.0 / n_frames)
        if is_moved:
            fit.clamp_to_limits(shown.q[None])

    @property
    def residual_scale_m(self) -> Float[Array, " joint"]:
        """Usual residual of the markers on each joint's bone, in metres along one axis.

        Over the frames that have come of late; at least the standard deviation of the
        options, which is also that of a bone without markers.
        """
        return np.asarray(self._scale_m[self._fit.nodes.node_of_joint])

    def reset(self) -> None:
        """Forget the pose: the next frame is solved from scratch.

        The scales of outliers stay, as the skeleton does.
        """
        self._fit.reset()
