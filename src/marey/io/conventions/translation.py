"""The place of a motion: lowest joint on the ground, beginning at the origin."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from marey.motion import Motion
from marey.take import Take

Array = np.ndarray


def find_ground_translation(
    motions: Sequence[Motion], takes: Sequence[Take] = ()
) -> Float[Array, " 3"]:
    """Return the translation to the ground and the origin, in metres.

    The lowest joint of all frames is put at height 0, and the root of the first motion,
    in its first known frame, above the origin. Without motions, markers and sensors
    stand in for joints, and the middle of the first frame for the root.
    """
    if motions:
        points = [motion.T_world_joint()[..., :3, 3] for motion in motions]
        start = points[0][:, 0]
    else:
        points = [p for t in takes for p in (t.points, t.T_world_sensor[..., :3, 3])]
        together = np.concatenate(points, axis=1) if points else np.zeros((0, 0, 3))
        seen = np.asarray(np.isfinite(together).all(axis=2))
        total = np.where(seen[..., None], together, 0.0).sum(axis=1)
        with np.errstate(invalid="ignore"):
            start = total / seen.sum(axis=1)[:, None]
    heights = np.concatenate([p[..., 2].ravel() for p in points])
    start = start[np.isfinite(start).all(axis=1)]
    if not len(start):
        return np.zeros(3)
    return -np.array([*start[0, :2], np.nanmin(heights)])


def translate_motion(motion: Motion, translation: Float[Array, " 3"]) -> Motion:
    """Return a motion that is moved in the world, with its contacts."""
    T = motion.T_world_root.copy()
    T[:, :3, 3] += translation
    contacts = tuple(replace(c, anchor=c.anchor + translation) for c in motion.contacts)
    return replace(motion, T_world_root=T, contacts=contacts)


def translate_take(take: Take, translation: Float[Array, " 3"]) -> Take:
    """Return a recording that is moved in the world."""
    T = take.T_world_sensor.copy()
    T[..., :3, 3] += translation
    return replace(take, points=take.points + translation, T_world_sensor=T)
