"""The joint adjustment of shape and poses: damped steps to the least cost."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from marey.calibration.parallel import side_by_side
from marey.calibration.priors import Prior
from marey.calibration.unknowns import Figure, Shape

Array = np.ndarray

# Damping: where it starts, how it falls and rises, and the least and greatest. Below
# what is felt a step that fails would fail again.
FIRST, EASED, RAISED, LEAST, MOST = 1e-7, 0.1, 30.0, 1e-13, 1e6
FELT = 1e-4

# Added to every diagonal, so that what nothing is known of stays.
FLOOR = 1e-9

# Steps are over when the cost falls by less than this, where one is a standard
# deviation, or when no bone grows by more than this, in metres.
ENOUGH, STILL = 0.02, 1e-5

# Steps of every pose after one of the shape: turns are not linear, and what is not yet
# settled would hide what the shape has gained.
SETTLING = 3


@dataclass(frozen=True, slots=True, eq=False)
class Poses:
    """The chosen frames of one session, and the figure's pose in them."""

    points: Float[Array, "frame marker 3"]
    """Markers in the order of the figure, in metres; NaN where unseen."""

    t: Float[Array, "frame 3"]
    """The root's place."""

    R: Float[Array, "frame segment 3 3"]
    """Rotation of every segment in the world."""


@dataclass(frozen=True, slots=True, eq=False)
class Equations:
    """Normal equations of the shared unknowns, poses and markers eliminated."""

    A: Float[Array, "shared shared"]
    b: Float[Array, " shared"]
    markers: tuple[tuple[Array, Array], ...]
    """Per session, its equations with the markers eliminated, which come first."""

    leverage: tuple[Float[Array, "_ marker"], ...]
    cost: float


def equations(
    figure: Figure,
    shape: Shape,
    poses: tuple[Poses, ...],
    prior: Prior,
    temper: float,
    damping: float,
    data: float = 1.0,
) -> Equations:
    """Return the equations of joints, axes and stature at one shape.

    Args:
        figure: The segments.
        shape: Their shape.
        poses: Frames of all sessions.
        prior: What is known beforehand.
        temper: How much the prior counts.
        damping: Share of every diagonal added to it.
        data: How much the frames count.
    """
    from marey.calibration.solver.cholesky_kernel import (
        eliminate,  # numba is slow to import
    )

    shared, own, n = figure.columns.shared, figure.columns.own, figure.columns.count
    order = np.concatenate([own, shared])
    left, slope = prior.bent(shape)
    bent = slope[:, np.append(shared, n)]
    A, b = temper * bent.T @ bent, temper * bent.T @ left
    cost = temper * float(left @ left)
    markers, leverages = [], []
    for session, seen in enumerate(_reduced(figure, shape, poses, damping)):
        known, push, miss = prior.equations(shape, session, temper)
        H, g, cost = data * seen.H + known, data * seen.g + push, cost + miss
        cost += data * seen.cost
        H[np.diag_indices(n)] += damping * H.diagonal() + FLOOR
        H, g = H[np.ix_(order, order)], g[order]
        if not eliminate(H, g, len(own)):
            raise np.linalg.LinAlgError("the places of markers are not determined")
        A[:-1, :-1] += H[len(own) :, len(own) :]
        b[:-1] += g[len(own) :]
        markers.append((H, g))
        leverages.append(seen.leverage)
    A[np.diag_indices(len(A))] += FLOOR
    return Equations(A, b, tuple(markers), tuple(leverages), cost)


class _Seen(NamedTuple):
    """What the frames of one session tell of its unknowns, poses eliminated."""

    H: Float[Array, "column column"]
    g: Float[Array, " column"]
    leverage: Float[Array, "frame marker"]
    cost: float


def _reduced(
    figure: Figure, shape: Shape, poses: tuple[Poses, ...], damping: float
) -> tuple[_Seen, ...]:
    from marey.calibration.solver.schur_kernel import reduced  # numba is slow to import

    def of(session: int) -> _Seen:
        some, n = poses[session], figure.columns.count
        H, g, leverage = np.empty((n, n)), np.empty(n), np.empty(some.points.shape[:2])
        mine = shape.of(session), some.points, some.t, some.R
        return _Seen(
            H, g, leverage, reduced(figure.tree, *mine, damping, H, g, leverage)
        )

    return side_by_side(of, range(len(poses)))


@dataclass(frozen=True, slots=True, eq=False)
class Adjusted:
    """Shape and poses after a step."""

    shape: Shape
    poses: tuple[Poses, ...]
    leverage: tuple[Float[Array, "_ marker"], ...]
    damping: float
    """How cautious the next step should be."""

    done: bool
    """Whether there is nothing left to gain."""


def adjusted(
    figure: Figure,
    shape: Shape,
    poses: tuple[Poses, ...],
    prior: Prior,
    temper: float,
    damping: float,
) -> Adjusted:
    """Return shape and poses after a damped Gauss-Newton step.

    Levenberg-Marquardt on everything at once; a step counts only if it lowers the true
    cost.
    """
    while True:
        system = equations(figure, shape, poses, prior, temper, damping)
        moved, gone, cost = _step(figure, shape, poses, prior, temper, damping, system)
        if cost <= system.cost:
            break
        if damping >= MOST:
            return Adjusted(shape, poses, system.leverage, damping, done=True)
        damping = max(damping * RAISED, FELT)
    grown = np.linalg.norm(moved.o, axis=1) - np.linalg.norm(shape.o, axis=1)
    fall = system.cost - cost
    done = fall < ENOUGH * temper or bool(np.abs(grown).max() < STILL)
    easier = max(damping * EASED, LEAST)
    return Adjusted(moved, gone, system.leverage, easier, done)


def _step(
    figure: Figure,
    shape: Shape,
    poses: tuple[Poses, ...],
    prior: Prior,
    temper: float,
    damping: float,
    system: Equations,
) -> tuple[Shape, tuple[Poses, ...], float]:
    from marey.calibration.solver.cholesky_kernel import restore
    from marey.calibration.solver.schur_kernel import (
        followed,  # numba is slow to import
    )

    columns = figure.columns
    step = np.linalg.solve(system.A, system.b)
    steps = np.zeros((len(poses), columns.count))
    for session, (H, g) in enumerate(system.markers):
        steps[session, columns.shared] = step[:-1]
        steps[session, columns.own] = restore(H, g, step[:-1], len(columns.own))
    moved = shape.moved(columns, steps, float(step[-1]))

    def follow(session: int) -> Poses:
        some = poses[session]
        t, R = np.empty_like(some.t), np.empty_like(some.R)
        mine = shape.of(session), some.points, some.t, some.R
        followed(figure.tree, *mine, damping, steps[session], t, R)
        return replace(some, t=t, R=R)

    gone = side_by_side(follow, range(len(poses)))
    gone = settled(figure, moved, gone, SETTLING)
    return moved, gone, cost_of(figure, moved, gone, prior, temper)


def cost_of(
    figure: Figure,
    shape: Shape,
    poses: tuple[Poses, ...],
    prior: Prior,
    temper: float,
) -> float:
    """Return the cost of frames and prior together."""
    total = prior.cost(shape, temper)
    for session in range(len(poses)):
        total += rests(figure, shape, poses, session)[2]
    return total


def rests(
    figure: Figure, shape: Shape, poses: tuple[Poses, ...], session: int
) -> tuple[Float[Array, "frame marker 3"], Float[Array, "frame marker"], float]:
    """Return what is left of every marker in metres, its weight, and the cost."""
    from marey.calibration.solver.pose_kernel import costs  # numba is slow to import

    some = poses[session]
    rest, weight = np.empty_like(some.points), np.empty(some.points.shape[:2])
    cost = costs(
        figure.tree, shape.of(session), some.points, some.t, some.R, rest, weight
    )
    return rest, weight, float(cost)


def settled(
    figure: Figure,
    shape: Shape,
    poses: tuple[Poses, ...],
    most: int = 30,
    enough: float = 1e-4,
) -> tuple[Poses, ...]:
    """Return the poses of least cost of a given shape."""
    from marey.calibration.solver.pose_kernel import settled as settle  # numba is slow

    def calm(session: int) -> Poses:
        some = poses[session]
        t, R = some.t.copy(), some.R.copy()
        settle(figure.tree, shape.of(session), some.points, t, R, most, enough)
        return replace(some, t=t, R=R)

    return side_by_side(calm, range(len(poses)))
