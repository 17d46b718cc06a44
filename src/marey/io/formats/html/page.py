"""The page: one file with its script, its style and, when it is mailed, its scene."""

import base64
import hashlib
import html
from dataclasses import dataclass
from html.parser import HTMLParser
from importlib.resources import files
from itertools import accumulate

from marey.errors import OutputError, printable

SCENE_ID = "scene"
"""Id of the element that holds the scene of a mailed page."""

POLICY_END = "; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True, slots=True)
class HtmlPage:
    """A page and the ranges to fill in, as ranges of characters."""

    text: str
    head: tuple[int, int]
    """Just inside the head."""

    title: tuple[int, int]
    scene: tuple[int, int]
    scripts: tuple[str, ...]
    """Contents of the scripts that run."""

    styles: tuple[str, ...]

    def policy(self, otherwise: str) -> str:
        """Return the content security policy under which only this page runs.

        Args:
            otherwise: Sources of everything that is not a script or a style.
        """
        scripts, styles = (
            " ".join(map(_policy_hash, parts)) or "'none'"
            for parts in (self.scripts, self.styles)
        )
        return (
            f"default-src {otherwise}; img-src data:; script-src {scripts}; "
            f"style-src {styles}{POLICY_END}"
        )

    def with_scene(self, blob: bytes, title: str) -> bytes:
        """Return the page with a scene in it, which needs nothing else and no network.

        Args:
            blob: The scene.
            title: What the browser's tab says; any text.
        """
        policy = html.escape(self.policy("'none'"))
        meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        fills = {
            self.head: meta,
            self.title: html.escape(f"{printable(title)} · marey"),
            self.scene: base64.b64encode(blob).decode(),
        }
        done, text = 0, ""
        for (start, stop), fill in sorted(fills.items()):
            text += self.text[done:start] + fill
            done = stop
        return (text + self.text[done:]).encode()


def _policy_hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def read_page() -> HtmlPage:
    """Return the page that came with marey.

    Raises:
        OutputError: If it was not built.
    """
    # Not by way of marey.view, which the formats must not know.
    path = files("marey").joinpath("viewer", "page.html")
    if not path.is_file():
        raise OutputError(
            "the page was not built: install marey with pip (pip install -e . in a "
            "checkout), or run make"
        )
    return parse_page(path.read_text(encoding="utf-8"))


def parse_page(text: str) -> HtmlPage:
    """Return a page with the ranges in it that are filled in.

    Raises:
        OutputError: If one of them is missing.
    """
    found = _PageParser(text)
    found.feed(text)
    found.close()
    missing = [part for part in ("head", "title", SCENE_ID) if part not in found.ranges]
    if missing:
        raise OutputError(
            f"the page was not built as it should be: it has no {', '.join(missing)}; "
            "install marey again"
        )
    return HtmlPage(
        text,
        found.ranges["head"],
        found.ranges["title"],
        found.ranges[SCENE_ID],
        tuple(found.inline["script"]),
        tuple(found.inline["style"]),
    )


class _PageParser(HTMLParser):
    """Where the parts of a page are."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self.ranges: dict[str, tuple[int, int]] = {}
        self.inline: dict[str, list[str]] = {"script": [], "style": []}
        self._text = text
        lengths = (len(line) for line in text.split("\n"))
        self._lines = [0, *accumulate(length + 1 for length in lengths)]
        self._open: tuple[str, int] = ("", 0)

    def _here(self) -> int:
        line, column = self.getpos()
        return self._lines[line - 1] + column

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        inside = self._here() + len(self.get_starttag_text() or "")
        given = dict(attrs)
        if tag == "head":
            self.ranges["head"] = (inside, inside)
        elif tag == "script" and given.get("id") == SCENE_ID:
            self._open = (SCENE_ID, inside)
        elif tag in ("title", "script", "style") and "src" not in given:
            self._open = (tag, inside)

    def handle_endtag(self, tag: str) -> None:
        name, start = self._open
        if tag == ("script" if name == SCENE_ID else name):
            self._open = ("", 0)
            here = self._here()
            if name in self.inline:
                self.inline[name].append(self._text[start:here])
            else:
                self.ranges.setdefault(name, (start, here))
