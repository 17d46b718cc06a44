"""Poses of a whole take with smooth paths of all joints."""

from collections.abc import Callable

import numpy as np

from marey.numerics import Array, Float
from marey.numerics.thresholds import FEW
from marey.pose.trace import PoseTrace

MAX_ITERATIONS_SMOOTHING = 12
"""Number of alternations between frames and paths. Higher agrees better and takes
longer."""

ADMM_PENALTY = 2.0
"""Penalty of the difference between frames and paths, as a multiple of the information
of a frame. It changes the speed of convergence, not its result. Chosen by hand."""

ROOT_LEVER_M = 0.5
"""Length, in metres, that turns the angular acceleration of joints into the linear
acceleration of the root. Higher lets the root accelerate more. Chosen by hand."""


def smooth_poses(
    draw: Callable[[tuple[Array, Array], Array], None],
    trace: PoseTrace,
    information: Float[Array, "frame block"],
    prior: Float[Array, " block"],
    step_sd: float,
) -> None:
    r"""Move the poses to the least cost with small accelerations of all joints.

    The cost of all frames together is

    .. math:: \sum_f E_f(x_f) + \sum_f |x_{f+1} - 2 x_f + x_{f-1}|^2 / \sigma^2
        + \pi \sum_f |x_{f+1} - x_f|^2,

    with the cost E_f of the frame's targets, the standard deviation :math:`\sigma` of
    the second difference and the information :math:`\pi` of the prior, which keeps an
    unseen joint from gliding on. If it were solved at once, it would couple all joints
    of three frames. The alternating direction method of multipliers (ADMM, Boyd et al.,
    2011) divides it into two steps. One solves every frame by itself and draws it to
    where the paths of its joints pass. The other solves the path of every joint by
    itself, a banded system over the frames. Paths are smooth in the components of
    quaternions and normalised afterwards.

    Args:
        draw: Solves all frames of the trace, each started where it is and drawn to
            paths of the root and the quaternions with a prior of this information.
        trace: The poses, which are moved; their quaternions are sign-continuous.
        information: Information of each frame on the position of the root (1 / m^2),
            then on every node (1 / rad^2).
        prior: Information of the prior on each block.
        step_sd: Standard deviation of the second difference of angles, in radians.
    """
    q, root = trace.q, trace.root
    penalty = np.array([_penalty(column) for column in information.T])
    weight = np.where(information > FEW * penalty, penalty, 0.0)
    stiffness = np.full(len(penalty), 1.0 / step_sd**2)
    stiffness[0] /= ROOT_LEVER_M**2
    dual, dual_root = np.zeros_like(q), np.zeros_like(root)
    for _ in range(MAX_ITERATIONS_SMOOTHING):
        path_root, *paths = (
            _smooth_path(x, weight[:, b], float(stiffness[b]), float(prior[b]))
            for b, x in enumerate([root + dual_root, *np.moveaxis(q + dual, 1, 0)])
        )
        path = np.stack(paths, axis=1)
        path /= np.linalg.norm(path, axis=-1, keepdims=True)
        dual = np.where(weight[:, 1:, None] > 0.0, dual + q - path, 0.0)
        dual_root = np.where(weight[:, :1] > 0.0, dual_root + root - path_root, 0.0)
        goal = path - dual
        goal /= np.linalg.norm(goal, axis=-1, keepdims=True)
        draw((path_root - dual_root, goal), penalty)


def _penalty(information: Float[Array, " frame"]) -> float:
    """Return the ADMM penalty of a block, from the median information of its frames."""
    positive = information[information > 0.0]
    return ADMM_PENALTY * float(np.median(positive)) if len(positive) else 1.0


def _smooth_path(
    x: Float[Array, "frame component"],
    weight: Float[Array, " frame"],
    stiffness: float,
    tension: float,
) -> Float[Array, "frame component"]:
    r"""Return the path p of least distance from x, acceleration and length.

    Minimises :math:`\sum_f w_f |p_f - x_f|^2 + k \sum_f |\Delta^2 p_f|^2 + t \sum_f
    |\Delta p_f|^2` by a system of five bands (Whittaker smoother).
    """
    from scipy.linalg import solveh_banded  # slow to import

    n = len(x)
    if n < 3 or not weight.any():
        return x
    bands = np.zeros((3, n))
    bands[0] = weight
    bands[0, 1:] += tension
    bands[0, :-1] += tension
    bands[1, :-1] -= tension
    second_difference = (1.0, -2.0, 1.0)
    for i, a in enumerate(second_difference):
        for k, b in enumerate(second_difference[i:]):
            bands[k, i : n - 2 + i] += stiffness * a * b
    return np.asarray(
        solveh_banded(bands, weight[:, None] * x, lower=True, check_finite=False)
    )
