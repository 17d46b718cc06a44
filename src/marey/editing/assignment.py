"""Assignment of markers to bodies, as segmented and as changed by edits."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.bodies import Bodies
from marey.segmentation.body_poses import make_bodies
from marey.segmentation.common_bodies import with_common_bodies
from marey.take import Take

Array = np.ndarray

LINE_FINDING = "markers-on-a-line"
"""Code of a finding that is made again whenever bodies are assembled."""


@dataclass(frozen=True, slots=True, eq=False)
class TakeAssignment:
    """The markers of one take and the bodies they are attached to."""

    labels: tuple[str, ...]
    """Full labels."""

    shared: Bool[Array, "marker body"]
    """As `Bodies.shared`."""

    marker_body: Int[Array, " marker"]
    """As `Bodies.marker_body`."""

    confidence: Float[Array, " marker"]
    """As `Bodies.marker_confidence`."""

    def move(self, labels: Sequence[str], body: int) -> "TakeAssignment":
        """Return the assignment with markers on one body only; -1 = on none."""
        moved = np.array([label in labels for label in self.labels], dtype=bool)
        shared = self.shared & ~moved[:, None]
        if body >= 0:
            shared[moved, body] = True
        marker_body = np.where(moved, body, self.marker_body)
        # An assignment by hand is taken to be certain.
        certain = np.where(moved, float(body >= 0), self.confidence)
        return replace(self, shared=shared, marker_body=marker_body, confidence=certain)

    def merge(self, a: int, b: int) -> "TakeAssignment":
        """Return the assignment with the markers of body b on body a."""
        shared = self.shared.copy()
        shared[:, a] |= shared[:, b]
        owner = np.where(self.marker_body == b, a, self.marker_body)
        shared = np.delete(shared, b, axis=1)
        return replace(self, shared=shared, marker_body=owner - (owner > b))

    def add_body(self) -> "TakeAssignment":
        """Return the assignment with one more body, which has no markers yet."""
        column = np.zeros((len(self.shared), 1), dtype=bool)
        return replace(self, shared=np.concatenate([self.shared, column], axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class MarkerAssignment:
    """Bodies by name, and the markers of each in every take."""

    names: tuple[str, ...]
    takes: tuple[TakeAssignment, ...]
    parents: Mapping[str, str]
    """Parent of each body by name, where the tree is known."""

    splits: tuple[tuple[str, str], ...] = ()
    """Each body that was split, with the new body that its markers make."""

    @property
    def markers_key(self) -> Hashable:
        """Which markers make which body: what poses and joints follow from."""
        return tuple(
            (take.shared.shape, take.shared.tobytes(), take.marker_body.tobytes())
            for take in self.takes
        )

    @property
    def key(self) -> Hashable:
        """The same with names and tree: what all stages up to the tree follow from."""
        parents = tuple(sorted(self.parents.items()))
        return self.names, self.markers_key, parents, self.splits

    def markers_of(self, body: str) -> list[str]:
        """Return the labels of a body's markers over all takes."""
        number = self.names.index(body)
        labels = (
            take.labels[marker]
            for take in self.takes
            for marker in np.flatnonzero(take.marker_body == number)
        )
        return list(dict.fromkeys(labels))

    def body_of(self, label: str) -> str:
        """Return the body of a marker, "" if it has none."""
        takes = [take for take in self.takes if label in take.labels]
        bodies = [take.marker_body[take.labels.index(label)] for take in takes]
        return next((self.names[body] for body in bodies if body >= 0), "")

    def move(self, labels: Sequence[str], to: str) -> "MarkerAssignment":
        """Return the assignment with markers on another body only; "" = on none."""
        body = self.names.index(to) if to else -1
        return replace(
            self, takes=tuple(take.move(labels, body) for take in self.takes)
        )

    def split(
        self, body: str, labels: Sequence[str], new_name: str
    ) -> "MarkerAssignment":
        """Return the assignment with a new body of markers that leave another."""
        wider = replace(
            self,
            names=(*self.names, new_name),
            takes=tuple(take.add_body() for take in self.takes),
            splits=(*self.splits, (body, new_name)),
        )
        return wider.move(labels, new_name)

    def merge(self, a: str, b: str) -> "MarkerAssignment":
        """Return the assignment with all markers of body b on body a."""
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

    def reorder(self, found: "MarkerAssignment") -> "MarkerAssignment":
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
            takes.append(replace(take, shared=shared, marker_body=marker_body))
        return replace(self, names=order, takes=tuple(takes))


def assignment_of(
    takes: Sequence[Bodies], parents: Mapping[str, str]
) -> MarkerAssignment:
    """Return the assignment of bodies as they were segmented."""
    assignments = []
    for one in takes:
        owner, confidence = one.marker_body.astype(np.int64), one.marker_confidence
        labels = one.take.full_labels
        assignments.append(TakeAssignment(labels, one.shared, owner, confidence))
    return MarkerAssignment(takes[0].names, tuple(assignments), dict(parents))


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


# --- bodies ---------------------------------------------------------------------------


def form_bodies(
    assignment: MarkerAssignment, takes: Sequence[Take], found: Sequence[Bodies]
) -> tuple[Bodies, ...]:
    """Return the bodies of an assignment, each with its pose in every frame.

    Unchanged bodies in unchanged takes keep their poses; the others get theirs as
    `marey.segment` computes them.

    Args:
        assignment: Which markers make which body.
        takes: The recordings.
        found: Bodies as they were segmented.
    """
    bodies = [
        _form_take(assignment, attached, take.measured, old)
        for attached, take, old in zip(assignment.takes, takes, found, strict=True)
    ]
    return with_common_bodies(bodies)


def _form_take(
    assignment: MarkerAssignment, attached: TakeAssignment, take: Take, old: Bodies
) -> Bodies:
    body_confidence = np.ones(len(assignment.names))
    unchanged = dict(_unchanged_bodies(assignment, attached, old))
    for body, before in unchanged.items():
        body_confidence[body] = old.body_confidence[before]
    bodies = make_bodies(
        take,
        assignment.names,
        attached.shared.T,
        attached.marker_body,
        marker_confidence=attached.confidence,
        body_confidence=body_confidence,
        parents=assignment.parents,
        findings=tuple(f for f in old.findings if f.code != LINE_FINDING),
    )
    if take is not old.take:
        return bodies
    T, offset = bodies.T_world_body.copy(), bodies.marker_offset.copy()
    determined, rms = bodies.determined.copy(), bodies.rms.copy()
    for body, before in unchanged.items():
        T[:, body] = old.T_world_body[:, before]
        determined[body], rms[body] = old.determined[before], old.rms[before]
        markers = attached.marker_body == body
        offset[markers] = old.marker_offset[markers]
    return replace(
        bodies, T_world_body=T, marker_offset=offset, determined=determined, rms=rms
    )


def _unchanged_bodies(
    assignment: MarkerAssignment, attached: TakeAssignment, old: Bodies
) -> Iterator[tuple[int, int]]:
    """Return the bodies with the same markers as before: number now, number before."""
    for body, name in enumerate(assignment.names):
        if name not in old.names:
            continue
        before = old.names.index(name)
        is_same = np.array_equal(attached.shared[:, body], old.shared[:, before])
        owned, owned_before = attached.marker_body == body, old.marker_body == before
        if is_same and np.array_equal(owned, owned_before):
            yield body, before
