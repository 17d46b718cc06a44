"""The truth behind a synthetic recording: figures, motions, placements, corruption."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from marey.errors import DataError
from marey.motion import Motion
from marey.numerics import Float, Int
from marey.skeleton import Skeleton
from marey.take import Take

if TYPE_CHECKING:
    from marey.synth.figures.figure import Figure


@dataclass(frozen=True, slots=True)
class CorruptionEvent:
    """One change that a corruption made to a recording."""

    kind: str
    """The option of `Corruption` that caused it: "noise", "gaps", "swaps", ..."""

    item: str = "all"
    """Kind of the changed items: "marker", "sensor" or "all"."""

    index: int = -1
    """Number of the marker or sensor in the take; -1 = all."""

    first: int = 0
    last: int = -1
    """First and last changed frame, inclusive; a last of -1 = the end of the take."""

    size: float = 0.0
    """Size of the change: metres, radians, seconds, or a factor for "scale"."""

    other: int = -1
    """The other marker of a swap."""


@dataclass(frozen=True, slots=True)
class Link:
    """A hold between two bodies for some time: a grip or a handshake."""

    subject_a: int
    joint_a: int
    subject_b: int
    joint_b: int
    start: float
    """Time at which the hold begins, in seconds."""

    end: float
    """Time at which the hold ends, in seconds."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Truth:
    """The figures of a recording, their motions, and the log of the corruption.

    A marker's joint is the moving joint whose body carries it (`Figure.bodies`).
    """

    figures: "tuple[Figure, ...]"
    motions: tuple[Motion, ...]
    """One per figure."""

    names: tuple[str, ...]
    """The subjects' names, one per figure."""

    points: Float[np.ndarray, "frame marker 3"]
    """Positions of the markers before corruption, in metres; NaN for phantoms."""

    marker_labels: tuple[str, ...]
    """The true label of each marker; "" for phantoms."""

    marker_subject: Int[np.ndarray, " marker"]
    """Figure that wears each marker; -1 = a phantom."""

    marker_joint: Int[np.ndarray, " marker"]
    """Joint whose body carries each marker; -1 = a phantom."""

    marker_offset: Float[np.ndarray, "marker 3"]
    """Position of each marker in the frame of its joint, in metres."""

    T_world_sensor: Float[np.ndarray, "frame sensor 4 4"]
    """Poses of the sensors before corruption."""

    sensor_subject: Int[np.ndarray, " sensor"]
    sensor_joint: Int[np.ndarray, " sensor"]
    T_body_sensor: Float[np.ndarray, "sensor 4 4"]
    """Pose of each sensor in the frame of its joint."""

    log: tuple[CorruptionEvent, ...] = ()
    """Every change by the corruption, in order."""

    links: tuple[Link, ...] = ()
    """Holds between bodies of different subjects."""

    @property
    def skeleton(self) -> Skeleton:
        """The true skeleton, if there is exactly one subject."""
        return self.motion.skeleton

    @property
    def motion(self) -> Motion:
        """The true motion, if there is exactly one subject."""
        if len(self.motions) != 1:
            raise DataError(
                "truth",
                found=f"{len(self.motions)} subjects: {', '.join(self.names)}",
                needed="exactly one; choose from truth.motions",
            )
        return self.motions[0]

    @property
    def bodies(self) -> Int[np.ndarray, "body 2"]:
        """Every rigid body as (figure, joint), ordered by figure."""
        rows = [(i, b) for i, f in enumerate(self.figures) for b in f.bodies]
        return np.array(rows, dtype=np.int64).reshape(-1, 2)

    def body_of(
        self, subject: Int[np.ndarray, " item"], joint: Int[np.ndarray, " item"]
    ) -> Int[np.ndarray, " item"]:
        """Return the row of `bodies` of each (figure, joint); -1 stays -1."""
        row = {(int(i), int(j)): k for k, (i, j) in enumerate(self.bodies)}
        pairs = zip(subject, joint, strict=True)
        found = [row.get((int(i), int(j)), -1) for i, j in pairs]
        return np.array(found, dtype=np.int64)

    @property
    def marker_body(self) -> Int[np.ndarray, " marker"]:
        """Row of `bodies` of each marker; -1 = a phantom."""
        return self.body_of(self.marker_subject, self.marker_joint)

    @property
    def sensor_body(self) -> Int[np.ndarray, " sensor"]:
        """Row of `bodies` of each sensor."""
        return self.body_of(self.sensor_subject, self.sensor_joint)

    @property
    def edges(self) -> Int[np.ndarray, "edge 3"]:
        """Every joint between two bodies, as parent, child and joint.

        Parent and child are rows of `bodies`; the joint is a number in its figure.
        """
        edges: list[tuple[int, int, int]] = []
        first = 0
        for figure in self.figures:
            row = {int(b): first + k for k, b in enumerate(figure.bodies)}
            body = figure.body_of
            for joint in figure.bodies[1:]:
                parent = body[figure.skeleton.parent[joint]]
                edges.append((row[int(parent)], row[int(joint)], int(joint)))
            first += len(row)
        return np.array(edges, dtype=np.int64).reshape(-1, 3)

    def T_world_body(self) -> Float[np.ndarray, "frame body 4 4"]:
        """Return the true pose of every body."""
        poses = [
            motion.T_world_joint()[:, figure.bodies]
            for figure, motion in zip(self.figures, self.motions, strict=True)
        ]
        return np.concatenate(poses, axis=1)

    def changes(self, kind: str) -> tuple[CorruptionEvent, ...]:
        """Return the events of one kind."""
        return tuple(change for change in self.log if change.kind == kind)

    def cut(self, start: int, stop: int) -> "Truth":
        """Return the truth of frames `start` up to but not including `stop`."""
        motions = tuple(motion.cut(start, stop) for motion in self.motions)
        last = len(self.points) - 1
        kept = [(event, event.last if event.last >= 0 else last) for event in self.log]
        log = tuple(
            replace(c, first=max(c.first - start, 0), last=min(end, stop - 1) - start)
            for c, end in kept
            if c.first < stop and end >= start
        )
        return replace(
            self,
            motions=motions,
            points=self.points[start:stop],
            T_world_sensor=self.T_world_sensor[start:stop],
            log=log,
        )

    def select(self, markers: Sequence[int]) -> "Truth":
        """Return the truth of these markers, in this order."""
        index = list(markers)
        new_index = {old: new for new, old in enumerate(index)}
        log = tuple(
            replace(
                c, index=new_index.get(c.index, -1), other=new_index.get(c.other, -1)
            )
            for c in self.log
            if c.item != "marker" or c.index in new_index
        )
        return replace(
            self,
            points=self.points[:, index],
            marker_labels=tuple(self.marker_labels[i] for i in index),
            marker_subject=self.marker_subject[index],
            marker_joint=self.marker_joint[index],
            marker_offset=self.marker_offset[index],
            log=log,
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class Recording(Take):
    """A take together with its truth."""

    truth: Truth

    @property
    def true_skeleton(self) -> Skeleton:
        """The true skeleton with its markers and sensors, if there is one subject."""
        truth = self.truth
        return replace(
            truth.skeleton,
            marker_labels=truth.marker_labels,
            marker_joint=truth.marker_joint,
            marker_offset=truth.marker_offset,
            sensor_names=self.sensor_names,
            sensor_joint=truth.sensor_joint,
            T_joint_sensor=truth.T_body_sensor,
        )

    def cut(self, start: int, stop: int) -> "Recording":
        """Return frames `start` up to but not including `stop`, with their truth."""
        part = cast("Recording", Take.cut(self, start, stop))
        return replace(part, truth=self.truth.cut(start, stop))

    def select(self, markers: Sequence[int] | np.ndarray) -> "Recording":
        """Return the recording with only these markers, with their truth."""
        part = cast("Recording", Take.select(self, markers))
        return replace(part, truth=self.truth.select(np.asarray(markers).tolist()))
