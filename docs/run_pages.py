"""Run the snippets of a page as a reader does: run_pages.py page.md [folder].

Blocks run from top to bottom in one folder. Python blocks share their names; of shell
blocks, the lines that start with `marey` run, except the server `marey view`. A text
block after them must be what they print, where numbers may differ and a line "..."
stands for any lines. A comment `<!-- setup ... -->` has Python that makes the files and
names that a page assumes.
"""

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path
from unittest import mock

import marey.cli
from marey.cli import application

BLOCK = re.compile(
    r"^<!-- setup\n(.*?)^-->|^```(python|sh|text)\n(.*?)^```", re.M | re.S
)
NUMBER = re.compile(r"[-+]?\d[\d.,:e]*(?:e-\d+)?")
WIDTH = 88


def blocks(text):
    """Return language and content of the blocks, in order."""
    found = (match.groups() for match in BLOCK.finditer(text))
    return [("setup", setup) if setup else (kind, code) for setup, kind, code in found]


def pattern(shown):
    """Return the regular expression of a text block, blind to numbers and spaces."""
    parts = re.split(r"^\.\.\.$", comparable(shown), flags=re.M)
    return ".*?".join(re.escape(part.strip()) for part in parts)


def comparable(text):
    """Return text with every number as #, one blank at most, and no blank lines."""
    lines = (" ".join(NUMBER.sub("#", line).split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line)


def run_python(code, names):
    """Return what a block prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "<snippet>", "exec"), names)
    return printed.getvalue()


def run_shell(code):
    """Return what the marey commands of a block print; any failure is an error."""
    printed = ""
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line.partition(" > ")[0], comments=True)
        if words[:1] != ["marey"] or words[1] == "view":  # a server
            continue
        code, text = run_command(words[1:])
        if code:
            raise SystemExit(f"{line}\n{text}")
        printed += text
    return printed


@contextlib.contextmanager
def console_width(console):
    """Print in lines of `WIDTH`, also if the console is older than the page's run."""
    before, console.width = console.width, WIDTH
    try:
        yield
    finally:
        console.width = before


def run_command(words):
    """Return the exit code of a command of marey, and all that it prints."""
    printed = io.StringIO()
    with (
        mock.patch.dict(os.environ, COLUMNS=str(WIDTH)),
        console_width(application.out),
        console_width(application.err),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        try:
            marey.cli.main(words)
        except SystemExit as end:
            return end.code, printed.getvalue()


def run_page(path, show=False):
    """Run the blocks of a page in this folder; a wrong text block is an error."""
    with mock.patch.object(marey, "view", marey.view):  # a page may replace it
        run_blocks(path, show)


def run_blocks(path, show):
    """Run the blocks of a page one after the other."""
    names, printed = {"__name__": "snippets"}, ""
    for kind, code in blocks(path.read_text(encoding="utf-8")):
        if kind == "text":
            if not re.search(pattern(code), comparable(printed), re.S):
                raise SystemExit(
                    f"{path.name} shows\n{code}\nbut this is printed\n{printed}"
                )
            continue
        printed = run_shell(code) if kind == "sh" else run_python(code, names)
        if show:
            print(f"{code}\n--- prints\n{printed}", flush=True)


def main():
    """Run one page, in a folder that is given or in a temporary one."""
    path = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(sys.argv[2] if len(sys.argv) > 2 else scratch)
        folder.mkdir(parents=True, exist_ok=True)
        os.chdir(folder)
        run_page(path, show=len(sys.argv) > 2)
        os.chdir(path.parent)


if __name__ == "__main__":
    main()
