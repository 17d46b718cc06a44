"""Greedy search for slips of sensors: the most likely slip is undone, and so on."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import log

import numpy as np

from marey.bodies import Bodies
from marey.cleaning.arrays import Array, Frames, Poses
from marey.cleaning.slips import change_point
from marey.cleaning.slips.sensor_likelihood import (
    Basis,
    JointInSensor,
    constant_basis,
    fit_joint_in_both,
    joint_correlation,
    slip_likelihood_ratio,
)
from marey.cleaning.slips.sensors import SensorSlip
from marey.numerics import Bool, Float, Int, geometry
from marey.numerics.noise import rms_length
from marey.numerics.procrustes import poses_seen
from marey.numerics.robust import finite_median
from marey.numerics.thresholds import (
    FEW,
    MARKER_NOISE_M,
    MAX_NON_ROTATION,
    MIN_POSE_POINTS,
    OUTLIER_SD,
    SAMPLE_FRAMES,
    SKIN_MOTION_M,
)

REFINEMENT_ITERATIONS = 3
"""Repetitions of the estimation of each slip with all others undone. Chosen by hand."""

ROTATION_DAMPING = 1e-10
"""Relative damping of rotations that the joints do not determine. It only keeps the
normal matrix regular."""

GAUSS_NEWTON_ITERATIONS = 10
"""Iterations for the pose change of a slip. Chosen by hand."""


Candidate = tuple[float, float, int, int]
"""A possible slip: the log probability as if joints were independent, to compare
sensors; that without a slip, over all frames and sensors; the body; the frame."""


class SlipSearch:
    """The poses with the slips found so far undone, and their joints.

    Frames are counted through all takes, except in `SensorSlip`.
    """

    peak_distance = np.inf
    """Frames between two changes of one sensor of which both are tried."""

    min_displacement = MARKER_NOISE_M
    """Smallest displacement of a joint centre that is a slip, in metres."""

    def __init__(
        self, takes: tuple[Bodies, ...], pairs: Int[Array, "joint 2"], level: float
    ) -> None:
        self.names, self.level = takes[0].names, level
        self.T = np.concatenate([take.T_world_body for take in takes])
        self.starts = np.cumsum([0] + [len(take.T_world_body) for take in takes[:-1]])
        self.adjacent: dict[int, list[int]] = {b: [] for b in range(len(self.names))}
        paired = np.unique(pairs).tolist()
        is_rigid = {body: _is_rotation(self.T[:, body]) for body in paired}
        for a, b in pairs.tolist():
            if is_rigid[a] and is_rigid[b]:
                self.adjacent[a].append(b)
                self.adjacent[b].append(a)
        self.joints: dict[tuple[int, int], JointInSensor] = {}
        self.candidates: dict[int, Candidate | None] = {}
        self.corrections: list[tuple[int, int, Array]] = []

    def joints_of(self, body: int) -> dict[int, JointInSensor]:
        """Return the joints of a body in its axes, by the other body."""
        for other in self.adjacent[body]:
            if (body, other) not in self.joints:
                both = fit_joint_in_both(
                    self.T[:, body],
                    self.T[:, other],
                    self.posture_basis(body),
                    self.posture_basis(other),
                )
                if both is not None:
                    self.joints[body, other], self.joints[other, body] = both
        return {
            other: self.joints[body, other]
            for other in self.adjacent[body]
            if (body, other) in self.joints
        }

    def posture_basis(self, body: int) -> Basis:
        """Return the functions of posture with which the skin of a body moves."""
        return constant_basis(len(self.T))

    def is_slip(self, body: int, joints: Sequence[JointInSensor], frame: int) -> bool:
        """Return whether a significant change of a body's joints is large enough."""
        return max(j.slip_size(frame) for j in joints) >= self.min_displacement

    def has_slips(self) -> bool:
        """Return whether any sensor seems to have slipped."""
        return self._find_slip(range(len(self.names))) is not None

    def find_all(self) -> list[SensorSlip]:
        """Return all significant slips, and undo them."""
        slips: list[SensorSlip] = []
        while (slip := self._find_slip(range(len(self.names)))) is not None:
            if sum(s.sensor == slip.sensor for s in slips) == change_point.MAX_SLIPS:
                break
            slips.append(slip)
            self.undo(slip)
        for _ in range(REFINEMENT_ITERATIONS if len(slips) > 1 else 0):
            slips = self.refine(slips)
        return slips

    def find_open_joints(self, pairs: Int[Array, "joint 2"]) -> Bool[Array, " joint"]:
        """Return which joints have large residuals after all slips are undone.

        A slip can lead to a wrong tree. The residual of bodies that are not really
        joined looks like many slips.
        """
        joints = [self.joints_of(a).get(b) for a, b in pairs.tolist()]
        rms = [np.nan if j is None else rms_length(j.residual) for j in joints]
        limit = OUTLIER_SD * finite_median(np.array(rms))
        return np.array(rms) > max(limit, SKIN_MOTION_M)

    def _find_slip(self, bodies: Sequence[int]) -> SensorSlip | None:
        """Return the most likely slip of some bodies; None if it is not significant."""
        for body in bodies:
            if body not in self.candidates:
                self.candidates[body] = self._best_candidate(body)
        candidates = [self.candidates[body] for body in bodies]
        found = [candidate for candidate in candidates if candidate is not None]
        if not found:
            return None
        _, log_p, body, frame = min(found)
        joints = self.joints_of(body)
        ratio = {
            other: float(joint.likelihood_ratio(np.array([frame]))[0])
            for other, joint in joints.items()
        }
        minimum = FEW * sum(ratio.values())
        clearest = sorted(ratio, key=lambda other: -ratio[other])
        take = int(np.searchsorted(self.starts, frame, side="right")) - 1
        return SensorSlip(
            sensor=self.names[body],
            frame=frame - int(self.starts[take]),
            T_before_after=_pose_change(list(joints.values()), frame),
            p_value=float(np.exp(log_p)),
            **self.names_of_others([o for o in clearest if ratio[o] >= minimum]),
            rotation_known=len(joints) >= MIN_POSE_POINTS,
            take=take,
        )

    def names_of_others(self, others: Sequence[int]) -> dict[str, tuple[str, ...]]:
        """Return what shows a slip, as fields of `SensorSlip`: joints to others."""
        return {"joints": tuple(self.names[other] for other in others)}

    def _best_candidate(self, body: int) -> Candidate | None:
        """Return the most likely significant slip of a body."""
        joints = list(self.joints_of(body).values())
        coarse = _search_frames(joints)
        if not len(coarse):
            return None
        correlation = joint_correlation(joints)
        independent, _ = slip_likelihood_ratio(joints, correlation, coarse)
        step = int(np.diff(coarse).max(initial=1))
        margins = (coarse[0] / len(self.T), 1.0 - coarse[-1] / len(self.T))
        # One joint determines 3 of the 6 degrees of freedom of a slip, two joints 5.
        dof = int(np.linalg.matrix_rank(np.concatenate([j.lever for j in joints])))
        for best in self._highest_peaks(coarse, independent):
            fine = np.arange(
                max(best - step, coarse[0]), min(best + step, coarse[-1]) + 1
            )
            ratios = slip_likelihood_ratio(joints, correlation, fine)
            top = int(ratios[0].argmax())
            frame = int(fine[top])
            log_rank, log_p = (
                change_point.log_exceedance(float(x[top]), dof, margins) for x in ratios
            )
            log_p = min(log_p + log(len(self.names)), 0.0)
            if log_p < log(self.level) and self.is_slip(body, joints, frame):
                return log_rank, log_p, body, frame
            if log_rank >= log(self.level):
                break
        return None

    def _highest_peaks(
        self, frames: Frames, ratio: Float[Array, " time"]
    ) -> Iterator[int]:
        """Yield the frames with the largest ratios, apart from each other."""
        left = np.ones(len(frames), dtype=bool)
        while left.any():
            best = int(frames[np.where(left, ratio, -np.inf).argmax()])
            yield best
            left &= np.abs(frames - best) > self.peak_distance

    def undo(self, slip: SensorSlip) -> None:
        """Transform the poses after a slip into the axes before it."""
        self._correct(slip, geometry.inverse(slip.T_before_after))

    def _correct(self, slip: SensorSlip, change: Float[Array, "4 4"]) -> None:
        """Multiply the poses after a slip by a change of axes."""
        body, frame = self.names.index(slip.sensor), self._frame(slip)
        self.T[frame:, body] = self.T[frame:, body] @ change
        self.corrections.append((body, frame, change))
        self.forget_joints(body)

    def forget_joints(self, body: int) -> None:
        """Forget the joints of a body, whose poses have changed."""
        self.candidates.pop(body, None)
        for other in self.adjacent[body]:
            self.candidates.pop(other, None)
            self.joints.pop((body, other), None)
            self.joints.pop((other, body), None)

    def _frame(self, slip: SensorSlip) -> int:
        """Return the frame of a slip, counted through all takes."""
        return int(self.starts[slip.take]) + slip.frame

    def refine(self, slips: list[SensorSlip]) -> list[SensorSlip]:
        """Return the slips, each estimated again with all others undone.

        Slips of one sensor within a few frames are one slip, found in two steps.
        """
        refined = []
        remaining = list(slips)
        while remaining:
            same = [
                slip
                for slip in remaining
                if slip.sensor == remaining[0].sensor
                and abs(self._frame(slip) - self._frame(remaining[0]))
                < change_point.MIN_SIDE_FRAMES
            ]
            remaining = [slip for slip in remaining if slip not in same]
            for slip in reversed(same):
                self._correct(slip, slip.T_before_after)
            better = self._find_slip([self.names.index(same[0].sensor)])
            if better is not None:
                refined.append(better)
                self.undo(better)
        return refined

    def in_time_order(self, slips: list[SensorSlip]) -> tuple[SensorSlip, ...]:
        """Return the slips by time, each relative to the sensor's pose before it.

        Slips of one sensor may have been found in another order, so each change is
        computed from the product of all corrections up to its frame.
        """
        ordered = []
        T_first_previous: dict[str, Array] = {}
        for slip in sorted(slips, key=self._frame):
            body, T_now_first = self.names.index(slip.sensor), np.eye(4)
            for other, frame, change in self.corrections:
                if other == body and frame <= self._frame(slip):
                    T_now_first = T_now_first @ change
            T_first_now = geometry.inverse(T_now_first)
            previous = T_first_previous.get(slip.sensor, np.eye(4))
            T_before_after = geometry.inverse(previous) @ T_first_now
            ordered.append(replace(slip, T_before_after=T_before_after))
            T_first_previous[slip.sensor] = T_first_now
        return tuple(ordered)


def _is_rotation(T: Poses) -> bool:
    """Return whether orientations are rotations; scale and shear spoil residuals."""
    x, y, z = np.moveaxis(T[poses_seen(T), :3, :3], -1, 0)
    lengths = (np.einsum("fi,fi->f", axis, axis) - 1.0 for axis in (x, y, z))
    angles = (np.einsum("fi,fi->f", a, b) for a, b in ((x, y), (y, z), (z, x)))
    error = max(np.abs(own).max(initial=0.0) for own in (*lengths, *angles))
    return bool(error < MAX_NON_ROTATION)


def _search_frames(joints: Sequence[JointInSensor]) -> Int[Array, " time"]:
    """Return the frames of the coarse search for a slip of a sensor."""
    margin = change_point.MIN_SIDE_FRAMES
    if not joints or any(len(joint.frames) <= 2 * margin for joint in joints):
        return np.zeros(0, dtype=np.int64)
    first = max(int(joint.frames[margin]) for joint in joints)
    last = min(int(joint.frames[-margin]) for joint in joints)
    return np.arange(first, last, max((last - first) // SAMPLE_FRAMES, 1))


def _pose_change(joints: Sequence[JointInSensor], frame: int) -> Float[Array, "4 4"]:
    r"""Return the pose of the sensor after a slip in its axes before it.

    Gauss-Newton on :math:`\sum_j \lVert x_j - R y_j - t \rVert^2_{W_j}` with the joint
    centres :math:`x_j` before and :math:`y_j` after the slip. Rotations that the joints
    do not determine are damped to zero.
    """
    changes = [joint.change_of_center(frame) for joint in joints]
    x, y, W = (np.array(values) for values in zip(*changes, strict=True))
    R, t = np.eye(3), (x - y).mean(axis=0)
    for _ in range(GAUSS_NEWTON_ITERATIONS):
        rotated = y @ R.T
        identity = np.tile(np.eye(3), (len(y), 1, 1))
        J = np.concatenate([-geometry.hat(rotated), identity], 2)
        residual = x - rotated - t
        A = np.einsum("jki,jkl,jlm->im", J, W, J)
        damping = ROTATION_DAMPING * np.trace(A[:3, :3])
        A[:3, :3] += damping * np.eye(3)
        g = np.einsum("jki,jkl,jl->i", J, W, residual)
        g[:3] -= damping * geometry.rotation_log(R)
        step = np.linalg.solve(A, g)
        R, t = geometry.rotation_exp(step[:3]) @ R, t + step[3:]
    return geometry.transform(R, t)
