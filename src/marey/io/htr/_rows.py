"""The parts of an HTR file: titled sections, segments and their rows of numbers."""

import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from marey.io._format import File, decoded
from marey.io._numbers import parse_number
from marey.io._tables import read_numbers
from marey.io._text import LARGEST

HEADER, HIERARCHY, BASE = "header", "segmentnames&hierarchy", "baseposition"
END = "endoffile"
SECTION = re.compile(rb"^[ \t]*\[([^\]\n]*)\][^\n]*$", re.MULTILINE)
COMMENT = re.compile(rb"#[^\n]*")
FRAME = re.compile(r"frame\s*(\d{1,9})\s*:?", re.IGNORECASE)
COLUMNS = 8
"""Frame number, translation, rotation and scale."""

MOST_SEGMENTS = 10_000
SAME_SCALE = 1e-5
"""How far from one a scale may be and still be one, rounded."""

# A full file has 16 bytes and more per pose; one that is cut off may ask for these too.
BYTES_PER_POSE = 16
SPARE_POSES = 200_000


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the file under its title."""

    name: str
    line: int
    """Number of the line after its title."""

    body: bytes


def sections(data: bytes) -> Iterator[Section]:
    """Return the parts of the file, one after the other, up to its declared end."""
    line, at = 1, 0
    title = SECTION.search(data)
    while title is not None:
        line += data.count(b"\n", at, title.start())
        at = title.start()
        follows = SECTION.search(data, title.end())
        stop = follows.start() if follows else len(data)
        name = decoded(title[1]).strip()
        if name.lower() == END:
            return
        yield Section(name, line + 1, data[title.end() + 1 : stop])
        title = follows


def next_section(file: File, sections: Iterator[Section], name: str) -> Section:
    """Return the next section, which must have this title."""
    section = next(sections, None)
    if section is None or section.name.lower() != name:
        found = "the end of the file" if section is None else f"[{section.name}]"
        line = None if section is None else section.line - 1
        raise file.error(line, expected=f"[{name}]", found=found, counted="line")
    return section


def _lines(section: Section) -> Iterator[tuple[int, list[str]]]:
    """Return number and words of each line; names between tabs may hold blanks."""
    for number, line in enumerate(section.body.split(b"\n"), section.line):
        text = decoded(line).strip()
        if text:
            words = text.split("\t") if "\t" in text else text.split()
            yield number, [word.strip() for word in words]


def header_of(section: Section) -> dict[str, str]:
    """Return values by keyword, in small letters."""
    pairs = (" ".join(words).partition(" ") for _, words in _lines(section))
    return {key.lower(): value.strip() for key, _, value in pairs}


def parents_of(file: File, section: Section) -> dict[str, str]:
    """Return the name of each segment's parent by the segment's own."""
    parents: dict[str, str] = {}
    for line, words in _lines(section):
        if len(words) != 2 or words[0] in parents or len(parents) >= MOST_SEGMENTS:
            file.fail_at_line(
                line,
                expected=f"a new segment and its parent, at most {MOST_SEGMENTS}",
                found=" ".join(words),
            )
        parents[words[0]] = words[1]
    if not parents:
        file.fail_at_line(section.line, expected="segments", found="none")
    return parents


class Rows:
    """Base pose and frames of all segments, as they are met."""

    def __init__(self, file: File, number: Mapping[str, int]) -> None:
        self.base = np.full((len(number), 6), np.nan)
        self._file, self._number = file, number
        self._moved: dict[int, array[float]] = {}

    def read(self, base: Section, sections: Iterator[Section]) -> None:
        """Read the base pose, then the frames by segment or (HTR2) by frame."""
        frame = None
        for line, words in _lines(base):
            title = FRAME.fullmatch(" ".join(words))
            if title:
                frame = float(title[1])
                continue
            segment, values = self._row(line, words)
            if frame is None:
                self.base[segment] = values[:6]
            else:
                self._moved.setdefault(segment, array("d")).extend([frame, *values])
        missing = np.flatnonzero(np.isnan(self.base).any(axis=1))
        if len(missing):
            name = list(self._number)[missing[0]]
            self._file.fail_at_line(
                base.line, expected=f"a base pose of {name!r}", found="none"
            )
        for section in sections:
            self._read_segment(section)

    def _row(self, line: int, words: Sequence[str]) -> tuple[int, list[float]]:
        """Return segment and seven numbers of a line that begins with a name."""
        values = [parse_number(word) for word in words[1:]]
        known = [v for v in values if v is not None and abs(v) <= LARGEST]
        if len(words) != COLUMNS or words[0] not in self._number or len(known) != 7:
            self._file.fail_at_line(
                line, expected="a segment and seven numbers", found=" ".join(words)
            )
        return self._number[words[0]], known

    def _read_segment(self, section: Section) -> None:
        segment = self._number.get(section.name, -1)
        if segment < 0 or segment in self._moved:
            self._file.fail_at_line(
                section.line - 1,
                expected="the frames of another segment",
                found=f"[{section.name}]",
            )
        self._moved[segment] = array("d")
        if not section.body.strip():
            return
        table = read_numbers(
            self._file,
            section.body,
            columns=COLUMNS,
            delimiter=" ",
            first_line=section.line,
        )
        short = np.flatnonzero(table.cells < COLUMNS)
        # The last line may be cut off.
        if len(short) and short[0] < len(table.cells) - 1:
            self._file.fail_at_line(
                int(table.line[short[0]]), expected="eight numbers", found="fewer"
            )
        self._moved[segment].frombytes(table.values[table.cells == COLUMNS].tobytes())

    def frames(self, size: int) -> Float[np.ndarray, "frame segment 6"]:
        """Return translation and angles, NaN where the file has none.

        Args:
            size: Bytes of the file, which bound what it may ask for.
        """
        rows = {s: np.reshape(r, (-1, COLUMNS)) for s, r in self._moved.items() if r}
        numbers = np.concatenate([[], *(table[:, 0] for table in rows.values())])
        if len(numbers) == 0:
            raise self._file.error(None, expected="frames", found="none")
        first, last = numbers.min(), numbers.max()
        shape = (last - first + 1.0, len(self._number))
        if shape[0] * shape[1] > size / BYTES_PER_POSE + SPARE_POSES:
            raise self._file.error(
                None,
                expected="frames that fill the file",
                found=f"{shape[0]:g} frames of {shape[1]} segments in {size} bytes",
            )
        moved = np.full((int(shape[0]), shape[1], 7), np.nan)
        for segment, table in rows.items():
            self._check_frames(segment, table[:, 0])
            moved[(table[:, 0] - first).astype(np.int64), segment] = table[:, 1:]
        self._check_scale(moved[..., 6])
        return moved[..., :6].copy()

    def _check_frames(self, segment: int, numbers: np.ndarray) -> None:
        if (np.diff(numbers) <= 0.0).any() or (numbers != np.round(numbers)).any():
            raise self._file.error(
                None,
                expected="frames numbered upwards",
                found=f"others in segment {list(self._number)[segment]!r}",
            )

    def _check_scale(self, scale: np.ndarray) -> None:
        off = np.abs(scale - 1.0)
        worst = float(np.max(off, initial=0.0, where=np.isfinite(off)))
        if worst > SAME_SCALE:
            self._file.note(
                "scale-ignored",
                f"bones are drawn longer or shorter by up to {worst:.3g} of their "
                "length: that was left out, it moves no segment",
                value=worst,
            )
