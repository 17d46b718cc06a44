"""The text of an ASF: bones, axes, degrees of freedom, limits.

A bone starts where its parent ends. Its degrees of freedom are rotations about fixed
axes of the bone in the listed order, so the last one is leftmost in the product.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from marey.io.file import File
from marey.io.text.encoding import decode_text
from marey.io.text.numbers import MAX_NUMBER, parse_number
from marey.numerics import Float, geometry

ROOT = "root"
DEGREES_OF_FREEDOM = ("rx", "ry", "rz", "tx", "ty", "tz", "l")
BONE_KEYS = {"id", "name", "direction", "length", "axis", "dof", "limits"}
DEFAULT_ROOT_ORDER = ("TX", "TY", "TZ", "RX", "RY", "RZ")
MAX_BONES = 20_000
MAX_LINES = 20 * MAX_BONES
MAX_LENGTH_FACTOR = 1e9
"""Largest length factor, and one over the smallest; others are damage."""

MAX_FILE_BYTES = 2**22
"""Bytes; far more than any skeleton takes."""

# The writer of marey adds a comment with what the format cannot hold: the name and the
# rest position of the root, and that bones ending in LINK_SUFFIX only bridge a gap.
MAREY_COMMENT = re.compile(r"^# marey root (\S+) rest (\S+) (\S+) (\S+)$", re.MULTILINE)
LINK_SUFFIX = "_link"

NumberedWords = tuple[int, list[str]]
"""Number of a line, and its words."""

BLANK_CHARACTERS = str.maketrans("(),", "   ")


@dataclass(slots=True)
class AsfBone:
    """One bone in the file's own unit and axes, angles in radians."""

    name: str
    line: int
    vector: Float[np.ndarray, " 3"]
    """From its start to its end."""

    R_world_bone: Float[np.ndarray, "3 3"]
    """Axes of rotation of its degrees of freedom."""

    dof: tuple[str, ...] = ()
    limits: tuple[tuple[float, float], ...] = ()
    """Least and greatest value per degree of freedom; empty when not stated."""

    parent: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class AsfFile:
    """The content of an ASF file in its own unit and axes."""

    bones: Mapping[str, AsfBone]
    """By name, every parent before its children; the root is not among them."""

    root_order: tuple[str, ...]
    root_position: Float[np.ndarray, " 3"]
    R_world_root: Float[np.ndarray, "3 3"]
    length_factor: float | None
    """The length factor; None when the file has none."""

    radians: bool
    root_name: str
    root_rest_position: Float[np.ndarray, " 3"]
    from_marey: bool
    """Whether marey wrote it."""


@dataclass(frozen=True, slots=True)
class _AsfFields:
    """Lines of a section or of a bone by their first word."""

    file: File
    lines: Mapping[str, NumberedWords]
    radians: bool
    """Whether angles are not in degrees."""

    def words(self, key: str, *default: str) -> NumberedWords:
        """Return number and words of a line, without the first word."""
        line, words = self.lines.get(key, (1, [key, *default]))
        return line, words[1:]

    def number(self, line: int, word: str) -> float:
        """Return the number that a word spells."""
        value = parse_number(word)
        if value is None or abs(value) > MAX_NUMBER:
            self.file.fail("a number", word, line=line)
        return value

    def vector(self, key: str) -> Float[np.ndarray, " 3"]:
        """Return three numbers, zeros if there are none."""
        line, words = self.words(key, "0", "0", "0")
        if len(words) < 3:
            found = words[-1] if words else key
            self.file.fail(f"three numbers of {key}", found, line=line)
        return np.array([self.number(line, word) for word in words[:3]])

    def rotation(self, key: str, place: int) -> Float[np.ndarray, "3 3"]:
        """Return a rotation by angles about fixed axes, the first one first.

        Args:
            key: First word of the angles.
            place: Where the order of the axes stands after the word "axis".
        """
        angles = self.vector(key)
        line, words = self.words("axis")
        order = words[place].upper() if len(words) > place else "XYZ"
        if sorted(order) != ["X", "Y", "Z"]:
            self.file.fail("an order of axes such as XYZ", order, line=line)
        turns = angles if self.radians else np.deg2rad(angles)
        return geometry.matrix_from_euler(turns[::-1].copy(), order[::-1])

    def dof(self, key: str, *default: str) -> tuple[str, ...]:
        """Return degrees of freedom, each at most once."""
        line, words = self.words(key, *default)
        dof = tuple(word.lower() for word in words)
        if len(set(dof)) != len(dof) or not set(dof) <= set(DEGREES_OF_FREEDOM):
            expected = f"each of {', '.join(DEGREES_OF_FREEDOM)} at most once"
            self.file.fail(expected, " ".join(words), line=line)
        return dof

    def limits(self, count: int) -> tuple[tuple[float, float], ...]:
        """Return least and greatest value of degrees of freedom, () if not stated."""
        line, words = self.words("limits")
        values = [_parse_limit(word) for word in words]
        if None in values or len(values) != 2 * count:
            if "limits" in self.lines:
                self.file.note(
                    "limits-ignored",
                    f"line {line} has {len(values)} numbers for {count} degrees of "
                    "freedom",
                    subject=self.lines["name"][1][1],
                )
            return ()
        scale = 1.0 if self.radians else np.pi / 180.0
        pairs = np.array(values, dtype=float).reshape(-1, 2) * scale
        return tuple((float(low), float(high)) for low, high in pairs)


def read_asf(file: File) -> AsfFile:
    """Return the content of an ASF file.

    Raises:
        FormatError: If a section, a bone or a number is missing or contradictory.
    """
    text = decode_text(file.text())
    lines = text.count("\n")
    if lines > MAX_LINES or len(text) > MAX_FILE_BYTES:
        file.fail(
            f"at most {MAX_LINES} lines and {MAX_FILE_BYTES} characters",
            f"{lines} lines and {len(text)} characters",
        )
    sections = _sections(file, text)
    units = _fields(file, sections.get("units", []))
    radians = units.words("angle")[1][:1] == ["rad"]
    bones = _bones(file, sections["bonedata"], radians=radians)
    _set_parents(file, sections["hierarchy"], bones)
    root = _fields(file, sections["root"], radians=radians)
    mark = MAREY_COMMENT.search(text)
    rest = mark.groups()[1:] if mark else "000"
    return AsfFile(
        bones=_parents_first(file, bones),
        root_order=root.dof("order", *DEFAULT_ROOT_ORDER),
        root_position=root.vector("position"),
        R_world_root=root.rotation("orientation", 0),
        length_factor=_length_factor(units),
        radians=radians,
        root_name=mark[1] if mark else ROOT,
        root_rest_position=np.array([parse_number(word) or 0.0 for word in rest]),
        from_marey=mark is not None,
    )


def _fields(
    file: File, lines: Sequence[NumberedWords], *, radians: bool = False
) -> _AsfFields:
    by_word = {words[0].lower(): (number, words) for number, words in lines}
    return _AsfFields(file, by_word, radians)


def _lines(text: str) -> Iterator[NumberedWords]:
    """Yield number and words of every line; commas and brackets count as blanks."""
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.partition("#")[0].translate(BLANK_CHARACTERS).split()
        if words:
            yield number, words


def _sections(file: File, text: str) -> dict[str, list[NumberedWords]]:
    """Return the lines of each section by keyword, without the keyword line."""
    sections: dict[str, list[NumberedWords]] = {}
    current: list[NumberedWords] = []
    for number, words in _lines(text):
        if words[0].startswith(":"):
            current = sections.setdefault(words[0][1:].lower(), [])
        else:
            current.append((number, words))
    for needed in ("root", "bonedata", "hierarchy"):
        if needed not in sections:
            file.fail(
                f"a section :{needed}",
                f"the sections {', '.join(sections) or 'none'}",
                line=1 + text.count("\n"),
            )
    return sections


def _blocks(
    file: File, lines: Sequence[NumberedWords]
) -> Iterator[list[NumberedWords]]:
    """Yield the lines between each begin and end."""
    block: list[NumberedWords] | None = None
    for number, words in lines:
        word = words[0].lower()
        if word == "begin" and block is None:
            block = []
        elif word == "end" and block is not None:
            yield block
            block = None
        elif block is not None and word != "begin":
            block.append((number, words))
        else:
            file.fail("begin ... end", " ".join(words), line=number)
    if block is not None:
        number = lines[-1][0]
        file.fail("end", "the end of the section", line=number)


def _length_factor(units: _AsfFields) -> float | None:
    if "length" not in units.lines:
        return None
    line, words = units.lines["length"]
    value = units.number(line, words[-1])
    if not 1.0 / MAX_LENGTH_FACTOR < value < MAX_LENGTH_FACTOR:
        units.file.fail("a length factor above 0", words[-1], line=line)
    return value


# --- bones ---------------------------------------------------------------------------


def _bones(
    file: File, lines: Sequence[NumberedWords], *, radians: bool
) -> dict[str, AsfBone]:
    bones: dict[str, AsfBone] = {}
    for block in filter(None, _blocks(file, lines)):
        bone = _bone(file, block, radians=radians)
        if bone.name in bones or bone.name.lower() == ROOT:
            file.fail("a new name", bone.name, line=bone.line)
        if len(bones) >= MAX_BONES:
            file.fail(f"at most {MAX_BONES} bones", "more", line=bone.line)
        bones[bone.name] = bone
    return bones


def _bone(file: File, block: Sequence[NumberedWords], *, radians: bool) -> AsfBone:
    lines: dict[str, NumberedWords] = {}
    key = ""
    for number, words in block:
        word = words[0].lower()
        if word in BONE_KEYS:
            key = word
            lines[key] = (number, words)
        elif key == "limits" and (_parse_limit(words[0]) is not None):
            lines[key][1].extend(words)
        else:
            key = ""
    first = block[0][0]
    if "name" not in lines or len(lines["name"][1]) < 2:
        file.fail("the bone's name", "none", line=first)
    fields = _AsfFields(file, lines, radians)
    length_line, length = lines.get("length", (first, [""]))
    direction = fields.vector("direction")
    dof = fields.dof("dof")
    return AsfBone(
        name=lines["name"][1][1],
        line=first,
        vector=direction * fields.number(length_line, length[-1]),
        R_world_bone=fields.rotation("axis", 3),
        dof=dof,
        limits=fields.limits(len(dof)),
    )


def _parse_limit(word: str) -> float | None:
    """Return a limit, which may be infinite; None if the word is none."""
    if word.lower().lstrip("+-") in ("inf", "infinity"):
        return -np.inf if word.startswith("-") else np.inf
    return parse_number(word)


def _set_parents(
    file: File, lines: Sequence[NumberedWords], bones: Mapping[str, AsfBone]
) -> None:
    """Give every bone its parent."""
    blocks = list(_blocks(file, lines))
    for number, words in [line for block in blocks for line in block]:
        parent = ROOT if words[0].lower() == ROOT else words[0]
        unknown = [w for w in words if w not in bones and w.lower() != ROOT]
        twice = [w for w in words[1:] if w not in bones or bones[w].parent]
        if unknown or twice:
            file.fail(
                "bones of :bonedata, each with one parent",
                (unknown or twice)[0],
                line=number,
            )
        for name in words[1:]:
            bones[name].parent = parent
    if not blocks:
        file.fail("begin after :hierarchy", "nothing")


def _parents_first(file: File, bones: Mapping[str, AsfBone]) -> dict[str, AsfBone]:
    """Return the bones in file order, but every parent before its children."""
    ordered: dict[str, AsfBone] = {}
    for bone in bones.values():
        chain = []
        name = bone.name
        while name != ROOT and name not in ordered:
            chain.append(name)
            if not bones[name].parent or len(chain) > len(bones):
                file.fail(
                    "a path from every bone to the root",
                    f"none from {bone.name}",
                    line=bone.line,
                )
            name = bones[name].parent
        for name in reversed(chain):
            ordered[name] = bones[name]
    return ordered
