"""Bodenheimer1997: performances like those of the paper, and its process on them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from marey import synth, virtual
from marey.motion import Motion
from marey.numerics import geometry
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

MAGNETIC: Mapping[str, Any] = {
    "noise": 2e-3,
    "coloured": 2e-3,
    "turn_noise": np.radians(0.5),
    "gross": 6 / 508,
}
"""White and slow noise of a magnetic system, and the paper's share of gross errors."""

LOW, MEDIUM = 0.42, 0.62
"""Where the hand reaches to, in statures: the paper shows a low and a medium reach."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A recording after the paper's Secs. 2 and 3.1, ready for inverse kinematics."""

    recording: Recording
    virtual: VirtualMotion
    skeleton: Skeleton
    """With the robust lengths, a sensor at every joint."""

    take: Take
    """The virtual skeleton's joints."""

    wild: Bool[Array, "frame joint"]
    """Joints tagged, frame by frame."""


def prepared(recording: Recording) -> Prepared:
    """Return a recording's virtual skeleton, lengths and tags.

    The sensors' offsets on the bones are known here, as if measured without error.
    """
    truth = recording.truth
    skeleton = replace(
        truth.skeleton,
        sensor_names=recording.sensor_names,
        sensor_joint=truth.sensor_joint,
        T_joint_sensor=truth.T_body_sensor,
    )
    seen = virtual.compute_motion(skeleton, recording, layout=LAYOUT)
    lengths = bone_lengths(seen.positions, skeleton.parent, "tukey")
    fitted = with_bone_lengths(virtual.with_joint_sensors(skeleton), lengths)
    return Prepared(recording, seen, fitted, seen.as_take(), seen.outlier_joints())


def recorded(figure: Figure, motion: Motion, seed: int, **more: Any) -> Recording:
    """Return a motion as a magnetic system records it, a sensor on every body."""
    return synth.capture(
        (figure,),
        (motion,),
        names=("",),
        markers="none",
        sensors=True,
        seed=seed,
        corruption=synth.Corruption(**{**MAGNETIC, **more}),
    )


def walk(figure: Figure, seed: int) -> Motion:
    """Return a walk as long as the paper's."""
    return figure.perform("walk", seconds=WALK_SECONDS, rate=RATE, seed=seed)


def reach(figure: Figure, height: float, *, early: float = 0.0) -> Motion:
    """Return a reach with the right hand and back, standing.

    Args:
        figure: Who reaches.
        height: Where to, in statures.
        early: Share of the time by which the hand arrives earlier than in the middle.
    """
    skeleton = figure.skeleton
    times = sample_times(REACH_SECONDS, RATE)
    share = times / REACH_SECONDS
    out = smoothstep((share - 0.1) / (0.35 - early)) * smoothstep(
        (0.95 - share) / (0.35 + early)
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
    still = np.zeros(len(times))
    wanted = solve_limb(skeleton, arm.joints, parent, goal, axis, still)
    # The forearm takes the twist that the wrist has not.
    wanted = solve_limb(skeleton, arm.joints, parent, goal, axis, wanted[:, 2, 2])
    joints = list(arm.joints)
    angles[:, joints] += out[:, None, None] * (wanted - angles[:, joints])
    return motion_from_poses(skeleton, PoseSequence(root, angles), RATE)


def _hand_path(
    figure: Figure, T_world_joint: Array, height: float, out: Float[Array, " frame"]
) -> Float[Array, "frame 4 4"]:
    """Return the hand's goal: ahead at a height, fingers away from the shoulder."""
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
    # At rest the fingers point to -y and the thumb to +x; now ahead, and up.
    ready = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]])
    goal[:, :3, :3] = geometry.rotation_exp(down) @ ready
    return goal
