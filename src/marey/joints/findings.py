"""Findings about bodies and joints: what is doubtful, and which motion would help."""

from collections.abc import Iterator, Sequence

import numpy as np

from marey.anatomy.joint_names import joint_name_and_exercise
from marey.bodies import Bodies
from marey.joint_fits import JointFits, smallest_per_body
from marey.joints.ball.closed_form import FREE_SD_M, solve_centers, uncorrected_system
from marey.joints.ball.fit import candidate_pairs
from marey.joints.ball.normal_equations import (
    all_pairs,
    form_normal_equations,
    sum_pairs,
)
from marey.joints.noise import FALSE_ALARM_RATE
from marey.joints.residuals import Homogeneity
from marey.numerics import Array, Bool, Float, geometry
from marey.numerics.robust import finite_median
from marey.numerics.thresholds import (
    CERTAIN_SD,
    MARKER_NOISE_M,
    MAX_NON_ROTATION,
    SKIN_MOTION_M,
)
from marey.report import Finding, Severity, mark_name

TINY_RANGE = 1e-6
"""Range of the elements of a pose, in metres or without unit, up to which a body does
not move at all. Higher reports more bodies."""

MIN_IMPROVEMENT = 2.0
"""Factor by which the residual must fall for another reading of the orientations to be
reported. Higher reports fewer files. Chosen by hand."""


def joint_findings(
    bodies: Bodies | Sequence[Bodies], fits: JointFits
) -> tuple[Finding, ...]:
    """Return what is doubtful about bodies and their joints, and what would help.

    Only pairs that may be joints are named: their residual is not far above the best
    residuals of both bodies.

    Args:
        bodies: The moving bodies, in one take or in all that were fitted.
        fits: Their joints.
    """
    takes = (bodies,) if isinstance(bodies, Bodies) else tuple(bodies)
    names = takes[0].names
    best = smallest_per_body(fits.pair, fits.residual, len(names))
    return (
        *(f for body in range(len(names)) for f in _body_findings(takes, body)),
        *_pair_findings(takes, fits),
        *_loose_bodies(takes, fits, best),
        *_misread_orientations(takes, best),
    )


def _pair_findings(takes: Sequence[Bodies], fits: JointFits) -> Iterator[Finding]:
    """Yield the pairs that are never seen together, and the doubtful joints.

    Two bodies of one or two markers each have no joint in any case.
    """
    names = takes[0].names
    determined = np.any([take.determined for take in takes], axis=0)
    with np.errstate(invalid="ignore"):
        is_joined = ~(fits.residual > _largest_residual(fits.noise))
    is_candidate = candidate_pairs(fits.pair, fits.residual) & is_joined
    for row, (a, b) in enumerate(fits.pair.tolist()):
        if not fits.fitted[row]:
            if not determined[[a, b]].any():
                continue
            message = "never seen in the same frame, so no joint is found; record both"
            yield _finding("pair-unseen", f"{names[a]}-{names[b]}", message)
        elif is_candidate[row]:
            yield from _joint_findings(fits, row, (names[a], names[b]))


def _largest_residual(noise: Float[Array, " pair"]) -> Float[Array, " pair"]:
    """Return the largest residual that skin motion or noise explains, in metres."""
    return np.asarray(CERTAIN_SD * np.fmax(SKIN_MOTION_M, noise))


def _loose_bodies(
    takes: Sequence[Bodies], fits: JointFits, best: Float[Array, " body"]
) -> Iterator[Finding]:
    """Yield the bodies that fit no other body, by their best residual.

    Orientations of a sensor were read, so they may have been read wrongly. Those of
    markers were estimated: such a body is a thing or a person of its own.
    """
    names, has_markers = takes[0].names, _have_markers(takes)
    for body in np.flatnonzero(np.isfinite(best)):
        is_of_body = (fits.pair == body).any(axis=1) & fits.fitted
        largest = _largest_residual(fits.noise[is_of_body])
        if (best[body] <= largest).any():
            continue
        residual = f"the best residual is {1e3 * best[body]:.0f} mm"
        if has_markers[body]:
            message = (
                f"has no joint with another body: {residual}; if it is no prop, "
                "markers between are missing"
            )
            yield _finding("body-separate", names[body], message, "info", best[body])
        else:
            message = (
                f"fits no other body: {residual}; "
                "check the order of its quaternion or angles, its axes and its unit"
            )
            yield _finding("body-loose", names[body], message, "error", best[body])


def _have_markers(takes: Sequence[Bodies]) -> Bool[Array, " body"]:
    """Return which bodies have markers in some take."""
    return np.asarray(np.any([take.shared.any(axis=0) for take in takes], axis=0))


def _finding(
    code: str,
    subject: str,
    message: str,
    severity: Severity = "warning",
    value: float = np.nan,
) -> Finding:
    return Finding(code, "joints", severity, message, subject, value=float(value))


def _misread_orientations(
    takes: Sequence[Bodies], best: Float[Array, " body"]
) -> list[Finding]:
    """Return whether joints fit much better when the orientations are read otherwise.

    Bodies of markers are not concerned: their orientations are estimated, not read.
    """
    if _have_markers(takes).all():
        return []
    T = np.concatenate([take.T_world_body for take in takes])
    R = T[..., :3, :3]
    wxyz = geometry.quat_from_matrix(R)
    rolled = (geometry.matrix_from_quat(np.roll(wxyz, k, axis=-1)) for k in (1, -1))
    readings = {
        "with the scalar of quaternions at the other end (xyzw for wxyz)": rolled,
        "with inverted orientations (from world to body)": (np.swapaxes(R, -1, -2),),
    }
    before = finite_median(best)
    residuals = {
        reading: min(_median_best_residual(T, rotation) for rotation in rotations)
        for reading, rotations in readings.items()
    }
    reading = min(residuals, key=lambda reading: residuals[reading])
    after = residuals[reading]
    if not 0.0 < after < before / MIN_IMPROVEMENT:
        return []
    message = (
        f"joints fit {before / after:.0f} times better ({1e3 * after:.1f} mm) "
        f"{reading}; read the file that way"
    )
    return [_finding("orientations-inconsistent", "", message, "error", after)]


def _median_best_residual(
    T: Float[Array, "frame body 4 4"], R: Float[Array, "frame body 3 3"]
) -> float:
    """Return the median over bodies of their best residual, with other orientations."""
    T = geometry.transform(R, T[..., :3, 3])
    pair = all_pairs(T.shape[1])
    system = uncorrected_system(form_normal_equations(sum_pairs(T), pair))
    residual = solve_centers(system, max_sd=np.inf).residual
    best = smallest_per_body(pair, residual, T.shape[1])
    return finite_median(best, default=np.inf)


def _body_findings(takes: Sequence[Bodies], body: int) -> Iterator[Finding]:
    """Yield what is wrong with the poses of one body."""
    name = takes[0].names[body]
    poses = [take.T_world_body[take.seen[:, body], body] for take in takes]
    T = np.concatenate(poses)
    if not len(T):
        message = "is never seen, so it has no joints; record it, or leave it out"
        yield _finding("body-unseen", name, message)
        return
    if not any(take.shared[:, body].any() for take in takes):
        yield from _orientation_findings(T[:, :3, :3], name)
    # A body that is put elsewhere between two takes still does not move.
    ranges = [np.ptp(T[:, :3], axis=0).max() for T in poses if len(T) > 1]
    if ranges and max(ranges) < TINY_RANGE:
        message = "never moves; check that it is attached to the subject"
        yield _finding("body-still", name, message)


def _orientation_findings(R: Float[Array, "frame 3 3"], name: str) -> Iterator[Finding]:
    """Yield what is wrong with orientations that were read from a file."""
    deviation = np.abs(np.swapaxes(R, 1, 2) @ R - np.eye(3)).max()
    if deviation > MAX_NON_ROTATION:
        message = (
            "orientations contain scale or shear; its joints are fitted by plain least "
            "squares, without a correction for noise"
        )
        yield _finding("body-bent", name, message, value=deviation)
    if np.linalg.det(R).min() < 0.0:
        message = "orientations are mirrored; check the handedness of the axes"
        yield _finding("body-mirrored", name, message)


def _no_motion_message(a: str, b: str, seen: str) -> str:
    """Return that two bodies have no relative motion, and what to record."""
    known = joint_name_and_exercise(a, b)
    if known is None:
        return f"the two bodies move as one ({seen}); bend the joint, or merge them"
    joint, motion = known
    return (
        f"the {joint} never moved ({seen}): {mark_name(a)} and {mark_name(b)} were "
        f"recorded as one; {motion}"
    )


def _joint_findings(
    fits: JointFits, row: int, names: tuple[str, str]
) -> Iterator[Finding]:
    """Yield how uncertain one joint is, and which motion would help."""
    kind, name = fits.kind[row], "-".join(names)
    # A body of one or two markers has no axes, and so no centre in them.
    has_first = np.isfinite(fits.center_a[row]).all()
    part = slice(0, 3) if has_first else slice(3, 6)
    variances, directions = np.linalg.eigh(fits.covariance[row, part, part])
    sd = float(np.sqrt(max(variances[-1], 0.0)))
    # The middle eigenvalue is 1 - mean cosine of the angle of a hinge.
    half = 0.5 * fits.spread[row, 1] ** 2
    angle = np.degrees(2.0 * np.arcsin(min(np.sqrt(half), 1.0)))
    seen = f"{angle:.0f} deg seen" if np.isfinite(angle) else "one body has no axes"
    if kind == "fixed":
        message = _no_motion_message(*names, seen)
        yield _finding("joint-still", name, message, value=sd)
    elif kind == "hinge":
        known = f"known to ±{1e3 * sd:.0f} mm" if sd < FREE_SD_M / 2 else "unknown"
        message = (
            f"rotates about one axis only ({seen}); its centre along the axis is "
            f"{known}: bend and twist it"
        )
        yield _finding("joint-free", name, message, "info", sd)
    elif sd > SKIN_MOTION_M:
        direction = ", ".join(f"{x:.2f}" for x in directions[:, -1])
        message = (
            f"centre known only to ±{1e3 * sd:.0f} mm along ({direction}) of the "
            f"{'first' if has_first else 'second'} body ({seen}); rotate it about the "
            "other two directions"
        )
        yield _finding("joint-weak", name, message, value=sd)


def find_differing_takes(
    takes: Sequence[Bodies], fits: JointFits, test: Homogeneity
) -> tuple[Finding, ...]:
    """Return which joints of which takes are elsewhere than in the other takes.

    Args:
        takes: The takes that were compared.
        fits: The joints of all takes together.
        test: Result of `homogeneity`.
    """
    found = []
    level = FALSE_ALARM_RATE / max(test.p_value.size, 1)
    differs = (test.p_value < level) & (test.displacement > CERTAIN_SD * MARKER_NOISE_M)
    differs &= candidate_pairs(fits.pair, fits.residual)
    for take, row in np.argwhere(differs).tolist():
        a, b = (takes[take].names[body] for body in test.pair[row])
        displacement = float(test.displacement[take, row])
        message = (
            f"in take {take + 1} the joint is {1e3 * displacement:.0f} mm away from "
            "the other takes: a sensor slipped or was moved; solve that take separately"
        )
        found.append(_finding("take-differs", f"{a}-{b}", message, value=displacement))
    return tuple(found)
