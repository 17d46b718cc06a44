"""Poses drawn towards smooth paths over the whole take."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from scipy.linalg import solveh_banded

from marey.numerics import geometry

if TYPE_CHECKING:
    from marey.articulated.kinematics_kernel import Tree, Work
    from marey.articulated.targets_kernel import Targets
    from marey.pose.gauss_newton.track_kernel import Habits

Array = np.ndarray

ROUNDS = 12
"""Turns of frames and paths."""

# How firmly frames and paths hold to each other while they settle, as a multiple of
# what a frame knows; it changes how soon they agree, not on what.
FIRM = 3.0

# The root's place accelerates as the end of a lever of this length, in metres.
LEVER = 0.5

# Share of the usual information below which a frame says nothing about a joint.
NOTHING = 1e-3


def smoothed(
    tree: "Tree",
    targets: "Targets",
    work: "Work",
    points: Float[Array, "frame marker 3"],
    sensors: Float[Array, "frame sensor 4 4"],
    habits: "Habits",
    state: tuple[Array, ...],
    info: Float[Array, "frame number"],
    known: Float[Array, "frame item"],
    q: Float[Array, "frame node 4"],
    root: Float[Array, "frame 3"],
    step: float,
) -> tuple[Float[Array, "frame node 4"], Float[Array, "frame 3"]]:
    """Return the poses of least cost when joints accelerate little.

    The cost of all frames together is that of the targets plus the squared angular
    accelerations over their variance, plus the steps from frame to frame over theirs,
    which keep an unseen joint from gliding on; its unknowns would couple all joints of
    three frames. The two parts are split instead and solved in turn (alternating
    direction method of multipliers): frames one by one, each drawn to where its joints'
    paths pass; paths joint by joint, each a banded system over the frames. Paths are
    smooth in the components of quaternions; their curvature across the unit sphere
    does not matter after they are brought back to it.

    Args:
        tree: The nodes.
        targets: What is seen of them.
        work: Scratch.
        points: Markers of the take, in metres.
        sensors: Sensors of the take.
        habits: As for following the figure.
        state: Where the figure stands; scratch here.
        info: Numbers of every frame, renewed.
        known: What each frame knows of the root's place (1 / m^2), then of every
            node (1 / rad^2).
        q: Rotations to start from, sign-continuous.
        root: Places of the root to start from.
        step: Standard deviation of the second difference of angles, in radians.
    """
    from marey.pose.gauss_newton.track_kernel import track  # numba is slow to import

    usual = np.array([_usual(column) for column in known.T])
    trust = np.where(known > NOTHING * usual, usual, 0.0)
    stiff = np.full(len(usual), 1.0 / step**2)
    stiff[0] /= LEVER**2
    strict = habits._replace(prior=usual, guided=True)
    q, root = q.copy(), root.copy()
    away, away_root = np.zeros_like(q), np.zeros_like(root)
    for _ in range(ROUNDS):
        pulled = [root + away_root, *np.moveaxis(q + away, 1, 0)]
        path_root, *rest = (
            _path(values, trust[:, b], float(stiff[b]), float(habits.prior[b]))
            for b, values in enumerate(pulled)
        )
        path = np.stack(rest, axis=1)
        path /= np.linalg.norm(path, axis=-1, keepdims=True)
        away = np.where(trust[:, 1:, None] > 0.0, away + q - path, 0.0)
        away_root = np.where(trust[:, :1] > 0.0, away_root + root - path_root, 0.0)
        drawn = path - away
        drawn /= np.linalg.norm(drawn, axis=-1, keepdims=True)
        track(
            tree,
            targets,
            work,
            points,
            sensors,
            np.arange(len(q)),
            state,
            strict,
            (path_root - away_root, drawn),
            q,
            root,
            info,
        )
        q = geometry.quat_continuous(q)
    return q, root


def _usual(known: Float[Array, " frame"]) -> float:
    """Return what frames that know anything usually know, made firm."""
    some = known[known > 0.0]
    return FIRM * float(np.median(some)) if len(some) else 1.0


def _path(
    values: Float[Array, "frame component"],
    trust: Float[Array, " frame"],
    stiff: float,
    tension: float,
) -> Float[Array, "frame component"]:
    """Return the path of least distance, acceleration and length: five bands."""
    n = len(values)
    if n < 3 or not trust.any():
        return values
    bands = np.zeros((3, n))
    bands[0] = trust
    bands[0, 1:] += tension
    bands[0, :-1] += tension
    bands[1, :-1] -= tension
    for place, factor in ((0, 1.0), (1, 4.0), (2, 1.0)):
        bands[0, place : n - 2 + place] += factor * stiff
    bands[1, : n - 2] -= 2.0 * stiff
    bands[1, 1 : n - 1] -= 2.0 * stiff
    bands[2, : n - 2] += stiff
    return np.asarray(
        solveh_banded(bands, trust[:, None] * values, lower=True, check_finite=False)
    )
