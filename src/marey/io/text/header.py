"""The header of a table: fields by name, column names, and where the numbers begin."""

from collections.abc import Mapping
from dataclasses import dataclass

from marey.io.text.encoding import decode_text
from marey.io.text.numbers import parse_number

HEAD_BYTES = 2**16
"""Bytes of a table that show what separates its cells."""


@dataclass(frozen=True, slots=True)
class TableHeader:
    """Everything above the first frame."""

    fields: Mapping[str, str]
    """Values by keyword, as the file writes them."""

    columns: tuple[str, ...]
    """Names of columns or markers; empty when there are none."""

    body: bytes
    """The lines of numbers."""

    body_line: int
    """Number of the first of them, from 1."""

    def count(self, name: str) -> int | None:
        """Return a declared count, None when the header does not hold one."""
        value = parse_number(self.fields.get(name, ""))
        return None if value is None else int(value)


def split_cells(line: bytes, delimiter: str = "\t") -> list[str]:
    """Return the cells of a line: between delimiters, or else between blanks."""
    text = decode_text(line)
    if delimiter not in text:
        return text.split()
    return [cell.strip() for cell in text.split(delimiter)]


def delimiter_of(body: bytes) -> str:
    """Return what separates the cells of a table: tabs, or else blanks."""
    return "\t" if b"\t" in body[:HEAD_BYTES] else " "
