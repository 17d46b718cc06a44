"""XML written line by line, so that trees of any depth take no recursion."""

from collections.abc import Iterable
from contextlib import ExitStack
from xml.sax.saxutils import escape, quoteattr

from marey.io.text.names import printable_name

DIGITS = 12
"""Significant digits of a number: lengths of metres to 1e-11 m."""

MAX_INDENT = 16
"""Largest indentation, so that a deep tree does not fill the file with blanks."""


class XmlWriter:
    """An XML document that grows element by element."""

    def __init__(self) -> None:
        self._lines = ['<?xml version="1.0" encoding="UTF-8"?>']
        self._open: list[str] = []

    @property
    def depth(self) -> int:
        """Number of elements that are open."""
        return len(self._open)

    def open(self, tag: str, **attributes: str) -> ExitStack:
        """Begin an element; as a context it ends there, else by `close`."""
        self._write(f"<{tag}{_spell_attributes(attributes)}>")
        element = ExitStack()
        element.callback(self.close, self.depth)
        self._open.append(tag)
        return element

    def leaf(self, tag: str, text: str = "", **attributes: str) -> None:
        """Write an element without children."""
        start = f"<{tag}{_spell_attributes(attributes)}"
        self._write(f"{start}>{escape(text)}</{tag}>" if text else f"{start}/>")

    def comment(self, text: str) -> None:
        """Write a comment, with an escape of JSON for two hyphens: they may not be."""
        shown = text.replace("--", "-\\u002d")
        self._write(f"<!-- {shown} -->")

    def close(self, depth: int) -> None:
        """End all elements that are deeper than this."""
        while self.depth > depth:
            tag = self._open.pop()
            self._write(f"</{tag}>")

    def render(self) -> bytes:
        """Return the document, every element ended."""
        self.close(0)
        return ("\n".join(self._lines) + "\n").encode()

    def _write(self, line: str) -> None:
        self._lines.append("  " * min(self.depth, MAX_INDENT) + line)


def _spell_attributes(attributes: dict[str, str]) -> str:
    # "class" and "range" are words of Python: an underscore ends such a keyword.
    pairs = ((key.rstrip("_"), value) for key, value in attributes.items())
    return "".join(f" {key}={quoteattr(value)}" for key, value in pairs)


def spell(values: float | Iterable[float]) -> str:
    """Return numbers as text, separated by blanks; a negative zero is a zero."""
    numbers = values if isinstance(values, Iterable) else (values,)
    return " ".join(f"{float(value) + 0.0:.{DIGITS}g}" for value in numbers)


def spelled_name(name: str, allowed: str = "", forbidden: str = "") -> str:
    """Return a name that a format can spell; "_" replaces other characters.

    Args:
        name: Any text.
        allowed: The only characters besides ASCII letters and digits; all printable
            ones when empty.
        forbidden: Printable characters that the format cannot hold.
    """
    text = printable_name(name, forbidden)
    if not allowed:
        return text
    return "".join(
        c if c in allowed or (c.isascii() and c.isalnum()) else "_" for c in text
    )
