"""What naming looks at, and what it says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

Array = np.ndarray
Graph = Mapping[int, Sequence[int]]

UP = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """Bodies over time and how they hang together."""

    place: Float[Array, "frame body 3"]
    """Middle of every body, in metres; a sample of frames will do."""

    joint: Mapping[tuple[int, int], Float[Array, "frame 3"]]
    """Centre of the joint of two neighbours, smaller number first."""

    near: Graph
    """Neighbours of each body."""

    @property
    def leaves(self) -> list[int]:
        """The bodies with one neighbour."""
        return [body for body, near in self.near.items() if len(near) == 1]

    def joint_of(self, a: int, b: int) -> Float[Array, "frame 3"]:
        """Return the joint of two neighbours over time."""
        return self.joint[min(a, b), max(a, b)]

    def heights(self, up: Array) -> Float[Array, " body"]:
        """Return how far up every body usually is."""
        return np.asarray(np.nanmedian(self.place @ up, axis=0))

    def steps(self, way: Sequence[int]) -> Float[Array, " _"]:
        """Return how far along a way each of its bodies is, in metres."""
        places = self.place[:, list(way)]
        lengths = np.linalg.norm(np.diff(places, axis=1), axis=-1)
        usual = np.nan_to_num(np.nanmedian(lengths, axis=0))
        return np.concatenate([[0.0], np.cumsum(usual)])


@dataclass(frozen=True, slots=True, eq=False)
class Naming:
    """Names found, and which way is up and ahead."""

    kind: str
    """"human", "quadruped" or "hand"."""

    names: Mapping[int, str]
    """Name of each body that has a part to play; others keep their own."""

    up: Float[Array, " 3"]
    """The direction that the figure stands along, in the world."""

    sure: float
    """How well the cues on left and right agree, 0 to 1."""

    fit: float = 1.0
    """How well the bodies are where the names have them, 0 to 1."""


def path(near: Graph, start: int, end: int) -> list[int]:
    """Return the bodies from one to another along the tree, both among them."""
    before = {start: -1}
    queue = [start]
    for body in queue:
        for other in near[body]:
            if other not in before:
                before[other] = body
                queue.append(other)
    way = [end]
    while before[way[-1]] >= 0:
        way.append(before[way[-1]])
    return way[::-1]


def meeting(figure: Figure, pair: Sequence[int], outside: int) -> int:
    """Return where the ways from two bodies to one outside come together."""
    between = path(figure.near, pair[0], pair[1])
    return [b for b in path(figure.near, pair[0], outside) if b in between][-1]


def level(way: Float[Array, "frame 3"], up: Array) -> Float[Array, "frame 3"]:
    """Return unit vectors along the ground; zero where there is no direction."""
    flat = way - np.outer(way @ up, up)
    length = np.linalg.norm(flat, axis=-1, keepdims=True)
    unit = np.divide(flat, length, out=np.zeros_like(flat), where=length > 1e-9)
    return np.asarray(np.nan_to_num(unit))


def agreement(a: Float[Array, "frame 3"], b: Float[Array, "frame 3"]) -> float:
    """Return the mean over time of how far two vectors point the same way."""
    return float(np.nanmean(np.sum(a * b, axis=-1)))


def counted(name: str, count: int) -> list[str]:
    """Return one name for several bodies in a row: Tail, Tail2, Tail3."""
    return [name if i == 0 else f"{name}{i + 1}" for i in range(count)]


def head_names(count: int) -> list[str]:
    """Return the names from above the chest up to the head."""
    if count < 2:
        return ["Head"][:count]
    return [*counted("Neck", count - 1), "Head"]
