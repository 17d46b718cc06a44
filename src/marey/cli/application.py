"""What all commands share: the application, the consoles and common arguments."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.markup import escape

from marey import __version__
from marey.cli.style import COLOURS

if TYPE_CHECKING:
    from marey.report import Finding

GOOD, DOUBTFUL, UNREADABLE, PARTLY = 0, 1, 2, 3

app = App(
    name="marey",
    help="Turn recorded motion into a living skeleton.",
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
SEVERAL = Parameter(negative="", consume_multiple=True)
Keep = Annotated[tuple[str, ...], Parameter(help="Keep markers like 'L*'."), SEVERAL]
Drop = Annotated[tuple[str, ...], Parameter(help="Drop markers like 'R*'."), SEVERAL]
Rename = Annotated[tuple[str, ...], Parameter(help="New labels, old=new."), SEVERAL]
Quiet = Annotated[bool, Parameter(help="Print errors only.", negative="")]
Overwrite = Annotated[bool, Parameter(help="Replace the output.", negative="")]
Json = Annotated[bool, Parameter(name="--json", help="Print JSON.", negative="")]


def print_findings(findings: "Sequence[Finding]") -> None:
    """Print findings on standard error, coloured by their severity."""
    for finding in findings:
        err.print(f"[{COLOURS[finding.severity]}]{escape(str(finding))}[/]")


@contextmanager
def busy(what: str, quiet: bool = False) -> Iterator[Callable[[str], None] | None]:
    """Show that work goes on, in a terminal only; what is given there tells more."""
    if quiet or not err.is_terminal:
        yield None
        return
    with err.status(escape(what)) as status:
        yield lambda more: status.update(escape(f"{what}: {more}"))
