"""What is calibrated: segments, their markers and axes, and where each unknown stands.

Segments come depth first, so that the unknowns of all that a segment carries stand
side by side.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

if TYPE_CHECKING:
    from marey.calibration.solver.frame_equations_kernel import Shape as KernelShape
    from marey.calibration.solver.frame_equations_kernel import Tree

Array = np.ndarray

TAIL = 8.0
"""Freedoms of Student's t, by which positions far off lose their weight."""

CALM_SD = 1.0
"""Standard deviation of a segment's turn from its usual one, in radians: so wide that
it settles only what markers leave open."""

HINGE, SQUARE = 0, 1
"""Kinds of axes: one that parent and child share, and two that stay square."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A joint that turns mostly about axes that are known to exist."""

    child: int
    """The segment that turns."""

    kind: int
    sd: float
    """How far it keeps from that in a frame, in radians."""


@dataclass(frozen=True, eq=False)
class Figure:
    """Segments depth first, markers in their order."""

    names: tuple[str, ...]
    parent: Int[Array, " segment"]
    labels: tuple[str, ...]
    segment: Int[Array, " marker"]
    """The segment of each marker, rising."""

    axes: tuple[Axis, ...] = ()

    @cached_property
    def first(self) -> Int[Array, " segment_and_one"]:
        """First marker of each segment; one more at the end."""
        return np.searchsorted(self.segment, np.arange(len(self.names) + 1))

    @cached_property
    def columns(self) -> "Columns":
        """Where each unknown stands."""
        return _columns(self)

    @cached_property
    def tree(self) -> "Tree":
        """The tables that the kernels read."""
        return _tree(self)

    def children(self, segment: int) -> list[int]:
        """Return the segments that hang on one."""
        return [int(i) for i in np.flatnonzero(self.parent == segment)]

    def index(self, name: str) -> int:
        """Return the number of a segment, -1 if there is none of this name."""
        return self.names.index(name) if name in self.names else -1

    def markers_of(self, segment: int) -> range:
        """Return the markers of a segment."""
        return range(int(self.first[segment]), int(self.first[segment + 1]))


def figure_of(parents: Mapping[str, str], markers: Sequence[tuple[str, str]]) -> Figure:
    """Return the figure of segments and markers that are known by name.

    Args:
        parents: Parent of each segment; "" for the root.
        markers: Label and segment of each marker.
    """
    names: list[str] = []

    def hang(name: str) -> None:
        names.append(name)
        for child, parent in parents.items():
            if parent == name:
                hang(child)

    hang(next(name for name, parent in parents.items() if not parent))
    place = {name: i for i, name in enumerate(names)}
    inside = sorted(markers, key=lambda marker: place[marker[1]])
    return Figure(
        tuple(names),
        np.array([place.get(parents[name], -1) for name in names], dtype=np.int64),
        tuple(label for label, _ in inside),
        np.array([place[name] for _, name in inside], dtype=np.int64),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Where each unknown stands among those of one session."""

    o: Int[Array, " segment"]
    """First of three by segment; -1 for the root."""

    m: Int[Array, " marker"]
    axis: Int[Array, " axis"]
    """First of six: the axis in the parent, then in the child."""

    low: Int[Array, " segment"]
    """First column of a segment and all that it carries."""

    high: Int[Array, " segment"]
    count: int

    @property
    def shared(self) -> Int[Array, " shared"]:
        """The columns that all sessions share: joints and axes."""
        starts = np.concatenate([_run(self.o[1:], 3), _run(self.axis, 6)])
        return np.sort(starts)

    @property
    def own(self) -> Int[Array, " own"]:
        """The columns that each session has for itself: its markers."""
        return _run(self.m, 3)


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """What is sought beside poses: joints, markers, axes, and how markers stray."""

    o: Float[Array, "segment 3"]
    """Each joint in its parent, in metres; the root's is not read."""

    m: Float[Array, "session marker 3"]
    """Each marker in its segment, in metres."""

    a: Float[Array, "axis 3"]
    b: Float[Array, "axis 3"]
    noise: Float[Array, "session marker"]
    """Scale of each marker, in metres."""

    usual: Float[Array, "segment 3 3"]
    """Usual turn of each segment against its parent."""

    stature: float = 1.74
    """Height of a person, which ties the proportions together, in metres."""

    def of(self, session: int) -> "KernelShape":
        """Return one session's, as the kernels read it."""
        from marey.calibration.solver.frame_equations_kernel import (
            Shape as KernelShape,  # slow
        )

        return KernelShape(
            self.o, self.m[session], self.a, self.b, self.noise[session], self.usual
        )

    def vector(self, columns: Columns, session: int) -> Float[Array, " column"]:
        """Return the unknowns of one session."""
        out = np.zeros(columns.count)
        _put(out, columns.o[1:], self.o[1:])
        _put(out, columns.m, self.m[session])
        _put(out, columns.axis, self.a)
        _put(out, columns.axis + 3, self.b)
        return out

    def moved(
        self,
        columns: Columns,
        steps: Float[Array, "session column"],
        taller: float,
    ) -> "Shape":
        """Return the shape after a step; its shared part is read from the first."""
        o = self.o.copy()
        o[1:] += _get(steps[0], columns.o[1:])
        return replace(
            self,
            o=o,
            m=self.m + np.stack([_get(step, columns.m) for step in steps]),
            a=self.a + _get(steps[0], columns.axis),
            b=self.b + _get(steps[0], columns.axis + 3),
            stature=self.stature + taller,
        )


def _run(start: Array, length: int) -> Array:
    return np.asarray((start[:, None] + np.arange(length)).ravel(), dtype=np.int64)


def _put(out: Array, start: Array, rows: Array) -> None:
    out[start[:, None] + np.arange(3)] = rows


def _get(values: Array, start: Array) -> Array:
    return np.asarray(values[start[:, None] + np.arange(3)]).reshape(-1, 3)


def _columns(figure: Figure) -> Columns:
    n = len(figure.names)
    o, m = np.full(n, -1, dtype=np.int64), np.zeros(len(figure.labels), dtype=np.int64)
    axis = np.zeros(len(figure.axes), dtype=np.int64)
    low, high = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    at = 0
    for i in range(n):
        low[i] = at
        if i > 0:
            o[i], at = at, at + 3
        for h, row in enumerate(figure.axes):
            if row.child == i:
                axis[h], at = at, at + 6
        for k in figure.markers_of(i):
            m[k], at = at, at + 3
        high[i] = at
    for i in range(n - 1, 0, -1):
        p = int(figure.parent[i])
        high[p] = max(high[p], high[i])
    return Columns(o, m, axis, low, high, at)


def _tree(figure: Figure) -> "Tree":
    from marey.calibration.solver.frame_equations_kernel import (
        Tree,  # numba is slow to import
    )

    columns = figure.columns
    chain, depth = _chains(figure.parent)
    low = np.concatenate([[0], columns.low])
    high = np.concatenate([[columns.count], columns.high])
    width = high - low + 3 * np.maximum(depth - 2, 0)
    start = np.concatenate([[0], np.cumsum(width * (width + 1) // 2)])
    calm = np.full(len(figure.names), CALM_SD**-2)
    return Tree(
        parent=figure.parent,
        chain=chain,
        depth=depth,
        first=figure.first.astype(np.int64),
        o_column=columns.o,
        m_column=columns.m,
        low=low.astype(np.int64),
        high=high.astype(np.int64),
        start=start.astype(np.int64),
        axis_child=np.array([row.child for row in figure.axes], dtype=np.int64),
        axis_kind=np.array([row.kind for row in figure.axes], dtype=np.int64),
        axis_weight=np.array([row.sd**-2 for row in figure.axes], dtype=float),
        axis_column=columns.axis,
        calm=calm,
        tail=TAIL,
    )


def _chains(parent: Int[Array, " segment"]) -> tuple[Array, Array]:
    """Return the blocks on the way to every block, itself last, and how many before."""
    chains = [[0]]
    for i, p in enumerate(parent.tolist()):
        chains.append([*chains[p + 1], i + 1])
    table = np.full((len(chains), max(map(len, chains))), -1, dtype=np.int64)
    for i, blocks in enumerate(chains):
        table[i, : len(blocks)] = blocks
    return table, np.array([len(c) - 1 for c in chains], dtype=np.int64)
