"""Poses alone, compiled: their cost, and the steps to the least of it."""

from typing import no_type_check

import numpy as np
from numba import njit

from marey.calibration.solver.frame_equations_kernel import (
    backward,
    factored,
    forward,
    pose_equations,
    residuals,
    scratch,
)
from marey.numerics.jit import FAST, lean

# A rotation turns by no more than this in one step, in radians.
LARGEST_TURN = 0.6

# Damping of one pose: its start, and how it falls and rises.
FIRST, EASED, RAISED, MOST = 1e-3, 0.2, 10.0, 1e6


@no_type_check
@lean
def _turn(w, R, out):
    """Write exp(w) R; w no longer than `LARGEST_TURN`."""
    angle = np.sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
    shrink = min(1.0, LARGEST_TURN / max(angle, 1e-300))
    x, y, z = w[0] * shrink, w[1] * shrink, w[2] * shrink
    angle *= shrink
    s, c = 1.0 - angle * angle / 6.0, 0.5 - angle * angle / 24.0
    if angle > 1e-3:
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
def retracted(t, R, g, t_out, R_out):
    """Write a pose after a step."""
    for k in range(3):
        t_out[k] = t[k] + g[0, k]
    for i in range(len(R)):
        _turn(g[i + 1], R[i], R_out[i])


@no_type_check
@njit(cache=True, fastmath=FAST, nogil=True)
def costs(tree, shape, points, t, R, rest, weight):
    """Return the cost of all frames; write what is left of every marker, its weight."""
    work = scratch(tree, points.shape[1], 0)
    cost = 0.0
    for f in range(len(points)):
        cost += residuals(tree, shape, points[f], t[f], R[f], work)
        for k in range(points.shape[1]):
            weight[f, k] = work.weight[k]
            for x in range(3):
                rest[f, k, x] = work.r[k, x]
    return cost


@no_type_check
@njit(cache=True, fastmath=FAST, nogil=True)
def settled(tree, shape, points, t, R, most, enough):
    """Bring the pose of every frame to the least cost, the shape kept; in place."""
    work = scratch(tree, points.shape[1], 0)
    t_new, R_new = np.empty(3), np.empty((len(tree.parent), 3, 3))
    for f in range(len(points)):
        damping = FIRST
        cost = residuals(tree, shape, points[f], t[f], R[f], work)
        for _ in range(most):
            pose_equations(tree, shape, R[f], work)
            factored(tree, work, damping)
            forward(tree, work)
            backward(tree, work)
            retracted(t[f], R[f], work.g, t_new, R_new)
            new = residuals(tree, shape, points[f], t_new, R_new, work)
            if new <= cost:
                gain = cost - new
                cost = new
                t[f] = t_new
                R[f] = R_new
                damping *= EASED
                if gain < enough * max(cost, 1.0):
                    break
            else:
                residuals(tree, shape, points[f], t[f], R[f], work)
                damping *= RAISED
                if damping > MOST:
                    break
