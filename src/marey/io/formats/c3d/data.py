"""The frames of a C3D file, read chunk by chunk into preallocated arrays."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from marey.io.formats.c3d.layout import POSE_WORDS, C3dLayout
from marey.numerics import Bool, Float, Shaped, UInt8

CHUNK_BYTES = 1 << 20
"""Bytes read at a time: small enough to stay in the processor's cache."""

CAMERA_MASK = 0x7F
"""Bits of the camera mask; the one above marks a point that was not seen."""

MAX_SAMPLE_FRAMES = 16
"""Largest number of frames that show where up is, if the file does not say it."""

Block = Shaped[np.ndarray, "frame word"]
Quads = Shaped[np.ndarray, "frame point 4"]


def read_points(
    path: Path, layout: C3dLayout
) -> tuple[
    Float[np.ndarray, "frame point 3"],
    Float[np.ndarray, "frame point"],
    UInt8[np.ndarray, "frame point"],
]:
    """Return all points in the file's unit, their residuals and camera masks."""
    size = (layout.frames, layout.points)
    xyz, residuals = np.empty((*size, 3)), np.empty(size)
    cameras = np.empty(size, np.uint8)
    for start, block in _blocks(path, layout):
        quads = _quads(block, layout)
        part = slice(start, start + len(block))
        seen = _fill_coordinates(quads, layout, xyz[part])
        words = np.where(seen, quads[..., 3], 0).astype(np.float32, copy=False)
        # An integer of two bytes, also in a file of reals: cameras, then residual.
        high = np.floor(words / 256.0)
        residual = (words - 256.0 * high) * layout.scale
        residuals[part] = np.where(seen, residual, -1.0)
        cameras[part] = np.clip(high, 0, CAMERA_MASK).astype(np.uint8)
    return xyz, residuals, cameras


def read_markers(
    path: Path,
    layout: C3dLayout,
    columns: list[int],
    convert: Callable[[Float[np.ndarray, "frame point 3"]], np.ndarray],
) -> tuple[Float[np.ndarray, "frame point 3"], int]:
    """Return some of the points, converted to other units and axes.

    The second value counts positions at the origin that the file calls seen.

    Args:
        path: The file.
        layout: Byte offsets and counts.
        columns: Which points, in this order.
        convert: Takes file units and axes to others; may reuse its argument.
    """
    out, at_origin = np.empty((layout.frames, len(columns), 3)), 0
    every = columns == list(range(layout.points))
    for start, block in _blocks(path, layout):
        quads = _quads(block, layout)
        quads = quads if every else quads[:, columns]
        part = out[start : start + len(block)]
        unseen = quads[~_fill_coordinates(quads, layout, part)]
        at_origin += int(((unseen[:, :3] == 0).all(axis=1) & (unseen[:, 3] >= 0)).sum())
        converted = convert(part)
        if converted is not part:
            part[...] = converted
    return out, at_origin


def read_analog(
    path: Path, layout: C3dLayout, *, unsigned: bool
) -> Float[np.ndarray, "sample channel"]:
    """Return the analog numbers as stored, without scale and offset."""
    out = np.empty((layout.frames, layout.samples, layout.channels))
    begin = 4 * layout.points
    stop = begin + layout.samples * layout.channels
    for start, block in _blocks(path, layout):
        stored = block[:, begin:stop]
        if unsigned and not layout.is_real:
            stored = np.ascontiguousarray(stored).view(np.uint16)
        shape = (len(block), layout.samples, layout.channels)
        with np.errstate(invalid="ignore"):
            out[start : start + len(block)] = stored.reshape(shape)
    return out.reshape(layout.frames * layout.samples, layout.channels)


def read_poses(path: Path, layout: C3dLayout) -> Float[np.ndarray, "frame sensor 4 4"]:
    """Return one pose per frame and segment of the ROTATION group; NaN = unseen."""
    poses = layout.poses
    out = np.full((layout.frames, poses.segments, 4, 4), np.nan)
    chunks = _chunks(path, poses.data, poses.frame_bytes, poses.frames)
    for start, chunk in chunks:
        stored = layout.encoding.reals(chunk)
        rows = stored.reshape(-1, poses.ratio, poses.segments, POSE_WORDS)
        out[start : start + len(rows)] = _matrices(rows[:, 0])
    return out


def read_sample(path: Path, layout: C3dLayout) -> Float[np.ndarray, "frame point 3"]:
    """Return the points of a few frames spread over the file, as they are stored."""
    frames = np.linspace(0, max(layout.frames - 1, 0), MAX_SAMPLE_FRAMES)
    chosen = np.unique(frames.astype(int))
    if not layout.frames or not layout.points:
        return np.zeros((0, layout.points, 3))
    out = np.empty((len(chosen), layout.points, 3))
    with path.open("rb") as handle:
        for i, frame in enumerate(chosen.tolist()):
            handle.seek(layout.data + frame * layout.frame_bytes)
            block = _decode_frames(handle.read(layout.frame_bytes), layout)
            _fill_coordinates(_quads(block, layout), layout, out[i : i + 1])
    return out


def _blocks(path: Path, layout: C3dLayout) -> Iterator[tuple[int, Block]]:
    """Yield the first frame and the numbers of one chunk after the other."""
    chunks = _chunks(path, layout.data, layout.frame_bytes, layout.frames)
    return ((start, _decode_frames(chunk, layout)) for start, chunk in chunks)


def _chunks(
    path: Path, data: int, frame_bytes: int, frames: int
) -> Iterator[tuple[int, memoryview]]:
    """Yield the first frame and the bytes of one chunk after the other.

    Args:
        path: The file.
        data: Byte where the frames begin.
        frame_bytes: Length of a frame; no frame is read if it is zero.
        frames: How many there are; what the file lacks of them is zero.
    """
    step = max(CHUNK_BYTES // max(frame_bytes, 1), 1)
    buffer = memoryview(bytearray(min(step, frames) * frame_bytes))
    with path.open("rb") as handle:
        handle.seek(data)
        for start in range(0, frames if frame_bytes else 0, step):
            chunk = buffer[: min(step, frames - start) * frame_bytes]
            got = handle.readinto(chunk)
            chunk[got:] = bytes(len(chunk) - got)
            yield start, chunk


def _decode_frames(chunk: bytes | memoryview, layout: C3dLayout) -> Block:
    encoding = layout.encoding
    numbers = encoding.reals(chunk) if layout.is_real else encoding.integers(chunk)
    return numbers.reshape(-1, layout.words)


def _quads(block: Block, layout: C3dLayout) -> Quads:
    """Return x, y, z and the word of residual and cameras of every point."""
    return block[:, : 4 * layout.points].reshape(len(block), layout.points, 4)


def _fill_coordinates(
    quads: Quads, layout: C3dLayout, out: Float[np.ndarray, "frame point 3"]
) -> Bool[np.ndarray, "frame point"]:
    """Write coordinates, NaN where unseen, and return what was seen.

    A point is unseen when its last word is negative. Much software instead writes zero
    coordinates for it, so a point exactly at the origin counts as unseen as well.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        out[...] = quads[..., :3]
        if not layout.is_real:
            out *= layout.scale
        x, y, z = out[..., 0], out[..., 1], out[..., 2]
        seen = np.isfinite(x + y + z) & (quads[..., 3] >= 0)
        seen &= (x != 0.0) | (y != 0.0) | (z != 0.0)
    if not seen.all():
        out[~seen] = np.nan
    return np.asarray(seen)


def _matrices(
    rows: Float[np.ndarray, "frame sensor 17"],
) -> Float[np.ndarray, "frame sensor 4 4"]:
    """Return 4 x 4 matrices, stored column after column; NaN where unseen."""
    matrices = rows[..., :16].reshape(*rows.shape[:2], 4, 4).swapaxes(-1, -2)
    with np.errstate(invalid="ignore"):
        out = matrices.astype(float)
    seen = np.isfinite(out).all(axis=(-1, -2)) & (rows[..., 16] >= 0)
    out[~seen] = np.nan
    return out
