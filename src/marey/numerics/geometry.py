"""Stacked rotations and rigid transforms: arrays in, arrays out.

Every function works over any leading axes. Rotations are 3 x 3 matrices R_a_b, unit
quaternions wxyz, rotation vectors in radians, or Euler angles in radians; transforms
are 4 x 4 matrices T_a_b with p_a = T_a_b @ p_b. What is unknown is NaN in all its
components, and what follows from it is NaN too.
"""

import math

import numpy as np

from marey.errors import DataError, OptionError
from marey.numerics import Array, Float, Int
from marey.numerics.thresholds import FRAMES_PER_CHUNK

Vectors = Float[Array, "*#batch 3"]
Quats = Float[Array, "*#batch 4"]
Rotations = Float[Array, "*#batch 3 3"]
Transforms = Float[Array, "*#batch 4 4"]

# Sines below this may have lost digits to underflow; the angle is then the sine.
TINY_SINE = 1e-150

# Below this angle (radians) quotients of vanishing terms are replaced by their limits.
TINY_ANGLE = 1e-4

# Sine of the middle angle below which the outer two Euler angles are one: gimbal lock.
GIMBAL = 1e-9

R_Z_UP = {
    "z": np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    "-z": np.array([[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]]),
    "y": np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]),
    "-y": np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]]),
    "x": np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]),
    "-x": np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]),
}
"""Rotation of the axis that points up to +Z; X stays X where possible."""


def nearest_axis(direction: Float[Array, "3"]) -> str:
    """Return which of the axes x, -x, y, -y, z and -z a direction is nearest to."""
    return max(R_Z_UP, key=lambda axis: float(R_Z_UP[axis][2] @ direction))


# --- vectors --------------------------------------------------------------------------


def lengths(vectors: Vectors) -> Float[Array, "*batch"]:
    """Return the lengths of vectors in their unit, as `np.linalg.norm` but faster."""
    x, y, z = vectors[..., 0], vectors[..., 1], vectors[..., 2]
    square = x * x
    square += y * y
    square += z * z
    return np.asarray(np.sqrt(square))


def unit_vectors(
    vectors: Float[Array, "*batch number"],
) -> Float[Array, "*batch number"]:
    """Return the vectors with length one; NaN for those of length zero."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0.0, length, np.nan))


def cross(left: Vectors, right: Vectors) -> Vectors:
    """Return the cross products of vectors, as `np.cross` but faster."""
    x = left[..., 1] * right[..., 2] - left[..., 2] * right[..., 1]
    product = np.empty((*x.shape, 3))
    product[..., 0] = x
    product[..., 1] = left[..., 2] * right[..., 0] - left[..., 0] * right[..., 2]
    product[..., 2] = left[..., 0] * right[..., 1] - left[..., 1] * right[..., 0]
    return product


# --- rotation vectors and quaternions ------------------------------------------------


def quat_exp(rotvec: Vectors) -> Quats:
    """Return the unit quaternions wxyz of rotation vectors."""
    half = 0.5 * np.linalg.norm(rotvec, axis=-1, keepdims=True)
    scale = 0.5 * np.sinc(half / np.pi)
    return np.concatenate([np.cos(half), scale * rotvec], axis=-1)


def quat_log(wxyz: Quats) -> Vectors:
    """Return the rotation vectors, of at most pi, of unit quaternions."""
    wxyz = np.where(wxyz[..., :1] < 0.0, -wxyz, wxyz)
    w, v = wxyz[..., :1], wxyz[..., 1:]
    sine = np.linalg.norm(v, axis=-1, keepdims=True)
    tiny = sine < TINY_SINE
    angle = 2.0 * np.arctan2(sine, w)
    return np.asarray(v * np.where(tiny, 2.0, angle / np.where(tiny, 1.0, sine)))


def quat_multiply(left: Quats, right: Quats) -> Quats:
    """Return the quaternion of R_left @ R_right."""
    w, v, W, V = left[..., :1], left[..., 1:], right[..., :1], right[..., 1:]
    scalar = w * W - np.sum(v * V, axis=-1, keepdims=True)
    return np.concatenate([scalar, w * V + W * v + cross(v, V)], axis=-1)


def quat_conjugate(wxyz: Quats) -> Quats:
    """Return the quaternions of the inverse rotations."""
    return np.asarray(wxyz * np.array([1.0, -1.0, -1.0, -1.0]))


def quat_rotate(wxyz: Quats, points: Vectors) -> Vectors:
    """Return points turned by unit quaternions."""
    w, v = wxyz[..., :1], wxyz[..., 1:]
    twice = 2.0 * cross(v, points)
    return np.asarray(points + w * twice + cross(v, twice))


def quat_continuous(
    wxyz: Float[Array, "frame *item 4"],
) -> Float[Array, "frame *item 4"]:
    """Return the same rotations with signs chosen so that no frame flips.

    q and -q are one rotation; along the first axis each quaternion takes the sign
    nearest to the last one known. The first one known is given a positive w. An array
    that needs no change, and has no gap, is returned itself.
    """
    if _never_flips(wxyz):
        return wxyz
    flips = np.where(_likeness(hold_last(wxyz)) < 0.0, -1.0, 1.0)
    return wxyz * np.cumprod(flips, axis=0)[..., None]


def _never_flips(wxyz: Array) -> bool:
    """Return whether all quaternions are like those before, in blocks of frames."""
    starts = range(0, len(wxyz) - 1, FRAMES_PER_CHUNK)
    blocks = (wxyz[first : first + FRAMES_PER_CHUNK + 1] for first in starts)
    is_positive = (wxyz[:1, ..., 0] >= 0.0).all()
    return bool(is_positive) and all((_likeness(b)[1:] >= 0.0).all() for b in blocks)


def _likeness(wxyz: Array) -> Array:
    """Return the product of each quaternion with the one before, of the first its w."""
    likeness = wxyz[..., 0].copy()
    np.einsum("...i,...i->...", wxyz[1:], wxyz[:-1], out=likeness[1:])
    return np.asarray(likeness)


def hold_last(values: Array) -> Array:
    """Return values with unknown rows taken from the last one known, else the first."""
    known = np.isfinite(values).all(axis=-1)
    if known.all():
        return values
    frame = np.arange(len(values)).reshape(-1, *[1] * (known.ndim - 1))
    last = np.maximum.accumulate(np.where(known, frame, -1), axis=0)
    source = np.where(last < 0, np.argmax(known, axis=0), last)
    return np.take_along_axis(values, source[..., None], axis=0)


def quat_slerp(start: Quats, end: Quats, share: Float[Array, "*#batch"]) -> Quats:
    """Return the rotation a share of the shortest way from start to end."""
    way = quat_log(quat_multiply(quat_conjugate(start), end))
    return quat_multiply(start, quat_exp(share[..., None] * way))


# --- matrices ------------------------------------------------------------------------


def matrix_from_quat(wxyz: Quats) -> Rotations:
    """Return the rotation matrices of unit quaternions."""
    w, *v = np.moveaxis(wxyz, -1, 0)
    R = np.empty((*wxyz.shape[:-1], 3, 3), wxyz.dtype)
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        R[..., i, i] = 1 - 2 * (v[j] * v[j] + v[k] * v[k])
        R[..., i, j] = 2 * (v[i] * v[j] - w * v[k])
        R[..., j, i] = 2 * (v[i] * v[j] + w * v[k])
    return R


def quat_from_matrix(R: Rotations) -> Quats:
    """Return the unit quaternions, w >= 0, of rotation matrices.

    The form with the largest divisor is taken of the four of Shepperd (1978), so the
    answer is exact to rounding at every angle.
    """
    d = np.diagonal(R, axis1=-2, axis2=-1)
    trace = np.sum(d, axis=-1)
    forms = np.empty((*trace.shape, 4, 4))  # row i is the quaternion times 4 q[i]
    forms[..., 0, 0] = 1.0 + trace
    for i, (j, k) in enumerate([(1, 2), (2, 0), (0, 1)]):
        forms[..., 1 + i, 1 + i] = 1.0 + 2.0 * d[..., i] - trace
        twist, shear = R[..., k, j] - R[..., j, k], R[..., k, j] + R[..., j, k]
        forms[..., 0, 1 + i] = forms[..., 1 + i, 0] = twist
        forms[..., 1 + j, 1 + k] = forms[..., 1 + k, 1 + j] = shear
    best = np.argmax(np.diagonal(forms, axis1=-2, axis2=-1), axis=-1)
    q = np.take_along_axis(forms, best[..., None, None], axis=-2)[..., 0, :]
    q /= np.linalg.norm(q, axis=-1, keepdims=True)
    return np.asarray(np.where(q[..., :1] < 0.0, -q, q))


def rotation_exp(rotvec: Vectors) -> Rotations:
    """Return the rotation matrices of rotation vectors."""
    return matrix_from_quat(quat_exp(rotvec))


def rotation_log(R: Rotations) -> Vectors:
    """Return the rotation vectors, of at most pi, of rotation matrices."""
    return quat_log(quat_from_matrix(R))


def hat(v: Vectors) -> Rotations:
    """Return the matrices that take x to the cross product of v and x."""
    x, y, z = np.moveaxis(v, -1, 0)
    o = np.zeros_like(x)
    return np.stack([o, -z, y, z, o, -x, -y, x, o], axis=-1).reshape(*v.shape, 3)


# --- rigid transforms ----------------------------------------------------------------


def transform(R: Rotations, t: Vectors) -> Transforms:
    """Assemble T = [R t; 0 1], NaN throughout where either is unknown."""
    batch = np.broadcast_shapes(R.shape[:-2], t.shape[:-1])
    T = np.zeros((*batch, 4, 4))
    T[..., :3, :3] = R
    T[..., :3, 3] = t
    T[..., 3, 3] = 1.0
    known = np.isfinite(T)
    if not known.all():
        T[~known.all(axis=(-1, -2))] = np.nan
    return T


def inverse(T: Transforms) -> Transforms:
    """Return T_b_a of rigid T_a_b."""
    R = np.swapaxes(T[..., :3, :3], -1, -2)  # OBrien2000, Eq. 2
    return transform(R, -np.einsum("...ij,...j->...i", R, T[..., :3, 3]))  # Eq. 3


def apply(T: Transforms, points: Vectors) -> Vectors:
    """Return points_a = T_a_b @ points_b, in metres."""
    turned = sum(T[..., :3, k] * points[..., k : k + 1] for k in range(3))
    return np.asarray(turned + T[..., :3, 3])  # OBrien2000, Eq. 1


def apply_selected(
    T: Float[Array, "frame item 4 4"],
    item: Int[Array, " point"],
    points: Float[Array, "point 3"],
) -> Float[Array, "frame point 3"]:
    """Return points over time, each fixed to one of several moving items.

    As `apply(T[:, item], points)`, without a copy of a pose for every point.

    Args:
        T: T_world_item over time.
        item: The item that each point is fixed to.
        points: Points in the axes of their items, in the unit of T.
    """
    out = np.empty((len(T), len(item), 3))
    homogeneous = np.concatenate([points, np.ones((len(points), 1))], axis=1)
    for k in np.unique(item):
        own = np.flatnonzero(item == k)
        moved = T[:, k, :3].reshape(-1, 4) @ homogeneous[own].T
        out[:, own] = moved.reshape(len(T), 3, len(own)).swapaxes(1, 2)
    return out


def transform_exp(twist: Float[Array, "*batch 6"]) -> Transforms:
    r"""Return the transforms of twists: translation part (m), then rotation (rad).

    .. math:: \exp(v, \omega) = (\exp[\omega]_\times, J(\omega)\, v)

    with the left Jacobian J of the rotations.
    """
    rotvec = twist[..., 3:]
    t = np.einsum("...ij,...j->...i", _left_jacobian(rotvec), twist[..., :3])
    return transform(rotation_exp(rotvec), t)


def transform_log(T: Transforms) -> Float[Array, "*batch 6"]:
    """Return the twists whose exponentials are T: translation (m), rotation (rad)."""
    rotvec = rotation_log(T[..., :3, :3])
    known = np.isfinite(rotvec).all(axis=-1)[..., None]
    V = _left_jacobian(np.where(known, rotvec, 0.0))
    v = np.linalg.solve(V, T[..., :3, 3, None])[..., 0]
    return np.concatenate([np.where(known, v, np.nan), rotvec], axis=-1)


def _left_jacobian(rotvec: Vectors) -> Rotations:
    """Return the matrices V with t = V v for a twist (v, rotvec)."""
    angle = np.linalg.norm(rotvec, axis=-1)[..., None, None]
    small = angle < TINY_ANGLE
    safe = np.where(small, 1.0, angle)
    a = 0.5 * np.sinc(angle / (2.0 * np.pi)) ** 2  # (1 - cos) / angle^2
    b = np.where(small, 1.0 / 6.0, (1.0 - np.sin(angle) / safe) / safe**2)
    K = hat(rotvec)
    return np.asarray(np.eye(3) + a * K + b * K @ K)


# --- Euler angles --------------------------------------------------------------------


def euler_axes(order: str) -> tuple[int, int, int]:
    """Return the axis numbers of an order such as "ZXY".

    Raises:
        OptionError: If the order does not name three axes, no two neighbours alike.
    """
    axes = tuple("XYZ".find(letter) for letter in order)
    if len(order) != len("XYZ") or -1 in axes or axes[1] in (axes[0], axes[2]):
        raise OptionError(
            "order", found=order, needed='three of X, Y, Z such as "ZXY" or "ZXZ"'
        )
    return axes[0], axes[1], axes[2]


def matrix_from_euler(angles: Vectors, order: str) -> Rotations:
    """Return R = R_first @ R_second @ R_third of moving-axes Euler angles.

    They are in radians and in the order of `order`: "ZXY" stands for Rz @ Rx @ Ry.
    """
    return matrix_from_quat(quat_from_euler(angles, order))


def quat_from_euler(angles: Vectors, order: str) -> Quats:
    """Return the unit quaternions of moving-axes Euler angles (see above)."""
    turns = quat_exp(angles[..., None] * np.eye(3)[list(euler_axes(order))])
    first, second, third = np.moveaxis(turns, -2, 0)
    return quat_multiply(quat_multiply(first, second), third)


def euler_from_quat(wxyz: Quats, order: str) -> Vectors:
    """Return the principal Euler angles of unit quaternions.

    The middle angle lies within +-pi/2 (or 0 to pi where the outer axes are the same),
    the others within +-pi; in gimbal lock the last angle is zero. The half-angle form
    of Bernardes and Viollet (2022) serves all twelve orders.
    """
    i, j, k = euler_axes(order)[::-1]
    proper = i == k
    k = ({0, 1, 2} - {i, j}).pop() if proper else k
    sign = float((i - j) * (j - k) * (k - i) // 2)
    w, x, y, z = np.moveaxis(wxyz[..., [0, 1 + i, 1 + j, 1 + k]], -1, 0)
    z = sign * z
    a, b, c, d = (w, x, y, z) if proper else (w - y, x + z, y + w, z - x)
    open_, shut = np.hypot(a, b), np.hypot(c, d)
    middle = 2.0 * np.arctan2(shut, open_)
    total, difference = np.arctan2(b, a), np.arctan2(d, c)
    low, high = shut < GIMBAL, open_ < GIMBAL
    last = np.where(low | high, 0.0, total - difference)
    first = np.where(low, 2.0 * total, total + difference)
    first = np.where(high, 2.0 * difference, first)
    if not proper:
        first, middle = sign * first, middle - np.pi / 2.0
    angles = np.stack([first, middle, last], axis=-1)
    angles[..., ::2] = _wrap_angles(angles[..., ::2])
    return angles


def _wrap_angles(angles: Array) -> Array:
    """Return the angles from -pi to pi, in radians."""
    return angles - 2.0 * np.pi * np.round(angles / (2.0 * np.pi))


def euler_continuous(
    wxyz: Float[Array, "frame *item 4"], order: str
) -> Float[Array, "frame *item 3"]:
    """Return Euler angles along the first axis without jumps.

    Every rotation has two sets of angles, plus whole turns. Which set is nearer to the
    frame before does not depend on the set chosen there, so the choice of all frames is
    one cumulative sum; whole turns are then unwrapped. In gimbal lock only the sum or
    difference of the outer angles is known: the last is interpolated from the frames
    around, and the first takes the rest. Frames unknown are stepped over.
    """
    axes = euler_axes(order)
    proper = axes[0] == axes[2]
    principal = euler_from_quat(wxyz, order)
    middle = principal[..., 1]
    locked = np.abs(np.sin(middle) if proper else np.cos(middle)) < 2.0 * GIMBAL
    principal[locked] = np.nan
    angles = _unwrap_angles(_nearest_branch(principal, proper=proper))
    if not locked.any():
        return angles
    _interpolate(angles[..., 2], locked)
    rest = np.where([False, True, True], angles[locked], 0.0)
    rest[:, 1] = euler_from_quat(wxyz[locked], order)[:, 1]
    first = quat_multiply(wxyz[locked], quat_conjugate(quat_from_euler(rest, order)))
    rest[:, 0] = 2.0 * np.arctan2(first[:, 1 + axes[0]], first[:, 0])
    angles[locked] = rest
    return _unwrap_angles(angles)


def _nearest_branch(angles: Array, *, proper: bool) -> Array:
    """Return of each frame's two sets of angles the one nearer to the frame before."""
    middle = -angles[..., 1] if proper else np.pi - angles[..., 1]
    turned = np.stack([angles[..., 0] + np.pi, middle, angles[..., 2] + np.pi], axis=-1)
    before = hold_last(angles)[:-1]
    stay = np.sum(_wrap_angles(angles[1:] - before) ** 2, axis=-1)
    switch = np.sum(_wrap_angles(turned[1:] - before) ** 2, axis=-1) < stay
    branch = np.zeros(angles.shape[:-1], dtype=bool)
    branch[1:] = np.cumsum(switch, axis=0) % 2 == 1
    return np.where(branch[..., None], turned, angles)


def _unwrap_angles(angles: Array) -> Array:
    """Remove whole turns along the first axis, stepping over unknown frames."""
    steps = np.diff(hold_last(angles), axis=0)
    turns = np.round(np.nan_to_num(steps) / (2.0 * np.pi))
    angles[1:] -= 2.0 * np.pi * np.cumsum(turns, axis=0)
    return angles


def _interpolate(values: Float[Array, "frame *item"], gap: Array) -> None:
    """Fill gaps along the first axis by straight lines; zero where nothing is known."""
    for item in np.argwhere(gap.any(axis=0)):
        column, missing = values[:, *item], gap[:, *item]
        known = np.flatnonzero(np.isfinite(column))
        column[missing] = 0.0
        if len(known):
            column[missing] = np.interp(np.flatnonzero(missing), known, column[known])


# --- fitting -------------------------------------------------------------------------


def nearest_rotation(M: Rotations) -> Rotations:
    """Return the rotations of least squared difference (Frobenius) from matrices."""
    known = np.isfinite(M).all(axis=(-1, -2), keepdims=True)
    U, _, Vt = np.linalg.svd(np.where(known, M, 0.0))
    U[..., -1] *= np.linalg.det(U @ Vt)[..., None]  # never a reflection
    return np.asarray(np.where(known, U @ Vt, np.nan))


def kabsch(
    points_b: Float[Array, "*#batch point 3"],
    points_a: Float[Array, "*#batch point 3"],
    weights: Float[Array, "*#batch point"] | None = None,
) -> Transforms:
    """Return the rigid T_a_b that best carries points_b onto points_a.

    Minimises the weighted sum of squared distances over the points known in both sets
    (Kabsch 1976), by the largest eigenvector of Horn's symmetric 4 x 4 matrix, which
    never returns a reflection. NaN where those points are fewer than 3 or on a line.

    Args:
        points_b: Points in b, any unit; NaN where unknown.
        points_a: The same points in a.
        weights: Weight of each point, >= 0; equal when left out.
    """
    from marey.numerics.kabsch_kernel import fit_poses  # numba is slow to import

    count = points_b.shape[-2]
    weights = np.ones(count) if weights is None else weights
    shapes = (points_b.shape[:-2], points_a.shape[:-2], weights.shape[:-1])
    batch = np.broadcast_shapes(*shapes)
    if points_a.shape[-2] != count or weights.shape[-1] != count:
        raise DataError(
            "kabsch",
            found=f"{points_a.shape[-2]} points and {weights.shape[-1]} weights",
            needed=f"{count} of each, as in the first set",
        )
    sets = [
        _flat_batch(values, batch, n_own)
        for values, n_own in ((points_b, 2), (points_a, 2), (weights, 1))
    ]
    out = np.empty((math.prod(batch), 4, 4))
    fit_poses(*sets, out)
    return out.reshape(*batch, 4, 4)


def _flat_batch(values: Array, batch: tuple[int, ...], n_own: int) -> Array:
    """Return values as floats, their leading axes broadcast to a batch and made one."""
    own = values.shape[-n_own:]
    if values.shape[:-n_own] != batch:  # a broadcast view takes as long as a fit
        values = np.broadcast_to(values, (*batch, *own))
    if len(batch) != 1:
        values = values.reshape(math.prod(batch), *own)
    return values.astype(float, copy=False)
