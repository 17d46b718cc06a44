"""Corruption at the body: soft tissue artefacts, moving knee centres, slips."""

import numpy as np

from marey.errors import OptionError
from marey.numerics import Array, Float, Int, geometry
from marey.synth.corruption.state import CorruptionState, random_directions
from marey.synth.performance.curves import smoothstep
from marey.tree import descendants_of

SOFT_TISSUE_SCALE = {
    "Hips": 0.6,
    "Spine": 0.6,
    "Neck": 0.15,
    "UpperArm": 0.9,
    "LowerArm": 0.6,
    "Hand": 0.3,
    "UpperLeg": 1.0,
    "LowerLeg": 0.6,
    "Foot": 0.3,
}
"""Size of the soft tissue artefact on each body, as a share of that on a thigh. Larger
values move the markers of that body more. Chosen by hand."""

KNEE_TRAVEL_M = np.array([0.0143, 0.0056, 0.007])
"""Travel of the knee centre while the knee bends by `KNEE_TRAVEL_ANGLE`, in metres:
forward, sideways, along the bone (OBrien2000, Sec. 4)."""

KNEE_TRAVEL_ANGLE = 2.0
"""Bend of the knee, in radians, after which its centre has moved by `KNEE_TRAVEL_M`
(OBrien2000, Sec. 4)."""

MIN_JOINT_MOTION = 1e-9
"""Least rms of the joint angles beside a body, in radians. A body whose joints move
less has no soft tissue artefact. It only guards a division by zero."""


def move_knee_centres(state: CorruptionState) -> None:
    """Move everything below each knee as the knee bends."""
    for subject, motion in enumerate(state.truth.motions):
        skeleton = motion.skeleton
        T = motion.T_world_joint()
        for knee, name in enumerate(skeleton.names):
            if not name.endswith("LowerLeg"):
                continue
            bend = np.linalg.norm(geometry.quat_log(motion.wxyz[:, knee]), axis=-1)
            share = smoothstep(bend / KNEE_TRAVEL_ANGLE)[:, None]
            travel = state.options.knee_shift * share * KNEE_TRAVEL_M
            R = T[:, skeleton.parent[knee], :3, :3]
            displacement = np.einsum("fij,fj->fi", R, travel)
            below = descendants_of(skeleton.parent, knee)
            markers, sensors = state.items_on(subject, below)
            state.points[:, markers] += displacement[:, None]
            state.sensor_position[:, sensors] += displacement[:, None]
            state.log_event("knee_shift", np.abs(displacement).max(), index=knee)


def add_soft_tissue_motion(state: CorruptionState) -> None:
    """Move the skin over the bone, in proportion to the neighbouring joint angles.

    Each marker or sensor has a random linear gain from the joint angles to its
    displacement. Half of the variance of the gain is common to the whole body.
    """
    truth, rng, options = state.truth, state.rng("soft_tissue"), state.options
    _check_bodies(state)
    for subject, motion in enumerate(truth.motions):
        figure, names = truth.figures[subject], motion.skeleton.names
        T = motion.T_world_joint()
        parent_body = figure.body_of[motion.skeleton.parent]
        for body in figure.bodies.tolist():
            angles = _neighbour_angles(parent_body, motion.wxyz, body)
            if angles.shape[1] == 0:
                continue
            R, scale = T[:, body, :3, :3], _soft_tissue_scale(state, names[body])
            markers, sensors = state.items_on(subject, [body])
            common = rng.normal(size=(2, 3, angles.shape[1]))
            gain = rng.normal(size=(len(markers), *common.shape[1:])) + common[0]
            if len(markers) and options.soft_tissue:
                moves = _wobble(gain, angles, options.soft_tissue * scale)
                state.points[:, markers] += np.einsum("fij,fmj->fmi", R, moves)
            gain = rng.normal(size=common.shape) + common
            for sensor in sensors.tolist():
                move = _wobble(gain[0], angles, options.soft_tissue * scale)
                state.sensor_position[:, sensor] += np.einsum("fij,fj->fi", R, move)
                rotvec = _wobble(gain[1], angles, options.soft_tissue_turn * scale)
                _rotate_sensor(state, sensor, rotvec)
    state.log_event("soft_tissue", size=options.soft_tissue)


def _wobble(
    gain: Float[Array, "*batch 3 angle"],
    angles: Float[Array, "frame angle"],
    rms: float,
) -> Array:
    """Return translations or rotations over time, scaled to an rms.

    They are linear functions of the angles, which have an rms of one together.
    """
    values = np.einsum("...ij,fj->f...i", np.sqrt(0.5) * gain, angles)
    size = np.sqrt(np.mean(np.sum(values**2, axis=-1)))
    return np.asarray(values * (rms / size))


def _check_bodies(state: CorruptionState) -> None:
    names = [f.skeleton.names[body] for f in state.truth.figures for body in f.bodies]
    for name in state.options.soft_tissue_on:
        if name not in names:
            needed = f"bodies among {', '.join(dict.fromkeys(names))}"
            raise OptionError("soft_tissue_on", found=name, needed=needed)


def _soft_tissue_scale(state: CorruptionState, name: str) -> float:
    """Return the size of a body's artefact as a share of that on a thigh."""
    if state.options.soft_tissue_on:
        return float(name in state.options.soft_tissue_on)
    return next((v for k, v in SOFT_TISSUE_SCALE.items() if name.endswith(k)), 1.0)


def _neighbour_angles(
    parent_body: Int[Array, " joint"], wxyz: Float[Array, "frame joint 4"], body: int
) -> Float[Array, "frame angle"]:
    """Return the angles of the joints beside a body, centred, of rms one together.

    There are none if the joints do not move.
    """
    joints = [j for j in range(1, len(parent_body)) if parent_body[j] == body]
    if body > 0:
        joints.append(body)
    angles = geometry.quat_log(wxyz[:, joints]).reshape(len(wxyz), -1)
    angles = angles - angles.mean(axis=0)
    rms = np.sqrt(np.mean(np.sum(angles**2, axis=1)))
    return angles / rms if rms > MIN_JOINT_MOTION else np.zeros((len(wxyz), 0))


def _rotate_sensor(
    state: CorruptionState, sensor: int, rotvec: Float[Array, "frame 3"]
) -> None:
    R = state.sensor_rotation[:, sensor]
    state.sensor_rotation[:, sensor] = R @ geometry.rotation_exp(rotvec)


def add_slips(state: CorruptionState) -> None:
    """Let some sensors, or markers if there are no sensors, slip once on their body."""
    rng, truth, options = state.rng("slips"), state.truth, state.options
    n_frames = len(state.points)
    item, positions = state.positions()[1 if state.T_world_sensor.shape[1] else 0]
    joints: Int[Array, " item"] = getattr(truth, f"{item}_joint")
    subjects: Int[Array, " item"] = getattr(truth, f"{item}_subject")
    for index in rng.permutation(np.flatnonzero(joints >= 0))[: options.slips].tolist():
        quarter = n_frames // 4
        drawn = int(rng.integers(quarter, max(3 * n_frames // 4, quarter + 1)))
        first = (
            drawn if options.slip_frame < 0 else min(options.slip_frame, n_frames - 1)
        )
        direction, axis = random_directions(rng, 2)
        T_world_joint = truth.motions[subjects[index]].T_world_joint()
        R = T_world_joint[first:, joints[index], :3, :3]
        positions[first:, index] += R @ (options.slip_size * direction)
        if item == "sensor":
            rotvec = np.zeros((n_frames, 3))
            rotvec[first:] = options.slip_turn * axis
            _rotate_sensor(state, index, rotvec)
        state.log_event("slips", options.slip_size, item, index, first)
