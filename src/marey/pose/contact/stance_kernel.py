"""The Viterbi algorithm for two states, compiled."""

# mypy: ignore-errors

import numpy as np

from marey.numerics.arrays.new_kernel import empty
from marey.numerics.jit import njit


@njit(cache=True)
def most_likely_states(log_odds, change_cost):
    """Return (frame, point) whether each point is in the first state.

    Args:
        log_odds: (frame, point) log-likelihood ratio of the two states.
        change_cost: Cost of a change of state, in the same unit.
    """
    n_frames, n_points = log_odds.shape
    states = np.empty((n_frames, n_points), dtype=np.bool_)
    lead = empty(n_frames + 1)
    for point in range(n_points):
        lead[0] = 0.0
        for frame in range(n_frames):
            clipped = min(max(lead[frame], -change_cost), change_cost)
            lead[frame + 1] = clipped + log_odds[frame, point]
        state = lead[n_frames] > 0.0
        for frame in range(n_frames - 1, -1, -1):
            states[frame, point] = state
            stays = lead[frame] > -change_cost if state else lead[frame] < change_cost
            state = state == stays
    return states
