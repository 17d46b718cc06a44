"""`marey papers`."""

from pathlib import Path

from marey.cli.application import EXIT_OK, OutputPath, Switch, out, print_json


def papers(
    paper: str = "",
    /,
    *,
    only: tuple[str, ...] = (),
    full: bool = False,
    seed: int = 0,
    figures: Switch | None = None,
    out_: OutputPath = None,
    json_: bool = False,
) -> int:
    """Repeat a paper's experiments: published numbers beside ours, and figures.

    Args:
        paper: A paper; without it, all are listed.
        only: Names of experiments.
        full: All runs, ten times as many.
        seed: Random seed of the data.
        figures: Draw figures; the default if matplotlib is installed.
        out_: Folder of the results, papers/PAPER.
        json_: Print JSON.
    """
    from marey.cli import paper_output
    from marey.papers import Effort

    if not paper:
        if json_:
            print_json(paper_output.experiment_names())
        else:
            out.print(paper_output.render_experiment_list())
        return EXIT_OK
    results = paper_output.run_experiments(
        paper,
        Effort(full=full, seed=seed),
        only=only,
        folder=Path("papers", paper) if out_ is None else out_,
        figures=figures,
        quiet=json_,
    )
    if json_:
        print_json(results)
    return EXIT_OK
