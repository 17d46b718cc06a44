"""The command line: the verbs of the API, for people and for scripts.

Exit codes: 0 good, 1 a finding of severity error, 2 usage or unreadable input, 3 partly
done. Heavy modules are imported inside the commands, so that `marey --help` is quick.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import CycloptsError, Parameter
from rich.markup import escape

from marey.cli import convert_command as convert_command
from marey.cli import solve_command as solve_command
from marey.cli import view_command as view_command
from marey.cli.application import (
    DOUBTFUL,
    GOOD,
    PARTLY,
    SEVERAL,
    UNREADABLE,
    Columns,
    Json,
    Rate,
    Unit,
    Up,
    app,
    busy,
    err,
    out,
)
from marey.errors import MareyError


@app.command
def info(
    files: Annotated[list[Path], Parameter(help="Recordings, motions or skeletons.")],
    /,
    *,
    unit: Unit = None,
    up: Up = None,
    rate: Rate = None,
    columns: Columns = None,
    json_: Json = False,
) -> int:
    """Say what files are: markers, frames, units and how they were found, gaps."""
    from marey.cli.describe import describe, render

    described: list[dict[str, Any]] = []
    failed = 0
    for file in files:
        try:
            with busy(f"reading {file.name}"):
                described.append(
                    describe(file, unit=unit, up=up, rate=rate, columns=columns)
                )
        except MareyError as error:
            failed += 1
            described.append({"path": str(file), "error": str(error)})
        if not json_:
            _show(described[-1], render)
    if json_:
        out.print_json(json.dumps(described))
    if failed:
        return UNREADABLE if failed == len(files) else PARTLY
    doubts = [f for one in described for f in one["findings"]]
    return DOUBTFUL if any(f["severity"] == "error" for f in doubts) else GOOD


def _show(described: dict[str, Any], render: Any) -> None:
    if "error" in described:
        err.print(f"[red]error:[/] {escape(described['error'])}")
    else:
        out.print(render(described))


@app.command
def demo(
    folder: Annotated[Path, Parameter(help="Where to write.")] = Path("demo"),
    *,
    seconds: Annotated[float, Parameter(help="Length of the performance.")] = 8.0,
    seed: Annotated[int, Parameter(help="Another number, another performer.")] = 0,
) -> int:
    """Make a performer, record it, write the files and say what was made."""
    from marey.cli.demo_command import run

    run(out, folder, seconds=seconds, seed=seed)
    return GOOD


@app.command
def doctor(*, json_: Json = False) -> int:
    """Say what this installation has: versions, extras and what is missing."""
    from marey.cli.doctor_command import examine, render

    found = examine()
    if json_:
        out.print_json(json.dumps(found))
    else:
        out.print(render(found))
    return GOOD


@app.command
def papers(
    paper: Annotated[str, Parameter(help="A paper; all are listed without.")] = "",
    /,
    *,
    only: Annotated[tuple[str, ...], Parameter(help="Experiments."), SEVERAL] = (),
    quick: Annotated[bool, Parameter(help="A tenth of the runs.", negative="")] = False,
    seed: Annotated[int, Parameter(help="Another number, other data.")] = 0,
    figures: Annotated[
        bool | None, Parameter(help="Draw figures; the default if matplotlib is there.")
    ] = None,
    out_: Annotated[
        Path | None,
        Parameter(name=["--out", "-o"], help="Folder of the results, papers/PAPER."),
    ] = None,
    json_: Json = False,
) -> int:
    """Rebuild a paper's experiments: its numbers beside ours, tables and figures."""
    from marey.cli import papers_command
    from marey.papers import Effort

    if not paper:
        if json_:
            out.print_json(json.dumps(papers_command.listing_data()))
        else:
            out.print(papers_command.listing())
        return GOOD
    found = papers_command.rebuild(
        paper,
        Effort(quick=quick, seed=seed),
        only=only,
        folder=Path("papers", paper) if out_ is None else out_,
        figures=figures,
        out=None if json_ else out,
        err=err,
    )
    if json_:
        out.print_json(json.dumps(found))
    return GOOD


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    try:
        code = app(arguments, exit_on_error=False)
    except CycloptsError:
        code = UNREADABLE
    except MareyError as error:
        err.print(f"[red]error:[/] {escape(str(error))}")
        code = UNREADABLE
    except BrokenPipeError:
        sys.stderr.close()
        code = GOOD
    except KeyboardInterrupt:
        err.print("interrupted; nothing half-written was left behind")
        code = 130
    sys.exit(code if isinstance(code, int) else GOOD)
