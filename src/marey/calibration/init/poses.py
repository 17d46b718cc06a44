"""Which frames are used, and the figure's first pose in them."""

import numpy as np
from jaxtyping import Float, Int

from marey.calibration.solver.levenberg_marquardt import Poses
from marey.calibration.unknowns import Figure, Shape
from marey.numerics import geometry
from marey.numerics.procrustes import points_seen

Array = np.ndarray

WELL_SEEN = 0.5
"""Of the most markers ever seen at once: what a frame must show."""

JOINT, MEMORY = 3.0, 0.05
"""Weight of a segment's own joint, and of its parent's axes, beside its markers."""

REACH = 0.3
"""How long the parent's axes are, as a share of the segment's size."""


def chosen_frames(
    points: Float[Array, "frame marker 3"], most: int
) -> Int[Array, " chosen"]:
    """Return up to so many frames, evenly in time, of those that are well seen."""
    count = points_seen(points).sum(axis=1)
    good = np.flatnonzero(count >= max(WELL_SEEN * count.max(initial=0), 1))
    if len(good) <= most:
        return good
    return np.asarray(good[np.linspace(0, len(good) - 1, most).round().astype(int)])


def first_poses(
    figure: Figure, shape: Shape, session: int, points: Float[Array, "frame marker 3"]
) -> Poses:
    """Return a pose for every frame, segment after segment from the root.

    Each takes the rigid turn that suits its markers, its joint, and a little its
    parent's axes, so that even a single marker gives a turn.
    """
    n = len(figure.names)
    m = shape.m[session]
    T_root = _root_poses(figure, shape, m, points)
    c = np.empty((len(points), n, 3))
    R = np.empty((len(points), n, 3, 3))
    c[:, 0], R[:, 0] = T_root[:, :3, 3], T_root[:, :3, :3]
    for i in range(1, n):
        p = int(figure.parent[i])
        c[:, i] = c[:, p] + R[:, p] @ shape.o[i]
        mine = list(figure.markers_of(i))
        size = np.sqrt(np.sum(m[mine] ** 2) / max(len(mine), 1)) + 1e-3
        axes = REACH * size * np.eye(3)
        local = np.concatenate([m[mine], np.zeros((1, 3)), axes])
        world = np.concatenate(
            [
                points[:, mine],
                c[:, i, None],
                c[:, i, None] + np.einsum("fij,kj->fki", R[:, p], axes),
            ],
            axis=1,
        )
        weight = np.array([*[1.0] * len(mine), JOINT, MEMORY, MEMORY, MEMORY])
        T = geometry.kabsch(local, world, weight)
        known = np.isfinite(T).all(axis=(1, 2))
        R[:, i] = np.where(known[:, None, None], T[:, :3, :3], R[:, p])
    return Poses(points, c[:, 0].copy(), R)


def _root_poses(
    figure: Figure, shape: Shape, m: Array, points: Array
) -> Float[Array, "frame 4 4"]:
    """Return the root's pose by its markers; by all of them where these are too few."""
    mine = list(figure.markers_of(0))
    T = np.full((len(points), 4, 4), np.nan)
    if len(mine) >= 3:
        T = geometry.kabsch(m[mine], points[:, mine])
    lost = ~np.isfinite(T).all(axis=(1, 2))
    if lost.any():
        rest = np.zeros((len(figure.names), 3))
        for i in range(1, len(rest)):
            rest[i] = rest[figure.parent[i]] + shape.o[i]
        T[lost] = geometry.kabsch(rest[figure.segment] + m, points[lost])
    return _filled(T, points)


def _filled(T: Array, points: Array) -> Array:
    """Return poses without gaps: unknown ones are those of the nearest frame."""
    known = np.flatnonzero(np.isfinite(T).all(axis=(1, 2)))
    if len(known):
        frames = np.arange(len(T))
        nearest = known[np.abs(frames[:, None] - known).argmin(axis=1)]
        return np.asarray(T[nearest])
    seen = np.isfinite(points).all(axis=-1)
    total = np.where(seen[..., None], points, 0.0).sum(axis=1)
    middle = total / np.maximum(seen.sum(axis=1), 1)[:, None]
    return geometry.transform(np.eye(3), middle)
