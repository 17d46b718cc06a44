"""`marey demo`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from marey.cli.application import EXIT_OK, out


def demo(
    folder: Annotated[Path, Parameter(help="Folder to write to.")] = Path("demo"),
    *,
    seconds: Annotated[float, Parameter(help="Length of the walk.")] = 8.0,
    seed: Annotated[int, Parameter(help="Random seed of the performer.")] = 0,
) -> int:
    """Record a synthetic performer, solve it, and compare with the known truth."""
    from marey.cli.demo_recordings import write_demo

    write_demo(out, folder, seconds=seconds, seed=seed)
    return EXIT_OK
