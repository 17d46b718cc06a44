"""The parts of an HTR file: titled sections, segments and their rows of numbers."""

import re
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from marey.io.contract import File, decode_text
from marey.io.text.numbers import read_numbers

HEADER, HIERARCHY, BASE = "header", "segmentnames&hierarchy", "baseposition"
END = "endoffile"
SECTION = re.compile(rb"^[ \t]*\[([^\]\n]*)\][^\n]*$", re.MULTILINE)
COMMENT = re.compile(rb"#[^\n]*")
FRAME = re.compile(rb"frame\s*(\d{1,9})\s*:?", re.IGNORECASE)
COLUMNS = 8
"""Frame number, translation, rotation and scale."""

MAX_SEGMENTS = 10_000
MAX_SCALE_ROUNDING = 1e-5
"""How far from one a scale may be and still be one, rounded."""

# A full file has 16 bytes and more per pose; one that is cut off may ask for these too.
BYTES_PER_POSE = 16
SPARE_POSES = 200_000


@dataclass(frozen=True, slots=True)
class HtrSection:
    """A part of the file under its title."""

    name: str
    line: int
    """Number of the line after its title."""

    body: bytes


def split_sections(data: bytes) -> Iterator[HtrSection]:
    """Return the parts of the file, one after the other, up to its declared end."""
    line, at = 1, 0
    title = SECTION.search(data)
    while title is not None:
        line += data.count(b"\n", at, title.start())
        at = title.start()
        follows = SECTION.search(data, title.end())
        stop = follows.start() if follows else len(data)
        name = decode_text(title[1]).strip()
        if name.lower() == END:
            return
        yield HtrSection(name, line + 1, data[title.end() + 1 : stop])
        title = follows


def next_section(file: File, sections: Iterator[HtrSection], name: str) -> HtrSection:
    """Return the next section, which must have this title."""
    section = next(sections, None)
    if section is None or section.name.lower() != name:
        found = "the end of the file" if section is None else f"[{section.name}]"
        line = None if section is None else section.line - 1
        raise file.error(line, expected=f"[{name}]", found=found, counted="line")
    return section


def _lines(section: HtrSection) -> Iterator[tuple[int, list[str]]]:
    """Return number and words of each line; names between tabs may hold blanks."""
    for number, line in enumerate(section.body.split(b"\n"), section.line):
        text = decode_text(line).strip()
        if text:
            words = text.split("\t") if "\t" in text else text.split()
            yield number, [word.strip() for word in words]


def parse_header(section: HtrSection) -> dict[str, str]:
    """Return values by keyword, in small letters."""
    pairs = (" ".join(words).partition(" ") for _, words in _lines(section))
    return {key.lower(): value.strip() for key, _, value in pairs}


def parse_parents(file: File, section: HtrSection) -> dict[str, str]:
    """Return the name of each segment's parent by segment name."""
    parents: dict[str, str] = {}
    for line, words in _lines(section):
        if len(words) != 2 or words[0] in parents or len(parents) >= MAX_SEGMENTS:
            file.fail_at_line(
                line,
                expected=f"a new segment and its parent, at most {MAX_SEGMENTS}",
                found=" ".join(words),
            )
        parents[words[0]] = words[1]
    if not parents:
        file.fail_at_line(section.line, expected="segments", found="none")
    return parents


class HtrRows:
    """Base pose and frames of all segments, in the order of the file."""

    def __init__(self, file: File, number: Mapping[str, int]) -> None:
        self.base = np.full((len(number), 6), np.nan)
        self._file, self._number = file, number
        self._parts: list[tuple[np.ndarray, np.ndarray]] = []
        self._seen: set[int] = set()

    def read(self, base: HtrSection, sections: Iterator[HtrSection]) -> None:
        """Read the base pose, then the frames by segment or (HTR2) by frame."""
        self._read_poses(base)
        missing = np.flatnonzero(np.isnan(self.base).any(axis=1))
        if len(missing):
            name = list(self._number)[missing[0]]
            self._file.fail_at_line(
                base.line, expected=f"a base pose of {name!r}", found="none"
            )
        for section in sections:
            self._read_segment(section)

    def _read_poses(self, section: HtrSection) -> None:
        """Read lines of a segment and seven numbers, under no frame or its title."""
        segments, frames, numbers = array("q"), array("d"), []
        frame = np.nan
        for line, text in enumerate(section.body.split(b"\n"), section.line):
            title = FRAME.fullmatch(text.strip()) if text[:1] in b"Ff \t" else None
            name, rest = (b"", b"") if title else _split_name(text)
            if title:
                frame = float(title[1])
            elif name:
                segments.append(self._segment(line, name, rest))
                frames.append(frame)
            numbers.append(rest)
        if not segments:
            return
        values = self._table(section, b"\n".join(numbers), COLUMNS - 1)
        segment, number = np.array(segments), np.array(frames)
        first = int(np.isnan(number).sum())
        self.base[segment[:first]] = values[:first, :6]
        rows = np.concatenate([number[:, None], values], axis=1)[first:]
        self._parts.append((segment[first:], rows))
        self._seen |= set(segment[first:].tolist())

    def _segment(self, line: int, name: bytes, rest: bytes) -> int:
        """Return the number of the segment of a line with these words."""
        segment = self._number.get(decode_text(name), -1)
        if segment < 0 or not rest.strip():
            self._file.fail_at_line(
                line,
                expected="a segment and seven numbers",
                found=decode_text(name + b" " + rest),
            )
        return segment

    def _read_segment(self, section: HtrSection) -> None:
        segment = self._number.get(section.name, -1)
        if segment < 0 or segment in self._seen:
            self._file.fail_at_line(
                section.line - 1,
                expected="the frames of another segment",
                found=f"[{section.name}]",
            )
        self._seen.add(segment)
        if section.body.strip():
            rows = self._table(section, section.body, COLUMNS, cut=True)
            self._parts.append((np.full(len(rows), segment), rows))

    def _table(
        self, section: HtrSection, text: bytes, columns: int, *, cut: bool = False
    ) -> Float[np.ndarray, "row column"]:
        """Return the numbers of a section, whose last line may be cut off if `cut`."""
        table = read_numbers(
            self._file, text, columns=columns, delimiter=" ", first_line=section.line
        )
        short = np.flatnonzero(table.cells < columns)
        if not len(short):
            return table.values
        if not cut or short[0] < len(table.cells) - 1:
            self._file.fail_at_line(
                int(table.line[short[0]]),
                expected="seven numbers" if columns < COLUMNS else "eight numbers",
                found="fewer",
            )
        return table.values[:-1]

    def frames(self, size: int) -> Float[np.ndarray, "frame segment 6"]:
        """Return translation and angles, NaN where the file has none.

        Args:
            size: Bytes of the file, which bound what it may ask for.
        """
        for segment, rows in self._parts:
            self._check_frames(segment, rows[:, 0])
        numbers = np.concatenate([[], *(rows[:, 0] for _, rows in self._parts)])
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
        frames = np.full((int(shape[0]), shape[1], 6), np.nan)
        for segment, rows in self._parts:
            frames[(rows[:, 0] - first).astype(np.int64), segment] = rows[:, 1:7]
        self._check_scale()
        return frames

    def _check_frames(self, segment: np.ndarray, numbers: np.ndarray) -> None:
        order = np.argsort(segment, kind="stable")
        step = np.where(np.diff(segment[order]) > 0, 1.0, np.diff(numbers[order]))
        if not ((numbers == np.round(numbers)).all() and (step > 0.0).all()):
            name = list(self._number)[segment[0]]
            raise self._file.error(
                None, expected="frames numbered upwards", found=f"others from {name!r}"
            )

    def _check_scale(self) -> None:
        worst = 0.0
        for _, rows in self._parts:
            deviation = np.nan_to_num(np.abs(rows[:, 7] - 1.0))
            worst = float(deviation.max(initial=worst))
        if worst > MAX_SCALE_ROUNDING:
            self._file.note(
                "scale-ignored",
                f"the scale of bones differs from one by up to {worst:.3g}: ignored, "
                "it moves no segment",
                value=worst,
            )


def _split_name(line: bytes) -> tuple[bytes, bytes]:
    """Return name and rest of a line; a name between tabs may hold blanks."""
    name, _, rest = line.strip().partition(b"\t" if b"\t" in line else b" ")
    return name.strip(), rest
