"""Assignment of markers and sensors to bodies, as segmented and changed by edits."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from marey.bodies import Bodies
from marey.numerics import Array, Bool, Float, Int


@dataclass(frozen=True, slots=True, eq=False)
class TakeAssignment:
    """The markers and sensors of one take and the bodies they are attached to."""

    labels: tuple[str, ...]
    """Full labels."""

    shared: Bool[Array, "marker body"]
    """As `Bodies.shared`."""

    marker_body: Int[Array, " marker"]
    """As `Bodies.marker_body`."""

    confidence: Float[Array, " marker"]
    """As `Bodies.marker_confidence`."""

    sensors: tuple[str, ...]
    """Sensors of the take."""

    sensor_body: Int[Array, " sensor"]
    """Body of each sensor; -1 = none."""

    def move(
        self, labels: Sequence[str], sensors: Sequence[str], body: int
    ) -> "TakeAssignment":
        """Return the assignment with some members on one body only; -1 = on none."""
        moved = np.array([label in labels for label in self.labels], dtype=bool)
        shared = self.shared & ~moved[:, None]
        if body >= 0:
            shared[moved, body] = True
        marker_body = np.where(moved, body, self.marker_body)
        # An assignment by hand is taken to be certain.
        certain = np.where(moved, float(body >= 0), self.confidence)
        is_moved = np.array([name in sensors for name in self.sensors], dtype=bool)
        return replace(
            self,
            shared=shared,
            marker_body=marker_body,
            confidence=certain,
            sensor_body=np.where(is_moved, body, self.sensor_body),
        )

    def merge(self, a: int, b: int) -> "TakeAssignment":
        """Return the assignment with all members of body b on body a."""
        shared = self.shared.copy()
        shared[:, a] |= shared[:, b]
        owner = np.where(self.marker_body == b, a, self.marker_body)
        sensor_owner = np.where(self.sensor_body == b, a, self.sensor_body)
        return replace(
            self,
            shared=np.delete(shared, b, axis=1),
            marker_body=owner - (owner > b),
            sensor_body=sensor_owner - (sensor_owner > b),
        )

    @property
    def members(self) -> tuple[Array, Array, Array]:
        """Which markers and sensors are on which bodies."""
        return self.shared, self.marker_body, self.sensor_body

    def add_body(self) -> "TakeAssignment":
        """Return the assignment with one more body, which has no members yet."""
        column = np.zeros((len(self.shared), 1), dtype=bool)
        return replace(self, shared=np.concatenate([self.shared, column], axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class BodyAssignment:
    """Bodies by name, and the markers and sensors of each in every take."""

    names: tuple[str, ...]
    takes: tuple[TakeAssignment, ...]
    parents: Mapping[str, str]
    """Parent of each body by name, where the tree is known."""

    splits: tuple[tuple[str, str], ...] = ()
    """Each body that was split, with the new body that its members make."""

    @property
    def members_key(self) -> Hashable:
        """Which members make which body: what poses and joints follow from."""
        return tuple(
            (take.shared.shape, *(values.tobytes() for values in take.members))
            for take in self.takes
        )

    @property
    def key(self) -> Hashable:
        """The same with names and tree: what all stages up to the tree follow from."""
        parents = tuple(sorted(self.parents.items()))
        return self.names, self.members_key, parents, self.splits

    def members_of(self, body: str) -> list[str]:
        """Return the markers of a body in all takes, then its sensors."""
        number = self.names.index(body)
        markers: dict[str, None] = {}
        sensors: dict[str, None] = {}
        for take in self.takes:
            for marker in np.flatnonzero(take.marker_body == number):
                markers[take.labels[marker]] = None
            for sensor in np.flatnonzero(take.sensor_body == number):
                sensors[take.sensors[sensor]] = None
        return [*markers, *sensors]

    def body_of_sensor(self, sensor: str) -> str:
        """Return the body of a sensor, "" if it has none."""
        takes = [take for take in self.takes if sensor in take.sensors]
        bodies = [take.sensor_body[take.sensors.index(sensor)] for take in takes]
        return next((self.names[body] for body in bodies if body >= 0), "")

    def body_of(self, label: str) -> str:
        """Return the body of a marker, "" if it has none."""
        takes = [take for take in self.takes if label in take.labels]
        bodies = [take.marker_body[take.labels.index(label)] for take in takes]
        return next((self.names[body] for body in bodies if body >= 0), "")

    def move(
        self, to: str, labels: Sequence[str] = (), sensors: Sequence[str] = ()
    ) -> "BodyAssignment":
        """Return the assignment with members on another body only; "" = on none."""
        body = self.names.index(to) if to else -1
        takes = tuple(take.move(labels, sensors, body) for take in self.takes)
        return replace(self, takes=takes)

    def split(
        self, body: str, labels: Sequence[str], sensors: Sequence[str], new_name: str
    ) -> "BodyAssignment":
        """Return the assignment with a new body of members that leave another."""
        wider = replace(
            self,
            names=(*self.names, new_name),
            takes=tuple(take.add_body() for take in self.takes),
            splits=(*self.splits, (body, new_name)),
        )
        return wider.move(new_name, labels, sensors)

    def merge(self, a: str, b: str) -> "BodyAssignment":
        """Return the assignment with all members of body b on body a."""
        first, second = self.names.index(a), self.names.index(b)
        splits = (
            tuple(a if name == b else name for name in pair) for pair in self.splits
        )
        return replace(
            self,
            names=tuple(name for name in self.names if name != b),
            takes=tuple(take.merge(first, second) for take in self.takes),
            parents=_merge_parents(self.parents, a, b),
            splits=tuple((old, new) for old, new in splits if old != new),
        )

    def reorder(self, found: "BodyAssignment") -> "BodyAssignment":
        """Return the assignment with bodies in the order found, new bodies last.

        A marker that is back on the body it was found on is shared with the other
        bodies that it was shared with then.
        """
        kept = [name for name in found.names if name in self.names]
        order = (*kept, *(name for name in self.names if name not in kept))
        column = [self.names.index(name) for name in order]
        new_number = np.array([*np.argsort(column), -1])
        old_column = [found.names.index(name) for name in kept]
        # Of each body found: its number now, -2 if it is gone; -1 for no body.
        now = [order.index(name) if name in order else -2 for name in found.names]
        takes = []
        for take, old in zip(self.takes, found.takes, strict=True):
            shared = take.shared[:, column].copy()
            marker_body = new_number[take.marker_body]
            is_same = marker_body == np.array([*now, -1])[old.marker_body]
            is_same &= marker_body >= 0
            shared[is_same, : len(kept)] |= old.shared[np.ix_(is_same, old_column)]
            takes.append(
                replace(
                    take,
                    shared=shared,
                    marker_body=marker_body,
                    sensor_body=new_number[take.sensor_body],
                )
            )
        return replace(self, names=order, takes=tuple(takes))


def assignment_of(
    takes: Sequence[Bodies], parents: Mapping[str, str]
) -> BodyAssignment:
    """Return the assignment of bodies as they were segmented."""
    assignments = []
    for one in takes:
        owner, confidence = one.marker_body.astype(np.int64), one.marker_confidence
        body_of = dict(zip(one.sensor_names, one.sensor_body.tolist(), strict=True))
        sensors = one.take.sensor_names
        assignments.append(
            TakeAssignment(
                labels=one.take.full_labels,
                shared=one.shared,
                marker_body=owner,
                confidence=confidence,
                sensors=sensors,
                sensor_body=np.array([body_of.get(s, -1) for s in sensors], np.int64),
            )
        )
    return BodyAssignment(takes[0].names, tuple(assignments), dict(parents))


def _merge_parents(parents: Mapping[str, str], a: str, b: str) -> dict[str, str]:
    """Return parents after b became a part of a.

    Its parent is that of whichever of the two is nearer to the root.
    """
    parent = parents.get(b if b in _ancestors(parents, a) else a, "")
    merged = {
        child: a if name == b else name
        for child, name in parents.items()
        if child not in (a, b)
    }
    return merged | ({a: parent} if parent else {})


def _ancestors(parents: Mapping[str, str], body: str) -> list[str]:
    ancestors: list[str] = []
    while parents.get(body):
        body = parents[body]
        ancestors.append(body)
    return ancestors
