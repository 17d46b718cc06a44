"""Edge costs of the spanning forest: one number per candidate joint, less is better.

OBrien2000, Sec. 3.3, weights the edge between two bodies by the residual of their
joint. That is the weight "residual". The other weights relate the residual to the noise
of the two bodies, or replace it by quantities that bodies of few markers have, too.
"""

from collections.abc import Callable, Mapping

import numpy as np

from marey.errors import OptionError
from marey.joint_fits import JointFits, smallest_per_body
from marey.numerics import Array, Bool, Float
from marey.numerics.robust import finite_median
from marey.numerics.thresholds import FEW, OUTLIER_SD

PairValues = Float[Array, " pair"]
"""One number for each candidate joint."""

TINY_SLOPE = 1e-4
"""Metres of residual that are added, as the root of a sum of squares, per metre of
distance between a joint and its bodies. It decides between joints that fit equally
well; higher prefers near joints more. Far below any noise."""

RELATIVE_ROUNDING = 1e-7
"""Rounding error of a residual, as a fraction of the distance between a joint and its
bodies. Higher hides small residuals. Chosen by hand."""

MIN_LENGTH_M = 1e-9
"""Rounding error of a residual, and smallest scale of distances, in metres. Higher
hides small residuals. Chosen by hand."""

MIN_NOISE_SHARE = 0.5
"""Smallest noise of a pair, as a fraction of the best residual of a typical body. Skin
motion and play in the joints are no part of a sensor's noise. Higher makes residuals
count less. Chosen by hand."""

EXCESS_TOLERANCE = 1.25
"""Variance that a pair may show, as a multiple of the excess variances of its two
bodies. Higher tolerates looser bodies. Chosen by hand."""

MAX_EXCESS_RATIO = 900.0
"""Largest variance that the excess variances of two bodies explain, as a multiple of
the median noise variance. Higher tolerates looser bodies. Chosen by hand; without it
two thighs of a recording by Motive are joined to the abdomen."""

BASE_DISTANCE_EXPONENT = 0.05
"""Exponent of the distance in every cost. Higher prefers near joints more. Chosen by
hand."""

STILL_DISTANCE_EXPONENT = 0.3
"""Exponent of the distance that is added for a pair without relative motion, whose
residual is small wherever the joint is. Higher prefers near joints more. Chosen by
hand."""

LOOSE_DISTANCE_EXPONENT = 0.6
"""Exponent of the distance that is added in proportion to the part of the variance that
the excess variances of loose bodies explain: there the residual says little. Higher
prefers near joints more. Chosen by hand."""

OPEN_DISTANCE_EXPONENT = 1.0
"""Exponent of the distance that is added for a residual far above the noise, whose
exact size says little. Chosen by hand."""

DISTANCE_OFFSET = 0.2
"""Number added to the distance of a joint, in median distances, because it may lie
inside a sensor, and to the spacing of markers, in usual spacings. Higher makes
distances count less. Chosen by hand."""

OPEN_RESIDUAL_START = 0.5
"""Excess of the squared residual, in median noise variances, above which a residual
counts as open. Chosen by hand."""

OPEN_RESIDUAL_SCALE = OUTLIER_SD**2
"""Open squared residual, in median noise variances, at which half of
`OPEN_DISTANCE_EXPONENT` is reached."""

EXCESS_ITERATIONS = 50
"""Iterations that find the excess variances; each halves what is left to distribute."""


def edge_costs(joints: JointFits, weight: str = "auto") -> PairValues:
    """Return the cost of each joint as an edge of the tree.

    The cost is infinite where the pair shares no frames.

    Raises:
        OptionError: If the weight is not known.
    """
    name = resolve_weight(joints, weight)
    if not joints.fitted.any():
        return np.full(len(joints.pair), np.inf)
    cost = WEIGHTS[name](joints)
    return np.where(joints.fitted & np.isfinite(cost), cost, np.inf)


def resolve_weight(joints: JointFits, weight: str) -> str:
    """Return the name of a weight, where "auto" depends on whether bodies have markers.

    Raises:
        OptionError: If the weight is not known.
    """
    if weight == "auto":
        return "compact" if np.isfinite(joints.looseness).any() else "excess"
    if weight not in WEIGHTS:
        needed = f"auto, {', '.join(WEIGHTS)}"
        raise OptionError("weight", found=weight, needed=needed)
    return weight


def _compact(joints: JointFits) -> Array:
    r"""Return looseness times marker spacing, both without unit.

    .. math:: w_{ab} = (\ell_{ab} + 0.1)\,(s_{ab} + 0.2)

    :math:`\ell` is `JointFits.looseness` and :math:`s` is `JointFits.marker_spacing`.
    """
    # Smaller differences do not matter.
    looseness = joints.looseness + FEW
    return np.asarray(looseness * (joints.marker_spacing + DISTANCE_OFFSET))


def _residual(joints: JointFits) -> Array:
    r"""Return the residual, in metres, with a small part of the distance to break ties.

    .. math:: w_{ab} = \sqrt{\varepsilon_{ab}^2 + (10^{-4} d_{ab})^2}

    :math:`\varepsilon` is the weight of OBrien2000, Sec. 3.3, and :math:`d` is
    `JointFits.distance`. The second term is not in the paper: exact data have many
    zeros.
    """
    tie_breaker = TINY_SLOPE * np.nan_to_num(joints.distance)
    return np.asarray(np.hypot(joints.residual, tie_breaker))


def _normalised_residuals(joints: JointFits) -> Array:
    r"""Return residuals over the noise of their two bodies.

    .. math:: w_{ab} = \frac{\varepsilon_{ab}}{\sqrt{\sigma_a^2 + \sigma_b^2}}, \qquad
              \sigma_b^2 = \tfrac{1}{2} \min_j \varepsilon_{bj}^2

    The best joint of a body shows the noise of two bodies, one of which is the body
    itself. :math:`\varepsilon` is the cost of `_residual`.
    """
    residual = _residual(joints)
    best = smallest_per_body(joints.pair, residual, count_bodies(joints))
    variance = 0.5 * best**2
    return np.asarray(residual / np.sqrt(variance[joints.pair].sum(axis=1)))


def _mediated_residuals(joints: JointFits) -> Array:
    r"""Return normalised residuals times how much a third body explains of them.

    .. math:: w_{ab} = \max(m_{ab}, 1)\, \frac{\varepsilon_{ab}}
              {\sqrt{\sigma_a^2 + \sigma_b^2}}

    :math:`m` is `JointFits.mediated`; it is 1 where the fits do not have it.
    """
    factor = np.where(np.isfinite(joints.mediated), joints.mediated, 1.0)
    return np.asarray(_normalised_residuals(joints) * np.maximum(factor, 1.0))


def _excess(joints: JointFits) -> Array:
    r"""Return residuals of averaged poses over the noise and excess variance of bodies.

    A sensor that slides on the skin has the same excess variance :math:`e` at all its
    joints; it does not count against them. A residual between two bodies that fit well
    at other joints is not: no joint is there, and another body stands between the two.

    .. math::

       w_{ab} &= \sqrt{\max\!\left(
           \frac{n + x_{ab}}{n + v_{ab}}, 0.1\right)}
           \left(\frac{d_{ab}}{d} + 0.2\right)^{k_{ab}} \\
       v_{ab} &= \min(1.25\,(e_a + e_b),\ 900\,n) \\
       k_{ab} &= 0.05 + 0.3\,[\text{no relative motion}]
           + 0.6\,\frac{v_{ab}}{n + v_{ab}} + \frac{o_{ab}}{o_{ab} + 9\,n + v_{ab}}

    :math:`r_{ab}` is the squared residual, :math:`n_{ab}` the noise variance and
    :math:`n` its median over the pairs; :math:`x_{ab} = r_{ab} - n_{ab}`;
    :math:`o_{ab} = \max(x_{ab} - n/2, 0)`; :math:`d_{ab}` is `JointFits.distance` and
    :math:`d` its median. The residual is
    compared with the median noise, not with the pair's own: a residual that no noise
    explains is not smaller because the noise is larger.
    """
    squared_residual, noise = squared_residual_and_noise(joints)
    median_noise = float(np.nanmedian(noise))
    excess = squared_residual - noise
    body_excess = _excess_variances(joints, np.maximum(excess, 0.0))
    explained = np.minimum(
        EXCESS_TOLERANCE * body_excess[joints.pair].sum(axis=1),
        MAX_EXCESS_RATIO * median_noise,
    )
    ratio = (median_noise + excess) / (median_noise + explained)
    open_part = np.maximum(excess - OPEN_RESIDUAL_START * median_noise, 0.0)
    is_still = np.array([kind == "fixed" for kind in joints.kind], dtype=float)
    exponent = (
        BASE_DISTANCE_EXPONENT
        + STILL_DISTANCE_EXPONENT * is_still
        + LOOSE_DISTANCE_EXPONENT * explained / (median_noise + explained)
    )
    exponent = exponent + OPEN_DISTANCE_EXPONENT * open_part / (
        open_part + OPEN_RESIDUAL_SCALE * median_noise + explained
    )
    median_distance = max(float(np.nanmedian(joints.distance)), MIN_LENGTH_M)
    distance = np.nan_to_num(joints.distance / median_distance) + DISTANCE_OFFSET
    # A fit that is better still may be chance.
    return np.asarray(np.sqrt(np.maximum(ratio, FEW)) * distance**exponent)


WEIGHTS: Mapping[str, Callable[[JointFits], Array]] = {
    "compact": _compact,
    "excess": _excess,
    "mediated": _mediated_residuals,
    "normalised": _normalised_residuals,
    "residual": _residual,
}


def squared_residual_and_noise(joints: JointFits) -> tuple[PairValues, PairValues]:
    """Return the squared residual of each pair, and the part that noise alone leaves.

    Both are in square metres, and belong to time-averaged poses where the fits have
    them, else to single frames. Both are never below rounding error; the noise is also
    never below a fraction of the best residual of a typical body.
    """
    is_averaged = np.isfinite(joints.averaged_residual) & np.isfinite(
        joints.averaged_noise
    )
    residual = np.where(is_averaged, joints.averaged_residual, joints.residual)
    noise = np.where(is_averaged, joints.averaged_noise, np.nan_to_num(joints.noise))
    rounding = np.hypot(
        RELATIVE_ROUNDING * np.nan_to_num(joints.distance), MIN_LENGTH_M
    )
    best = smallest_per_body(joints.pair, residual, count_bodies(joints))
    floor = np.maximum(rounding, MIN_NOISE_SHARE * finite_median(best))
    return residual**2 + rounding**2, np.maximum(noise, floor) ** 2


def is_within_noise(joints: JointFits, max_ratio: float) -> Bool[Array, " pair"]:
    """Return which residuals are at most `max_ratio` times the noise, both rms (m)."""
    squared_residual, noise = squared_residual_and_noise(joints)
    return np.asarray(squared_residual <= max_ratio**2 * noise)


def count_bodies(joints: JointFits) -> int:
    """Return the number of bodies that the pairs are made of; 1 if there is no pair."""
    return int(joints.pair.max(initial=0)) + 1


def _excess_variances(joints: JointFits, excess: PairValues) -> Float[Array, " body"]:
    r"""Return a variance per body whose sums explain residuals above the noise.

    The variances, in square metres, are the largest that satisfy :math:`e_a + e_b \le
    x_{ab}` for all pairs when all bodies grow together. Each iteration adds half of the
    smallest slack,

    .. math:: e_b \leftarrow e_b + \tfrac{1}{2} \min_j (x_{bj} - e_b - e_j),

    so the answer does not depend on the order of the bodies.
    """
    excess = np.where(np.isfinite(excess), excess, np.inf)
    n_bodies = count_bodies(joints)
    variance = np.zeros(n_bodies)
    for _ in range(EXCESS_ITERATIONS):
        remaining = excess - variance[joints.pair].sum(axis=1)
        smallest = smallest_per_body(joints.pair, remaining, n_bodies)
        variance += 0.5 * np.where(np.isfinite(smallest), smallest, 0.0)
    return variance
