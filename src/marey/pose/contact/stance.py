r"""Stance: the frames in which a point stands, by its speed.

Stance is detected by a two-state hidden Markov model, decoded by the Viterbi algorithm.
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

from marey.numerics import Array, Bool, Float, geometry
from marey.numerics.noise import SMOOTH_ORDER, quantile_sd, white_difference
from marey.numerics.thresholds import FEW
from marey.pose.contact.points import PointTracks

STANDING_SPEED_SD = 0.02
"""Standard deviation of a standing point's velocity along each axis, in heights of the
figure per second (3 cm/s for a person of 1.7 m). Raising it lets slow motion count as
standing. Chosen by hand."""

MOVING_SPEED_SD = 0.6
"""Standard deviation of a moving point's velocity along each axis, in heights of the
figure per second (1 m/s for a person of 1.7 m). Raising it lets slow motion count as
standing. Chosen by hand."""

STATE_CHANGES_PER_S = 2.0
"""How often a point changes between standing and moving, per second. Raising it makes
changes cheaper and finds shorter stances. Chosen by hand."""


def estimate_noise(
    positions: Float[Array, "frame point 3"],
) -> Float[Array, " point"]:
    """Return the standard deviation of white noise along each axis, in metres.

    The estimate is a low quantile of the lengths of fourth differences over time, in
    which slow motion cancels; the quantile comes from frames in which the point stands.
    """
    size = geometry.lengths(white_difference(positions, SMOOTH_ORDER))
    return quantile_sd(size[np.isfinite(size).all(axis=1)], FEW)


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
    weight = _velocity_weights(tracks.rate, tracks.half_window)
    noise_sd = np.linalg.norm(weight) * estimate_noise(tracks.positions)
    standing_sd = np.hypot(noise_sd, STANDING_SPEED_SD * tracks.figure_height)
    moving_sd = MOVING_SPEED_SD * tracks.figure_height
    at_rest = 3.0 * np.log(moving_sd / standing_sd)
    per_square = 0.5 * (standing_sd**-2 - moving_sd**-2)
    change_cost = float(np.log(max(tracks.rate / STATE_CHANGES_PER_S, 2.0)))
    stands = np.empty(tracks.visibility.shape, dtype=bool)
    # Velocities of all points of a long take would be a third of it.
    for k, track in enumerate(np.moveaxis(tracks.positions, 1, 0)):
        squared_speed = np.sum(_velocity(track, weight) ** 2, axis=-1)
        log_odds = at_rest[k] - squared_speed * per_square[k]
        # Frames of a window share their noise: together they are one observation.
        log_odds *= tracks.visibility[:, k] / len(weight)
        known = np.where(np.isfinite(log_odds), log_odds, 0.0)
        stands[:, k] = viterbi_states(known[:, None], change_cost)[:, 0]
    return stands


def _velocity_weights(rate: float, half: int) -> Float[Array, " window"]:
    """Return the weights of positions in `2 * half + 1` frames for their slope, in 1/s.

    That of the least-squares line (a Savitzky-Golay filter of first order). The norm of
    the weights is the noise of the velocity over that of the positions.
    """
    k = np.arange(-half, half + 1)
    return np.asarray(k * rate / np.sum(k**2))


def _velocity(
    track: Float[Array, "frame 3"], weight: Float[Array, " window"]
) -> Float[Array, "frame 3"]:
    """Return the velocity of a point in m/s, from the weights of its positions."""
    half = len(weight) // 2
    padded = np.pad(track, ((half, half), (0, 0)), mode="reflect", reflect_type="odd")
    windows = np.lib.stride_tricks.sliding_window_view(padded, len(weight), axis=0)
    return np.asarray(windows @ weight)


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
    from marey.pose.contact.stance_kernel import most_likely_states  # numba is slow

    states: Bool[Array, "frame point"] = most_likely_states(log_odds, change_cost)
    return states
