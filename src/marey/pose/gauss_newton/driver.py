"""A skeleton ready to be followed: its tables, its state and its habits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.articulated.tables import IDENTITY, Nodes, nodes_of
from marey.articulated.targets import (
    Worn,
    frame_order,
    frames_seen,
    given_weights,
    residuals,
    targets_of,
    worn,
)
from marey.numerics import geometry
from marey.pose.gauss_newton.smoothing import smoothed
from marey.pose.options import GaussNewtonOptions, PoseOptions
from marey.pose.reference_prior import astray, bridged, plain
from marey.skeleton import Skeleton
from marey.take import Take

if TYPE_CHECKING:
    from marey.articulated.targets_kernel import Targets

Array = np.ndarray

SAMPLE = 200
"""Frames looked at for how far each marker strays."""

# An unseen joint loses its speed, and a seen one's is learnt, in about this time.
FADES = 0.05

# Where markers are further off than this on the whole, in metres, the figure is lost.
LOST = 0.05

# After so many seconds without anything seen, the figure is found afresh.
PATIENCE = 0.25

# The median distance of positions scattered by one sd along each axis.
MEDIAN_DISTANCE = 1.538

# A marker that strays so many times as far as most is in the wrong place, not loose.
MOST_STRAY = 3.0

BEGINNING = 50
"""Frames at the beginning of a take that are followed backwards as well."""

FIRST_STEPS = 100
"""Most steps of a pose that is found afresh."""

# What a wish without weight is worth, in 1 / rad^2: the engine divides by it.
NO_PRIOR = 1e-9

HEAD = 4
"""Columns of a trace's numbers before what is known of the nodes."""


class Names(NamedTuple):
    """What a recording calls its markers and sensors."""

    labels: Sequence[str]
    full_labels: Sequence[str]
    sensors: Sequence[str]

    @classmethod
    def of(cls, take: Take) -> "Names":
        """Return the names of a take."""
        return cls(take.labels, take.full_labels, take.sensor_names)


def dressed(
    skeleton: Skeleton, names: Names, options: PoseOptions
) -> tuple[Nodes, Worn, "Targets"]:
    """Return a skeleton's nodes, what a recording has of them, and by what weights.

    Weights are one over variances, times those given.

    Raises:
        DataError: If the recording has none of the skeleton's markers and sensors.
    """
    nodes = nodes_of(skeleton, limits=options.limits)
    mine = worn(skeleton, nodes, *names)
    marker, sensor = given_weights(options.weights, skeleton, mine)
    weight = marker / options.marker_sd**2
    sd = np.array([options.sensor_sd, options.turn_sd])
    targets = targets_of(skeleton, nodes, mine, weight, sensor[:, None] / sd**2)
    return nodes, mine, targets


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """A figure through the frames of a take."""

    q: Float[Array, "frame node 4"]
    """Rotation of every node in its parent."""

    root: Float[Array, "frame 3"]
    info: Float[Array, "frame number"]
    """Cost, weight seen, weight left, steps; then what the frame's targets know of
    the root's place (1 / m^2) and of every node (1 / rad^2)."""

    @property
    def known(self) -> Float[Array, "frame item"]:
        """What each frame knows of the root's place, then of every node."""
        return self.info[:, HEAD:]


class Follower:
    """A skeleton, what is recorded of it, and where it stands just now."""

    def __init__(
        self,
        skeleton: Skeleton,
        names: Names,
        rate: float,
        options: GaussNewtonOptions,
    ) -> None:
        from marey.articulated.kinematics_kernel import (
            workspace,  # numba is slow to import
        )
        from marey.pose.gauss_newton.track_kernel import Habits

        self.skeleton, self.options = skeleton, options
        self.nodes, self.worn, self.targets = dressed(skeleton, names, options)
        markers, sensors = len(self.worn.marker), len(self.worn.sensor)
        self._soften(np.full(markers, options.marker_sd))
        self.work = workspace(self.nodes.tree, markers, sensors)
        n = len(self.nodes.tree.parent)
        prior = rate / options.drift**2
        share = min(1.0 / (rate * FADES), 1.0)
        self.rate = rate
        self.habits = Habits(
            prior=np.full(n + 1, prior),
            robust=options.outlier > 0.0,
            most=options.steps,
            most_first=max(FIRST_STEPS, options.steps),
            tolerance=options.tolerance,
            keeps=1.0 - share,
            learns=share,
            lost=LOST,
            patience=int(np.ceil(PATIENCE * rate)),
            guided=False,
        )
        self.rest()

    def rest(self) -> None:
        """Forget where the figure is: the next frame finds it afresh."""
        from marey.pose.gauss_newton.track_kernel import (
            State,  # numba is slow to import
        )

        n = len(self.nodes.tree.parent)
        self.state = State(
            root=np.zeros(3),
            q=np.tile(IDENTITY, (n, 1)),
            speed_root=np.zeros(3),
            speed=np.zeros((n, 3)),
            unseen=np.array([-1]),
            wait=np.array([0]),
        )

    @property
    def afresh(self) -> bool:
        """Whether the next frame finds the figure afresh, not from the last."""
        return not 0 <= self.state.unseen[0] <= self.habits.patience

    def _soften(self, scale: Float[Array, " marker"]) -> None:
        """Set the distances at which residuals hardly count any more."""
        if self.options.outlier == 0.0:
            return
        sd = np.array([self.options.sensor_sd, self.options.turn_sd])
        count = len(self.worn.sensor)
        self.targets = self.targets._replace(
            soft=1.0 / (self.options.outlier * scale) ** 2,
            sensor_soft=np.tile(1.0 / (self.options.outlier * sd) ** 2, (count, 1)),
        )

    def order(self, points: Array, sensors: Array) -> Int[Array, " frame"]:
        """Return the order in which frames are visited; see `frame_order`."""
        return frame_order(self.worn, points, sensors)

    def learn_scales(self, points: Array, sensors: Array) -> None:
        """Measure how far every marker strays, on a sample of the frames.

        First by plain squares: where bones do not fit, whole limbs stray, and would be
        let go as outliers by the measure of markers that do fit.
        """
        if self.options.outlier == 0.0:
            return
        ever = frames_seen(self.worn, points, sensors)
        some = ever[np.linspace(0, len(ever) - 1, min(SAMPLE, len(ever))).astype(int)]
        part, part_sensors = points[some], sensors[some]
        order, habits = self.order(part, part_sensors), self.habits
        for robust in (False, True):
            self.habits = habits._replace(robust=robust)
            if not robust:
                self._soften(np.full(len(self.worn.marker), np.inf))
            trace = self.follow(part, part_sensors, order)
            self.rest()
            self._soften(self._strays(self.away(part, trace)))
        self.habits = habits

    def _strays(self, away: Float[Array, "frame marker"]) -> Float[Array, " marker"]:
        """Return how far every marker usually is from its place."""
        ever = np.isfinite(away).any(axis=0)
        scale = np.full(away.shape[1], self.options.marker_sd)
        if ever.any():
            usual = np.nanmedian(away[:, ever], axis=0) / MEDIAN_DISTANCE
            usual = np.minimum(usual, MOST_STRAY * np.median(usual))
            scale[ever] = np.maximum(usual, self.options.marker_sd)
        return scale

    def through(self, points: Array, sensors: Array) -> Trace:
        """Return the figure through all frames of a take."""
        order = self.order(points, sensors)
        if self.options.adapt:
            self.learn_scales(points, sensors)
        trace = self.follow(points, sensors, order)
        if self.options.outlier == 0.0:
            return trace
        return self._begun_again(points, sensors, trace, int(order[0]))

    def _begun_again(
        self, points: Array, sensors: Array, trace: Trace, first: int
    ) -> Trace:
        """Return the trace with its beginning followed backwards, where better.

        The first frame is found from nowhere, and outliers may lead it astray.
        """
        last = min(first + BEGINNING, len(points) - 1)
        self.rest()
        back = slice(last, None, -1)
        again = self.follow(
            plain(points[back]), plain(sensors[back]), np.arange(last + 1)
        )
        better = astray(trace.info[: last + 1, 0], again.info[::-1, 0])
        q, root, info = trace.q.copy(), trace.root.copy(), trace.info.copy()
        for to, of in ((q, again.q), (root, again.root), (info, again.info)):
            to[better] = of[::-1][better]
        return Trace(geometry.quat_continuous(q), root, info)

    def follow(
        self, points: Array, sensors: Array, order: Int[Array, " frame"]
    ) -> Trace:
        """Return the figure through frames, visited in this order."""
        from marey.pose.gauss_newton.track_kernel import (
            track,  # numba is slow to import
        )

        n = len(self.nodes.tree.parent)
        q, root = np.empty((len(points), n, 4)), np.empty((len(points), 3))
        info = np.zeros((len(points), HEAD + n + 1))
        forward = len(order) - int(order[0])
        for part in (order[:forward], order[forward:]):
            track(
                self.nodes.tree,
                self.targets,
                self.work,
                points,
                sensors,
                part,
                tuple(self.state),
                self.habits,
                (root, q),
                q,
                root,
                info,
            )
            self._return_to(q, root, int(order[0]))
        return Trace(geometry.quat_continuous(q), root, info)

    def _return_to(self, q: Array, root: Array, frame: int) -> None:
        """Stand as in a frame, at rest, to follow time backwards from there."""
        self.state.root[:], self.state.q[:] = root[frame], q[frame]
        self.state.speed_root[:], self.state.speed[:] = 0.0, 0.0

    def led(
        self,
        points: Array,
        sensors: Array,
        trace: Trace,
        q: Float[Array, "frame node 4"],
        prior: Float[Array, " node"],
    ) -> Trace:
        """Return the trace begun anew at other rotations, and drawn to them.

        Args:
            points: Markers of the take, in metres.
            sensors: Sensors of the take.
            trace: Where the root's place comes from.
            q: The rotations.
            prior: What they are worth, in 1 / rad^2; 0 for nothing.
        """
        found = q.copy(), trace.root.copy(), trace.info.copy()
        again = trace.q.copy(), trace.root.copy(), trace.info.copy()
        paths = trace.root, q
        self._draw(points, sensors, np.arange(len(q)), paths, prior, found)
        # From there some frames may be led astray; these begin where they were.
        doubtful = astray(found[2][:, 0], trace.info[:, 0])
        self._draw(points, sensors, doubtful, paths, prior, again)
        better = doubtful[again[2][doubtful, 0] < found[2][doubtful, 0]]
        for to, of in zip(found, again, strict=True):
            to[better] = of[better]
        tied = bridged(self.nodes, self.targets, points, sensors, found[0], q)
        return Trace(tied, *found[1:])

    def _draw(
        self,
        points: Array,
        sensors: Array,
        order: Int[Array, " some"],
        paths: tuple[Array, Array],
        prior: Float[Array, " node"],
        out: tuple[Array, Array, Array],
    ) -> None:
        """Draw frames from where they are towards paths, by what these are worth."""
        from marey.pose.gauss_newton.track_kernel import (
            track,  # numba is slow to import
        )

        worth = np.maximum(np.concatenate([[0.0], prior]), NO_PRIOR)
        track(
            self.nodes.tree,
            self.targets,
            self.work,
            points,
            sensors,
            order,
            tuple(self.state),
            self.habits._replace(guided=True, prior=worth),
            paths,
            *out,
        )
        self.rest()

    def smooth(self, points: Array, sensors: Array, trace: Trace) -> Trace:
        """Return the trace drawn towards smooth paths."""
        info = trace.info.copy()
        q, root = smoothed(
            self.nodes.tree,
            self.targets,
            self.work,
            points,
            sensors,
            self.habits,
            tuple(self.state),
            info,
            trace.known,
            trace.q,
            trace.root,
            self.options.smooth / self.rate**2,
        )
        return Trace(q, root, np.hstack([info[:, :HEAD], trace.known]))

    def held(self, trace: Trace) -> Bool[Array, "frame node"]:
        """Return whether any angle of a node stands at its limit."""
        from marey.articulated.limits_kernel import at_limits  # numba is slow to import

        held = np.zeros(trace.q.shape[:2], dtype=bool)
        at_limits(self.nodes.tree, self.work, trace.q.copy(), held)
        return held

    def away(self, points: Array, trace: Trace) -> Float[Array, "frame marker"]:
        """Return how far every marker is from its place; NaN where unseen."""
        return residuals(self.targets, self.nodes.tree, points, trace.root, trace.q)
