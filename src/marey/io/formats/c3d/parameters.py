"""The parameter section of a C3D file: a chain of records, read with suspicion."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Literal

import numpy as np

from marey.errors import DataError
from marey.io.contract import decoded
from marey.io.formats.c3d.encoding import Encoding

Kind = Literal["char", "byte", "integer", "real"]

BLOCK = 512
MOST_BLOCKS = 255
MOST = 255
"""Largest dimension of a parameter: longer lists continue in LABELS2, LABELS3, ..."""

_KINDS: dict[int, Kind] = {-1: "char", 1: "byte", 2: "integer", 4: "real"}
_BYTES: dict[Kind, int] = {"char": 1, "byte": 1, "integer": 2, "real": 4}
_MOST_DIMENSIONS = 7
_HEAD = 4
"""Bytes of the section before its first record."""


@dataclass(frozen=True, slots=True, eq=False)
class Parameter:
    """One parameter with all that is needed to write it again."""

    group: str
    name: str
    kind: Kind
    shape: tuple[int, ...]
    """Dimensions in the order of the file: the first runs fastest."""

    values: tuple[Any, ...]
    """Numbers, or strings without the blanks that pad them."""

    description: str = ""
    end: int = 0
    """First byte after the record; 0 when it was not read from a file."""

    @property
    def content(self) -> Any:
        """The value as one would write it in Python: a string, a number, an array."""
        if self.kind == "char":
            return self.values if len(self.shape) > 1 else "".join(self.values[:1])
        if not self.shape:
            return self.values[0] if self.values else None
        dtype = float if self.kind == "real" else int
        return np.array(self.values, dtype).reshape(self.shape[::-1])


@dataclass(frozen=True, slots=True, eq=False)
class Parameters:
    """All parameters of a file, asked for by group and name."""

    groups: Mapping[str, Mapping[str, Parameter]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Parameter]:
        for group in self.groups.values():
            yield from group.values()

    def get(self, group: str, name: str) -> Parameter | None:
        """Return one parameter, None when the file has none of this name."""
        return self.groups.get(group, {}).get(name)

    def number(self, group: str, name: str) -> float | None:
        """Return the first number of a parameter, None when there is none."""
        values = self.numbers(group, name)
        return values[0] if values else None

    def numbers(self, group: str, name: str) -> tuple[float, ...]:
        """Return all numbers of a parameter and of NAME2, NAME3, ... after it."""
        return tuple(
            float(value)
            for part in self._parts(group, name)
            if part.kind != "char"
            for value in part.values
        )

    def count(self, group: str, name: str) -> int | None:
        """Return a count: C3D keeps those above 32,767 in the sign of 16 bits."""
        parameter = self.get(group, name)
        value = self.number(group, name)
        if parameter is None or value is None or not np.isfinite(value):
            return None
        return int(value) & 0xFFFF if parameter.kind == "integer" else int(value)

    def texts(self, group: str, name: str) -> tuple[str, ...]:
        """Return all strings of a parameter and of NAME2, NAME3, ... after it."""
        return tuple(
            value
            for part in self._parts(group, name)
            if part.kind == "char"
            for value in part.values
        )

    def exact(self, name: str) -> float | None:
        """Return a number that marey wrote as text beside its rounded value."""
        for text in self.texts("MAREY", name)[:1]:
            try:
                return float(text)
            except ValueError:
                return None
        return None

    def _parts(self, group: str, name: str) -> Iterator[Parameter]:
        number = 1
        while part := self.get(group, name if number == 1 else f"{name}{number}"):
            yield part
            number += 1


@dataclass(frozen=True, slots=True)
class _Record:
    """One record of the chain, its value not yet read."""

    position: int
    name: bytes
    group_id: int
    after_name: int
    by_offset: int
    """Next record by the stated offset; 0 when this says it is the last."""

    by_length: int
    """Next record by this one's own length."""

    kind: Kind | None = None
    shape: tuple[int, ...] = ()
    data: int = 0
    data_end: int = 0

    @property
    def is_sound(self) -> bool:
        """Whether this looks like a record rather than like stray bytes."""
        printable = all(32 <= byte < 127 for byte in self.name)
        return printable and (self.group_id < 0 or self.kind is not None)


def parse(
    data: bytes, start: int, stop: int, encoding: Encoding, note: Callable[[str], None]
) -> Parameters:
    """Return the parameters that stand between two bytes of a file.

    Records tell their end twice, by their length and by the offset of the next one.
    Where the two differ, the one that leads to another record is believed.

    Args:
        data: The beginning of the file, parameter section included.
        start: First byte of the section.
        stop: First byte after it.
        encoding: How the file writes numbers.
        note: Called with one sentence for every contradiction met.
    """
    stop = min(stop, len(data))
    names: dict[int, str] = {}
    found: list[tuple[int, Parameter]] = []
    position = start + _HEAD
    while position and (record := _record(data, position, stop, encoding)):
        position = _next(data, record, stop, encoding, note)
        limit = min(position or record.by_length, stop)
        text = decoded(record.name).strip().upper()
        if not record.is_sound:
            note(f"a parameter record at byte {record.position} is damaged")
        elif record.group_id < 0:
            names.setdefault(-record.group_id, text)
        else:
            parameter = _parameter(data, record, limit, encoding, note)
            found.append((record.group_id, parameter))
    if position > stop or (position and any(data[position:stop][:1])):
        note(f"the parameter section ends inside a record at byte {position}")
    return _grouped(names, found, note)


def _grouped(
    names: Mapping[int, str],
    found: Sequence[tuple[int, Parameter]],
    note: Callable[[str], None],
) -> Parameters:
    groups: dict[str, dict[str, Parameter]] = {name: {} for name in names.values()}
    for number, parameter in found:
        if number not in names:
            note(f"parameter {parameter.name} belongs to group {number}, not in file")
        group = names.get(number, f"GROUP{number}")
        known = groups.setdefault(group, {})
        first = known.setdefault(parameter.name, replace(parameter, group=group))
        if first.values != parameter.values:
            note(f"parameter {group}:{parameter.name} stands twice, the first is taken")
    return Parameters(groups)


def _record(data: bytes, at: int, stop: int, encoding: Encoding) -> _Record | None:
    """Return the record at a byte; None at the end of the chain."""
    if at + 2 > stop or data[at] == 0:
        return None
    after_name = at + 2 + abs(_signed(data[at]))
    if after_name + 3 > stop:
        return None
    offset = encoding.unsigned(data, after_name)
    name = data[at + 2 : after_name]
    group_id = _signed(data[at + 1])
    by_offset = after_name + offset if offset else 0
    body = after_name + 2
    if group_id < 0:
        by_length = body + 1 + data[body]
        return _Record(at, name, group_id, after_name, by_offset, by_length)
    kind = _KINDS.get(_signed(data[body])) if group_id else None
    n_dimensions = data[body + 1] if body + 1 < stop else _MOST_DIMENSIONS + 1
    first = body + 2 + n_dimensions
    if kind is None or n_dimensions > _MOST_DIMENSIONS or first > stop:
        return _Record(at, name, group_id, after_name, by_offset, 0)
    shape = tuple(data[body + 2 : first])
    end = first + prod(shape) * _BYTES[kind]
    by_length = end + 1 + (data[end] if end < stop else 0)
    return _Record(
        at, name, group_id, after_name, by_offset, by_length, kind, shape, first, end
    )


def _next(
    data: bytes,
    record: _Record,
    stop: int,
    encoding: Encoding,
    note: Callable[[str], None],
) -> int:
    """Return the byte of the next record, 0 when there is none."""
    if record.by_offset in (0, record.by_length):
        ahead = _trust(data, record.by_length, stop, encoding)
        if record.by_offset or ahead < 2:
            return record.by_offset
    by_offset = _trust(data, record.by_offset, stop, encoding)
    by_length = _trust(data, record.by_length, stop, encoding)
    name = decoded(record.name)
    note(f"parameter record {name!r} states another length than it has")
    if max(by_offset, by_length) == 0:
        return 0
    taken = record.by_offset if by_offset >= by_length else record.by_length
    return taken if taken > record.position else 0


def _trust(data: bytes, at: int, stop: int, encoding: Encoding) -> int:
    """Return how much the bytes at a place look like a record, 0 (not) to 3."""
    if at <= 0 or at >= stop:
        return 0
    if data[at] == 0:
        return 1
    record = _record(data, at, stop, encoding)
    if record is None or not record.is_sound:
        return 0
    return 3 if record.by_offset in (0, record.by_length) else 2


def _parameter(
    data: bytes,
    record: _Record,
    limit: int,
    encoding: Encoding,
    note: Callable[[str], None],
) -> Parameter:
    assert record.kind is not None
    name = decoded(record.name).strip().upper()
    end = min(record.data_end, max(limit, record.data), len(data))
    if end < record.data_end:
        note(f"parameter {name} is cut short")
    raw = data[record.data : end]
    values, shape = _values(record.kind, record.shape, raw, encoding)
    described = end + 1 < limit
    description = data[end + 1 : min(end + 1 + data[end], limit)] if described else b""
    text = decoded(description).rstrip("\0 ")
    after = max(end, min(record.by_length, limit))
    return Parameter("", name, record.kind, shape, values, text, after)


def _values(
    kind: Kind, shape: tuple[int, ...], raw: bytes, encoding: Encoding
) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """Return what fits into the bytes at hand, and its shape."""
    if kind == "char":
        width = shape[0] if shape else 1
        count = len(raw) // width if width else 0
        parts = [raw[i * width : (i + 1) * width] for i in range(count)]
        texts = tuple(decoded(part).rstrip("\0 ") for part in parts)
        whole = count == prod(shape[1:])
        return texts, shape if whole else (width, count)
    if kind == "byte":
        numbers = np.frombuffer(raw, np.int8).tolist()
    elif kind == "integer":
        numbers = encoding.integers(raw).tolist()
    else:
        numbers = encoding.reals(raw).tolist()
    whole = len(numbers) == prod(shape)
    return tuple(numbers), shape if whole else (len(numbers),)


def _signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


def build(parameters: Sequence[Parameter]) -> bytes:
    """Return a parameter section in Intel order, padded to whole blocks.

    Raises:
        DataError: If it does not fit into 255 blocks of 512 bytes or 127 groups.
    """
    groups = list(dict.fromkeys(parameter.group for parameter in parameters))
    records = [_built(group.encode(), -(i + 1), b"") for i, group in enumerate(groups)]
    for parameter in parameters:
        number = groups.index(parameter.group) + 1
        body = _body(parameter)
        records.append(_built(parameter.name.encode(), number, body))
    if records:
        records[-1] = _last(records[-1])
    size = _HEAD + sum(map(len, records))
    blocks = -(-size // BLOCK)
    if blocks > MOST_BLOCKS or len(groups) > 127:
        raise DataError(
            "C3D parameters",
            found=f"{blocks} blocks in {len(groups)} groups",
            needed=f"at most {MOST_BLOCKS} blocks in 127: fewer or shorter labels",
        )
    head = bytes([1, 0x50, blocks, 84])
    return (head + b"".join(records)).ljust(blocks * BLOCK, b"\0")


def _built(name: bytes, number: int, body: bytes) -> bytes:
    rest = body if number > 0 else b"\0"
    offset = (2 + len(rest)).to_bytes(2, "little")
    return bytes([len(name), number & 0xFF]) + name + offset + rest


def _last(record: bytes) -> bytes:
    after_name = 2 + record[0]
    return record[:after_name] + b"\0\0" + record[after_name + 2 :]


def _body(parameter: Parameter) -> bytes:
    code = next(c for c, kind in _KINDS.items() if kind == parameter.kind) & 0xFF
    shape = bytes([len(parameter.shape), *parameter.shape])
    description = parameter.description.encode()[:MOST]
    ending = bytes([len(description)]) + description
    return bytes([code]) + shape + _packed(parameter) + ending


def _packed(parameter: Parameter) -> bytes:
    if parameter.kind == "char":
        width = parameter.shape[0] if parameter.shape else 1
        texts = [text.encode()[:width] for text in parameter.values]
        return b"".join(text.ljust(width) for text in texts)
    dtype = {"byte": "i1", "integer": "<i2", "real": "<f4"}[parameter.kind]
    return np.array(parameter.values, dtype).tobytes()
