"""The parameter section of a C3D file: a linked list of records, each checked."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Literal

import numpy as np

from marey.errors import DataError
from marey.io.formats.c3d.encoding import C3dEncoding
from marey.io.text.encoding import decode_text

ParameterKind = Literal["char", "byte", "integer", "real"]

BLOCK = 512
MAX_BLOCKS = 255
MAX_DIMENSION = 255
"""Largest dimension of a parameter: longer lists continue in LABELS2, LABELS3, ..."""

_KINDS: dict[int, ParameterKind] = {-1: "char", 1: "byte", 2: "integer", 4: "real"}
_BYTES: dict[ParameterKind, int] = {"char": 1, "byte": 1, "integer": 2, "real": 4}
_MAX_N_DIMENSIONS = 7
_SECTION_HEADER_BYTES = 4
"""Bytes of the section before its first record."""


@dataclass(frozen=True, slots=True, eq=False)
class C3dParameter:
    """One parameter with all that is needed to write it again."""

    group: str
    name: str
    kind: ParameterKind
    shape: tuple[int, ...]
    """Dimensions in the order of the file: the first runs fastest."""

    values: tuple[Any, ...]
    """Numbers, or strings without the blanks that pad them."""

    description: str = ""
    end: int = 0
    """First byte after the record; 0 when it was not read from a file."""

    @property
    def content(self) -> Any:
        """The value as a Python object: a string, a number, an array."""
        if self.kind == "char":
            return self.values if len(self.shape) > 1 else "".join(self.values[:1])
        if not self.shape:
            return self.values[0] if self.values else None
        dtype = float if self.kind == "real" else int
        return np.array(self.values, dtype).reshape(self.shape[::-1])


@dataclass(frozen=True, slots=True, eq=False)
class C3dParameters:
    """All parameters of a file, asked for by group and name."""

    groups: Mapping[str, Mapping[str, C3dParameter]] = field(default_factory=dict)

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> "C3dParameters":
        """Return the parameters that `to_plain` gave."""
        return C3dParameters(
            {
                group: {
                    name: C3dParameter(
                        group,
                        name,
                        entry["kind"],
                        tuple(entry["shape"]),
                        tuple(entry["values"]),
                        entry["description"],
                    )
                    for name, entry in members.items()
                }
                for group, members in plain.items()
            }
        )

    def to_plain(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Return all parameters as plain data, as `Source.parameters` keeps them."""
        return {
            group: {
                name: {
                    "kind": parameter.kind,
                    "shape": list(parameter.shape),
                    "values": list(parameter.values),
                    "description": parameter.description,
                }
                for name, parameter in members.items()
            }
            for group, members in self.groups.items()
        }

    def __iter__(self) -> Iterator[C3dParameter]:
        for group in self.groups.values():
            yield from group.values()

    def get(self, group: str, name: str) -> C3dParameter | None:
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
        """Return a count: counts above 32,767 are negative 16-bit integers."""
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

    def text(self, group: str, name: str) -> str:
        """Return the first string of a parameter, "" when there is none."""
        return "".join(self.texts(group, name)[:1])

    def exact(self, name: str) -> float | None:
        """Return a number that marey wrote as text in addition to its rounded value."""
        try:
            return float(self.text("MAREY", name))
        except ValueError:
            return None

    def _parts(self, group: str, name: str) -> Iterator[C3dParameter]:
        number = 1
        while part := self.get(group, name if number == 1 else f"{name}{number}"):
            yield part
            number += 1


@dataclass(frozen=True, slots=True)
class _ParameterRecord:
    """One record of the chain, its value not yet read."""

    position: int
    name: bytes
    group_id: int
    by_offset: int
    """Next record by the stated offset; 0 when this says it is the last."""

    by_length: int
    """Next record by this one's own length."""

    kind: ParameterKind | None = None
    shape: tuple[int, ...] = ()
    data: int = 0
    data_end: int = 0

    @property
    def title(self) -> str:
        """Its name as it is asked for."""
        return decode_text(self.name).strip().upper()

    @property
    def is_sound(self) -> bool:
        """Whether this looks like a record rather than random bytes."""
        printable = all(32 <= byte < 127 for byte in self.name)
        return printable and (self.group_id < 0 or self.kind is not None)


def parse_parameters(
    data: bytes,
    start: int,
    stop: int,
    encoding: C3dEncoding,
    note: Callable[[str], None],
) -> C3dParameters:
    """Return the parameters between two bytes of a file.

    A record states its end twice, by its length and by the offset of the next record.
    Where the two differ, the one that leads to another record is used.

    Args:
        data: The beginning of the file, parameter section included.
        start: First byte of the section.
        stop: First byte after it.
        encoding: How the file writes numbers.
        note: Called with one sentence for every contradiction met.
    """
    section = _ParameterSection(data, min(stop, len(data)), encoding, note)
    return section.parse(start + _SECTION_HEADER_BYTES)


@dataclass(frozen=True, slots=True)
class _ParameterSection:
    """A parameter section that is being read."""

    data: bytes
    stop: int
    """First byte after it, within the data."""

    encoding: C3dEncoding
    note: Callable[[str], None]

    def parse(self, position: int) -> C3dParameters:
        """Return all parameters of the chain of records that begins at a byte."""
        names: dict[int, str] = {}
        found: list[tuple[int, C3dParameter]] = []
        while position and (record := self.read_record(position)):
            position = self.next_position(record)
            limit = min(position or record.by_length, self.stop)
            if not record.is_sound:
                self.note(f"a parameter record at byte {record.position} is damaged")
            elif record.group_id < 0:
                names.setdefault(-record.group_id, record.title)
            else:
                found.append((record.group_id, self.read_parameter(record, limit)))
        if position > self.stop or (
            position and any(self.data[position : self.stop][:1])
        ):
            text = f"the parameter section ends inside a record at byte {position}"
            self.note(text)
        return self.group_parameters(names, found)

    def group_parameters(
        self, names: Mapping[int, str], found: Sequence[tuple[int, C3dParameter]]
    ) -> C3dParameters:
        """Return the parameters by the names of their groups."""
        groups: dict[str, dict[str, C3dParameter]] = {n: {} for n in names.values()}
        for number, parameter in found:
            name = parameter.name
            if number not in names:
                self.note(f"parameter {name} belongs to group {number}, not in file")
            group = names.get(number, f"GROUP{number}")
            known = groups.setdefault(group, {})
            first = known.setdefault(name, replace(parameter, group=group))
            if first.values != parameter.values:
                self.note(f"parameter {group}:{name} occurs twice, the first is used")
        return C3dParameters(groups)

    def read_record(self, at: int) -> _ParameterRecord | None:
        """Return the record at a byte; None at the end of the chain."""
        data, stop = self.data, self.stop
        if at + 2 > stop or data[at] == 0:
            return None
        after_name = at + 2 + abs(_signed_byte(data[at]))
        if after_name + 3 > stop:
            return None
        offset = self.encoding.unsigned(data, after_name)
        group_id = _signed_byte(data[at + 1])
        body = after_name + 2
        record = _ParameterRecord(
            position=at,
            name=data[at + 2 : after_name],
            group_id=group_id,
            by_offset=after_name + offset if offset else 0,
            by_length=body + 1 + data[body] if group_id < 0 else 0,
        )
        kind = _KINDS.get(_signed_byte(data[body])) if group_id > 0 else None
        n_dimensions = data[body + 1] if body + 1 < stop else _MAX_N_DIMENSIONS + 1
        first = body + 2 + n_dimensions
        if kind is None or n_dimensions > _MAX_N_DIMENSIONS or first > stop:
            return record
        shape = tuple(data[body + 2 : first])
        end = first + prod(shape) * _BYTES[kind]
        by_length = end + 1 + (data[end] if end < stop else 0)
        return replace(
            record,
            by_length=by_length,
            kind=kind,
            shape=shape,
            data=first,
            data_end=end,
        )

    def next_position(self, record: _ParameterRecord) -> int:
        """Return the byte of the next record, 0 when there is none."""
        by_length = self.plausibility(record.by_length)
        if record.by_offset in (0, record.by_length) and (
            record.by_offset or by_length < 2
        ):
            return record.by_offset
        by_offset = self.plausibility(record.by_offset)
        name = decode_text(record.name)
        self.note(f"parameter record {name!r} states another length than it has")
        if max(by_offset, by_length) == 0:
            return 0
        taken = record.by_offset if by_offset >= by_length else record.by_length
        return taken if taken > record.position else 0

    def plausibility(self, at: int) -> int:
        """Return how plausible a record at a byte is, 0 (not) to 3."""
        if at <= 0 or at >= self.stop:
            return 0
        if self.data[at] == 0:
            return 1
        record = self.read_record(at)
        if record is None or not record.is_sound:
            return 0
        return 3 if record.by_offset in (0, record.by_length) else 2

    def read_parameter(self, record: _ParameterRecord, limit: int) -> C3dParameter:
        """Return the parameter of a record that ends before a byte."""
        assert record.kind is not None
        data = self.data
        end = min(record.data_end, max(limit, record.data), len(data))
        if end < record.data_end:
            self.note(f"parameter {record.title} is cut short")
        values, shape = self.values(record.kind, record.shape, data[record.data : end])
        described = end + 1 < limit
        stop = min(end + 1 + data[end], limit) if described else 0
        text = decode_text(data[end + 1 : stop]).rstrip("\0 ")
        after = max(end, min(record.by_length, limit))
        return C3dParameter("", record.title, record.kind, shape, values, text, after)

    def values(
        self, kind: ParameterKind, shape: tuple[int, ...], raw: bytes
    ) -> tuple[tuple[Any, ...], tuple[int, ...]]:
        """Return what fits into the bytes at hand, and its shape."""
        if kind == "char":
            width = shape[0] if shape else 1
            count = len(raw) // width if width else 0
            parts = [raw[i * width : (i + 1) * width] for i in range(count)]
            texts = tuple(decode_text(part).rstrip("\0 ") for part in parts)
            return texts, shape if count == prod(shape[1:]) else (width, count)
        if kind == "byte":
            numbers = np.frombuffer(raw, np.int8).tolist()
        elif kind == "integer":
            numbers = self.encoding.integers(raw).tolist()
        else:
            numbers = self.encoding.reals(raw).tolist()
        whole = len(numbers) == prod(shape)
        return tuple(numbers), shape if whole else (len(numbers),)


def _signed_byte(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


def split_list(
    group: str, name: str, kind: ParameterKind, values: Sequence[Any], rows: int = 1
) -> list[C3dParameter]:
    """Return a list as parameters NAME, NAME2, ... of at most 255 entries each.

    Args:
        group: Group of the parameters.
        name: Name of the first parameter.
        kind: Type of the values.
        values: Numbers or strings.
        rows: Numbers per entry.
    """
    found = []
    for i, start in enumerate(range(0, max(len(values), 1), MAX_DIMENSION * rows)):
        part = tuple(values[start : start + MAX_DIMENSION * rows])
        shape: tuple[int, ...] = (len(part),)
        if kind == "char":
            width = max((len(text.encode()) for text in part), default=0)
            shape = (min(max(width, 1), MAX_DIMENSION), len(part))
        elif rows > 1:
            shape = (rows, len(part) // rows)
        number = "" if i == 0 else str(i + 1)
        found.append(C3dParameter(group, f"{name}{number}", kind, shape, part))
    return found


def build_section(parameters: Sequence[C3dParameter]) -> bytes:
    """Return a parameter section in Intel order, padded to whole blocks.

    Raises:
        DataError: If it does not fit into 255 blocks of 512 bytes or 127 groups.
    """
    groups = list(dict.fromkeys(parameter.group for parameter in parameters))
    records = [
        _build_record(group.encode(), -(i + 1), b"") for i, group in enumerate(groups)
    ]
    for parameter in parameters:
        number = groups.index(parameter.group) + 1
        body = _record_body(parameter)
        records.append(_build_record(parameter.name.encode(), number, body))
    if records:
        records[-1] = _mark_last(records[-1])
    size = _SECTION_HEADER_BYTES + sum(map(len, records))
    blocks = -(-size // BLOCK)
    if blocks > MAX_BLOCKS or len(groups) > 127:
        raise DataError(
            "C3D parameters",
            found=f"{blocks} blocks in {len(groups)} groups",
            needed=f"at most {MAX_BLOCKS} blocks in 127: fewer or shorter labels",
        )
    head = bytes([1, 0x50, blocks, 84])
    return (head + b"".join(records)).ljust(blocks * BLOCK, b"\0")


def _build_record(name: bytes, number: int, body: bytes) -> bytes:
    rest = body if number > 0 else b"\0"
    offset = (2 + len(rest)).to_bytes(2, "little")
    return bytes([len(name), number & 0xFF]) + name + offset + rest


def _mark_last(record: bytes) -> bytes:
    after_name = 2 + record[0]
    return record[:after_name] + b"\0\0" + record[after_name + 2 :]


def _record_body(parameter: C3dParameter) -> bytes:
    code = next(c for c, kind in _KINDS.items() if kind == parameter.kind) & 0xFF
    shape = bytes([len(parameter.shape), *parameter.shape])
    description = parameter.description.encode()[:MAX_DIMENSION]
    ending = bytes([len(description)]) + description
    return bytes([code]) + shape + _pack_values(parameter) + ending


def _pack_values(parameter: C3dParameter) -> bytes:
    if parameter.kind == "char":
        width = parameter.shape[0] if parameter.shape else 1
        texts = [text.encode()[:width] for text in parameter.values]
        return b"".join(text.ljust(width) for text in texts)
    dtype = {"byte": "i1", "integer": "<i2", "real": "<f4"}[parameter.kind]
    return np.array(parameter.values, dtype).tobytes()
