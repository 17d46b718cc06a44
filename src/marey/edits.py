"""Edits: corrections by hand, and the small file that keeps them.

An edit is a flat record, the same in Python, in JSON and in a file such as
`walk.c3d.edits.toml`. The order of edits matters: each uses the names that bodies and
joints have after the edits before it. `marey.solve` applies them
(`SolveOptions.edits`).
"""

import json
import math
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any, get_type_hints

from marey.errors import FormatError, OptionError, printable, reason
from marey.io.atomic import check_target, write_atomic
from marey.report import list_examples

JOINT_KINDS = ("ball", "universal", "hinge", "fixed")
"""Kinds that an edit can give to a joint."""

REQUIRED_FIELDS: Mapping[str, tuple[str, ...]] = {
    "reroot": ("body",),
    "move-marker": ("marker", "to"),
    "merge": ("bodies",),
    "split": ("body",),
    "move-sensor": ("sensor", "to"),
    "cut": ("bodies",),
    "join": ("bodies",),
    "kind": ("joint", "kind"),
    "axis": ("joint", "axis"),
    "rename": ("name", "to"),
    "place-marker": ("marker", "offset"),
    "place-joint": ("joint", "offset"),
    "place-sensor": ("sensor",),
    "null-model": ("first", "last"),
    "bad": ("first", "last"),
    "ground": ("normal", "height"),
}
"""All kinds of edits, and the fields that each needs."""

OPTIONAL_FIELDS: Mapping[str, tuple[str, ...]] = {
    "merge": ("name",),
    "split": ("markers", "sensors", "name"),
    "place-sensor": ("offset", "rotation", "since", "take"),
    "null-model": ("sensors", "since", "take"),
    "bad": ("take", "markers"),
}
"""Fields that each kind of edit may have besides."""

NEEDS_ONE_OF: Mapping[str, tuple[str, ...]] = {
    "split": ("markers", "sensors"),
    "place-sensor": ("offset", "rotation"),
}
"""Optional fields of which an edit needs one or more."""

MAX_FILE_BYTES = 2**22
"""Largest size of a file of edits, in bytes. Higher reads larger files into memory.
Chosen by hand."""

VERSION = 1
"""Version of the file format."""

Names = tuple[str, ...]
Triple = tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One correction by hand.

    - reroot (body): the body is the root of its tree
    - move-marker (marker, to): the marker is attached to another body; "" = to none
    - merge (bodies, name): two bodies are one, with the first name or a new one
    - split (body, markers, sensors, name): these leave the body and make a new one
    - move-sensor (sensor, to): the sensor is attached to another body; "" = to none
    - cut (bodies): the two are not joined; each is in a tree of its own
    - join (bodies): the two are joined; the worst joint of a cycle is removed
    - kind (joint, kind): the joint is a ball, universal, hinge or fixed joint
    - axis (joint, axis): the joint is a hinge about this direction, in its frame
    - rename (name, to): another name of a body and of its joint
    - place-marker (marker, offset): position in its joint's frame, in metres
    - place-joint (joint, offset): position in its parent's frame, in metres
    - place-sensor (sensor, offset, rotation, since, take): position in its joint's
      frame, in metres, and rotation there, as a rotation vector in radians
    - null-model (first, last, sensors, since, take): in these frames the performer
      stands in the rest pose, which shows how the sensors sit on their bones
    - bad (first, last, take, markers): frames, both inclusive, that are masked
    - ground (normal, height): the plane of points x with normal . x = height

    A joint has the name of its child body. How a sensor sits holds from the frame
    `since` on, also in later takes: from the start when that is left out, and a null
    model from its first frame.

    Raises:
        OptionError: If a field is missing, has a wrong value or is not of this edit.
    """

    do: str
    body: str = ""
    bodies: Names = ()
    marker: str = ""
    markers: Names = ()
    sensor: str = ""
    sensors: Names = ()
    joint: str = ""
    name: str = ""
    to: str = ""
    kind: str = ""
    axis: Triple = ()
    offset: Triple = ()
    rotation: Triple = ()
    first: int = -1
    last: int = -1
    since: int = -1
    take: int = 0
    normal: Triple = ()
    height: float = 0.0

    def __post_init__(self) -> None:
        allowed = _fields_of(self.do)
        for f in fields(self)[1:]:
            value = _parse_value(self.do, f.name, getattr(self, f.name))
            object.__setattr__(self, f.name, value)
            if f.name not in allowed and value != f.default:
                raise _wrong(self.do, f.name, value, f"only {', '.join(allowed)}")
        _check_values(self)

    def __str__(self) -> str:
        return _sentence(self)

    @property
    def start(self) -> tuple[int, int]:
        """Take and frame from which the edit of a sensor holds."""
        first = max(self.first, 0) if self.since < 0 else self.since
        return self.take, first

    def record(self) -> dict[str, Any]:
        """Return the edit as plain values, without optional fields left at default."""
        defaults = {f.name: f.default for f in fields(self)}
        values = {name: getattr(self, name) for name in _fields_of(self.do)}
        return {"do": self.do} | {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
            if name in REQUIRED_FIELDS[self.do] or value != defaults[name]
        }


def _fields_of(do: Any) -> tuple[str, ...]:
    """Return the fields that a kind of edit can have.

    Raises:
        OptionError: If there is no such kind.
    """
    if not isinstance(do, str) or do not in REQUIRED_FIELDS:
        needed = f"do = {', '.join(REQUIRED_FIELDS)}"
        raise OptionError("edit", found=do, needed=needed)
    return (*REQUIRED_FIELDS[do], *OPTIONAL_FIELDS.get(do, ()))


def parse_edit(record: Any) -> Edit:
    """Return the edit of a record: a mapping of fields, as in JSON and TOML.

    Raises:
        OptionError: If it is no edit, with the reason.
    """
    if not isinstance(record, Mapping):
        raise OptionError("edit", found=record, needed='such as {"do": "reroot", ...}')
    do = record.get("do", "no do")
    allowed = _fields_of(do)
    missing = [name for name in REQUIRED_FIELDS[do] if name not in record]
    unknown = sorted(set(map(str, record)) - {f.name for f in fields(Edit)})
    if missing or unknown:
        found = f"no {missing[0]}" if missing else ", ".join(unknown)
        raise OptionError(f"edit {do}", found=found, needed=", ".join(allowed))
    values = {k: _parse_value(do, k, value) for k, value in record.items() if k != "do"}
    return Edit(do=do, **values)


def parse_edits(records: Iterable[Any]) -> tuple[Edit, ...]:
    """Return the edits of records; edits among them are returned as they are.

    Raises:
        OptionError: If one is no edit, with its number, counted from 1.
    """
    edits = []
    for number, record in enumerate(records, start=1):
        try:
            edits.append(record if isinstance(record, Edit) else parse_edit(record))
        except OptionError as error:
            what = f"edit {number}: {error.option.removeprefix('edit ')}"
            found, needed = error.found, error.needed
            raise OptionError(what, found=found, needed=needed) from None
    return tuple(edits)


def _parse_value(do: str, name: str, value: Any) -> Any:
    """Return a field's value in the type of the field.

    Raises:
        OptionError: If it is of another type.
    """
    parse, needed = PARSERS[FIELD_TYPES.get(name, str)]
    try:
        return parse(value)
    except (TypeError, ValueError, OverflowError):
        raise _wrong(do, name, value, needed) from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    value.encode()  # a name that a file cannot hold is refused
    return value


def _texts(value: Any) -> Names:
    if isinstance(value, str | Mapping):
        raise TypeError
    return tuple(map(_text, value))


def _number(value: Any) -> float:
    if isinstance(value, str | bool) or not math.isfinite(value):
        raise TypeError
    return float(value)


def _numbers(value: Any) -> Triple:
    """Return three numbers, or none if the edit has no such field."""
    if len(value) == 0:
        return ()
    x, y, z = map(_number, value)
    return x, y, z


def _whole(value: Any) -> int:
    if isinstance(value, bool) or value != int(value):
        raise TypeError
    return int(value)


FIELD_TYPES = get_type_hints(Edit)

PARSERS: Mapping[Any, tuple[Callable[[Any], Any], str]] = {
    str: (_text, "a name"),
    Names: (_texts, "a list of names"),
    Triple: (_numbers, "three numbers"),
    int: (_whole, "a whole number"),
    float: (_number, "a number of metres"),
}
"""Parser of the fields of each type, and what it needs."""


def _is_pair(names: Names) -> bool:
    return len(set(names)) == len(names) == 2 and all(names)


def _is_list(names: Names) -> bool:
    return len(set(names)) == len(names)


CONDITIONS: Sequence[tuple[Names, Callable[[Any], object], str]] = (
    (("bodies",), _is_pair, "the names of two different bodies"),
    (("markers", "sensors"), _is_list, "names, each once"),
    (("offset", "normal", "axis"), len, "three numbers"),
    (("axis",), any, "a direction, not zero"),
    (
        ("normal",),
        lambda normal: normal[2] > 0.0,
        "a direction out of the ground, +z up",
    ),
    (("kind",), JOINT_KINDS.__contains__, f"one of {', '.join(JOINT_KINDS)}"),
    (("body", "marker", "sensor", "joint", "name", "to"), str.strip, "a name"),
)
"""Conditions of fields that an edit needs or has: the fields, the condition, and what
is needed."""

NEW_NAMES = {"rename": "to", "merge": "name", "split": "name"}
"""The field of an edit that is a new name."""


def _check_values(edit: Edit) -> None:
    """Raise an OptionError if a field has no valid value."""
    moves = edit.do in ("move-marker", "move-sensor")
    for name in (*REQUIRED_FIELDS[edit.do], *_chosen_fields(edit)):
        if not (moves and name == "to"):  # which may be empty
            _check_required(edit, name)
    new_name = getattr(edit, NEW_NAMES.get(edit.do, ""), "")
    if new_name and not new_name.rpartition(":")[2].strip():
        needed = "a name, not only a subject's"
        raise _wrong(edit.do, NEW_NAMES[edit.do], new_name, needed)
    if "first" in _fields_of(edit.do) and not 0 <= edit.first <= edit.last:
        found = f"{edit.first} to {edit.last}"
        raise _wrong(edit.do, "frames", found, "0 <= first <= last")
    if edit.take < 0:
        raise _wrong(edit.do, "take", edit.take, "the number of a take, from 0")
    if edit.since < -1:
        raise _wrong(edit.do, "since", edit.since, "the number of a frame, from 0")


def _chosen_fields(edit: Edit) -> list[str]:
    """Return the fields that an edit has of those of which it needs one or more.

    Raises:
        OptionError: If it has none of them.
    """
    either = NEEDS_ONE_OF.get(edit.do, ())
    chosen = [name for name in either if getattr(edit, name)]
    if either and not chosen:
        needed = f"{' or '.join(either)}, one or more"
        raise _wrong(edit.do, either[0], "none", needed)
    return chosen


def _check_required(edit: Edit, name: str) -> None:
    """Raise an OptionError if a required field does not meet its conditions."""
    value = getattr(edit, name)
    for names, is_valid, needed in CONDITIONS:
        if name in names and not is_valid(value):
            shown = list(value) if isinstance(value, tuple) else value
            raise _wrong(edit.do, name, shown, needed)


def _wrong(do: str, name: str, found: Any, needed: str) -> OptionError:
    return OptionError(f"edit {do}, {name}", found=found, needed=needed)


def _sentence(edit: Edit) -> str:
    """Return the edit in plain words."""
    a, b = edit.bodies if edit.bodies else ("", "")
    called = f", called {edit.name}" if edit.name else ""
    members = list_examples((*edit.markers, *edit.sensors))
    of_markers = f"{members} in " if edit.markers else ""
    a_kind = f"a {edit.kind}" if edit.kind in ("ball", "hinge") else edit.kind
    of_take = f" of take {edit.take}" if edit.take else ""
    since = f" from frame {edit.start[1]}{of_take} on" if any(edit.start) else ""
    ground_height = edit.height / (math.hypot(*edit.normal) or 1.0)
    sentences = {
        "reroot": f"rooted at {edit.body}",
        "move-marker": f"{edit.marker} put on {edit.to or 'no body'}",
        "merge": f"{a} and {b} made one{called}",
        "split": f"{members} split from {edit.body}{called}",
        "move-sensor": f"{edit.sensor} put on {edit.to or 'no body'}",
        "cut": f"{a} cut from {b}",
        "join": f"{a} joined to {b}",
        "kind": f"{edit.joint} made {a_kind}",
        "axis": f"{edit.joint} made a hinge about {_triple(edit.axis, 3)}",
        "rename": f"{edit.name} renamed {edit.to}",
        "place-marker": f"{edit.marker} placed at {_millimetres(edit.offset)}",
        "place-joint": f"{edit.joint} placed at {_millimetres(edit.offset)}",
        "place-sensor": f"{edit.sensor}{_sensor_pose(edit)} on its bone{since}",
        "null-model": f"null model of {members or 'all sensors'} from frames "
        f"{edit.first} to {edit.last}{of_take}, held{since or ' throughout'}",
        "bad": f"{of_markers}frames {edit.first} to {edit.last}{of_take} marked as bad",
        "ground": f"ground set at {1e3 * ground_height:.0f} mm",
    }
    return printable(sentences[edit.do])


def _triple(values: Triple, digits: int = 1) -> str:
    return "({})".format(", ".join(f"{value:.{digits}f}" for value in values))


def _millimetres(position: Triple) -> str:
    return f"{_triple(tuple(1e3 * value for value in position))} mm"


def _degrees(rotation: Triple) -> str:
    return f"{_triple(tuple(map(math.degrees, rotation)))}°"


def _sensor_pose(edit: Edit) -> str:
    placed = f" placed at {_millimetres(edit.offset)}" if edit.offset else ""
    if not edit.rotation:
        return placed
    rotated = f" rotated to {_degrees(edit.rotation)}"
    return f"{placed} and{rotated}" if placed else rotated


# --- the file -------------------------------------------------------------------------


def read_edits(path: str | PathLike[str]) -> tuple[Edit, ...]:
    """Return the edits of a file such as `walk.c3d.edits.toml`, in their order.

    Raises:
        FormatError: If there is no such file or it is not TOML.
        OptionError: If a record in it is no edit, with its number.
    """
    path = Path(path)
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            found = f"{path.stat().st_size} bytes"
            raise FormatError(path, expected="a small file of edits", found=found)
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        expected = "edits in TOML"
        raise FormatError(path, expected=expected, found=reason(error)) from None
    records, version = content.pop("edit", []), content.pop("version", VERSION)
    if content or version != VERSION or not isinstance(records, list):
        found = ", ".join(sorted(content)) or f"version {version}, edit = {records}"
        expected = f"version = {VERSION} and tables [[edit]]"
        raise FormatError(path, expected=expected, found=found)
    return parse_edits(records)


def write_edits(
    edits: Iterable[Edit], path: str | PathLike[str], *, overwrite: bool = False
) -> None:
    """Write edits as a small file that people can read and change.

    The file is complete or does not exist, and reading it gives the same edits.

    Raises:
        OptionError: If the file exists and `overwrite` is False.
        OutputError: If it cannot be written.
    """
    target = Path(path)
    check_target(target, overwrite=overwrite)
    lines = ["# Corrections by hand, in order. Names are those after the edits before."]
    lines += ["# `marey solve --edits` applies them.", f"version = {VERSION}"]
    for edit in edits:
        lines += ["", f"# {edit}", "[[edit]]"]
        lines += [f"{key} = {_toml(value)}" for key, value in edit.record().items()]
    text = "\n".join([*lines, ""])
    write_atomic({target: [text.encode()]})


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        # TOML has the escapes of JSON, and one more character must be escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
