"""Axes, limits and steps of joints, compiled.

A hinge that has limits is bounded in its angle. A ball's rotation is
exp(a x + b y) exp(c bone); where one of a, b, c stands at its limit, these three are
the joint's unknowns instead of turns about the axes of the world, so that holding one
of them holds the limit exactly.
"""

from typing import no_type_check

import numpy as np
from numba import njit

from marey.numerics.jit import lean

# Limits closer than this (radians) leave no freedom.
CLOSED = 1e-9
ALWAYS = 2


@no_type_check
@lean
def retract(q, x, y, z, out):
    """Write q turned by a small rotation vector: (1, d / 2) normalised, times q."""
    x, y, z = 0.5 * x, 0.5 * y, 0.5 * z
    a, b, c, d = q[0], q[1], q[2], q[3]
    w = a - x * b - y * c - z * d
    i = b + x * a + y * d - z * c
    j = c + y * a + z * b - x * d
    k = d + z * a + x * c - y * b
    n = 1.0 / np.sqrt(w * w + i * i + j * j + k * k)
    out[0], out[1], out[2], out[3] = w * n, i * n, j * n, k * n


@no_type_check
@lean
def difference(q, p, out):
    """Write the rotation vector, nearly, that leads from p to q: 2 sin(angle / 2)."""
    dot = q[0] * p[0] + q[1] * p[1] + q[2] * p[2] + q[3] * p[3]
    s = 2.0 if dot >= 0.0 else -2.0
    out[0] = s * (-q[0] * p[1] + q[1] * p[0] - q[2] * p[3] + q[3] * p[2])
    out[1] = s * (-q[0] * p[2] + q[1] * p[3] + q[2] * p[0] - q[3] * p[1])
    out[2] = s * (-q[0] * p[3] - q[1] * p[2] + q[2] * p[1] + q[3] * p[0])


@no_type_check
@lean
def wrapped(angle):
    """Return an angle within +-pi."""
    return angle - 2.0 * np.pi * np.floor((angle + np.pi) / (2.0 * np.pi))


@no_type_check
@lean
def hinge_angle(axis, q):
    """Return the turn about an axis, within +-pi."""
    along = axis[0] * q[1] + axis[1] * q[2] + axis[2] * q[3]
    return wrapped(2.0 * np.arctan2(along, q[0]))


@no_type_check
@lean
def hinge_turn(axis, angle, q):
    """Write the quaternion of a turn about an axis."""
    s = np.sin(0.5 * angle)
    q[0] = np.cos(0.5 * angle)
    q[1], q[2], q[3] = s * axis[0], s * axis[1], s * axis[2]


@no_type_check
@lean
def ball_angles(frame, q, out):
    """Write swing about x, swing about y and twist about the bone."""
    w = q[0]
    x = frame[0, 0] * q[1] + frame[0, 1] * q[2] + frame[0, 2] * q[3]
    y = frame[1, 0] * q[1] + frame[1, 1] * q[2] + frame[1, 2] * q[3]
    z = frame[2, 0] * q[1] + frame[2, 1] * q[2] + frame[2, 2] * q[3]
    n = np.sqrt(w * w + z * z)
    c, s = (w / n, z / n) if n > 0.0 else (1.0, 0.0)
    a, b = c * x - s * y, c * y + s * x
    sine = np.sqrt(a * a + b * b)
    scale = 2.0 * np.arctan2(sine, n) / sine if sine > 1e-12 else 2.0
    out[0], out[1] = scale * a, scale * b
    out[2] = wrapped(2.0 * np.arctan2(z, w))


@no_type_check
@lean
def ball_turn(frame, angles, q):
    """Write the quaternion of two swings and a twist: the inverse of `ball_angles`."""
    swing = np.sqrt(angles[0] ** 2 + angles[1] ** 2)
    scale = np.sin(0.5 * swing) / swing if swing > 1e-12 else 0.5
    n, a, b = np.cos(0.5 * swing), scale * angles[0], scale * angles[1]
    c, s = np.cos(0.5 * angles[2]), np.sin(0.5 * angles[2])
    q[0] = n * c
    x, y, z = a * c + b * s, b * c - a * s, n * s
    for k in range(3):
        q[1 + k] = x * frame[0, k] + y * frame[1, k] + z * frame[2, k]


@no_type_check
@lean
def ball_axes(frame, angles, R, A):
    """Write the world axes about which growing angles turn a ball.

    The swings move through the left Jacobian of the rotation vector (a, b, 0), the
    twist about the bone as swung.
    """
    a, b = angles[0], angles[1]
    square = a * a + b * b
    t = np.sqrt(square)
    if t < 1e-4:
        first, second, sine = 0.5, 1.0 / 6.0, 1.0
    else:
        first, sine = (1.0 - np.cos(t)) / square, np.sin(t) / t
        second = (t - np.sin(t)) / (square * t)
    turned = (
        (1.0 - second * b * b, second * a * b, -first * b),
        (second * a * b, 1.0 - second * a * a, first * a),
        (sine * b, -sine * a, np.cos(t)),
    )
    for i in range(3):
        x, y, z = turned[i]
        p0 = x * frame[0, 0] + y * frame[1, 0] + z * frame[2, 0]
        p1 = x * frame[0, 1] + y * frame[1, 1] + z * frame[2, 1]
        p2 = x * frame[0, 2] + y * frame[1, 2] + z * frame[2, 2]
        for k in range(3):
            A[i, k] = R[k, 0] * p0 + R[k, 1] * p1 + R[k, 2] * p2


@no_type_check
@lean
def at_limit(work, i):
    """Return whether any angle of a node stands at a limit."""
    at = work.at[i + 1]
    return at[0] != 0 or at[1] != 0 or at[2] != 0


@no_type_check
@lean
def write_axes(tree, work):
    """Write the axis of every turn in the world; nothing is held but what is none."""
    for i in range(len(work.c)):
        A, held, p = work.A[i + 1], work.held[i + 1], tree.parent[i]
        hinge = tree.hinge[i]
        held[0], held[1], held[2] = False, hinge, hinge
        if hinge:
            axis = tree.axis[i]
            for x in range(3):
                R = work.R[p, x]
                A[0, x] = R[0] * axis[0] + R[1] * axis[1] + R[2] * axis[2]
        elif tree.limited[i] and at_limit(work, i):
            ball_axes(tree.frame[i], work.angles[i], work.R[p], A)
        else:
            for x in range(3):
                for y in range(3):
                    A[x, y] = 1.0 if x == y else 0.0


@no_type_check
@lean
def _clear(tree, i, q):
    """Return whether a joint is surely within its limits, told without arcs.

    A swing of sine s has an arc between 2 s and 2 s (1 + (pi / 2 - 1) s^2).
    """
    sign = 1.0 if q[0] >= 0.0 else -1.0
    low, high = tree.low_sine[i], tree.high_sine[i]
    if tree.hinge[i]:
        axis = tree.axis[i]
        along = sign * (axis[0] * q[1] + axis[1] * q[2] + axis[2] * q[3])
        return low < along < high
    frame, w = tree.frame[i], q[0]
    x = frame[0, 0] * q[1] + frame[0, 1] * q[2] + frame[0, 2] * q[3]
    y = frame[1, 0] * q[1] + frame[1, 1] * q[2] + frame[1, 2] * q[3]
    z = frame[2, 0] * q[1] + frame[2, 1] * q[2] + frame[2, 2] * q[3]
    square = w * w + z * z
    n = np.sqrt(square)
    if not low * n < sign * z < high * n:
        return False
    most = 2.0 + (np.pi - 2.0) * (x * x + y * y)
    # Swings times n: the twist is taken out without dividing by it.
    for k in range(2):
        arc = w * x - z * y if k == 0 else w * y + z * x
        if arc > 0.0:
            near, far = 2.0 * arc, most * arc
        else:
            near, far = most * arc, 2.0 * arc
        if not (tree.low[i, k] + CLOSED) * n < near:
            return False
        if not far < (tree.high[i, k] - CLOSED) * n:
            return False
    return True


@no_type_check
@lean
def confine(tree, work, q):
    """Bring every joint within its limits; note which are reached, and its angles.

    Returns whether a limit was reached or left since the last time.
    """
    changed = False
    for i in range(1, len(q)):
        if not tree.limited[i]:
            continue
        angles, at = work.angles[i], work.at[i + 1]
        if _clear(tree, i, q[i]):
            changed = changed or at_limit(work, i)
            at[0] = at[1] = at[2] = 0
            continue
        if tree.hinge[i]:
            angles[0] = hinge_angle(tree.axis[i], q[i])
        else:
            ball_angles(tree.frame[i], q[i], angles)
        beyond = False
        for x in range(1 if tree.hinge[i] else 3):
            low, high = tree.low[i, x], tree.high[i, x]
            now = 0
            if angles[x] <= low + CLOSED:
                beyond = beyond or angles[x] < low
                now = -1
                angles[x] = low
            elif angles[x] >= high - CLOSED:
                beyond = beyond or angles[x] > high
                now = 1
                angles[x] = high
            if high - low < CLOSED:
                now = ALWAYS
            changed = changed or now != at[x]
            at[x] = now
        if beyond and tree.hinge[i]:
            hinge_turn(tree.axis[i], angles[0], q[i])
        elif beyond:
            ball_turn(tree.frame[i], angles, q[i])
    return changed


@no_type_check
@njit(cache=True)
def at_limits(tree, work, q, held):
    """Write for all frames whether any angle of a node stands at a limit."""
    for f in range(len(q)):
        confine(tree, work, q[f])
        for i in range(len(tree.parent)):
            held[f, i] = tree.limited[i] and at_limit(work, i)


@no_type_check
@lean
def hold(tree, work):
    """Hold what slope or step would lead beyond its limit; return whether any was."""
    some = False
    for i in range(1, len(work.c)):
        if not tree.limited[i]:
            continue
        at, held, A = work.at[i + 1], work.held[i + 1], work.A[i + 1]
        for x in range(3):
            if at[x] == 0 or held[x]:
                continue
            if at[x] == ALWAYS or work.g[i + 1, x] * at[x] > 0.0:
                held[x] = some = True
                A[x, 0] = A[x, 1] = A[x, 2] = 0.0
    return some


@no_type_check
@lean
def advance(tree, work, root, q, new_root, new_q):
    """Write the pose one step on; return the largest change, in radians or metres."""
    largest = 0.0
    for k in range(3):
        new_root[k] = root[k] + work.g[0, k]
    for i in range(len(work.g)):
        for k in range(3):
            largest = max(largest, abs(work.g[i, k]))
    for i in range(len(q)):
        d = work.g[i + 1]
        if tree.hinge[i]:
            a = tree.axis[i]
            retract(q[i], d[0] * a[0], d[0] * a[1], d[0] * a[2], new_q[i])
        elif i == 0:
            retract(q[i], d[0], d[1], d[2], new_q[i])
        elif tree.limited[i] and at_limit(work, i):
            angles = work.angles[i]
            for x in range(3):
                angles[x] += d[x]
            ball_turn(tree.frame[i], angles, new_q[i])
        else:
            R = work.R[tree.parent[i]]
            retract(
                q[i],
                R[0, 0] * d[0] + R[1, 0] * d[1] + R[2, 0] * d[2],
                R[0, 1] * d[0] + R[1, 1] * d[1] + R[2, 1] * d[2],
                R[0, 2] * d[0] + R[1, 2] * d[1] + R[2, 2] * d[2],
                new_q[i],
            )
    return largest
