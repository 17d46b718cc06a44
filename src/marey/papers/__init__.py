"""Published experiments, rebuilt: the papers' numbers beside ours.

for name, experiment in marey.papers.run("obrien2000", Effort(full=True)):
    for caption, table in experiment.tables.items():
        ...

A new paper is one package in this folder with a mapping `EXPERIMENTS`, and one line
below. Experiments call marey as a user does, by its public names; `frame.py` is
their common frame.
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module

from marey.errors import OptionError, check_choice
from marey.kernels import one_blas_thread
from marey.papers.frame import Drawing as Drawing
from marey.papers.frame import Effort as Effort
from marey.papers.frame import Experiment as Experiment
from marey.papers.frame import Run

REGISTRY = {
    "obrien2000": "marey.papers.obrien2000",
    "knight2007": "marey.papers.knight2007",
    "deaguiar2006": "marey.papers.deaguiar2006",
    "bodenheimer1997": "marey.papers.bodenheimer1997",
    "zordan2003": "marey.papers.zordan2003",
}


def experiments(paper: str) -> Mapping[str, Run]:
    """Return the experiments of a paper by name, in the order of the paper.

    Args:
        paper: A key of `REGISTRY`, such as "obrien2000".

    Raises:
        OptionError: If the paper is not known.
    """
    check_choice("paper", paper, REGISTRY)
    registered: Mapping[str, Run] = import_module(REGISTRY[paper]).EXPERIMENTS
    return registered


def run(
    paper: str, effort: Effort | None = None, only: Sequence[str] = ()
) -> Iterator[tuple[str, Experiment]]:
    """Return an iterator over names and experiments; each runs when it is requested.

    Args:
        paper: A key of `REGISTRY`.
        effort: Number of runs and seed; those of a minute when left out.
        only: Names of experiments; all when empty.

    Raises:
        OptionError: If the paper or an experiment is not known.
    """
    known = experiments(paper)
    for name in only:
        if name not in known:
            raise OptionError("only", found=name, needed=f"some of {', '.join(known)}")
    chosen = [name for name in known if name in only or not only]
    return _run_each(known, chosen, Effort() if effort is None else effort)


def _run_each(
    known: Mapping[str, Run],
    chosen: Sequence[str],
    effort: Effort,
) -> Iterator[tuple[str, Experiment]]:
    for name in chosen:
        effort.report(name)
        with one_blas_thread():
            result = known[name](effort)
        yield name, result
