"""Doubts about bodies and joints, in words."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from marey.anatomy.joint_names import spoken
from marey.bodies import Bodies
from marey.joint_fits import JointFits
from marey.joints.ball.closed_form import FREE, plain_system, solve
from marey.joints.ball.fit import FAR, RIGID, best_of
from marey.joints.ball.normal_equations import equations, pairs_of, seen_in, sum_pairs
from marey.joints.residuals import Homogeneity
from marey.numerics import geometry
from marey.report import Finding, mark_name

Array = np.ndarray

# A centre known worse than this, in metres, is worth a word.
WEAK = 0.01

# A gap above this, in metres, and that many times the noise is no joint.
LOOSE, TIMES = 0.05, 5.0

# Positions and orientations that vary less than this (metres) do not move at all.
STILL = 1e-6

# Orientations that fit this many times better when read another way were misread.
BETTER = 2.0

# How sure it must be that a take differs, over all joints of all takes together, and
# by how much in metres.
SURE, APART = 1e-3, 0.005


def findings(bodies: Bodies | Sequence[Bodies], fits: JointFits) -> tuple[Finding, ...]:
    """Return what is doubtful about bodies and their joints, and what would help.

    Only pairs that may be joints are named: those whose gap is not far above the best
    of both bodies.

    Args:
        bodies: The moving bodies, in one take or in all that were fitted.
        fits: Their joints.
    """
    takes = (bodies,) if isinstance(bodies, Bodies) else tuple(bodies)
    names = takes[0].names
    found = [f for body in range(len(names)) for f in _of_body(takes, body)]
    best = np.full(len(names), np.nan)
    for column in fits.pair.T:
        np.fmin.at(best, column, fits.residual)
    near = fits.residual <= FAR * best_of(fits.pair, fits.residual)
    for row, (a, b) in enumerate(fits.pair.tolist()):
        name = f"{names[a]}-{names[b]}"
        if not fits.fitted[row]:
            message = "never seen together: no joint between them can be found"
            found.append(Finding("pair-unseen", "joints", "warning", message, name))
        elif near[row]:
            found += _of_joint(fits, row, (names[a], names[b]))
    for body, name in enumerate(names):
        rows = (fits.pair == body).any(axis=1) & fits.fitted
        noise = float(np.max(fits.noise[rows], initial=0.0))
        if best[body] > max(LOOSE, TIMES * noise):
            message = (
                f"stays with no other body (best gap {1e3 * best[body]:.0f} mm): check "
                "the order of its quaternion or angles, its axes, and its unit"
            )
            value = float(best[body])
            found.append(
                Finding("body-loose", "joints", "error", message, name, value=value)
            )
    return (*found, *_other_reading(takes, best))


def _other_reading(takes: Sequence[Bodies], best: Array) -> list[Finding]:
    """Return whether the orientations make sense when they are read another way.

    Those of markers were not read, but found.
    """
    if np.any([take.shared.any(axis=0) for take in takes], axis=0).all():
        return []
    T = np.concatenate([take.T_world_body for take in takes])
    wxyz = geometry.quat_from_matrix(T[..., :3, :3])
    readings = {
        "with the scalar of their quaternions at the other end (xyzw for wxyz)": (
            geometry.matrix_from_quat(np.roll(wxyz, 1, axis=-1)),
            geometry.matrix_from_quat(np.roll(wxyz, -1, axis=-1)),
        ),
        "inverted (from world to body)": (np.swapaxes(T[..., :3, :3], -1, -2),),
    }
    now = float(np.nanmedian(best)) if np.isfinite(best).any() else 0.0
    for words, turns in readings.items():
        gap = min(_usual_gap(T, R) for R in turns)
        if 0.0 < gap < now / BETTER:
            message = (
                f"orientations fit {now / gap:.0f} times better {words}: gaps of "
                f"{1e3 * gap:.1f} instead of {1e3 * now:.1f} mm; read the file so"
            )
            return [Finding("orientations-odd", "joints", "error", message, value=gap)]
    return []


def _usual_gap(
    T: Float[Array, "frame body 4 4"], R: Float[Array, "frame body 3 3"]
) -> float:
    """Return the median over bodies of their smallest gap, with other orientations."""
    other = geometry.transform(R, T[..., :3, 3])
    pair = pairs_of(T.shape[1])
    sums = sum_pairs(other, seen_in(other))
    gap = solve(plain_system(equations(sums, pair)), max_sd=np.inf).residual
    best = np.full(T.shape[1], np.nan)
    for column in pair.T:
        np.fmin.at(best, column, gap)
    return float(np.nanmedian(best)) if np.isfinite(best).any() else np.inf


def _of_body(takes: Sequence[Bodies], body: int) -> list[Finding]:
    """Return what is odd about one body's poses."""
    name = takes[0].names[body]
    each = [take.T_world_body[take.seen[:, body], body] for take in takes]
    moved = [np.ptp(T[:, :3], axis=0).max() for T in each if len(T) > 1]
    T = np.concatenate(each)
    if not len(T):
        message = "never seen: it has no joints"
        return [Finding("body-unseen", "joints", "warning", message, name)]
    found = []
    # Put elsewhere between two takes it is still not worn.
    if moved and max(moved) < STILL:
        message = "never moves: is it worn?"
        found.append(Finding("body-still", "joints", "warning", message, name))
    made = any(take.shared[:, body].any() for take in takes)
    return found if made else [*_of_turns(T, name), *found]


def _of_turns(T: Float[Array, "frame 4 4"], name: str) -> list[Finding]:
    """Return what is odd about orientations that were read."""
    found = []
    R = T[:, :3, :3]
    off = float(np.abs(np.swapaxes(R, 1, 2) @ R - np.eye(3)).max())
    if off > RIGID:
        message = (
            "orientations scale or shear: fitted by least squares only, without a "
            "correction for noise"
        )
        found.append(
            Finding("body-bent", "joints", "warning", message, name, value=off)
        )
    if np.linalg.det(R).min() < 0.0:
        message = "orientations are mirrored: check the handedness of the axes"
        found.append(Finding("body-mirrored", "joints", "warning", message, name))
    return found


def _never(a: str, b: str) -> str:
    """Return that two bodies never moved against each other, and what to record."""
    known = spoken(a, b)
    if known is None:
        return "the two move as one; bend the joint, or join them"
    joint, motion = known
    return (
        f"the {joint} never moved: {mark_name(a)} and {mark_name(b)} were recorded as one; "
        f"{motion} to get the joint"
    )


def _of_joint(fits: JointFits, row: int, names: tuple[str, str]) -> list[Finding]:
    """Return how well one joint is known, and which motion would help."""
    kind, name = fits.kind[row], "-".join(names)
    # A body of one or two markers has no axes, and no centre in them.
    known = slice(0, 3) if np.isfinite(fits.center_a[row]).all() else slice(3, 6)
    value, vector = np.linalg.eigh(fits.covariance[row, known, known])
    sd = float(np.sqrt(max(value[-1], 0.0)))
    half = 0.5 * fits.spread[row, :3] ** 2
    # The middle eigenvalue is 1 - mean cosine of a hinge's angle.
    angle = np.degrees(2.0 * np.arcsin(min(np.sqrt(half[1]), 1.0)))
    seen = f"{angle:.0f} deg seen" if np.isfinite(angle) else "one body has no axes"
    if kind == "fixed":
        message = f"{seen}, no axis: {_never(*names)}"
        return [Finding("joint-still", "joints", "warning", message, name, value=sd)]
    if kind == "hinge":
        by = f"by ±{1e3 * sd:.0f} mm" if sd < FREE / 2 else "altogether"
        message = f"{seen}, axis known, centre free along it {by}: bend and twist it"
        return [Finding("joint-free", "joints", "info", message, name, value=sd)]
    if sd > WEAK:
        way = ", ".join(f"{x:.2f}" for x in vector[:, -1])
        message = (
            f"{seen}, centre known to ±{1e3 * sd:.0f} mm along ({way}) of the "
            f"{'second' if known.start else 'first'} body: turn it about the other two "
            "directions"
        )
        return [Finding("joint-weak", "joints", "warning", message, name, value=sd)]
    return []


def differing_takes(
    takes: Sequence[Bodies], fits: JointFits, test: Homogeneity
) -> tuple[Finding, ...]:
    """Return which joints of which takes are elsewhere than in the other takes.

    Args:
        takes: The takes that were compared.
        fits: The joints of all takes together.
        test: What `homogeneity` says.
    """
    found = []
    near = fits.residual <= FAR * best_of(fits.pair, fits.residual)
    level = SURE / max(test.p_value.size, 1)
    odd = (test.p_value < level) & (test.shift > APART) & near
    for take, row in np.argwhere(odd).tolist():
        a, b = (takes[take].names[i] for i in test.pair[row])
        shift = float(test.shift[take, row])
        message = (
            f"in take {take + 1} the joint is {1e3 * shift:.0f} mm from where the "
            "others have it: a sensor slipped or was moved; fit that take apart"
        )
        found.append(
            Finding(
                "take-differs", "joints", "warning", message, f"{a}-{b}", value=shift
            )
        )
    return tuple(found)
