"""The frames of one pair of bodies, and what their gaps say."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.bodies import Bodies
from marey.joints.ball.frame_weights import not_spikes
from marey.joints.ball.normal_equations import Equations, seen_in

Array = np.ndarray

# Gaps below this share of the distance of the bodies are never called spikes.
HARMLESS = 1e-6

# Leaving out settles in two or three rounds; where it does not, the last will do.
ROUNDS = 6


@dataclass(frozen=True, slots=True, eq=False)
class Relative:
    """One pair of bodies over the frames that show both, in the axes of the first."""

    R_a_b: Float[Array, "frame 3 3"]
    gap_a: Float[Array, "frame 3"]
    """From the first body's anchor to the second's, in metres."""

    def residual(self, u: Float[Array, "6"]) -> Float[Array, "frame 3"]:
        """Return the gaps between the two centres, in the axes of the first body."""
        turned = np.einsum("fij,j->fi", self.R_a_b, u[3:])
        return np.asarray(u[:3] - self.gap_a - turned)

    def only(self, kept: Bool[Array, " frame"]) -> "Relative":
        """Return some of the frames."""
        return Relative(self.R_a_b[kept], self.gap_a[kept])

    def equations(self) -> Equations:
        """Return the normal equations of this pair of rotations alone."""
        n = len(self.gap_a)
        M = self.R_a_b.mean(axis=0)
        A = np.eye(6)[None].copy()
        A[0, :3, 3:], A[0, 3:, :3] = -M, -M.T
        back = np.einsum("fji,fj->i", self.R_a_b, self.gap_a) / n
        g = np.concatenate([self.gap_a.mean(axis=0), -back])[None]
        square = np.array([np.mean(np.sum(self.gap_a**2, axis=1))])
        return Equations(np.array([float(n)]), A, g, square)


class Frames:
    """All frames of all takes, from which pairs are taken one at a time."""

    def __init__(self, takes: Sequence[Bodies], anchor: Float[Array, "body 3"]) -> None:
        poses = [take.T_world_body for take in takes]
        self.T = poses[0] if len(poses) == 1 else np.concatenate(poses)
        self.seen = seen_in(self.T)
        self.anchor = anchor

    def pair(self, a: int, b: int) -> Relative:
        """Return the frames that show both bodies, whose orientations are rotations."""
        from marey.joints.ball.gauss_helmert_kernel import relative_poses

        rows = np.flatnonzero(self.seen[:, a] & self.seen[:, b])
        R_a_b, gap_a = np.empty((len(rows), 3, 3)), np.empty((len(rows), 3))
        ends = self.anchor[a], self.anchor[b]
        relative_poses(self.T, rows, a, b, *ends, R_a_b, gap_a)
        return Relative(R_a_b, gap_a)

    def gaps(self, a: int, b: int, u: Float[Array, "6"]) -> Float[Array, "frame 3"]:
        """Return the gaps between two centres in the world, of any orientations."""
        A, B = self.T[:, a, :3], self.T[:, b, :3]
        point_a, point_b = self.anchor[a] + u[:3], self.anchor[b] + u[3:]
        gaps = A[..., 3] - B[..., 3]
        gaps += np.einsum("fij,j->fi", A[..., :3], point_a)
        gaps -= np.einsum("fij,j->fi", B[..., :3], point_b)
        return np.asarray(gaps[self.seen[:, a] & self.seen[:, b]])


def anchored(
    T_world_body: Float[Array, "frame body 4 4"], anchor: Float[Array, "body 3"]
) -> Float[Array, "frame body 4 4"]:
    """Return the poses with each body's origin moved to its anchor."""
    if not anchor.any():
        return T_world_body
    moved = T_world_body.copy()
    moved[..., :3, 3] += np.einsum("fbij,bj->fbi", T_world_body[..., :3, :3], anchor)
    return moved


def without_spikes(relative: Relative, u: Float[Array, "6"]) -> Bool[Array, " frame"]:
    """Return the frames whose gap does not stand out from those around it.

    Each round leaves spikes out and fits again, until the same frames stay.
    """
    distance = np.sqrt(np.mean(np.sum(relative.gap_a**2, axis=1)))
    floor = float(HARMLESS * distance) ** 2
    kept = np.ones(len(relative.gap_a), dtype=bool)
    for _ in range(ROUNDS):
        before, kept = kept, not_spikes(relative.residual(u), floor)
        if np.array_equal(before, kept):
            break
        part = relative.only(kept).equations()
        u = np.linalg.lstsq(part.A[0], part.g[0], rcond=1e-10)[0]
    return kept


def correlation_of(residual: Float[Array, "frame 3"]) -> float:
    """Return how many frames make one independent gap, 1 or more.

    One plus twice the sum of the autocorrelations, up to the first that is not
    distinct from none.
    """
    n = len(residual)
    if n < 8:
        return 1.0
    size = 1 << (2 * n - 1).bit_length()
    power = np.abs(np.fft.rfft(residual, size, axis=0)) ** 2
    auto = np.fft.irfft(power.sum(axis=1), size)[: n // 4]
    if not auto[0] > 0.0:
        return 1.0
    auto = auto / auto[0]
    end = int(np.argmax(auto < 2.0 / np.sqrt(n)))
    last = end if end > 0 else len(auto)
    return max(1.0, float(1.0 + 2.0 * auto[1:last].sum()))


def nearest_pairs(
    pair: Int[Array, "pair 2"], residual: Float[Array, " pair"], per_body: int
) -> Int[Array, " row"]:
    """Return the rows of the pairs that fit best, so many for each body."""
    chosen = set()
    for body in np.unique(pair):
        mine = np.flatnonzero((pair == body).any(axis=1) & np.isfinite(residual))
        best = mine[np.argsort(residual[mine], kind="stable")]
        chosen |= set(best[:per_body].tolist())
    return np.array(sorted(chosen), dtype=np.int64)
