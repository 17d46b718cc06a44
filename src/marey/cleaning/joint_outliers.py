"""Sensors away from their joints for a moment, by less than their own motion tells."""

import numpy as np
from jaxtyping import Bool, Float

from marey.bodies import Bodies
from marey.cleaning.outliers import CleanOptions, Outlier
from marey.cleaning.runs import FEWEST, allowed_of, excursions, suddenness
from marey.joint_fits import JointFits
from marey.numerics import geometry
from marey.numerics.robust import runs
from marey.tree import Tree

Array = np.ndarray

# Changes of a gap this many times the usual change of the moment are jumps. Of white
# noise the median change is two standard deviations.
TIMES = 5.0

# Sensors that may be in error in one frame, one after the other.
ROUNDS = 3

# Changes of a gap below this, in metres, harm nothing.
HARMLESS = 1e-3

# Share of a sensor's frames that may be odd; where more are, that is how it moves.
MOST = 0.2


def find_gaping(
    bodies: Bodies,
    joints: JointFits,
    tree: Tree,
    options: CleanOptions | None = None,
) -> tuple[Outlier, ...]:
    """Return the frames in which a sensor jumps away from its joints and back.

    A joint that gapes accuses both its sensors. Blamed is the one whose being elsewhere
    explains most of the gaps around it; two bodies alone accuse each other, so neither
    is blamed.

    Args:
        bodies: The moving bodies.
        joints: Their joints.
        tree: Which of the joints are real.
        options: What counts as an error; only `longest` is used.
    """
    rows = tree.edge[tree.edge >= 0]
    rate = bodies.take.rate
    longest = int((options or CleanOptions()).longest * rate)
    ends = np.zeros((len(rows), len(bodies.names)))
    gaps = np.empty((len(rows), len(bodies.T_world_body), 3))
    for k, row in enumerate(rows.tolist()):
        ends[k, joints.pair[row]] = 1.0, -1.0
        gaps[k] = _gap(bodies, joints, row)
    gapes = np.zeros(gaps.shape[:2], dtype=bool)
    degree = np.abs(ends).sum(axis=0)
    for k in np.flatnonzero(np.abs(ends) @ degree > 2).tolist():
        gapes[k] = _opened(gaps[k], rate, longest)
    if not gapes.any():
        return ()
    found = []
    for body, bad in enumerate(_blamed(gapes, *_sudden(gaps, longest), ends).T):
        if 0 < bad.sum() <= MOST * len(bad):
            mine = np.linalg.norm(gaps[ends[:, body] != 0.0], axis=2)
            for first, last in runs(bad):
                size = float(np.nanmax(mine[:, first : last + 1]))
                found.append(Outlier(bodies.names[body], "gap", first, last, size))
    return tuple(found)


def _gap(bodies: Bodies, joints: JointFits, row: int) -> Float[Array, "frame 3"]:
    """Return the gap of one joint in the world."""
    A, B = (bodies.T_world_body[:, body] for body in joints.pair[row])
    other = geometry.apply(B, joints.center_b[row])
    return np.asarray(geometry.apply(A, joints.center_a[row]) - other)


def _sudden(
    gaps: Float[Array, "joint frame 3"], longest: int
) -> tuple[Float[Array, "joint frame 3"], Float[Array, " joint"]]:
    """Return gaps without what they are for long, and what is usual of each joint."""
    from scipy.ndimage import median_filter

    slow = median_filter(np.nan_to_num(gaps), size=(1, 2 * longest + 1, 1))
    sudden = np.asarray(gaps - slow)
    size = np.linalg.norm(sudden, axis=2)
    each = [row[np.isfinite(row)] for row in size]
    usual = [float(np.median(row)) if len(row) else 0.0 for row in each]
    return sudden, np.maximum(np.array(usual), HARMLESS)


def _opened(
    gap: Float[Array, "frame 3"], rate: float, longest: int
) -> Bool[Array, " frame"]:
    """Return the frames in which a joint gapes."""
    frames = np.flatnonzero(np.isfinite(gap).all(axis=1))
    opened = np.zeros(len(gap), dtype=bool)
    if len(frames) < FEWEST:
        return opened
    values = gap[frames]

    def apart(some: slice, others: slice) -> Float[Array, "1 pair"]:
        return np.asarray(np.linalg.norm(values[others] - values[some], axis=1)[None])

    sudden = suddenness(np.diff(values, axis=0))[None]
    allowed = allowed_of(sudden, TIMES, np.array([[HARMLESS]]), rate)
    for first, last in excursions(apart, frames, sudden, allowed, longest):
        opened[frames[first : last + 1]] = True
    return opened


def _blamed(
    gapes: Bool[Array, "joint frame"],
    sudden: Float[Array, "joint frame 3"],
    scale: Float[Array, " joint"],
    ends: Float[Array, "joint body"],
) -> Bool[Array, "frame body"]:
    """Return the sensor to blame for each open joint, the one that explains most.

    A sensor that is elsewhere by d opens each of its joints by d, or by -d where it is
    the second of the pair; d is fitted to all of them.
    """
    blamed = np.zeros((gapes.shape[1], ends.shape[1]), dtype=bool)
    frames = np.flatnonzero(gapes.any(axis=0))
    wide, gap = gapes[:, frames], sudden[:, frames].copy()
    seen = np.isfinite(gap).all(axis=2)
    gap[~seen] = 0.0
    weight = seen / scale[:, None] ** 2
    total = weight.T @ np.abs(ends) + 1e-300
    for _ in range(ROUNDS):
        away = np.einsum("jf,jfi,jb->fbi", weight, gap, ends) / total[..., None]
        score = total * np.sum(away**2, axis=2)
        score[~(wide.T @ np.abs(ends)).astype(bool)] = 0.0
        body = score.argmax(axis=1)
        blamed[frames, body] |= wide.any(axis=0)
        moved = away[np.arange(len(frames)), body]
        gap -= ends[:, body, None] * moved * seen[..., None]
        wide = wide & (ends[:, body] == 0.0)
    return blamed
