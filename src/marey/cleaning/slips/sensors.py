"""Slips of sensors, found and undone.

OBrien2000 (Sec. 5) expects that a sensor that moves on its limb changes the residual,
and advises to record again. Here the frame, the sensor and the change of its pose are
estimated, so the recording can be kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.bodies import Bodies
from marey.cleaning.arrays import Array, Poses
from marey.cleaning.repairs import record_repair, repair_warning
from marey.cleaning.slips import change_point
from marey.cleaning.slips.sensor_likelihood import (
    JointInSensor,
    fit_joint_in_both,
    joint_correlation,
    slip_likelihood_ratio,
)
from marey.joint_fits import JointFits
from marey.numerics import geometry
from marey.numerics.noise import rms_length
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
from marey.report import Finding, mark_name
from marey.take import Take
from marey.tree import Tree

REFINEMENT_ITERATIONS = 3
"""Repetitions of the estimation of each slip with all others undone. Chosen by hand."""

ROTATION_DAMPING = 1e-10
"""Relative damping of rotations that the joints do not determine. It only keeps the
normal matrix regular."""

GAUSS_NEWTON_ITERATIONS = 10
"""Iterations for the pose change of a slip. Chosen by hand."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SensorSlip:
    """One sensor that moved on its body once and stayed there."""

    sensor: str
    frame: int
    """First frame after the slip."""

    T_before_after: Float[Array, "4 4"]
    """Pose of the sensor after the slip in its axes before it, in metres."""

    p_value: float
    """Probability of such a likelihood ratio without a slip, over all frames and
    sensors."""

    joints: tuple[str, ...] = ()
    """The other bodies of the joints that show the slip, the clearest first."""

    rotation_known: bool
    """Whether the joints determine the rotation: three or more do. One joint determines
    no rotation, two leave that about the line between them open."""

    take: int = 0
    """Index of the take."""

    markers: tuple[str, ...] = ()
    """Markers on the same body that show the slip, if it is not shown by joints."""

    @property
    def displacement(self) -> Float[Array, "3"]:
        """Displacement of the sensor in its axes before the slip, in metres."""
        return np.asarray(self.T_before_after[:3, 3])

    @property
    def size(self) -> float:
        """Length of the displacement, in metres."""
        return float(np.linalg.norm(self.displacement))

    @property
    def angle(self) -> float:
        """Angle of the rotation, in radians."""
        rotvec = geometry.rotation_log(self.T_before_after[:3, :3])
        return float(np.linalg.norm(rotvec))

    def __str__(self) -> str:
        degrees = round(float(np.degrees(self.angle)), 1)
        turned = f" and {degrees:.1f} deg"
        if not self.rotation_known:
            turned = f"{turned} or more" if degrees else ""
        return f"slipped by {1e3 * self.size:.1f} mm{turned} at frame {self.frame}"

    @property
    def finding(self) -> Finding:
        """The finding for the report."""
        shown = f"joint to {', '.join(map(mark_name, self.joints))}"
        if self.markers:
            shown = f"by {len(self.markers)} markers on its body"
        rotation = "" if self.rotation_known else " as far as its joints show it"
        message = f"{self} ({shown}); undone{rotation}; {change_point.ADVICE}"
        frames = (self.frame, self.frame)
        return repair_warning("sensor-slipped", message, self.sensor, frames, self.size)


def find_sensor_slips(
    bodies: Bodies | Sequence[Bodies],
    joints: JointFits,
    tree: Tree,
    *,
    level: float = change_point.FALSE_ALARM_LEVEL,
) -> tuple[SensorSlip, ...]:
    """Return the slips of sensors, in the order of time.

    In the axes of its own sensor a joint centre is constant. A slip displaces all joint
    centres of the sensor at once, and they stay there. For every frame the likelihood
    ratio of such a change is summed over the sensor's joints, relative to the long-run
    variance of each joint's residual, so that slow noise is no slip. The most likely
    slip is undone and the search repeated until none is significant (greedy search).
    Then each slip is estimated again with all others undone.

    Args:
        bodies: The moving bodies, or several takes of them in the order of recording: a
            slip lasts into the takes that follow.
        joints: Their joints.
        tree: Which of the joints are real.
        level: Accepted probability of a false alarm, above 0 and below 1.

    Raises:
        OptionError: If the level is out of range.
    """
    change_point.check_level(level)
    takes = (bodies,) if isinstance(bodies, Bodies) else tuple(bodies)
    pairs = _joined_pairs(joints, tree)
    search = SlipSearch(takes, pairs, level)
    slips = search.find_all()
    is_open = search.find_open_joints(pairs)
    if is_open.any():
        search = SlipSearch(takes, pairs[~is_open], level)
        slips = search.find_all()
    return search.in_time_order(slips)


def _joined_pairs(joints: JointFits, tree: Tree) -> Int[Array, "joint 2"]:
    """Return the pairs of bodies that are joined.

    A large slip can separate a body from the tree. A body without joints is therefore
    joined to the body with the smallest residual.
    """
    rows = tree.edge[tree.edge >= 0].tolist()
    bodies = np.arange(len(tree.parent))
    alone = bodies[(tree.parent < 0) & ~np.isin(bodies, tree.parent)]
    for body in alone.tolist() if rows else []:
        fits = np.flatnonzero((joints.pair == body).any(axis=1) & joints.fitted)
        if len(fits):
            rows.append(int(fits[joints.residual[fits].argmin()]))
    return np.asarray(joints.pair[sorted(set(rows))].reshape(-1, 2))


def undo_sensor_slips(
    takes: Sequence[Take], slips: Sequence[SensorSlip]
) -> tuple[Take, ...]:
    """Return the takes with sensors in the axes they had before they slipped.

    Poses after each slip are transformed, also those of later takes. Each slip is a
    finding of the take in which it happened.

    Args:
        takes: The takes in which the slips were found.
        slips: From `find_sensor_slips`.
    """
    repaired = []
    for number, take in enumerate(takes):
        T = take.T_world_sensor.copy()
        for slip in reversed(slips):
            if slip.take <= number and slip.sensor in take.sensor_names:
                sensor = take.sensor_names.index(slip.sensor)
                first = slip.frame if slip.take == number else 0
                T_after_before = geometry.inverse(slip.T_before_after)
                T[first:, sensor] = T[first:, sensor] @ T_after_before
        of_take = [slip for slip in slips if slip.take == number]
        notes = [f"undid slip: {slip.sensor} {slip}" for slip in of_take]
        findings = [slip.finding for slip in of_take]
        repaired.append(record_repair(take, findings, notes, T_world_sensor=T))
    return tuple(repaired)


Candidate = tuple[float, float, int, int]
"""A possible slip: the log probability as if joints were independent, to compare
sensors; that without a slip, over all frames and sensors; the body; the frame."""


class SlipSearch:
    """The poses with the slips found so far undone, and their joints.

    Frames are counted through all takes, except in `SensorSlip`.
    """

    min_displacement = MARKER_NOISE_M
    """Smallest displacement of a joint centre that is a slip, in metres."""

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
        candidates = [self._best_candidate(body) for body in bodies]
        found = [candidate for candidate in candidates if candidate is not None]
        if not found or min(found)[1] >= log(self.level):
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
        """Return the most likely slip of a body, significant or not."""
        joints = list(self.joints_of(body).values())
        coarse = _search_frames(joints)
        if not len(coarse):
            return None
        correlation = joint_correlation(joints)
        independent, _ = slip_likelihood_ratio(joints, correlation, coarse)
        best, step = (
            int(coarse[independent.argmax()]),
            int(np.diff(coarse).max(initial=1)),
        )
        fine = np.arange(max(best - step, coarse[0]), min(best + step, coarse[-1]) + 1)
        independent, ratio = slip_likelihood_ratio(joints, correlation, fine)
        top = int(independent.argmax())
        displacements = (j.estimate_displacement(fine[[top]])[0] for j in joints)
        if max(map(np.linalg.norm, displacements)) < self.min_displacement:
            return None
        margins = (coarse[0] / len(self.T), 1.0 - coarse[-1] / len(self.T))
        # One joint determines 3 of the 6 degrees of freedom of a slip, two joints 5.
        dof = int(np.linalg.matrix_rank(np.concatenate([j.lever for j in joints])))
        log_rank, log_p = (
            change_point.log_exceedance(float(x[top]), dof, margins)
            for x in (independent, ratio)
        )
        log_p = min(log_p + log(len(self.names)), 0.0)
        return log_rank, log_p, body, int(fine[top])

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
    """Return whether orientations neither scale nor shear, which spoils residuals."""
    R = T[np.isfinite(T).all(axis=(1, 2)), :3, :3]
    error = np.abs(R.swapaxes(1, 2) @ R - np.eye(3)).max(initial=0.0)
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
