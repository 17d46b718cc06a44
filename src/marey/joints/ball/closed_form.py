"""The closed-form solution of all pairs: least squares, and freed of its bias."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.joints.ball.normal_equations import Equations
from marey.joints.noise import PoseNoise

Array = np.ndarray

# Eigenvalues below this are rounding: a swing of about 1e-5 rad.
RANK = 1e-10

# The noise is known to about a fifth. Motion that stands out of it by less than that,
# and by less than three times its scatter, is no motion.
DOUBT, SIGMAS = 0.2, 3.0

FREE = 10.0
"""Standard deviation, in metres, given to directions that the motion leaves free."""


@dataclass(frozen=True, slots=True, eq=False)
class System:
    """Normal equations with the noise of the orientations taken out."""

    raw: Equations
    A: Float[Array, "pair 6 6"]
    g: Float[Array, "pair 6"]
    value: Float[Array, "pair 6"]
    """Eigenvalues of A, ascending."""

    vector: Float[Array, "pair 6 6"]
    """Eigenvectors of A, in columns."""


@dataclass(frozen=True, slots=True, eq=False)
class Closed:
    """Joint centres of pairs, and how well the motion determines them."""

    u: Float[Array, "pair 6"]
    """The centres seen from both bodies' anchors."""

    residual: Float[Array, " pair"]
    free: Bool[Array, "pair 3"]
    """Which of the three weakest directions the motion leaves free."""

    sd: Float[Array, "pair 3"]
    """Predicted standard deviation of the centre along them, in metres."""

    covariance: Float[Array, "pair 6 6"]


def shrunk_back(
    A: Float[Array, "pair 6 6"], K_a: Float[Array, "pair 3 3"], K_b: Array
) -> Float[Array, "pair 6 6"]:
    """Return information about (center_a, center_b) without what noise made up.

    Noise shortens the mean of R_a^T R_b, which reads as motion. Dividing by the
    expected shrinkage undoes it.
    """
    corrected = A.copy()
    left, right = np.linalg.inv(K_a), np.linalg.inv(K_b)
    corrected[:, :3, 3:] = np.swapaxes(left, 1, 2) @ A[:, :3, 3:] @ right
    corrected[:, 3:, :3] = np.swapaxes(corrected[:, :3, 3:], 1, 2)
    return corrected


def system_of(raw: Equations, noise: PoseNoise, pair: Int[Array, "pair 2"]) -> System:
    """Return the equations of pairs corrected for the noise of their orientations."""
    K_a, K_b = (noise.shrinkage()[body] for body in pair.T)
    A = shrunk_back(raw.A, K_a, K_b)
    g = raw.g.copy()
    g[:, :3] = np.linalg.solve(np.swapaxes(K_a, 1, 2), g[:, :3, None])[..., 0]
    g[:, 3:] = np.linalg.solve(np.swapaxes(K_b, 1, 2), g[:, 3:, None])[..., 0]
    return _decomposed(raw, A, g)


def plain_system(raw: Equations) -> System:
    """Return the equations as they are (OBrien2000)."""
    return _decomposed(raw, raw.A, raw.g)


def _decomposed(raw: Equations, A: Array, g: Array) -> System:
    known = np.isfinite(A).all(axis=(1, 2))
    value, vector = np.full((len(A), 6), np.nan), np.full((len(A), 6, 6), np.nan)
    value[known], vector[known] = np.linalg.eigh(A[known])
    return System(raw, A, g, value, vector)


def solve(
    system: System, *, max_sd: float, correlation: Float[Array, " pair"] | float = 1.0
) -> Closed:
    """Return the centres of pairs, of minimum norm where the motion leaves them free.

    A direction is free when the centre's predicted standard deviation along it is
    larger than `max_sd`; the paper asks whether a singular value is near zero, which
    says nothing about noise or the number of frames.

    Args:
        system: The equations.
        max_sd: In metres.
        correlation: Frames per independent residual, 1 or more.
    """
    raw, value, vector = system.raw, system.value, system.vector
    known = np.where(value > RANK, 1.0 / np.where(value > RANK, value, 1.0), 0.0)
    along = np.einsum("pij,pi->pj", vector, system.g)
    residual = raw.rms(np.einsum("pij,pj->pi", vector, known * along))
    count = raw.count
    variance = residual**2 * count / np.maximum(3.0 * count - 6.0, 1.0) * correlation
    sd = predicted_sd(system, variance / np.maximum(count, 1.0))
    # A pair that is not joined at all has no joint to be unsure of.
    unsure = (sd > max_sd) & (residual <= max_sd)[:, None]
    free = unsure | ~np.isfinite(sd)
    gain = known.copy()
    gain[:, :3][free] = 0.0
    u = np.einsum("pij,pj->pi", vector, gain * along)  # Eq. 13
    spread = np.einsum("pij,pj,pkj->pik", vector, gain, vector)
    covariance = spread @ raw.A @ spread
    covariance *= (variance / np.maximum(count, 1.0))[:, None, None]
    return Closed(u, raw.rms(u), free, sd, covariance)


def predicted_sd(
    system: System, variance: Float[Array, " pair"]
) -> Float[Array, "pair 3"]:
    """Return the centre's predicted standard deviation along the weakest directions.

    Infinite where the motion seen is no more than noise makes.

    Args:
        system: The equations.
        variance: Of one axis of the gap, over the number of independent frames.
    """
    weak = system.vector[:, :, :3]
    seen = np.einsum("pik,pij,pjk->pk", weak, system.raw.A, weak)
    value = system.value[:, :3]
    made_up = np.maximum(seen - value, 0.0)
    scatter = SIGMAS / np.sqrt(np.maximum(system.raw.count, 1.0))
    sure = value - made_up * (DOUBT + scatter[:, None])
    sure = np.where((sure > 0.0) & (value > RANK), sure, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Half of a unit step of (center_a, center_b) is a step in each body.
        sd = np.sqrt(0.5 * variance[:, None] * np.maximum(seen, 0.0)) / sure
    return np.where(sure > 0.0, sd, np.inf)


def at_minimum_norm(
    u: Float[Array, "pair 6"],
    covariance: Float[Array, "pair 6 6"],
    vector: Float[Array, "pair 6 6"],
    free: Bool[Array, "pair 3"],
    sd: Float[Array, "pair 3"],
) -> tuple[Float[Array, "pair 6"], Float[Array, "pair 6 6"]]:
    """Return points nearest to both bodies' origins, and their covariance.

    Along a free direction the answer is a choice. Its variance there is what the data
    say plus the square of the way it was moved, at most `FREE` squared.
    """
    weak = np.where(free[:, None, :], vector[:, :, :3], 0.0)
    way = np.einsum("pik,pi->pk", weak, u)
    u = u - np.einsum("pik,pk->pi", weak, way)
    wide = np.minimum(2.0 * np.where(free, sd, 0.0) ** 2 + way**2, 2.0 * FREE**2)
    return u, covariance + np.einsum("pik,pk,pjk->pij", weak, wide, weak)
