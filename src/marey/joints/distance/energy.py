"""The cost of a joint by its distances to markers, and where it is least.

DeAguiar2006, Eqs. 2-4, with first and second derivatives.
"""

import numpy as np
from jaxtyping import Bool, Float

Array = np.ndarray
Points = Float[Array, "frame marker 3"]

# A joint in a marker has no direction to it: distances stay above this share of the
# markers' extent.
NEAREST = 1e-9

# L-BFGS-B finds the valley, up to this share of a slope of one; from there Newton steps
# are at the bottom sooner.
STEPS, SETTLED, POLISHING = 200, 1e-7, 12

# Directions whose curvature is below this share of the largest are flat.
FLAT = 1e-12


class Paths:
    """The markers of two bodies as one of them sees them.

    Args:
        points: Positions in the body's axes, in metres; NaN where unseen.
        own: Which markers are the body's own, and so hardly move.
    """

    def __init__(self, points: Points, own: Bool[Array, " marker"]) -> None:
        seen = np.isfinite(points).all(axis=-1)
        shown = seen.any(axis=0)
        self.seen, self.own = seen[:, shown], own[shown]
        self.x = np.where(self.seen[..., None], points[:, shown], 0.0).transpose(
            2, 1, 0
        )
        self.weight = (self.seen / self.seen.sum(axis=0)).T
        self.mean = np.einsum("kmf,mf->mk", self.x, self.weight)
        middle = self.mean.mean(axis=0)
        self.extent = float(np.sqrt(np.mean(np.sum((self.mean - middle) ** 2, axis=1))))

    def _ways(self, center: Array) -> tuple[Array, Array, Array]:
        """Return distances, their means by marker, and unit ways from the markers."""
        way = center[:, None, None] - self.x
        d = np.sqrt(np.einsum("kmf,kmf->mf", way, way))
        d = np.maximum(d, NEAREST * self.extent)
        return d, np.einsum("mf,mf->m", d, self.weight), way / d  # Eq. 4

    def energy(
        self, center: Float[Array, "3"], alpha: float
    ) -> tuple[float, Float[Array, "3"]]:
        """Return the cost of a joint in square metres, and its gradient.

        Args:
            center: The joint in the body's axes.
            alpha: What a metre of mean distance costs, in metres.
        """
        d, mean, unit = self._ways(center)
        off = d - mean[:, None]
        variance = np.einsum("mf,mf,mf->m", off, off, self.weight)  # Eq. 3
        value = 0.5 * np.sum(variance + alpha * mean)  # Eq. 2
        push = self.weight * (off + 0.5 * alpha)
        return float(value), np.einsum("kmf,mf->k", unit, push)

    def curvature(self, center: Array, alpha: float) -> Float[Array, "3 3"]:
        """Return the second derivatives of the cost."""
        d, mean, unit = self._ways(center)
        toward = np.einsum("kmf,mf->mk", unit, self.weight)
        bend = self.weight * (0.5 * alpha - mean[:, None]) / d
        H = (len(mean) + bend.sum()) * np.eye(3) - toward.T @ toward
        return np.asarray(H - np.einsum("kmf,lmf,mf->kl", unit, unit, bend))

    def start(self) -> Float[Array, "3"]:
        """Return the middle between the two nearest markers of the two bodies."""
        mine, theirs = self.mean[self.own], self.mean[~self.own]
        if not len(mine) or not len(theirs):
            return np.asarray(self.mean.mean(axis=0))
        away = np.linalg.norm(mine[:, None] - theirs, axis=-1)
        i, j = np.unravel_index(away.argmin(), away.shape)
        return np.asarray(0.5 * (mine[i] + theirs[j]))

    def minimum(
        self, alpha: float, guess: Float[Array, "3"] | None = None
    ) -> Float[Array, "3"]:
        """Return the point of least cost.

        The cost has several valleys, and the paper does not say where to start. Here
        it is between the two nearest markers, and at a guess.
        """
        starts = [self.start()]
        if guess is not None and np.isfinite(guess).all():
            starts.append(guess)
        ends = [self._descended(start, alpha) for start in starts]
        return min(ends, key=lambda center: self.energy(center, alpha)[0])

    def _descended(self, start: Array, alpha: float) -> Array:
        from scipy.optimize import minimize

        size = max(self.extent, np.finfo(float).tiny)

        def cost(z: Array) -> tuple[float, Array]:
            value, slope = self.energy(start + size * z, alpha)
            return value / size**2, slope / size

        found = minimize(
            cost,
            np.zeros(3),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": STEPS, "ftol": 0.0, "gtol": SETTLED},
        )
        return self._polished(start + size * found.x, alpha)

    def _polished(self, center: Array, alpha: float) -> Array:
        """Return the centre after Newton steps, as long as they help."""
        _, slope = self.energy(center, alpha)
        for _ in range(POLISHING):
            H = self.curvature(center, alpha)
            moved = center - _inverse(H) @ slope
            _, after = self.energy(moved, alpha)
            if not np.linalg.norm(after) < 0.5 * np.linalg.norm(slope):
                break
            center, slope = moved, after
        return center

    def doubt(
        self, center: Array, alpha: float
    ) -> tuple[Float[Array, "frame 3"], Float[Array, "3"]]:
        """Return how far the noise of each frame, and the penalty, moved the centre."""
        d, mean, unit = self._ways(center)
        toward = np.einsum("kmf,mf->km", unit, self.weight)
        off = self.weight * (d - mean[:, None])
        push = np.einsum("kmf,mf->fk", unit - toward[..., None], off)
        gain = _inverse(self.curvature(center, alpha))
        moves = -(push - push.mean(axis=0)) @ gain
        return moves, center - self._polished(center, 0.0)


def _inverse(H: Float[Array, "3 3"]) -> Float[Array, "3 3"]:
    return np.asarray(np.linalg.pinv(H, rcond=FLAT, hermitian=True))
