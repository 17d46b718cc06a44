"""XML from strangers: a small tree without entities, outside files or deep nesting."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from marey.io.contract import File, decoded

LARGEST_FILE = 2**30
LARGEST_TREE = 100_000
"""Elements that may be kept; what is skipped or consumed does not count."""

LONGEST_TAG = 2**18
"""Bytes of a tag or comment. Attributes are the one thing the parser collects without
asking, so a longer tag is refused before it ends."""

CHUNK = 2**16

DEEPEST = 200
"""Elements that may stand inside one another."""


@dataclass(slots=True)
class Element:
    """One element: its name without the namespace, attributes, children and text."""

    name: str
    attributes: dict[str, str]
    line: int
    children: list["Element"] = field(default_factory=list)
    text: str = ""
    """The text before the first child."""

    def find(self, name: str) -> "Element | None":
        """Return the first child of this name, None if there is none."""
        return next(self.all(name), None)

    def all(self, name: str) -> Iterator["Element"]:
        """Return the children of this name, in order."""
        return (child for child in self.children if child.name == name)


def parse(
    file: File,
    *,
    skip: Collection[str] = (),
    consume: Mapping[str, Callable[[Element], None]] | None = None,
) -> Element:
    """Return the root element of an XML file.

    A document type, which is where entities are declared, is refused.

    Args:
        file: The file; UTF-8, UTF-16 with its mark, or else Latin-1.
        skip: Names of elements to leave out with all they hold.
        consume: Functions by element name, called with each such element when it ends;
            the tree then does not keep it.

    Raises:
        FormatError: If the file is not XML, or refused for its size or content.
    """
    if file.size > LARGEST_FILE:
        raise file.error(
            None, expected=f"at most {LARGEST_FILE} bytes", found=f"{file.size}"
        )
    parser = expat.ParserCreate("UTF-8", " ")
    builder = _Builder(file, parser, frozenset(skip), consume or {})
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.characters
    parser.StartDoctypeDeclHandler = builder.refuse
    try:
        _feed(file, parser, _utf8(file.text()))
    except expat.ExpatError as error:
        raise file.error(
            error.lineno,
            expected="well-formed XML",
            found=expat.ErrorString(error.code),
            counted="line",
        ) from error
    return builder.root.children[0]


def _feed(file: File, parser: expat.XMLParserType, data: bytes) -> None:
    """Parse chunk by chunk, to stop inside a tag that goes on and on."""
    for first in range(0, max(len(data), 1), CHUNK):
        stop = first + CHUNK
        parser.Parse(data[first:stop], stop >= len(data))
        if stop < len(data) and stop - parser.CurrentByteIndex > LONGEST_TAG:
            file.fail_at_line(
                parser.CurrentLineNumber,
                expected=f"tags and comments of at most {LONGEST_TAG} bytes",
                found="a longer one",
            )


def _utf8(data: bytes) -> bytes:
    try:
        data.decode()
    except UnicodeDecodeError:
        return decoded(data).encode()
    return data


class _Builder:
    """Collects elements as the parser meets them."""

    def __init__(
        self,
        file: File,
        parser: expat.XMLParserType,
        skip: frozenset[str],
        consume: Mapping[str, Callable[[Element], None]],
    ) -> None:
        self.root = Element("", {}, 0)
        self._open = [self.root]
        self._file, self._parser = file, parser
        self._skip, self._consume = skip, consume
        self._skipping = 0
        self._kept = 0
        self._kept_before: list[int] = []
        self._childless = True
        self._texts: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Open an element, or go deeper into one that is skipped."""
        local = name.rpartition(" ")[2]
        if self._skipping or local in self._skip:
            self._skipping += 1
            return
        self._finish_text()
        named = {key.rpartition(" ")[2]: value for key, value in attributes.items()}
        element = Element(local, named, self._parser.CurrentLineNumber)
        if local in self._consume:
            self._kept_before.append(self._kept)
        self._kept += 1
        if self._kept > LARGEST_TREE:
            self._refuse_more(f"{LARGEST_TREE} elements")
        if len(self._open) > DEEPEST:
            self._refuse_more(f"{DEEPEST} elements inside one another")
        self._open[-1].children.append(element)
        self._open.append(element)
        self._childless = True

    def end(self, name: str) -> None:
        """Close an element and hand it to whoever asked for it."""
        if self._skipping:
            self._skipping -= 1
            return
        self._finish_text()
        element = self._open.pop()
        self._childless = False
        consumer = self._consume.get(element.name)
        if consumer is not None:
            self._open[-1].children.pop()
            self._kept = self._kept_before.pop()
            consumer(element)

    def characters(self, text: str) -> None:
        """Keep text that stands before the first child."""
        if not self._skipping and self._childless:
            self._texts.append(text)

    def refuse(self, name: str, *_: object) -> None:
        """Refuse a document type."""
        self._file.fail_at_line(
            self._parser.CurrentLineNumber,
            expected="XML without a document type",
            found=f"<!DOCTYPE {name}",
        )

    def _finish_text(self) -> None:
        if self._texts:
            self._open[-1].text = "".join(self._texts)
            self._texts.clear()

    def _refuse_more(self, limit: str) -> NoReturn:
        self._file.fail_at_line(
            self._parser.CurrentLineNumber, expected=f"at most {limit}", found="more"
        )
