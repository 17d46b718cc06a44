"""The most likely joint centre when both poses of every frame are noisy.

The gap x_a - R_a_b x_b - gap_a between the two centres would vanish at the true poses.
The poses that make it vanish, at the least cost in the metric of their noise, are found
together with the centres: a Gauss-Helmert model, which weighs each frame by what its
poses can tell and reaches the Cramer-Rao bound where least squares is biased.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from marey.joints.ball.frame_weights import weights_of
from marey.joints.noise import shrinkage

Array = np.ndarray

# Rounds in all, and those that weigh the frames anew: weights that never rest keep the
# iteration from resting.
MOST_ROUNDS, WEIGHING = 20, 3

# Steps below this share of the centre's own standard deviation change nothing; an
# iteration that ends with steps above the second has no answer.
STEP, ASTRAY = 1e-2, 0.3


@dataclass(frozen=True, slots=True, eq=False)
class Likely:
    """One joint, as likely as can be."""

    u: Float[Array, "6"]
    """The centres seen from both bodies' anchors."""

    information: Float[Array, "6 6"]
    """Of u, were the noise as stated and the orientations without any."""

    scale: Float[Array, ""]
    """Variance of the gaps against what the noise stated, outliers aside."""

    used: Bool[Array, " frame"]
    """Frames that have a say."""


def most_likely(
    R_a_b: Float[Array, "frame 3 3"],
    gap_a: Float[Array, "frame 3"],
    start: Float[Array, "6"],
    *,
    turn_a: Float[Array, "3 3"],
    turn_b: Float[Array, "3 3"],
    shift: float,
    free: Float[Array, "6 k"],
    robust: bool,
) -> Likely | None:
    """Return the most likely centres, or None where the iteration finds no answer.

    Args:
        R_a_b: Relative orientation of the two bodies.
        gap_a: From anchor a to anchor b, in the axes of a, in metres.
        start: First guess of the two centres.
        turn_a: Covariance of the orientation of a, in square radians.
        turn_b: Covariance of the orientation of b.
        shift: Variance per axis of `gap_a` from both positions, above 0 square metres.
        free: Orthonormal directions, in columns, along which the centres stay.
        robust: Whether frames that stand out count less.
    """
    from marey.joints.ball.gauss_helmert_kernel import (
        adjust,
        gather,
        linearise,
        squares,
    )

    n = len(R_a_b)
    w_a, w_b, m = np.zeros((3, n, 3))
    A, (P, B_a, B_b) = np.empty((n, 3, 6)), np.empty((3, n, 3, 3))
    H, g, u = np.empty((6, 6)), np.empty(6), start.copy()
    K_a, K_b, told = np.eye(3), np.eye(3), np.empty((2, 3, 3))
    weight, square, step = np.ones(n), np.empty(n), np.inf
    for round_ in range(MOST_ROUNDS):
        parts = (turn_a, turn_b, K_a, K_b, shift, A, B_a, B_b, P, m, told)
        if not linearise(R_a_b, gap_a, u, w_a, w_b, *parts):
            return None
        K_a, K_b = _stretch(turn_a, told[0]), _stretch(turn_b, told[1])
        if robust and round_ < WEIGHING:
            weight = weights_of(m, P)
        gather(A, P, m, weight, H, g)
        # Stiffness along the free directions keeps the centres where they are.
        stiff = H + np.trace(H) * free @ free.T
        if not np.isfinite(stiff).all():
            return None
        du = np.linalg.lstsq(stiff, g, rcond=1e-13)[0]
        adjust(A, B_a, B_b, P, m, du, turn_a, turn_b, w_a, w_b)
        u += du
        step = du @ stiff @ du
        # Gaps beyond what the noise stated make the centre as much less certain.
        squares(m, P, square)
        scale = max(float(weight @ square) / (3.0 * n), 1.0)
        if step < min(STEP**2 * scale, ASTRAY**2):
            break
    if not step < ASTRAY**2:
        return None
    linearise(R_a_b, gap_a, u, 0.0 * w_a, 0.0 * w_b, *parts)
    used = weight > 0.0
    squares(m, P, square)
    gather(A, P, m, used.astype(float), H, g)
    scale = float(np.sum(square[used])) / max(3.0 * np.count_nonzero(used) - 6.0, 1.0)
    return Likely(u, H, np.asarray(scale), used)


def _stretch(
    turn: Float[Array, "3 3"], told: Float[Array, "3 3"]
) -> Float[Array, "3 3"]:
    """Return by how much the best poses lengthen a body's arm.

    Gaps across an arm lengthen it, whichever way they point, as circles fitted to
    scattered points are too wide. What counts is the noise of a pose that its gap
    leaves open.

    Args:
        turn: Covariance of the orientation.
        told: What the gaps tell of it, on average.
    """
    return np.linalg.inv(shrinkage(turn - turn @ told @ turn))
