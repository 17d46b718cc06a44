"""Which columns of a table make markers and sensors: by a map or by their names."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from marey.errors import OptionError
from marey.geometry import euler_axes

COUNTS = {"position": (3,), "quaternion": (4,), "euler": (3,), "matrix": (12, 16)}
TIME = re.compile(r"(time|timestamp|t|seconds?|sec)\b", re.IGNORECASE)
FRAME = re.compile(r"(frames?|field|sample|index)\b#?", re.IGNORECASE)

# A component letter apart from the rest of a name: "LFHD.x", "x1", "loc1_x", "qw head".
SUFFIX = re.compile(r"(.*?)[ _.:\-]?[\[(]?(?:q|rot_?)?([wxyz])[\])]?\Z", re.IGNORECASE)
PREFIX = re.compile(r"(?:q|rot_?)?([wxyz])[ _.:\-]?(.*)\Z", re.IGNORECASE)
QUATERNION = re.compile(r"(.*?)[ _.:\-]?q_?([wxyz])\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Item:
    """One marker or sensor of a table: the columns it is made of, by number."""

    name: str
    position: tuple[int, ...] = ()
    quaternion: tuple[int, ...] = ()
    """Four columns in the order w, x, y, z."""

    euler: tuple[int, ...] = ()
    order: str = "ZYX"
    degrees: bool = True
    matrix: tuple[int, ...] = ()
    """Twelve or sixteen columns, row by row."""

    @property
    def is_sensor(self) -> bool:
        """Whether the item has an orientation."""
        return bool(self.quaternion or self.euler or self.matrix)


@dataclass(frozen=True, slots=True)
class Columns:
    """The layout of a table."""

    items: tuple[Item, ...]
    time: int = -1
    """Column of the time in seconds; -1 = none."""

    facts: Mapping[str, str] = field(default_factory=dict)
    """Unit, up and rate as a map states them."""

    inferred: bool = False
    """Whether the layout was worked out from the column names."""


def from_map(given: str | Path | Mapping[str, Any], names: Sequence[str]) -> Columns:
    """Return the layout that a column map describes.

    Args:
        given: A TOML file or its content (docs/formats.md shows one).
        names: The header of the table; columns may also be given by number, from 0.

    Raises:
        OptionError: If the map is not TOML, or names columns that are not there.
    """
    content = given if isinstance(given, Mapping) else _toml(Path(given))
    unknown = set(content) - {"markers", "sensors", "time", "unit", "up", "rate"}
    if unknown:
        raise OptionError(
            "columns",
            found=sorted(unknown),
            needed="markers, sensors, time, unit, up, rate",
        )
    items = [
        _item(str(name), spec, names)
        for group in ("markers", "sensors")
        for name, spec in dict(content.get(group, {})).items()
    ]
    facts = {key: str(content[key]) for key in ("unit", "up", "rate") if key in content}
    time = _column(content["time"], names) if "time" in content else -1
    return Columns(tuple(items), time, facts)


def _toml(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise OptionError("columns", found=str(error), needed="a TOML file") from error


def _item(name: str, spec: Any, names: Sequence[str]) -> Item:
    if not isinstance(spec, Mapping):
        spec = {"position": spec}
    unknown = set(spec) - {*COUNTS, "order", "degrees"}
    if unknown:
        raise OptionError(
            f"columns of {name}", found=sorted(unknown), needed=f"{', '.join(COUNTS)}"
        )
    columns = {}
    for key, counts in COUNTS.items():
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
    return Item(name, **columns, order=order, degrees=bool(spec.get("degrees", True)))


def _column(given: Any, names: Sequence[str]) -> int:
    if isinstance(given, int) and 0 <= given < len(names):
        return given
    if given in names:
        return list(names).index(given)
    raise OptionError("columns", found=given, needed=f"one of {', '.join(names)}")


def from_names(names: Sequence[str]) -> Columns | None:
    """Return the layout that column names spell out, None when they do not.

    Columns that differ only in their letter x, y, z belong together; those with w are a
    quaternion. A quaternion joins the position of the same name or number.
    """
    time = next((i for i, name in enumerate(names) if TIME.match(name.strip())), -1)
    used = {i for i, name in enumerate(names) if FRAME.fullmatch(name.strip())} | {time}
    turns = _groups(names, used, QUATERNION, "wxyz")
    for pattern in (SUFFIX, PREFIX):
        turns |= _groups(names, used, pattern, "wxyz")
    places: dict[str, tuple[int, ...]] = {}
    for pattern in (SUFFIX, PREFIX):
        places |= _groups(names, used, pattern, "xyz")
    items = _joined(places, turns)
    return Columns(items, time, inferred=True) if items else None


def _groups(
    names: Sequence[str], used: set[int], pattern: re.Pattern[str], letters: str
) -> dict[str, tuple[int, ...]]:
    """Return complete groups of columns by the rest of their names; mark them used."""
    found: dict[str, dict[str, int]] = {}
    for i, name in enumerate(names):
        match = pattern.fullmatch(name.strip()) if i not in used else None
        if match:
            one, two = match.groups()
            rest, letter = (two, one) if pattern is PREFIX else (one, two)
            found.setdefault(rest.strip(), {}).setdefault(letter.lower(), i)
    groups = {
        rest: tuple(parts[letter] for letter in letters)
        for rest, parts in found.items()
        if set(parts) == set(letters)
    }
    used.update(i for columns in groups.values() for i in columns)
    return groups


def _joined(
    places: Mapping[str, tuple[int, ...]], turns: Mapping[str, tuple[int, ...]]
) -> tuple[Item, ...]:
    items = []
    for rest, position in places.items():
        match = next(
            (t for t in turns if t == rest or _number(t) == _number(rest) != ""), None
        )
        name = rest or "point"
        if match is None:
            items.append(Item(name, position))
        else:
            items.append(Item(name, position, quaternion=turns[match]))
    return tuple(items)


def _number(text: str) -> str:
    return "".join(re.findall(r"\d+", text))
