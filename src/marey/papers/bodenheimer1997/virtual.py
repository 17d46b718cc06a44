"""Bodenheimer1997: the virtual skeleton from 13 and 18 sensors (Sec. 2)."""

from dataclasses import replace
from time import perf_counter

import numpy as np
from jaxtyping import Float

from marey import synth, virtual
from marey.numerics import geometry
from marey.papers.bodenheimer1997.plots import gaps_drawing
from marey.papers.bodenheimer1997.takes import MAGNETIC
from marey.papers.experiment import Effort, Experiment
from marey.report import Table
from marey.skeleton import Skeleton
from marey.synth import Recording
from marey.virtual import VirtualMotion

Array = np.ndarray

RATE, SECONDS = 144.0, 8.0
SHOWN = ("Spine", "UpperArm", "LowerArm", "UpperLeg", "LowerLeg")
MOVED, BY = "LeftLowerLeg", 0.06
"""The sensor that moves half-way, and how far, in metres."""


def wearing(take: Recording) -> Skeleton:
    """Return the true skeleton with the take's sensors on it."""
    truth = take.truth
    return replace(
        truth.skeleton,
        sensor_names=take.sensor_names,
        sensor_joint=truth.sensor_joint,
        T_joint_sensor=truth.T_body_sensor,
    )


def calibrated(take: Recording, seed: int) -> Skeleton:
    """Return the skeleton as a zero pose calibrates it.

    The performer stands somewhere, facing anywhere, a few degrees off in every joint,
    and offsets are measured to a quarter of an inch.
    """
    rng = np.random.default_rng([seed, 97])
    skeleton, quarter = wearing(take), 0.25 * 0.0254
    stands = geometry.transform(
        geometry.rotation_exp(np.array([0.0, 0.0, rng.uniform(-3.0, 3.0)])),
        np.array([1.0, -0.5, 0.0]),
    )
    wxyz = geometry.quat_exp(np.radians(2.0) * rng.normal(size=(skeleton.n_joints, 3)))
    wxyz[np.array(skeleton.kind) == "fixed"] = [1.0, 0.0, 0.0, 0.0]
    root = stands @ geometry.transform(np.eye(3), skeleton.offset[0])
    T = skeleton.forward(root[None], wxyz[None])[:, skeleton.sensor_joint]
    place = np.round(skeleton.T_joint_sensor[:, :3, 3] / quarter) * quarter
    arbitrary = geometry.transform(np.eye(3), place)
    return virtual.calibrate_sensors(
        replace(skeleton, T_joint_sensor=arbitrary), T @ skeleton.T_joint_sensor
    )


def limb_errors(seen: VirtualMotion, take: Recording) -> Float[Array, "limb 2"]:
    """Return rms errors of limbs: of place in metres, of rotation in radians."""
    T = take.truth.motion.T_world_joint()
    away = np.linalg.norm((seen.T_world_joint - T)[..., :3, 3], axis=-1)
    R = np.swapaxes(T[..., :3, :3], -1, -2) @ seen.T_world_joint[..., :3, :3]
    turn = np.linalg.norm(geometry.rotation_log(R), axis=-1)
    found = []
    for part in SHOWN:
        mine = [j for j, n in enumerate(seen.skeleton.names) if n.endswith(part)]
        both = np.stack([away[:, mine], turn[:, mine]], axis=-1)
        found.append(np.sqrt(np.mean(both**2, axis=(0, 1))))
    return np.array(found)


def layouts(effort: Effort) -> Experiment:
    """Virtual skeletons of 13 and 18 sensors, and a sensor that moves."""
    noise = {**MAGNETIC, "gross": 0.0}
    figure = synth.human(seed=effort.seed)
    rows: list[tuple[str | float, ...]] = []
    for motion in ("walk", "kick_punch"):
        take = figure.record(
            motion,
            sensors=True,
            markers="none",
            seconds=_seconds(effort),
            rate=RATE,
            seed=effort.seed,
            **noise,
        )
        skeleton = calibrated(take, effort.seed)
        for layout in virtual.LAYOUTS:
            start = perf_counter()
            seen = virtual.compute_motion(skeleton, take, layout=layout)
            each = (perf_counter() - start) / take.n_frames
            off = limb_errors(seen, take)
            cells = [f"{1e3 * p:.0f} / {np.degrees(t):.1f}" for p, t in off]
            rows.append((f"{motion}, {layout}", *cells, round(1e3 * each, 2)))
    slipped = _slipped(effort)
    gaps = {
        name: slipped.separation[:, slipped.skeleton.index(name)]
        for name in (MOVED, MOVED.replace("Left", "Right"))
    }
    half = len(slipped.separation) // 2
    parts: list[tuple[str | float, ...]] = [
        (name, *(round(100 * float(np.median(g)), 1) for g in (gap[:half], gap[half:])))
        for name, gap in gaps.items()
    ]
    columns = ("motion, sensors", *(f"{part} mm / °" for part in SHOWN), "ms a frame")
    return Experiment(
        title="The virtual skeleton (Sec. 2)",
        tables={
            "Limbs off the truth, rms": Table(columns, tuple(rows)),
            "Knees apart, median cm, before and after a sensor moved by "
            f"{100 * BY:.0f} cm": Table(("knee", "before", "after"), tuple(parts)),
        },
        note="A zero pose a few degrees wrong in every joint, offsets to a quarter of "
        "an inch, noise of a magnetic system. The paper's Fig. 1 shows the sensors "
        "without names. Findings of the take with the moved sensor: "
        + (
            " ".join(f"{f.subject}: {f.message}." for f in slipped.findings())
            or "none."
        ),
        figures={"knees-apart": gaps_drawing(gaps, RATE)},
    )


def _seconds(effort: Effort) -> float:
    return 0.25 * SECONDS if effort.quick else SECONDS


def _slipped(effort: Effort) -> VirtualMotion:
    """Return a walk during which the sensor of a lower leg moves."""
    figure = synth.human(seed=effort.seed)
    take = figure.record(
        "walk",
        sensors=True,
        markers="none",
        seconds=_seconds(effort),
        rate=RATE,
        seed=effort.seed,
        noise=MAGNETIC["noise"],
    )
    column = take.sensor_names.index(MOVED)
    T = take.T_world_sensor.copy()
    slip = geometry.transform(np.eye(3), np.array([0.0, 0.0, BY]))
    own = take.truth.T_body_sensor[column]
    T[len(T) // 2 :, column] = (
        T[len(T) // 2 :, column] @ geometry.inverse(own) @ slip @ own
    )
    moved = replace(take, T_world_sensor=T)
    return virtual.compute_motion(wearing(take), moved, layout="13")
