"""Which markers make which body, as found and as changed by hand."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Int

from marey.bodies import Bodies
from marey.segmentation.body_poses import assembled
from marey.segmentation.common_bodies import alike
from marey.take import Take

Array = np.ndarray

LINE = "markers-on-a-line"
"""A finding that every assembly makes anew."""


@dataclass(frozen=True, slots=True, eq=False)
class Worn:
    """The markers of one take and the bodies they make."""

    labels: tuple[str, ...]
    """Full labels."""

    shared: Bool[Array, "marker body"]
    owner: Int[Array, " marker"]
    sure: Array
    """`Bodies.marker_confidence`."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Bodies by name, and the markers of each in every take."""

    names: tuple[str, ...]
    worn: tuple[Worn, ...]
    parents: Mapping[str, str]
    """Parent of each body by name, where that is known beforehand."""

    parts: tuple[tuple[str, str], ...] = ()
    """Bodies that were split, each with what left it."""

    @property
    def key(self) -> tuple[object, ...]:
        """What two layouts of the same bodies have in common."""
        bits = tuple((w.shared.tobytes(), w.owner.tobytes()) for w in self.worn)
        return self.names, bits, tuple(sorted(self.parents.items())), self.parts

    @property
    def members(self) -> tuple[object, ...]:
        """The same without names and tree: what bodies and joints follow from."""
        return tuple(
            (w.shared.shape, w.shared.tobytes(), w.owner.tobytes()) for w in self.worn
        )

    def markers_of(self, body: str) -> list[str]:
        """Return the labels of a body's own markers over all takes."""
        at = self.names.index(body)
        mine = (
            label
            for worn in self.worn
            for label, owner in zip(worn.labels, worn.owner.tolist(), strict=True)
            if owner == at
        )
        return list(dict.fromkeys(mine))

    def body_of(self, label: str) -> str:
        """Return the body of a marker, "" if it has none."""
        for worn in self.worn:
            if label in worn.labels:
                at = int(worn.owner[worn.labels.index(label)])
                if at >= 0:
                    return self.names[at]
        return ""

    def moved(self, labels: Sequence[str], to: str) -> "Layout":
        """Return the layout with markers on another body only; "" = on none."""
        at = self.names.index(to) if to else -1
        return replace(self, worn=tuple(_moved(w, labels, at) for w in self.worn))

    def with_body(self, name: str, labels: Sequence[str], left: str) -> "Layout":
        """Return the layout with a new body of markers that leave another."""
        wider = replace(
            self,
            names=(*self.names, name),
            worn=tuple(replace(w, shared=_wider(w.shared)) for w in self.worn),
            parts=(*self.parts, (left, name)),
        )
        return wider.moved(labels, name)

    def merged(self, a: str, b: str) -> "Layout":
        """Return the layout with all markers of the second body on the first."""
        one, other = self.names.index(a), self.names.index(b)
        return replace(
            self,
            names=tuple(name for name in self.names if name != b),
            worn=tuple(_merged(w, one, other) for w in self.worn),
            parents=_joined(self.parents, a, b),
            parts=tuple(
                (old, new)
                for old, new in (
                    (a if x == b else x, a if y == b else y) for x, y in self.parts
                )
                if old != new
            ),
        )

    def beside(self, found: "Layout") -> "Layout":
        """Return the layout in the order of another, new bodies behind.

        Markers that are on the body they were found on are on a joint line, and so on
        the next body too, if they were then.
        """
        known = [name for name in found.names if name in self.names]
        order = (*known, *(name for name in self.names if name not in known))
        place = [self.names.index(name) for name in order]
        back = np.array([*np.argsort(place), -1])
        before = [found.names.index(name) for name in known]
        worn = []
        for w, old in zip(self.worn, found.worn, strict=True):
            shared, owner = w.shared[:, place].copy(), back[w.owner]
            same = owner == np.array([*_numbers(found.names, order), -1])[old.owner]
            also = old.shared[np.ix_(same & (owner >= 0), before)]
            shared[same & (owner >= 0), : len(known)] |= also
            worn.append(replace(w, shared=shared, owner=owner))
        return replace(self, names=order, worn=tuple(worn))


def layout_of(takes: Sequence[Bodies], parents: Mapping[str, str]) -> Layout:
    """Return the layout of bodies as they were found."""
    worn = tuple(
        Worn(
            one.take.full_labels,
            one.shared,
            one.marker_body.astype(np.int64),
            one.marker_confidence,
        )
        for one in takes
    )
    return Layout(takes[0].names, worn, dict(parents))


def _numbers(names: Sequence[str], order: Sequence[str]) -> list[int]:
    """Return the place of each name in an order, -2 if it has none."""
    return [order.index(name) if name in order else -2 for name in names]


def _moved(worn: Worn, labels: Sequence[str], at: int) -> Worn:
    mine = [i for i, label in enumerate(worn.labels) if label in labels]
    shared, owner, sure = worn.shared.copy(), worn.owner.copy(), worn.sure.copy()
    shared[mine] = False
    owner[mine] = at
    # Who says so by hand is taken to be right.
    sure[mine] = 1.0 if at >= 0 else 0.0
    if at >= 0:
        shared[mine, at] = True
    return replace(worn, shared=shared, owner=owner, sure=sure)


def _wider(shared: Array) -> Array:
    return np.concatenate([shared, np.zeros((len(shared), 1), dtype=bool)], axis=1)


def _merged(worn: Worn, a: int, b: int) -> Worn:
    shared, owner = worn.shared.copy(), worn.owner.copy()
    shared[:, a] |= shared[:, b]
    owner[owner == b] = a
    owner[owner > b] -= 1
    return replace(worn, shared=np.delete(shared, b, axis=1), owner=owner)


def _joined(parents: Mapping[str, str], a: str, b: str) -> dict[str, str]:
    """Return parents when b is a part of a: it hangs where the upper of them did."""
    above = _line(parents, a)
    top = parents.get(b if b in above else a, "")
    joined = {
        child: a if parent == b else parent
        for child, parent in parents.items()
        if child not in (a, b)
    }
    return joined | ({a: top} if top else {})


def _line(parents: Mapping[str, str], body: str) -> list[str]:
    line: list[str] = []
    while parents.get(body):
        body = parents[body]
        line.append(body)
    return line


# --- bodies ---------------------------------------------------------------------------


def formed(
    layout: Layout, takes: Sequence[Take], found: Sequence[Bodies]
) -> tuple[Bodies, ...]:
    """Return the bodies of a layout, each with its pose in every frame.

    Bodies that are as they were found, in the very same takes, keep their poses; those
    that changed get theirs as `marey.segment` does it.

    Args:
        layout: Which markers make which body.
        takes: The recordings.
        found: Bodies as they were found, with the names of the layout.
    """
    made = [
        _formed(layout, worn, take.measured, old)
        for worn, take, old in zip(layout.worn, takes, found, strict=True)
    ]
    return alike(made)


def _formed(layout: Layout, worn: Worn, take: Take, old: Bodies) -> Bodies:
    told = tuple(f for f in old.findings if f.code != LINE)
    sure = np.ones(len(layout.names))
    same = dict(_unchanged(layout, worn, old))
    for body, before in same.items():
        sure[body] = old.body_confidence[before]
    made = assembled(
        take,
        layout.names,
        worn.shared.T,
        worn.owner,
        marker_confidence=worn.sure,
        body_confidence=sure,
        parents=layout.parents,
        findings=told,
    )
    if take is not old.take:
        return made
    T, offset = made.T_world_body.copy(), made.marker_offset.copy()
    determined, rms = made.determined.copy(), made.rms.copy()
    for body, before in same.items():
        T[:, body] = old.T_world_body[:, before]
        determined[body], rms[body] = old.determined[before], old.rms[before]
        mine = worn.owner == body
        offset[mine] = old.marker_offset[mine]
    return replace(
        made, T_world_body=T, marker_offset=offset, determined=determined, rms=rms
    )


def _unchanged(layout: Layout, worn: Worn, old: Bodies) -> Iterator[tuple[int, int]]:
    """Return the bodies with the very markers they were found with, old ones beside."""
    for body, name in enumerate(layout.names):
        if name not in old.names:
            continue
        before = old.names.index(name)
        same = np.array_equal(worn.shared[:, body], old.shared[:, before])
        if same and np.array_equal(worn.owner == body, old.marker_body == before):
            yield body, before
