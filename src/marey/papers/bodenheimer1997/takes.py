"""Bodenheimer1997: a walk and reaches in magnetic sensors, ready for Sec. 3.2."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import marey
from marey import synth, virtual
from marey.numerics import Array, Bool, Float, geometry
from marey.papers.recordings import capture_sensors
from marey.rig import bone_lengths, with_bone_lengths
from marey.synth import Figure, Recording
from marey.virtual import VirtualMotion

RATE = 30.0
WALK_SECONDS, REACH_SECONDS = 6.7, 3.8
LAYOUT = "13"

MAGNETIC_NOISE: Mapping[str, Any] = {
    "noise": 2e-3,
    "coloured": 2e-3,
    "turn_noise": np.radians(0.5),
    "gross": 6 / 508,
}
"""White and coloured noise of a magnetic system, and the paper's rate of gross errors.
"""

LOW_REACH, MEDIUM_REACH = 0.42, 0.62
"""Height that the hand reaches to, as a fraction of the stature. Chosen by hand."""


@dataclass(frozen=True, slots=True, eq=False)
class PreparedTake:
    """A recording after the paper's Secs. 2 and 3.1, ready for inverse kinematics."""

    recording: Recording
    virtual: VirtualMotion
    skeleton: marey.Skeleton
    """The skeleton with robust bone lengths and a sensor at every joint."""

    take: marey.Take
    """Joints of the virtual skeleton, as sensors."""

    is_outlier: Bool[Array, "frame joint"]
    """Joints that are tagged as outliers in a frame."""


def prepare(recording: Recording) -> PreparedTake:
    """Return the virtual skeleton, bone lengths and outliers of a recording.

    The offsets of the sensors on the bones are known without error.
    """
    skeleton = recording.true_skeleton
    seen = virtual.compute_motion(skeleton, recording, layout=LAYOUT)
    lengths = bone_lengths(seen.positions, skeleton.parent, "tukey")
    fitted = with_bone_lengths(virtual.with_joint_sensors(skeleton), lengths)
    return PreparedTake(recording, seen, fitted, seen.as_take(), seen.outlier_joints())


def record_magnetic(
    figure: Figure, motion: marey.Motion, seed: int, **more: Any
) -> Recording:
    """Return a motion as a magnetic system records it, with a sensor on every body."""
    return capture_sensors(figure, motion, seed=seed, **{**MAGNETIC_NOISE, **more})


def perform_walk(figure: Figure, seed: int) -> marey.Motion:
    """Return a walk as long as the paper's."""
    return figure.perform("walk", seconds=WALK_SECONDS, rate=RATE, seed=seed)


def perform_reach(figure: Figure, height: float, *, early: float = 0.0) -> marey.Motion:
    """Return a reach with the right hand and back, standing.

    Args:
        figure: The performer.
        height: Height of the goal, as a fraction of the stature.
        early: Time by which the hand arrives before the middle, as a fraction.
    """
    phase = np.arange(round(REACH_SECONDS * RATE)) / RATE / REACH_SECONDS
    out = synth.smoothstep((phase - 0.1) / (0.35 - early)) * synth.smoothstep(
        (0.95 - phase) / (0.35 + early)
    )

    def hand(T_world_joint: Array) -> Array:
        return _hand_path(figure, T_world_joint, height)

    lean = 0.2 + 2.0 * max(0.6 - height, 0.0)
    return synth.reach(figure, out, hand, rate=RATE, lean=lean)


def _hand_path(
    figure: Figure, T_world_joint: Float[Array, "frame joint 4 4"], height: float
) -> Float[Array, "frame 4 4"]:
    """Return the goal of the hand: in front at a height, fingers away from the body."""
    shoulder = T_world_joint[:, figure.arms[1].upper, :3, 3]
    lengths = figure.skeleton.lengths
    arm = sum(lengths[j] for j in figure.arms[1].joints[1:])
    goal = np.tile(np.eye(4), (len(shoulder), 1, 1))
    drop = figure.height * height - shoulder[:, 2]
    ahead = np.sqrt(np.maximum((0.93 * arm) ** 2 - drop**2, (0.25 * arm) ** 2))
    goal[:, 0, 3] = shoulder[:, 0] + ahead
    goal[:, 1, 3] = shoulder[:, 1] - 0.02
    goal[:, 2, 3] = figure.height * height
    down = np.zeros_like(shoulder)
    down[:, 1] = np.arctan2(-drop, ahead)
    # At rest the fingers point to -y and the thumb to +x; at the goal to +x and +z.
    R_goal_rest = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]])
    goal[:, :3, :3] = geometry.rotation_exp(down) @ R_goal_rest
    return goal


def distances_from_data(
    ready: PreparedTake, motion: marey.Motion
) -> Float[Array, "frame joint"]:
    """Return the distance of every joint from the data; NaN where they are outliers."""
    difference = motion.T_world_joint()[..., :3, 3] - ready.virtual.positions
    return np.where(ready.is_outlier, np.nan, np.linalg.norm(difference, axis=-1))
