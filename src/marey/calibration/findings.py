"""Findings of a calibration: what it determined, and what is left uncertain."""

from collections.abc import Iterator

import numpy as np

from marey.calibration.init.generic import SHOULDER_GIRDLE
from marey.calibration.solver.bundle_adjustment import CalibrationFit
from marey.calibration.to_skeleton import find_noisy_markers
from marey.numerics.thresholds import OUTLIER_SD, SKIN_MOTION_M
from marey.report import Finding, mark_name
from marey.skeleton import Skeleton

MAX_JOINT_SD_M = OUTLIER_SD * SKIN_MOTION_M
"""A joint whose standard deviation along some direction is larger is reported, in
metres. Higher reports fewer."""

MAX_DRIFT_WHITE_SHARE = 0.5
"""Below this white share of the residuals, soft tissue or loose markers are reported.
Higher reports more. Chosen by hand."""


def calibration_findings(skeleton: Skeleton, fit: CalibrationFit) -> Iterator[Finding]:
    """Yield the findings of a calibration."""
    model, n_sessions = fit.estimate.model, len(fit.estimate.poses)
    is_poor = fit.rms() > SKIN_MOTION_M
    advice = ", more than skin moves: see which markers fit worst"
    yield Finding(
        "calibrated",
        "calibrate",
        "warning" if is_poor else "info",
        f"{len(model.names)} segments fitted to {fit.estimate.n_frames} frames of "
        f"{n_sessions} session{'s' if n_sessions > 1 else ''}: residual of the markers "
        f"{1e3 * fit.rms():.1f} mm (rms){advice if is_poor else ''}",
        value=fit.rms(),
    )
    if fit.white_share < MAX_DRIFT_WHITE_SHARE:
        yield Finding(
            "markers-drift",
            "calibrate",
            "info",
            "the markers shift with the pose, as they do on skin, so standard "
            "deviations are large: attach them over bone",
            value=fit.white_share,
        )
    is_person = fit.initial.problem.is_person
    if is_person and SHOULDER_GIRDLE[0] in model.names:
        yield Finding(
            "shoulders-move",
            "calibrate",
            "info",
            "the shoulders move relative to the chest: each has a joint of its own",
            subject=", ".join(SHOULDER_GIRDLE),
        )
    yield from _uncertain_joints(skeleton, fit)
    yield from _noisy_markers(fit)


def _uncertain_joints(skeleton: Skeleton, fit: CalibrationFit) -> Iterator[Finding]:
    """Yield uncertain joints, but not those whose bone begins at an open joint."""
    model, is_person = fit.estimate.model, fit.initial.problem.is_person
    sds = np.zeros(skeleton.n_joints)
    for joint, name in enumerate(skeleton.names):
        covariance, before = skeleton.covariance[joint], skeleton.parent[joint]
        if not np.isfinite(covariance).all():
            continue
        values, vectors = np.linalg.eigh(covariance)
        sds[joint] = sd = float(np.sqrt(max(values[-1], 0.0)))
        is_open, is_hinge, advice = _check_determined(fit, model.index(name))
        begins_open, _, _ = _check_determined(fit, model.index(skeleton.names[before]))
        inherited = sds[before] if begins_open and not is_open else 0.0
        if sd <= np.hypot(MAX_JOINT_SD_M, inherited):
            continue
        direction = vectors[:, -1]
        direction = direction * np.sign(direction[np.abs(direction).argmax()])
        parent = mark_name(skeleton.names[before])
        yield Finding(
            "joint-open",
            "calibrate",
            "info" if is_person or is_hinge else "warning",
            f"known only to ±{1e3 * sd:.0f} mm along "
            f"({', '.join(f'{x:.2f}' for x in direction)}) of {parent}: {advice}",
            subject=name,
            value=sd,
        )


def _check_determined(fit: CalibrationFit, segment: int) -> tuple[bool, bool, str]:
    """Return whether a joint is undetermined, whether along an axis only, and advice.

    Args:
        fit: The fit.
        segment: The segment below the joint; -1 for none.
    """
    displacement = fit.initial.undetermined.get(segment)
    if displacement is None:
        return False, False, "bend and twist it more, about two axes"
    if displacement.shape[1] == 1:
        return (
            True,
            True,
            "it rotated about one axis only, and may be anywhere along it",
        )
    return True, False, "it did not rotate and keeps its position: bend and twist it"


def _noisy_markers(fit: CalibrationFit) -> Iterator[Finding]:
    """Yield a finding for every marker whose noise is far above that of others."""
    noise = fit.estimate.parameters.marker_noise
    median = float(np.median(noise))
    largest = noise.max(axis=0).tolist()
    for k in np.flatnonzero(find_noisy_markers(fit)).tolist():
        yield Finding(
            "marker-noisy",
            "calibrate",
            "warning",
            f"noise of {1e3 * largest[k]:.0f} mm, of others {1e3 * median:.0f} mm: "
            "check whether it slipped, is on loose clothing or has a wrong label",
            subject=fit.estimate.model.labels[k],
            value=largest[k],
        )


def not_calibrated(reason: str) -> Finding:
    """Return the finding that the skeleton was not calibrated."""
    return Finding(
        "not-calibrated",
        "calibrate",
        "warning",
        f"the skeleton stays as it was: {reason}",
    )


def markers_kept(fit: CalibrationFit) -> Finding:
    """Return the finding that markers sit where the known skeleton has them."""
    return Finding(
        "markers-kept",
        "calibrate",
        "info",
        "the markers sit where the known skeleton has them: they stay there, with a "
        f"residual of {1e3 * fit.rms_before:.1f} mm (rms)",
        value=fit.rms_before,
    )
