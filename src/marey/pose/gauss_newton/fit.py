"""Poses from markers and sensors: inverse kinematics by Gauss-Newton on the tree."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from marey.articulated.tables import IDENTITY_QUATERNION
from marey.articulated.targets import (
    Recording,
    TargetNames,
    as_c_float64,
    count_visible,
    recording_of,
    split_order,
)
from marey.motion import Motion
from marey.numerics import Array, Bool, Float, Int
from marey.numerics.robust import column_medians, normal_length_quantile
from marey.numerics.thresholds import (
    OUTLIER_SD,
    SAMPLE_FRAMES,
    VELOCITY_TIME_S,
)
from marey.options import options_from
from marey.pose.findings import pose_findings
from marey.pose.gauss_newton.directions import solve_both_ways, track_both_ways
from marey.pose.gauss_newton.smoothing import smooth_poses
from marey.pose.options import (
    MAX_RMS_RESIDUAL_M,
    MIN_PRIOR,
    UNSEEN_S,
    GaussNewtonOptions,
)
from marey.pose.solver import PoseSolver, frames_worse_than
from marey.pose.trace import PoseTrace
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.take import Take

if TYPE_CHECKING:
    from marey.pose.gauss_newton.track_kernel import TrackSettings, TrackState


MAX_ITERATIONS_RETRY = 100
"""Largest number of steps of every attempt after the first, in each frame."""


def solve(
    skeleton: Skeleton, take: Take, **options: Any
) -> tuple[Motion, tuple[Finding, ...]]:
    r"""Return the motion whose markers and sensors lie nearest to the recorded ones.

    Levenberg-Marquardt on the rotations of all joints and the pose of the root, frame
    by frame, each started from the last. With residuals r of markers and sensors and
    weights w (one over variances) a frame minimises

    .. math:: \sum_k \frac{w_k r_k^2}{1 + s_k r_k^2} + \sum_b \pi_b |e_b|^2.

    The first sum is the energy of Bodenheimer1997, Sec. 3.2, and of the rest poses of
    Zordan2003, with the Geman-McClure loss (iteratively reweighted least squares). The
    second is a prior towards the pose that constant velocity predicts.

    Departures from the papers:

    - Rotations are quaternions, not Euler angles, so there is no gimbal lock.
    - Steps are those of Gauss-Newton, not BFGS.
    - Outliers lose their weight in the fit itself; they are not removed before it.
    - An active set keeps joints exactly within their swing-twist limits. The papers
      have a penalty.
    - No spring draws joints to a rest pose, which would bias them.

    The markers of a body enter a step only as sums, and the sums of a joint's subtree
    make its rows of the normal equations, so a step costs the same for any number of
    markers (`marey.articulated.kinematics_kernel`). The LTL factor of the equations
    has the sparsity of the tree (Featherstone; `marey.articulated.factor_kernel`).

    The prior counts only for joints on which the markers give less information than
    the prediction does; well-seen joints are free of it, so exact data give the exact
    pose. A take is tracked in both directions of time, and each limb keeps to the
    cheaper solution; unseen limbs pass from one to the other (`both_ways`). With
    `smooth`, the past and the future of the whole take count in every frame. With a
    `reference`, all frames are solved a second time, started from the reference and
    drawn to it.

    Args:
        skeleton: A skeleton with markers or sensors.
        take: The recording; markers and sensors are matched by label.
        **options: Fields of `GaussNewtonOptions`.

    Returns:
        The motion, and the findings about it.

    Raises:
        DataError: If none of the skeleton's markers and sensors is in the take, or
            ever seen.
        OptionError: If an option is not known or out of range.
    """
    chosen = options_from(GaussNewtonOptions, options)
    fit = GaussNewtonSolver(skeleton, TargetNames.of(take), take.rate, chosen)
    recording = recording_of(take)
    trace = fit.solve_take(recording)
    trace = fit.refine_with_reference(take, recording, trace, chosen)
    if chosen.smooth > 0.0:
        trace = fit.smooth(recording, trace)
    return fit.motion(take, trace), pose_findings(take, fit, trace)


class GaussNewtonSolver(PoseSolver):
    """A skeleton with its targets, and its pose and velocity at the last frame."""

    def __init__(
        self,
        skeleton: Skeleton,
        names: TargetNames,
        rate: float,
        options: GaussNewtonOptions,
    ) -> None:
        # numba is slow to import
        from marey.articulated.lane_frames_kernel import make_lanes
        from marey.pose.gauss_newton.streams_kernel import track_streams
        from marey.pose.gauss_newton.track_kernel import TrackSettings, track_frames

        super().__init__(skeleton, names, options)
        self.options = options
        self._set_scales(np.full(len(self.matches.marker), options.marker_sd))
        self.rate, self._track_frames = rate, track_frames
        self._track_streams = track_streams
        self._lanes = make_lanes(len(self.nodes.tree.parent), len(self.matches.marker))
        gain = min(1.0 / (rate * VELOCITY_TIME_S), 1.0)
        self.settings = TrackSettings(
            prior=np.full(len(self.nodes.tree.parent) + 1, rate / options.drift**2),
            robust=options.outlier > 0.0,
            max_steps=options.steps,
            max_retry_steps=max(MAX_ITERATIONS_RETRY, options.steps),
            tolerance=options.tolerance,
            speed_kept=1.0 - gain,
            speed_gain=gain,
            max_rms_residual=MAX_RMS_RESIDUAL_M,
            max_prior_cost=options.outlier**2 or np.inf,
            max_unseen_frames=int(np.ceil(UNSEEN_S * rate)),
            given_start=False,
            guided=False,
        )
        self.reset()

    def reset(self) -> None:
        """Forget the pose: the next frame is solved from scratch."""
        states = self.start_states()
        self.state = type(states)(*(values[0] for values in states))

    @property
    def needs_initial_pose(self) -> bool:
        """Whether the next frame is solved from scratch, not from the last pose."""
        return not 0 <= self.state.frames_unseen[0] <= self.settings.max_unseen_frames

    def _set_scales(self, scale: Float[Array, " marker"]) -> None:
        """Set the scales of the Geman-McClure loss to `outlier` times these, in m."""
        options = self.options
        if options.outlier > 0.0:
            sensor_sd = np.array([options.sensor_sd, options.rotation_sd])
            sensor_scale = np.tile(sensor_sd, (len(self.matches.sensor), 1))
            self.targets = self.targets._replace(
                softness=1.0 / (options.outlier * scale) ** 2,
                sensor_softness=1.0 / (options.outlier * sensor_scale) ** 2,
            )

    def estimate_scales(self, recording: Recording) -> None:
        """Estimate the scale of every marker's residual on a sample of the frames.

        First from a least-squares fit: where bones do not fit, whole limbs have large
        residuals, and would be dropped as outliers by the scale of markers that fit.
        """
        if self.options.outlier == 0.0:
            return
        frames, settings = self._sample_frames(recording), self.settings
        sample = recording[0][frames], recording[1][frames]
        for robust in (False, True):
            self.settings = settings._replace(robust=robust)
            if not robust:
                self._set_scales(np.full(len(self.matches.marker), np.inf))
            self.update_scales(sample, self._track_sample(sample))
        self.settings = settings

    def _sample_frames(self, recording: Recording) -> Int[Array, " some"]:
        """Return evenly spread frames with targets, the same ones backwards."""
        visible = np.flatnonzero(count_visible(self.matches, recording))
        n_ways = 2 if self.options.both_ways else 1
        count = min(SAMPLE_FRAMES // n_ways, len(visible))
        frames = np.linspace(0, len(visible) - 1, count).astype(int)
        if count < len(visible):
            first = frames[: count // 2]
            frames = np.concatenate([first, len(visible) - 1 - first[::-1]])
        return np.asarray(visible[frames])

    def _track_sample(self, sample: Recording) -> tuple[PoseTrace, ...]:
        """Return the poses of a sample, tracked in one direction of time or in both."""
        if self.options.both_ways:
            return track_both_ways(self, sample)
        return (self.track(sample, self.frame_order(sample)),)

    def update_scales(
        self, recording: Recording, solutions: tuple[PoseTrace, ...]
    ) -> None:
        """Estimate the scale of every marker's residual in the best of solutions."""
        scales = [
            self._marker_scales(self.marker_residuals(recording[0], trace))
            for trace in solutions
        ]
        self._set_scales(np.min(scales, axis=0))

    def _marker_scales(
        self, residual_m: Float[Array, "frame marker"]
    ) -> Float[Array, " marker"]:
        """Return the scale of every marker's residual along one axis, in metres.

        From the median, which outliers hardly change; at least `marker_sd`.
        """
        seen = np.isfinite(residual_m).any(axis=0)
        scale = np.full(residual_m.shape[1], self.options.marker_sd)
        if seen.any():
            usual = column_medians(residual_m[:, seen])
            usual /= normal_length_quantile(0.5)
            usual = np.minimum(usual, OUTLIER_SD * np.median(usual))
            scale[seen] = np.maximum(usual, self.options.marker_sd)
        return scale

    def solve_take(self, recording: Recording) -> PoseTrace:
        """Return the poses of all frames of a take."""
        if self.options.both_ways:
            return solve_both_ways(self, recording)
        order = self.frame_order(recording)
        if self.options.adapt:
            self.estimate_scales(recording)
        trace = self.track(recording, order)
        if self.options.outlier > 0.0:
            trace = self._correct_start(recording, trace, int(order[0]))
        return self._blend_before_reappearance(trace)

    def scale_loss(self, factor: float) -> None:
        """Multiply all scales of the Geman-McClure loss by a factor."""
        targets = self.targets
        self.targets = targets._replace(
            softness=targets.softness / factor**2,
            sensor_softness=targets.sensor_softness / factor**2,
        )

    def _correct_start(
        self, recording: Recording, trace: PoseTrace, first: int
    ) -> PoseTrace:
        """Return the trace with its first second tracked backwards, where better.

        The first frame is solved from scratch, and outliers may mislead it.
        """
        last = min(first + round(self.rate), len(trace.q) - 1)
        points, sensors = (as_c_float64(one[last::-1]) for one in recording)
        again = self.track((points, sensors), np.arange(last + 1))
        again = again.at(slice(None, None, -1))
        worse = frames_worse_than(trace.info[: last + 1, 0], again.info[:, 0])
        corrected = trace.copy()
        corrected.replace_frames(worse, again)
        return corrected.continuous()

    def track(self, recording: Recording, order: Int[Array, " frame"]) -> PoseTrace:
        """Return the poses of frames visited in this order, forward, then backward.

        One after the other, so that they are those of a stream to the last digit.
        """
        self.reset()
        trace = PoseTrace.empty(len(order), len(self.nodes.tree.parent))
        first = int(order[0])
        for part in split_order(order):
            self.run(recording, part, trace)
            # Backwards from the first frame again, at zero velocity.
            self.state.root[:], self.state.q[:] = trace.root[first], trace.q[first]
            self.state.velocity[:] = 0.0
        self.reset()
        return trace.continuous()

    def start_states(self) -> "TrackState":
        """Return states without a pose, one per lane."""
        from marey.pose.gauss_newton.track_kernel import TrackState  # numba is slow

        n, n_lanes = len(self.nodes.tree.parent), self._lanes.root.shape[-1]
        return TrackState(
            root=np.zeros((n_lanes, 3)),
            q=np.tile(IDENTITY_QUATERNION, (n_lanes, n, 1)),
            velocity=np.zeros((n_lanes, n + 1, 3)),
            frames_unseen=np.full((n_lanes, 1), -1),
            restart_wait=np.zeros((n_lanes, 1), dtype=np.int64),
        )

    def run_streams(
        self,
        recording: Recording,
        streams: Sequence[Int[Array, " some"]],
        trace: PoseTrace,
        settings: "TrackSettings",
        paths: tuple[Array, Array],
        states: "TrackState",
    ) -> None:
        """Solve sequences of frames side by side; see `track_streams`."""
        length = np.zeros(len(states.root), dtype=np.int64)
        length[: len(streams)] = [len(stream) for stream in streams]
        out = (trace.root, trace.q, trace.info)
        order, ends = np.concatenate(streams), np.cumsum(length)
        self._track_streams(
            self.problem,
            self._lanes,
            recording,
            order,
            ends,
            states,
            settings,
            paths,
            out,
        )

    def stretch_time(self, factor: float) -> None:
        """Let frames be this factor further apart: after lost ones, and back.

        Velocities are per frame, and the variance of a prediction grows with its time,
        as that of a random walk.
        """
        self.state.velocity[:] *= factor
        self.settings = self.settings._replace(prior=self.settings.prior / factor)

    def run(
        self,
        recording: Recording,
        order: Int[Array, " some"],
        trace: PoseTrace,
        reference: tuple[Array, Array] | None = None,
    ) -> None:
        """Solve frames of a trace in this order, in place; see `track_frames`."""
        if reference is not None:
            prior = np.maximum(np.concatenate([[0.0], reference[1]]), MIN_PRIOR)
            settings = self.settings._replace(guided=True, prior=prior)
            paths = (trace.root.copy(), reference[0])
            self.move_to_minima(recording, order, trace, settings, paths)
            return
        out, state = (trace.root, trace.q, trace.info), tuple(self.state)
        paths, settings = (trace.root, trace.q), self.settings
        self._track_frames(self.problem, recording, order, state, settings, paths, out)

    def move_to_minima(
        self,
        recording: Recording,
        order: Int[Array, " some"],
        trace: PoseTrace,
        settings: "TrackSettings",
        paths: tuple[Array, Array],
    ) -> None:
        """Move frames from their poses to the nearest minima, in place."""
        states, given = self.start_states(), settings._replace(given_start=True)
        streams = np.array_split(order, len(states.root))
        self.run_streams(recording, streams, trace, given, paths, states)

    def refine(
        self, recording: Recording, trace: PoseTrace
    ) -> tuple[Float[Array, "frame 3"], Float[Array, "frame node 4"]]:
        """Move every frame to the minimum nearest to its pose, in place.

        Joints of which too little is seen stay where they are. Returns the positions of
        the root and the rotations before.
        """
        paths, every = (trace.root.copy(), trace.q.copy()), np.arange(len(trace.q))
        self.move_to_minima(recording, every, trace, self.settings, paths)
        return paths

    def smooth(self, recording: Recording, trace: PoseTrace) -> PoseTrace:
        """Return the poses drawn towards smooth paths; see `smooth_poses`."""
        every, smooth = np.arange(len(trace.q)), trace.copy()

        def draw(paths: tuple[Array, Array], prior: Float[Array, " block"]) -> None:
            guided = self.settings._replace(guided=True, prior=prior)
            self.move_to_minima(recording, every, smooth, guided, paths)
            smooth.q[:] = smooth.continuous().q

        step_sd = self.options.smooth / self.rate**2
        smooth_poses(draw, smooth, trace.information, self.settings.prior, step_sd)
        smooth.information[:] = trace.information
        smooth.q[:] = self.within_limits(smooth.q)
        return smooth

    def _blend_before_reappearance(self, trace: PoseTrace) -> PoseTrace:
        """Return the trace whose occluded joints move to where they reappear."""
        # numba is slow to import
        from marey.pose.gauss_newton.reacquire_kernel import blend_offsets_before

        blended, tree = trace.copy(), self.nodes.tree
        unseen = trace.information < self.settings.prior
        pose = (blended.root, blended.q)
        longest = UNSEEN_S * self.rate
        blend_offsets_before(tree, self.work, unseen, (self.rate, longest), *pose)
        return blended

    def within_limits(
        self, q: Float[Array, "frame node 4"]
    ) -> Float[Array, "frame node 4"]:
        """Return rotations within their limits."""
        within = q.copy()
        self.clamp_to_limits(within)
        return within

    def clamp_to_limits(
        self, q: Float[Array, "frame node 4"]
    ) -> Bool[Array, "frame node"]:
        """Clamp rotations to their limits, in place; return which nodes are at one."""
        # numba is slow to import
        from marey.articulated.limits_kernel import mark_reached_limits

        reached = np.zeros(q.shape[:2], dtype=bool)
        mark_reached_limits(self.nodes.tree, self.work, q, reached)
        return reached
