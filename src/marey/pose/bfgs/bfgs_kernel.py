r"""BFGS with a line search on one frame after the other, compiled.

The quasi-Newton method of Broyden, Fletcher, Goldfarb and Shanno keeps an estimate H of
the inverse Hessian. A step s along :math:`d = -H g` that changes the gradient by y
updates it (Nocedal and Wright, Numerical Optimization, 2006, Eq. 6.17):

.. math:: H \leftarrow H + \left(1 + \frac{y^T H y}{s^T y}\right)
    \frac{s s^T}{s^T y} - \frac{H y s^T + s y^T H}{s^T y}.

The length of the step is found by bisection for the weak Wolfe conditions. H carries
over from frame to frame.
"""

from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from marey.articulated.kinematics_kernel import (
    copy,
    copy_pose,
    copy_rows,
    dot,
    fill,
)
from marey.articulated.limits_kernel import hinge_angle
from marey.articulated.targets_kernel import total_weight_seen
from marey.numerics.jit import inner
from marey.pose.bfgs.fitness_kernel import diagonal_hessian, fitness
from marey.pose.gauss_newton.initial_pose_kernel import find_initial_pose

MIN_DECREASE = 1e-4
"""Least decrease of the fitness, as a share of that predicted by the slope (first Wolfe
condition, c1 of Nocedal and Wright, Sec. 3.1)."""

MAX_SLOPE = 0.9
"""Largest slope after the step, as a share of the one before (second Wolfe condition,
c2 of Nocedal and Wright, Sec. 3.1)."""

FITNESS_ROUNDING = 1e-13
"""Relative increase of the fitness that counts as rounding. Higher accepts worse steps.
Chosen by hand."""

MIN_CURVATURE_COSINE = 1e-10
"""Cosine between step and change of gradient below which H is not updated. Higher
updates less often. Chosen by hand."""

MAX_FIRST_CHANGE = 0.5
"""Largest change of an unknown by the first length tried, in radians or metres. Higher
risks steps into another minimum. Chosen by hand."""

MAX_LENGTHS = 40
"""Largest number of lengths tried along one direction. Chosen by hand."""

MIN_CURVATURE = 1.0
"""Least diagonal entry of the initial Hessian, in 1 / rad^2 or 1 / m^2. Higher shortens
first steps of poorly determined unknowns. Chosen by hand."""

GIMBAL_MARGIN = 1e-12
"""Distance of the sine of the middle Euler angle from 1 that counts as gimbal lock.
Chosen by hand, above rounding."""

INITIAL_PRIOR = 1e-6
"""Information that keeps undetermined rotations of the initial pose, in 1 / rad^2: it
decides only what the targets leave open. Chosen by hand."""


class BfgsScratch(NamedTuple):
    """Vectors and inverse Hessian of BFGS."""

    H: np.ndarray  # estimate of the inverse Hessian; H[0, 0] = 0 means none yet
    x: np.ndarray  # unknowns
    new_x: np.ndarray
    g: np.ndarray  # gradient at x
    new_g: np.ndarray
    d: np.ndarray  # search direction
    y: np.ndarray  # change of the gradient
    Hy: np.ndarray


@no_type_check
def make_bfgs_scratch(count):
    """Return scratch for a number of unknowns, without an inverse Hessian."""
    return BfgsScratch(np.zeros((count, count)), *(np.zeros(count) for _ in range(7)))


@no_type_check
@inner
def _reset_inverse_hessian(problem, frame, bfgs):
    """Set H to the inverse of the estimated diagonal of the Hessian."""
    tree, targets, _, scratch = problem
    H, diagonal, n = bfgs.H, bfgs.Hy, len(bfgs.x)
    diagonal_hessian(tree, targets, scratch, frame[0], frame[1], diagonal)
    for i in range(n):
        for j in range(n):
            H[i, j] = 0.0
        H[i, i] = 1.0 / max(diagonal[i], MIN_CURVATURE)


@no_type_check
@inner
def _largest(v):
    """Return the largest absolute component of a vector."""
    largest = 0.0
    for k in range(len(v)):
        largest = max(largest, abs(v[k]))
    return largest


@no_type_check
@inner
def _multiply(H, v, out):
    """Write the product of a matrix and a vector."""
    for i in range(len(v)):
        total = 0.0
        for j in range(len(v)):
            total += H[i, j] * v[j]
        out[i] = total


@no_type_check
@inner
def _update_inverse_hessian(bfgs, length):
    """Update H by the BFGS formula for the step s = length d."""
    H, d, y, n = bfgs.H, bfgs.d, bfgs.y, len(bfgs.x)
    for k in range(n):
        y[k] = bfgs.new_g[k] - bfgs.g[k]
    sy = length * dot(d, y)
    if not sy > MIN_CURVATURE_COSINE * length * np.sqrt(dot(d, d) * dot(y, y)):
        return
    Hy = bfgs.Hy
    _multiply(H, y, Hy)
    first = (1.0 + dot(y, Hy) / sy) * length * length / sy
    second = length / sy
    for i in range(n):
        for j in range(n):
            H[i, j] += first * d[i] * d[j] - second * (Hy[i] * d[j] + d[i] * Hy[j])


@no_type_check
@inner
def _write_unknowns(problem, pose, x, base):
    """Write a pose as unknowns and as `base`: rotation vectors of balls are zero."""
    tree, _, terms, scratch = problem
    root, q = pose
    for k in range(3):
        x[k] = root[k]
    for i in range(len(q)):
        s = scratch.start[i]
        if tree.is_hinge[i]:
            x[s] = hinge_angle(tree.axis[i], q[i])
        elif terms.euler:
            _write_nearest_euler(q[i], x, s)
        else:
            fill(x[s : s + 3], 0.0)
    copy_rows(q, base)


@no_type_check
@inner
def _write_nearest_euler(q, x, s):
    """Write the XYZ Euler angles of q that are nearest to those in x.

    Every rotation has two triples of angles, each up to whole turns.
    """
    w, i, j, k = q[0], q[1], q[2], q[3]
    sine = min(max(2.0 * (i * k + w * j), -1.0), 1.0)
    b = np.arcsin(sine)
    if abs(sine) > 1.0 - GIMBAL_MARGIN:
        # Gimbal lock determines only a sum of the outer angles: the first stays.
        a = x[s]
        both = 2.0 * np.arctan2(i, w)
        c = both - a if sine > 0.0 else a - both
    else:
        a = np.arctan2(2.0 * (w * i - j * k), 1.0 - 2.0 * (i * i + j * j))
        c = np.arctan2(2.0 * (w * k - i * j), 1.0 - 2.0 * (j * j + k * k))
    best, full_turn = np.inf, 2.0 * np.pi
    p0, p1, p2 = x[s], x[s + 1], x[s + 2]
    for other in range(2):
        if other == 1:
            a, b, c = a + np.pi, np.pi - b, c + np.pi
        a += full_turn * np.round((p0 - a) / full_turn)
        b += full_turn * np.round((p1 - b) / full_turn)
        c += full_turn * np.round((p2 - c) / full_turn)
        change = abs(a - p0) + abs(b - p1) + abs(c - p2)
        if change < best:
            best = change
            x[s], x[s + 1], x[s + 2] = a, b, c


@no_type_check
@inner
def _evaluate(problem, frame, x, base, pose, g):
    """Return the fitness of the unknowns x; write its gradient and the pose."""
    tree, targets, terms, scratch = problem
    points, sensors, reference_q = frame
    return fitness(
        tree, targets, terms, scratch, points, sensors, reference_q, x, base, pose, g
    )


@no_type_check
@inner
def _line_search(problem, bfgs, frame, base, pose, cost, slope):
    """Return a length along the direction and the fitness there; length 0 if none.

    Bisection between a length that is too short and one that is too long, until the
    weak Wolfe conditions hold.
    """
    x, d, new_x, new_g = bfgs.x, bfgs.d, bfgs.new_x, bfgs.new_g
    short, long, length = 0.0, np.inf, 1.0
    largest = _largest(d)
    if largest > MAX_FIRST_CHANGE:
        length = MAX_FIRST_CHANGE / largest
    for _ in range(MAX_LENGTHS):
        for k in range(len(x)):
            new_x[k] = x[k] + length * d[k]
        new_cost = _evaluate(problem, frame, new_x, base, pose, new_g)
        new_slope = dot(new_g, d)
        decreased = new_cost <= cost + MIN_DECREASE * length * slope
        # Where rounding hides the decrease, the slope decides (Hager and Zhang, 2005).
        if not decreased and new_cost <= cost * (1.0 + FITNESS_ROUNDING):
            decreased = new_slope <= (2.0 * MIN_DECREASE - 1.0) * slope
        if not decreased:
            long = length
        elif new_slope < MAX_SLOPE * slope:
            short = length
        else:
            return length, new_cost
        length = 0.5 * (short + long) if long < np.inf else 2.0 * length
    return 0.0, cost


@no_type_check
@inner
def _write_direction(bfgs):
    """Write the search direction d = -H g; return the slope along it."""
    slope = 0.0
    _multiply(bfgs.H, bfgs.g, bfgs.d)
    for k in range(len(bfgs.x)):
        bfgs.d[k] = -bfgs.d[k]
        slope += bfgs.d[k] * bfgs.g[k]
    return slope


@no_type_check
@inner
def _minimise(problem, bfgs, frame, base, pose, max_steps, tolerance):
    """Move a pose to the least fitness by BFGS; return the fitness and the steps."""
    x, g = bfgs.x, bfgs.g
    _write_unknowns(problem, pose, x, base)
    cost = _evaluate(problem, frame, x, base, pose, g)
    is_reset = not bfgs.H[0, 0] > 0.0
    if is_reset:
        _reset_inverse_hessian(problem, frame, bfgs)
    steps = 0
    while steps < max_steps:
        slope, length, new_cost = _write_direction(bfgs), 0.0, cost
        if -tolerance < slope < 0.0 or (slope >= 0.0 and is_reset):
            break
        if slope < 0.0:
            length, new_cost = _line_search(
                problem, bfgs, frame, base, pose, cost, slope
            )
        if not length > 0.0:
            if is_reset:
                break
            # Rounding has spoilt the estimate of the inverse Hessian.
            _reset_inverse_hessian(problem, frame, bfgs)
            is_reset = True
            continue
        steps += 1
        _update_inverse_hessian(bfgs, length)
        is_reset = False
        copy(bfgs.new_x, x)
        copy(bfgs.new_g, g)
        cost = new_cost
    # The last length tried has left another pose.
    cost = _evaluate(problem, frame, x, base, pose, g)
    return cost, steps


@no_type_check
@njit(cache=True)
def fit_frames(problem, bfgs, work, recording, order, reference_q, settings, out):
    """Fit frames in the order given, each started from the one before it.

    Args:
        problem: The kinematic tree, the table of targets, the other terms of the
            fitness, and scratch of the fitness.
        bfgs: Scratch of BFGS.
        work: Scratch of the initial pose.
        recording: Markers of the take, in metres, and sensors.
        order: Numbers of the frames.
        reference_q: Quaternions of the reference, by frame.
        settings: Whether every frame starts at its pose in `out`, otherwise the first
            frame starts at an initial pose of its own; the largest number of steps;
            the tolerance of `BfgsOptions`; and the largest rms residual in metres,
            beyond which a frame is fitted again from an initial pose.
        out: Gets by frame: position of the root; quaternions; and fitness, weight
            seen, steps.
    """
    tree, targets, _, _ = problem
    points, sensors = recording
    guided, max_steps, tolerance, max_rms_residual = settings
    root_out, q_out, info = out
    n = len(tree.parent)
    root, q, base = np.zeros(3), np.zeros((n, 4)), np.zeros((n, 4))
    pose, best = (root, q), (np.empty(3), np.empty((n, 4)))
    zero, prior = np.zeros(3), np.full(n + 1, INITIAL_PRIOR)
    for i in range(n):
        q[i, 0] = 1.0
    has_pose = False
    for f in order:
        y, T = points[f], sensors[f]
        weight = total_weight_seen(targets, y, T)
        info[f, 1] = weight
        if guided:
            copy_pose((root_out[f], q_out[f]), pose)
        if weight > 0.0:
            if not has_pose and not guided:
                find_initial_pose(tree, targets, work, y, T, zero, root, q, prior)
            frame = (y, T, reference_q[f])
            cost, steps = _minimise(
                problem, bfgs, frame, base, pose, max_steps, tolerance
            )
            if cost > weight * max_rms_residual**2 and has_pose and not guided:
                copy_pose(pose, best)
                find_initial_pose(tree, targets, work, y, T, zero, root, q, prior)
                bfgs.H[0, 0] = 0.0
                new_cost, more_steps = _minimise(
                    problem, bfgs, frame, base, pose, max_steps, tolerance
                )
                steps += more_steps
                if new_cost < cost:
                    cost = new_cost
                else:
                    copy_pose(best, pose)
            has_pose = True
            info[f, 0], info[f, 2] = cost, steps
        copy_pose(pose, (root_out[f], q_out[f]))
