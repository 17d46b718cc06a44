"""Corruption of the measured signal: field distortion, noise, gaps, wrong labels."""

import numpy as np

from marey.numerics import Array, Int, geometry
from marey.synth.corruption.state import CorruptionState, random_directions
from marey.synth.performance.curves import random_waves

Span = tuple[int, int]

N_FIELD_WAVES = 60
"""Number of plane waves in a distorted field. More waves make the displacement closer
to a Gaussian random field. Chosen by hand."""

PHANTOM_SPREAD_M = (0.8, 0.8, 0.5)
"""Standard deviation of a phantom's distance from a figure's mean root position, per
axis, in metres. Larger values put phantoms farther away. Chosen by hand."""

PHANTOM_DRIFT_M, PHANTOM_DRIFT_HZ = 0.05, 0.2
"""Amplitude (metres) and mean frequency of a phantom's drift. Larger values make
phantoms move more. Chosen by hand."""


def distort_magnetic_field(state: CorruptionState) -> None:
    r"""Displace and rotate the sensors by a smooth random field of their position.

    The displacement is a sum of random plane waves,

    .. math:: u(x) = \sum_k a_k \cos(k \cdot x + \varphi_k),

    and each sensor rotates by half the curl of it, as a deforming solid does.
    """
    rng, options = state.rng("field"), state.options
    wave_vector = rng.normal(size=(N_FIELD_WAVES, 3)) / options.field_scale
    phase = rng.uniform(0.0, 2.0 * np.pi, N_FIELD_WAVES)
    amplitude = (
        rng.normal(size=(N_FIELD_WAVES, 3))
        * options.field
        * np.sqrt(2.0 / N_FIELD_WAVES)
    )
    argument = state.sensor_position @ wave_vector.T + phase
    rotvec = -0.5 * np.sin(argument) @ np.cross(wave_vector, amplitude)
    state.sensor_position[:] += np.cos(argument) @ amplitude
    state.sensor_rotation[:] = geometry.rotation_exp(rotvec) @ state.sensor_rotation
    state.log_event("field", size=options.field, item="sensor")


def delay_sensors(state: CorruptionState) -> None:
    """Show the motion of the sensors later, by cubic splines of their poses.

    Poses from before the first frame, or after the last, are missing.
    """
    from scipy.interpolate import CubicSpline

    n, delay = len(state.T_world_sensor), state.options.sensor_delay
    time = np.arange(n) - delay * state.rate
    if n > 1 and state.T_world_sensor.size:
        spline = CubicSpline(np.arange(n), state.T_world_sensor)
        state.T_world_sensor[:] = spline(time)
        state.sensor_rotation[:] = geometry.nearest_rotation(state.sensor_rotation)
    state.T_world_sensor[(time < 0.0) | (time > n - 1)] = np.nan
    state.log_event("sensor_delay", size=delay, item="sensor")


def scale_positions(state: CorruptionState) -> None:
    """Multiply all positions by the scale factor, about the origin of the world."""
    for _, positions in state.positions():
        positions *= state.options.scale
    state.log_event("scale", size=state.options.scale)


def add_coloured_noise(state: CorruptionState) -> None:
    r"""Add coloured noise: a first-order autoregression, stationary from frame 0 on.

    .. math:: x_{t+1} = \phi x_t + \sqrt{1 - \phi^2} \, \varepsilon_t,
        \quad \phi = e^{-1 / (\tau \, rate)}
    """
    rng, options = state.rng("coloured"), state.options
    phi = np.exp(-1.0 / (options.coloured_time * state.rate))
    for _, positions in state.positions():
        noise = rng.normal(size=positions.shape[1:])
        for frame in positions:
            frame += options.coloured * noise
            innovation = rng.normal(size=noise.shape)
            noise = phi * noise + np.sqrt(1.0 - phi**2) * innovation
    state.log_event("coloured", size=options.coloured)


def add_white_noise(state: CorruptionState) -> None:
    """Add white Gaussian noise to all positions."""
    rng = state.rng("noise")
    for _, positions in state.positions():
        positions += state.options.noise * rng.normal(size=positions.shape)
    state.log_event("noise", size=state.options.noise)


def add_orientation_noise(state: CorruptionState) -> None:
    """Rotate each sensor in each frame by white noise about its own axes."""
    draws = state.rng("turn_noise").normal(size=state.sensor_position.shape)
    noise = geometry.rotation_exp(state.options.turn_noise * draws)
    state.sensor_rotation[:] = state.sensor_rotation @ noise
    state.log_event("turn_noise", size=state.options.turn_noise, item="sensor")


def add_gross_errors(state: CorruptionState) -> None:
    """Add gross errors: in a share of its frames each item is far from the truth.

    Errors have random directions and exponentially distributed lengths, after the
    example of Bodenheimer1997.
    """
    rng, n_frames = state.rng("gross"), len(state.points)
    count = round(state.options.gross * n_frames)
    for item, positions in state.positions():
        for index in range(positions.shape[1]):
            frames = np.sort(rng.choice(n_frames, count, replace=False))
            sizes = rng.exponential(state.options.gross_size, count)
            positions[frames, index] += sizes[:, None] * random_directions(rng, count)
            for frame, size in zip(frames.tolist(), sizes.tolist(), strict=True):
                state.log_event("gross", size, item, index, first=frame, last=frame)


def add_phantom_markers(state: CorruptionState) -> None:
    """Show each phantom marker near one of the figures, for a random span of frames."""
    rng, n_frames = state.rng("phantoms"), len(state.points)
    times = np.arange(n_frames) / state.rate
    roots = [motion.T_world_root[:, :3, 3] for motion in state.truth.motions]
    for index in np.flatnonzero(state.truth.marker_joint < 0).tolist():
        first, last = np.sort(rng.choice(n_frames, 2, replace=n_frames < 2)).tolist()
        root = roots[int(rng.integers(len(roots)))].mean(axis=0)
        center = root + rng.normal(size=3) * PHANTOM_SPREAD_M
        waves = random_waves(rng, times, 3, hertz=PHANTOM_DRIFT_HZ)
        visible = slice(first, last + 1)
        state.points[visible, index] = (center + PHANTOM_DRIFT_M * waves)[visible]
        state.log_event("phantoms", 0.0, "marker", index, first=first, last=last)


def swap_labels(state: CorruptionState) -> None:
    """Swap the labels of a random marker and its nearest neighbour for a while.

    The nearest neighbour is that of the first frame of the swap. Lengths of swaps are
    exponentially distributed.
    """
    rng, n_frames = state.rng("swaps"), len(state.points)
    markers = np.flatnonzero(state.truth.marker_joint >= 0)
    if len(markers) < 2:
        return
    for _ in range(state.options.swaps):
        first = int(rng.integers(n_frames))
        length = rng.exponential(state.options.swap_seconds * state.rate)
        last = min(first + int(length), n_frames - 1)
        a = int(rng.choice(markers))
        points = state.truth.points[first]
        distance = np.linalg.norm(points - points[a], axis=-1)
        distance[a] = np.inf
        b = int(np.nanargmin(distance))
        frames = slice(first, last + 1)
        state.points[frames, [a, b]] = state.points[frames, [b, a]]
        state.log_event("swaps", distance[b], "marker", a, first, last, other=b)


def add_gaps(state: CorruptionState) -> None:
    """Hide markers and sensors in gaps. Each loses exactly its share of the frames."""
    options, truth = state.options, state.truth
    shares = [options.gap_of.get(label, options.gaps) for label in truth.marker_labels]
    sensor_shares = [options.sensor_gaps] * len(truth.sensor_joint)
    for kind, item, values, every in (
        ("gaps", "marker", state.points, shares),
        ("sensor_gaps", "sensor", state.T_world_sensor, sensor_shares),
    ):
        rng, length = state.rng(kind), options.gap_seconds * state.rate
        for index, share in enumerate(every):
            gaps = _draw_gaps(rng, len(values), share, length)
            if item == "marker" and truth.marker_joint[index] < 0:
                continue
            for first, last in gaps:
                values[first : last + 1, index] = np.nan
                seconds = (last - first + 1) / state.rate
                state.log_event(kind, seconds, item, index, first, last)


def _draw_gaps(
    rng: np.random.Generator, n_frames: int, share: float, mean_length: float
) -> list[Span]:
    """Return random gaps (first and last frame) that together hold a share of frames.

    At least one frame lies between two gaps.
    """
    n_lost = round(share * n_frames)
    if n_lost == 0:
        return []
    count = round(n_lost / max(mean_length, 1.0))
    count = min(max(count, 1), n_lost, n_frames - n_lost + 1)
    lengths = 1 + _random_partition(rng, n_lost - count, count)
    between = np.ones(count + 1, dtype=np.int64)
    between[[0, -1]] = 0
    between += _random_partition(rng, n_frames - n_lost - (count - 1), count + 1)
    starts = np.cumsum(between[:-1]) + np.cumsum(lengths) - lengths
    return [*zip(starts.tolist(), (starts + lengths - 1).tolist(), strict=True)]


def _random_partition(
    rng: np.random.Generator, total: int, count: int
) -> Int[Array, " count"]:
    """Return whole numbers, zero or more, that add up to a total."""
    cuts = np.sort(rng.integers(0, total + 1, count - 1))
    return np.diff(cuts, prepend=0, append=total).astype(np.int64)


def drop_frames(state: CorruptionState) -> None:
    """Lose whole frames: each is empty or repeats the frame before it."""
    n_frames, options = len(state.points), state.options
    order = 1 + state.rng("dropped").permutation(n_frames - 1)
    for frame in np.sort(order[: round(options.dropped * n_frames)]).tolist():
        for values in (state.points, state.T_world_sensor):
            repeat = options.drop_style == "repeat"
            values[frame] = values[frame - 1] if repeat else np.nan
        state.log_event("dropped", 1.0 / state.rate, first=frame, last=frame)
