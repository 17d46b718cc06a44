"""The joint adjustment of shape and poses: damped steps to the least cost."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from marey.calibrate._figure import Figure, Shape
from marey.calibrate._rows import Prior

Array = np.ndarray

# Damping: where it starts, how it falls and rises, and the least and greatest.
FIRST, EASED, RAISED, LEAST, MOST = 1e-7, 0.1, 30.0, 1e-13, 1e6

# Added to every diagonal, so that what nothing is known of stays.
FLOOR = 1e-9

# Steps are over when the cost falls by less than this share and joints move by less
# than this, in metres.
ENOUGH, STILL = 1e-3, 2e-4


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
    markers: tuple[tuple[Array, Array, Array], ...]
    """Per session: factor of the markers' own part, what ties them to the shared
    unknowns, and their slope."""

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
    from marey.calibrate._bundle_kernel import reduced  # numba is slow to import

    columns = figure.columns
    shared, own, n = columns.shared, columns.own, columns.count
    left, slope = prior.bent(shape)
    bent = slope[:, np.append(shared, n)]
    A, b = temper * bent.T @ bent, temper * bent.T @ left
    cost = temper * float(left @ left)
    markers, leverages = [], []
    for session, some in enumerate(poses):
        H, g = np.empty((n, n)), np.empty(n)
        leverage = np.empty(some.points.shape[:2])
        cost += data * reduced(
            figure.tree,
            shape.of(session),
            some.points,
            some.t,
            some.R,
            damping,
            H,
            g,
            leverage,
        )
        H = np.tril(H) + np.tril(H, -1).T
        known, push, miss = prior.equations(shape, session, temper)
        H, g, cost = data * H + known, data * g + push, cost + miss
        H[np.diag_indices(n)] += damping * H.diagonal() + FLOOR
        L, tie = _factor(H[np.ix_(own, own)]), H[np.ix_(own, shared)]
        A[:-1, :-1] += H[np.ix_(shared, shared)] - tie.T @ _solved(L, tie)
        b[:-1] += g[shared] - tie.T @ _solved(L, g[own])
        markers.append((L, tie, g[own]))
        leverages.append(leverage)
    A[np.diag_indices(len(A))] += FLOOR
    return Equations(A, b, tuple(markers), tuple(leverages), cost)


def _factor(A: Float[Array, "own own"]) -> Float[Array, "own own"]:
    from marey.calibrate._cholesky_kernel import factor  # numba is slow to import

    if not factor(A):
        raise np.linalg.LinAlgError("the places of markers are not determined")
    return A


def _solved(L: Float[Array, "own own"], right: Array) -> Array:
    from marey.calibrate._cholesky_kernel import solve  # numba is slow to import

    answer = right.reshape(len(right), -1).copy()
    solve(L, answer)
    return answer.reshape(right.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Adjusted:
    """Shape and poses after some steps."""

    shape: Shape
    poses: tuple[Poses, ...]
    leverage: tuple[Float[Array, "_ marker"], ...]
    damping: float
    """How cautious the last step was, to go on from there."""

    done: bool
    """Whether there was nothing left to gain."""


def adjusted(
    figure: Figure,
    shape: Shape,
    poses: tuple[Poses, ...],
    prior: Prior,
    temper: float,
    most: int,
    damping: float = FIRST,
) -> Adjusted:
    """Return shape and poses after so many damped Gauss-Newton steps.

    Levenberg-Marquardt on everything at once; a step counts only if it lowers the true
    cost.
    """
    done = False
    for _ in range(most):
        system = equations(figure, shape, poses, prior, temper, damping)
        cost = system.cost
        moved, gone, new = _step(figure, shape, poses, prior, temper, damping, system)
        while not new <= cost and damping < MOST:
            damping *= RAISED
            system = equations(figure, shape, poses, prior, temper, damping)
            moved, gone, new = _step(
                figure, shape, poses, prior, temper, damping, system
            )
        if not new <= cost:
            done = True
            break
        far = float(np.abs(moved.o - shape.o).max(initial=0.0))
        shape, poses = moved, gone
        damping = max(damping * EASED, LEAST)
        done = cost - new < ENOUGH * cost and far < STILL
        if done:
            break
    return Adjusted(shape, poses, system.leverage, damping, done)


def _step(
    figure: Figure,
    shape: Shape,
    poses: tuple[Poses, ...],
    prior: Prior,
    temper: float,
    damping: float,
    system: Equations,
) -> tuple[Shape, tuple[Poses, ...], float]:
    from marey.calibrate._bundle_kernel import followed  # numba is slow to import

    columns = figure.columns
    step = np.linalg.solve(system.A, system.b)
    steps = np.zeros((len(poses), columns.count))
    for session, (L, tie, slope) in enumerate(system.markers):
        steps[session, columns.shared] = step[:-1]
        steps[session, columns.own] = _solved(L, slope - tie @ step[:-1])
    moved = shape.moved(columns, steps, float(step[-1]))
    gone = []
    for session, some in enumerate(poses):
        t, R = np.empty_like(some.t), np.empty_like(some.R)
        followed(
            figure.tree,
            shape.of(session),
            some.points,
            some.t,
            some.R,
            damping,
            steps[session],
            t,
            R,
        )
        gone.append(replace(some, t=t, R=R))
    return moved, tuple(gone), cost_of(figure, moved, tuple(gone), prior, temper)


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
    from marey.calibrate._pose_kernel import costs  # numba is slow to import

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
    from marey.calibrate._pose_kernel import settled as settle  # numba is slow

    out = []
    for session, some in enumerate(poses):
        t, R = some.t.copy(), some.R.copy()
        settle(figure.tree, shape.of(session), some.points, t, R, most, enough)
        out.append(replace(some, t=t, R=R))
    return tuple(out)
