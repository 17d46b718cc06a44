"""The rigid shape that markers keep, and its pose in every frame."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from marey.numerics import geometry

Array = np.ndarray

ROUNDS = 10
"""Turns of shape and poses, on a sample of the frames."""

MEDIAN_ROUNDS = 2
"""How many of these take the shape as medians, before anything is known to be odd."""

LAST_ROUNDS = 2
"""Turns on all frames, from there."""

# Positions further off than so many standard deviations hardly count.
OUTLIER = 3.0

# Of the largest distance off the line of the first two markers: what makes a third
# marker good enough to span the plane of the body's axes.
CLEAR = 0.2

# A body this much narrower than long is a line.
NARROW = 1e-6

# Frames looked at for the start, and until the shape hardly changes any more.
SAMPLE = 300


@dataclass(frozen=True, slots=True, eq=False)
class RigidFit:
    """Markers as one rigid body."""

    offset: Float[Array, "marker 3"]
    """Place of each marker in the body, in metres; NaN where it was never seen."""

    T_world_body: Float[Array, "frame 4 4"]
    """Pose of the body; NaN where too few markers were seen."""

    sd: Float[Array, " marker"]
    """How far each marker strays from its place, root mean square, in metres."""

    rms: float
    """The same over all markers."""

    determined: bool
    """Whether the markers fix the turn of the body: three or more, not on a line."""


def fit_rigid(
    points: Float[Array, "frame marker 3"],
    weight: Float[Array, " marker"] | None = None,
) -> RigidFit:
    """Return the shape and poses that leave the least of the markers' motion over.

    Generalised Procrustes over all frames, whatever is missing: poses from the shape,
    the shape from the poses, in turn. Each marker counts by how well it keeps its
    place, and single positions far off (Geman-McClure) hardly count. The body's axes
    come from the order of the markers: the origin is their centroid, x points along
    the line from the first to the second, z is square to the plane of these two and
    the next marker well off their line.

    One marker, two, or several on a line leave the turn about themselves open. They
    get the pose of least turning: the line's direction is followed, x along it, with
    no twist about it from frame to frame; a single marker never turns.

    Args:
        points: Positions in metres, NaN where a marker was not seen.
        weight: How much each marker counts, on top of how well it keeps its place.
    """
    points = points.astype(float, copy=False)
    start = _start(points)
    if not _spans_a_plane(start):
        return _soft(points)
    own = np.ones(points.shape[1]) if weight is None else weight
    # In the body's own axes from the start, so that the world makes no difference.
    start = geometry.apply(_axes(start), start)
    shape, T = _settled(points, start, own)
    G = _axes(shape)
    shape = geometry.apply(G, shape)
    T = T @ geometry.inverse(G)
    return fitted(points, shape, T, determined=True)


def _start(points: Array) -> Array:
    """Return the markers of the frame most like the others, others filled in later."""
    count = points_seen(points).sum(axis=1)
    best = np.flatnonzero(count == count.max(initial=0))
    if not len(best):
        return np.zeros((0, 3))
    some = best[np.linspace(0, len(best) - 1, min(SAMPLE, len(best))).astype(int)]
    i, j = np.triu_indices(points.shape[1], 1)
    shapes = points[some]
    span = np.nan_to_num(np.linalg.norm(shapes[:, i] - shapes[:, j], axis=-1))
    strange = np.abs(span - np.median(span, axis=0)).sum(axis=1)
    return np.asarray(points[some[np.argmin(strange)]])


def _spans_a_plane(shape: Array) -> bool:
    known = shape[np.isfinite(shape).all(axis=-1)]
    if len(known) < 3:
        return False
    size = np.linalg.svd(known - known.mean(axis=0), compute_uv=False)
    return bool(size[1] > NARROW * size[0])


def _settled(points: Array, shape: Array, own: Array) -> tuple[Array, Array]:
    """Return shape and poses when they no longer change each other much.

    On a sample of the frames at first: the shape is nearly there before all are seen.
    """
    from marey.numerics.procrustes_kernel import (  # slow to import
        KEPT,
        MEANS,
        MEDIANS,
        settle,
    )

    first = (*[MEDIANS] * MEDIAN_ROUNDS, *[MEANS] * (ROUNDS - MEDIAN_ROUNDS))
    last = (KEPT, *[MEANS] * LAST_ROUNDS)
    points, shape = np.ascontiguousarray(points), shape.copy()
    some = np.ascontiguousarray(points[:: max(len(points) // SAMPLE, 1)])
    T, weight = geometry.kabsch(shape, some, own), _for_each(own, some)
    settle(some, own, shape, weight, T, np.array(first), OUTLIER)
    T, weight = geometry.kabsch(shape, points, own), _for_each(own, points)
    # A marker that no frame of the sample showed.
    strange = ~np.isfinite(shape).all(axis=-1)
    if strange.any():
        shape[strange] = mean_points_in_body(T, points[:, strange])
    settle(points, own, shape, weight, T, np.array(last), OUTLIER)
    return shape, T


def _for_each(own: Array, points: Array) -> Array:
    return np.tile(own, (len(points), 1))


def _local(T: Array, points: Array) -> Array:
    """Return points as seen from the body."""
    from marey.numerics.procrustes_kernel import carry_back  # numba is slow to import

    local = np.empty(points.shape)
    carry_back(T, points, local)
    return local


def points_seen(points: Float[Array, "*batch 3"]) -> Bool[Array, "*batch"]:
    """Return which positions have all three coordinates."""
    # One sum per position is several times faster than asking every number.
    return np.asarray(np.isfinite(np.einsum("...i->...", points)))


def mean_points_in_body(
    T_world_body: Float[Array, "frame 4 4"], points: Float[Array, "frame marker 3"]
) -> Float[Array, "marker 3"]:
    """Return where markers sit in a body: the medians of where they were seen."""
    from marey.numerics.procrustes_kernel import take_medians  # numba is slow to import

    places = np.empty(points.shape[1:])
    take_medians(_local(T_world_body, points), np.empty(len(points)), places)
    return places


def _axes(shape: Array) -> Array:
    """Return T_body_shape: the body's own axes, by the order of its markers."""
    known = np.flatnonzero(np.isfinite(shape).all(axis=-1))
    places = shape[known]
    x = places[1] - places[0]
    if np.linalg.norm(x) == 0.0:
        x = places[2] - places[0]
    x = x / np.linalg.norm(x)
    off = places - places[0]
    off = off - np.outer(off @ x, x)
    far = np.linalg.norm(off, axis=-1)
    y = off[np.argmax(far > CLEAR * far.max())]
    z = np.cross(x, y) / np.linalg.norm(np.cross(x, y))
    R = np.stack([x, np.cross(z, x), z])
    return geometry.transform(R, -R @ places.mean(axis=0))


def fitted(
    points: Float[Array, "frame marker 3"],
    shape: Float[Array, "marker 3"],
    T: Float[Array, "frame 4 4"],
    *,
    determined: bool,
) -> RigidFit:
    """Return markers with this shape and these poses, and how far they stray."""
    local = _local(T, points)
    off = np.sum((local - shape) ** 2, axis=-1)
    known = np.isfinite(off)
    total = np.where(known, off, 0.0).sum(axis=0)
    count = known.sum(axis=0)
    sd = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
    rms = np.sqrt(total.sum() / count.sum()) if count.any() else np.nan
    return RigidFit(shape, T, np.sqrt(sd), float(rms), determined)


# --- markers that do not fix a turn ---------------------------------------------------


def _soft(points: Array) -> RigidFit:
    """Return the pose of least turning of one marker, or of markers on a line."""
    ever = np.flatnonzero(np.isfinite(points).all(axis=-1).any(axis=0))
    T = np.full((len(points), 4, 4), np.nan)
    if len(ever):
        R = np.broadcast_to(np.eye(3), (len(points), 3, 3))
        if len(ever) > 1:
            R = _following(points[:, ever[-1]] - points[:, ever[0]])
        T = geometry.transform(R, points[:, ever].mean(axis=1))
    return fitted(points, mean_points_in_body(T, points), T, determined=False)


def _following(line: Array) -> Array:
    """Return rotations whose x axis follows a line without twisting about it."""
    length = np.linalg.norm(line, axis=-1)
    known = np.flatnonzero(length > 0.0)
    R = np.full((len(line), 3, 3), np.nan)
    if not len(known):
        return R
    unit = line[known] / length[known, None]
    before = np.concatenate([np.eye(3)[:1], unit[:-1]])
    R[known] = geometry.matrix_from_quat(_running(shortest_rotations(before, unit)))
    return R


def shortest_rotations(
    start: Float[Array, "*#batch 3"], end: Float[Array, "*#batch 3"]
) -> Float[Array, "*batch 4"]:
    """Return the quaternions wxyz of the shortest turns between unit vectors."""
    start, end = np.broadcast_arrays(start, end)
    w = 1.0 + np.sum(start * end, axis=-1, keepdims=True)
    q = np.concatenate([w, np.cross(start, end)], axis=-1)
    # Straight back: any half turn across will do.
    aside = np.eye(3)[np.argmin(np.abs(start), axis=-1)]
    half = np.concatenate([np.zeros_like(w), np.cross(start, aside)], axis=-1)
    q = np.where(w < 1e-12, half, q)
    return np.asarray(q / np.linalg.norm(q, axis=-1, keepdims=True))


def _running(wxyz: Array) -> Array:
    """Return the products of all quaternions up to each, the latest on the left."""
    step = 1
    while step < len(wxyz):
        later = geometry.quat_multiply(wxyz[step:], wxyz[:-step])
        wxyz = np.concatenate([wxyz[:step], later])
        step *= 2
    return np.asarray(wxyz / np.linalg.norm(wxyz, axis=-1, keepdims=True))
