"""When a point stands still: a model of two states, standing and moving."""

import numpy as np
from jaxtyping import Bool, Float

Array = np.ndarray

# Standing and moving points: speed along each axis, in heights of the figure a second
# (a person of 1.7 m: 3 cm/s and 1 m/s).
SLOW, FAST = 0.02, 0.6

# Half the time over which speed is measured, in seconds.
WINDOW = 0.025

# How often a point changes between standing and moving, per second.
CHANGES = 2.0

# Third differences of white noise are so many times as large as itself; a quarter of
# vectors of such noise are shorter than so many of its standard deviations.
THIRD, QUARTER = 20.0**0.5, 1.1012


def noise_of(paths: Float[Array, "frame spot 3"]) -> Float[Array, " spot"]:
    """Return the standard deviation of the white noise along each axis, in metres.

    From third differences, in which slow motion cancels; of these the quieter ones,
    which belong to frames in which the point stands.
    """
    jerk = np.linalg.norm(np.diff(paths, n=3, axis=0), axis=-1)
    jerk = jerk[np.isfinite(jerk).all(axis=1)]
    if not len(jerk):
        return np.zeros(paths.shape[1])
    return np.asarray(np.percentile(jerk, 25.0, axis=0) / (QUARTER * THIRD))


def standing(
    paths: Float[Array, "frame spot 3"],
    trust: Float[Array, "frame spot"],
    rate: float,
    tall: float,
) -> Bool[Array, "frame spot"]:
    """Return the frames in which each point most likely stands, by its speed.

    The most likely way (Viterbi) through a hidden Markov model: velocity is normal
    about zero in both states, narrow for standing, as wide as noise and skin make it,
    and wide for moving. Changes of state cost, so single frames do not flicker.

    Zordan2003, Sec. 3, calls a foot planted when the speed of its markers is below a
    threshold set by hand. Departures: the threshold follows from the noise of the
    recording, and neighbouring frames count.
    """
    half = max(round(WINDOW * rate), 1)
    velocity, spread = _velocity(paths, rate, half)
    still = np.hypot(spread * noise_of(paths), SLOW * tall)
    speed2 = np.sum(velocity**2, axis=-1)
    gain = 3.0 * np.log(FAST * tall / still)
    gain = gain - 0.5 * speed2 * (still**-2 - (FAST * tall) ** -2)
    # Frames of one window share their noise: together they are worth one.
    gain = np.where(np.isfinite(gain), trust * gain, 0.0) / (2 * half + 1)
    return likeliest(gain, float(np.log(max(rate / CHANGES, 2.0))))


def _velocity(
    paths: Float[Array, "frame spot 3"], rate: float, half: int
) -> tuple[Float[Array, "frame spot 3"], float]:
    """Return slopes of the best line through each window, and their noise per metre."""
    k = np.arange(-half, half + 1)
    weight = k * rate / np.sum(k**2)
    beyond = ((half, half), (0, 0), (0, 0))
    wide = np.pad(paths, beyond, mode="reflect", reflect_type="odd")
    views = np.lib.stride_tricks.sliding_window_view(wide, 2 * half + 1, axis=0)
    return views @ weight, float(np.linalg.norm(weight))


def likeliest(
    gain: Float[Array, "frame spot"], cost: float
) -> Bool[Array, "frame spot"]:
    """Return the states of the likeliest way through a model of two states.

    Args:
        gain: Log likelihood of the state above that of its absence, in every frame.
        cost: What a change of state costs, in the same measure.
    """
    n, spots = gain.shape
    lead = np.zeros(spots)
    stays = np.empty((2, n, spots), dtype=bool)
    for frame in range(n):
        # Coming from the other state is worth it where that leads by the cost.
        stays[1, frame], stays[0, frame] = lead > -cost, lead < cost
        lead = np.clip(lead, -cost, cost) + gain[frame]
    state = np.empty((n, spots), dtype=bool)
    now = lead > 0.0
    for frame in range(n - 1, -1, -1):
        state[frame] = now
        now = now == np.where(now, stays[1, frame], stays[0, frame])
    return state
