"""Joints with one axis or two: their axes, and how well those are known.

Implements OBrien2000, Sec. 3.2. The singular vector (v_a, v_b) of a vanishing singular
value obeys R_a v_a = R_b v_b in every frame, so its first half is the axis in the body
whose centre comes first. The paper assigns the halves the other way round, which its
own Eqs. 11 and 12 contradict.
"""

import numpy as np
from jaxtyping import Bool, Float

from marey.joints.ball.closed_form import DOUBT, SIGMAS, System

Array = np.ndarray

KINDS = ("ball", "hinge", "fixed", "fixed")
"""Kind of a joint by the number of directions the motion leaves free. One rotation
frees one direction or all three; two is a motion lost in the noise."""

# A third freedom below this, in radians rms, is none; the second must be this many
# times larger to be told from it.
STIFF, APART = 0.01, 5.0

# Starts of the search for two axes: all directions by 45 degrees, one of each two that
# are opposite. Then so many turns of one axis after the other, and Gauss-Newton steps.
STARTS = np.array(
    [[x, y, z] for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1)], float
)[14:]
TURNS, STEPS = 6, 10


def kinds_of(
    free: Bool[Array, "pair 3"], known: Bool[Array, " pair"]
) -> tuple[str, ...]:
    """Return "ball", "hinge" or "fixed" of each pair; "ball" where nothing is known."""
    return tuple(KINDS[int(n)] for n in np.where(known, free.sum(axis=1), 0))


def hinge_axes(
    system: System,
) -> tuple[Float[Array, "pair 3"], Float[Array, "pair 3"]]:
    """Return the unit axis in body a and in body b: the halves of the null vector."""
    weakest = system.vector[:, :, 0]
    axis_a, axis_b = weakest[:, :3], weakest[:, 3:]
    # Of the two signs, the one that makes the largest component in a positive.
    largest = np.argmax(np.abs(np.nan_to_num(axis_a)), axis=1)[:, None]
    sign = np.where(np.take_along_axis(axis_a, largest, axis=1) < 0.0, -1.0, 1.0)
    return _unit(sign * axis_a), _unit(sign * axis_b)


def _unit(v: Array) -> Array:
    length = np.linalg.norm(v, axis=-1, keepdims=True)
    return np.asarray(v / np.where(length > 0.0, length, np.nan))


def axis_covariance(
    system: System,
    axis_a: Float[Array, "pair 3"],
    axis_b: Float[Array, "pair 3"],
    correlation: Float[Array, " pair"],
) -> Float[Array, "pair 6 6"]:
    """Return the covariance of (axis_a, axis_b), in square radians.

    Each frame shows how far the two axes are apart, with the variance that the
    smallest eigenvalue measures; A tells how far that fixes each of them.
    """
    n = len(axis_a)
    tangent = np.zeros((n, 6, 4))
    tangent[:, :3, :2] = _across(axis_a)
    tangent[:, 3:, 2:] = _across(axis_b)
    weakest = system.vector[:, :, 0]
    apart = np.einsum("pi,pij,pj->p", weakest, system.raw.A, weakest)
    across = np.swapaxes(tangent, 1, 2)
    inside, seen = across @ system.A @ tangent, across @ system.raw.A @ tangent
    gain = np.linalg.pinv(inside, rcond=1e-10, hermitian=True)
    scale = np.maximum(apart, 0.0) * correlation / np.maximum(system.raw.count, 1.0)
    inner = scale[:, None, None] * (gain @ seen @ gain)
    return np.asarray(tangent @ inner @ across)


def _across(axis: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3 2"]:
    """Return two unit directions square to each axis and to each other."""
    helper = np.eye(3)[np.argmin(np.abs(axis), axis=-1)]
    side = _unit(np.cross(axis, helper))
    return np.stack([side, np.cross(axis, side)], axis=-1)


def universal_axes(
    R_a_b: Float[Array, "pair frame 3 3"],
) -> tuple[Float[Array, "pair 3"], Float[Array, "pair 3"], Float[Array, " pair"]]:
    """Return the axes of the universal joint nearest to relative rotations.

    A universal joint turns about an axis fixed in body a and another, square to it,
    fixed in body b: axis_a . R_a_b axis_b = 0 in every frame. From many starts each
    axis is found in turn as the smallest eigenvector for the other; Gauss-Newton steps
    finish.

    Returns:
        axis_a, axis_b, and the root mean square of that product: the angle, in
        radians, of the freedom that a universal joint does not have.
    """
    n_pairs, n_frames = R_a_b.shape[:2]
    flat = R_a_b.reshape(n_pairs, n_frames, 9)
    W = (np.swapaxes(flat, 1, 2) @ flat / n_frames)[:, None]
    cube = W.reshape(n_pairs, 1, 3, 3, 3, 3)
    axis_a = axis_b = np.broadcast_to(_unit(STARTS), (n_pairs, len(STARTS), 3))
    for _ in range(TURNS):
        for_a = np.einsum("psijkl,psj,psl->psik", cube, axis_b, axis_b)
        axis_a = np.linalg.eigh(for_a)[1][..., 0]
        for_b = np.einsum("psijkl,psi,psk->psjl", cube, axis_a, axis_a)
        axis_b = np.linalg.eigh(for_b)[1][..., 0]
    for _ in range(STEPS):
        axis_a, axis_b = _nearer(W, axis_a, axis_b)
    product = _outer(axis_a, axis_b)
    square = np.einsum("psi,psij,psj->ps", product, W, product)
    best = np.argmin(square, axis=1)
    row = np.arange(n_pairs)
    angle = np.sqrt(np.maximum(square[row, best], 0.0))
    return axis_a[row, best], axis_b[row, best], angle


def _outer(v: Array, w: Array) -> Float[Array, "*batch 9"]:
    outer = v[..., :, None] * w[..., None, :]
    return np.asarray(outer.reshape(*outer.shape[:-2], 9))


def _nearer(W: Array, axis_a: Array, axis_b: Array) -> tuple[Array, Array]:
    """Return both axes after one Gauss-Newton step on their product's square."""
    side_a, side_b = _across(axis_a), _across(axis_b)
    slope = np.stack(
        [
            *(_outer(side_a[..., i], axis_b) for i in range(2)),
            *(_outer(axis_a, side_b[..., i]) for i in range(2)),
        ],
        axis=-1,
    )
    across = np.swapaxes(slope, -1, -2) @ W
    pull = (across @ _outer(axis_a, axis_b)[..., None])[..., 0]
    inside = across @ slope
    damping = 1e-9 + 1e-6 * np.trace(inside, axis1=-2, axis2=-1)
    inside = inside + damping[..., None, None] * np.eye(4)
    step = -np.linalg.solve(inside, pull[..., None])
    turned_a = axis_a + (side_a @ step[..., :2, :])[..., 0]
    turned_b = axis_b + (side_b @ step[..., 2:, :])[..., 0]
    return _unit(turned_a), _unit(turned_b)


def is_universal(
    third: Float[Array, " pair"],
    value: Float[Array, "pair 6"],
    turn_variance: Float[Array, " pair"],
    count: Float[Array, " pair"],
) -> Bool[Array, " pair"]:
    """Whether the third freedom is none, and the second clearly is one.

    Args:
        third: What `universal_axes` found left, in radians.
        value: Eigenvalues of the fit; the weakest three hold half the sum of the
            variances of rotation about two axes each, for small turns.
        turn_variance: Noise of the relative orientation per axis, in square radians.
        count: Frames.
    """
    doubt = 1.0 + DOUBT + SIGMAS / np.sqrt(np.maximum(count, 1.0))
    stiff = np.sqrt(STIFF**2 + turn_variance * doubt)
    second = np.sqrt(np.maximum(value[:, 0] + value[:, 2] - value[:, 1], 0.0))
    return np.asarray((third <= stiff) & (second > APART * stiff))
