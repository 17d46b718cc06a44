"""How trunk, head and arms go along with the legs."""

import numpy as np
from jaxtyping import Float

from marey.numerics import geometry
from marey.synth.figures.figure import Figure, Limb
from marey.synth.performance.angles import angles_of
from marey.synth.performance.curves import waves
from marey.synth.performance.gait import Course, Gait
from marey.synth.performance.limbs import aim

Array = np.ndarray

# Arms of a walker, in radians: mean and swing of the upper arm, least bend of the
# elbow, and the sideways slope of a hanging arm.
ARM_FORWARD, ARM_SWING, ELBOW, ARM_OUT = 0.03, 0.36, 0.26, 0.14


def carried(
    figure: Figure, gait: Gait, course: Course, times: Float[Array, " frame"]
) -> Float[Array, "frame joint 3"]:
    """Return the angles of trunk, head and arms that go along with the legs.

    The chest turns against the pelvis, the head keeps looking ahead, and each arm
    swings with the leg of the other side.
    """
    angles = np.tile(figure.neutral, (len(times), 1, 1))
    beat = 2.0 * np.pi * course.phase(times, figure.legs[0])
    turn = gait.pelvis_turn * np.cos(beat)
    names = figure.skeleton.names
    if "Spine" in names:
        spine = angles[:, names.index("Spine")]
        spine[:, 1] -= 0.8 * gait.pelvis_list * np.cos(beat - 0.8)
        spine[:, 2] -= 1.6 * turn
    if "Neck" in names:
        neck = angles[:, names.index("Neck")]
        neck[:, 0] -= gait.lean
        neck[:, 2] += 0.6 * turn
    for arm in figure.arms:
        forward = ARM_FORWARD - arm.side * ARM_SWING * np.cos(beat - 0.15)
        bend = ELBOW + 0.5 * (forward - ARM_FORWARD + ARM_SWING)
        angles[:, arm.upper] = hanging(figure, arm, forward)
        angles[:, arm.middle, 0] = bend
    return angles


def hanging(
    figure: Figure, arm: Limb, forward: Float[Array, " frame"]
) -> Float[Array, "frame 3"]:
    """Return shoulder angles of an arm that hangs, swung forward by an angle."""
    skeleton = figure.skeleton
    out = np.full_like(forward, arm.side * ARM_OUT)
    goal = np.stack([np.sin(forward), out, -np.cos(forward)], axis=-1)
    bone, axis = skeleton.offset[arm.middle], skeleton.axes[arm.middle, 0]
    R = aim(bone, axis, goal, np.array([0.1, -1.0, 0.0]) * [arm.side, 1.0, 1.0])
    return angles_of(skeleton, arm.upper, geometry.quat_from_matrix(R))


def idle(
    figure: Figure,
    angles: Float[Array, "frame joint 3"],
    times: Float[Array, " frame"],
    rng: np.random.Generator,
    size: float = 0.02,
) -> Float[Array, "frame joint 3"]:
    """Return the small restless angles of a living body, within the limits."""
    restless = waves(rng, times, 3 * figure.skeleton.n_joints, hertz=0.3)
    limits = figure.skeleton.limits
    room = np.minimum(angles - limits[..., 0], limits[..., 1] - angles).min(axis=0)
    reach = np.clip(np.nan_to_num(room, nan=0.0), 0.0, size)
    return np.asarray(restless.reshape(angles.shape) * reach)
