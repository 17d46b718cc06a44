"""Which columns of a table belong to one marker or sensor: by a map or by names."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from marey.anatomy.names import split_subject
from marey.errors import OptionError
from marey.numerics.geometry import euler_axes
from marey.options import read_toml

COLUMN_COUNTS = {
    "position": (3,),
    "quaternion": (4,),
    "euler": (3,),
    "matrix": (12, 16),
}
FACTS = ("unit", "up", "rate")
TIME = re.compile(
    r"(t|time|time[ _]?stamp|seconds?|sec)"
    r"( ?[\[(](s|secs?|seconds?)[\])]|[ _](s|secs?|seconds?))?",
    re.IGNORECASE,
)
FRAME = re.compile(r"(frames?|field|sample|index)#?", re.IGNORECASE)

# A component letter apart from the rest of a name: "LFHD.x", "x1", "loc1_x", "qw head".
AFTER = r"(?P<rest>.*?)[ _.:\-]?"
LETTER = r"[\[(]?(?P<letter>[wxyz])[\])]?"
BEFORE = r"(?P<letter>[wxyz])[ _.:\-]?(?P<rest>.*)"
# Angles or part of a quaternion: "hand.rotx", "hand_qx".
NO_ROTATION = r"(?!(.*[ _.:\-])?(q_?|rot(ation)?[ _.:\-]?)[\[(]?[xyz][\])]?\Z)"

POSITION_PATTERNS = (NO_ROTATION + AFTER + LETTER, BEFORE)
QUATERNION_PATTERNS = (
    rf"{AFTER}q_?{LETTER}",
    rf"{AFTER}(q|rot_?)?{LETTER}",
    rf"(q|rot_?)?{BEFORE}",
)

ColumnGroup = tuple[str, tuple[int, ...]]
"""The rest of a name, and its columns in the order of the letters."""


@dataclass(frozen=True, slots=True)
class TableItem:
    """One marker or sensor of a table: the columns it is made of, by number."""

    name: str
    """The label of a marker, the name of a sensor."""

    position: tuple[int, ...] = ()
    quaternion: tuple[int, ...] = ()
    """Four columns in the order w, x, y, z."""

    euler: tuple[int, ...] = ()
    order: str = "ZYX"
    degrees: bool = True
    matrix: tuple[int, ...] = ()
    """Twelve or sixteen columns, row by row."""

    subject: str = ""
    """Of a marker."""

    @property
    def is_sensor(self) -> bool:
        """Whether the item has an orientation."""
        return bool(self.quaternion or self.euler or self.matrix)

    @property
    def full_name(self) -> str:
        """Its name after that of the subject."""
        return f"{self.subject}:{self.name}" if self.subject else self.name

    @property
    def columns(self) -> tuple[int, ...]:
        """All its columns."""
        return (*self.position, *self.quaternion, *self.euler, *self.matrix)


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The layout of a table."""

    items: tuple[TableItem, ...]
    time: int = -1
    """Column of the time in seconds; -1 = none."""

    facts: Mapping[str, str] = field(default_factory=dict)
    """Unit, up and rate as a map states them."""


def columns_from_map(
    given: str | Path | Mapping[str, Any], names: Sequence[str]
) -> TableColumns:
    """Return the layout that a column map describes.

    Args:
        given: A TOML file or its content (docs/formats.md shows one).
        names: The header of the table; columns may also be given by number, from 0.

    Raises:
        OptionError: If the map is not TOML, or names columns that are not there.
    """
    content = given if isinstance(given, Mapping) else read_toml("columns", given)
    _refuse_unknown("columns", content, ("markers", "sensors", "time", *FACTS))
    items = [
        _item(str(name), spec, names)
        for group in ("markers", "sensors")
        for name, spec in dict(content.get(group, {})).items()
    ]
    facts = {key: str(content[key]) for key in FACTS if key in content}
    time = _column(content["time"], names) if "time" in content else -1
    return TableColumns(tuple(items), time, facts)


def _refuse_unknown(
    what: str, content: Mapping[str, Any], known: Sequence[str]
) -> None:
    unknown = sorted(set(content) - set(known))
    if unknown:
        raise OptionError(what, found=unknown, needed=", ".join(known))


def _item(name: str, spec: Any, names: Sequence[str]) -> TableItem:
    if not isinstance(spec, Mapping):
        spec = {"position": spec}
    _refuse_unknown(f"columns of {name}", spec, (*COLUMN_COUNTS, "order", "degrees"))
    columns: dict[str, Any] = {}
    for key, counts in COLUMN_COUNTS.items():
        if key in spec:
            if not isinstance(spec[key], Sequence) or len(spec[key]) not in counts:
                raise OptionError(
                    f"{key} of {name}", found=spec[key], needed=f"{counts[0]} columns"
                )
            columns[key] = tuple(_column(c, names) for c in spec[key])
    if "position" not in columns and "matrix" not in columns:
        raise OptionError(f"columns of {name}", found=list(spec), needed="a position")
    order = str(spec.get("order", "ZYX")).upper()
    euler_axes(order)
    degrees = bool(spec.get("degrees", True))
    return _split_subject(TableItem(name, **columns, order=order, degrees=degrees))


def _split_subject(item: TableItem) -> TableItem:
    """Return a marker named "JOE:RTHI" with its subject apart."""
    if item.is_sensor:
        return item
    subject, label = split_subject(item.name)
    return replace(item, name=label, subject=subject)


def _column(given: Any, names: Sequence[str]) -> int:
    if isinstance(given, int) and 0 <= given < len(names):
        return given
    if given in names:
        return list(names).index(given)
    raise OptionError("columns", found=given, needed=f"one of {', '.join(names)}")


def columns_from_names(names: Sequence[str]) -> TableColumns | None:
    """Return the layout that column names spell out, None when they do not.

    Columns that differ only in their letter x, y, z belong together; those with w are a
    quaternion. A name that occurs twice gives two items of that name.
    """
    titles = [name.strip() for name in names]
    time = next((i for i, name in enumerate(titles) if TIME.fullmatch(name)), -1)
    used = {i for i, name in enumerate(titles) if FRAME.fullmatch(name)} | {time}
    quaternions = _group_columns(titles, used, QUATERNION_PATTERNS, "wxyz")
    items = _join_groups(
        _group_columns(titles, used, POSITION_PATTERNS, "xyz"), quaternions
    )
    return TableColumns(items, time) if items else None


def _group_columns(
    names: Sequence[str], used: set[int], patterns: Sequence[str], letters: str
) -> list[ColumnGroup]:
    """Return complete groups of columns, named by what is left; mark them used."""
    groups: list[ColumnGroup] = []
    for pattern in patterns:
        found: dict[str, dict[str, list[int]]] = {}
        for i, name in enumerate(names):
            match = re.fullmatch(pattern, name, re.IGNORECASE)
            if match and i not in used:
                parts = found.setdefault(match["rest"].strip(), {})
                parts.setdefault(match["letter"].lower(), []).append(i)
        for rest, parts in found.items():
            if set(parts) == set(letters):
                complete = zip(*(parts[letter] for letter in letters), strict=False)
                groups += [(rest, columns) for columns in complete]
        used.update(i for _, columns in groups for i in columns)
    return groups


def _join_groups(
    positions: Sequence[ColumnGroup], quaternions: Sequence[ColumnGroup]
) -> tuple[TableItem, ...]:
    quaternion_of = _match_quaternions(
        [rest for rest, _ in positions], [rest for rest, _ in quaternions]
    )
    items = []
    for i, (rest, columns) in enumerate(positions):
        quaternion = quaternions[quaternion_of[i]][1] if i in quaternion_of else ()
        items.append(_split_subject(TableItem(rest or "point", columns, quaternion)))
    return tuple(items)


def _match_quaternions(
    positions: Sequence[str], quaternions: Sequence[str]
) -> dict[int, int]:
    """Return the quaternion of each position that has one.

    They belong together when their names are equal. Where none are, numbers decide, if
    every quaternion finds one position and no other: "w1" and "loc1".
    """
    position_index = {key: i for i, key in enumerate(_number_repeats(positions))}
    pairs = [
        (position_index.get(key), k)
        for k, key in enumerate(_number_repeats(quaternions))
    ]
    if all(position is None for position, _ in pairs):
        numbers = [_digits(rest) for rest in positions]
        wanted = [_digits(rest) for rest in quaternions]
        once = Counter(numbers)
        clear = "" not in wanted and len(set(wanted)) == len(wanted)
        if clear and all(once[number] == 1 for number in wanted):
            pairs = [(numbers.index(number), k) for k, number in enumerate(wanted)]
    return {position: k for position, k in pairs if position is not None}


def _number_repeats(names: Sequence[str]) -> list[tuple[str, int]]:
    """Return each name with the count of its occurrences before."""
    seen: defaultdict[str, count[int]] = defaultdict(count)
    return [(name, next(seen[name])) for name in names]


def _digits(text: str) -> str:
    return "".join(re.findall(r"\d+", text))
