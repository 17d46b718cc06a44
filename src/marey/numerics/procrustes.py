"""Generalised Procrustes analysis: the rigid shape of markers and its poses.

A 6-DoF pose is four points as well: what fits markers then fits sensors, too.
"""

from dataclasses import dataclass

import numpy as np

from marey.numerics import Array, Bool, Float, geometry
from marey.numerics.robust import CHI2_3_MEDIAN
from marey.numerics.thresholds import (
    FEW,
    LEVER_ARM_M,
    MIN_POSE_POINTS,
    OUTLIER_SD,
    SAMPLE_FRAMES,
)

SAMPLE_ITERATIONS = 10
"""Alternations of shape and poses on a sample of the frames."""

MEDIAN_ITERATIONS = 2
"""How many of these estimate the shape by medians, before outliers have low weights."""

FINAL_ITERATIONS = 2
"""Alternations on all frames, starting from the shape of the sample."""

TINY_WIDTH = 1e-6
"""Width of a set of markers, as a share of its length, below which it is a line and
leaves the rotation about itself undetermined."""

TETRAHEDRON = np.array(
    [[1.0, 1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
)

SENSOR_POINTS = LEVER_ARM_M * TETRAHEDRON / np.linalg.norm(TETRAHEDRON[0])
"""The four points that represent a 6-DoF sensor, in its axes, in metres: corners of a
regular tetrahedron around its origin, so that errors of position and of rotation are
independent."""


def points_of_poses(T: Float[Array, "*batch 4 4"]) -> Float[Array, "*batch 4 3"]:
    """Return the four points of each pose, in metres; NaN where it is unknown."""
    return geometry.apply(T[..., None, :, :], SENSOR_POINTS)


def poses_of_points(points: Float[Array, "*batch 4 3"]) -> Float[Array, "*batch 4 4"]:
    """Return the poses (m) whose `SENSOR_POINTS` are nearest to given ones (Kabsch)."""
    return geometry.kabsch(SENSOR_POINTS, points)


@dataclass(frozen=True, slots=True, eq=False)
class RigidFit:
    """The rigid body that markers form."""

    offset: Float[Array, "marker 3"]
    """Position of each marker in the body, in metres; NaN if it was never seen."""

    T_world_body: Float[Array, "frame 4 4"]
    """Pose of the body; NaN where too few markers were seen."""

    sd: Float[Array, " marker"]
    """Root mean square residual of each marker, in metres."""

    rms: float
    """The same over all markers."""

    determined: bool
    """Whether the markers fix the rotation: three or more that are not on a line."""


def fit_rigid(points: Float[Array, "frame marker 3"]) -> RigidFit:
    r"""Return the rigid shape and the poses that fit the markers best.

    Generalised Procrustes analysis (Gower 1975) with missing data: poses are fitted to
    the shape and the shape to the poses, alternately, to minimise

    .. math:: \sum_{n,i} w_{ni} \, \| R_n s_i + t_n - p_{ni} \|^2 .

    The weight of a position is the inverse variance of its marker times the
    Geman-McClure weight of its residual, so outliers hardly count. The axes of the body
    follow the order of the markers: the origin is their centroid, x points from the
    first marker to the second, and z is perpendicular to the plane of these two and the
    next marker far enough from their line.

    One marker, two markers, or several on a line leave the rotation about themselves
    undetermined. Such a body gets the pose of least rotation: x follows the line, and
    the body does not twist about it from frame to frame. A single marker never rotates.

    Args:
        points: Positions in metres, NaN where a marker was not seen.
    """
    points = points.astype(float, copy=False)
    start = _initial_shape(points)
    if not _spans_a_plane(start):
        return _fit_underdetermined(points)
    # Expressed in the body's axes, so that the answer does not depend on the world's.
    start = geometry.apply(_body_axes(start), start)
    shape, T = _alternate(points, start)
    if not _spans_a_plane(shape):
        return _fit_underdetermined(points)
    T_body_shape = _body_axes(shape)
    shape = geometry.apply(T_body_shape, shape)
    T = T @ geometry.inverse(T_body_shape)
    fit = evaluate_fit(points, shape, T, determined=True)
    is_posed = poses_seen(T[points_seen(points).all(axis=1)]).all()
    # Markers on a line, up to rounding: some rotations about it are NaN.
    if not is_posed and not _width(shape) > fit.rms:
        return _fit_underdetermined(points)
    return fit


def _initial_shape(points: Array) -> Array:
    """Return the markers in the frame whose distances are nearest to the medians.

    Only frames that show the largest number of markers are considered.
    """
    count = points_seen(points).sum(axis=1)
    fullest = np.flatnonzero(count == count.max(initial=0))
    if not len(fullest):
        return np.zeros((0, 3))
    n_sample = min(SAMPLE_FRAMES, len(fullest))
    sample = fullest[np.linspace(0, len(fullest) - 1, n_sample).astype(int)]
    i, j = np.triu_indices(points.shape[1], 1)
    shapes = points[sample]
    distance = np.nan_to_num(geometry.lengths(shapes[:, i] - shapes[:, j]))
    deviation = np.abs(distance - np.median(distance, axis=0)).sum(axis=1)
    return np.asarray(points[sample[np.argmin(deviation)]])


def _spans_a_plane(shape: Array) -> bool:
    known = shape[np.isfinite(shape).all(axis=-1)]
    if len(known) < MIN_POSE_POINTS:
        return False
    size = np.linalg.svd(known - known.mean(axis=0), compute_uv=False)
    return bool(size[1] > TINY_WIDTH * size[0])


def _width(shape: Float[Array, "marker 3"]) -> float:
    """Return the rms distance of the markers from their line, in metres."""
    known = shape[np.isfinite(shape).all(axis=-1)]
    size = np.linalg.svd(known - known.mean(axis=0), compute_uv=False)
    return float(np.linalg.norm(size[1:]) / np.sqrt(len(known)))


def _alternate(points: Array, shape: Array) -> tuple[Array, Array]:
    """Return shape and poses after alternating between them.

    The first iterations use a sample of the frames that show enough markers, which
    brings the shape near its optimum; the last ones use all frames.
    """
    from marey.numerics.procrustes_kernel import (  # slow to import
        KEPT,
        MEANS,
        MEDIANS,
        alternate,
    )

    robust = OUTLIER_SD, CHI2_3_MEDIAN / points.shape[2]
    n_means = SAMPLE_ITERATIONS - MEDIAN_ITERATIONS
    first = (*[MEDIANS] * MEDIAN_ITERATIONS, *[MEANS] * n_means)
    last = (KEPT, *[MEANS] * FINAL_ITERATIONS)
    points, shape = np.ascontiguousarray(points), shape.copy()
    shown = np.flatnonzero(points_seen(points).sum(axis=1) >= MIN_POSE_POINTS)
    sample = points[shown[:: max(len(shown) // SAMPLE_FRAMES, 1)]]
    T = geometry.kabsch(shape, sample)
    weight = np.ones(sample.shape[:2])
    alternate(sample, shape, weight, T, np.array(first), *robust)
    T = geometry.kabsch(shape, points)
    weight = np.ones(points.shape[:2])
    missing = ~np.isfinite(shape).all(axis=-1)  # no frame of the sample showed them
    if missing.any():
        shape[missing] = median_in_body(T, points[:, missing])
    alternate(points, shape, weight, T, np.array(last), *robust)
    return shape, T


def points_in_body(
    T_world_body: Float[Array, "frame 4 4"], points: Float[Array, "frame marker 3"]
) -> Float[Array, "frame marker 3"]:
    """Return the points in the coordinates of the body, in metres."""
    from marey.numerics.procrustes_kernel import to_body  # numba is slow to import

    local = np.empty(points.shape)
    # One memory layout, so that one compilation serves all callers.
    T, points = (np.require(x, requirements=["C", "W"]) for x in (T_world_body, points))
    to_body(T, points, local)
    return local


def points_seen(points: Float[Array, "*batch _"]) -> Bool[Array, "*batch"]:
    """Return which positions have all three coordinates, whatever follows them."""
    # One sum per position is many times faster than asking every number.
    with np.errstate(invalid="ignore"):
        total = points[..., 0] + points[..., 1]
        total += points[..., 2]
    return np.asarray(np.isfinite(total))


def poses_seen(T: Float[Array, "*batch 4 4"]) -> Bool[Array, "*batch"]:
    """Return which poses have all their components."""
    # One sum per pose is several times faster than a test of every number.
    return np.asarray(np.isfinite(np.einsum("...ij->...", T)))


def median_in_body(
    T_world_body: Float[Array, "frame 4 4"], points: Float[Array, "frame marker 3"]
) -> Float[Array, "marker 3"]:
    """Return the median of each marker in the coordinates of the body, in metres."""
    from marey.numerics.procrustes_kernel import fill_medians  # numba is slow to import

    offset = np.empty(points.shape[1:])
    fill_medians(points_in_body(T_world_body, points), np.empty(len(points)), offset)
    return offset


def _body_axes(shape: Array) -> Array:
    """Return T_body_shape: the axes of the body, given by the order of its markers."""
    points = shape[np.isfinite(shape).all(axis=-1)]
    x = points[1] - points[0]
    if np.linalg.norm(x) == 0.0:
        x = points[2] - points[0]
    x = x / np.linalg.norm(x)
    rejection = points - points[0]
    rejection = rejection - np.outer(rejection @ x, x)
    distance = geometry.lengths(rejection)
    y = rejection[np.argmax(distance > FEW * distance.max())]
    z = geometry.cross(x, y)
    z = z / np.linalg.norm(z)
    R = np.stack([x, geometry.cross(z, x), z])
    return geometry.transform(R, -R @ points.mean(axis=0))


def evaluate_fit(
    points: Float[Array, "frame marker 3"],
    shape: Float[Array, "marker 3"],
    T: Float[Array, "frame 4 4"],
    *,
    determined: bool,
) -> RigidFit:
    """Return the fit of a given shape and given poses, with its residuals.

    Args:
        points: Markers in the world, in metres; NaN where unseen.
        shape: The same markers in the body, in metres.
        T: T_world_body of every frame.
        determined: Whether the markers determine the poses.
    """
    square = np.sum((points_in_body(T, points) - shape) ** 2, axis=-1)
    known = np.isfinite(square)
    total = np.where(known, square, 0.0).sum(axis=0)
    count = known.sum(axis=0)
    mean = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
    rms = np.sqrt(total.sum() / count.sum()) if count.any() else np.nan
    return RigidFit(shape, T, np.sqrt(mean), float(rms), determined)


# --- markers that leave a rotation undetermined ---------------------------------------


def _fit_underdetermined(points: Array) -> RigidFit:
    """Return the pose of least rotation of one marker, or of markers on a line."""
    seen = np.flatnonzero(np.isfinite(points).all(axis=-1).any(axis=0))
    T = np.full((len(points), 4, 4), np.nan)
    if len(seen):
        R = np.broadcast_to(np.eye(3), (len(points), 3, 3))
        if len(seen) > 1:
            R = _rotations_along(points[:, seen[-1]] - points[:, seen[0]])
        T = geometry.transform(R, points[:, seen].mean(axis=1))
    return evaluate_fit(points, median_in_body(T, points), T, determined=False)


def _rotations_along(line: Array) -> Array:
    """Return rotations whose x axis follows a line without twisting about it.

    They are products of the shortest rotations from frame to frame: parallel transport.
    """
    length = geometry.lengths(line)
    known = np.flatnonzero(length > 0.0)
    R = np.full((len(line), 3, 3), np.nan)
    if not len(known):
        return R
    unit = line[known] / length[known, None]
    before = np.concatenate([np.eye(3)[:1], unit[:-1]])
    steps = shortest_rotations(before, unit)
    R[known] = geometry.matrix_from_quat(_cumulative_product(steps))
    return R


def shortest_rotations(
    start: Float[Array, "*#batch 3"], end: Float[Array, "*#batch 3"]
) -> Float[Array, "*batch 4"]:
    r"""Return the quaternions wxyz of the shortest rotations between unit vectors.

    .. math:: q \propto (1 + a \cdot b, \; a \times b)

    Opposite vectors get a half turn about an axis perpendicular to both.
    """
    start, end = np.broadcast_arrays(start, end)
    w = 1.0 + np.sum(start * end, axis=-1, keepdims=True)
    q = np.concatenate([w, geometry.cross(start, end)], axis=-1)
    other = np.eye(3)[np.argmin(np.abs(start), axis=-1)]
    across = geometry.cross(start, other)
    half_turn = np.concatenate([np.zeros_like(w), across], axis=-1)
    q = np.where(w < 1e-12, half_turn, q)
    return geometry.unit_vectors(q)


def _cumulative_product(wxyz: Array) -> Array:
    """Return the products q_n ... q_1 q_0 of all quaternions up to each (a scan)."""
    step = 1
    while step < len(wxyz):
        later = geometry.quat_multiply(wxyz[step:], wxyz[:-step])
        wxyz = np.concatenate([wxyz[:step], later])
        step *= 2
    return geometry.unit_vectors(wxyz)
