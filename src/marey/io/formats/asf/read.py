"""ASF, the skeleton of the Acclaim format: bones, axes, degrees of freedom, limits.

A bone starts where its parent ends. Its degrees of freedom are rotations about fixed
axes of the bone in the listed order, so the last one is leftmost in the product.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from marey.io.contract import File, decode_text
from marey.io.text.numbers import MAX_NUMBER, parse_number
from marey.numerics import geometry

ROOT = "root"
DEGREES_OF_FREEDOM = ("rx", "ry", "rz", "tx", "ty", "tz", "l")
BONE_KEYS = {"id", "name", "direction", "length", "axis", "dof", "limits"}
DEFAULT_ROOT_ORDER = ("TX", "TY", "TZ", "RX", "RY", "RZ")
MAX_BONES = 20_000
MAX_LINES = 20 * MAX_BONES
MAX_FILE_BYTES = 2**22
"""Bytes; far more than any skeleton takes."""


# The writer of marey adds a comment with what the format cannot hold: the name and the
# rest position of the root, and that bones ending in LINK_SUFFIX only bridge a gap.
MAREY_COMMENT = re.compile(r"^# marey root (\S+) rest (\S+) (\S+) (\S+)$", re.MULTILINE)
LINK_SUFFIX = "_link"


@dataclass(slots=True)
class AsfBone:
    """One bone in the file's own unit and axes, angles in radians."""

    name: str
    line: int
    vector: Float[np.ndarray, " 3"]
    """From its start to its end."""

    angles: Float[np.ndarray, " 3"]
    """Angles of `R_world_bone` in the file's unit."""

    order: str
    """Order of the angles about fixed axes, such as "XYZ"."""

    R_world_bone: Float[np.ndarray, "3 3"] = field(default_factory=lambda: np.eye(3))
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
    root_name: str = ROOT
    root_rest_position: Float[np.ndarray, " 3"] = field(
        default_factory=lambda: np.zeros(3)
    )
    from_marey: bool = False
    """Whether marey wrote it."""


def read_asf(file: File) -> AsfFile:
    """Return the content of an ASF file.

    Raises:
        FormatError: If a section, a bone or a number is missing or contradictory.
    """
    text = decode_text(file.text())
    lines = text.count("\n")
    if lines > MAX_LINES or len(text) > MAX_FILE_BYTES:
        raise file.error(
            None,
            expected=f"at most {MAX_LINES} lines and {MAX_FILE_BYTES} characters",
            found=f"{lines} lines and {len(text)} characters",
        )
    sections = _sections(file, text)
    units = {words[0].lower(): (n, words) for n, words in sections.get("units", [])}
    radians = units.get("angle", (0, ["", "deg"]))[1][1:2] == ["rad"]
    bones = _bones(file, sections["bonedata"], radians=radians)
    _set_parents(file, sections["hierarchy"], bones)
    root = {words[0].lower(): (n, words) for n, words in sections["root"]}
    position, orientation = (
        _vector(file, root, key) for key in ("position", "orientation")
    )
    line, axis = root.get("axis", (1, []))
    order = _axis_order(file, line, axis[1:2])
    mark = MAREY_COMMENT.search(text)
    rest = [parse_number(word) or 0.0 for word in mark.groups()[1:]] if mark else []
    return AsfFile(
        bones=_parents_first(file, bones),
        root_order=_root_order(file, root),
        root_position=position,
        R_world_root=_rotations_fixed_axes(orientation, order, radians=radians),
        length_factor=_length_factor(file, units),
        radians=radians,
        root_name=mark[1] if mark else ROOT,
        root_rest_position=np.array(rest) if mark else np.zeros(3),
        from_marey=mark is not None,
    )


# --- text ----------------------------------------------------------------------------

NumberedWords = tuple[int, list[str]]
BLANK_CHARACTERS = str.maketrans("(),", "   ")


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
            file.fail_at_line(
                1 + text.count("\n"),
                expected=f"a section :{needed}",
                found=f"the sections {', '.join(sections) or 'none'}",
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
            file.fail_at_line(number, expected="begin ... end", found=" ".join(words))
    if block is not None:
        number = lines[-1][0]
        file.fail_at_line(number, expected="end", found="the end of the section")


def _number(file: File, line: int, word: str) -> float:
    value = parse_number(word)
    if value is None or abs(value) > MAX_NUMBER:
        file.fail_at_line(line, expected="a number", found=word)
    return value


def _vector(
    file: File, lines: Mapping[str, NumberedWords], key: str
) -> Float[np.ndarray, " 3"]:
    line, words = lines.get(key, (1, [key, "0", "0", "0"]))
    if len(words) < 4:
        file.fail_at_line(line, expected=f"three numbers of {key}", found=words[-1])
    return np.array([_number(file, line, word) for word in words[1:4]])


def _rotations_fixed_axes(
    angles: Float[np.ndarray, "*batch 3"], order: str, *, radians: bool
) -> Float[np.ndarray, "*batch 3 3"]:
    """Return the rotations of angles about fixed axes, the first one first."""
    angles = angles if radians else np.deg2rad(angles)
    return geometry.matrix_from_euler(angles[..., ::-1].copy(), order[::-1])


def _axis_order(file: File, line: int, words: Sequence[str]) -> str:
    order = words[0].upper() if words else "XYZ"
    if sorted(order) != ["X", "Y", "Z"]:
        file.fail_at_line(line, expected="an order of axes such as XYZ", found=order)
    return order


def _length_factor(file: File, units: Mapping[str, NumberedWords]) -> float | None:
    if "length" not in units:
        return None
    line, words = units["length"]
    value = _number(file, line, words[-1])
    if not 1e-9 < value < 1e9:
        file.fail_at_line(line, expected="a length factor above 0", found=words[-1])
    return value


def _root_order(file: File, root: Mapping[str, NumberedWords]) -> tuple[str, ...]:
    line, words = root.get("order", (1, ["order", *DEFAULT_ROOT_ORDER]))
    return _parse_dof(file, line, words[1:])


def _parse_dof(file: File, line: int, words: Sequence[str]) -> tuple[str, ...]:
    dof = tuple(word.lower() for word in words)
    if len(set(dof)) != len(dof) or not set(dof) <= set(DEGREES_OF_FREEDOM):
        file.fail_at_line(
            line,
            expected=f"each of {', '.join(DEGREES_OF_FREEDOM)} at most once",
            found=" ".join(words),
        )
    return dof


# --- bones ---------------------------------------------------------------------------


def _bones(
    file: File, lines: Sequence[NumberedWords], *, radians: bool
) -> dict[str, AsfBone]:
    bones: dict[str, AsfBone] = {}
    for block in _blocks(file, lines):
        bone = _bone(file, block, radians=radians) if block else None
        if bone is None:
            continue
        if bone.name in bones or bone.name.lower() == ROOT:
            file.fail_at_line(bone.line, expected="a new name", found=bone.name)
        if len(bones) >= MAX_BONES:
            file.fail_at_line(
                bone.line, expected=f"at most {MAX_BONES} bones", found="more"
            )
        bones[bone.name] = bone
    for order in {bone.order for bone in bones.values()}:
        same = [bone for bone in bones.values() if bone.order == order]
        angles = np.array([bone.angles for bone in same])
        rotations = _rotations_fixed_axes(angles, order, radians=radians)
        for bone, R_world_bone in zip(same, rotations, strict=True):
            bone.R_world_bone = R_world_bone
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
        file.fail_at_line(first, expected="the bone's name", found="none")
    length = lines.get("length", (first, ["", ""]))
    direction = _vector(file, lines, "direction")
    axis_line, axis = lines.get("axis", (first, ["axis", "0", "0", "0"]))
    dof_line, dof = lines.get("dof", (first, ["dof"]))
    degrees_of_freedom = _parse_dof(file, dof_line, dof[1:])
    return AsfBone(
        name=lines["name"][1][1],
        line=first,
        vector=direction * _number(file, length[0], length[1][-1]),
        angles=_vector(file, lines, "axis"),
        order=_axis_order(file, axis_line, axis[4:5]),
        dof=degrees_of_freedom,
        limits=_limits(file, lines, degrees_of_freedom, radians=radians),
    )


def _parse_limit(word: str) -> float | None:
    """Return a limit, which may be infinite; None if the word is none."""
    if word.lower().lstrip("+-") in ("inf", "infinity"):
        return -np.inf if word.startswith("-") else np.inf
    return parse_number(word)


def _limits(
    file: File,
    lines: Mapping[str, NumberedWords],
    dof: tuple[str, ...],
    *,
    radians: bool,
) -> tuple[tuple[float, float], ...]:
    if "limits" not in lines:
        return ()
    line, words = lines["limits"]
    values = [_parse_limit(word) for word in words[1:]]
    if None in values or len(values) != 2 * len(dof):
        file.note(
            "limits-ignored",
            f"line {line} has {len(values)} numbers for {len(dof)} degrees of freedom",
            subject=lines["name"][1][1],
        )
        return ()
    scale = 1.0 if radians else np.pi / 180.0
    pairs = np.array(values, dtype=float).reshape(-1, 2) * scale
    return tuple((float(low), float(high)) for low, high in pairs)


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
            file.fail_at_line(
                number,
                expected="bones of :bonedata, each with one parent",
                found=(unknown or twice)[0],
            )
        for name in words[1:]:
            bones[name].parent = parent
    if not blocks:
        raise file.error(None, expected="begin after :hierarchy", found="nothing")


def _parents_first(file: File, bones: Mapping[str, AsfBone]) -> dict[str, AsfBone]:
    """Return the bones in file order, but every parent before its children."""
    ordered: dict[str, AsfBone] = {}
    for bone in bones.values():
        chain = []
        name = bone.name
        while name != ROOT and name not in ordered:
            chain.append(name)
            if not bones[name].parent or len(chain) > len(bones):
                file.fail_at_line(
                    bone.line,
                    expected="a path from every bone to the root",
                    found=f"none from {bone.name}",
                )
            name = bones[name].parent
        for name in reversed(chain):
            ordered[name] = bones[name]
    return ordered
