"""The Gauss-Newton solver of a skeleton: its tables, state and passes over a take."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.articulated.tables import IDENTITY_QUATERNION, Nodes, make_nodes
from marey.articulated.targets import (
    TargetMatches,
    frame_order,
    make_targets,
    marker_residuals,
    match_targets,
    target_weights,
    visible_frames,
)
from marey.numerics import geometry
from marey.pose.gauss_newton.smoothing import smooth_poses
from marey.pose.options import MAX_RMS_RESIDUAL_M, GaussNewtonOptions, PoseOptions
from marey.pose.reference_prior import (
    as_c_float64,
    blend_reference_across_gaps,
    frames_worse_than,
    refine_with_reference,
)
from marey.pose.trace import N_FRAME_STATISTICS as N_FRAME_STATISTICS
from marey.pose.trace import PoseTrace as PoseTrace
from marey.skeleton import Skeleton
from marey.take import Take

if TYPE_CHECKING:
    from marey.articulated.targets_kernel import Targets
    from marey.pose.gauss_newton.track_kernel import TrackSettings

Array = np.ndarray

MAX_SCALE_FRAMES = 200
"""Largest number of frames from which the scale of each marker is estimated. Higher is
more precise and slower. Chosen by hand."""

VELOCITY_TIME_S = 0.05
"""Time constant of the velocity filter, in seconds: of the decay of unseen joints and
of the gain of seen ones. Higher predicts more smoothly and reacts later. Chosen by
hand."""

MAX_UNSEEN_S = 0.25
"""Time without any target, in seconds, after which the pose is found from scratch.
Higher extrapolates longer. Chosen by hand."""

MEDIAN_DISTANCE = 1.538
"""Median length of a vector of three independent standard normal components: the square
root of the median of chi-square with 3 degrees of freedom."""

MAX_SCALE_RATIO = 3.0
"""Largest scale of a marker, as a multiple of the median of all markers. Beyond it a
marker is wrong, not loose. Higher lets such markers count. Chosen by hand."""

BACKWARD_FRAMES = 50
"""Number of frames at the start of a take that are tracked backwards as well. Higher
corrects longer wrong starts. Chosen by hand."""

MAX_RETRY_STEPS = 100
"""Largest number of steps of every attempt after the first, in each frame. Chosen by
hand."""

MIN_PRIOR = 1e-9
"""Information of a prior that is to have no weight, in 1 / rad^2: the kernel divides by
it."""


class TargetNames(NamedTuple):
    """Labels of the markers and names of the sensors of a recording."""

    labels: Sequence[str]
    full_labels: Sequence[str]
    sensors: Sequence[str]

    @classmethod
    def of(cls, take: Take) -> "TargetNames":
        """Return the names of a take."""
        return cls(take.labels, take.full_labels, take.sensor_names)


def prepare_targets(
    skeleton: Skeleton, names: TargetNames, options: PoseOptions
) -> tuple[Nodes, TargetMatches, "Targets"]:
    """Return the nodes of a skeleton, the matching targets and their table.

    Weights are one over variances, times those that the options give.

    Raises:
        DataError: If the recording has none of the skeleton's markers and sensors.
    """
    nodes = make_nodes(skeleton, limits=options.limits)
    matches = match_targets(skeleton, nodes, *names)
    marker, sensor = target_weights(options.weights, skeleton, matches)
    weight = marker / options.marker_sd**2
    sensor_weight = sensor[:, None] / sensor_sds(options) ** 2
    return nodes, matches, make_targets(skeleton, nodes, matches, weight, sensor_weight)


def sensor_sds(options: PoseOptions) -> Float[Array, " 2"]:
    """Return the standard deviations of a sensor: position (m) and rotation (rad)."""
    return np.array([options.sensor_sd, options.rotation_sd])


class GaussNewtonSolver:
    """A skeleton with its targets, and its pose and velocity at the last frame."""

    def __init__(
        self,
        skeleton: Skeleton,
        names: TargetNames,
        rate: float,
        options: GaussNewtonOptions,
    ) -> None:
        # numba is slow to import
        from marey.articulated.kinematics_kernel import make_workspace
        from marey.pose.gauss_newton.track_kernel import TrackSettings, track_frames

        self.skeleton, self.options = skeleton, options
        self.nodes, self.matches, self.targets = prepare_targets(
            skeleton, names, options
        )
        n_markers, n_sensors = len(self.matches.marker), len(self.matches.sensor)
        self._set_scales(np.full(n_markers, options.marker_sd))
        self.work = make_workspace(self.nodes.tree, n_markers, n_sensors)
        self.rate, self._track_frames = rate, track_frames
        gain = min(1.0 / (rate * VELOCITY_TIME_S), 1.0)
        self.settings = TrackSettings(
            prior=np.full(len(self.nodes.tree.parent) + 1, rate / options.drift**2),
            robust=options.outlier > 0.0,
            max_steps=options.steps,
            max_retry_steps=max(MAX_RETRY_STEPS, options.steps),
            tolerance=options.tolerance,
            speed_kept=1.0 - gain,
            speed_gain=gain,
            max_rms_residual=MAX_RMS_RESIDUAL_M,
            max_unseen_frames=int(np.ceil(MAX_UNSEEN_S * rate)),
            guided=False,
        )
        self.reset()

    def reset(self) -> None:
        """Forget the pose: the next frame is solved from scratch."""
        from marey.pose.gauss_newton.track_kernel import TrackState  # numba is slow

        n = len(self.nodes.tree.parent)
        self.state = TrackState(
            root=np.zeros(3),
            q=np.tile(IDENTITY_QUATERNION, (n, 1)),
            root_velocity=np.zeros(3),
            angular_velocity=np.zeros((n, 3)),
            frames_unseen=np.array([-1]),
            restart_wait=np.array([0]),
        )

    @property
    def needs_initial_pose(self) -> bool:
        """Whether the next frame is solved from scratch, not from the last pose."""
        return not 0 <= self.state.frames_unseen[0] <= self.settings.max_unseen_frames

    def _set_scales(self, scale: Float[Array, " marker"]) -> None:
        """Set the scales of the Geman-McClure loss to `outlier` times these, in m."""
        if self.options.outlier == 0.0:
            return
        softness = 1.0 / (self.options.outlier * sensor_sds(self.options)) ** 2
        self.targets = self.targets._replace(
            softness=1.0 / (self.options.outlier * scale) ** 2,
            sensor_softness=np.tile(softness, (len(self.matches.sensor), 1)),
        )

    def frame_order(self, points: Array, sensors: Array) -> Int[Array, " frame"]:
        """Return the order in which frames are visited; see `targets.frame_order`."""
        return frame_order(self.matches, points, sensors)

    def estimate_scales(self, points: Array, sensors: Array) -> None:
        """Estimate the scale of every marker's residual on a sample of the frames.

        First from a least-squares fit: where bones do not fit, whole limbs have large
        residuals, and would be dropped as outliers by the scale of markers that fit.
        """
        if self.options.outlier == 0.0:
            return
        visible = visible_frames(self.matches, points, sensors)
        count = min(MAX_SCALE_FRAMES, len(visible))
        sample = visible[np.linspace(0, len(visible) - 1, count).astype(int)]
        points, sensors = points[sample], sensors[sample]
        order, settings = self.frame_order(points, sensors), self.settings
        for robust in (False, True):
            self.settings = settings._replace(robust=robust)
            if not robust:
                self._set_scales(np.full(len(self.matches.marker), np.inf))
            trace = self.track(points, sensors, order)
            self.reset()
            self._set_scales(self._marker_scales(self.marker_residuals(points, trace)))
        self.settings = settings

    def _marker_scales(
        self, residual_m: Float[Array, "frame marker"]
    ) -> Float[Array, " marker"]:
        """Return the scale of every marker's residual along one axis, in metres.

        From the median, which outliers hardly change; at least `marker_sd`.
        """
        seen = np.isfinite(residual_m).any(axis=0)
        scale = np.full(residual_m.shape[1], self.options.marker_sd)
        if seen.any():
            usual = np.nanmedian(residual_m[:, seen], axis=0) / MEDIAN_DISTANCE
            usual = np.minimum(usual, MAX_SCALE_RATIO * np.median(usual))
            scale[seen] = np.maximum(usual, self.options.marker_sd)
        return scale

    def solve_take(self, points: Array, sensors: Array) -> PoseTrace:
        """Return the poses of all frames of a take."""
        order = self.frame_order(points, sensors)
        if self.options.adapt:
            self.estimate_scales(points, sensors)
        trace = self.track(points, sensors, order)
        if self.options.outlier == 0.0:
            return trace
        return self._correct_start(points, sensors, trace, int(order[0]))

    def _correct_start(
        self, points: Array, sensors: Array, trace: PoseTrace, first: int
    ) -> PoseTrace:
        """Return the trace with its first frames tracked backwards, where better.

        The first frame is solved from scratch, and outliers may mislead it.
        """
        last = min(first + BACKWARD_FRAMES, len(points) - 1)
        self.reset()
        backward = slice(last, None, -1)
        again = self.track(
            as_c_float64(points[backward]),
            as_c_float64(sensors[backward]),
            np.arange(last + 1),
        )
        again = PoseTrace(again.q[::-1], again.root[::-1], again.info[::-1])
        worse = frames_worse_than(trace.info[: last + 1, 0], again.info[:, 0])
        corrected = trace.copy()
        corrected.replace_frames(worse, again)
        return PoseTrace(
            geometry.quat_continuous(corrected.q), corrected.root, corrected.info
        )

    def track(
        self, points: Array, sensors: Array, order: Int[Array, " frame"]
    ) -> PoseTrace:
        """Return the poses of frames visited in this order, forward, then backward."""
        n = len(self.nodes.tree.parent)
        trace = PoseTrace.empty(len(points), n, N_FRAME_STATISTICS + n + 1)
        n_forward = len(order) - int(order[0])
        for part in (order[:n_forward], order[n_forward:]):
            self.run(points, sensors, part, trace)
            self._stop_at(trace, int(order[0]))
        return PoseTrace(geometry.quat_continuous(trace.q), trace.root, trace.info)

    def _stop_at(self, trace: PoseTrace, frame: int) -> None:
        """Take the pose of a frame, at zero velocity, to track backwards from there."""
        self.state.root[:], self.state.q[:] = trace.root[frame], trace.q[frame]
        self.state.root_velocity[:], self.state.angular_velocity[:] = 0.0, 0.0

    def run(
        self,
        points: Array,
        sensors: Array,
        order: Int[Array, " some"],
        trace: PoseTrace,
        settings: "TrackSettings | None" = None,
        paths: tuple[Array, Array] | None = None,
    ) -> None:
        """Solve frames of a trace in this order, in place; see `track_frames`."""
        self._track_frames(
            (self.nodes.tree, self.targets, self.work),
            (points, sensors),
            order,
            tuple(self.state),
            settings or self.settings,
            paths or (trace.root, trace.q),
            (trace.root, trace.q, trace.info),
        )

    def refine_with_reference(
        self,
        points: Array,
        sensors: Array,
        trace: PoseTrace,
        q: Float[Array, "frame node 4"],
        prior: Float[Array, " node"],
    ) -> PoseTrace:
        """Return poses that start at the rotations of a reference and are drawn to it.

        Args:
            points: Markers of the take, in metres.
            sensors: Sensors of the take.
            trace: The poses without the reference.
            q: Rotations of the reference.
            prior: Their information, in 1 / rad^2; 0 for none.
        """
        information = np.maximum(np.concatenate([[0.0], prior]), MIN_PRIOR)
        guided = self.settings._replace(guided=True, prior=information)

        def run(frames: Int[Array, " some"], out: PoseTrace) -> None:
            self.run(points, sensors, frames, out, guided, (trace.root, q))
            self.reset()

        best, _ = refine_with_reference(run, trace, q)
        blended = blend_reference_across_gaps(
            self.nodes, self.targets, points, sensors, best.q, q
        )
        return PoseTrace(blended, best.root, best.info)

    def smooth(self, points: Array, sensors: Array, trace: PoseTrace) -> PoseTrace:
        """Return the poses drawn towards smooth paths; see `smooth_poses`."""
        every, smooth = np.arange(len(points)), trace.copy()

        def draw(paths: tuple[Array, Array], prior: Float[Array, " block"]) -> None:
            guided = self.settings._replace(guided=True, prior=prior)
            self.run(points, sensors, every, smooth, guided, paths)
            smooth.q[:] = geometry.quat_continuous(smooth.q)

        step_sd = self.options.smooth / self.rate**2
        smooth_poses(draw, smooth, trace.information, self.settings.prior, step_sd)
        smooth.information[:] = trace.information
        return smooth

    def at_limits(self, trace: PoseTrace) -> Bool[Array, "frame node"]:
        """Return whether any angle of a node is at its limit."""
        # numba is slow to import
        from marey.articulated.limits_kernel import mark_reached_limits

        reached = np.zeros(trace.q.shape[:2], dtype=bool)
        mark_reached_limits(self.nodes.tree, self.work, trace.q.copy(), reached)
        return reached

    def marker_residuals(
        self, points: Array, trace: PoseTrace
    ) -> Float[Array, "frame marker"]:
        """Return the distance of every marker from its model position, in metres.

        NaN where the marker is not seen.
        """
        return marker_residuals(
            self.targets, self.nodes.tree, points, trace.root, trace.q
        )
