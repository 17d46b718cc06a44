"""The tables of a report: bones, joints, residuals, foot plants and motions.

All numbers are those of the final skeletons and motions. The fits of pairs of bodies,
from which the skeleton may have begun, are in `Solution.joints`.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from marey.joints.ball.pair_frames import correlation_length
from marey.motion import Motion
from marey.numerics import Array, Float, geometry
from marey.numerics.noise import rms_length
from marey.pipeline.reporting.readiness import assess_joints
from marey.pose.measure import MotionMeasures, measure_motion
from marey.report import Table
from marey.skeleton import Skeleton
from marey.solution import Solution, Subject

Row = tuple[str | float | int, ...]


def add_tables(solution: Solution) -> Solution:
    """Return the solution with the tables of its skeletons and motions."""
    subjects = solution.subjects
    # Joints of a skeleton that is given need no motion.
    found = () if solution.options.get("skeleton") is not None else subjects
    motions = tuple(_measured_motions(solution))
    tables = {
        "bones": Table(
            ("bone to", "from", "length mm", "± mm", "subject"),
            tuple(row for subject in subjects for row in _bone_rows(subject)),
        ),
        "joints": Table(
            (
                *("joint", "parent", "kind"),
                *("centre ± mm", "angle ± deg", "angle seen %", "subject"),
            ),
            tuple(row for subject in subjects for row in _joint_rows(subject)),
        ),
        "to move": Table(
            ("joint", "state", "progress %", "what to do", "subject"),
            tuple(row for subject in found for row in _readiness_rows(subject)),
        ),
        "residuals": Table(
            ("marker", "bone", "rms mm", "worst mm", "at frame", "take", "subject"),
            _residual_rows(motions),
        ),
        "plants": Table(
            ("foot", "plants", "planted s", "skate mm/s", "take", "subject"),
            tuple(row for motion in motions for row in _plant_rows(motion)),
        ),
        "sensors": _sensor_table(motions),
        "pose": _pose_table(motions),
    }
    if not any(subject.skeleton.marker_labels for subject in subjects):
        del tables["sensors"]
    tables = {name: table for name, table in tables.items() if table.rows}
    return replace(solution, report=replace(solution.report, tables=tables))


class _MeasuredMotion(NamedTuple):
    """A motion of a solution, where it stands there, and its measures."""

    subject: str
    number: int
    motion: Motion
    measures: MotionMeasures


def _measured_motions(solution: Solution) -> Iterator[_MeasuredMotion]:
    """Yield all motions of a solution with their measures."""
    for subject in solution.subjects:
        takes = zip(subject.motions, solution.takes, strict=True)
        for number, (motion, take) in enumerate(takes, start=1):
            found = measure_motion(motion, take)
            yield _MeasuredMotion(subject.name, number, motion, found)


SMALLEST_SD = 0.01
"""Smallest standard deviation that is shown, in mm and degrees: no recording of motion
shows less. Higher shows fewer digits."""

UNSURE_M = 1.0
"""Standard deviation of a length from which on it is "unsure", in metres, as in the
page. Higher shows larger numbers."""


def _sd_in_mm(sd_m: float) -> float | str:
    """Return a standard deviation in mm; blank if not known, "unsure" if too large."""
    return "unsure" if sd_m >= UNSURE_M else _spell_sd(_in_mm(sd_m, digits=4))


def _spell_sd(sd: float | str) -> float | str:
    """Return a standard deviation with two digits, or that it is very small."""
    if isinstance(sd, str):
        return sd
    return f"<{SMALLEST_SD:g}" if sd < SMALLEST_SD else float(f"{sd:.2g}")


def _in_mm(metres: float, digits: int = 2) -> float | str:
    """Return a length in mm, rounded; blank if it is not known."""
    return round(1e3 * float(metres), digits) if np.isfinite(metres) else ""


def _in_degrees(radians: float, digits: int = 2) -> float | str:
    """Return an angle in degrees, rounded; blank if it is not known."""
    return round(float(np.degrees(radians)), digits) if np.isfinite(radians) else ""


def _bone_rows(subject: Subject) -> Iterator[Row]:
    """Yield the bones: length and its standard deviation, blank where unknown."""
    skeleton = subject.skeleton
    for joint in range(1, skeleton.n_joints):
        parent = skeleton.names[skeleton.parent[joint]]
        length, sd = skeleton.lengths[joint], skeleton.length_sd[joint]
        bone = skeleton.names[joint], parent, _in_mm(length), _sd_in_mm(sd)
        yield (*bone, subject.name)


def _joint_rows(subject: Subject) -> Iterator[Row]:
    """Yield the joints that move: kind, and standard deviations of centre and angle.

    That of a centre is along the direction in which it is known worst.
    """
    skeleton = subject.skeleton
    for joint in np.flatnonzero(skeleton.rotates).tolist():
        parent = "" if joint == 0 else skeleton.names[skeleton.parent[joint]]
        sd = _largest_sd(skeleton.covariance[joint]) if joint else np.nan
        center_sd = _sd_in_mm(sd)
        angle_sd = [motion.angle_sd[:, joint] for motion in subject.motions]
        angle = _typical_angle_sd(np.concatenate(angle_sd))
        name = skeleton.names[joint]
        yield name, parent, skeleton.kind[joint], center_sd, *angle, subject.name


def _largest_sd(covariance: Float[Array, "3 3"]) -> float:
    """Return the standard deviation along the worst direction; NaN if not known."""
    if not np.isfinite(covariance).all():
        return float("nan")
    return float(np.sqrt(max(np.linalg.eigvalsh(covariance)[-1], 0.0)))


def _readiness_rows(subject: Subject) -> Iterator[Row]:
    """Yield the joints that need more motion, and which."""
    for joint in assess_joints(subject.skeleton):
        if joint.state != "ready":
            known = round(100.0 * joint.fraction)
            yield joint.joint, joint.state, known, joint.advice, subject.name


def _typical_angle_sd(
    sd: Float[Array, "frame 3"],
) -> tuple[float | str, float | str]:
    """Return the median standard deviation of a joint's rotation, and when it is known.

    In degrees per axis, and percent of the frames: those in which it is known about all
    axes.
    """
    moves = sd[:, (sd != 0.0).any(axis=0)]
    known = np.isfinite(moves).all(axis=1)
    if not known.any():
        return "", 0.0 if len(sd) else ""
    per_axis = np.sqrt(np.mean(moves[known] ** 2, axis=1))
    typical = _spell_sd(_in_degrees(np.median(per_axis), digits=4))
    return typical, round(100.0 * float(known.mean()), 1)


def _residual_rows(motions: tuple[_MeasuredMotion, ...]) -> tuple[Row, ...]:
    """Return the residuals of all markers and sensors in each take, worst first."""
    rows: list[Row] = []
    for subject, number, motion, measures in motions:
        bones = _bone_of_each_target(motion.skeleton)
        for name, residual_m in _residuals(measures):
            known = np.flatnonzero(np.isfinite(residual_m))
            if len(known):
                seen = residual_m[known]
                rms, worst = np.sqrt(seen @ seen / len(seen)), int(seen.argmax())
                row = (name, bones[name], _in_mm(rms), _in_mm(seen[worst]))
                rows.append((*row, int(known[worst]), number, subject))
    rms_column = 2
    return tuple(sorted(rows, key=lambda row: -float(row[rms_column])))


def _residuals(
    measures: MotionMeasures,
) -> Iterator[tuple[str, Float[Array, " frame"]]]:
    """Yield the distance of every marker and sensor from its model position."""
    yield from zip(measures.labels, measures.distances.T, strict=True)
    for name, (position, _) in measures.sensors.items():
        yield name, geometry.lengths(position)


def _bone_of_each_target(skeleton: Skeleton) -> dict[str, str]:
    """Return the joint whose bone each marker and sensor is attached to, by name."""
    labels = (*skeleton.marker_labels, *skeleton.sensor_names)
    joints = (*skeleton.marker_joint, *skeleton.sensor_joint)
    return {
        label: skeleton.names[joint]
        for label, joint in zip(labels, joints, strict=True)
    }


def _sensor_table(motions: tuple[_MeasuredMotion, ...]) -> Table:
    """Return the body of each sensor, its residuals, and the sd of its offset on it.

    The offset is a mean over the take: its standard deviation is that of the residuals
    over the square root of the number of independent ones.
    """
    rows: list[Row] = []
    for _, number, motion, measures in motions:
        skeleton = motion.skeleton
        for name, vectors in measures.sensors.items():
            joint = int(skeleton.sensor_joint[skeleton.sensor_names.index(name)])
            markers = int((skeleton.marker_joint == joint).sum())
            off, sd = zip(*map(_spread_and_mean_sd, vectors), strict=True)
            # Means of many frames are known to a fraction of a hundredth.
            lengths = _in_mm(off[0]), _in_mm(sd[0], digits=4)
            angles = _in_degrees(off[1]), _in_degrees(sd[1], digits=4)
            body = skeleton.names[joint]
            rows.append((name, number, body, markers, *lengths, *angles))
    columns = ("sensor", "take", "body", "markers on it", "off mm", "offset ± mm")
    return Table((*columns, "off deg", "offset ± deg"), tuple(rows))


def _spread_and_mean_sd(vectors: Float[Array, "frame 3"]) -> tuple[float, float]:
    """Return the rms length of residual vectors, and the sd of their mean."""
    seen = vectors[np.isfinite(vectors).all(axis=1)]
    if not len(seen):
        return float("nan"), float("nan")
    rms = rms_length(seen)
    return rms, rms * float(np.sqrt(correlation_length(seen) / len(seen)))


def _plant_rows(measured: _MeasuredMotion) -> Iterator[Row]:
    """Yield how often and how long each foot is planted, and how fast it slides."""
    for joint, spans in measured.measures.plants.items():
        seconds = round(sum(end - start for start, end in spans), 2)
        skate = _in_mm(measured.measures.skate_of_joint[joint])
        row = joint, len(spans), seconds, skate
        yield *row, measured.number, measured.subject


def _pose_table(motions: tuple[_MeasuredMotion, ...]) -> Table:
    """Return the marker residuals of every motion, and its contacts with the ground."""
    rows: list[Row] = []
    for subject, number, _, found in motions:
        row = (found.mean, found.worst, found.skate, found.depth)
        mean, worst, skate, depth = map(_in_mm, row)
        plants = sum(map(len, found.plants.values()))
        rows.append((subject, number, mean, worst, plants, skate, depth))
    columns = (
        "subject",
        "take",
        "markers off mm, mean",
        "worst",
        "plants",
        "skate mm/s",
        "below the ground mm",
    )
    return Table(columns, tuple(rows))
