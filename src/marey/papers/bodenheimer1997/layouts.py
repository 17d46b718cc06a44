"""Bodenheimer1997: the virtual skeleton from 13 and 18 sensors (Sec. 2)."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

import marey
from marey import synth, virtual
from marey.numerics import Array, Float, geometry
from marey.papers.bodenheimer1997.takes import MAGNETIC_NOISE
from marey.papers.frame import Cells, Effort, Experiment, experiment, table
from marey.papers.measures import rms, timed
from marey.papers.plots import Curve, curves_drawing
from marey.papers.recordings import record_sensors
from marey.plot.style import BLUE, RED
from marey.synth import Recording
from marey.virtual import VirtualMotion

RATE, SECONDS = 144.0, 8.0
LIMBS = ("Spine", "UpperArm", "LowerArm", "UpperLeg", "LowerLeg")
SLIPPING_SENSOR, SLIP_M = "LeftLowerLeg", 0.06
"""The sensor that slips in the middle of the take, and the distance in metres."""


def calibrate_by_zero_pose(take: Recording, seed: int) -> marey.Skeleton:
    """Return the skeleton as a zero pose calibrates it (Sec. 2.2).

    The performer stands at some position and heading with an error of 2 degrees in
    every joint, and offsets are measured to a quarter of an inch.
    """
    rng = np.random.default_rng([seed, 97])
    skeleton, quarter = take.true_skeleton, 0.25 * 0.0254
    T_world_zero = geometry.transform(
        geometry.rotation_exp(np.array([0.0, 0.0, rng.uniform(-3.0, 3.0)])),
        np.array([1.0, -0.5, 0.0]),
    )
    wxyz = geometry.quat_exp(np.radians(2.0) * rng.normal(size=(skeleton.n_joints, 3)))
    wxyz[np.array(skeleton.kind) == "fixed"] = [1.0, 0.0, 0.0, 0.0]
    root = T_world_zero @ geometry.transform(np.eye(3), skeleton.offset[0])
    T = skeleton.forward(root[None], wxyz[None])[:, skeleton.sensor_joint]
    position = np.round(skeleton.T_joint_sensor[:, :3, 3] / quarter) * quarter
    T_joint_sensor = geometry.transform(np.eye(3), position)
    return virtual.calibrate_sensors(
        replace(skeleton, T_joint_sensor=T_joint_sensor), T @ skeleton.T_joint_sensor
    )


def limb_errors(seen: VirtualMotion, take: Recording) -> Float[Array, "limb 2"]:
    """Return rms errors of limbs: of position in metres, of rotation in radians."""
    T = take.truth.motion.T_world_joint()
    distance = np.linalg.norm((seen.T_world_joint - T)[..., :3, 3], axis=-1)
    R = np.swapaxes(T[..., :3, :3], -1, -2) @ seen.T_world_joint[..., :3, :3]
    angle = np.linalg.norm(geometry.rotation_log(R), axis=-1)
    errors = []
    for part in LIMBS:
        joints = [j for j, n in enumerate(seen.skeleton.names) if n.endswith(part)]
        errors.append([rms(distance[:, joints]), rms(angle[:, joints])])
    return np.array(errors)


@experiment("The virtual skeleton (Sec. 2)")
def virtual_skeleton(effort: Effort) -> Experiment:
    """Virtual skeletons of 13 and 18 sensors, and a sensor that slips (Sec. 2).

    A zero pose with errors of 2 degrees in every joint, offsets to a quarter of an
    inch, noise of a magnetic system. The paper's Fig. 1 shows the sensors without
    names. Findings of the take with the slip: {findings}
    """
    slipped = follow_walk_with_slip(effort)
    knees: list[Cells] = []
    curves = []
    for side, colour in (("Left", RED), ("Right", BLUE)):
        name = SLIPPING_SENSOR.replace("Left", side)
        cm = 100 * slipped.separation[:, slipped.skeleton.index(name)]
        halves = np.split(cm, [len(cm) // 2])
        knees.append((name, *(round(float(np.median(half)), 1) for half in halves)))
        style = {"color": colour, "linewidth": 0.8, "label": name}
        curves.append(Curve(np.arange(len(cm)) / RATE, cm, style))
    limbs = " | ".join(f"{part} mm / °" for part in LIMBS)
    slips = "Residuals of the knees, median cm, before and after a sensor slips by "
    drawing = curves_drawing(
        "A sensor slips, and the residual of its joint grows",
        {"": curves},
        ("time, s", "residual, cm"),
        size=(7.0, 3.0),
    )
    findings = " ".join(f"{f.subject}: {f.message}." for f in slipped.findings())
    return Experiment(
        tables={
            "Errors of limbs, rms": table(
                f"motion, sensors | {limbs} | ms per frame", _limb_rows(effort)
            ),
            f"{slips}{100 * SLIP_M:.0f} cm": table("knee | before | after", knees),
        },
        facts={"findings": findings or "none."},
        figures={"knee-residuals": drawing},
    )


def _limb_rows(effort: Effort) -> list[Cells]:
    """Return the errors of limbs and the time for a frame, by motion and layout."""
    rows: list[Cells] = []
    for motion in ("walk", "kick_punch"):
        noise = {**MAGNETIC_NOISE, "gross": 0.0}
        length = SECONDS if effort.full else 0.25 * SECONDS
        take = record_magnetic_take(effort, motion, length, noise)
        skeleton = calibrate_by_zero_pose(take, effort.seed)
        for layout in virtual.LAYOUTS:
            follow = virtual.compute_motion
            seen, seconds = timed(follow, skeleton, take, layout=layout)
            errors = limb_errors(seen, take)
            cells = [f"{1e3 * p:.0f} / {np.degrees(t):.1f}" for p, t in errors]
            per_frame = round(1e3 * seconds / take.n_frames, 2)
            rows.append((f"{motion}, {layout}", *cells, per_frame))
    return rows


def record_magnetic_take(
    effort: Effort, motion: str, seconds: float, noise: Mapping[str, float]
) -> Recording:
    """Return a person in sensors for some seconds."""
    figure, seed = synth.human(seed=effort.seed), effort.seed
    return record_sensors(
        figure, motion, seconds=seconds, rate=RATE, seed=seed, **noise
    )


def follow_walk_with_slip(effort: Effort) -> VirtualMotion:
    """Return a walk during which the sensor of a lower leg slips."""
    noise = {"noise": MAGNETIC_NOISE["noise"]}
    take = record_magnetic_take(effort, "walk", SECONDS, noise)
    column = take.sensor_names.index(SLIPPING_SENSOR)
    T = take.T_world_sensor.copy()
    slip = geometry.transform(np.eye(3), np.array([0.0, 0.0, SLIP_M]))
    T_body_sensor = take.truth.T_body_sensor[column]
    after = T[len(T) // 2 :, column]
    after[:] = after @ geometry.inverse(T_body_sensor) @ slip @ T_body_sensor
    slipped = replace(take, T_world_sensor=T)
    return virtual.compute_motion(take.true_skeleton, slipped, layout="13")
