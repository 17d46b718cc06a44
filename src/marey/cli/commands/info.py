"""`marey info`."""

import json
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from marey.cli.application import (
    EXIT_BAD_INPUT,
    EXIT_ERROR_FINDING,
    EXIT_OK,
    EXIT_PARTIAL,
    Columns,
    Json,
    Rate,
    Unit,
    Up,
    out,
    print_error,
    show_progress,
)
from marey.errors import MareyError


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
    """Print what files contain: markers, frames, gaps, units and their origin."""
    from marey.cli.file_description import describe_file, render

    overrides = {"unit": unit, "up": up, "rate": rate, "columns": columns}
    descriptions: list[dict[str, Any]] = []
    n_failed = 0
    for file in files:
        try:
            with show_progress(f"reading {file.name}"):
                descriptions.append(describe_file(file, **overrides))
        except MareyError as error:
            n_failed += 1
            descriptions.append({"path": str(file), "error": str(error)})
            if not json_:
                print_error(str(error))
        else:
            if not json_:
                out.print(render(descriptions[-1]))
    if json_:
        out.print_json(json.dumps(descriptions))
    if n_failed:
        return EXIT_BAD_INPUT if n_failed == len(files) else EXIT_PARTIAL
    findings = [finding for about in descriptions for finding in about["findings"]]
    has_error = any(finding["severity"] == "error" for finding in findings)
    return EXIT_ERROR_FINDING if has_error else EXIT_OK
