r"""The cost of a joint by its distances to markers, and its minimum.

DeAguiar2006, Eqs. 2-4, for the joint c and the markers x of both bodies:

.. math:: \tfrac12 \sum_m \left( \mathrm{var}_f |c - x_{fm}|
    + \alpha \, \mathrm{mean}_f |c - x_{fm}| \right),

with its gradient and Hessian.
"""

import numpy as np
from jaxtyping import Bool, Float

Array = np.ndarray
Points = Float[Array, "frame marker 3"]

MIN_DISTANCE_SHARE = 1e-9
"""Smallest distance to a marker over the extent of the markers. A joint exactly at a
marker has no direction to it. Chosen by hand."""

MAX_LBFGS_STEPS = 200
"""Largest number of L-BFGS-B iterations, which find the valley. Chosen by hand."""

LBFGS_GRADIENT = 1e-7
"""Gradient, over the extent of the markers, at which L-BFGS-B stops. Chosen by hand."""

MAX_NEWTON_STEPS = 12
"""Largest number of Newton steps, which find the bottom of the valley. Chosen by
hand."""

MIN_CURVATURE_SHARE = 1e-12
"""Curvature over the largest one below which a direction is flat."""


class DistanceCost:
    """The cost of joints between two bodies, in the axes of one of them.

    Args:
        points: Markers of both bodies in the axes of the first, in metres; NaN where
            occluded.
        on_first: Which markers are on the first body, and so hardly move.
    """

    def __init__(self, points: Points, on_first: Bool[Array, " marker"]) -> None:
        seen = np.isfinite(points).all(axis=-1)
        ever_seen = seen.any(axis=0)
        seen, self.on_first = seen[:, ever_seen], on_first[ever_seen]
        x = np.where(seen[..., None], points[:, ever_seen], 0.0)
        self.x = x.transpose(2, 1, 0)
        self.weight = (seen / seen.sum(axis=0)).T
        self.mean = np.einsum("kmf,mf->mk", self.x, self.weight)
        center = self.mean.mean(axis=0)
        self.extent = float(np.sqrt(np.mean(np.sum((self.mean - center) ** 2, axis=1))))

    def _distances(self, center: Array) -> tuple[Array, Array, Array]:
        """Return distances, their means by marker, and directions from the markers."""
        arm = center[:, None, None] - self.x
        d = np.sqrt(np.einsum("kmf,kmf->mf", arm, arm))
        d = np.maximum(d, MIN_DISTANCE_SHARE * self.extent)
        return d, np.einsum("mf,mf->m", d, self.weight), arm / d  # Eq. 4

    def value_and_gradient(
        self, center: Float[Array, "3"], alpha: float
    ) -> tuple[float, Float[Array, "3"]]:
        """Return the cost of a joint in square metres, and its gradient in metres.

        Args:
            center: The joint in the body's axes.
            alpha: Weight of the mean distance, in metres.
        """
        d, mean, direction = self._distances(center)
        error = d - mean[:, None]
        variance = np.einsum("mf,mf,mf->m", error, error, self.weight)  # Eq. 3
        value = 0.5 * np.sum(variance + alpha * mean)  # Eq. 2
        derivative = self.weight * (error + 0.5 * alpha)
        return float(value), np.einsum("kmf,mf->k", direction, derivative)

    def hessian(self, center: Array, alpha: float) -> Float[Array, "3 3"]:
        """Return the second derivatives of the cost."""
        d, mean, direction = self._distances(center)
        mean_direction = np.einsum("kmf,mf->mk", direction, self.weight)
        curvature = self.weight * (0.5 * alpha - mean[:, None]) / d
        H = (len(mean) + curvature.sum()) * np.eye(3)
        H = H - mean_direction.T @ mean_direction
        return np.asarray(
            H - np.einsum("kmf,lmf,mf->kl", direction, direction, curvature)
        )

    def start(self) -> Float[Array, "3"]:
        """Return the point midway between the nearest markers of the two bodies."""
        first, second = self.mean[self.on_first], self.mean[~self.on_first]
        if not len(first) or not len(second):
            return np.asarray(self.mean.mean(axis=0))
        distance = np.linalg.norm(first[:, None] - second, axis=-1)
        i, j = np.unravel_index(distance.argmin(), distance.shape)
        return np.asarray(0.5 * (first[i] + second[j]))

    def minimum(
        self, alpha: float, guess: Float[Array, "3"] | None = None
    ) -> Float[Array, "3"]:
        """Return the point of least cost.

        The cost has several local minima, and the paper does not say where to start.
        Here the search starts midway between the two nearest markers and at a guess,
        and the lower of the two minima counts.
        """
        starts = [self.start()]
        if guess is not None and np.isfinite(guess).all():
            starts.append(guess)
        ends = [self._descend(start, alpha) for start in starts]
        return min(ends, key=lambda center: self.value_and_gradient(center, alpha)[0])

    def _descend(self, start: Array, alpha: float) -> Array:
        """Return the local minimum by L-BFGS-B and Newton steps."""
        from scipy.optimize import minimize

        size = max(self.extent, np.finfo(float).tiny)

        def scaled_cost(z: Array) -> tuple[float, Array]:
            value, gradient = self.value_and_gradient(start + size * z, alpha)
            return value / size**2, gradient / size

        found = minimize(
            scaled_cost,
            np.zeros(3),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": MAX_LBFGS_STEPS, "ftol": 0.0, "gtol": LBFGS_GRADIENT},
        )
        return self._newton(start + size * found.x, alpha)

    def _newton(self, center: Array, alpha: float) -> Array:
        """Return the centre after Newton steps, as long as they halve the gradient."""
        _, gradient = self.value_and_gradient(center, alpha)
        for _ in range(MAX_NEWTON_STEPS):
            moved = center - _inverse(self.hessian(center, alpha)) @ gradient
            _, after = self.value_and_gradient(moved, alpha)
            if not np.linalg.norm(after) < 0.5 * np.linalg.norm(gradient):
                break
            center, gradient = moved, after
        return center

    def influence(self, center: Array, alpha: float) -> Float[Array, "frame 3"]:
        """Return the influence of each frame on a centre of least cost, in metres."""
        d, mean, direction = self._distances(center)
        mean_direction = np.einsum("kmf,mf->km", direction, self.weight)
        error = self.weight * (d - mean[:, None])
        score = np.einsum("kmf,mf->fk", direction - mean_direction[..., None], error)
        inverse = _inverse(self.hessian(center, alpha))
        return np.asarray(-(score - score.mean(axis=0)) @ inverse)

    def penalty_bias(self, center: Array) -> Float[Array, "3"]:
        """Return the displacement of a centre of least cost due to the penalty."""
        return np.asarray(center - self._newton(center, 0.0))


def _inverse(H: Float[Array, "3 3"]) -> Float[Array, "3 3"]:
    return np.asarray(np.linalg.pinv(H, rcond=MIN_CURVATURE_SHARE, hermitian=True))
