"""What a joint costs the tree."""

from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Bool, Float

from marey.errors import OptionError
from marey.joint_fits import JointFits

Array = np.ndarray

# Of joints that fit alike the nearer one is taken: metres of residual per metre of
# distance from the bodies. Far below any noise that is seen in practice.
TIE = 1e-3

# Gaps below this share of a joint's distance from its bodies, and below a nanometre,
# are rounding.
ROUNDING, SMALLEST = 1e-7, 1e-9

# The noise is taken for no less than this share of what the best joint of a typical
# body leaves: skin and play are in no sensor's noise.
SHARE = 0.5

# A gap's square up to so many times the noise's is noise.
SURE = 1.1

# How many times its own unrest a body may show at its other joints, as a variance, and
# how many times the noise's variance an unrest may be.
ROOM, MOST = 1.25, 900.0

# Powers of the distance in the cost: where motion decides; added where two bodies never
# moved against each other; added where a body's own unrest hides what the motion says;
# and added where a gap is far above the noise, so that its exact size says little.
# Distances are shares of the median one, a part of it added, since a joint may lie in
# a sensor.
NEAR, NEAR_STILL, NEAR_UNREST, NEAR_GAPING, WITHIN = 0.05, 0.3, 0.6, 1.0, 0.2

# A gap's square this many times the noise's is far above it.
GAPING = 10.0

# Power of the plain gap in the cost: of joints that unrest explains alike, the one that
# needs less of it; up to so many times the noise's variance.
PLAIN, MOST_PLAIN = 0.08, 100.0

# No joint fits better than this share of the noise: it might be luck.
LUCK = 0.1

MOST_JOINTS = 75.0
"""Per cent of the joints whose distance from their bodies is usual."""

# Slack and gap that make no difference, in units of the noise and of the usual distance
# of neighbouring markers.
TIGHT, CLOSE = 0.1, 0.2

# Rounds in which unrest is handed out: each halves what is left.
ROUNDS = 50


def edge_costs(joints: JointFits, weight: str = "auto") -> Float[Array, " pair"]:
    """Return what each joint costs a tree; inf where the pair shares no frames.

    Raises:
        OptionError: If the weight is not known.
    """
    name = resolved(joints, weight)
    if not joints.fitted.any():
        return np.full(len(joints.pair), np.inf)
    cost = WEIGHTS[name](joints)
    return np.where(joints.fitted & np.isfinite(cost), cost, np.inf)


def resolved(joints: JointFits, weight: str) -> str:
    """Return the weight by its own name: "auto" asks whether bodies have markers.

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
    """Return how loose joints are times how far apart their bodies' markers are."""
    return np.asarray((joints.looseness + TIGHT) * (joints.marker_spacing + CLOSE))


def _residual(joints: JointFits) -> Array:
    return np.asarray(np.hypot(joints.residual, TIE * np.nan_to_num(joints.distance)))


def _normalised(joints: JointFits) -> Array:
    """Return residuals over the noise of their two bodies.

    A body's own noise shows in its best joint: half of that residual's square.
    """
    residual = _residual(joints)
    own = 0.5 * least(joints, residual) ** 2
    return np.asarray(residual / np.sqrt(own[joints.pair].sum(axis=1)))


def _mediated(joints: JointFits) -> Array:
    factor = np.where(np.isfinite(joints.mediated), joints.mediated, 1.0)
    return np.asarray(_normalised(joints) * np.maximum(factor, 1.0))


def _excess(joints: JointFits) -> Array:
    """Return slow gaps over what the noise and the bodies' own unrest allow.

    A sensor that slides shows the same unrest at all its joints. A gap between two
    bodies that sit still at other joints is another matter: there is no joint, and
    something stands between them.
    """
    square, noise = gaps_and_noise(joints)
    usual = float(np.nanmedian(noise))
    own = _unrest(joints, np.maximum(square - SURE * noise, 0.0))
    room = np.minimum(ROOM * own[joints.pair].sum(axis=1), MOST * usual)
    # Against the usual noise, not each pair's own: a gap that no noise explains is not
    # smaller because the noise is larger.
    excess = square - noise
    fit = (usual + excess) / (np.maximum(usual, 0.25 * noise) + room)
    gaping = np.maximum(excess - 0.5 * usual, 0.0)
    still = np.array([kind == "fixed" for kind in joints.kind], dtype=float)
    power = NEAR + NEAR_STILL * still + NEAR_UNREST * room / (usual + room)
    power = power + NEAR_GAPING * gaping / (gaping + GAPING * usual + room)
    away = joints.distance / max(float(np.nanmedian(joints.distance)), SMALLEST)
    near = (np.nan_to_num(away) + WITHIN) ** power
    plain = np.clip(square / usual, 1.0, MOST_PLAIN) ** (0.5 * PLAIN * (room > usual))
    return np.asarray(np.sqrt(np.maximum(fit, LUCK)) * near * plain)


WEIGHTS: Mapping[str, Callable[[JointFits], Array]] = {
    "compact": _compact,
    "excess": _excess,
    "mediated": _mediated,
    "normalised": _normalised,
    "residual": _residual,
}


def gaps_and_noise(
    joints: JointFits,
) -> tuple[Float[Array, " pair"], Float[Array, " pair"]]:
    """Return the square of each pair's gap, and what the noise would leave of it.

    Of averaged poses where the fits tell, else of single frames.
    """
    slow = np.isfinite(joints.averaged_residual) & np.isfinite(joints.averaged_noise)
    gap = np.where(slow, joints.averaged_residual, joints.residual)
    noise = np.where(slow, joints.averaged_noise, np.nan_to_num(joints.noise))
    rounding = np.hypot(ROUNDING * np.nan_to_num(joints.distance), SMALLEST)
    best = least(joints, gap)
    typical = SHARE * float(np.median(best[np.isfinite(best)]))
    floor = np.maximum(rounding, typical)
    return gap**2 + rounding**2, np.maximum(noise, floor) ** 2


def least(joints: JointFits, gap: Float[Array, " pair"]) -> Float[Array, " body"]:
    """Return the smallest gap of each body; inf where it has none."""
    smallest = np.full(int(joints.pair.max()) + 1, np.inf)
    for column in joints.pair.T:
        np.fmin.at(smallest, column, gap)
    return smallest


def _unrest(joints: JointFits, excess: Float[Array, " pair"]) -> Float[Array, " body"]:
    """Return the largest variance of each body that explains no gap twice.

    The variances of two bodies never add up to more than their excess. All grow
    together by half of what is left to them, so that their order does not matter.
    """
    excess = np.where(np.isfinite(excess), excess, np.inf)
    own = np.zeros(int(joints.pair.max()) + 1)
    for _ in range(ROUNDS):
        left = least(joints, excess - own[joints.pair].sum(axis=1))
        own += 0.5 * np.where(np.isfinite(left), left, 0.0)
    return own


def strangers(
    joints: JointFits, cost: Float[Array, " pair"], *, torn: float, far: float
) -> Bool[Array, " body"]:
    """Return the bodies whose joints all gape, and the best far from where they are.

    The origin of the laboratory, written into a file among the bodies, is one; the
    frame that a pendulum swings from is not.

    Args:
        joints: Candidate joints of all pairs.
        cost: What each costs.
        torn: Times the noise from which a gap is no joint's.
        far: Times the distance that most bodies keep from their best joints.
    """
    n_bodies = int(joints.pair.max()) + 1
    square, noise = gaps_and_noise(joints)
    best = np.full(n_bodies, -1)
    for pair in np.argsort(-cost, kind="stable"):
        if np.isfinite(cost[pair]):
            best[joints.pair[pair]] = pair
    known = best >= 0
    distance = joints.distance[best[known]]
    apart = np.zeros(n_bodies, dtype=bool)
    apart[known] = distance > far * np.percentile(distance, MOST_JOINTS)
    # One joint that holds is enough to belong.
    apart[joints.pair[square <= torn**2 * noise]] = False
    return apart
