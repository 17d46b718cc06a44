"""Both centres of a joint at once: the radii of both sides, and the gap between them.

Seen from one body the markers of the other run on spheres; of that only the radii
count. Where both bodies have poses there is more: the two centres must stay together
as the bodies turn. A joint that swings a little shows little of its sphere, but its
turning is seen well, and the gap with it.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from marey.joints.sphere.geometric import (
    ROUNDING,
    TOO_FAR,
    Basis,
    Bias,
    Equation,
    Points,
    Tilt,
    equation,
    radial,
    trusted,
)
from marey.numerics import geometry

Array = np.ndarray

MOST_STEPS = 20


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """What one body sees of the joint: the other's markers, and the noise of its axes.

    Directions are those the centre can move in, as many on both sides.
    """

    points: Points
    basis: Basis
    tilt: Tilt
    bias: Bias | None


def close(
    T_a_b: Float[Array, "frame 4 4"],
    views: tuple[View, View],
    centers: Float[Array, "2 3"],
) -> tuple[Float[Array, "2 3"], Float[Array, "6 6"]]:
    """Return the centre in a and in b that fit radii and gap best, and the covariance.

    Least squares, each part weighed by the inverse of what it leaves over, with the
    pushes that the noise of the axes makes taken off. The parts share that noise; the
    covariance is taken from what each frame does to the answer, and so knows of it.

    Args:
        T_a_b: Pose of b in a, NaN where one of them was not seen.
        views: What a and what b see of the joint, over the same frames.
        centers: The joint in a and in b, near the answer.
    """
    start = centers
    k = views[0].basis.shape[1]
    reach = max(np.nanmax(np.linalg.norm(v.points, axis=-1)) for v in views)
    for _ in range(MOST_STEPS):
        step = _equation(T_a_b, views, centers).step
        moved = (views[0].basis @ step[:k], views[1].basis @ step[k:])
        centers = centers + np.stack(moved)
        if not np.linalg.norm(centers - start) < TOO_FAR * reach:
            centers = start
            break
        if np.linalg.norm(step) <= 1e-7 * reach:
            break
    inner = _equation(T_a_b, views, centers).covariance
    outer = np.zeros((6, 2 * k))
    outer[:3, :k], outer[3:, k:] = views[0].basis, views[1].basis
    return centers, outer @ inner @ outer.T


def _equation(T_a_b: Array, views: tuple[View, View], centers: Array) -> Equation:
    """Return what radii and gap do to (center_a, center_b), each part weighed."""
    k = views[0].basis.shape[1]
    push, slope = [], []
    for side, (view, center) in enumerate(zip(views, centers, strict=True)):
        weight = 1.0 / _variance(view, center)
        mine = slice(side * k, side * k + k)
        own = equation(view.points, center, view.basis, view.bias)
        push.append(np.zeros((*own.push.shape[:2], 2 * k)))
        push[-1][..., mine] = weight * own.push
        slope.append(np.zeros((len(own.slope), 2 * k, 2 * k)))
        slope[-1][:, mine, mine] = weight * own.slope
    gap, tie = _gap(T_a_b, views, centers)
    return Equation(
        np.concatenate([*push, gap[:, None]], axis=1),
        np.concatenate([*slope, tie[None]]),
        tied=True,
    )


def _variance(view: View, center: Array) -> float:
    error, _, radius = radial(view.points, center, view.basis)
    count = np.isfinite(view.points).all(axis=-1).sum()
    floor = ROUNDING * np.nanmax(radius) ** 2
    return float(np.sum(error**2) / max(count, 1) + floor)


def _gap(
    T_a_b: Array, views: tuple[View, View], centers: Array
) -> tuple[Float[Array, "frame both"], Float[Array, "both both"]]:
    """Return the pushes of the gap and their slope, both without their noise."""
    B_a, B_b = (view.basis for view in views)
    known = np.isfinite(T_a_b).all(axis=(1, 2))
    apart = geometry.apply(T_a_b, centers[1]) - centers[0]
    apart = np.where(known[:, None], apart, 0.0) @ B_a
    turned = np.where(known[:, None, None], B_a.T @ T_a_b[:, :3, :3] @ B_b, 0.0)
    count = max(int(known.sum()), 1)
    size = np.mean(np.sum(centers**2, axis=1))
    variance = np.sum(apart**2) / (count * B_a.shape[1]) + ROUNDING * size
    noise = [_made_up(v, c) for v, c in zip(views, centers, strict=True)]
    lean = np.concatenate(
        [known[:, None, None] * np.eye(B_a.shape[1]), -turned], axis=2
    )
    push = np.einsum("fki,fk->fi", lean, apart)
    push += known[:, None] * np.concatenate([pull for pull, _ in noise])
    tie = np.einsum("fki,fkj->ij", lean, lean, optimize=True)
    k = B_a.shape[1]
    seen = tie.copy()
    tie[:k, :k] -= count * noise[0][1]
    tie[k:, k:] -= count * noise[1][1]
    return push / variance, trusted(tie[None], seen[None])[0] / variance


def _made_up(view: View, center: Array) -> tuple[Array, Array]:
    """Return the push of one frame's noise that shortens the arm, and its slope.

    A noisy turn w moves a centre c by w x (c - anchor), and less of it for a shorter
    arm: half the slope of the mean square of that.
    """
    sides = geometry.hat(view.basis.T)
    square = np.einsum("kji,jl,klm->im", sides, view.tilt.turn, sides)
    arm = center - view.tilt.anchor
    return view.basis.T @ square @ arm, view.basis.T @ square @ view.basis
