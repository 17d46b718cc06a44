"""Candidate frames for reading a person's landmarks, with occluded markers filled."""

import numpy as np
from jaxtyping import Bool, Float

from marey.anatomy.landmarks import Landmarks
from marey.anatomy.names import SIDES
from marey.calibration.model import KinematicModel
from marey.numerics import geometry
from marey.numerics.procrustes import points_seen

Array = np.ndarray

N_CANDIDATES = 6
"""Most candidate frames. More take longer. Chosen by hand."""

MIN_SPACING = 40
"""Candidates are more than 1 / `MIN_SPACING` of all frames apart. Higher allows frames
that are more similar. Chosen by hand."""

OCCLUSION_PENALTY, FEET_PENALTY, ARM_PENALTY = 0.02, 0.3, 0.5
"""Weights in the score of a frame: per occluded landmark, per metre between the feet,
and per metre of raised arms. The unit is the greatest body height of the recording.
Chosen by hand."""

UNSEEN_FEET_M, UNSEEN_ARM_M = 2.0, 0.5
"""Distance of the feet, and height of an arm, where they are occluded, in metres.
Higher avoids such frames. Chosen by hand."""

N_NEIGHBOURS = 4
"""Neighbours by which an occluded marker is filled. Chosen by hand."""

N_DISTANCE_FRAMES = 50
"""About as many frames are used to rank the neighbours. More take longer. Chosen by
hand."""


def candidate_frames(
    points: Float[Array, "frame marker 3"], landmarks: Landmarks
) -> list[int]:
    """Return frames that suit a reference: landmarks seen, upright, feet together.

    The score uses distances only, so the vertical direction need not be known.
    """
    used = sorted({k for markers in landmarks.markers.values() for k in markers})
    occluded = (~np.isfinite(points[:, used]).all(axis=-1)).sum(axis=1)
    top = landmarks.either_side("c7") or landmarks.either_side("asis", "waist_front")
    feet = [
        landmarks(side, "ankle_outer") or landmarks(side, "knee_outer")
        for side in SIDES
    ]
    score = -OCCLUSION_PENALTY * occluded.astype(float)
    if all(feet):
        left, right = (_mean_position(points, markers) for markers in feet)
        height = _mean_position(points, top) - 0.5 * (left + right)
        height = np.linalg.norm(height, axis=-1)
        distance = np.linalg.norm(left - right, axis=-1)
        seen = np.isfinite(height)
        if seen.any():
            height = np.where(seen, height, np.nanmin(height)) / np.nanmax(height)
            distance = np.where(seen, distance, UNSEEN_FEET_M)
            score = score + height - FEET_PENALTY * distance
    score = score - ARM_PENALTY * _arm_elevation(points, landmarks)
    candidates: list[int] = []
    # Rounded, so that a rotation of the world does not reorder equal frames.
    for frame in np.argsort(-score.round(6), kind="stable").tolist():
        if all(abs(frame - k) > len(points) // MIN_SPACING for k in candidates):
            candidates.append(frame)
        if len(candidates) == N_CANDIDATES:
            break
    return candidates


def _mean_position(points: Array, markers: list[int]) -> Float[Array, "frame 3"]:
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
            length = np.maximum(np.linalg.norm(down, axis=-1), 1e-9)
            projection = np.sum(arm * down, axis=-1) / length
            elevation = np.linalg.norm(arm, axis=-1) - projection
            total += np.where(np.isfinite(elevation), elevation, UNSEEN_ARM_M)
    return np.asarray(total)


def fill_occlusions(
    model: KinematicModel, points: Float[Array, "frame marker 3"], frame: int
) -> Float[Array, "frame marker 3"]:
    """Return the points with the occluded markers of one frame predicted.

    The neighbours of a marker are those of the same segment, or else the nearest ones.
    It is taken from the frame in which the neighbours have the most similar distances,
    and moved with them (Kabsch). A marker that is never seen stays NaN.
    """
    filled = points.copy()
    seen = points_seen(points)
    for k in np.flatnonzero(~seen[frame]).tolist():
        if seen[:, k].any():
            filled[frame, k] = _predict_marker(model, points, seen, frame, k)
    return filled


def _predict_marker(
    model: KinematicModel,
    points: Float[Array, "frame marker 3"],
    seen: Bool[Array, "frame marker"],
    frame: int,
    k: int,
) -> Float[Array, " 3"]:
    frames = np.flatnonzero(seen[:, k])
    others = np.flatnonzero(seen[frame])
    others = others[seen[np.ix_(frames, others)].any(axis=0)]
    sample = frames[:: max(len(frames) // N_DISTANCE_FRAMES, 1)]
    difference = points[np.ix_(sample, others)] - points[sample, k, None]
    distance = np.linalg.norm(difference, axis=-1)
    count = np.isfinite(distance).sum(axis=0)
    mean = np.nansum(distance, axis=0) / np.maximum(count, 1)
    mean = np.where(count > 0, mean, np.inf)
    elsewhere = model.marker_segment[others] != model.marker_segment[k]
    neighbours = others[np.lexsort((mean, elsewhere))][:N_NEIGHBOURS]
    together = frames[seen[np.ix_(frames, neighbours)].all(axis=1)]
    if len(neighbours) < 3 or not len(together):
        return np.full(3, np.nan)
    distances = _pairwise_distances(points[np.ix_(together, neighbours)])
    change = np.abs(distances - _pairwise_distances(points[frame, neighbours]))
    most_similar = together[change.sum(axis=(1, 2)).argmin()]
    T = geometry.kabsch(points[most_similar, neighbours], points[frame, neighbours])
    return np.asarray(geometry.apply(T, points[most_similar, k]))


def _pairwise_distances(
    points: Float[Array, "*batch marker 3"],
) -> Float[Array, "*batch marker marker"]:
    difference = points[..., :, None, :] - points[..., None, :, :]
    return np.asarray(np.linalg.norm(difference, axis=-1))
