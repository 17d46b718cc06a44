"""How well joints are known after a calibration."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from marey.calibration.noise_model import efficiency
from marey.calibration.solver.levenberg_marquardt import equations, rests
from marey.calibration.solver.loop import Fit

Array = np.ndarray

SKIN = 1.5
"""Factor on standard deviations where skin moves, found on recordings made with known
skin motion: a walk is worth a little less than one sample."""


@dataclass(frozen=True, slots=True, eq=False)
class Doubt:
    """Covariance of all joints together."""

    matrix: Float[Array, "shared shared"]
    first: dict[int, int]
    """Where the three rows of each segment's joint begin."""

    def between(self, i: int, j: int) -> Float[Array, "3 3"]:
        """Return the covariance of two segments' joints; the root's is zero."""
        if i not in self.first or j not in self.first:
            return np.zeros((3, 3))
        a, b = self.first[i], self.first[j]
        return np.asarray(self.matrix[a : a + 3, b : b + 3])


def doubt_of(fit: Fit) -> Doubt:
    """Return the covariance of the joints in square metres.

    The inverse of the frames' own equations, shrunk to the samples that they are worth,
    and of what is known beforehand: (A / T + A_prior)^-1.
    """
    e, free = [], []
    for session in range(len(fit.poses)):
        rest, weight, _ = rests(fit.figure, fit.shape, fit.poses, session)
        far = np.sum(rest**2, axis=-1) / fit.shape.noise[session] ** 2
        e.append(far[weight > 0.0])
        free.append(3.0 - fit.leverage[session][weight > 0.0])
    spent = fit.figure.columns.count
    loss = efficiency(np.concatenate(e), np.concatenate(free), spent)
    system = equations(
        fit.figure,
        fit.shape,
        fit.poses,
        fit.prior,
        1.0,
        0.0,
        data=1.0 / (fit.temper * loss),
    )
    matrix = np.linalg.inv(system.A)
    matrix *= fit.white + (1.0 - fit.white) * SKIN**2
    columns = fit.figure.columns
    at = {int(c): n for n, c in enumerate(columns.shared)}
    first = {i: at[int(columns.o[i])] for i in range(1, len(fit.figure.names))}
    for i, more in fit.start.unknown.items():
        mine = slice(first[i], first[i] + 3)
        matrix[mine, mine] += more
    return Doubt(0.5 * (matrix + matrix.T), first)
