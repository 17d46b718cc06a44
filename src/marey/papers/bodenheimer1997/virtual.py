"""Bodenheimer1997: the virtual skeleton from 13 and 18 sensors (Sec. 2)."""

from dataclasses import replace
from time import perf_counter

import numpy as np
from jaxtyping import Float

from marey import synth, virtual
from marey.numerics import geometry
from marey.papers.bodenheimer1997.plots import residuals_drawing
from marey.papers.bodenheimer1997.takes import MAGNETIC_NOISE
from marey.papers.experiment import Effort, Experiment
from marey.papers.measures import Cells
from marey.papers.recordings import record_sensors, skeleton_with_sensors
from marey.report import Table
from marey.skeleton import Skeleton
from marey.synth import Recording
from marey.virtual import VirtualMotion

Array = np.ndarray

RATE, SECONDS = 144.0, 8.0
LIMBS = ("Spine", "UpperArm", "LowerArm", "UpperLeg", "LowerLeg")
SLIPPING_SENSOR, SLIP_M = "LeftLowerLeg", 0.06
"""The sensor that slips in the middle of the take, and the distance in metres."""


def calibrate_by_zero_pose(take: Recording, seed: int) -> Skeleton:
    """Return the skeleton as a zero pose calibrates it (Sec. 2.2).

    The performer stands at some position and heading with an error of 2 degrees in
    every joint, and offsets are measured to a quarter of an inch.
    """
    rng = np.random.default_rng([seed, 97])
    skeleton, quarter = skeleton_with_sensors(take), 0.25 * 0.0254
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
        both = np.stack([distance[:, joints], angle[:, joints]], axis=-1)
        errors.append(np.sqrt(np.mean(both**2, axis=(0, 1))))
    return np.array(errors)


def layouts(effort: Effort) -> Experiment:
    """Virtual skeletons of 13 and 18 sensors, and a sensor that slips (Sec. 2)."""
    noise = {**MAGNETIC_NOISE, "gross": 0.0}
    figure = synth.human(seed=effort.seed)
    rows: list[Cells] = []
    for motion in ("walk", "kick_punch"):
        take = record_sensors(
            figure,
            motion,
            seconds=_seconds(effort),
            rate=RATE,
            seed=effort.seed,
            **noise,
        )
        skeleton = calibrate_by_zero_pose(take, effort.seed)
        for layout in virtual.LAYOUTS:
            start = perf_counter()
            seen = virtual.compute_motion(skeleton, take, layout=layout)
            seconds = (perf_counter() - start) / take.n_frames
            errors = limb_errors(seen, take)
            cells = [f"{1e3 * p:.0f} / {np.degrees(t):.1f}" for p, t in errors]
            rows.append((f"{motion}, {layout}", *cells, round(1e3 * seconds, 2)))
    slipped = follow_walk_with_slip(effort)
    residuals = {
        name: slipped.separation[:, slipped.skeleton.index(name)]
        for name in (SLIPPING_SENSOR, SLIPPING_SENSOR.replace("Left", "Right"))
    }
    half = len(slipped.separation) // 2
    medians: list[Cells] = [
        (name, *(round(100 * float(np.median(g)), 1) for g in (gap[:half], gap[half:])))
        for name, gap in residuals.items()
    ]
    columns = ("motion, sensors", *(f"{part} mm / °" for part in LIMBS), "ms per frame")
    return Experiment(
        title="The virtual skeleton (Sec. 2)",
        tables={
            "Errors of limbs, rms": Table(columns, tuple(rows)),
            "Residuals of the knees, median cm, before and after a sensor slips by "
            f"{100 * SLIP_M:.0f} cm": Table(
                ("knee", "before", "after"), tuple(medians)
            ),
        },
        note="A zero pose with errors of 2 degrees in every joint, offsets to a "
        "quarter of an inch, noise of a magnetic system. The paper's Fig. 1 shows the "
        "sensors without names. Findings of the take with the slip: "
        + (
            " ".join(f"{f.subject}: {f.message}." for f in slipped.findings())
            or "none."
        ),
        figures={"knee-residuals": residuals_drawing(residuals, RATE)},
    )


def _seconds(effort: Effort) -> float:
    return 0.25 * SECONDS if effort.quick else SECONDS


def follow_walk_with_slip(effort: Effort) -> VirtualMotion:
    """Return a walk during which the sensor of a lower leg slips."""
    figure = synth.human(seed=effort.seed)
    take = record_sensors(
        figure,
        "walk",
        seconds=_seconds(effort),
        rate=RATE,
        seed=effort.seed,
        noise=MAGNETIC_NOISE["noise"],
    )
    column = take.sensor_names.index(SLIPPING_SENSOR)
    T = take.T_world_sensor.copy()
    slip = geometry.transform(np.eye(3), np.array([0.0, 0.0, SLIP_M]))
    T_body_sensor = take.truth.T_body_sensor[column]
    after = T[len(T) // 2 :, column]
    after[:] = after @ geometry.inverse(T_body_sensor) @ slip @ T_body_sensor
    slipped = replace(take, T_world_sensor=T)
    return virtual.compute_motion(skeleton_with_sensors(take), slipped, layout="13")
