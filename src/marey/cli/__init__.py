"""The command line: the verbs of the API, for people and for scripts.

Exit codes: 0 good, 1 a finding of severity error, 2 usage or unreadable input, 3 partly
done. Heavy modules are imported inside the commands, so that `marey --help` is quick.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, CycloptsError, Parameter
from rich.console import Console
from rich.markup import escape

from marey import __version__
from marey.cli._style import COLOURS
from marey.errors import FormatError, MareyError, OptionError

if TYPE_CHECKING:
    from marey.motion import Motion
    from marey.report import Finding, Report, Table
    from marey.take import Take

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
    from marey.cli._describe import describe, render

    described: list[dict[str, Any]] = []
    failed = 0
    for file in files:
        try:
            with _busy(f"reading {file.name}"):
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
def convert(
    source: Annotated[Path, Parameter(help="The file to read.")],
    target: Annotated[
        Path, Parameter(help="The file to write; its suffix is the format.")
    ],
    /,
    *,
    unit: Unit = None,
    up: Up = None,
    rate: Rate = None,
    columns: Columns = None,
    skeleton: Annotated[Path | None, Parameter(help="The ASF file of an AMC.")] = None,
    frames: Annotated[str, Parameter(help="Frames a:b, b not included.")] = "",
    markers: Keep = (),
    drop: Drop = (),
    rename: Rename = (),
    out_unit: Annotated[
        str | None, Parameter(help="Length unit of the output.")
    ] = None,
    out_up: Annotated[
        str | None, Parameter(help="Axis of the output that points up.")
    ] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> int:
    """Turn one file into another, saying what the target loses."""
    import marey
    from marey.io import format_of_suffix
    from marey.io._atomic import check_target

    wanted = format_of_suffix(target)
    check_target(target, overwrite=overwrite, inputs=(str(source),))
    with _busy(f"reading {source.name}", quiet):
        thing: Take | Motion
        if wanted.write_motion and not columns and _holds_motion(source):
            thing = marey.read_motion(
                source, unit=unit, up=up, rate=rate, skeleton=skeleton
            )
            thing = thing.cut(*_frames(frames, thing.n_frames))
        else:
            thing = marey.read(
                source,
                unit=unit,
                up=up,
                rate=rate,
                columns=columns,
                skeleton=skeleton,
                markers=markers,
                drop=drop,
                rename=_pairs(rename),
                analog=True,
            )
            thing = thing.cut(*_frames(frames, thing.n_frames))
    with _busy(f"writing {target.name}", quiet):
        lost = marey.write(thing, target, unit=out_unit, up=out_up, overwrite=overwrite)
    if not quiet:
        _print_findings([*thing.source.findings, *lost])
        out.print(
            f"wrote {escape(str(target))} ({wanted.title}, {thing.n_frames} frames)"
        )
    return GOOD


def _holds_motion(path: Path) -> bool:
    """Return whether a file holds a motion; an archive of ours may hold a take."""
    from marey.io import load, recognise
    from marey.take import Take

    found = recognise(path)
    if found.name != "npz":
        return found.read_motion is not None
    try:
        return not isinstance(load(path), Take)
    except FormatError:  # An archive of somebody else's, or what reading will say.
        return False


def _frames(text: str, n_frames: int) -> tuple[int, int]:
    """Return the frames of "a:b", either of which may be left out."""
    start, colon, stop = text.partition(":")
    try:
        if text and not colon:
            raise ValueError
        return int(start or 0), int(stop or n_frames)
    except ValueError:
        raise OptionError(
            "--frames", found=text, needed="a:b such as 100:200"
        ) from None


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    if not all(old and new for old, _, new in pairs):
        raise OptionError("--rename", found=list(texts), needed="old=new")
    return {old: new for old, _, new in pairs}


@app.command
def solve(
    files: Annotated[list[Path], Parameter(help="Takes of one subject.")],
    /,
    *,
    out_: Annotated[
        Path | None, Parameter(name=["--out", "-o"], help="Where to write.")
    ] = None,
    unit: Unit = None,
    up: Up = None,
    rate: Rate = None,
    columns: Columns = None,
    subject: Annotated[str, Parameter(help="Who it is, or whose markers.")] = "",
    map_: Annotated[
        Path | None, Parameter(name="--map", help="Marker map, a TOML file or a VSK.")
    ] = None,
    bodies: Annotated[
        str, Parameter(help="auto, overlap, spectral, labels, or how many.")
    ] = "auto",
    joints: Annotated[
        str, Parameter(help="Joint method: ball, gdke, distance.")
    ] = "ball",
    pose: Annotated[
        str, Parameter(help="Pose method: auto, playback, gauss_newton.")
    ] = "auto",
    root: Annotated[str, Parameter(help="Body to hang the tree from.")] = "",
    tree: Annotated[
        Path | None, Parameter(help="Known hierarchy: TOML, [tree] child = parent.")
    ] = None,
    measured: Annotated[
        Path | None, Parameter(help="Known lengths in m: TOML, [lengths] joint = 0.4.")
    ] = None,
    rigid_pair: Annotated[
        tuple[str, str, float] | None,
        Parameter(help="Two sensors on one stick and their distance in m: the scale."),
    ] = None,
    field: Annotated[
        bool, Parameter(help="Take out a bent magnetic field.", negative="")
    ] = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    json_: Json = False,
) -> int:
    """Find the skeleton and its motion in recordings of markers or 6-DoF sensors."""
    from marey.cli._solve import (
        lengths_table,
        marker_map,
        read_toml,
        render,
        write_solution,
    )
    from marey.io import read
    from marey.io._atomic import check_target
    from marey.solve import SolveOptions
    from marey.solve import solve as run

    if out_ is not None:
        check_target(out_, overwrite=overwrite, inputs=tuple(map(str, files)))
    known = dict(read_toml(tree, "tree")) if tree else {}
    lengths = read_toml(measured, "lengths") if measured else {}
    takes = [read(file, unit=unit, up=up, rate=rate, columns=columns) for file in files]
    with _busy("solving", quiet):
        solution = run(
            takes,
            options=SolveOptions(
                subject=subject,
                segment="auto" if bodies.isdecimal() else bodies,
                n_bodies=int(bodies) if bodies.isdecimal() else 0,
                template=marker_map(map_),
                joints=joints,
                pose=pose,
                root=root,
                tree=known,
                rigid_pair=rigid_pair,
                field=field,
            ),
        )
    tables = dict(solution.report.tables)
    if lengths:
        tables["lengths"] = lengths_table(solution.skeleton, lengths)
    if out_ is not None:
        for path in write_solution(solution, out_, overwrite=overwrite):
            err.print(f"wrote {escape(str(path))}")
    if json_:
        out.print_json(json.dumps(_report_data(solution.report, tables)))
    elif not quiet:
        out.print(render(solution, tables))
    return DOUBTFUL if solution.report.worst == "error" else GOOD


def _report_data(report: "Report", tables: "Mapping[str, Table]") -> dict[str, Any]:
    return {
        "findings": [asdict(finding) for finding in report.findings],
        "tables": {name: asdict(table) for name, table in tables.items()},
        "seconds": dict(report.seconds),
    }


@app.command
def demo(
    folder: Annotated[Path, Parameter(help="Where to write.")] = Path("demo"),
    *,
    seconds: Annotated[float, Parameter(help="Length of the performance.")] = 8.0,
    seed: Annotated[int, Parameter(help="Another number, another performer.")] = 0,
) -> int:
    """Make a performer, record it, write the files and say what was made."""
    from marey.cli._demo import run

    run(out, folder, seconds=seconds, seed=seed)
    return GOOD


@app.command
def doctor(*, json_: Json = False) -> int:
    """Say what this installation has: versions, extras and what is missing."""
    from marey.cli._doctor import examine, render

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
    from marey.cli import _papers
    from marey.papers import Effort

    if not paper:
        if json_:
            out.print_json(json.dumps(_papers.listing_data()))
        else:
            out.print(_papers.listing())
        return GOOD
    found = _papers.rebuild(
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


def _print_findings(findings: "Sequence[Finding]") -> None:
    for finding in findings:
        err.print(f"[{COLOURS[finding.severity]}]{escape(str(finding))}[/]")


@contextmanager
def _busy(what: str, quiet: bool = False) -> Iterator[None]:
    """Show that work goes on, in a terminal only."""
    if quiet or not err.is_terminal:
        yield
    else:
        with err.status(escape(what)):
            yield


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
