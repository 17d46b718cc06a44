"""A skeleton ready to be followed: its tables, its state and its habits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from marey import geometry
from marey.errors import DataError
from marey.pose._options import GaussNewtonOptions
from marey.pose._smooth import smoothed
from marey.pose._targets import (
    check_weights,
    given_weights,
    residuals,
    targets_of,
    worn,
)
from marey.pose._tree import IDENTITY, nodes_of
from marey.skeleton import Skeleton
from marey.take import Take

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

FIRST_STEPS = 100
"""Most steps of a pose that is found afresh."""

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
        from marey.pose._frame_kernel import workspace  # numba is slow to import
        from marey.pose._track_kernel import Habits

        check_weights(options.weights, skeleton)
        self.skeleton, self.options = skeleton, options
        self.nodes = nodes_of(skeleton, limits=options.limits)
        self.worn = worn(skeleton, self.nodes, *names)
        marker = given_weights(
            options.weights, [skeleton.marker_labels[i] for i in self.worn.marker]
        )
        sensor = given_weights(
            options.weights, [skeleton.sensor_names[i] for i in self.worn.sensor]
        )
        sd = np.array([options.sensor_sd, options.turn_sd])
        self.targets = targets_of(
            skeleton,
            self.nodes,
            self.worn,
            marker / options.marker_sd**2,
            sensor[:, None] / sd**2,
        )
        self._soften(np.full(len(marker), options.marker_sd))
        self.work = workspace(self.nodes.tree, len(marker), len(sensor))
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
        n = len(self.nodes.tree.parent)
        self.state = (
            np.zeros(3),
            np.tile(IDENTITY, (n, 1)),
            np.zeros(3),
            np.zeros((n, 3)),
            np.array([-1, 0]),
        )

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
        """Return the frames from the first good one onward, then those before, back.

        Raises:
            DataError: If nothing of the skeleton is ever seen.
        """
        seen = np.isfinite(points[:, self.worn.column, 0]).sum(axis=1)
        posed = np.isfinite(sensors[:, self.worn.sensor_column, 0, 0]).sum(axis=1)
        count = seen + 3 * posed
        if not count.any():
            raise DataError(
                "pose",
                found="no frame in which a marker or sensor of the skeleton is seen",
                needed="at least one",
            )
        # Most of what is ever seen is enough; the very best may come late.
        first = int(np.argmax(count >= 0.9 * count.max()))
        frames = np.arange(len(count))
        return np.concatenate([frames[first:], frames[:first][::-1]])

    def learn_scales(self, points: Array, sensors: Array) -> None:
        """Measure how far every marker strays, on a sample of the frames."""
        some = np.linspace(0, len(points) - 1, min(SAMPLE, len(points))).astype(int)
        part, part_sensors = points[some], sensors[some]
        trace = self.follow(part, part_sensors, self.order(part, part_sensors))
        self.rest()
        away = self.away(part, trace)
        ever = np.isfinite(away).any(axis=0)
        scale = np.full(away.shape[1], self.options.marker_sd)
        if ever.any():
            usual = np.nanmedian(away[:, ever], axis=0) / MEDIAN_DISTANCE
            usual = np.minimum(usual, MOST_STRAY * np.median(usual))
            scale[ever] = np.maximum(usual, self.options.marker_sd)
        self._soften(scale)

    def follow(
        self, points: Array, sensors: Array, order: Int[Array, " frame"]
    ) -> Trace:
        """Return the figure through frames, visited in this order."""
        from marey.pose._track_kernel import track  # numba is slow to import

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
                self.state,
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
        self.state[0][:], self.state[1][:] = root[frame], q[frame]
        self.state[2][:], self.state[3][:] = 0.0, 0.0

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
            self.state,
            info,
            trace.known,
            trace.q,
            trace.root,
            self.options.smooth / self.rate**2,
        )
        return Trace(q, root, np.hstack([info[:, :HEAD], trace.known]))

    def away(self, points: Array, trace: Trace) -> Float[Array, "frame marker"]:
        """Return how far every marker is from its place; NaN where unseen."""
        return residuals(self.targets, self.nodes.tree, points, trace.root, trace.q)
