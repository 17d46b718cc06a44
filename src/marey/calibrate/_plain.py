"""The start of figures without landmarks: mechanisms, animals, unlabelled people."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from marey import geometry
from marey.calibrate._figure import HINGE, Axis, Figure, Shape
from marey.calibrate._rows import GAUGE_SD, Rows, spans
from marey.calibrate._start import Start, likeness_rows
from marey.rigid import fit_rigid

Array = np.ndarray

LEAST_NOISE = 1e-5
"""No camera sees better than this, in metres."""

HARD_HINGE = 0.005
"""How far a hinge of a mechanism keeps from its axis at least, in radians."""

STRAIGHT = 0.02
"""Turns that leave an axis by no more than this (rms, in radians) are a hinge's."""

SWUNG = 4.0
"""A hinge turns about its axis by so many times what it leaves it."""

STARTED = 0.1
"""How well the start knows a joint, as a share of the figure's size."""

GUESSED = 0.050
"""How well a person's joint is known from motion alone, in metres."""

KEPT, KEPT_AXIS = 1e-6, 1e-3
"""How well known bones, in metres, and axes, in radians, are kept."""

RESEATED = 0.050
"""How far a marker sits from where it was when it was put on before, in metres."""

GIRDLE = ("LeftShoulder", "RightShoulder")
GIRDLE_SD = 0.015
"""How well it is known where the shoulder girdle hangs on the chest, in metres."""

FREE_AXIS = 1.0
"""How well the axis of a hinge is known beforehand, in radians."""


def plain_start(
    figure: Figure,
    shape: Shape,
    *,
    person: bool,
    still: frozenset[int] = frozenset(),
) -> Start:
    """Return a figure as it came, with hardly anything known of it.

    What frames leave open stays as it was; but along a hinge a joint stands where it
    is nearest to the joint before, so that its bone is as long as the axes are apart.
    A person's bones are taken for like on both sides, and of usual proportions.

    Args:
        figure: The segments.
        shape: Their first shape.
        person: Whether it is one.
        still: Segments that did not turn against their parents: their joints stay.
    """
    rows = Rows(figure)
    m = shape.m[0]
    size = size_of(figure, shape)
    rows.hold_axes(m)
    for k in range(len(m)):
        rows.marker_at(k, m[k], size)
    for i in range(1, len(figure.names)):
        sd = GUESSED if person else STARTED * size
        rows.joint_at(i, shape.o[i], KEPT if i in still else sd, firm=i in still)
    if person:
        likeness_rows(rows, figure, mirrored=False)
    unknown = {i: size**2 * np.eye(3) for i in still}
    for n, axis in enumerate(figure.axes):
        a = shape.a[n]
        unknown[axis.child] = size**2 * np.outer(a, a)
        rows.axis_along(n, a, shape.b[n], FREE_AXIS)
        column = int(figure.columns.o[axis.child])
        parts = [(column + x, float(a[x])) for x in range(3)]
        rows.add(parts, 0.0, GAUGE_SD, firm=True)
    return Start(figure, shape, rows, np.arange(len(m)), LEAST_NOISE, unknown=unknown)


def kept_start(figure: Figure, shape: Shape) -> Start:
    """Return a figure whose bones are known, and only its markers are not.

    Where the shoulder blades hang on the chest is no bone's length, and a calm take
    hardly tells it: it may move a little.
    """
    rows = Rows(figure)
    m = shape.m[0]
    for k in range(len(m)):
        rows.marker_at(k, m[k], RESEATED)
    for i, name in enumerate(figure.names):
        if name in GIRDLE:
            rows.joint_at(i, shape.o[i], GIRDLE_SD)
        elif i > 0:
            rows.joint_at(i, shape.o[i], KEPT, firm=True)
    for n in range(len(figure.axes)):
        rows.axis_along(n, shape.a[n], shape.b[n], KEPT_AXIS)
    return Start(figure, shape, rows, np.arange(len(m)), LEAST_NOISE)


def size_of(figure: Figure, shape: Shape) -> float:
    """Return how large a figure is: how far its markers are from their middle, rms."""
    rest = np.zeros((len(figure.names), 3))
    for i in range(1, len(rest)):
        rest[i] = rest[figure.parent[i]] + shape.o[i]
    at = rest[figure.segment] + shape.m[0]
    spread = at - at.mean(axis=0)
    return float(np.sqrt(np.mean(np.sum(spread**2, axis=1)))) + 1e-3


def with_hinges(
    figure: Figure, shape: Shape, points: Float[Array, "frame marker 3"]
) -> tuple[Figure, Shape, frozenset[int]]:
    """Return the figure with a hinge wherever two segments turned about one axis only.

    Along such an axis the frames tell nothing of the joint but their own errors; and
    nothing at all where two segments did not turn against each other: those come too.

    Args:
        figure: The segments, with the hinges that are known.
        shape: Their shape.
        points: Frames of one session.
    """
    turns = _turns(figure, shape, points)
    known = {axis.child: n for n, axis in enumerate(figure.axes)}
    axes, a, b, still = [], [], [], set()
    for i in range(1, len(figure.names)):
        p = int(figure.parent[i])
        if i in turns and p in turns:
            first, second, off, swing = _one_axis(turns[p], turns[i])
            if swing < STRAIGHT and i not in known:
                still.add(i)
            elif off < STRAIGHT and swing > SWUNG * off and i not in known:
                axes.append(Axis(i, HINGE, max(off, HARD_HINGE)))
                a.append(first)
                b.append(second)
        if i in known:
            n = known[i]
            axes.append(figure.axes[n])
            a.append(shape.a[n])
            b.append(shape.b[n])
    hinged = replace(figure, axes=tuple(axes))
    bent = replace(shape, a=np.array(a).reshape(-1, 3), b=np.array(b).reshape(-1, 3))
    return hinged, bent, frozenset(still)


def _turns(figure: Figure, shape: Shape, points: Array) -> dict[int, Array]:
    """Return the rotations of all segments whose markers tell them, frame by frame."""
    found = {}
    for i in range(len(figure.names)):
        mine = list(figure.markers_of(i))
        if not spans(shape.m[0, mine]):
            continue
        rigid = fit_rigid(points[:, mine])
        T = geometry.kabsch(shape.m[0, mine], rigid.offset)
        R = rigid.T_world_body[:, :3, :3] @ T[:3, :3]
        if np.isfinite(R).all(axis=(1, 2)).any():
            found[i] = R
    return found


def _one_axis(P: Array, Q: Array) -> tuple[Array, Array, float, float]:
    """Return the axis that two rotations share best, in each of them.

    And how far they leave it and turn about it, rms in radians.
    """
    both = np.isfinite(P).all(axis=(1, 2)) & np.isfinite(Q).all(axis=(1, 2))
    if not both.any():
        return np.zeros(3), np.zeros(3), np.inf, np.inf
    M = np.einsum("fji,fjk->ik", Q[both], P[both]) / both.sum()
    U, s, Vt = np.linalg.svd(M)
    a, b = Vt[0], U[:, 0]
    off = float(np.sqrt(2.0 * max(1.0 - s[0], 0.0)))
    swing = float(np.sqrt(2.0 * max(1.0 - abs(s[1]), 0.0)))
    return a, b, off, swing
