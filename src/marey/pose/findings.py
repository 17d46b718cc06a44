"""Findings about a solved motion: lost frames, unseen joints, outlier markers."""

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

import numpy as np

from marey.motion import Motion
from marey.numerics import Array, Bool, Int
from marey.numerics.robust import mean_where, runs
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
    misfits = _Misfits(take, fit, trace)
    weight = trace.info[:, 1]
    outliers = tuple(misfits.outlier_markers())
    reported = {finding.subject for finding in outliers}
    return (
        *warn_of_runs("pose-unseen", weight == 0.0, UNSEEN_MESSAGE),
        *warn_of_runs("pose-lost", misfits.lost, LOST_MESSAGE),
        *misfits.lost_joints(),
        *misfits.joints_at_limits(),
        *outliers,
        *misfits.far_markers(reported),
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


def unseen_joints(motion: Motion) -> Iterator[Finding]:
    """Return the joints whose rotation nothing determines: `Motion.angle_sd` is NaN.

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


class _Misfits:
    """Joints and markers that do not fit in a solved take."""

    def __init__(self, take: Take, fit: "GaussNewtonSolver", trace: PoseTrace) -> None:
        self.fit, self.trace = fit, trace
        self.residual_m = fit.marker_residuals(take.points, trace)
        """Distance of every marker from its model position; NaN where unseen."""
        cost, weight, robust_weight = trace.info[:, :3].T
        self.lost = cost > MAX_RMS_RESIDUAL_M**2 * weight
        self.lost |= robust_weight < MIN_WEIGHT_SHARE * weight
        """Frames that fit no marker."""

    def _label(self, marker: int) -> str:
        """Return the label of a matched marker."""
        marker = int(self.fit.matches.marker[marker])
        return self.fit.skeleton.marker_labels[marker]

    def _markers_of(self, joint: int) -> slice:
        """Return the matched markers on the bone of a joint."""
        node = self.fit.nodes.node_of_joint[joint]
        return slice(*self.fit.targets.start[node : node + 2])

    def lost_joints(self) -> Iterator[Finding]:
        """Yield joints that leave most of their markers while the other joints fit."""
        for joint in self.fit.nodes.moving_joints.tolist():
            far = ~self.lost & self.fit.leaves_markers(self.residual_m, joint)
            if not far.any():
                continue
            first, last = max(runs(far), key=lambda run: run[1] - run[0])
            message = (
                f"most of its markers are more than {1e3 * MAX_RMS_RESIDUAL_M:.0f} mm "
                f"off in {far.sum()} of {len(far)} frames, the longest time in "
                f"{spell_frames(first, last)}: look for swapped labels"
            )
            name, count = self.fit.skeleton.names[joint], float(far.sum())
            yield _warning("joint-lost", message, name, count, (first, last))

    def joints_at_limits(self) -> Iterator[Finding]:
        """Yield joints whose limits keep them away from their markers."""
        fit, residual_m = self.fit, self.residual_m
        if not fit.nodes.tree.has_limits.any():
            return
        at_limits = fit.clamp_to_limits(self.trace.q.copy())
        for joint in fit.nodes.moving_joints.tolist():
            first = fit.nodes.first_node_of_joint[joint]
            last = fit.nodes.node_of_joint[joint]
            frames = np.flatnonzero(at_limits[:, first : last + 1].any(axis=1))
            residual = residual_m[frames, self._markers_of(joint)]
            if not residual.size:
                continue
            mean = mean_where(residual, np.isfinite(residual), axis=1, default=0.0)
            misfit = mean > CERTAIN_SD * fit.options.marker_sd
            share = float(misfit.sum() / len(residual_m))
            if share > MIN_MISFIT_SHARE:
                message = (
                    f"is at its limits in {share:.0%} of the frames with its markers "
                    f"{1e3 * np.median(mean[misfit]):.0f} mm off: check the sign of "
                    "its axis, or widen its limits"
                )
                span = int(frames[misfit][0]), int(frames[misfit][-1])
                name = fit.skeleton.names[joint]
                yield _warning("joint-held", message, name, share, span)

    def far_markers(self, reported: Collection[str]) -> Iterator[Finding]:
        """Yield markers far from the skeleton in frames that fit otherwise.

        Args:
            reported: Markers that are outliers in many frames.
        """
        residual_m = self.residual_m
        with np.errstate(invalid="ignore"):
            far = (residual_m > MAX_RMS_RESIDUAL_M) & ~self.lost[:, None]
        for joint in self.fit.nodes.moving_joints.tolist():
            left = self.fit.leaves_markers(residual_m, joint)
            far[left, self._markers_of(joint)] = False
        for k in np.flatnonzero(far.any(axis=0)).tolist():
            if self._label(k) in reported:
                continue
            worst = int(np.argmax(np.where(far[:, k], residual_m[:, k], 0.0)))
            largest = float(residual_m[worst, k])
            frames = count_noun(int(far[:, k].sum()), "frame")
            message = (
                f"is up to {1e3 * largest:.0f} mm off in {frames}, the most in frame "
                f"{worst}: look for a spike or a swapped label there"
            )
            span = worst, worst
            yield _warning("marker-far", message, self._label(k), largest, span)

    def outlier_markers(self) -> Iterator[Finding]:
        """Yield markers that are outliers in many of their frames."""
        if self.fit.options.outlier == 0.0:
            return
        for k, residual in enumerate(self.residual_m.T):
            n_outliers = np.sum(residual**2 * self.fit.targets.softness[k] > 1.0)
            n_seen = max(np.isfinite(residual).sum(), 1)
            share = float(n_outliers / n_seen)
            if n_outliers > MIN_MISFIT_SHARE * n_seen:
                message = (
                    f"is an outlier in {share:.0%} of its frames: it may have slipped, "
                    "or its label is swapped"
                )
                yield _warning("marker-outliers", message, self._label(k), share)


def _warning(
    code: str,
    message: str,
    subject: str,
    value: float,
    frames: tuple[int, int] = (-1, -1),
) -> Finding:
    """Return a warning of the stage "pose"."""
    return Finding(code, "pose", "warning", message, subject, frames, value)
