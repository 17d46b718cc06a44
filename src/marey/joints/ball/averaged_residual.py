"""Residual of time-averaged poses: what frame-to-frame noise cannot explain."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from marey.bodies import Bodies
from marey.joints.ball.closed_form import solve_centers, uncorrected_system
from marey.joints.ball.normal_equations import Pairs, PerPair, form_normal_equations
from marey.joints.ball.pair_frames import sum_pairs_at_anchors
from marey.joints.noise import PoseNoise

Array = np.ndarray

AVERAGING_S = 0.4
"""Seconds over which poses are averaged. Longer removes more noise, and also more of
the residual of a wrong joint. Chosen by hand."""

MIN_MEANS = 32
"""Smallest number of averages; a take too short for it is averaged over less time.
Higher shortens the averages of short takes. Chosen by hand."""


def averaged_residuals(
    takes: Sequence[Bodies], noise: PoseNoise, pair: Pairs, *, max_sd: float
) -> tuple[PerPair, PerPair]:
    """Return the residual of averaged poses, and the part of it that is noise.

    Two points that stay together have the same mean over any window of frames, and the
    residual is linear in the entries of the poses. The equations of OBrien2000
    therefore hold for averaged poses as well, however fast the bodies rotate. Averaging
    divides the noise by the root of the window's length, but not the residual of a
    wrong joint, which changes as slowly as the bodies move.

    A window in which a body is occluded at any time is not used for that body.

    Args:
        takes: The same bodies in one or several takes.
        noise: Of every body's pose, from frame to frame.
        pair: Bodies (a, b).
        max_sd: As in `BallOptions`.

    Returns:
        Two root mean squares, in metres.
    """
    longest = max(sum(len(take.T_world_body) for take in takes) // MIN_MEANS, 1)
    width = [min(max(round(AVERAGING_S * t.take.rate), 1), longest) for t in takes]
    means = [
        _window_means(t.T_world_body, k) for t, k in zip(takes, width, strict=True)
    ]
    sums = sum_pairs_at_anchors(np.concatenate(means), noise.anchor)
    raw = form_normal_equations(sums, pair)
    system = uncorrected_system(raw)
    u = solve_centers(system, max_sd=max_sd).u
    residual = raw.rms_residual(system.least_squares())
    count = np.array([len(part) for part in means], dtype=float)
    noise_share = np.sum(count / np.array(width)) / max(np.sum(count), 1.0)
    from_noise = np.sqrt(noise_share * noise.mean_square_residual(pair, u))
    return residual, np.where(np.isfinite(residual), from_noise, np.nan)


def _window_means(
    T_world_body: Float[Array, "frame body 4 4"], width: int
) -> Float[Array, "window body 4 4"]:
    """Return the means of the poses' entries over windows of `width` frames."""
    end = len(T_world_body) // width * width
    shape = (-1, width, *T_world_body.shape[1:])
    return np.asarray(T_world_body[:end].reshape(shape).mean(axis=1))
