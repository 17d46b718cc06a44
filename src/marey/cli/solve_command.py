"""`marey solve`."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.markup import escape

from marey.cli.application import (
    DOUBTFUL,
    GOOD,
    Columns,
    Json,
    Overwrite,
    Quiet,
    Rate,
    Unit,
    Up,
    app,
    busy,
    err,
    out,
)

if TYPE_CHECKING:
    from marey.report import Report, Table


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
        str, Parameter(help="auto, playback, gauss_newton, bfgs or physics.")
    ] = "auto",
    contacts: Annotated[
        bool, Parameter(help="Hold feet where they are planted.", negative="")
    ] = False,
    skeleton: Annotated[
        Path | None, Parameter(help="A known performer: keep its bones.")
    ] = None,
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
    max_gap: Annotated[
        float, Parameter(help="Fill gaps of markers up to so many seconds.")
    ] = 0.0,
    calibrate: Annotated[
        bool, Parameter(help="Fit bones and markers together over all takes.")
    ] = True,
    edits: Annotated[
        Path | None, Parameter(help="What was put right by hand: walk.c3d.edits.toml.")
    ] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    json_: Json = False,
) -> int:
    """Find the skeleton and its motion in recordings of markers or 6-DoF sensors."""
    from marey.cli.solve_output import (
        lengths_table,
        marker_map,
        read_toml,
        render,
        write_solution,
    )
    from marey.editing import solve as run
    from marey.edits import read_edits
    from marey.io import read, read_skeleton
    from marey.io.atomic import check_target
    from marey.pipeline import SolveOptions

    if out_ is not None:
        check_target(out_, overwrite=overwrite, inputs=tuple(map(str, files)))
    known = dict(read_toml(tree, "tree")) if tree else {}
    lengths = read_toml(measured, "lengths") if measured else {}
    by_hand = read_edits(edits) if edits else ()
    takes = [read(file, unit=unit, up=up, rate=rate, columns=columns) for file in files]
    with busy("solving", quiet) as tell:
        solution = run(
            takes,
            progress=tell,
            options=SolveOptions(
                subject=subject,
                segment="auto" if bodies.isdecimal() else bodies,
                n_bodies=int(bodies) if bodies.isdecimal() else 0,
                template=marker_map(map_),
                skeleton=read_skeleton(skeleton) if skeleton else None,
                joints=joints,
                pose=pose,
                contacts=contacts,
                root=root,
                tree=known,
                rigid_pair=rigid_pair,
                field=field,
                max_gap=max_gap,
                calibrate=calibrate,
                edits=by_hand,
            ),
        )
    tables = dict(solution.report.tables)
    if lengths:
        tables["lengths"] = lengths_table(solution.skeleton, lengths)
    if out_ is not None:
        for path in write_solution(
            solution, out_, overwrite=overwrite, measured=lengths
        ):
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
