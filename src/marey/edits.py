"""Edits: what a user puts right by hand, and the small file that keeps it.

An edit is a flat record, the same in Python, in JSON and in a file such as
`walk.c3d.edits.toml`. Edits are told in order, and each names things as they are called
after the edits before it. `marey.solve` replays them (`SolveOptions.edits`).
"""

import json
import math
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from marey.errors import FormatError, OptionError, printable
from marey.io.atomic import check_target, write_atomic

Do = Literal[
    "reroot",
    "move-marker",
    "merge",
    "split",
    "cut",
    "join",
    "kind",
    "rename",
    "place-marker",
    "place-joint",
    "bad",
    "ground",
]
KINDS = ("ball", "universal", "hinge", "fixed")
"""What a joint may be made; a root is none of these."""

NEEDED: Mapping[str, tuple[str, ...]] = {
    "reroot": ("body",),
    "move-marker": ("marker", "to"),
    "merge": ("bodies",),
    "split": ("body", "markers"),
    "cut": ("bodies",),
    "join": ("bodies",),
    "kind": ("joint", "kind"),
    "rename": ("name", "to"),
    "place-marker": ("marker", "offset"),
    "place-joint": ("joint", "offset"),
    "bad": ("first", "last"),
    "ground": ("normal", "height"),
}
"""What each edit must tell."""

OPTIONAL: Mapping[str, tuple[str, ...]] = {
    "merge": ("name",),
    "split": ("name",),
    "bad": ("take", "markers"),
}
"""What each edit may tell besides."""

LARGEST_FILE = 2**22
"""Bytes of edits beyond which a file is refused."""

VERSION = 1

MOST_NAMED = 3
"""Markers that the words for an edit name one by one."""

Names = tuple[str, ...]
Triple = tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One thing put right by hand.

    - reroot (body): its tree hangs from this body
    - move-marker (marker, to): the marker sits on another body; "" = on none
    - merge (bodies, name): two bodies are one, called as the first or by a new name
    - split (body, markers, name): these markers leave the body and make a new one
    - cut (bodies): the two are not joined: what hung by the joint is on its own
    - join (bodies): the two are joined; what closes a circle then gives way
    - kind (joint, kind): the joint is a ball, universal, hinge or fixed
    - rename (name, to): a body, and the joint it hangs by, is called otherwise
    - place-marker (marker, offset): where it sits in its joint's frame, in metres
    - place-joint (joint, offset): where it is in its parent's frame, in metres
    - bad (first, last, take, markers): frames, both inclusive, as if unseen
    - ground (normal, height): the plane of points x with normal . x = height

    A joint has the name of the body that hangs by it.

    Raises:
        OptionError: If a field is missing, odd or not of this edit.
    """

    do: Do
    body: str = ""
    bodies: Names = ()
    marker: str = ""
    markers: Names = ()
    joint: str = ""
    name: str = ""
    to: str = ""
    kind: str = ""
    offset: Triple = ()
    first: int = -1
    last: int = -1
    take: int = 0
    normal: Triple = ()
    height: float = 0.0

    def __post_init__(self) -> None:
        if self.do not in NEEDED:
            needed = f"one of {', '.join(NEEDED)}"
            raise OptionError("edit", found=self.do, needed=needed)
        mine = (*NEEDED[self.do], *OPTIONAL.get(self.do, ()))
        for f in fields(self)[1:]:
            value = _plain(self.do, f.name, getattr(self, f.name))
            object.__setattr__(self, f.name, value)
            if f.name not in mine and value != f.default:
                raise _wrong(self.do, f.name, value, f"only {', '.join(mine)}")
        for name in NEEDED[self.do]:
            _check(self, name)
        _check_new_name(self)
        if self.do == "bad" and self.take < 0:
            raise _wrong(self.do, "take", self.take, "the number of a take, from 0")

    def __str__(self) -> str:
        return _sentence(self)

    def record(self) -> dict[str, Any]:
        """Return the edit as plain values, only the fields that say something."""
        known = {"do": self.do}
        known |= {name: _listed(getattr(self, name)) for name in NEEDED[self.do]}
        rest = {f.name: f.default for f in fields(self)}
        for name in OPTIONAL.get(self.do, ()):
            value = getattr(self, name)
            if value != rest[name]:
                known[name] = _listed(value)
        return known


def edit_of(record: Any) -> Edit:
    """Return the edit of a record, a mapping as JSON and TOML have it.

    Raises:
        OptionError: If it is none, with what is odd about it.
    """
    if not isinstance(record, Mapping):
        raise OptionError("edit", found=record, needed='such as {"do": "reroot", ...}')
    odd = sorted(set(map(str, record)) - {f.name for f in fields(Edit)})
    do = record.get("do", MISSING)
    if do is MISSING or not isinstance(do, str) or do not in NEEDED:
        found = "no do" if do is MISSING else do
        raise OptionError("edit", found=found, needed=f"do = {', '.join(NEEDED)}")
    missing = [name for name in NEEDED[do] if name not in record]
    if missing or odd:
        wanted = (*NEEDED[do], *OPTIONAL.get(do, ()))
        raise OptionError(
            f"edit {do}",
            found=f"no {missing[0]}" if missing else f"{', '.join(odd)}",
            needed=", ".join(wanted),
        )
    told = {k: _plain(do, k, value) for k, value in record.items() if k != "do"}
    return Edit(do=do, **told)  # type: ignore[arg-type]


def edits_of(records: Iterable[Any]) -> tuple[Edit, ...]:
    """Return edits, some of which may still be records.

    Raises:
        OptionError: If one is no edit, with its number.
    """
    done = []
    for number, record in enumerate(records, start=1):
        try:
            done.append(record if isinstance(record, Edit) else edit_of(record))
        except OptionError as error:
            raise about(number, error) from None
    return tuple(done)


def about(number: int, error: OptionError) -> OptionError:
    """Return the error with the number of the edit it is about, counted from 1."""
    what = error.option.removeprefix("edit ")
    return OptionError(f"edit {number}: {what}", found=error.found, needed=error.needed)


def _plain(do: str, name: str, value: Any) -> Any:
    """Return a field's value in its own type.

    Raises:
        OptionError: If it is of another type.
    """
    of_type, needed = TYPES.get(name, (_text, "a name"))
    try:
        return of_type(value)
    except (TypeError, ValueError, OverflowError):
        raise _wrong(do, name, value, needed) from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    value.encode()  # what a file cannot hold is no name
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
    return tuple(map(_number, value))


def _whole(value: Any) -> int:
    if isinstance(value, bool) or value != int(value):
        raise TypeError
    return int(value)


TYPES: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    "bodies": (_texts, "a list of names"),
    "markers": (_texts, "a list of names"),
    "offset": (_numbers, "three numbers"),
    "normal": (_numbers, "three numbers"),
    "first": (_whole, "a whole number"),
    "last": (_whole, "a whole number"),
    "take": (_whole, "a whole number"),
    "height": (_number, "a number of metres"),
}


def _check(edit: Edit, name: str) -> None:
    """Raise unless a field that is needed says something."""
    value = getattr(edit, name)
    shown = list(value) if isinstance(value, tuple) else value
    if name == "bodies" and not (len(set(value)) == len(value) == 2 and all(value)):
        raise _wrong(edit.do, name, shown, "the names of two different bodies")
    if name == "markers" and not (value and len(set(value)) == len(value)):
        raise _wrong(edit.do, name, shown, "one marker or more, each once")
    if name in ("offset", "normal") and len(value) != 3:
        raise _wrong(edit.do, name, shown, "three numbers")
    if name == "normal" and not value[2] > 0.0:
        raise _wrong(edit.do, name, shown, "a direction out of the ground, +z up")
    if name == "kind" and value not in KINDS:
        raise _wrong(edit.do, name, shown, f"one of {', '.join(KINDS)}")
    if name == "last" and not 0 <= edit.first <= edit.last:
        found = f"{edit.first} to {edit.last}"
        raise _wrong(edit.do, "frames", found, "0 <= first <= last")
    _check_name(edit, name)


def _check_name(edit: Edit, name: str) -> None:
    """Raise where a name is needed and there is none; a marker may be on no body."""
    may_be_none = name == "to" and edit.do == "move-marker"
    is_name = name in ("body", "marker", "joint", "name", "to")
    if is_name and not may_be_none and not getattr(edit, name).strip():
        raise _wrong(edit.do, name, getattr(edit, name), "a name")


def _check_new_name(edit: Edit) -> None:
    """Raise where a body would get a subject's name, "JOE:", and none of its own."""
    field = {"rename": "to", "merge": "name", "split": "name"}.get(edit.do, "")
    given = getattr(edit, field, "")
    if given and not given.rpartition(":")[2].strip():
        raise _wrong(edit.do, field, given, "a name, not only a subject's")


def _wrong(do: str, name: str, found: Any, needed: str) -> OptionError:
    return OptionError(f"edit {do}, {name}", found=found, needed=needed)


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _ground_height(edit: Edit) -> float:
    """Return how far the plane is from the origin, in metres, up being positive."""
    return edit.height / (math.hypot(*edit.normal) or 1.0)


def _sentence(edit: Edit) -> str:
    """Return the edit in plain words."""
    a, b = edit.bodies if edit.bodies else ("", "")
    at = "({})".format(", ".join(f"{1e3 * v:.1f}" for v in edit.offset or edit.normal))
    called = f", called {edit.name}" if edit.name else ""
    some = ", ".join(edit.markers[:MOST_NAMED])
    if len(edit.markers) > MOST_NAMED:
        some += f" and {len(edit.markers) - MOST_NAMED} more"
    who = f"{some} in " if edit.markers else ""
    a_kind = f"a {edit.kind}" if edit.kind in ("ball", "hinge") else edit.kind
    where = f" of take {edit.take}" if edit.take else ""
    sentences = {
        "reroot": f"hung from {edit.body}",
        "move-marker": f"{edit.marker} put on {edit.to or 'no body'}",
        "merge": f"{a} and {b} made one{called}",
        "split": f"{some} split from {edit.body}{called}",
        "cut": f"{a} cut from {b}",
        "join": f"{a} joined to {b}",
        "kind": f"{edit.joint} made {a_kind}",
        "rename": f"{edit.name} renamed {edit.to}",
        "place-marker": f"{edit.marker} placed at {at} mm",
        "place-joint": f"{edit.joint} placed at {at} mm",
        "bad": f"{who}frames {edit.first} to {edit.last}{where} marked as bad",
        "ground": f"ground set at {1e3 * _ground_height(edit):.0f} mm",
    }
    return printable(sentences[edit.do])


# --- the file -------------------------------------------------------------------------


def read_edits(path: str | PathLike[str]) -> tuple[Edit, ...]:
    """Return the edits of a file such as `walk.c3d.edits.toml`, in their order.

    Raises:
        FormatError: If there is no such file or it is not TOML.
        OptionError: If an edit in it is odd, with its number.
    """
    path = Path(path)
    try:
        if path.stat().st_size > LARGEST_FILE:
            found = f"{path.stat().st_size} bytes"
            raise FormatError(path, expected="a small file of edits", found=found)
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        expected = "edits in TOML"
        raise FormatError(path, expected=expected, found=str(error)) from None
    records = content.get("edit", [])
    odd = sorted(set(content) - {"version", "edit"})
    if odd or content.get("version", VERSION) != VERSION or type(records) is not list:
        found = f"{', '.join(odd) or content}"
        expected = f"version = {VERSION} and tables [[edit]]"
        raise FormatError(path, expected=expected, found=found)
    return edits_of(records)


def write_edits(
    edits: Iterable[Edit], path: str | PathLike[str], *, overwrite: bool = False
) -> None:
    """Write edits as a small file that people can read and change.

    The file is whole or not there at all, and read back it gives the same edits.

    Raises:
        OptionError: If the file exists and `overwrite` is False.
        OutputError: If it cannot be written.
    """
    target = Path(path)
    check_target(target, overwrite=overwrite)
    blocks = ["# What was put right by hand, in order. Names are those after the edits"]
    blocks += ["# before. `marey solve --edits` replays them.", f"version = {VERSION}"]
    for edit in edits:
        blocks += ["", f"# {edit}", "[[edit]]"]
        blocks += [f"{key} = {_toml(value)}" for key, value in edit.record().items()]
    text = "\n".join([*blocks, ""])
    write_atomic({target: [text.encode()]})


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for one character that TOML wants escaped too.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
