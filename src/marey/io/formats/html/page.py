"""The page: one file with its script, its style and, when it is mailed, its scene."""

import base64
import hashlib
import html
import re
from dataclasses import dataclass
from importlib.resources import files

from marey.errors import OutputError, printable

SCENE_ID = "scene"
"""Id of the element that holds the scene of a mailed page."""

ELEMENT = re.compile(
    r"<(?P<name>head|title|script|style)\b(?P<attributes>[^>]*)>", re.IGNORECASE
)
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
            " ".join(map(policy_hash, parts)) or "'none'"
            for parts in (self.scripts, self.styles)
        )
        return (
            f"default-src {otherwise}; img-src data:; script-src {scripts}; "
            f"style-src {styles}{POLICY_END}"
        )

    def with_scene(self, blob: bytes, title: str, provenance: str = "") -> bytes:
        """Return the page with a scene in it, which needs nothing else and no network.

        Args:
            blob: The scene.
            title: What the browser's tab says; any text.
            provenance: From what the scene was made; any text.
        """
        policy = html.escape(self.policy("'none'"))
        meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        if provenance:
            meta += f'<meta name="provenance" content="{html.escape(provenance)}">'
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


def policy_hash(content: str) -> str:
    """Return the hash by which a policy allows an inline script or style."""
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
    ranges: dict[str, tuple[int, int]] = {}
    inline: dict[str, list[str]] = {"script": [], "style": []}
    at = 0
    while tag := ELEMENT.search(text, at):
        name, at = tag["name"].lower(), tag.end()
        if name == "head":
            ranges[name] = (at, at)
            continue
        # What looks like a tag inside a script or a style is none.
        inside = (at, text.find(f"</{name}", at))
        at = max(inside)
        if f'id="{SCENE_ID}"' in tag["attributes"]:
            ranges[SCENE_ID] = inside
        elif name == "title":
            ranges.setdefault(name, inside)
        elif "src=" not in tag["attributes"]:
            inline[name].append(text[slice(*inside)])
    missing = [part for part in ("head", "title", SCENE_ID) if part not in ranges]
    if missing:
        raise OutputError(
            f"the page was not built as it should be: it has no {', '.join(missing)}; "
            "install marey again"
        )
    return HtmlPage(
        text,
        ranges["head"],
        ranges["title"],
        ranges[SCENE_ID],
        tuple(inline["script"]),
        tuple(inline["style"]),
    )
