"""`marey info`."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from marey.cli.application import (
    EXIT_BAD_INPUT,
    EXIT_ERROR_FINDING,
    EXIT_OK,
    EXIT_PARTIAL,
    NO_OVERRIDES,
    ReadArguments,
    out,
    print_error,
    print_json,
    show_progress,
)
from marey.errors import MareyError


def info(
    files: list[Path],
    /,
    *,
    reading: ReadArguments = NO_OVERRIDES,
    json_: bool = False,
) -> int:
    """Print what files contain: markers, frames, gaps, units and their origin.

    Args:
        files: Recordings, motions or skeletons.
        reading: How to read the files.
        json_: Print JSON.
    """
    from marey.cli.file_description import describe_file, render

    descriptions: list[dict[str, Any]] = []
    n_failed = 0
    for file in files:
        try:
            with show_progress(f"reading {file.name}"):
                descriptions.append(describe_file(file, **asdict(reading)))
        except MareyError as error:
            n_failed += 1
            descriptions.append({"path": str(file), "error": str(error)})
            if not json_:
                print_error(str(error))
        else:
            if not json_:
                out.print(render(descriptions[-1]))
    if json_:
        print_json(descriptions)
    if n_failed:
        return EXIT_BAD_INPUT if n_failed == len(files) else EXIT_PARTIAL
    findings = [finding for about in descriptions for finding in about["findings"]]
    has_error = any(finding["severity"] == "error" for finding in findings)
    return EXIT_ERROR_FINDING if has_error else EXIT_OK
