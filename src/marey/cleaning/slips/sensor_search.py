"""Greedy search for slips of sensors: find the most likely one, undo it, repeat."""

from collections.abc import Sequence
from dataclasses import replace
from math import log
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.bodies import Bodies
from marey.cleaning.slips import change_point
from marey.cleaning.slips.sensor_likelihood import (
    JointInSensor,
    fit_joint_in_both,
    joint_correlation,
    slip_likelihood_ratio,
)
from marey.cleaning.slips.sensor_slip import SensorSlip
from marey.numerics import geometry

Array = np.ndarray

MIN_DISPLACEMENT_M = 1e-3
"""Smallest displacement of a joint centre by a slip, in metres. Smaller changes are
errors of the instrument, even if significant. Chosen by hand."""

COARSE_FRAMES = 600
"""Frames of the first, coarse search; the best is then refined frame by frame. Chosen
by hand."""

MAX_SLIPS = 3
"""Slips per body after which it is loose and the search ends. Chosen by hand."""

MAX_RESIDUAL_RATIO = 3.0
"""Residual of a joint after all slips are undone, relative to the median of all joints,
above which it is no real joint. Chosen by hand."""

MIN_OPEN_RESIDUAL_M = 0.01
"""Smallest residual of a joint that is no real joint, in metres. Chosen by hand."""

MAX_ROTATION_ERROR = 1e-3
"""Largest deviation of R^T R from the identity; a larger one is scale or shear. Chosen
by hand."""

REFINEMENT_PASSES = 3
"""Repetitions of the estimation of each slip with all others undone. Chosen by hand."""

ROTATION_DAMPING = 1e-10
"""Relative damping of rotations that the joints do not determine. It only keeps the
normal matrix regular."""

GAUSS_NEWTON_ITERATIONS = 10
"""Iterations for the pose change of a slip. Chosen by hand."""

MIN_NAMED_SHARE = 0.1
"""Share of the likelihood ratio from which a joint is named in the finding. Chosen by
hand."""


class Candidate(NamedTuple):
    """A possible slip. The order compares candidates."""

    log_rank: float
    """Log probability as if joints were independent, to compare sensors."""

    log_p: float
    """Log probability without a slip, over all frames and sensors."""

    body: int
    frame: int


class SlipSearch:
    """The poses with the slips found so far undone, and their joints.

    Frames are counted through all takes, except in `SensorSlip`.
    """

    def __init__(
        self, takes: tuple[Bodies, ...], pairs: Int[Array, "joint 2"], level: float
    ) -> None:
        self.names, self.level = takes[0].names, level
        self.T = np.concatenate([take.T_world_body for take in takes])
        self.starts = np.cumsum([0] + [len(take.T_world_body) for take in takes[:-1]])
        self.adjacent: dict[int, list[int]] = {b: [] for b in range(len(self.names))}
        is_rigid = [_is_rotation(self.T[:, body]) for body in self.adjacent]
        for a, b in pairs.tolist():
            if is_rigid[a] and is_rigid[b]:
                self.adjacent[a].append(b)
                self.adjacent[b].append(a)
        self.joints: dict[tuple[int, int], JointInSensor] = {}
        self.corrections: list[tuple[int, int, Array]] = []

    def joints_of(self, body: int) -> dict[int, JointInSensor]:
        """Return the joints of a body in its axes, by the other body."""
        for other in self.adjacent[body]:
            if (body, other) not in self.joints:
                both = fit_joint_in_both(self.T[:, body], self.T[:, other])
                if both is not None:
                    self.joints[body, other], self.joints[other, body] = both
        return {
            other: self.joints[body, other]
            for other in self.adjacent[body]
            if (body, other) in self.joints
        }

    def find_all(self) -> list[SensorSlip]:
        """Return all significant slips, and undo them."""
        slips: list[SensorSlip] = []
        while (slip := self.find_most_likely()) is not None:
            if sum(s.sensor == slip.sensor for s in slips) == MAX_SLIPS:
                break
            slips.append(slip)
            self.undo(slip)
        for _ in range(REFINEMENT_PASSES if len(slips) > 1 else 0):
            slips = self.refine(slips)
        return slips

    def find_open_joints(self, pairs: Int[Array, "joint 2"]) -> Bool[Array, " joint"]:
        """Return which joints have large residuals after all slips are undone.

        A slip can lead to a wrong tree. The residual of bodies that are not really
        joined looks like many slips.
        """
        joints = [self.joints_of(a).get(b) for a, b in pairs.tolist()]
        square = [np.mean(j.residual**2) if j is not None else np.nan for j in joints]
        residual = np.sqrt(3.0 * np.array(square))
        usual = np.nanmedian(residual) if np.isfinite(residual).any() else 0.0
        limit = max(MAX_RESIDUAL_RATIO * usual, MIN_OPEN_RESIDUAL_M)
        return np.asarray(residual > limit)

    def find_most_likely(self) -> SensorSlip | None:
        """Return the most likely slip; None if no slip is significant."""
        found = [self._best_candidate(body) for body in range(len(self.names))]
        candidates = [candidate for candidate in found if candidate is not None]
        return self._significant_slip(min(candidates)) if candidates else None

    def _best_candidate(self, body: int) -> Candidate | None:
        """Return the most likely slip of a body, significant or not."""
        joints = list(self.joints_of(body).values())
        coarse = _search_frames(joints)
        if not len(coarse):
            return None
        correlation = joint_correlation(joints)
        best = int(
            coarse[slip_likelihood_ratio(joints, correlation, coarse)[0].argmax()]
        )
        step = int(np.diff(coarse).max(initial=1))
        first, last = max(best - step, coarse[0]), min(best + step, coarse[-1])
        fine = np.arange(first, last + 1)
        independent, ratio = slip_likelihood_ratio(joints, correlation, fine)
        top = int(independent.argmax())
        displacements = (j.estimate_displacement(fine[[top]])[0] for j in joints)
        if max(map(np.linalg.norm, displacements)) < MIN_DISPLACEMENT_M:
            return None
        margins = (coarse[0] / len(self.T), 1.0 - coarse[-1] / len(self.T))
        # One joint determines 3 of the 6 degrees of freedom of a slip, two joints 5.
        dof = {1: 3, 2: 5}.get(len(joints), 6)
        log_rank, log_p = (
            change_point.log_exceedance(float(x[top]), dof, margins)
            for x in (independent, ratio)
        )
        log_p = min(log_p + log(len(self.names)), 0.0)
        return Candidate(log_rank, log_p, body, int(fine[top]))

    def _significant_slip(self, candidate: Candidate) -> SensorSlip | None:
        """Return the slip of a candidate; None if it is not significant."""
        if candidate.log_p >= log(self.level):
            return None
        body, frame = candidate.body, candidate.frame
        joints = self.joints_of(body)
        ratio = {
            other: float(joint.likelihood_ratio(np.array([frame]))[0])
            for other, joint in joints.items()
        }
        minimum = MIN_NAMED_SHARE * sum(ratio.values())
        clearest = sorted(ratio, key=lambda other: -ratio[other])
        take = int(np.searchsorted(self.starts, frame, side="right")) - 1
        return SensorSlip(
            sensor=self.names[body],
            frame=frame - int(self.starts[take]),
            T_before_after=_pose_change(list(joints.values()), frame),
            p_value=float(np.exp(candidate.log_p)),
            joints=tuple(self.names[o] for o in clearest if ratio[o] >= minimum),
            rotation_known=len(joints) >= 3,
            take=take,
        )

    def undo(self, slip: SensorSlip) -> None:
        """Transform the poses after a slip into the axes before it."""
        self._correct(slip, geometry.inverse(slip.T_before_after))

    def _correct(self, slip: SensorSlip, change: Float[Array, "4 4"]) -> None:
        """Multiply the poses after a slip by a change of axes."""
        body, frame = self.names.index(slip.sensor), self._frame(slip)
        self.T[frame:, body] = self.T[frame:, body] @ change
        self.corrections.append((body, frame, change))
        for other in self.adjacent[body]:
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
            same = [s for s in remaining if self._is_same(s, remaining[0])]
            remaining = [s for s in remaining if s not in same]
            for slip in reversed(same):
                self._correct(slip, slip.T_before_after)
            best = self._best_candidate(self.names.index(same[0].sensor))
            better = self._significant_slip(best) if best is not None else None
            if better is not None:
                refined.append(better)
                self.undo(better)
        return refined

    def _is_same(self, slip: SensorSlip, other: SensorSlip) -> bool:
        distance = abs(self._frame(slip) - self._frame(other))
        return slip.sensor == other.sensor and distance < change_point.MIN_SIDE_FRAMES

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


def _is_rotation(T: Float[Array, "frame 4 4"]) -> bool:
    """Return whether orientations neither scale nor shear, which spoils residuals."""
    R = T[np.isfinite(T).all(axis=(1, 2)), :3, :3]
    error = np.abs(R.swapaxes(1, 2) @ R - np.eye(3)).max(initial=0.0)
    return bool(error < MAX_ROTATION_ERROR)


def _search_frames(joints: Sequence[JointInSensor]) -> Int[Array, " time"]:
    """Return the frames of the coarse search for a slip of a sensor."""
    margins = [(j.frames, change_point.min_side_frames(len(j.frames))) for j in joints]
    if not joints or any(len(frames) <= 2 * margin for frames, margin in margins):
        return np.zeros(0, dtype=np.int64)
    first = max(int(frames[margin]) for frames, margin in margins)
    last = min(int(frames[-margin]) for frames, margin in margins)
    return np.arange(first, last, max((last - first) // COARSE_FRAMES, 1))


def _pose_change(joints: Sequence[JointInSensor], frame: int) -> Float[Array, "4 4"]:
    r"""Return the pose of the sensor after a slip in its axes before it.

    Gauss-Newton on :math:`\sum_j \lVert x_j - R y_j - t \rVert^2_{W_j}` with the joint
    centres :math:`x_j` before and :math:`y_j` after the slip. Rotations that the joints
    do not determine are damped to zero.
    """
    centers = np.array([joint.centers_before_after(frame) for joint in joints])
    x, y = centers[:, 0], centers[:, 1]
    W = np.array(
        [j.estimate_displacement(np.array([frame]))[1][0] / j.variance for j in joints]
    )
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
