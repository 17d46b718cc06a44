"""The application object, the consoles and the arguments that commands share."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.markup import escape

from marey import __version__
from marey.cli.style import SEVERITY_STYLES

if TYPE_CHECKING:
    from marey.report import Finding

EXIT_OK, EXIT_ERROR_FINDING, EXIT_BAD_INPUT, EXIT_PARTIAL = 0, 1, 2, 3

app = App(
    name="marey",
    help="Estimate a skeleton and its motion from motion capture recordings.",
    version=__version__,
    result_action="return_value",
    default_parameter=Parameter(show_default=False),
)
out = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
err = Console(stderr=True, highlight=False)


Unit = Annotated[
    str | None, Parameter(help="Length unit of the input: mm, cm, m, in, ft.")
]
Up = Annotated[
    str | None, Parameter(help="Axis of the input that points up: x y z -x -y -z.")
]
Rate = Annotated[float | None, Parameter(help="Frames per second of the input.")]
Columns = Annotated[Path | None, Parameter(help="Column map of a table, a TOML file.")]
REPEATABLE = Parameter(negative="", consume_multiple=True)
Keep = Annotated[
    tuple[str, ...], Parameter(help="Keep only markers like 'L*'."), REPEATABLE
]
Drop = Annotated[tuple[str, ...], Parameter(help="Drop markers like 'R*'."), REPEATABLE]
Rename = Annotated[tuple[str, ...], Parameter(help="New labels, old=new."), REPEATABLE]
Quiet = Annotated[bool, Parameter(help="Print errors only.", negative="")]
Overwrite = Annotated[
    bool, Parameter(help="Replace the output if it exists.", negative="")
]
Json = Annotated[bool, Parameter(name="--json", help="Print JSON.", negative="")]


def print_findings(findings: "Sequence[Finding]") -> None:
    """Print findings to standard error, each in the style of its severity."""
    for finding in findings:
        err.print(f"[{SEVERITY_STYLES[finding.severity]}]{escape(str(finding))}[/]")


def print_error(message: str, label: str = "[red]error:[/] ") -> None:
    """Print one line to standard error, after a label in Rich markup."""
    err.print(f"{label}{escape(message)}")


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
