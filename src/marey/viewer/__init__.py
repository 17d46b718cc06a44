"""The page in a browser: look at an answer, see where it is in doubt, put it right."""

import importlib.util
import warnings
import webbrowser
from os import PathLike
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from marey.errors import FormatError, MissingExtraError
from marey.io import write
from marey.io.formats.html import plain_text, title_of
from marey.motion import Motion
from marey.solution import Solution
from marey.take import Take
from marey.viewer.worker.supervisor import Limits as Limits

if TYPE_CHECKING:
    from marey.viewer.server.server import Viewer
    from marey.viewer.server.state import Source

NEEDED = ("starlette", "uvicorn", "websockets")

Viewed = Solution | Motion | Take | str | PathLike[str]


def view(
    thing: Viewed,
    *,
    port: int = 0,
    host: str = "127.0.0.1",
    browser: bool = True,
    edits: str | PathLike[str] | None = None,
    block: bool = True,
    limits: Limits | None = None,
) -> "Viewer":
    """Show a solution, a recording or a folder of recordings in the browser.

    A recording is solved first; one that cannot be solved shows its markers and says
    why. What is put right by hand is kept in a small file beside the recording
    (`walk.c3d.edits.toml` for `walk.c3d`), which is read again when there is one.

    The server listens on this machine only, and only for whoever has its address.

    Args:
        thing: A solution, motion or take, or the path of a file or folder.
        port: Port to listen on; 0 = any that is free.
        host: Where to listen. Anything but this machine warns: the connection is not
            encrypted.
        browser: Whether to open the browser.
        edits: File of edits to read and keep instead of the one beside the recording.
        block: Whether to return only when the server ends, by Ctrl-C.
        limits: What reading and solving may cost, `marey.viewer.Limits`.

    Returns:
        The viewer: `url` is its address, `close()` ends it.

    Raises:
        FormatError: If there is no such file.
        OptionError: If the port is taken.
        OutputError: If the page was not built.
        MissingExtraError: If the packages of the extra `view` are not installed.
    """
    _check_extra()
    from marey.viewer.server.server import Viewer, is_local

    root, title = _place(thing)
    given = limits or Limits()
    viewer = Viewer(host=host, port=port, title=title, root=root, limits=given)
    try:
        if not is_local(host):
            warnings.warn(
                f"listening on {host}: whoever has the address can look and edit, and "
                "the connection is not encrypted",
                stacklevel=2,
            )
        kept = Path(edits).absolute() if edits else None
        viewer.start(_source(thing, title, kept, viewer.scratch))
    except BaseException:
        viewer.close()
        raise
    if browser:
        webbrowser.open(viewer.url)
    if block:
        viewer.wait()
    return viewer


def _check_extra() -> None:
    for package in NEEDED:
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, "view")


def _place(thing: Viewed) -> tuple[Path | None, str]:
    """Return the folder whose recordings may be opened, and what to call the thing."""
    if isinstance(thing, Solution | Motion | Take):
        return None, plain_text(title_of(thing))
    path = Path(thing).absolute()
    if not path.exists():
        raise FormatError(path, expected="a file or folder", found="nothing there")
    return (path if path.is_dir() else path.parent).resolve(), plain_text(path.name)


def _source(
    thing: Viewed, title: str, edits: Path | None, scratch: Path
) -> "Source | None":
    """Return what the worker opens first; of a folder, nothing."""
    from marey.viewer.server.state import Source
    from marey.viewer.worker.edits_file import edits_beside

    if isinstance(thing, Solution | Motion | Take):
        # The worker is another process: it reads what it is to show.
        own = Path(mkdtemp(dir=scratch))
        write(thing, own / "shown.marey")
        return Source(own / "shown.marey", title, edits, own)
    path = Path(thing).absolute()
    if path.is_dir():
        return None
    return Source(path, title, edits or edits_beside(path))
