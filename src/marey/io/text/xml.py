"""XML of untrusted origin: no entities, no external files, bounded size and depth."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from marey.io.file import File
from marey.io.text.encoding import decode_text

MAX_FILE_BYTES = 2**30
MAX_ELEMENTS = 100_000
"""Largest number of elements in the tree, without skipped and consumed ones."""

MAX_TAG_BYTES = 2**18
"""Bytes of a tag or comment. Attributes are the one thing the parser collects without
asking, so a longer tag is refused before it ends."""

CHUNK_BYTES = 2**16

MAX_DEPTH = 200
"""Largest nesting of elements."""


@dataclass(slots=True)
class XmlElement:
    """One element: its name without the namespace, attributes, children and text."""

    name: str
    attributes: dict[str, str]
    line: int
    children: list["XmlElement"] = field(default_factory=list)
    text: str = ""
    """The text before the first child."""

    def find(self, name: str) -> "XmlElement | None":
        """Return the first child of this name, None if there is none."""
        return next(self.all(name), None)

    def all(self, name: str) -> Iterator["XmlElement"]:
        """Return the children of this name, in order."""
        return (child for child in self.children if child.name == name)

    def elements_in(self, group: str, name: str) -> list["XmlElement"]:
        """Return the elements of a name inside the first child of another name."""
        inside = self.find(group)
        return [] if inside is None else list(inside.all(name))


def parse_xml(
    file: File,
    *,
    skip: Collection[str] = (),
    consume: Mapping[str, Callable[[XmlElement], None]] | None = None,
) -> XmlElement:
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
    if file.size > MAX_FILE_BYTES:
        file.fail(f"at most {MAX_FILE_BYTES} bytes", file.size)
    parser = expat.ParserCreate("UTF-8", " ")
    builder = _XmlTreeBuilder(file, parser, frozenset(skip), consume or {})
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.characters
    parser.StartDoctypeDeclHandler = builder.refuse
    try:
        _feed(file, parser, _to_utf8(file.text()))
    except expat.ExpatError as error:
        file.fail(
            "well-formed XML",
            expat.ErrorString(error.code),
            line=error.lineno,
            cause=error,
        )
    return builder.root.children[0]


def _feed(file: File, parser: expat.XMLParserType, data: bytes) -> None:
    """Parse chunk by chunk, to stop inside an endless tag."""
    for first in range(0, max(len(data), 1), CHUNK_BYTES):
        stop = first + CHUNK_BYTES
        parser.Parse(data[first:stop], stop >= len(data))
        if stop < len(data) and stop - parser.CurrentByteIndex > MAX_TAG_BYTES:
            file.fail(
                f"tags and comments of at most {MAX_TAG_BYTES} bytes",
                "a longer one",
                line=parser.CurrentLineNumber,
            )


def _to_utf8(data: bytes) -> bytes:
    try:
        data.decode()
    except UnicodeDecodeError:
        return decode_text(data).encode()
    return data


class _XmlTreeBuilder:
    """Builder of the element tree: handlers of the expat parser."""

    def __init__(
        self,
        file: File,
        parser: expat.XMLParserType,
        skip: frozenset[str],
        consume: Mapping[str, Callable[[XmlElement], None]],
    ) -> None:
        self.root = XmlElement("", {}, 0)
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
        element = XmlElement(local, named, self._parser.CurrentLineNumber)
        if local in self._consume:
            self._kept_before.append(self._kept)
        self._kept += 1
        if self._kept > MAX_ELEMENTS:
            self._refuse_more(f"{MAX_ELEMENTS} elements")
        if len(self._open) > MAX_DEPTH:
            self._refuse_more(f"{MAX_DEPTH} elements inside one another")
        self._open[-1].children.append(element)
        self._open.append(element)
        self._childless = True

    def end(self, name: str) -> None:
        """Close an element and pass it to its consumer."""
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
        """Collect the text before the first child."""
        if not self._skipping and self._childless:
            self._texts.append(text)

    def refuse(self, name: str, *_: object) -> None:
        """Refuse a document type."""
        self._file.fail(
            "XML without a document type",
            f"<!DOCTYPE {name}",
            line=self._parser.CurrentLineNumber,
        )

    def _finish_text(self) -> None:
        if self._texts:
            self._open[-1].text = "".join(self._texts)
            self._texts.clear()

    def _refuse_more(self, limit: str) -> NoReturn:
        self._file.fail(f"at most {limit}", "more", line=self._parser.CurrentLineNumber)
