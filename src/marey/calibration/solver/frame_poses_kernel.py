"""Residuals and poses of least cost of many frames, compiled."""

# mypy: ignore-errors

from numba import int64

from marey.calibration.solver.frame_equations_kernel import (
    factorize,
    frame_residuals,
    new_scratch,
    pose_equations,
    retract,
    substitute_backward,
)
from marey.numerics.arrays.new_kernel import empty
from marey.numerics.jit import FAST, njit
from marey.numerics.vector3_kernel import set_matrices, set_vector


@njit(cache=True, fastmath=FAST, nogil=True)
def residuals_of_frames(tables, parameters, points, t, R, residual, weight):
    """Write residual and weight of every marker; return the cost of all frames."""
    scratch = new_scratch(tables, points.shape[1], int64(0))
    cost = 0.0
    for f in range(len(points)):
        cost += frame_residuals(tables, parameters, points[f], t[f], R[f], scratch)
        for k in range(points.shape[1]):
            weight[f, k] = scratch.weight[k]
            for x in range(3):
                residual[f, k, x] = scratch.residual[k, x]
    return cost


@njit(cache=True, fastmath=FAST, nogil=True)
def minimize_over_poses(tables, parameters, points, t, R, search):
    """Bring the pose of every frame to its least cost, in place.

    Levenberg-Marquardt on each frame by itself; the parameters stay. A frame has
    converged when a step lowers its cost by less than the tolerance times the cost.

    `search` has the most steps, the tolerance, the first damping and its factor.
    """
    max_steps, tolerance, first_damping, factor = search
    scratch = new_scratch(tables, points.shape[1], int64(0))
    t_new, R_new = empty(3), empty((len(tables.parent), 3, 3))
    for f in range(len(points)):
        damping = first_damping
        cost = frame_residuals(tables, parameters, points[f], t[f], R[f], scratch)
        for _ in range(max_steps):
            pose_equations(tables, parameters, R[f], scratch)
            factorize(tables, scratch, damping)
            substitute_backward(tables, scratch)
            retract(t[f], R[f], scratch.g, t_new, R_new)
            new = frame_residuals(tables, parameters, points[f], t_new, R_new, scratch)
            if new <= cost:
                gain = cost - new
                cost = new
                set_vector(t[f], t_new)
                set_matrices(R[f], R_new)
                damping /= factor
                if gain < tolerance * max(cost, 1.0):
                    break
            else:
                frame_residuals(tables, parameters, points[f], t[f], R[f], scratch)
                damping *= factor
                if damping * first_damping > 1.0:
                    break
