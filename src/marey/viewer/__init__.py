"""`marey view`: show a solution in the browser, with its uncertainty, and edit it."""

import importlib.util
import warnings
import webbrowser
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from marey.errors import FormatError, MissingExtraError, OptionError
from marey.io import write
from marey.io.formats.html import replace_surrogates, scene_title
from marey.io.options import ReadOptions
from marey.live import Stream
from marey.motion import Motion
from marey.solution import Solution
from marey.take import Take
from marey.viewer.worker.supervisor import Limits as Limits

if TYPE_CHECKING:
    from marey.viewer.server.server import Viewer
    from marey.viewer.server.state import ViewedFile

REQUIRED_PACKAGES = ("starlette", "uvicorn", "websockets")

IN_MEMORY = (Solution, Motion, Take)
Viewable = Solution | Motion | Take | Stream | str | PathLike[str]


def view(
    source: Viewable,
    *,
    port: int = 0,
    host: str = "127.0.0.1",
    browser: bool = True,
    edits: str | PathLike[str] | None = None,
    block: bool = True,
    limits: Limits | None = None,
    unit: str | None = None,
    up: str | None = None,
    rate: float | None = None,
) -> "Viewer":
    """Show a solution, a recording, a folder of recordings or a stream in the browser.

    A recording is solved first. If a recording cannot be solved, the page shows its
    markers and the reason. Edits are saved in an edits file beside the recording
    (`walk.c3d.edits.toml` for `walk.c3d`); if this file exists, its edits are applied.

    The server listens on this machine only, and answers only requests with its token.

    Args:
        source: A solution, motion or take, the path of a file or folder, or a stream
            (`marey.stream`), which is shown live and closed with the viewer.
        port: Port to listen on; 0 = any free port.
        host: Address to listen on. An address that other machines can reach gives a
            warning, because the connection is not encrypted.
        browser: Whether to open the browser.
        edits: Edits file to use instead of the one beside the recording.
        block: Whether to return only after the server has stopped, by Ctrl-C.
        limits: Limits of time, memory and size, `marey.viewer.Limits`.
        unit: Overrides the length unit of the file, or of all files of the folder, as
            `marey.read` has it.
        up: Overrides the up axis.
        rate: Overrides the frames per second.

    Returns:
        The viewer: `url` is its address, `close()` stops it.

    Raises:
        FormatError: If there is no such file.
        OptionError: If the port is in use, or unit, up or rate cannot be overridden.
        OutputError: If the page was not built.
        MissingExtraError: If the packages of the extra `view` are not installed.
    """
    for package in REQUIRED_PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, "view")
    from marey.viewer.server.server import Viewer, is_local

    if not (isinstance(source, (*IN_MEMORY, Stream)) or Path(source).exists()):
        path = Path(source).absolute()
        raise FormatError(path, expected="a file or folder", found="nothing there")
    given = {"unit": unit, "up": up, "rate": rate}
    reading = {name: value for name, value in given.items() if value is not None}
    _check_reading(source, reading)
    viewer = Viewer(host, port, limits or Limits())
    try:
        if not is_local(host):
            warnings.warn(
                f"listening on {host}: everyone who has the address can view and edit, "
                "and the connection is not encrypted",
                stacklevel=2,
            )
        _start(viewer, source, Path(edits).absolute() if edits else None, reading)
    except BaseException:
        viewer.close()
        raise
    if browser:
        webbrowser.open(viewer.url)
    if block:
        viewer.wait()
    return viewer


def _start(
    viewer: "Viewer",
    source: Viewable,
    edits_path: Path | None,
    reading: Mapping[str, Any],
) -> None:
    if isinstance(source, Stream):
        viewer.start_live(source)
    else:
        shown = _resolve(source, edits_path, viewer.scratch, reading)
        viewer.start(*shown, reading)


def _check_reading(source: Viewable, reading: Mapping[str, Any]) -> None:
    """Raise an OptionError for overrides that are wrong, or have no file to change."""
    ReadOptions(**reading)
    if reading and isinstance(source, (*IN_MEMORY, Stream)):
        needed = "none: what is in memory is in metres, +Z up, at its own rate"
        raise OptionError(", ".join(reading), found=reading, needed=needed)


def _resolve(
    source: Solution | Motion | Take | str | PathLike[str],
    edits_path: Path | None,
    scratch: Path,
    reading: Mapping[str, Any],
) -> tuple[str, Path | None, "ViewedFile | None"]:
    """Return the title, the folder of recordings and the file that is opened first."""
    from marey.viewer.server.state import ViewedFile
    from marey.viewer.worker.edits_file import default_edits_path

    if isinstance(source, IN_MEMORY):
        title = replace_surrogates(scene_title(source))
        # The worker is another process, which can only read files.
        folder = Path(mkdtemp(dir=scratch))
        write(source, folder / "shown.marey")
        return (
            title,
            None,
            ViewedFile(folder / "shown.marey", title, edits_path, folder),
        )
    path = Path(source).absolute()
    title = replace_surrogates(path.name)
    if path.is_dir():
        return title, path.resolve(), None
    edits_path = edits_path or default_edits_path(path)
    file = ViewedFile(path, title, edits_path, reading=reading)
    return title, path.parent.resolve(), file
