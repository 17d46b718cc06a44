r"""BFGS with a line search on one frame after the other, compiled.

The quasi-Newton method of Broyden, Fletcher, Goldfarb and Shanno keeps an estimate H of
the inverse Hessian. A step s along :math:`d = -H g` that changes the gradient by y
updates it (Nocedal and Wright, Numerical Optimization, 2006, Eq. 6.17):

.. math:: H \leftarrow H + \left(1 + \frac{y^T H y}{s^T y}\right)
    \frac{s s^T}{s^T y} - \frac{H y s^T + s y^T H}{s^T y}.

The length of the step is found by bisection for the weak Wolfe conditions. H carries
over from frame to frame.
"""

# mypy: ignore-errors

import numpy as np

from marey.articulated.kinematics_kernel import copy_pose
from marey.articulated.limits_kernel import hinge_angle
from marey.articulated.targets_kernel import total_weight_seen
from marey.numerics.jit import inner, njit
from marey.numerics.vector3_kernel import add_values, copy_rows, fill, set_vector
from marey.pose.bfgs.fitness_kernel import diagonal_hessian, fitness
from marey.pose.gauss_newton.initial_pose_kernel import find_initial_pose

MIN_DECREASE = 1e-4
"""Least decrease of the fitness, as a share of that predicted by the slope (first Wolfe
condition, c1 as published, Nocedal and Wright 2006, Sec. 3.1)."""

MAX_SLOPE = 0.9
"""Largest slope after the step, as a share of the one before (second Wolfe condition,
c2 as published, Nocedal and Wright 2006, Sec. 3.1)."""

FITNESS_ROUNDING = 1e-13
"""Relative increase of the fitness that counts as rounding. Higher accepts worse steps.
Chosen by hand."""

MIN_CURVATURE_COSINE = 1e-10
"""Cosine between step and change of gradient below which H is not updated. Higher
updates less often. Chosen by hand."""

MAX_FIRST_CHANGE = 0.5
"""Largest change of an unknown by the first length tried, in radians or metres. Higher
risks steps into another minimum. Chosen by hand."""

MAX_ITERATIONS_LENGTH = 40
"""Largest number of lengths tried along one direction. Chosen by hand."""

MIN_CURVATURE = 1.0
"""Least diagonal entry of the initial Hessian, in 1 / rad^2 or 1 / m^2. Higher shortens
first steps of poorly determined unknowns. Chosen by hand."""

GIMBAL_MARGIN = 1e-12
"""Distance of the sine of the middle Euler angle from 1 that counts as gimbal lock.
Chosen by hand, above rounding."""

TINY = 1e-300
"""Least size of a direction, against division by zero."""

TINY_PRIOR = 1e-6
"""Information that keeps undetermined rotations of the initial pose, in 1 / rad^2: it
decides only what the targets leave open. Chosen by hand."""


@inner
def _reset_inverse_hessian(problem, H):
    """Set H to the inverse of the estimated diagonal of the Hessian."""
    diagonal = diagonal_hessian(problem[2])
    H[:] = 0.0
    for i in range(len(H)):
        H[i, i] = 1.0 / max(diagonal[i], MIN_CURVATURE)


@inner
def _update_inverse_hessian(H, s, y):
    """Update H by the BFGS formula for a step s that changes the gradient by y."""
    sy = s @ y
    if sy > MIN_CURVATURE_COSINE * np.sqrt((s @ s) * (y @ y)):
        Hy = H @ y
        factor = (1.0 + (y @ Hy) / sy) / sy
        for i in range(len(H)):
            add_values(H[i], factor * s[i] - Hy[i] / sy, s)
            add_values(H[i], -s[i] / sy, Hy)


@inner
def _write_unknowns(tree, terms, pose, x, base):
    """Write a pose as unknowns and as `base`: rotation vectors of balls are zero."""
    root, q = pose
    set_vector(x, root)
    for i in range(len(q)):
        own = x[3 * i + 3 : 3 * i + 6]
        if tree.is_hinge[i]:
            own[0] = hinge_angle(tree.axis[i], q[i])
        elif terms.euler:
            _write_nearest_euler(q[i], own)
        else:
            fill(own, 0.0)
    copy_rows(q, base)


@inner
def _write_nearest_euler(q, x):
    """Write the XYZ Euler angles of q that are nearest to those in x.

    Every rotation has two triples of angles, each up to whole turns.
    """
    w, i, j, k = q[0], q[1], q[2], q[3]
    sine = min(max(2.0 * (i * k + w * j), -1.0), 1.0)
    b = np.arcsin(sine)
    if abs(sine) > 1.0 - GIMBAL_MARGIN:
        # Gimbal lock determines only a sum of the outer angles: the first stays.
        a = x[0]
        both = 2.0 * np.arctan2(i, w)
        c = both - a if sine > 0.0 else a - both
    else:
        a = np.arctan2(2.0 * (w * i - j * k), 1.0 - 2.0 * (i * i + j * j))
        c = np.arctan2(2.0 * (w * k - i * j), 1.0 - 2.0 * (j * j + k * k))
    best, full_turn = np.inf, 2.0 * np.pi
    p0, p1, p2 = x[0], x[1], x[2]
    for other in range(2):
        if other == 1:
            a, b, c = a + np.pi, np.pi - b, c + np.pi
        a += full_turn * np.round((p0 - a) / full_turn)
        b += full_turn * np.round((p1 - b) / full_turn)
        c += full_turn * np.round((p2 - c) / full_turn)
        change = abs(a - p0) + abs(b - p1) + abs(c - p2)
        if change < best:
            best = change
            x[0], x[1], x[2] = a, b, c


@inner
def _line_search(problem, frame, terms, x, d, base, pose, cost, slope):
    """Return the step along a direction, the fitness and the gradient there.

    Bisection between a length that is too short and one that is too long, until the
    weak Wolfe conditions hold. The step is zero if no length is found.
    """
    g, short, long = np.empty(len(x)), 0.0, np.inf
    length = min(1.0, MAX_FIRST_CHANGE / max(np.abs(d).max(), TINY))
    for _ in range(MAX_ITERATIONS_LENGTH):
        tried = x.copy()
        add_values(tried, length, d)
        new_cost = fitness(problem, frame, terms, tried, base, pose, g)
        new_slope = g @ d
        decreased = new_cost <= cost + MIN_DECREASE * length * slope
        # Where rounding hides the decrease, the slope decides (Hager and Zhang, 2005).
        if not decreased and new_cost <= cost * (1.0 + FITNESS_ROUNDING):
            decreased = new_slope <= (2.0 * MIN_DECREASE - 1.0) * slope
        if not decreased:
            long = length
        elif new_slope < MAX_SLOPE * slope:
            short = length
        else:
            return length * d, new_cost, g
        length = 0.5 * (short + long) if long < np.inf else 2.0 * length
    return 0.0 * d, cost, g


@inner
def _minimise(problem, frame, terms, H, pose, max_steps, tolerance):
    """Move a pose to the least fitness by BFGS; return the fitness and the steps."""
    x, base = np.zeros(len(H)), np.empty_like(pose[1])
    g = np.empty(len(H))
    _write_unknowns(problem[0], terms, pose, x, base)
    cost = fitness(problem, frame, terms, x, base, pose, g)
    is_reset = not H[0, 0] > 0.0
    if is_reset:
        _reset_inverse_hessian(problem, H)
    steps = 0
    while steps < max_steps:
        d = -(H @ g)
        slope, step, new_cost, new_g = d @ g, 0.0 * d, cost, g
        if -tolerance < slope < 0.0 or (slope >= 0.0 and is_reset):
            break
        if slope < 0.0:
            step, new_cost, new_g = _line_search(
                problem, frame, terms, x, d, base, pose, cost, slope
            )
        if not np.any(step):
            if is_reset:
                break
            # Rounding has spoilt the estimate of the inverse Hessian.
            _reset_inverse_hessian(problem, H)
            is_reset = True
            continue
        steps += 1
        _update_inverse_hessian(H, step, new_g - g)
        is_reset = False
        x, g, cost = x + step, new_g, new_cost
    # The last length tried has left another pose.
    return fitness(problem, frame, terms, x, base, pose, g), steps


@inner
def _fit_frame(
    problem, frame, terms, H, pose, has_pose, max_cost, max_steps, tolerance
):
    """Fit one frame from the pose, if there is one; return the fitness and the steps.

    Without a pose, or if the fitness is above the largest, the frame is fitted from an
    initial pose of its own; the better pose counts.
    """
    cost, steps = np.inf, 0
    if has_pose:
        cost, steps = _minimise(problem, frame, terms, H, pose, max_steps, tolerance)
    if cost > max_cost or not has_pose:
        last, prior = (pose[0].copy(), pose[1].copy()), np.full(len(H), TINY_PRIOR)
        find_initial_pose(problem, frame[:2], np.zeros(3), pose, prior)
        H[0, 0] = 0.0
        new_cost, more_steps = _minimise(
            problem, frame, terms, H, pose, max_steps, tolerance
        )
        steps += more_steps
        if new_cost < cost:
            cost = new_cost
        else:
            copy_pose(last, pose)
    return cost, steps


@njit(cache=True)
def fit_frames(problem, terms, recording, order, reference_q, settings, out):
    """Fit frames in the order given, each started from the one before it.

    Args:
        problem: The kinematic tree, the table of targets and a `PoseWorkspace`.
        terms: The other terms of the fitness.
        recording: Markers of the take, in metres, and sensors.
        order: Numbers of the frames.
        reference_q: Quaternions of the reference, by frame.
        settings: Whether every frame starts at its pose in `out`, otherwise the first
            frame starts at an initial pose of its own; the largest number of steps;
            the tolerance of `BfgsOptions`; and the largest rms residual in metres,
            beyond which a frame is fitted again from an initial pose.
        out: Gets by frame: position of the root; quaternions; and the statistics of
            `PoseTrace`, with the fitness as cost.
    """
    points, sensors = recording
    guided, max_steps, tolerance, max_rms_residual = settings
    root_out, q_out, info = out
    n = q_out.shape[1]
    pose, has_pose = (np.zeros(3), np.zeros((n, 4))), guided
    H = np.zeros((3 * n + 3, 3 * n + 3))
    pose[1][:, 0] = 1.0
    for f in order:
        frame = (points[f], sensors[f], reference_q[f])
        weight = info[f, 1] = total_weight_seen(problem[1], points[f], sensors[f])
        if guided:
            copy_pose((root_out[f], q_out[f]), pose)
        if weight > 0.0:
            max_cost = np.inf if guided else weight * max_rms_residual**2
            cost, steps = _fit_frame(
                problem, frame, terms, H, pose, has_pose, max_cost, max_steps, tolerance
            )
            has_pose = True
            info[f, 0], info[f, 2], info[f, 3] = cost, weight, steps
        copy_pose(pose, (root_out[f], q_out[f]))
