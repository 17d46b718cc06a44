"""The application object, the consoles, and what the output of commands shares."""

import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any

from cyclopts import App, Parameter
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.table import Table as RichTable
from rich.text import Text

from marey import __version__
from marey.errors import OptionError, OutputError
from marey.report import Cause, Finding, Table, format_cell

EXIT_OK, EXIT_ERROR_FINDING, EXIT_BAD_INPUT, EXIT_PARTIAL = 0, 1, 2, 3

SEVERITY_STYLES = {"info": "dim", "warning": "yellow", "error": "red"}
"""Rich style of each severity of a finding."""

app = App(
    name="marey",
    help="Estimate a skeleton and its motion from motion capture recordings.",
    version=__version__,
    result_action="return_value",
    default_parameter=Parameter(
        show_default=False,
        negative_bool=(),
        negative_iterable=(),
        consume_multiple=True,
    ),
)
logger = logging.getLogger("marey")
out = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
err = Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())

# --- arguments ------------------------------------------------------------------------

Switch = Annotated[bool, Parameter(negative_bool="no-")]
"""An argument that also has a form with "no-", such as --no-browser."""

OutputPath = Annotated[Path | None, Parameter(alias="-o")]
OutputPaths = Annotated[list[Path], Parameter(alias="-o", consume_multiple=False)]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ReadArguments:
    """Arguments of `marey.read` that override what a file says."""

    unit: str | None = None
    """Length unit of the input: mm, cm, m, in, ft."""

    up: str | None = None
    """Axis of the input that points up: x y z -x -y -z."""

    rate: float | None = None
    """Frames per second of the input."""

    columns: Path | None = None
    """Column map of a table, a TOML file."""


NO_OVERRIDES = ReadArguments()


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class WriteArguments:
    """How to write: conventions of the output, for the program that opens it."""

    out_unit: str | None = None
    """Length unit of the output."""

    out_up: str | None = None
    """Axis of the output that points up."""

    out_rate: float | None = None
    """Frames per second of the output."""

    frames: str = ""
    """Frames a:b of the output; b is not included."""

    rest: str | None = None
    """Rest pose of people: t, a, n; of any figure: first."""

    root_on_ground: bool = False
    """Put the lowest joint at height 0, and the first frame at the origin."""

    content: str | None = None
    """What a table holds: angles, coordinates, joints or markers."""

    names: str | None = None
    """Names of joints for other programs: vrm, humanik, mixamo, unreal, cmu, smpl,
    opensim or a TOML file."""

    with_markers: bool = False
    """Also write the markers to a scene (glTF, USD, FBX)."""

    overwrite: bool = False
    """Replace the output if it exists."""

    def options(self) -> dict[str, Any]:
        """Return the options of `marey.write`."""
        given = asdict(self)
        for argument in ("out_unit", "out_up", "out_rate", "with_markers"):
            given[argument.partition("_")[2]] = given.pop(argument)
        return given | {"frames": parse_frames(self.frames)}


def parse_frames(text: str) -> tuple[int | None, int | None] | None:
    """Return first and last+1 frame of "a:b"; a and b may be empty.

    Raises:
        OptionError: If it is something else.
    """
    if not text:
        return None
    start, colon, stop = text.partition(":")
    try:
        if not colon:
            raise ValueError
        return int(start) if start else None, int(stop) if stop else None
    except ValueError:
        needed = "a:b such as 100:200"
        raise OptionError("--frames", found=text, needed=needed) from None


AS_THEY_ARE = WriteArguments()


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class MessageArguments:
    """How much to print beside the result."""

    quiet: bool = False
    """Print errors only."""

    verbose: bool = False
    """Print every stage, file and compilation as it happens."""

    def apply(self) -> None:
        """Let the messages of the library through that were asked for."""
        level = logging.ERROR if self.quiet else logging.WARNING
        logger.setLevel(logging.DEBUG if self.verbose else level)


DEFAULT_MESSAGES = MessageArguments()

# --- output ---------------------------------------------------------------------------


def render_finding(finding: Finding) -> Text:
    """Return a finding in the style of its severity."""
    return Text(str(finding), style=SEVERITY_STYLES[finding.severity])


def render_cause(cause: Cause) -> Text:
    """Return all findings of a cause in the style of its severity."""
    return Text(str(cause), style=SEVERITY_STYLES[cause.severity])


def print_error(message: str, label: str = "[red]error:[/] ") -> None:
    """Print one line to standard error, after a label in Rich markup."""
    err.print(f"{label}{escape(message)}")


def print_json(content: object) -> None:
    """Print JSON to standard output; a number that is not finite becomes null."""
    from marey.io.formats.html import to_json

    out.print_json(json.dumps(to_json(content), allow_nan=False))


def rich_table(table: Table) -> RichTable:
    """Return a report table as a Rich table; names of rows are never cut.

    Where it is wider than the terminal, headers are wrapped at words before any cell,
    and then columns move closer.
    """
    rows = [[format_cell(cell, digits=3) for cell in row] for row in table.rows]
    columns = list(zip(table.columns, *rows, strict=True))
    headers = list(table.columns)
    if _width(columns) > out.width:
        headers = [_wrap_header(*column) for column in columns]
    close = _width(zip(headers, *rows, strict=True)) > out.width
    shown = RichTable(
        box=None, header_style="dim", pad_edge=False, collapse_padding=close
    )
    for i, (header, (_, *cells)) in enumerate(zip(headers, columns, strict=True)):
        is_text = i == 0 or any(map(_is_phrase, cells))
        justify: JustifyMethod = "left" if is_text else "right"
        shown.add_column(escape(header), justify=justify, overflow="fold")
    for row in rows:
        shown.add_row(*map(escape, row))
    return shown


def _is_phrase(cell: str) -> bool:
    """Return whether a cell has several words: neither a name nor a number."""
    return cell[:1].isalpha() and " " in cell


def _width(columns: Iterable[Iterable[str]]) -> int:
    """Return the width of a table with gaps of two cells between its columns."""
    widths = [
        max(cell_len(line) for cell in column for line in (cell.splitlines() or [""]))
        for column in columns
    ]
    return sum(widths) + 2 * (len(widths) - 1)


def _wrap_header(header: str, *cells: str) -> str:
    """Return the header of a column on lines no wider than its cells, where it can."""
    width = max((1, *map(cell_len, (*header.split(), *cells))))
    return fill(header, width, break_long_words=False, break_on_hyphens=False)


def make_folder(folder: Path) -> None:
    """Make a folder for the output, if it does not exist.

    Raises:
        OutputError: If it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made, {error}") from error


def property_grid() -> RichTable:
    """Return an empty table of two columns: names, then values."""
    grid = RichTable.grid(padding=(0, 2))
    grid.add_column(style="cyan", justify="right")
    grid.add_column()
    return grid


class ConsoleHandler(logging.Handler):
    """Prints the messages of the library to standard error, one per line."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one message in the style of its level."""
        style = "yellow" if record.levelno >= logging.WARNING else "dim"
        err.print(Text(record.getMessage(), style=style))


@contextmanager
def print_log() -> Iterator[None]:
    """Print what the library logs: warnings, or more if a command asks for it."""
    handler, level = ConsoleHandler(), logger.level
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


@contextmanager
def show_progress(
    title: str, quiet: bool = False
) -> Iterator[Callable[[str], None] | None]:
    """Show a spinner in a terminal; yield a function that adds the current stage."""
    if quiet or not err.is_terminal:
        yield None
        return
    with err.status(escape(title)) as status:
        yield lambda stage: status.update(escape(f"{title}: {stage}"))
