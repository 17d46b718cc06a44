"""Candidate frames for reading a person's landmarks."""

import numpy as np

from marey.anatomy.landmarks import Landmarks
from marey.anatomy.names import SIDES
from marey.numerics import Array, Float, geometry
from marey.numerics.thresholds import TINY_LENGTH_M

N_CANDIDATES = 6
"""Most candidate frames. More take longer. Chosen by hand."""

DEVIATION_PENALTY = 0.5
"""Weight in the score of a frame of the distance of the feet and of raised arms, per
metre, and of the share of occluded landmarks. The unit is the greatest body height of
the recording. Chosen by hand."""


def candidate_frames(
    points: Float[Array, "frame marker 3"], landmarks: Landmarks
) -> list[int]:
    """Return frames that suit a reference: landmarks seen, upright, feet together.

    The score uses distances only, so the vertical direction need not be known.
    """
    used = sorted({k for markers in landmarks.markers.values() for k in markers})
    deviation = (~np.isfinite(points[:, used]).all(axis=-1)).mean(axis=1)
    deviation += _arm_elevation(points, landmarks)
    top = landmarks.either_side("c7") or landmarks.either_side("asis", "waist_front")
    feet = [
        landmarks(side, "ankle_outer") or landmarks(side, "knee_outer")
        for side in SIDES
    ]
    height = np.zeros(len(points))
    if all(feet):
        left, right = (_mean_position(points, markers) for markers in feet)
        middle = 0.5 * (left + right)
        height = geometry.lengths(_mean_position(points, top) - middle)
        height = np.nan_to_num(height / np.fmax.reduce(height, initial=TINY_LENGTH_M))
        deviation += np.nan_to_num(geometry.lengths(left - right))
    score = height - DEVIATION_PENALTY * deviation
    candidates: list[int] = []
    # Rounded, so that a rotation of the world does not reorder equal frames.
    for frame in np.argsort(-score.round(6), kind="stable").tolist():
        if all(abs(frame - k) > len(points) // N_CANDIDATES**2 for k in candidates):
            candidates.append(frame)
        if len(candidates) == N_CANDIDATES:
            break
    return candidates


def _mean_position(points: Array, markers: list[int]) -> Float[Array, "frame 3"]:
    """Return the mean of some markers in every frame, in metres."""
    return np.asarray(points[:, markers].mean(axis=1))


def _arm_elevation(points: Array, landmarks: Landmarks) -> Float[Array, " frame"]:
    """Return how much the upper arms deviate from the trunk, in metres.

    For each arm this is its length minus its projection on the line from the acromion
    to the pelvis.
    """
    total = np.zeros(len(points))
    pelvis = landmarks.either_side("asis", "waist_front")
    for side in SIDES:
        acromion, elbow = landmarks(side, "acromion"), landmarks(side, "elbow_outer")
        if acromion and elbow:
            shoulder = _mean_position(points, acromion)
            down = _mean_position(points, pelvis) - shoulder
            arm = _mean_position(points, elbow) - shoulder
            length = np.maximum(geometry.lengths(down), TINY_LENGTH_M)
            projection = np.sum(arm * down, axis=-1) / length
            elevation = geometry.lengths(arm) - projection
            total += np.nan_to_num(elevation)
    return np.asarray(total)
