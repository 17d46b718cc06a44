"""The start of figures without landmarks: mechanisms, animals, unlabelled people."""

import numpy as np

from marey.calibration.init.landmarks import Start, likeness_rows
from marey.calibration.priors import GAUGE_SD, Rows
from marey.calibration.unknowns import Figure, Shape

LEAST_NOISE = 1e-5
"""No camera sees better than this, in metres."""

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
