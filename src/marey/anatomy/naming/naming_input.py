"""What the naming of bodies starts from, what it returns, and helpers of all kinds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from marey.anatomy.names import (
    FOOT,
    HAND,
    HEAD,
    LOWER_ARM,
    LOWER_LEG,
    NECK,
    SIDES,
    UPPER_ARM,
    UPPER_LEG,
)
from marey.numerics import Array, Float, geometry
from marey.numerics.robust import column_medians

Graph = Mapping[int, Sequence[int]]
"""Neighbours of each body in the tree."""

UP = np.array([0.0, 0.0, 1.0])

LEG_PARTS, ARM_PARTS = (UPPER_LEG, LOWER_LEG, FOOT), (UPPER_ARM, LOWER_ARM)
"""Parts of limbs without which a person is not whole; hands often have no markers."""

MIN_SIDE_CONFIDENCE = 0.3
"""Mean cosine with the direction to the left, 0 to 1, from which a side is clear.
Higher leaves more limbs without a side and rejects more figures that lie or lack arms.
Chosen by hand."""

MIN_HORIZONTAL_M = 1e-9
"""Horizontal length below which a vector has no heading, in metres. Guards a
division."""


@dataclass(frozen=True, eq=False)
class NamingInput:
    """Positions of bodies and joints over time, and the tree that connects them."""

    position: Float[Array, "frame body 3"]
    """Origin of every body, in metres; a sample of the frames is enough."""

    joint: Mapping[tuple[int, int], Float[Array, "frame 3"]]
    """Centre of the joint of two neighbours, in metres; the smaller index first."""

    neighbours: Graph

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamingInput) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    @cached_property
    def _content(self) -> tuple[object, ...]:
        """What makes two figures equal."""
        joint = [(pair, center.tobytes()) for pair, center in self.joint.items()]
        neighbours = [(body, tuple(near)) for body, near in self.neighbours.items()]
        return self.position.tobytes(), *joint, *neighbours

    @property
    def leaves(self) -> list[int]:
        """The bodies with one neighbour."""
        return [body for body, others in self.neighbours.items() if len(others) == 1]

    def low_leaves(self, up: Float[Array, " 3"]) -> list[int]:
        """Return the leaves in the lower half of the figure, the lowest first."""
        height = self.heights(up)
        bodies = height[list(self.neighbours)]
        leaves = sorted(self.leaves, key=lambda body: float(height[body]))
        middle = 0.5 * (bodies.min() + bodies.max())
        return [leaf for leaf in leaves if height[leaf] < middle]

    def heights(self, up: Float[Array, " 3"]) -> Float[Array, " body"]:
        """Return the median height of every body along a direction, in metres."""
        return column_medians(self.position @ up)

    def arc_lengths(self, path: Sequence[int]) -> Float[Array, " _"]:
        """Return the distance of each body from the first one along a path, in metres.

        The sum of the median distances from body to body.
        """
        steps = [self._median_distance(*pair) for pair in pairwise(path)]
        return np.concatenate([[0.0], np.cumsum(steps)])

    def _median_distance(self, a: int, b: int) -> float:
        """Return the median distance of two bodies in metres; 0 if it is not known."""
        if (a, b) not in self._median_distances:
            step = self.position[:, a] - self.position[:, b]
            median = column_medians(geometry.lengths(step)[:, None])
            self._median_distances[a, b] = float(np.nan_to_num(median[0]))
        return self._median_distances[a, b]

    @cached_property
    def _median_distances(self) -> dict[tuple[int, int], float]:
        return {}

    def joint_distances(self, path: Sequence[int]) -> Float[Array, "_ _"]:
        """Return the distances between the joints along a path, in metres.

        Medians over time; NaN where a joint is not known.
        """
        unknown = np.full((len(self.position), 3), np.nan)
        joints = [self.joint.get((min(p), max(p)), unknown) for p in pairwise(path)]
        points = np.stack(joints, axis=1) if joints else unknown[:, :0]
        distance = geometry.lengths(points[:, :, None] - points[:, None])
        flat = column_medians(distance.reshape(len(distance), -1))
        return np.asarray(flat.reshape(distance.shape[1:]))

    def path(self, start: int, end: int) -> list[int]:
        """Return the bodies from one to another along the tree, both included."""
        return find_path(self.neighbours, start, end)

    def merge(self, kept: int, merged: int) -> "NamingInput":
        """Return the figure with two neighbours as one body, midway between them."""
        position = self.position.copy()
        position[:, kept] = 0.5 * (position[:, kept] + position[:, merged])
        number = {body: kept if body == merged else body for body in self.neighbours}
        neighbours = {
            body: [number[other] for other in others if {body, other} != {kept, merged}]
            for body, others in self.neighbours.items()
        }
        neighbours[kept] += neighbours.pop(merged)
        joint = {
            (min(number[a], number[b]), max(number[a], number[b])): center
            for (a, b), center in self.joint.items()
            if {a, b} != {kept, merged}
        }
        return NamingInput(position, joint, neighbours)

    def junction(self, pair: Sequence[int], outside: int) -> int:
        """Return the body where the paths of two bodies to a third one join."""
        between = self.path(pair[0], pair[1])
        return [body for body in self.path(pair[0], outside) if body in between][-1]


@dataclass(frozen=True, slots=True, eq=False)
class Naming:
    """Names of the bodies of a figure, and how certain they are."""

    kind: str
    """"human", "quadruped" or "hand"."""

    names: Mapping[int, str]
    """Name of each body that was recognised; other bodies keep their names."""

    up: Float[Array, " 3"]
    """Direction in the world that the figure stands along."""

    side_confidence: float
    """Agreement of the cues on left and right, 0 to 1."""

    fit: float = 1.0
    """Agreement of the bodies' positions with those expected of their names, 0 to 1."""

    unsure: frozenset[int] = frozenset()
    """Bodies whose names are guesses: good enough to compare trees, not to be given."""

    @property
    def is_whole_person(self) -> bool:
        """Whether a person lacks no part of a leg, nor of an arm if it has arms."""
        found = set(self.names.values())
        has_arms = any(name.endswith(ARM_PARTS) for name in found)
        parts = LEG_PARTS + ARM_PARTS if has_arms else LEG_PARTS
        return self.kind == "human" and {s + p for s in SIDES for p in parts} <= found

    def lacks_part_near(self, bodies: Sequence[int]) -> bool:
        """Return whether one of some bodies is of a limb that lacks a part."""
        found = set(self.names.values())
        near = {self.names.get(body, "") for body in bodies}
        limbs = (
            {side + part for part in parts}
            for side in SIDES
            for parts in (LEG_PARTS, (*ARM_PARTS, HAND))
        )
        return any(limb & near and not limb <= found for limb in limbs)


def find_path(neighbours: Graph, start: int, end: int) -> list[int]:
    """Return the bodies from one to another along the tree, by breadth-first search."""
    previous = {start: -1}
    queue = [start]
    for body in queue:
        for other in neighbours[body]:
            if other not in previous:
                previous[other] = body
                queue.append(other)
    path = [end]
    while previous[path[-1]] >= 0:
        path.append(previous[path[-1]])
    return path[::-1]


def heading(vectors: Float[Array, "frame 3"], up: Array) -> Float[Array, "frame 3"]:
    """Return the horizontal unit vectors; zero where a vector has no heading."""
    horizontal = vectors - np.outer(vectors @ up, up)
    length = np.linalg.norm(horizontal, axis=-1, keepdims=True)
    unit = np.divide(
        horizontal,
        length,
        out=np.zeros_like(horizontal),
        where=length > MIN_HORIZONTAL_M,
    )
    return np.asarray(np.nan_to_num(unit))


def mean_cosine(a: Float[Array, "frame 3"], b: Float[Array, "frame 3"]) -> float:
    """Return the mean dot product of two (unit) vectors over the frames that show both.

    A vector of length zero is not known; 0 if no frame shows both.
    """
    product = np.sum(a * b, axis=-1)
    known = a.any(axis=-1) & b.any(axis=-1) & np.isfinite(product)
    return float(product[known].mean()) if known.any() else 0.0


def number_names(name: str, count: int) -> list[str]:
    """Return one name for several bodies in a row: Tail, Tail2, Tail3."""
    return [name if i == 0 else f"{name}{i + 1}" for i in range(count)]


def head_names(count: int) -> list[str]:
    """Return the names of the bodies above the chest, up to the head."""
    if count < 2:
        return [HEAD][:count]
    return [*number_names(NECK, count - 1), HEAD]
