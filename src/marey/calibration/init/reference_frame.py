"""Frames in which a person's landmarks are read, and gaps in them filled."""

import numpy as np
from jaxtyping import Float

from marey.calibration.landmarks import SIDES, Landmarks
from marey.calibration.unknowns import Figure
from marey.numerics import geometry
from marey.numerics.procrustes import points_seen

Array = np.ndarray

CANDIDATES = 6
"""Frames that compete."""

APART = 40
"""Candidates are apart by this part of all frames."""

NEIGHBOURS = 4
"""Markers that carry one that is missing."""


def candidates(points: Float[Array, "frame marker 3"], marks: Landmarks) -> list[int]:
    """Return frames that show the landmarks well: seen, stretched out, feet together.

    Distances only, so that it does not matter which way is up.
    """
    used = sorted({k for some in marks.of.values() for k in some})
    seen = np.isfinite(points[:, used]).all(axis=-1)
    missing = (~seen).sum(axis=1)
    top = marks.middle("c7") or marks.middle("asis", "waist_front")
    feet = [marks(side, "ankle_outer") or marks(side, "knee_outer") for side in SIDES]
    score = -0.02 * missing.astype(float)
    if all(feet):
        left, right = (_middle(points, some) for some in feet)
        tall = np.linalg.norm(_middle(points, top) - 0.5 * (left + right), axis=-1)
        apart = np.linalg.norm(left - right, axis=-1)
        known = np.isfinite(tall)
        if known.any():
            worst = np.where(known, tall, np.nanmin(tall)) / np.nanmax(tall)
            score = score + worst - 0.3 * np.where(known, apart, 2.0)
    score = score - 0.5 * _raised(points, marks)
    best: list[int] = []
    # Rounded, so that frames that are alike come in order whatever the world is.
    for frame in np.argsort(-score.round(6), kind="stable").tolist():
        if all(abs(frame - other) > len(points) // APART for other in best):
            best.append(frame)
        if len(best) == CANDIDATES:
            break
    return best


def _middle(points: Array, markers: list[int]) -> Array:
    return np.asarray(points[:, markers].mean(axis=1))


def _raised(points: Array, marks: Landmarks) -> Float[Array, " frame"]:
    """Return how far the elbows are from hanging beside the body, in metres."""
    total = np.zeros(len(points))
    base = marks.middle("asis", "waist_front")
    for side in SIDES:
        tip, elbow = marks(side, "acromion"), marks(side, "elbow_outer")
        if tip and elbow:
            down = _middle(points, base) - _middle(points, tip)
            arm = _middle(points, elbow) - _middle(points, tip)
            long = np.maximum(np.linalg.norm(down, axis=-1), 1e-9)
            hangs = np.sum(arm * down, axis=-1) / long
            short = np.linalg.norm(arm, axis=-1) - hangs
            total += np.where(np.isfinite(short), short, 0.5)
    return np.asarray(total)


def without_gaps(
    figure: Figure, points: Float[Array, "frame marker 3"], frame: int
) -> Float[Array, "marker 3"]:
    """Return the markers of one frame, those unseen carried over from other frames.

    A marker moves along with others of its segment, or with its nearest neighbours, as
    in the frame in which these stand most alike. One that is never seen stays NaN.
    """
    here = np.array(points[frame])
    if np.isfinite(here).all():
        return here
    seen = points_seen(points)
    for k in np.flatnonzero(~seen[frame]):
        frames = np.flatnonzero(seen[:, k])
        if len(frames):
            here[k] = _carried(figure, points, seen, frame, int(k), frames)
    return here


def _carried(
    figure: Figure, points: Array, seen: Array, frame: int, k: int, frames: Array
) -> Array:
    there = np.flatnonzero(seen[frame])
    there = there[seen[np.ix_(frames, there)].any(axis=0)]
    some = frames[:: max(len(frames) // 50, 1)]
    away = np.linalg.norm(points[np.ix_(some, there)] - points[some, k, None], axis=-1)
    count = np.isfinite(away).sum(axis=0)
    mean = np.nansum(away, axis=0) / np.maximum(count, 1)
    other = figure.segment[there] != figure.segment[k]
    near = there[np.lexsort((np.where(count > 0, mean, np.inf), other))][:NEIGHBOURS]
    together = frames[seen[np.ix_(frames, near)].all(axis=1)]
    if len(near) < 3 or not len(together):
        return np.full(3, np.nan)
    shapes = points[np.ix_(together, near)]
    spans = np.linalg.norm(shapes[:, :, None] - shapes[:, None], axis=-1)
    goal = np.linalg.norm(points[frame, near, None] - points[frame, near], axis=-1)
    best = together[np.abs(spans - goal).sum(axis=(1, 2)).argmin()]
    T = geometry.kabsch(points[best, near], points[frame, near])
    return np.asarray(geometry.apply(T, points[best, k]))
