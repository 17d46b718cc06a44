"""Some frames of a recording, and poses between its frames."""

from collections.abc import Iterator, Sequence

import numpy as np

from marey.numerics import Array, Float, Int, geometry
from marey.numerics.thresholds import FRAMES_PER_CHUNK, SAMPLE_FRAMES

SAME_FRAME = 1e-9
"""Distance from a frame, in frames, within which a time is that frame."""


def evenly_spaced(n_frames: int, max_frames: int = SAMPLE_FRAMES) -> slice:
    """Return a slice of evenly spaced frames, at most a given number."""
    return slice(None, None, max(-(-n_frames // max_frames), 1))


def frame_blocks(n_frames: int) -> Iterator[slice]:
    """Yield consecutive frames, as many as one step of a calculation uses.

    There is at least one block. Arrays of all frames of a long recording would be as
    large as the recording, and their memory would have to be allocated again each time.
    """
    for first in range(0, max(n_frames, 1), FRAMES_PER_CHUNK):
        yield slice(first, first + FRAMES_PER_CHUNK)


def stack_spans(
    spans: Sequence[range | Int[Array, " _"]],
) -> tuple[Int[Array, " item"], Int[Array, " item"]]:
    """Return the frames of several spans in one array, and the span of each."""
    frames = [np.asarray(span, dtype=np.int64) for span in spans]
    frame = np.concatenate([np.zeros(0, dtype=np.int64), *frames])
    return frame, np.repeat(np.arange(len(spans)), [len(span) for span in spans])


def symmetric_sample(n_frames: int, max_frames: int) -> Int[Array, " frame"]:
    """Return evenly spaced frames, at most a given number, the same in both directions.

    A take that is played backwards has the same sample, with one exception: of an even
    number of frames, an odd number cannot be symmetric, so it is reduced by one.
    """
    count = min(n_frames, max_frames)
    if 1 < count < n_frames:
        count -= (count % 2) * (1 - n_frames % 2)
    half = (count + 1) // 2
    first = np.arange(half) * (n_frames - 1) // max(count - 1, 1)
    return np.concatenate([first, (n_frames - 1 - first)[: count - half][::-1]])


def frames_at_rate(n_frames: int, step: float) -> Float[Array, " frame"]:
    """Return the fractional frames of a recording at another frame rate.

    Args:
        n_frames: Frames of the recording.
        step: Its frames from one frame at the other rate to the next.
    """
    last = max(n_frames - 1, 0)
    wanted = np.arange(int(last / step + SAME_FRAME) + 1) * step
    return snap_to_frames(wanted, SAME_FRAME, last).clip(0, last)


def snap_to_frames(
    position: Float[Array, " time"],
    tolerance: Float[Array, " time"] | float,
    last: int,
) -> Float[Array, " time"]:
    """Return fractional frames, rounded where that changes them by less than allowed.

    Args:
        position: Fractional frames.
        tolerance: The largest change, in frames.
        last: The last frame; beyond it nothing is rounded to.
    """
    nearest = np.round(position).clip(0, last)
    return np.where(np.abs(position - nearest) < tolerance, nearest, position)


def resample_poses(
    T: Float[Array, "frame *item 4 4"], frames: float
) -> Float[Array, "frame *item 4 4"]:
    """Return the poses a number of frames later, between frames by interpolation.

    Cubic (Lagrange, four frames) on the matrices, then the nearest rotation; linear
    next to gaps and ends. NaN beyond the ends and inside gaps. A whole number of frames
    gives the recorded poses themselves.

    Args:
        T: Poses, NaN where unknown.
        frames: How much later, in frames; may be negative or a fraction.
    """
    whole = int(np.floor(frames))
    share = frames - whole
    if share == 0.0:
        return _shift_frames(T, whole)
    before, first, second, after = (_shift_frames(T, whole + k) for k in range(-1, 3))
    linear = (1.0 - share) * first + share * second
    cubic = (
        (1.0 - share * share) * (2.0 - share) / 2.0 * first
        + share * (1.0 + share) * (2.0 - share) / 2.0 * second
        - share * (1.0 - share) * (2.0 - share) / 6.0 * before
        - share * (1.0 - share * share) / 6.0 * after
    )
    known = np.isfinite(cubic).all(axis=(-1, -2), keepdims=True)
    shifted = np.where(known, cubic, linear)
    return geometry.transform(
        geometry.nearest_rotation(shifted[..., :3, :3]), shifted[..., :3, 3]
    )


def _shift_frames(
    T: Float[Array, "frame *item 4 4"], frames: int
) -> Float[Array, "frame *item 4 4"]:
    """Return the poses a whole number of frames later; NaN beyond the ends."""
    shifted = np.full_like(T, np.nan)
    n = len(T) - abs(frames)
    if n > 0:
        first = max(frames, 0)
        shifted[max(-frames, 0) :][:n] = T[first : first + n]
    return shifted
