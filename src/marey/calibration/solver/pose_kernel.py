"""Cost of given poses, and Levenberg-Marquardt on the pose of each frame, compiled."""

from typing import no_type_check

import numpy as np
from numba import njit

from marey.calibration.solver.frame_equations_kernel import (
    factorize,
    frame_residuals,
    new_scratch,
    pose_equations,
    substitute_backward,
    substitute_forward,
)
from marey.numerics.jit import FAST, lean

# Largest rotation of a segment in one step, in radians; higher may overshoot, lower
# takes more steps. Chosen by hand.
MAX_ROTATION_STEP_RAD = 0.6

# Damping of one pose, as a share of the diagonal: its first value, its factors after a
# step that lowers the cost and after one that does not, and the value at which the
# search ends. Chosen by hand.
FIRST_DAMPING, DAMPING_DECREASE, DAMPING_INCREASE, MAX_DAMPING = 1e-3, 0.2, 10.0, 1e6

# Below this angle, in radians, sine and cosine are replaced by their Taylor series.
SMALL_ANGLE_RAD = 1e-3


@no_type_check
@lean
def _rotate_by(w, R, out):
    """Write exp([w]x) R by Rodrigues' formula; the angle is clipped."""
    angle = np.sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
    shrink = min(1.0, MAX_ROTATION_STEP_RAD / max(angle, 1e-300))
    x, y, z = w[0] * shrink, w[1] * shrink, w[2] * shrink
    angle *= shrink
    s, c = 1.0 - angle * angle / 6.0, 0.5 - angle * angle / 24.0
    if angle > SMALL_ANGLE_RAD:
        s, c = np.sin(angle) / angle, (1.0 - np.cos(angle)) / (angle * angle)
    xx, yy = 1 - c * (y * y + z * z), 1 - c * (x * x + z * z)
    zz = 1 - c * (x * x + y * y)
    xy, yx = c * x * y - s * z, c * x * y + s * z
    xz, zx = c * x * z + s * y, c * x * z - s * y
    yz, zy = c * y * z - s * x, c * y * z + s * x
    for j in range(3):
        out[0, j] = xx * R[0, j] + xy * R[1, j] + xz * R[2, j]
        out[1, j] = yx * R[0, j] + yy * R[1, j] + yz * R[2, j]
        out[2, j] = zx * R[0, j] + zy * R[1, j] + zz * R[2, j]


@no_type_check
@lean
def retract(t, R, step, t_out, R_out):
    """Write a pose after a step of its unknowns."""
    for k in range(3):
        t_out[k] = t[k] + step[0, k]
    for i in range(len(R)):
        _rotate_by(step[i + 1], R[i], R_out[i])


@no_type_check
@njit(cache=True, fastmath=FAST, nogil=True)
def residuals_of_frames(tables, parameters, points, t, R, residual, weight):
    """Write residual and weight of every marker; return the cost of all frames."""
    scratch = new_scratch(tables, points.shape[1], 0)
    cost = 0.0
    for f in range(len(points)):
        cost += frame_residuals(tables, parameters, points[f], t[f], R[f], scratch)
        for k in range(points.shape[1]):
            weight[f, k] = scratch.weight[k]
            for x in range(3):
                residual[f, k, x] = scratch.residual[k, x]
    return cost


@no_type_check
@njit(cache=True, fastmath=FAST, nogil=True)
def minimize_over_poses(tables, parameters, points, t, R, max_steps, tolerance):
    """Bring the pose of every frame to its least cost, in place.

    Levenberg-Marquardt on each frame by itself; the parameters stay. A frame has
    converged when a step lowers its cost by less than `tolerance` times the cost.
    """
    scratch = new_scratch(tables, points.shape[1], 0)
    t_new, R_new = np.empty(3), np.empty((len(tables.parent), 3, 3))
    for f in range(len(points)):
        damping = FIRST_DAMPING
        cost = frame_residuals(tables, parameters, points[f], t[f], R[f], scratch)
        for _ in range(max_steps):
            pose_equations(tables, parameters, R[f], scratch)
            factorize(tables, scratch, damping)
            substitute_forward(tables, scratch)
            substitute_backward(tables, scratch)
            retract(t[f], R[f], scratch.g, t_new, R_new)
            new = frame_residuals(tables, parameters, points[f], t_new, R_new, scratch)
            if new <= cost:
                gain = cost - new
                cost = new
                t[f] = t_new
                R[f] = R_new
                damping *= DAMPING_DECREASE
                if gain < tolerance * max(cost, 1.0):
                    break
            else:
                frame_residuals(tables, parameters, points[f], t[f], R[f], scratch)
                damping *= DAMPING_INCREASE
                if damping > MAX_DAMPING:
                    break
