"""Bodenheimer1997: performances like those of the paper, prepared as in Sec. 3.1."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from marey import virtual
from marey.motion import Motion
from marey.numerics import geometry
from marey.papers.recordings import capture_sensors, skeleton_with_sensors
from marey.rig.lengths import bone_lengths, with_bone_lengths
from marey.skeleton import Skeleton
from marey.synth import Figure, Recording
from marey.synth.figures.figure import PoseSequence, motion_from_poses, sample_times
from marey.synth.performance.curves import smoothstep
from marey.synth.performance.motions import stand_on_legs, standing_root_poses
from marey.synth.performance.two_bone_ik import joint_poses, solve_limb
from marey.take import Take
from marey.virtual import VirtualMotion

Array = np.ndarray

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
    skeleton: Skeleton
    """The skeleton with robust bone lengths and a sensor at every joint."""

    take: Take
    """Joints of the virtual skeleton, as sensors."""

    is_outlier: Bool[Array, "frame joint"]
    """Joints that are tagged as outliers in a frame."""


def prepare(recording: Recording) -> PreparedTake:
    """Return the virtual skeleton, bone lengths and outliers of a recording.

    The offsets of the sensors on the bones are known without error.
    """
    skeleton = skeleton_with_sensors(recording)
    seen = virtual.compute_motion(skeleton, recording, layout=LAYOUT)
    lengths = bone_lengths(seen.positions, skeleton.parent, "tukey")
    fitted = with_bone_lengths(virtual.with_joint_sensors(skeleton), lengths)
    return PreparedTake(recording, seen, fitted, seen.as_take(), seen.outlier_joints())


def record_magnetic(
    figure: Figure, motion: Motion, seed: int, **more: Any
) -> Recording:
    """Return a motion as a magnetic system records it, with a sensor on every body."""
    return capture_sensors(figure, motion, seed=seed, **{**MAGNETIC_NOISE, **more})


def perform_walk(figure: Figure, seed: int) -> Motion:
    """Return a walk as long as the paper's."""
    return figure.perform("walk", seconds=WALK_SECONDS, rate=RATE, seed=seed)


def perform_reach(figure: Figure, height: float, *, early: float = 0.0) -> Motion:
    """Return a reach with the right hand and back, standing.

    Args:
        figure: The performer.
        height: Height of the goal, as a fraction of the stature.
        early: Time by which the hand arrives before the middle, as a fraction.
    """
    skeleton = figure.skeleton
    times = sample_times(REACH_SECONDS, RATE)
    phase = times / REACH_SECONDS
    out = smoothstep((phase - 0.1) / (0.35 - early)) * smoothstep(
        (0.95 - phase) / (0.35 + early)
    )
    root = standing_root_poses(figure, times)
    angles = np.tile(figure.neutral, (len(times), 1, 1))
    bend = 0.2 + 2.0 * max(0.6 - height, 0.0)
    angles[:, skeleton.index("Spine"), 0] += bend * out
    angles = stand_on_legs(figure, root, angles)
    arm = figure.arms[1]
    T = joint_poses(skeleton, root, angles)
    goal = _hand_path(figure, T, height, out)
    axis = np.tile([0.0, -0.9, 0.4], (len(times), 1))
    parent = T[:, skeleton.parent[arm.upper]]
    twist = np.zeros(len(times))
    goal_angles = solve_limb(skeleton, arm.joints, parent, goal, axis, twist)
    # The forearm takes over the twist that the wrist cannot make.
    twist = goal_angles[:, 2, 2]
    goal_angles = solve_limb(skeleton, arm.joints, parent, goal, axis, twist)
    joints = list(arm.joints)
    angles[:, joints] += out[:, None, None] * (goal_angles - angles[:, joints])
    return motion_from_poses(skeleton, PoseSequence(root, angles), RATE)


def _hand_path(
    figure: Figure, T_world_joint: Array, height: float, out: Float[Array, " frame"]
) -> Float[Array, "frame 4 4"]:
    """Return the goal of the hand: in front at a height, fingers away from the body."""
    shoulder = T_world_joint[:, figure.arms[1].upper, :3, 3]
    lengths = figure.skeleton.lengths
    arm = sum(lengths[j] for j in figure.arms[1].joints[1:])
    goal = np.tile(np.eye(4), (len(out), 1, 1))
    drop = figure.height * height - shoulder[:, 2]
    ahead = np.sqrt(np.maximum((0.93 * arm) ** 2 - drop**2, (0.25 * arm) ** 2))
    goal[:, 0, 3] = shoulder[:, 0] + ahead
    goal[:, 1, 3] = shoulder[:, 1] - 0.02
    goal[:, 2, 3] = figure.height * height
    down = np.zeros((len(out), 3))
    down[:, 1] = np.arctan2(-drop, ahead)
    # At rest the fingers point to -y and the thumb to +x; at the goal to +x and +z.
    R_goal_rest = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]])
    goal[:, :3, :3] = geometry.rotation_exp(down) @ R_goal_rest
    return goal
