"""Compiled parsing of AMC frames: lines of a bone's name and its numbers."""

# mypy: ignore-errors

import numpy as np

from marey.io.text.number_kernel import (
    LONG,
    NEWLINE,
    NUMBER,
    SPACE,
    U1,
    is_blank,
    parse_number_cell,
)
from marey.numerics.jit import NO_WRAPPERS, njit

FINE, NO_FRAME, NO_BONE, NO_NUMBER, COUNT = 0, 1, 2, 3, 4
"""How parsing ended."""

COLON, HASH = 58, 35


@njit(cache=True, inline="always")
def _skip_blanks(data, i):
    """Return the index of the first byte that is no blank, or of the line end."""
    while data[i] != NEWLINE and is_blank(data[i]):
        i += U1
    return i


@njit(cache=True, inline="always")
def _word_end(data, i):
    """Return the index of the first blank from data[i] on."""
    while not is_blank(data[i]):
        i += U1
    return i


@njit(cache=True, inline="always")
def _next_word(data, i):
    """Return the index of the next word, beyond blank lines and comments."""
    size = np.uint64(data.size)
    while i < size:
        i = _skip_blanks(data, i)
        if data[i] != NEWLINE and data[i] != HASH and data[i] != COLON:
            break
        while data[i] != NEWLINE:
            i += U1
        i += U1
    return i


@njit(cache=True)
def parse_frames(data, names, name_start, first, values, status, numbers):
    """Fill the channels of every frame.

    Args:
        data: Text, ending in a line end.
        names: The bones' names in alphabetical order, one after the other.
        name_start: Where each name begins in `names` (bone + 1).
        first: First and last channel of each bone (bone, 2).
        values: Output (frame, channel); for a LONG number its byte offset.
        status: Output (frame, channel); stays as it is where a bone is missing.
        numbers: Output (frame,); the frame numbers.

    Returns:
        How it ended, the byte where, and the number of frames.
    """
    size = np.uint64(data.size)
    follower = np.arange(1, name_start.size + 1)
    bone = -1
    frame = -1
    i = _next_word(data, np.uint64(0))
    while i < size:
        start, end = i, _word_end(data, i)
        i = _skip_blanks(data, end)
        if data[i] == NEWLINE and _frame_number(data, start, end) >= 0:
            frame += 1
            numbers[frame] = _frame_number(data, start, end)
            i = _next_word(data, i)
            continue
        if frame < 0:
            return NO_FRAME, start, 0
        last, bone = bone, follower[bone]
        if not _same(data, start, end, names, name_start, bone):
            bone = follower[last] = _find(data, start, end, names, name_start)
        if bone < 0:
            return NO_BONE, start, frame + 1
        most = first[bone, 1]
        ended, i, channel = _parse_channels(
            data, i, first[bone, 0], most, frame, values, status
        )
        if ended != FINE:
            return ended, i, frame + 1
        i = _next_word(data, i)
        # Only the last line may stop short: the file was cut there.
        if channel < most and i < size:
            return COUNT, start, frame + 1
    return FINE, i, frame + 1


@njit(cache=True, inline="always")
def _parse_channels(data, i, channel, most, frame, values, status):
    """Fill the channels of a bone; return how it ended, where, and the last channel."""
    while data[i] != NEWLINE:
        at = i
        kind, value, i = parse_number_cell(data, i, SPACE)
        if channel >= most:
            return COUNT, at, channel
        if kind != NUMBER and kind != LONG:
            return NO_NUMBER, at, channel
        values[frame, channel] = value
        status[frame, channel] = kind
        channel += 1
        i = _skip_blanks(data, i)
    return FINE, i, channel


@njit(cache=True, **NO_WRAPPERS)
def _frame_number(data, start, end):
    """Return the number of a frame by its first 15 digits; -1 of any other word."""
    value = 0
    for i in range(start, end):
        if not 48 <= data[i] <= 57:
            return -1
        if i < start + np.uint64(15):
            value = value * 10 + (np.int64(data[i]) - 48)
    return value


@njit(cache=True, **NO_WRAPPERS)
def _same(data, start, end, names, name_start, bone):
    if bone >= name_start.size - 1:
        return False
    at = name_start[bone]
    if name_start[bone + 1] - at != np.int64(end - start):
        return False
    for k in range(np.int64(end - start)):
        if data[start + np.uint64(k)] != names[at + k]:
            return False
    return True


@njit(cache=True, **NO_WRAPPERS)
def _find(data, start, end, names, name_start):
    """Return the bone of this name by bisection, -1 if there is none."""
    low, high = 0, name_start.size - 1
    while low < high:
        middle = (low + high) // 2
        if _before(names, name_start, middle, data, start, end):
            low = middle + 1
        else:
            high = middle
    return low if _same(data, start, end, names, name_start, low) else -1


@njit(cache=True, **NO_WRAPPERS)
def _before(names, name_start, bone, data, start, end):
    """Whether a bone's name comes before the word in the alphabet."""
    at, stop = name_start[bone], name_start[bone + 1]
    k = start
    while at < stop and k < end:
        if names[at] != data[k]:
            return names[at] < data[k]
        at += 1
        k += U1
    return at == stop and k < end
