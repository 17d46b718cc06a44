"""`marey papers`."""

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from marey.cli.application import EXIT_OK, REPEATABLE, Json, err, out


def papers(
    paper: Annotated[str, Parameter(help="A paper; without it, all are listed.")] = "",
    /,
    *,
    only: Annotated[
        tuple[str, ...], Parameter(help="Names of experiments."), REPEATABLE
    ] = (),
    quick: Annotated[bool, Parameter(help="A tenth of the runs.", negative="")] = False,
    seed: Annotated[int, Parameter(help="Random seed of the data.")] = 0,
    figures: Annotated[
        bool | None,
        Parameter(help="Draw figures; the default if matplotlib is installed."),
    ] = None,
    out_: Annotated[
        Path | None,
        Parameter(name=["--out", "-o"], help="Folder of the results, papers/PAPER."),
    ] = None,
    json_: Json = False,
) -> int:
    """Repeat a paper's experiments: published numbers beside ours, and figures."""
    from marey.cli import paper_output
    from marey.papers import Effort

    if not paper:
        if json_:
            out.print_json(json.dumps(paper_output.experiment_names()))
        else:
            out.print(paper_output.render_experiment_list())
        return EXIT_OK
    results = paper_output.run_experiments(
        paper,
        Effort(quick=quick, seed=seed),
        only=only,
        folder=Path("papers", paper) if out_ is None else out_,
        figures=figures,
        out=None if json_ else out,
        err=err,
    )
    if json_:
        out.print_json(json.dumps(results))
    return EXIT_OK
