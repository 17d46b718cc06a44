r"""Stance detection: a two-state hidden Markov model, decoded by the Viterbi algorithm.

A point either stands or moves. Its velocity is normal about zero in both states, with a
small standard deviation :math:`\sigma_s` while it stands and a large one
:math:`\sigma_m` while it moves. The log-odds of standing in one frame are

.. math:: \ell_t = 3 \log\frac{\sigma_m}{\sigma_s}
          - \tfrac12 |v_t|^2 \left(\sigma_s^{-2} - \sigma_m^{-2}\right),

and a change of state costs :math:`c = \log(\text{rate} / \text{changes per second})`.
The Viterbi path maximises the sum of :math:`\ell_t` over the standing frames minus
:math:`c` for every change, so single frames do not flicker.
"""

import numpy as np
from jaxtyping import Bool, Float

from marey.pose.contact.points import PointTracks

Array = np.ndarray

STANDING_SPEED_SD = 0.02
"""Standard deviation of a standing point's velocity along each axis, in heights of the
figure per second (3 cm/s for a person of 1.7 m). Raising it lets slow motion count as
standing. Chosen by hand."""

MOVING_SPEED_SD = 0.6
"""Standard deviation of a moving point's velocity along each axis, in heights of the
figure per second (1 m/s for a person of 1.7 m). Raising it lets slow motion count as
standing. Chosen by hand."""

VELOCITY_WINDOW_S = 0.025
"""Half of the time over which velocity is measured, in seconds. Raising it averages
more noise and blurs the ends of a stance. Chosen by hand."""

STATE_CHANGES_PER_S = 2.0
"""How often a point changes between standing and moving, per second. Raising it makes
changes cheaper and finds shorter stances. Chosen by hand."""

THIRD_DIFFERENCE_GAIN = 20.0**0.5
"""Standard deviation of third differences of white noise by its own: the norm of the
coefficients 1, -3, 3, -1."""

CHI3_QUARTILE = 1.1012
"""First quartile of the length of a vector of three standard normal numbers (chi
distribution, three degrees of freedom), to four decimals."""


def estimate_noise(
    positions: Float[Array, "frame point 3"],
) -> Float[Array, " point"]:
    """Return the standard deviation of white noise along each axis, in metres.

    The estimate is the first quartile of the lengths of third differences. Slow motion
    cancels in third differences, and the first quartile comes from frames in which the
    point stands.
    """
    jerk = np.linalg.norm(np.diff(positions, n=3, axis=0), axis=-1)
    jerk = jerk[np.isfinite(jerk).all(axis=1)]
    if not len(jerk):
        return np.zeros(positions.shape[1])
    quartile = np.percentile(jerk, 25.0, axis=0)
    return np.asarray(quartile / (CHI3_QUARTILE * THIRD_DIFFERENCE_GAIN))


def detect_stance(tracks: PointTracks) -> Bool[Array, "frame point"]:
    r"""Return the frames in which each point stands, by its speed.

    The states are the Viterbi path of the hidden Markov model above. The variance of a
    standing point's velocity is that of the measured noise plus that of skin motion:
    :math:`\sigma_s^2 = (\kappa\,\sigma_{noise})^2 + (0.02\,h)^2` for a figure of height
    :math:`h`, where :math:`\kappa` is the noise gain of the velocity filter.

    Zordan2003, Sec. 3, calls a foot planted when the speed of its markers is below a
    threshold that is set by hand. Departures: the threshold follows from the noise of
    the recording, and neighbouring frames count.
    """
    half = max(round(VELOCITY_WINDOW_S * tracks.rate), 1)
    velocity, noise_gain = _velocity(tracks.positions, tracks.rate, half)
    noise_sd = noise_gain * estimate_noise(tracks.positions)
    standing_sd = np.hypot(noise_sd, STANDING_SPEED_SD * tracks.figure_height)
    moving_sd = MOVING_SPEED_SD * tracks.figure_height
    squared_speed = np.sum(velocity**2, axis=-1)
    log_odds = 3.0 * np.log(moving_sd / standing_sd)
    log_odds = log_odds - 0.5 * squared_speed * (standing_sd**-2 - moving_sd**-2)
    # Frames of one window share their noise: together they count as one observation.
    weighted = np.where(np.isfinite(log_odds), tracks.visibility * log_odds, 0.0)
    change_cost = float(np.log(max(tracks.rate / STATE_CHANGES_PER_S, 2.0)))
    return viterbi_states(weighted / (2 * half + 1), change_cost)


def _velocity(
    positions: Float[Array, "frame point 3"], rate: float, half: int
) -> tuple[Float[Array, "frame point 3"], float]:
    """Return the velocity in m/s, and its noise by that of the positions, in 1/s.

    The velocity is the slope of the least-squares line through `2 * half + 1` frames
    (a Savitzky-Golay filter of first order).
    """
    k = np.arange(-half, half + 1)
    weight = k * rate / np.sum(k**2)
    margin = ((half, half), (0, 0), (0, 0))
    padded = np.pad(positions, margin, mode="reflect", reflect_type="odd")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1, axis=0)
    return windows @ weight, float(np.linalg.norm(weight))


def viterbi_states(
    log_odds: Float[Array, "frame point"], change_cost: float
) -> Bool[Array, "frame point"]:
    r"""Return the most likely states of a two-state hidden Markov model (Viterbi).

    With two states the scores of both best paths enter only by their difference
    :math:`D`, and the Viterbi recursion is

    .. math:: D_t = \mathrm{clip}(D_{t-1}, -c, c) + \ell_t.

    Where :math:`D_{t-1}` is beyond :math:`\pm c`, the best path changes its state
    before frame :math:`t`. The states follow by backtracking from the last frame.

    Args:
        log_odds: Log-likelihood ratio of the first state and the second, by frame.
        change_cost: Cost of a change of state, in the same unit.

    Returns:
        Whether each point is in the first state.
    """
    n_frames, n_points = log_odds.shape
    lead = np.zeros(n_points)
    stays = np.empty((2, n_frames, n_points), dtype=bool)
    for frame in range(n_frames):
        stays[1, frame], stays[0, frame] = lead > -change_cost, lead < change_cost
        lead = np.clip(lead, -change_cost, change_cost) + log_odds[frame]
    states = np.empty((n_frames, n_points), dtype=bool)
    state = lead > 0.0
    for frame in range(n_frames - 1, -1, -1):
        states[frame] = state
        state = state == np.where(state, stays[1, frame], stays[0, frame])
    return states
