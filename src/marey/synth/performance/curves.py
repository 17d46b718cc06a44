"""Smooth functions of time, independent of the frame rate."""

from collections.abc import Sequence

import numpy as np

from marey.numerics import Array, Float

Times = Float[Array, " frame"]
"""One value per frame: seconds, shares or angles."""

Poses = Float[Array, "frame 4 4"]
Angles = Float[Array, "frame joint 3"]
"""Joint angles, in radians."""

LimbAngles = Float[Array, "frame 3 3"]
"""Angles of upper, middle and end joint, in radians."""


def smoothstep(x: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Return the quintic smoothstep 6x^5 - 15x^4 + 10x^3 of x, clipped to 0 and 1."""
    s = np.clip(x, 0.0, 1.0)
    return np.asarray(s**3 * (10.0 + s * (6.0 * s - 15.0)))


def pulse(times: Times, start: float, end: float, ramp: float) -> Times:
    """Return 1 from start to end, with smooth ramps of `ramp` seconds on both sides."""
    up = smoothstep((times - start) / ramp + 1.0)
    return np.asarray(up * (1.0 - smoothstep((times - end) / ramp)))


def bump(x: Times) -> Times:
    """Return 64 x^3 (1 - x)^3 between 0 and 1, and 0 outside: a bump of height 1."""
    s = np.clip(x, 0.0, 1.0)
    return np.asarray(64.0 * (s * (1.0 - s)) ** 3)


def random_waves(
    rng: np.random.Generator, times: Times, size: int, *, hertz: float = 0.4
) -> Float[Array, "frame wave"]:
    """Return independent random curves with values in -1 to 1.

    Each curve is a sine whose phase is modulated by a slower sine. The curve is bounded
    and smooth, and its period is not noticeable.

    Args:
        rng: Random stream of frequencies and phases.
        times: Seconds.
        size: Number of curves.
        hertz: Mean frequency. Each curve has 0.7 to 1.3 times this frequency.
    """
    omega = 2.0 * np.pi * hertz * rng.uniform(0.7, 1.3, size)
    phase, slow_phase = rng.uniform(0.0, 2.0 * np.pi, (2, size))
    modulation = 1.2 * np.sin(0.37 * omega * times[:, None] + slow_phase)
    return np.asarray(np.sin(omega * times[:, None] + phase + modulation))


def quintic_spline(x: Times, knots: Sequence[tuple[float, float, float]]) -> Times:
    """Return the quintic Hermite spline through knots (x, value, slope).

    The second derivative is zero at every knot, so the curve is twice continuously
    differentiable. Outside the knots the curve keeps its end values.
    """
    knot, value, slope = np.array(knots).T
    i = np.clip(np.searchsorted(knot, x, side="right") - 1, 0, len(knot) - 2)
    span = knot[i + 1] - knot[i]
    s = np.clip((x - knot[i]) / span, 0.0, 1.0)
    return quintic_hermite(
        s, value[i], span * slope[i], value[i + 1], span * slope[i + 1]
    )


def quintic_hermite(s: Array, p0: Array, v0: Array, p1: Array, v1: Array) -> Array:
    """Return the quintic with end values p, end slopes v and no end curvature.

    In the unit of p, for s from 0 to 1.
    """
    h = smoothstep(s)
    a = s - 6.0 * s**3 + 8.0 * s**4 - 3.0 * s**5
    b = -4.0 * s**3 + 7.0 * s**4 - 3.0 * s**5
    return np.asarray(p0 * (1.0 - h) + p1 * h + v0 * a + v1 * b)


def quintic_end_curvature(s: Array, a0: Array, a1: Array) -> Array:
    """Return the quintic that adds end accelerations a0, a1 to `quintic_hermite`."""
    first = 0.5 * s**2 - 1.5 * s**3 + 1.5 * s**4 - 0.5 * s**5
    last = 0.5 * s**3 - s**4 + 0.5 * s**5
    return np.asarray(a0 * first + a1 * last)
