"""TRB, the binary marker file of Motion Analysis (EVa, Cortex).

The file is made of 32-bit little-endian words. A header of tagged items gives the rate,
the names of the markers and the links between them. Then comes one record per frame:
its number, its length, and number, position, residual and cameras of every marker seen;
markers not seen are left out. Neither unit nor axes nor the number of frames are
stated, so a file cut off exactly between two frames looks like a whole one.
"""

import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from marey.io.contract import Format
from marey.io.file import Facts, File
from marey.io.text.encoding import decode_text
from marey.io.text.names import unique_names
from marey.numerics import Float, Int, UInt16
from marey.take import Take

MAGIC = b"\0\0\0\0\xff\xff\xff\xff"
ITEM = struct.Struct("<HH")
"""Tag and length in words of a header item."""

RECORD_SIZE = 12
"""Bytes before the markers of a frame: four of zero, tag, frame number, length in words
and two of zero."""

MARKER_RECORD = np.dtype(
    [
        ("number", "<u2"),
        ("spare", "<u2"),
        ("xyz", "<f4", (3,)),
        ("residual", "<f4"),
        ("cameras", "<u4"),
    ]
)
FIRST_ITEM, WORD, WRAP = 12, 4, 2**16
RATE, MARKER, LINK, FRAME = 0x0103, 0x010C, 0x010D, 0x0600

# Markers not seen take no room in the file: this many more may be asked for.
SPARE_CELLS = 1_000_000


@dataclass(slots=True)
class _TrbHeader:
    """Tagged items of the header; `data_at` is the byte of the first frame."""

    data_at: int
    rate: float = np.nan
    markers: dict[int, str] = field(default_factory=dict)
    """Names by number."""

    links: list[tuple[str, int, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class _TrbFrames:
    """Frame records: number, byte offset and marker count of each."""

    number: np.ndarray
    """Frame numbers, strictly growing."""

    start: np.ndarray
    """Byte of the first marker of each frame."""

    seen: np.ndarray
    """Markers in each frame."""


def sniff(head: bytes) -> bool:
    """Whether a file begins like a TRB."""
    return head.startswith(MAGIC)


def read_take(file: File) -> Take:
    """Return the take of a TRB file.

    The length unit is by custom mm and the up axis z: the file states neither.
    """
    data = file.content()
    header = _header(file, data)
    frames = _frames(file, data, header.data_at)
    points = _points(file, data, header, frames)
    labels = unique_names(file, tuple(header.markers.values()), "marker")
    name = dict(zip(header.markers, labels, strict=True))
    facts = Facts(
        file.decide_fact("unit", assumed="mm", note="TRB does not state it"),
        file.decide_fact("up", assumed="z", note="TRB does not state it"),
        file.decide_fact(
            "rate",
            stated=None if np.isnan(header.rate) else f"{header.rate:.10g}",
            assumed="100",
            note="item 0x0103",
        ),
    )
    links = [
        f"{text}: {name[a]} - {name[b]}"
        for text, a, b in header.links
        if a in name and b in name
    ]
    return file.take(
        facts,
        points=points,
        labels=labels,
        start=(int(frames.number[0]) - 1) / facts.hertz,
        parameters={"links": tuple(links)},
    )


def _header(file: File, data: bytes) -> _TrbHeader:
    header = _TrbHeader(data_at=_frames_offset(file, data))
    for tag, body in _items(file, data, header.data_at):
        if tag == RATE and len(body) == WORD:
            (rate,) = struct.unpack("<f", body)
            header.rate = rate if 0.0 < rate < np.inf else np.nan
        elif tag == MARKER and len(body) > WORD:
            (number,) = struct.unpack_from("<H", body)
            header.markers.setdefault(number, _text(body[WORD:]) or f"M{number}")
        elif tag == LINK and len(body) >= 2 * WORD:
            _, a, b = struct.unpack_from("<HHH", body)
            header.links.append((_text(body[2 * WORD :]), a, b))
    if not header.markers:
        file.fail("names of markers", "none", byte=FIRST_ITEM)
    return header


def _frames_offset(file: File, data: bytes) -> int:
    """Return the byte at which the frames begin; the high half comes before the low."""
    if not data.startswith(MAGIC):
        file.fail(MAGIC.hex(" "), data[:8].hex(" "), byte=0)
    if len(data) < FIRST_ITEM:
        file.fail("a header", "the end of the file", byte=len(data))
    high, low = struct.unpack_from("<HH", data, len(MAGIC))
    data_at = WORD * (high << 16 | low)
    if not FIRST_ITEM < data_at <= len(data):
        file.fail(
            f"where the frames begin, within {len(data)} bytes",
            f"byte {data_at}",
            byte=len(MAGIC),
        )
    return int(data_at)


def _items(file: File, data: bytes, end: int) -> Iterator[tuple[int, bytes]]:
    """Return tag and content of each item of the header."""
    at = FIRST_ITEM
    while at < end:
        tag, words = ITEM.unpack_from(data, at)
        after = at + ITEM.size + WORD * words
        if after > end:
            file.fail(
                f"an item that ends by byte {end}",
                f"item {tag:#06x} of {words} words",
                byte=at,
            )
        yield tag, data[at + ITEM.size : after]
        at = after


def _text(body: bytes) -> str:
    """Return a name: the text before the first zero byte."""
    return decode_text(body.partition(b"\0")[0]).strip()


# --- frames --------------------------------------------------------------------------


def _frames(file: File, data: bytes, at: int) -> _TrbFrames:
    """Return where the frames are; one that is cut off at the end is left out."""
    halves = np.frombuffer(data, "<u2", len(data) // 2).astype(np.uint16)
    start = _starts(halves, at)
    zero, more, tag, number, words, spare = (
        halves[start // 2 + k].astype(np.int64) for k in range(6)
    )
    seen, rest = np.divmod(WORD * words - RECORD_SIZE, MARKER_RECORD.itemsize)
    invalid = np.flatnonzero(zero | more | spare | rest | (tag ^ FRAME))
    if len(invalid):
        file.fail(
            f"a frame, tag {FRAME:#06x}, of 3 + 6 n words",
            f"tag {tag[invalid[0]]:#06x} of {words[invalid[0]]} words",
            byte=int(start[invalid[0]]),
        )
    end = start + WORD * words
    count = int((end <= len(data)).sum())
    if count == 0:
        file.fail("a frame", "the end of the file", byte=at)
    if end[-1] != len(data):
        file.note(
            "frames-missing",
            f"the file is cut off within a frame: {count} whole frames present",
            value=count,
        )
    number = _unwrap_numbers(file, start[:count], number[:count])
    return _TrbFrames(number, start[:count] + RECORD_SIZE, seen[:count])


def _starts(halves: UInt16[np.ndarray, " half"], at: int) -> Int[np.ndarray, " frame"]:
    """Return the byte of every record; the length of each leads to the next."""
    length = halves.data
    starts = array("q")
    while at + RECORD_SIZE <= 2 * len(length):
        starts.append(at)
        at += max(WORD * length[at // 2 + 4], RECORD_SIZE)
    return np.array(starts, dtype=np.int64)


def _unwrap_numbers(
    file: File, start: np.ndarray, number: Int[np.ndarray, " frame"]
) -> Int[np.ndarray, " frame"]:
    """Return frame numbers that go on where 16 bits overflow."""
    wrapped = (number[:-1] == WRAP - 1) & (number[1:] == 0)
    number[1:] += WRAP * np.cumsum(wrapped)
    back = np.flatnonzero(np.diff(number) <= 0)
    if len(back):
        before, found = number[back[0] : back[0] + 2]
        file.fail(
            f"a frame after {before}", f"frame {found}", byte=int(start[back[0] + 1])
        )
    return number


def _points(
    file: File, data: bytes, header: _TrbHeader, frames: _TrbFrames
) -> Float[np.ndarray, "frame point 3"]:
    """Return positions in the order of the header; NaN where a marker was not seen."""
    first, last = int(frames.number[0]), int(frames.number[-1])
    size = (last - first + 1, len(header.markers))
    if size[0] * size[1] > len(data) // 2 + SPARE_CELLS:
        file.fail(
            "frames that fill the file",
            f"{size[0]} frames of {size[1]} markers in {len(data)} bytes",
            byte=header.data_at,
        )
    if len(frames.number) < size[0]:
        file.note(
            "frames-missing",
            f"frames declared {size[0]} by their numbers, present "
            f"{len(frames.number)}: export it again if some are missing",
            value=len(frames.number) - size[0],
        )
    records = _marker_records(data, frames)
    column = np.full(WRAP, -1)
    column[list(header.markers)] = np.arange(size[1])
    row = np.repeat(frames.number - first, frames.seen)
    marker = column[records["number"]]
    named = marker >= 0
    unnamed = int((~named).sum())
    file.note_count(
        "points-unnamed", unnamed, "{} positions belong to unnamed markers: left out"
    )
    valid = named & np.isfinite(records["xyz"]).all(axis=-1)
    points = np.full((*size, 3), np.nan)
    with np.errstate(invalid="ignore"):
        points[row[valid], marker[valid]] = records["xyz"][valid]
    return points


def _marker_records(data: bytes, frames: _TrbFrames) -> np.ndarray:
    """Return the records of all markers seen, frame after frame."""
    count = int(frames.seen.sum())
    ends = np.cumsum(frames.seen)
    within = np.arange(count) - np.repeat(ends - frames.seen, frames.seen)
    start = np.repeat(frames.start, frames.seen) + MARKER_RECORD.itemsize * within
    whole = np.frombuffer(data, np.uint32, count=len(data) // WORD)
    words = whole[start[:, None] // WORD + np.arange(MARKER_RECORD.itemsize // WORD)]
    return np.asarray(words.view(MARKER_RECORD)[:, 0])


FORMAT = Format(
    name="trb",
    title="TRB (Motion Analysis, binary)",
    suffixes=(".trb",),
    sniff=sniff,
    read_take=read_take,
)
