"""`marey solve`."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.markup import escape

from marey.cli.application import (
    EXIT_ERROR_FINDING,
    EXIT_OK,
    Columns,
    Json,
    Overwrite,
    Quiet,
    Rate,
    Unit,
    Up,
    err,
    out,
    show_progress,
)

if TYPE_CHECKING:
    from marey.report import Report, Table


def solve(
    files: Annotated[list[Path], Parameter(help="Takes of one subject.")],
    /,
    *,
    out_: Annotated[
        Path | None,
        Parameter(
            name=["--out", "-o"], help="File to write; its suffix selects the format."
        ),
    ] = None,
    unit: Unit = None,
    up: Up = None,
    rate: Rate = None,
    columns: Columns = None,
    subject: Annotated[
        str, Parameter(help="Name of the subject, or the subject whose markers to use.")
    ] = "",
    map_: Annotated[
        Path | None, Parameter(name="--map", help="Marker map, a TOML file or a VSK.")
    ] = None,
    bodies: Annotated[
        str,
        Parameter(
            help="Segmentation: auto, overlap, spectral, labels or a number of bodies."
        ),
    ] = "auto",
    joints: Annotated[
        str, Parameter(help="Joint method: ball, gdke, distance.")
    ] = "ball",
    pose: Annotated[
        str,
        Parameter(help="Pose solver: auto, playback, gauss_newton, bfgs or physics."),
    ] = "auto",
    contacts: Annotated[
        bool, Parameter(help="Keep planted feet in place.", negative="")
    ] = False,
    skeleton: Annotated[
        Path | None,
        Parameter(help="Skeleton of a known performer, whose bone lengths are kept."),
    ] = None,
    root: Annotated[str, Parameter(help="Root body of the tree.")] = "",
    tree: Annotated[
        Path | None, Parameter(help="Known hierarchy: TOML, [tree] child = parent.")
    ] = None,
    measured: Annotated[
        Path | None,
        Parameter(help="Measured bone lengths in m: TOML, [lengths] joint = 0.4."),
    ] = None,
    rigid_pair: Annotated[
        tuple[str, str, float] | None,
        Parameter(
            help="Two sensors on one rigid rod and their distance in m, for the scale."
        ),
    ] = None,
    field: Annotated[
        bool, Parameter(help="Correct a distorted magnetic field.", negative="")
    ] = False,
    max_gap: Annotated[
        float, Parameter(help="Longest gap of a marker that is filled, in seconds.")
    ] = 0.0,
    calibrate: Annotated[
        bool,
        Parameter(help="Calibrate bones and marker positions jointly over all takes."),
    ] = True,
    edits: Annotated[
        Path | None, Parameter(help="Edits file of `marey view`: walk.c3d.edits.toml.")
    ] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    json_: Json = False,
) -> int:
    """Estimate the skeleton and its motion from markers or 6-DoF sensors."""
    from marey.cli.solve_output import (
        lengths_table,
        read_marker_map,
        read_toml,
        render,
        write_solution,
    )
    from marey.editing import solve as solve_takes
    from marey.edits import read_edits
    from marey.io import read, read_skeleton
    from marey.io.atomic import check_target
    from marey.pipeline import SolveOptions

    if out_ is not None:
        check_target(out_, overwrite=overwrite, inputs=tuple(map(str, files)))
    parents = dict(read_toml(tree, "tree")) if tree else {}
    lengths = read_toml(measured, "lengths") if measured else {}
    edit_list = read_edits(edits) if edits else ()
    takes = [read(file, unit=unit, up=up, rate=rate, columns=columns) for file in files]
    with show_progress("solving", quiet) as report_stage:
        solution = solve_takes(
            takes,
            progress=report_stage,
            options=SolveOptions(
                subject=subject,
                segment="auto" if bodies.isdecimal() else bodies,
                n_bodies=int(bodies) if bodies.isdecimal() else 0,
                template=read_marker_map(map_),
                skeleton=read_skeleton(skeleton) if skeleton else None,
                joints=joints,
                pose=pose,
                contacts=contacts,
                root=root,
                tree=parents,
                rigid_pair=rigid_pair,
                field=field,
                max_gap=max_gap,
                calibrate=calibrate,
                edits=edit_list,
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
    return EXIT_ERROR_FINDING if solution.report.worst == "error" else EXIT_OK


def _report_data(report: "Report", tables: "Mapping[str, Table]") -> dict[str, Any]:
    """Return findings, tables and seconds per stage, ready for JSON."""
    return {
        "findings": [asdict(finding) for finding in report.findings],
        "tables": {name: asdict(table) for name, table in tables.items()},
        "seconds": dict(report.seconds),
    }
