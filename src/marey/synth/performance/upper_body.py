"""Motion of trunk, head and arms during gait."""

import numpy as np
from jaxtyping import Float

from marey.numerics import geometry
from marey.synth.figures.figure import Figure, FigureLimb
from marey.synth.performance.angles import angles_of_joint
from marey.synth.performance.curves import random_waves
from marey.synth.performance.gait import Gait, WalkPath
from marey.synth.performance.two_bone_ik import align_bone

Array = np.ndarray

ARM_FORWARD, ARM_SWING = 0.03, 0.36
"""Mean and amplitude of the forward swing of the upper arm, in radians. Chosen by
hand."""

MIN_ELBOW_BEND, ARM_ABDUCTION = 0.26, 0.14
"""Least bend of the elbow and sideways tilt of a hanging arm, in radians. Chosen by
hand."""


def upper_body_angles(
    figure: Figure, gait: Gait, path: WalkPath, times: Float[Array, " frame"]
) -> Float[Array, "frame joint 3"]:
    """Return joint angles with trunk, head and arms in phase with the legs.

    The chest rotates against the pelvis, the head faces ahead, and each arm swings with
    the leg of the other side.
    """
    angles = np.tile(figure.neutral, (len(times), 1, 1))
    phase = 2.0 * np.pi * path.phase(times, figure.legs[0])
    rotation = gait.pelvis_rotation * np.cos(phase)
    names = figure.skeleton.names
    if "Spine" in names:
        spine = angles[:, names.index("Spine")]
        spine[:, 1] -= 0.8 * gait.pelvis_obliquity * np.cos(phase - 0.8)
        spine[:, 2] -= 1.6 * rotation
    if "Neck" in names:
        neck = angles[:, names.index("Neck")]
        neck[:, 0] -= gait.trunk_lean
        neck[:, 2] += 0.6 * rotation
    for arm in figure.arms:
        forward = ARM_FORWARD - arm.side * ARM_SWING * np.cos(phase - 0.15)
        bend = MIN_ELBOW_BEND + 0.5 * (forward - ARM_FORWARD + ARM_SWING)
        angles[:, arm.upper] = hanging_arm_angles(figure, arm, forward)
        angles[:, arm.middle, 0] = bend
    return angles


def hanging_arm_angles(
    figure: Figure, arm: FigureLimb, forward: Float[Array, " frame"]
) -> Float[Array, "frame 3"]:
    """Return the shoulder angles of a hanging arm that is swung forward by an angle."""
    skeleton = figure.skeleton
    out = np.full_like(forward, arm.side * ARM_ABDUCTION)
    goal = np.stack([np.sin(forward), out, -np.cos(forward)], axis=-1)
    bone, axis = skeleton.offset[arm.middle], skeleton.axes[arm.middle, 0]
    R = align_bone(bone, axis, goal, np.array([0.1, -1.0, 0.0]) * [arm.side, 1.0, 1.0])
    return angles_of_joint(skeleton, arm.upper, geometry.quat_from_matrix(R))


def idle_angles(
    figure: Figure,
    angles: Float[Array, "frame joint 3"],
    times: Float[Array, " frame"],
    rng: np.random.Generator,
    size: float = 0.02,
) -> Float[Array, "frame joint 3"]:
    """Return small random angles that stay within the joint limits."""
    waves = random_waves(rng, times, 3 * figure.skeleton.n_joints, hertz=0.3)
    limits = figure.skeleton.limits
    room = np.minimum(angles - limits[..., 0], limits[..., 1] - angles).min(axis=0)
    amplitude = np.clip(np.nan_to_num(room, nan=0.0), 0.0, size)
    return np.asarray(waves.reshape(angles.shape) * amplitude)
