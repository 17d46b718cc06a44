r"""Levenberg-Marquardt on parameters and poses together (bundle adjustment).

The cost of all unknowns is

.. math:: C = \sum_f \sum_k \rho\!\left(\frac{|r_{fk}|^2}{\sigma_k^2}\right)
              + \sum_f c_f + T\,|J_\mathrm{prior}\, p - y|^2
              + |J_\mathrm{constraint}\, p - z|^2

with the loss :math:`\rho` of Student's t, the cost c of axis constraints and mean
rotations in each frame, and the weight T of the prior. The poses are eliminated frame
by frame, then the marker offsets session by session, then the motion of centres (Schur
complements). What remains are the equations of joint offsets, axes and stature, which
all sessions share.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from marey.articulated.targets import as_c_float64
from marey.calibration.model import Estimate, FramePoses, ParameterColumns
from marey.calibration.moving_centers import (
    displaced_columns,
    points_with_fixed_centers,
    with_center_equations,
)
from marey.calibration.priors import Prior
from marey.kernels.threads import map_in_threads
from marey.numerics import Array, Bool, Float, Int

FIRST_DAMPING = 1e-4
"""First damping of a pose, and of all unknowns after a Gauss-Newton step that does not
lower the cost, as a share of the diagonal. The search ends at its inverse. Higher takes
shorter steps. Chosen by hand."""

DAMPING_FACTOR = 10.0
"""Factor of the damping after a step that does not lower the cost, and its inverse
after one that does: published, Marquardt 1963. Higher shortens steps more."""

MIN_COST_DECREASE = 0.02
"""A step that lowers the cost by less than this, times the weight of the prior, is the
last. The unit is the squared standard deviation. Higher stops earlier. Chosen by hand.
"""

MIN_LENGTH_CHANGE_M = 1e-5
"""A step that changes no bone by this length, in metres, is the last. Higher stops
earlier. Chosen by hand."""

MAX_ITERATIONS = 30
"""Most Levenberg-Marquardt steps of a pose."""

POSE_TOLERANCE = 1e-4
"""A pose has converged when a step lowers its cost by less than this share. Higher
stops earlier. Chosen by hand."""

MAX_POSE_ITERATIONS = 3
"""Most steps of every pose after a step of the parameters. Rotations are not linear:
before the poses have adapted, the cost would hide what the parameters have gained."""


class Residuals(NamedTuple):
    """Residuals of the markers of one session."""

    vector: Float[Array, "frame marker 3"]
    """Measured minus predicted position in the world, in metres; 0 if occluded."""

    weight: Float[Array, "frame marker"]
    """Weight of the square in the least-squares problem, in 1/m^2; 0 if occluded."""

    cost: float
    """Cost of the session: markers, axis constraints and mean rotations."""

    @property
    def seen(self) -> Bool[Array, "frame marker"]:
        """Whether each marker is seen."""
        return self.weight > 0.0


def residuals(estimate: Estimate) -> tuple[Residuals, ...]:
    """Return the residuals of every session."""
    from marey.calibration.solver.frame_poses_kernel import residuals_of_frames

    result = []
    for session, poses in enumerate(estimate.poses):
        shape = poses.points.shape
        vector, weight = np.empty((*shape[:2], 3)), np.empty(shape[:2])
        arguments = _kernel_arguments(estimate, session)
        cost = residuals_of_frames(*arguments, vector, weight)
        result.append(Residuals(vector, weight, float(cost)))
    return tuple(result)


def fit_poses(estimate: Estimate, max_steps: int = MAX_ITERATIONS) -> Estimate:
    """Return the estimate with the poses of least cost, the parameters unchanged.

    Args:
        estimate: Parameters and initial poses.
        max_steps: Most Levenberg-Marquardt steps of each frame.
    """
    from marey.calibration.solver.frame_poses_kernel import minimize_over_poses

    search = max_steps, POSE_TOLERANCE, FIRST_DAMPING, DAMPING_FACTOR

    def fit_session(session: int) -> FramePoses:
        poses = estimate.poses[session]
        t, R = poses.root_position.copy(), poses.R_world_segment.copy()
        tables, parameters, points, *_ = _kernel_arguments(estimate, session)
        minimize_over_poses(tables, parameters, points, t, R, search)
        return FramePoses(poses.points, t, R)

    poses = map_in_threads(fit_session, range(len(estimate.poses)))
    return replace(estimate, poses=poses)


def _kernel_arguments(estimate: Estimate, session: int) -> tuple[Any, ...]:
    """Return model, parameters, points and poses of a session, as kernels take them."""
    poses = estimate.poses[session]
    return (
        estimate.model.tables,
        estimate.parameters.for_kernel(session),
        as_c_float64(points_with_fixed_centers(estimate, session)),
        as_c_float64(poses.root_position),
        as_c_float64(poses.R_world_segment),
    )


# --- normal equations -----------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ReducedEquations:
    """Normal equations of the shared parameters, poses and markers eliminated."""

    A: Float[Array, "shared shared"]
    """Unknowns in the order of `ParameterColumns.shared`, then the stature."""

    b: Float[Array, " shared"]
    markers: tuple[Float[Array, "offset _"], ...]
    """Marker offsets of each session: the inverse of their block times their coupling
    to the shared unknowns and their right side."""

    centers: Float[Array, "motion _"]
    """Motion of centres: the inverse of its block times its coupling to the shared
    unknowns and its right side."""

    leverage: tuple[Float[Array, "_ marker"], ...]
    """Share of each marker's residual that the pose absorbs, 0 to 3."""

    cost: float
    frames: tuple[tuple[Float[Array, "all all"], Float[Array, " all"]], ...]
    """Part of the frames in the equations of each session, poses eliminated: the
    covariance of their gradient as noise alone makes it, and the gradient."""


def frame_part(
    equations: ReducedEquations, columns: ParameterColumns
) -> tuple[Float[Array, "shared shared"], Float[Array, " shared"]]:
    """Return the part of the frames in the reduced equations.

    It is the covariance that noise gives their gradient, which is their normal matrix
    unless they show unknowns elsewhere, and the gradient. Marker offsets and centres
    move with the shared unknowns as frames and priors together have them.
    """
    n = len(columns.shared)
    A = np.zeros((n + equations.centers.shape[0] + 1,) * 2)
    b = np.zeros(len(A))
    for (H, g), X in zip(equations.frames, equations.markers, strict=True):
        of_session, right = _follow(H, g, columns.per_session, X)
        A[:-1, :-1] += of_session
        b[:-1] += right
    return _follow(A, b, np.arange(n, len(A) - 1), equations.centers)


def reduced_equations(
    estimate: Estimate,
    prior: Prior,
    prior_weight: float,
    damping: float,
    data_weight: float = 1.0,
    displacement: Float[Array, "all displacement"] | None = None,
) -> ReducedEquations:
    """Return the equations of joint offsets, axes and stature.

    Args:
        estimate: Where the cost is linearised.
        prior: Priors and constraints.
        prior_weight: Weight T of the priors.
        damping: Share of every diagonal element that is added to it.
        data_weight: Weight of the frames.
        displacement: By how much the frames of a session show all unknowns elsewhere:
            independent displacements of one standard deviation, as columns.

    Raises:
        LinAlgError: If the marker offsets of a session are not determined.
    """
    from marey.calibration.solver.frame_equations_kernel import MIN_DIAGONAL

    columns = estimate.model.columns
    markers, n = columns.per_session, columns.count
    residual, jacobian = prior.nonlinear_rows(estimate.parameters)
    shared = np.append(columns.shared, np.arange(n, jacobian.shape[1] - 1))
    J = jacobian[:, np.append(shared, -1)]
    A, b = prior_weight * J.T @ J, prior_weight * J.T @ residual
    cost = prior_weight * float(residual @ residual)
    A[np.diag_indices(len(A))] += MIN_DIAGONAL
    sessions = map_in_threads(
        lambda session: eliminate_session(estimate, session, damping),
        range(len(estimate.poses)),
    )
    eliminated, frames = [], []
    for session, (H, g, _, data_cost) in enumerate(sessions):
        normal, gradient, prior_cost = prior.linear_equations(
            estimate.parameters, session, prior_weight
        )
        H, g, noise = displaced_equations(
            data_weight * H, data_weight * g, displacement
        )
        frames.append((noise, g))
        H, g = H.copy(), g.copy()
        H[:n, :n] += normal
        g[:n] += gradient
        cost += prior_cost + data_weight * data_cost
        H[np.diag_indices(len(H))] += damping * H.diagonal() + MIN_DIAGONAL
        reduced, right, X = _eliminate(H, g, markers)
        A[:-1, :-1] += reduced
        b[:-1] += right
        eliminated.append(X)
    if not np.isfinite(A).all():
        raise np.linalg.LinAlgError("the normal equations are not finite")
    leverage = tuple(leverage for _, _, leverage, _ in sessions)
    motion = np.arange(len(columns.shared), len(A) - 1)
    A, b, X = _eliminate(A, b, motion)
    return ReducedEquations(A, b, tuple(eliminated), X, leverage, cost, tuple(frames))


def displaced_equations(
    H: Float[Array, "all all"],
    g: Float[Array, " all"],
    displacement: Float[Array, "all displacement"] | None,
) -> tuple[Float[Array, "all all"], Float[Array, " all"], Float[Array, "all all"]]:
    r"""Return equations that show unknowns elsewhere, and what noise adds to their g.

    With displacements D of one standard deviation the information that is left is

    .. math:: (H^{-1} + D D^T)^{-1} = P H, \quad P = I - H D (I + D^T H D)^{-1} D^T

    with the right side P g, which has the covariance :math:`P H P^T` by noise.

    Args:
        H: Normal matrix without displacements; it may be singular.
        g: Its right side.
        displacement: The displacements, as columns; None for none.
    """
    if displacement is None:
        return H, g, H
    HD = H @ displacement
    inner = np.eye(HD.shape[1]) + displacement.T @ HD
    P = np.eye(len(H)) - HD @ np.linalg.solve(inner, displacement.T)
    PH = P @ H
    return PH, P @ g, PH @ P.T


def _eliminate(
    A: Float[Array, "all all"], b: Float[Array, " all"], some: Int[Array, " some"]
) -> tuple[Array, Array, Array]:
    """Return the Schur complement of some unknowns, its right side, and their factor.

    The factor is the inverse of their block times their coupling and right side.
    """
    is_rest = np.ones(len(A), dtype=bool)
    is_rest[some] = False
    rest = np.flatnonzero(is_rest)
    of_some, of_rest = A[some], A[rest]
    coupling = np.concatenate([of_some[:, rest], b[some, None]], axis=1)
    X = np.linalg.solve(of_some[:, some], coupling)
    product = of_rest[:, some] @ X
    return of_rest[:, rest] - product[:, :-1], b[rest] - product[:, -1], X


def _follow(
    A: Float[Array, "all all"],
    b: Float[Array, " all"],
    some: Int[Array, " some"],
    X: Float[Array, "some _"],
) -> tuple[Float[Array, "rest rest"], Float[Array, " rest"]]:
    """Return equations in which some unknowns follow the rest, as X eliminates them.

    Args:
        A: The normal matrix of all unknowns.
        b: Its right side.
        some: Those that were eliminated.
        X: Their factor, see `_eliminate`.
    """
    rest = np.setdiff1d(np.arange(len(A)), some)
    follow = np.zeros((len(A), len(rest)))
    follow[rest, np.arange(len(rest))] = 1.0
    follow[some] = -X[:, :-1]
    return follow.T @ A @ follow, follow.T @ (b - A[:, some] @ X[:, -1])


def eliminate_session(
    estimate: Estimate, session: int, damping: float
) -> tuple[Array, Array, Array, float]:
    """Return the equations of a session, poses eliminated, with leverage and cost.

    The Schur complement of the poses, with C the block of the poses and B that of poses
    and shape: :math:`S = A - B^T C^{-1} B`.

    Args:
        estimate: Shape and poses.
        session: Index of the session.
        damping: Share of every diagonal element of C that is added to it.

    Returns:
        S, its right-hand side, the leverage (0 to 3) of every point in every frame, and
        the robust cost (no unit: squares over variances).
    """
    from marey.calibration.solver.schur_kernel import eliminate_poses

    n, moving = estimate.model.columns.count, displaced_columns(estimate)
    shape = estimate.poses[session].points.shape[:2]
    H, g, leverage = np.empty((n, n)), np.empty(n), np.empty(shape)
    right = np.empty((shape[0], len(moving)))
    rows = np.empty((*right.shape, n))
    arguments = _kernel_arguments(estimate, session)
    out = (H, g, leverage, moving, rows, right)
    cost = eliminate_poses(*arguments, damping, *out)
    H, g = with_center_equations(estimate, session, H, g, rows, right)
    return H, g, leverage, cost


# --- steps ----------------------------------------------------------------------------


def levenberg_marquardt_step(
    estimate: Estimate, prior: Prior, prior_weight: float, damping: float
) -> tuple[Estimate, tuple[Float[Array, "_ marker"], ...], float, bool]:
    """Return the estimate after one Levenberg-Marquardt step of all unknowns.

    The damping rises until a step lowers the robust cost itself, not only its quadratic
    model. With the estimate come the leverage of the markers, the damping of the next
    step, and whether the steps have converged.
    """
    while True:
        equations = reduced_equations(estimate, prior, prior_weight, damping)
        moved = solve_step(estimate, damping, equations)
        cost = prior.cost(moved.parameters, prior_weight)
        for session in residuals(moved):
            cost += session.cost
        if cost <= equations.cost:
            break
        if damping * FIRST_DAMPING > 1.0:
            return estimate, equations.leverage, damping, True
        damping = max(damping * DAMPING_FACTOR, FIRST_DAMPING)
    before, after = (
        np.linalg.norm(one.parameters.joint_offset, axis=1) for one in (estimate, moved)
    )
    converged = equations.cost - cost < MIN_COST_DECREASE * prior_weight or bool(
        np.abs(after - before).max() < MIN_LENGTH_CHANGE_M
    )
    return moved, equations.leverage, damping / DAMPING_FACTOR, converged


def solve_step(
    estimate: Estimate, damping: float, equations: ReducedEquations
) -> Estimate:
    """Return the estimate after the step that the equations give."""
    from marey.calibration.solver.schur_kernel import step_poses

    columns = estimate.model.columns
    shared_step = np.linalg.solve(equations.A, equations.b)
    center_step = equations.centers[:, -1] - equations.centers[:, :-1] @ shared_step
    steps = np.zeros((len(estimate.poses), columns.count))
    other_steps = np.append(shared_step[:-1], center_step)
    for step, X in zip(steps, equations.markers, strict=True):
        step[columns.shared] = shared_step[:-1]
        step[columns.per_session] = X[:, -1] - X[:, :-1] @ other_steps
    center_step = center_step.reshape(estimate.parameters.center_motion.shape)
    parameters = estimate.parameters.add_step(
        steps, float(shared_step[-1]), center_step
    )

    def step_session(session: int) -> FramePoses:
        poses = estimate.poses[session]
        t, R = np.empty_like(poses.root_position), np.empty_like(poses.R_world_segment)
        by_frame = np.repeat(steps[session][None], len(t), axis=0)
        if estimate.motion:
            moved = estimate.motion[session].in_parent(center_step)
            by_frame[:, displaced_columns(estimate)] += moved.reshape(len(t), -1)
        arguments = _kernel_arguments(estimate, session)
        step_poses(*arguments, damping, by_frame, t, R)
        return FramePoses(poses.points, t, R)

    poses = map_in_threads(step_session, range(len(estimate.poses)))
    moved = replace(estimate, parameters=parameters, poses=poses)
    return fit_poses(moved, MAX_POSE_ITERATIONS)
