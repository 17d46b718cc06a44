"""Findings about a solved motion: lost frames, unseen joints, outlier markers."""

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

import numpy as np

from marey.motion import Motion
from marey.numerics import Array, Bool, Float, Int
from marey.numerics.robust import runs
from marey.numerics.thresholds import CERTAIN_SD, MIN_POSE_POINTS, MOST
from marey.pose.options import MAX_RMS_RESIDUAL_M, UNSEEN_S
from marey.pose.trace import PoseTrace
from marey.report import (
    Finding,
    Severity,
    count_noun,
    list_examples,
    mark_name,
    spell_frames,
)
from marey.skeleton import Skeleton
from marey.take import Take

if TYPE_CHECKING:
    from marey.pose.gauss_newton.fit import GaussNewtonSolver


LONG_UNSEEN_S = 1.0
"""Occlusion of a joint, in seconds, from which on it is a warning. Chosen by hand."""

MIN_MISFIT_SHARE = 0.2
"""Share of the frames beyond which a marker or a joint at its limit is reported. Higher
reports fewer. Chosen by hand."""

MIN_WEIGHT_SHARE = 0.5
"""Share of the weight that must remain after robust weighting; below it the frame is
lost. Higher reports more frames. Chosen by hand."""

UNSEEN_MESSAGE = "nothing is seen in {frames}: the pose there is extrapolated"
LOST_MESSAGE = (
    "most markers do not fit the skeleton in {frames}: "
    "look for swapped labels, or a skeleton of someone else"
)


def pose_findings(
    take: Take, fit: "GaussNewtonSolver", trace: PoseTrace
) -> tuple[Finding, ...]:
    """Return frames without targets or fit, and misfits of joints and markers."""
    residual_m = fit.marker_residuals(take.points, trace)
    cost, weight, robust_weight = trace.info[:, :3].T
    lost = cost > MAX_RMS_RESIDUAL_M**2 * weight
    lost |= robust_weight < MIN_WEIGHT_SHARE * weight
    outliers = tuple(_outlier_markers(fit, residual_m))
    reported = {finding.subject for finding in outliers}
    return (
        *warn_of_runs("pose-unseen", weight == 0.0, UNSEEN_MESSAGE),
        *warn_of_runs("pose-lost", lost, LOST_MESSAGE),
        *_lost_joints(fit, residual_m, lost),
        *_joints_at_limits(fit, trace, residual_m),
        *outliers,
        *_far_markers(fit, residual_m, lost, reported),
    )


def warn_of_runs(
    code: str, flags: Bool[Array, " frame"], message: str
) -> Iterator[Finding]:
    """Return a finding for every run of flagged frames; `message` has "{frames}".

    A warning, unless most frames of a take are lost: its motion is then an error.
    """
    is_most = code == "pose-lost" and np.mean(flags) > MOST
    severity: Severity = "error" if is_most else "warning"
    for first, last in runs(flags):
        yield Finding(
            code,
            "pose",
            severity,
            message.format(frames=spell_frames(first, last)),
            frames=(first, last),
            value=float(last - first + 1),
        )


def _lost_joints(
    fit: "GaussNewtonSolver",
    residual_m: Float[Array, "frame marker"],
    lost: Bool[Array, " frame"],
) -> Iterator[Finding]:
    """Return joints that leave most of their markers in frames that fit otherwise."""
    for joint in fit.nodes.moving_joints.tolist():
        far = ~lost & fit.leaves_markers(residual_m, joint)
        if not far.any():
            continue
        first, last = max(runs(far), key=lambda run: run[1] - run[0])
        yield Finding(
            "joint-lost",
            "pose",
            "warning",
            f"most of its markers are more than {1e3 * MAX_RMS_RESIDUAL_M:.0f} mm off "
            f"in {far.sum()} of {len(far)} frames, the longest time in "
            f"{spell_frames(first, last)}: look for swapped labels",
            subject=fit.skeleton.names[joint],
            frames=(first, last),
            value=float(far.sum()),
        )


def unseen_joints(motion: Motion) -> Iterator[Finding]:
    """Return the joints whose rotation nothing determines, as `Motion.angle_sd` has it.

    Frames that show nothing at all are not counted.
    """
    skeleton = motion.skeleton
    unknown = np.isnan(motion.angle_sd).any(axis=2)
    shown = ~unknown[:, skeleton.rotates].all(axis=1)
    never: list[int] = []
    for joint in range(1, skeleton.n_joints):
        unseen = shown & unknown[:, joint]
        if unseen.sum() > MOST * shown.sum():
            never.append(joint)
            continue
        for first, last in runs(unseen):
            seconds = (last - first + 1) / motion.rate
            if seconds >= UNSEEN_S:
                yield Finding(
                    "joint-unseen",
                    "pose",
                    "info" if seconds < LONG_UNSEEN_S else "warning",
                    f"too few markers or sensors are seen for {seconds:.2g} s: "
                    "its rotation there is a guess",
                    subject=skeleton.names[joint],
                    frames=(first, last),
                    value=seconds,
                )
    if never:
        yield _never_seen(skeleton, never)


def _never_seen(skeleton: Skeleton, joints: list[int]) -> Finding:
    """Return the finding about joints that are unknown in all frames.

    A bone with markers enough is unknown only relative to its parent, which is named.
    """
    n_markers = np.bincount(skeleton.marker_joint, minlength=skeleton.n_joints)
    causes = [
        joint
        for joint in joints
        if n_markers[joint] < MIN_POSE_POINTS or skeleton.parent[joint] not in joints
    ]
    listed = list_examples([mark_name(skeleton.names[joint]) for joint in causes])
    severity: Severity = "warning"
    message = (
        f"markers do not determine the rotation of {listed}, which is partly a guess "
        "in all frames: attach three markers off one line, or a sensor"
    )
    if _are_keypoints(skeleton, n_markers[causes]):
        severity = "info"
        message = (
            f"single points do not show how {listed} turn about themselves, as usual "
            "for keypoints: attach three markers to each bone to see it"
        )
    return Finding(
        "joint-never-seen", "pose", severity, message, value=float(len(causes))
    )


def _are_keypoints(skeleton: Skeleton, n_markers: Int[Array, " joint"]) -> bool:
    """Return whether most bones are unknown and none of these has two markers.

    Then a single point for each joint is all that was recorded: that is no fault.
    """
    most = len(n_markers) > skeleton.rotates.sum() / 2
    return bool(most and (n_markers <= 1).all())


def _joints_at_limits(
    fit: "GaussNewtonSolver",
    trace: PoseTrace,
    residual_m: Float[Array, "frame marker"],
) -> Iterator[Finding]:
    """Return joints whose limits keep them away from their markers."""
    if not fit.nodes.tree.has_limits.any():
        return
    at_limits = fit.clamp_to_limits(trace.q.copy())
    for joint in fit.nodes.moving_joints:
        first = fit.nodes.first_node_of_joint[joint]
        last = fit.nodes.node_of_joint[joint]
        markers = slice(*fit.targets.start[last : last + 2])
        frames = np.flatnonzero(at_limits[:, first : last + 1].any(axis=1))
        if not len(frames) or markers.start == markers.stop:
            continue
        residual = residual_m[frames, markers]
        seen = np.isfinite(residual)
        mean = np.where(seen, residual, 0.0).sum(axis=1)
        mean = mean / np.maximum(seen.sum(axis=1), 1)
        misfit = mean > CERTAIN_SD * fit.options.marker_sd
        share = misfit.sum() / len(residual_m)
        if share > MIN_MISFIT_SHARE:
            yield Finding(
                "joint-held",
                "pose",
                "warning",
                f"is at its limits in {share:.0%} of the frames with its markers "
                f"{1e3 * np.median(mean[misfit]):.0f} mm off: check the sign of its "
                "axis, or widen its limits",
                subject=fit.skeleton.names[joint],
                frames=(int(frames[misfit][0]), int(frames[misfit][-1])),
                value=float(share),
            )


def _far_markers(
    fit: "GaussNewtonSolver",
    residual_m: Float[Array, "frame marker"],
    lost: Bool[Array, " frame"],
    reported: Collection[str],
) -> Iterator[Finding]:
    """Return markers far from the skeleton in frames that fit otherwise.

    Args:
        fit: The solver.
        residual_m: Distance of every marker from its model position, in metres.
        lost: Frames that fit no marker.
        reported: Markers that are outliers in many frames.
    """
    with np.errstate(invalid="ignore"):
        far = (residual_m > MAX_RMS_RESIDUAL_M) & ~lost[:, None]
    for joint in fit.nodes.moving_joints.tolist():
        node = fit.nodes.node_of_joint[joint]
        markers = slice(*fit.targets.start[node : node + 2])
        far[fit.leaves_markers(residual_m, joint), markers] = False
    for k in np.flatnonzero(far.any(axis=0)).tolist():
        label = fit.skeleton.marker_labels[fit.matches.marker[k]]
        if label in reported:
            continue
        worst = int(np.argmax(np.where(far[:, k], residual_m[:, k], 0.0)))
        largest = float(residual_m[worst, k])
        frames = count_noun(int(far[:, k].sum()), "frame")
        yield Finding(
            "marker-far",
            "pose",
            "warning",
            f"is up to {1e3 * largest:.0f} mm off in {frames}, the most in frame "
            f"{worst}: look for a spike or a swapped label there",
            subject=label,
            frames=(worst, worst),
            value=largest,
        )


def _outlier_markers(
    fit: "GaussNewtonSolver",
    residual_m: Float[Array, "frame marker"],
) -> Iterator[Finding]:
    """Return markers that are outliers in many of their frames."""
    if fit.options.outlier == 0.0 or not len(fit.matches.marker):
        return
    softness = fit.targets.softness
    columns = zip(residual_m.T, softness, strict=True)
    n_outliers = np.array([np.sum(one**2 * soft > 1.0) for one, soft in columns])
    n_seen = np.maximum(np.isfinite(residual_m).sum(axis=0), 1)
    shares = n_outliers / n_seen
    for k in np.flatnonzero(n_outliers > MIN_MISFIT_SHARE * n_seen):
        yield Finding(
            "marker-outliers",
            "pose",
            "warning",
            f"is an outlier in {shares[k]:.0%} of its frames: it may have slipped, or "
            "its label is swapped",
            subject=fit.skeleton.marker_labels[fit.matches.marker[k]],
            value=float(shares[k]),
        )
