"""Axes of hinges and universal joints, and their covariance.

Implements OBrien2000, Sec. 3.2. The singular vector (v_a, v_b) of a vanishing singular
value obeys R_a v_a = R_b v_b in every frame, so its first half is the axis in the body
whose centre comes first. The paper assigns the halves in the opposite order, which
contradicts its Eqs. 11 and 12.
"""

from collections.abc import Sequence

import numpy as np

from marey.joints.ball.closed_form import NOISE_UNCERTAINTY, EigenSystem
from marey.joints.ball.normal_equations import PerPair
from marey.joints.ball.pair_frames import correlation_length
from marey.numerics import Array, Bool, Float, geometry
from marey.numerics.thresholds import CERTAIN_SD, MAX_PLAY_RAD, OUTLIER_SD

KINDS = ("ball", "hinge", "fixed", "fixed")
"""Kind of a joint by the number of directions that the motion leaves free. A rotation
about one axis frees one direction, no rotation all three; two are a motion that is lost
in the noise."""

STARTS = np.array(
    [[x, y, z] for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1)], float
)[14:]
"""First guesses of an axis: all directions by 45 degrees, one of each opposite two."""

ALTERNATING_ITERATIONS, GAUSS_NEWTON_ITERATIONS = 6, 10
"""Rounds in which each axis is solved for with the other held, and then Gauss-Newton
steps for both."""

TINY_DAMPING_SHARE = 1e-6
"""Damping of these steps over the trace of the Hessian."""


def hinge_axes(
    system: EigenSystem,
) -> tuple[Float[Array, "pair 3"], Float[Array, "pair 3"]]:
    """Return the unit axis in body a and in body b: the halves of the null vector.

    The sign is that which makes the largest component in a positive.
    """
    null_vector = system.eigenvectors[:, :, 0]
    axis_a, axis_b = null_vector[:, :3], null_vector[:, 3:]
    largest = np.argmax(np.abs(np.nan_to_num(axis_a)), axis=1)[:, None]
    sign = np.where(np.take_along_axis(axis_a, largest, axis=1) < 0.0, -1.0, 1.0)
    return geometry.unit_vectors(sign * axis_a), geometry.unit_vectors(sign * axis_b)


def axis_covariance(
    A: Float[Array, "pair 6 6"],
    axis_a: Float[Array, "pair 3"],
    axis_b: Float[Array, "pair 3"],
    scatter: Float[Array, "pair 6 6"],
) -> Float[Array, "pair 6 6"]:
    r"""Return the covariance of (axis_a, axis_b) of hinges, in square radians.

    The sandwich of least squares for the tangent directions P of the two axes,

    .. math:: P H^{-1} (P^T S P) H^{-1} P^T, \quad H = P^T A P.

    Args:
        A: Matrices of the normal equations.
        axis_a: Unit axes in body a.
        axis_b: Unit axes in body b.
        scatter: The covariance S of the mean score, from `axis_scatter`.
    """
    tangent = np.zeros((len(A), 6, 4))
    tangent[:, :3, :2], tangent[:, 3:, 2:] = _tangents(axis_a), _tangents(axis_b)
    tangent_T = np.swapaxes(tangent, 1, 2)
    inverse = np.linalg.pinv(tangent_T @ A @ tangent, rcond=1e-10, hermitian=True)
    tangent = tangent @ inverse
    return np.asarray(tangent @ (tangent_T @ scatter @ tangent_T.mT) @ tangent.mT)


def axis_scatter(
    R_a_b: Float[Array, "frame 3 3"],
    axis_a: Float[Array, " 3"],
    axis_b: Float[Array, " 3"],
) -> Float[Array, "6 6"]:
    r"""Return the covariance of the mean score of the axes of a hinge.

    With the deviation d = axis_a - R_a_b axis_b of a frame, its score is
    g = (d, -R_a_b^T d). With n frames, t of which make one independent deviation, it is

    .. math:: t \sum_k g_k g_k^T / n^2

    also where some frames deviate more than others.
    """
    deviation = axis_a - R_a_b @ axis_b
    in_b = np.einsum("fji,fj->fi", R_a_b, deviation)
    score = np.concatenate([deviation, -in_b], axis=1)
    frames = correlation_length(deviation, n_fitted_means=2)  # one in each body
    return np.asarray(frames * (score.T @ score) / max(len(score), 1) ** 2)


def white_axis_scatter(system: EigenSystem) -> Float[Array, "pair 6 6"]:
    """Return the same from sums alone, if all deviations are alike and independent.

    Their variance is the smallest eigenvalue.
    """
    null_vector, A = system.eigenvectors[:, :, 0], system.raw.A
    variance = np.einsum("pi,pij,pj->p", null_vector, A, null_vector)
    scale = np.maximum(variance, 0.0) / np.maximum(system.raw.count, 1.0)
    return np.asarray(scale[:, None, None] * A)


def _tangents(axis: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3 2"]:
    """Return two unit directions orthogonal to each axis and to each other."""
    helper = np.eye(3)[np.argmin(np.abs(axis), axis=-1)]
    side = geometry.unit_vectors(geometry.cross(axis, helper))
    return np.stack([side, geometry.cross(axis, side)], axis=-1)


def universal_axes(
    R_a_b: Sequence[Float[Array, "_ 3 3"]],
) -> tuple[Float[Array, "pair 3"], Float[Array, "pair 3"], PerPair]:
    """Return the axes of the universal joint nearest to relative rotations.

    A universal joint rotates about an axis fixed in body a and a second axis,
    orthogonal to the first, fixed in body b: axis_a . R_a_b axis_b = 0 in every frame.
    The sum of the squares of that product is minimised from many starts: first by
    alternating least squares, in which each axis is the smallest eigenvector for the
    other, then by Gauss-Newton steps for both. It depends on the second moments of the
    rotations alone.

    Args:
        R_a_b: Relative rotations of each pair.

    Returns:
        axis_a, axis_b, and the root mean square of that product: the angle, in
        radians, about the third axis, which a universal joint does not have.
    """
    n_pairs, entries = len(R_a_b), [R.reshape(-1, 9) for R in R_a_b]
    W = np.stack([flat.T @ flat / len(flat) for flat in entries])[:, None]
    W_ijkl = W.reshape(n_pairs, 1, 3, 3, 3, 3)
    axis_a = axis_b = np.broadcast_to(
        geometry.unit_vectors(STARTS), (n_pairs, len(STARTS), 3)
    )
    for _ in range(ALTERNATING_ITERATIONS):
        for_a = np.einsum("psijkl,psj,psl->psik", W_ijkl, axis_b, axis_b)
        axis_a = np.linalg.eigh(for_a)[1][..., 0]
        for_b = np.einsum("psijkl,psi,psk->psjl", W_ijkl, axis_a, axis_a)
        axis_b = np.linalg.eigh(for_b)[1][..., 0]
    for _ in range(GAUSS_NEWTON_ITERATIONS):
        axis_a, axis_b = _gauss_newton_step(W, axis_a, axis_b)
    product = _outer(axis_a, axis_b)
    square = np.einsum("psi,psij,psj->ps", product, W, product)
    best = np.argmin(square, axis=1)
    row = np.arange(n_pairs)
    angle = np.sqrt(np.maximum(square[row, best], 0.0))
    return axis_a[row, best], axis_b[row, best], angle


def _outer(v: Array, w: Array) -> Float[Array, "*batch 9"]:
    """Return the outer products v w^T, in rows of nine."""
    outer = v[..., :, None] * w[..., None, :]
    return np.asarray(outer.reshape(*outer.shape[:-2], 9))


def _gauss_newton_step(W: Array, axis_a: Array, axis_b: Array) -> tuple[Array, Array]:
    """Return both unit axes after one step on the square of axis_a . R_a_b axis_b.

    Slightly damped (Levenberg-Marquardt): the angles may be nearly undetermined.
    """
    tangent_a, tangent_b = _tangents(axis_a), _tangents(axis_b)
    jacobian = np.stack(
        [
            *(_outer(tangent_a[..., i], axis_b) for i in range(2)),
            *(_outer(axis_a, tangent_b[..., i]) for i in range(2)),
        ],
        axis=-1,
    )
    JW = np.swapaxes(jacobian, -1, -2) @ W
    gradient = (JW @ _outer(axis_a, axis_b)[..., None])[..., 0]
    hessian = JW @ jacobian
    damping = 1e-9 + TINY_DAMPING_SHARE * np.trace(hessian, axis1=-2, axis2=-1)
    hessian = hessian + damping[..., None, None] * np.eye(4)
    step = -np.linalg.solve(hessian, gradient[..., None])
    return (
        geometry.unit_vectors(axis_a + (tangent_a @ step[..., :2, :])[..., 0]),
        geometry.unit_vectors(axis_b + (tangent_b @ step[..., 2:, :])[..., 0]),
    )


def is_universal(
    third_angle: PerPair,
    eigenvalues: Float[Array, "pair 6"],
    rotation_variance: PerPair,
    count: PerPair,
) -> Bool[Array, " pair"]:
    """Return whether joints rotate about a second axis but not about a third.

    Args:
        third_angle: Angle about the third axis from `universal_axes`, in radians.
        eigenvalues: Of the fit; for small rotations each of the weakest three is half
            the sum of the variances of the rotations about two axes.
        rotation_variance: Noise of the relative orientation per axis, in square
            radians.
        count: Frames.
    """
    margin = 1.0 + NOISE_UNCERTAINTY + OUTLIER_SD / np.sqrt(np.maximum(count, 1.0))
    limit = np.sqrt(MAX_PLAY_RAD**2 + rotation_variance * margin)
    second_angle = np.sqrt(
        np.maximum(eigenvalues[:, 0] + eigenvalues[:, 2] - eigenvalues[:, 1], 0.0)
    )
    return np.asarray((third_angle <= limit) & (second_angle > CERTAIN_SD * limit))
