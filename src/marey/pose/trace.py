"""Poses of all frames of a take, as the solvers exchange them."""

from dataclasses import dataclass

import numpy as np

from marey.numerics import Array, Float, Int, geometry

STATISTICS = ("cost", "weight seen", "robust weight", "steps")
"""Columns of `PoseTrace.info` before the information on the blocks."""


@dataclass(frozen=True, slots=True, eq=False)
class PoseTrace:
    """Poses and statistics of all frames of a take."""

    q: Float[Array, "frame node 4"]
    """Rotation of every node in its parent, as quaternions (wxyz)."""

    root: Float[Array, "frame 3"]
    """Position of the root, in metres."""

    info: Float[Array, "frame number"]
    """Statistics of the solver: cost, weight of all positions seen, the same after
    robust weighting, and steps; then the `information`."""

    @property
    def information(self) -> Float[Array, "frame block"]:
        """Information of each frame's targets on the root's position, then the nodes.

        In 1 / m^2 and 1 / rad^2.
        """
        return self.info[:, len(STATISTICS) :]

    @classmethod
    def empty(cls, n_frames: int, n_nodes: int) -> "PoseTrace":
        """Return a trace to be written, its statistics zero."""
        return cls(
            np.empty((n_frames, n_nodes, 4)),
            np.empty((n_frames, 3)),
            np.zeros((n_frames, len(STATISTICS) + n_nodes + 1)),
        )

    def continuous(self) -> "PoseTrace":
        """Return the same poses, with quaternions that do not change their sign."""
        return PoseTrace(geometry.quat_continuous(self.q), self.root, self.info)

    def at(self, frames: slice | Int[Array, " some"]) -> "PoseTrace":
        """Return the poses of some frames."""
        return PoseTrace(self.q[frames], self.root[frames], self.info[frames])

    def reversed(self) -> "PoseTrace":
        """Return the poses in the other direction of time."""
        return self.at(slice(None, None, -1)).continuous()

    def copy(self) -> "PoseTrace":
        """Return a copy whose arrays can be written."""
        return PoseTrace(self.q.copy(), self.root.copy(), self.info.copy())

    def replace_frames(self, frames: Int[Array, " some"], other: "PoseTrace") -> None:
        """Write some frames of another trace into this one."""
        self.q[frames] = other.q[frames]
        self.root[frames] = other.root[frames]
        self.info[frames] = other.info[frames]
