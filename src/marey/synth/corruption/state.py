"""The recording that the corruptions change, and the log of what they did."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from marey.numerics import Array, Float, Int, geometry
from marey.synth.corruption.options import Corruption
from marey.synth.truth import CorruptionEvent, Truth


@dataclass(slots=True)
class CorruptionState:
    """A recording while it is corrupted. The corruptions change its arrays in place."""

    truth: Truth
    points: Float[Array, "frame marker 3"]
    T_world_sensor: Float[Array, "frame sensor 4 4"]
    rate: float
    options: Corruption
    seed: int
    log: list[CorruptionEvent] = field(default_factory=list)

    @property
    def sensor_position(self) -> Float[Array, "frame sensor 3"]:
        """The positions of the sensors in metres, as a view that can be written to."""
        return self.T_world_sensor[..., :3, 3]

    @property
    def sensor_rotation(self) -> Float[Array, "frame sensor 3 3"]:
        """The rotations of the sensors, as a view that can be written to."""
        return self.T_world_sensor[..., :3, :3]

    def positions(self) -> tuple[tuple[str, Array], tuple[str, Array]]:
        """Return the positions of markers and of sensors, in metres, by kind."""
        return ("marker", self.points), ("sensor", self.sensor_position)

    def items_on(
        self, subject: int, joints: Sequence[int]
    ) -> tuple[Int[Array, " marker"], Int[Array, " sensor"]]:
        """Return the markers and the sensors on some joints of a subject."""
        truth = self.truth
        marked = np.isin(truth.marker_joint, joints) & (truth.marker_subject == subject)
        sensed = np.isin(truth.sensor_joint, joints) & (truth.sensor_subject == subject)
        return np.flatnonzero(marked), np.flatnonzero(sensed)

    def rng(self, kind: str) -> np.random.Generator:
        """Return the random stream of one kind of corruption."""
        return np.random.default_rng([self.seed, *kind.encode()])

    def log_event(self, kind: str, size: float, *where: Any, **more: Any) -> None:
        """Add an event to the log.

        Args:
            kind: The option of `Corruption` that caused it.
            size: Size of the change.
            where: Item, index, first and last frame; see `CorruptionEvent`.
            more: Any other field of `CorruptionEvent`.
        """
        placed = dict(zip(("item", "index", "first", "last"), where, strict=False))
        self.log.append(CorruptionEvent(kind, size=float(size), **placed, **more))


def random_directions(rng: np.random.Generator, count: int) -> Float[Array, "count 3"]:
    """Return unit vectors, uniformly distributed on the sphere."""
    return geometry.unit_vectors(rng.normal(size=(count, 3)))
