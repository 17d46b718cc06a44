"""Smooth functions of time: the same curve whatever the frame rate."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

Array = np.ndarray


def rise(x: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Return 0 below 0, 1 above 1 and a quintic with level ends between."""
    s = np.clip(x, 0.0, 1.0)
    return np.asarray(s**3 * (10.0 + s * (6.0 * s - 15.0)))


def pulse(
    times: Float[Array, " frame"], start: float, end: float, ramp: float
) -> Float[Array, " frame"]:
    """Return 1 from start to end, rising before and falling after over `ramp` s."""
    up = rise((times - start) / ramp + 1.0)
    return np.asarray(up * (1.0 - rise((times - end) / ramp)))


def bump(x: Float[Array, " frame"]) -> Float[Array, " frame"]:
    """Return a hill of height 1 over 0 to 1, flat to the second order at its feet."""
    s = np.clip(x, 0.0, 1.0)
    return np.asarray(64.0 * (s * (1.0 - s)) ** 3)


def waves(
    rng: np.random.Generator,
    times: Float[Array, " frame"],
    size: int,
    *,
    hertz: float = 0.4,
) -> Float[Array, "frame wave"]:
    """Return independent wavering curves within -1 to 1.

    Each is a sine whose phase is itself swayed by a slower sine: bounded, smooth to all
    orders, and without a period one would notice.

    Args:
        rng: Draws frequencies and phases.
        times: Seconds.
        size: Number of curves.
        hertz: Mean frequency; each curve takes 0.7 to 1.3 of it.
    """
    rate = 2.0 * np.pi * hertz * rng.uniform(0.7, 1.3, size)
    phase, slow_phase = rng.uniform(0.0, 2.0 * np.pi, (2, size))
    sway = 1.2 * np.sin(0.37 * rate * times[:, None] + slow_phase)
    return np.asarray(np.sin(rate * times[:, None] + phase + sway))


def through(
    x: Float[Array, " frame"], knots: Sequence[tuple[float, float, float]]
) -> Float[Array, " frame"]:
    """Return the quintic spline through knots (place, value, slope).

    The second derivative is zero at every knot, so the curve is smooth to the second
    order across them. Beyond the ends the end values hold.
    """
    place, value, slope = np.array(knots).T
    i = np.clip(np.searchsorted(place, x, side="right") - 1, 0, len(place) - 2)
    span = place[i + 1] - place[i]
    s = np.clip((x - place[i]) / span, 0.0, 1.0)
    return quintic(s, value[i], span * slope[i], value[i + 1], span * slope[i + 1])


def quintic(s: Array, p0: Array, v0: Array, p1: Array, v1: Array) -> Array:
    """Return the quintic with these ends and end slopes and no curvature there."""
    h = rise(s)
    a = s - 6.0 * s**3 + 8.0 * s**4 - 3.0 * s**5
    b = -4.0 * s**3 + 7.0 * s**4 - 3.0 * s**5
    return np.asarray(p0 * (1.0 - h) + p1 * h + v0 * a + v1 * b)


def curved(s: Array, a0: Array, a1: Array) -> Array:
    """Return the quintic that adds end accelerations a0 and a1 to `quintic`."""
    first = 0.5 * s**2 - 1.5 * s**3 + 1.5 * s**4 - 0.5 * s**5
    last = 0.5 * s**3 - s**4 + 0.5 * s**5
    return np.asarray(a0 * first + a1 * last)
