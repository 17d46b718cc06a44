"""What sessions tell of joints: turns about one axis only, or none, or all ways."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from marey.calibration.priors import spans
from marey.calibration.unknowns import HINGE, Axis, Figure, Shape
from marey.numerics import geometry
from marey.numerics.procrustes import fit_rigid

Array = np.ndarray

HARD_HINGE = 0.005
"""How far a hinge of a mechanism keeps from its axis at least, in radians."""

STRAIGHT = 0.02
"""Turns that leave an axis by no more than this (rms, in radians) are a hinge's."""

SWUNG = 4.0
"""A hinge turns about its axis by so many times what it leaves it."""

PUT_ON = 3.0
"""Markers that were put on anew turn a segment's axes by up to so many times their
shifts, told as shares of the segment's size."""


def with_hinges(
    figure: Figure, shape: Shape, sessions: Sequence[Float[Array, "_ marker 3"]]
) -> tuple[Figure, Shape, frozenset[int]]:
    """Return the figure with a hinge wherever two segments turned about one axis only.

    Along such an axis the frames tell nothing of the joint but their own errors; and
    nothing at all where two segments did not turn against each other: those come too.
    One session in which a joint turned is enough to know it by, and one that left the
    axis is enough for a ball, whatever the others show.

    Args:
        figure: The segments, with the hinges that are known.
        shape: Their shape, with the markers of all sessions where they are taken to be.
        sessions: Frames of every session.
    """
    turns = _turns(figure, shape, sessions)
    known = {axis.child: n for n, axis in enumerate(figure.axes)}
    axes, a, b, still = [], [], [], set()
    for i in range(1, len(figure.names)):
        p = int(figure.parent[i])
        if i in known:
            n = known[i]
            axes.append(figure.axes[n])
            a.append(shape.a[n])
            b.append(shape.b[n])
        elif i in turns and p in turns:
            bend = _bend(turns[p], turns[i])
            if bend.swing < STRAIGHT:
                still.add(i)
            elif bend.about_one_axis:
                axes.append(Axis(i, HINGE, max(bend.off, HARD_HINGE)))
                a.append(bend.a)
                b.append(bend.b)
    hinged = replace(figure, axes=tuple(axes))
    bent = replace(shape, a=np.array(a).reshape(-1, 3), b=np.array(b).reshape(-1, 3))
    return hinged, bent, frozenset(still)


def most_telling_first(
    figure: Figure, shape: Shape, sessions: Sequence[Float[Array, "_ marker 3"]]
) -> Int[Array, " session"]:
    """Return the sessions by number, those that tell most of the joints first.

    The first one's markers carry the axes of the segments: a joint that does not turn
    while they are seen can be anywhere in them. What a session tells of a joint is the
    determinant of the information on its centre in both segments, rotations alone.
    """
    if len(sessions) == 1:
        return np.zeros(1, dtype=np.int64)
    turns = _turns(figure, shape, sessions)
    told = np.zeros(len(sessions))
    for i in range(1, len(figure.names)):
        p = int(figure.parent[i])
        if i in turns and p in turns:
            M, count = _means(turns[p], turns[i])
            s = np.linalg.svd(M, compute_uv=False)
            free = np.maximum(1.0 - s**2, 0.0) + STRAIGHT**2
            told += np.log((1 + count)[:, None] * free).sum(axis=1)
    return np.argsort(-told, kind="stable")


@dataclass(frozen=True, slots=True, eq=False)
class _Turns:
    """How a segment turned."""

    R: tuple[Float[Array, "_ 3 3"], ...]
    """Its rotations in the frames of each session; NaN where it was not seen."""

    doubt: float
    """How far its axes may differ between sessions, in radians."""


def _turns(
    figure: Figure, shape: Shape, sessions: Sequence[Array]
) -> dict[int, _Turns]:
    """Return the turns of all segments whose markers tell them."""
    found = {}
    for i in range(len(figure.names)):
        mine = list(figure.markers_of(i))
        places = shape.m[0, mine]
        if not spans(places):
            continue
        R, seated = [], []
        for points in sessions:
            rigid = fit_rigid(points[:, mine])
            T = geometry.kabsch(places, rigid.offset)
            R.append(rigid.T_world_body[:, :3, :3] @ T[:3, :3])
            seated.append(geometry.apply(geometry.inverse(T), rigid.offset))
        found[i] = _Turns(tuple(R), PUT_ON * _moved(np.array(seated)))
    return found


def _moved(seated: Float[Array, "session marker 3"]) -> float:
    """Return how far markers sit from where they sit on average, as a share of size."""
    seen = np.isfinite(seated).all(axis=-1, keepdims=True)
    count = np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen, seated, 0.0).sum(axis=0) / count
    shift = np.where(seen, seated - mean, 0.0)
    size = float(np.sum((mean - mean.mean(axis=0)) ** 2)) / len(mean)
    total = float(np.sum(shift**2)) / max(int(seen.sum()), 1)
    return float(np.sqrt(total / size)) if size > 0.0 else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class _Bend:
    """How two segments turned against each other."""

    a: Float[Array, "3"]
    """The axis that suits all sessions best, in the first segment."""

    b: Float[Array, "3"]
    """The same in the second."""

    off: float
    """How far they left the best axis of a session, rms in radians; the most of all
    sessions, like `swing`."""

    swing: float
    """How far they turned about it."""

    apart: float
    """How far a session leaves the axis of all, beyond what the axes of the segments
    may differ, rms in radians."""

    @property
    def about_one_axis(self) -> bool:
        straight = max(self.off, self.apart) < STRAIGHT
        return straight and self.swing > SWUNG * self.off


def _means(
    above: _Turns, own: _Turns
) -> tuple[Float[Array, "session 3 3"], Int[Array, " session"]]:
    """Return the mean turn of one segment as seen from another, and of how many frames.

    The unit matrix, and none, for sessions that never show both.
    """
    M, count = [], []
    for P, Q in zip(above.R, own.R, strict=True):
        both = np.isfinite(P).all(axis=(1, 2)) & np.isfinite(Q).all(axis=(1, 2))
        total = np.einsum("fji,fjk->ik", Q[both], P[both])
        count.append(int(both.sum()))
        M.append(total / count[-1] if count[-1] else np.eye(3))
    return np.array(M), np.array(count)


def _bend(above: _Turns, own: _Turns) -> _Bend:
    """Return how a segment turned against the one above it, in all sessions."""
    M, count = _means(above, own)
    if not count.any():
        return _Bend(np.zeros(3), np.zeros(3), np.inf, np.inf, np.inf)
    M, count = M[count > 0], count[count > 0]
    U, _, Vt = np.linalg.svd(np.einsum("s,sij->ij", count, M))
    a, b = Vt[0], U[:, 0]
    s = np.linalg.svd(M, compute_uv=False)
    return _Bend(
        a,
        b,
        off=_angle(s[:, 0]),
        swing=_angle(s[:, 1]),
        apart=_angle(np.einsum("i,sij,j->s", b, M, a)) - above.doubt - own.doubt,
    )


def _angle(cosine: Float[Array, " session"]) -> float:
    """Return the largest angle by mean cosines, rms in radians."""
    return float(np.sqrt(2.0 * max(1.0 - cosine.min(), 0.0)))
