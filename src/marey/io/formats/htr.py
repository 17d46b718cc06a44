"""HTR, the skeleton file of Motion Analysis: segments, a base pose, and their motion.

Every segment has a base translation and rotation in its parent and, frame by frame, a
translation that is added to the base and a rotation that follows it:
T_parent_segment = [R_base R_frame, t_base + t_frame]. Rotations Rx, Ry, Rz are
multiplied in the EulerRotationOrder. Version 2 (HTR2) holds the same numbers frame
by frame rather than segment by segment.

As a take, the segments are sensors with exactly these poses. As a motion, the bones
keep their length: a translation that changes within the body is replaced by its median,
and what that misses is a finding.
"""

import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from marey.io import segment_tree
from marey.io.contract import Format
from marey.io.file import Facts, File
from marey.io.segment_tree import SegmentTree
from marey.io.text.encoding import decode_text, normalize_text
from marey.io.text.header import split_cells
from marey.io.text.numbers import (
    MAX_NUMBER,
    note_missing_line_end,
    parse_number,
    read_numbers,
)
from marey.io.text.timing import decide_rate, note_frame_count
from marey.io.units_axes import parse_unit
from marey.motion import Motion
from marey.numerics import Float, geometry
from marey.skeleton import Skeleton
from marey.take import Take

ROOT_PARENT = "GLOBAL"
"""Name of the parent of a root."""

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
Rows = tuple[list[int], Float[np.ndarray, "_ 8"]]
"""The segment of each row, and its frame, translation, rotation and scale."""


@dataclass(frozen=True, slots=True, eq=False)
class _HtrFile:
    """The content of an HTR file; joints are in the order of the tree."""

    header: Mapping[str, str]
    """Keywords, in small letters, and their values."""

    facts: Facts
    order: str
    tree: SegmentTree
    base: Float[np.ndarray, "joint 6"]
    """Base translation in the file's unit, and angles x, y, z in radians."""

    frames: Float[np.ndarray, "frame joint 6"]
    """The same of every frame; NaN where the file has none."""

    @property
    def position(self) -> Float[np.ndarray, "frame joint 3"]:
        """Translation of each segment in its parent, in the unit of the file."""
        return np.asarray(self.base[:, :3] + self.frames[..., :3])

    def rotations(
        self, angles: Float[np.ndarray, "*batch 3"]
    ) -> Float[np.ndarray, "*batch 3 3"]:
        """Return the rotations of angles x, y, z."""
        columns = ["XYZ".index(axis) for axis in self.order]
        return geometry.matrix_from_euler(angles[..., columns], self.order)

    def world_poses(
        self,
        R: Float[np.ndarray, "frame joint 3 3"],
        position: Float[np.ndarray, "frame joint 3"],
    ) -> Float[np.ndarray, "frame joint 4 4"]:
        """Return T_world_segment, in marey's world, of poses in the parents."""
        T = geometry.transform(R, position)
        return self.facts.poses(segment_tree.compose_world_poses(self.tree.parent, T))

    def recorded_poses(self) -> Float[np.ndarray, "frame joint 4 4"]:
        """Return T_world_segment of every frame; in blocks, to spare memory."""
        position = self.position
        T = np.empty((*position.shape[:2], 4, 4))
        R_base = self.rotations(self.base[:, 3:])
        for block in segment_tree.frame_blocks(*position.shape[:2]):
            R = R_base @ self.rotations(self.frames[block, :, 3:])
            T[block] = self.world_poses(R, position[block])
        return T


@dataclass(frozen=True, slots=True)
class HtrSection:
    """A part of the file under its title."""

    name: str
    line: int
    """Number of the line after its title."""

    body: bytes


def sniff(head: bytes) -> bool:
    """Whether a file begins like an HTR."""
    text = COMMENT.sub(b"", normalize_text(head)).lstrip()
    return text[:8].lower() == b"[header]" and b"filetype" in text[:4096].lower()


def read_take(file: File) -> Take:
    """Return the segments of an HTR file as sensors, exactly as recorded."""
    htr = _load(file)
    kept = np.flatnonzero(htr.tree.segment >= 0)
    names, parent = htr.tree.names, htr.tree.parent
    parents = {
        names[joint]: names[parent[joint]] for joint in kept if parent[joint] >= 0
    }
    return Take(
        rate=htr.facts.hertz,
        T_world_sensor=htr.recorded_poses()[:, kept],
        sensor_names=tuple(names[joint] for joint in kept),
        source=file.source(htr.facts, htr.header, parents),
    )


def read_motion(file: File) -> Motion:
    """Return the motion of an HTR file, bones at constant length."""
    htr = _load(file)
    parent, base = htr.tree.parent, htr.base[:, :3]
    bone = np.median(np.where(np.isnan(htr.position), base, htr.position), axis=0)
    bone[0] = base[0]
    T_rest = htr.world_poses(htr.rotations(htr.base[None, :, 3:]), bone[None])[0]
    offset = T_rest[:, :3, 3] - T_rest[parent, :3, 3]
    offset[0] = T_rest[0, :3, 3]
    skeleton = Skeleton(names=htr.tree.names, parent=parent, offset=offset)
    T = htr.recorded_poses()
    wxyz = segment_tree.joint_rotations(parent, T[..., :3, :3], T_rest[:, :3, :3])
    segment_tree.note_bone_misfit(file, T[..., :3, 3], skeleton, wxyz)
    return file.motion(htr.facts, skeleton, T[:, 0, :3, 3], wxyz, parameters=htr.header)


# --- the file ------------------------------------------------------------------------


def _load(file: File) -> _HtrFile:
    data = COMMENT.sub(b"", file.text())
    sections = split_sections(data)
    header = parse_header(next_section(file, sections, HEADER))
    listed = next_section(file, sections, HIERARCHY)
    parents = parse_parents(file, listed)
    declared = parse_number(header.get("numsegments", ""))
    if declared is not None and declared != len(parents):
        file.note(
            "segments-mismatch",
            f"segments declared {declared:.15g}, present {len(parents)}",
            value=len(parents) - declared,
        )
    tree = segment_tree.build_segment_tree(file, parents, ROOT_PARENT)
    base, frames = read_poses(file, list(parents), sections, len(data))
    note_missing_line_end(file, data)
    present = int(np.isfinite(frames).all(axis=(1, 2)).sum())
    note_frame_count(file, header.get("numframes", ""), present)
    facts = _facts(file, header)
    factors = np.repeat(
        [_length_factor(file, header), _radians_per_unit(file, header)], 3
    )
    frames *= factors
    base, frames = _order_by_tree(tree, base * factors, frames)
    order = header.get("eulerrotationorder", "").upper()
    if sorted(order) != ["X", "Y", "Z"]:
        file.fail("EulerRotationOrder of X, Y and Z", repr(order))
    return _HtrFile(header, facts, order, tree, base, frames)


def _order_by_tree(
    tree: SegmentTree, base: np.ndarray, frames: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return base and frames in the order of the tree, an added root included."""
    base, frames = base[tree.segment], frames[:, tree.segment]
    if tree.segment[0] < 0:
        # The added root has the translation of the first root, and not its rotation.
        first, first_moved = base[1].copy(), frames[:, 1].copy()
        first[3:] = first_moved[:, 3:] = 0.0
        roots = tree.parent == 0
        base[roots] -= first
        frames[:, roots] -= first_moved[:, None]
        base[0], frames[:, 0] = first, first_moved
    return base, frames


def _facts(file: File, header: Mapping[str, str]) -> Facts:
    unit = parse_unit(header.get("calibrationunits", ""))
    up = header.get("globalaxisofgravity", "").lower().removeprefix("+") or None
    rate, no_times = header.get("dataframerate", ""), np.zeros(0)
    return Facts(
        file.decide_fact("unit", stated=unit, assumed="mm", note="CalibrationUnits"),
        file.decide_fact("up", stated=up, assumed="y", note="GlobalAxisofGravity"),
        decide_rate(file, rate, no_times, note="DataFrameRate"),
    )


def _radians_per_unit(file: File, header: Mapping[str, str]) -> float:
    """Return radians per unit of angle."""
    word = header.get("rotationunits", "").lower()
    if not word.startswith(("deg", "rad")):
        file.note(
            "angles-assumed",
            f"the file says {word!r} for its RotationUnits: degrees are assumed",
            subject="angles",
        )
    return 1.0 if word.startswith("rad") else float(np.radians(1.0))


def _length_factor(file: File, header: Mapping[str, str]) -> float:
    """Return the factor of all lengths."""
    word = header.get("scalefactor", "1")
    scale = parse_number(word)
    if scale is None or not 0.0 < scale < MAX_NUMBER:
        file.fail("a ScaleFactor above 0", repr(word))
    if scale != 1.0:
        file.note(
            "lengths-scaled",
            f"all lengths were multiplied by the ScaleFactor {scale:g}",
            severity="info",
            value=scale,
        )
    return scale


# --- sections and their rows ---------------------------------------------------------


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
        file.fail(f"[{name}]", found, line=line)
    return section


def _lines(section: HtrSection) -> Iterator[tuple[int, list[str]]]:
    """Return number and words of each line; names between tabs may hold blanks."""
    for number, line in enumerate(section.body.split(b"\n"), section.line):
        if line.strip():
            yield number, split_cells(line.strip())


def parse_header(section: HtrSection) -> dict[str, str]:
    """Return values by keyword, in small letters."""
    pairs = (" ".join(words).partition(" ") for _, words in _lines(section))
    return {key.lower(): value.strip() for key, _, value in pairs}


def parse_parents(file: File, section: HtrSection) -> dict[str, str]:
    """Return the name of each segment's parent by segment name."""
    parents: dict[str, str] = {}
    for line, words in _lines(section):
        if len(words) != 2 or words[0] in parents or len(parents) >= MAX_SEGMENTS:
            file.fail(
                f"a new segment and its parent, at most {MAX_SEGMENTS}",
                " ".join(words),
                line=line,
            )
        parents[words[0]] = words[1]
    if not parents:
        file.fail("segments", "none", line=section.line)
    return parents


def read_poses(
    file: File, names: Sequence[str], sections: Iterator[HtrSection], size: int
) -> tuple[Float[np.ndarray, "segment 6"], Float[np.ndarray, "frame segment 6"]]:
    """Return translation and angles of the base pose and of every frame.

    Frames stand by segment or, in HTR2, by frame; they are NaN where the file has none.

    Args:
        file: Named in errors.
        names: The segments, in the order of the file.
        sections: What is left of the file, the base pose first.
        size: Bytes of the file, which bound what it may ask for.
    """
    number = {name: i for i, name in enumerate(names)}
    section = next_section(file, sections, BASE)
    segments, rows = _read_titled_rows(file, number, section)
    first = int(np.isnan(rows[:, 0]).sum())
    base = np.full((len(names), 6), np.nan)
    base[segments[:first]] = rows[:first, 1:7]
    missing = np.flatnonzero(np.isnan(base).any(axis=1))
    if len(missing):
        expected = f"a base pose of {names[missing[0]]!r}"
        file.fail(expected, "none", line=section.line)
    parts: list[Rows] = [(segments[first:], rows[first:])]
    seen = set(segments[first:])
    for section in sections:
        segment = number.get(section.name, -1)
        if segment < 0 or segment in seen:
            found, line = f"[{section.name}]", section.line - 1
            file.fail("the frames of another segment", found, line=line)
        seen.add(segment)
        if section.body.strip():
            rows = _table(file, section, section.body, COLUMNS, cut=True)
            parts.append(([segment] * len(rows), rows))
    return base, _frames(file, names, parts, size)


def _read_titled_rows(
    file: File, number: Mapping[str, int], section: HtrSection
) -> Rows:
    """Read lines of a segment and seven numbers, under no frame or its title."""
    segments, frames, numbers = array("q"), array("d"), []
    frame = np.nan
    for line, text in enumerate(section.body.split(b"\n"), section.line):
        title = FRAME.fullmatch(text.strip()) if text[:1] in b"Ff \t" else None
        name, rest = (b"", b"") if title else _split_name(text)
        if title:
            frame = float(title[1])
        elif name:
            segment = number.get(decode_text(name), -1)
            if segment < 0 or not rest.strip():
                found = decode_text(name + b" " + rest)
                file.fail("a segment and seven numbers", found, line=line)
            segments.append(segment)
            frames.append(frame)
        numbers.append(rest)
    if not segments:
        return [], np.zeros((0, COLUMNS))
    values = _table(file, section, b"\n".join(numbers), COLUMNS - 1)
    return segments.tolist(), np.column_stack([frames, values])


def _table(
    file: File, section: HtrSection, text: bytes, columns: int, *, cut: bool = False
) -> Float[np.ndarray, "row column"]:
    """Return the numbers of a section, whose last line may be cut off if `cut`."""
    table = read_numbers(
        file, text, columns=columns, delimiter=" ", first_line=section.line
    )
    short = np.flatnonzero(table.cells < columns)
    if not len(short):
        return table.values
    if not cut or short[0] < len(table.cells) - 1:
        expected = "seven numbers" if columns < COLUMNS else "eight numbers"
        file.fail(expected, "fewer", line=int(table.line[short[0]]))
    return table.values[:-1]


def _frames(
    file: File, names: Sequence[str], parts: Sequence[Rows], size: int
) -> Float[np.ndarray, "frame segment 6"]:
    """Return translation and Euler angles as stated, NaN where a row is missing."""
    segment = np.concatenate([np.array(s, dtype=np.int64) for s, _ in parts])
    rows = np.concatenate([rows for _, rows in parts])
    numbers = rows[:, 0]
    if len(numbers) == 0:
        file.fail("frames", "none")
    order = np.argsort(segment, kind="stable")
    step = np.where(np.diff(segment[order]) > 0, 1.0, np.diff(numbers[order]))
    bad = np.flatnonzero(~(np.append(step, 1.0) > 0.0) | (numbers % 1.0 != 0.0)[order])
    if len(bad):
        found = f"others from {names[segment[order[bad[0]]]]!r}"
        file.fail("frames numbered upwards", found)
    first, last = numbers.min(), numbers.max()
    shape = (last - first + 1.0, len(names))
    if shape[0] * shape[1] > size / BYTES_PER_POSE + SPARE_POSES:
        found = f"{shape[0]:g} frames of {shape[1]} segments in {size} bytes"
        file.fail("frames that fill the file", found)
    frames = np.full((int(shape[0]), shape[1], 6), np.nan)
    frames[(numbers - first).astype(np.int64), segment] = rows[:, 1:7]
    worst = float(np.nan_to_num(np.abs(rows[:, 7] - 1.0)).max())
    if worst > MAX_SCALE_ROUNDING:
        file.note(
            "scale-ignored",
            f"the scale of bones differs from one by up to {worst:.3g}: ignored, "
            "it moves no segment",
            value=worst,
        )
    return frames


def _split_name(line: bytes) -> tuple[bytes, bytes]:
    """Return name and rest of a line; a name between tabs may hold blanks."""
    name, _, rest = line.strip().partition(b"\t" if b"\t" in line else b" ")
    return name.strip(), rest


FORMAT = Format(
    name="htr",
    title="HTR (Motion Analysis)",
    suffixes=(".htr", ".htr2"),
    sniff=sniff,
    read_take=read_take,
    read_motion=read_motion,
)
