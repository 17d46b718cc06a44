"""The whole way from recordings to skeletons and their motion."""

from collections.abc import Callable, Sequence

from marey.editing.session import Change as Change
from marey.editing.session import EditSession as EditSession
from marey.editing.session import Score as Score
from marey.editing.session import Trial as Trial
from marey.edits import edits_of
from marey.pipeline.inputs import Recorded, taken
from marey.pipeline.options import SolveOptions as SolveOptions
from marey.pipeline.progress import Clock
from marey.pipeline.run import Bench
from marey.pipeline.subjects import with_known
from marey.solution import Solution


def solve(
    recordings: Recorded | Sequence[Recorded],
    *,
    options: SolveOptions | None = None,
    progress: Callable[[str], None] | None = None,
) -> Solution:
    """Return the skeletons and motions of one recording, or of several of one subject.

    Args:
        recordings: Files or takes. Several share one skeleton: their sums are one fit.
        options: How to solve.
        progress: Called with the name of each stage as it begins, and once more, with
            a word on it, if it has to be compiled first.

    Raises:
        DataError: If there is nothing to solve, or the takes differ in their bodies.
        OptionError: If an edit does not fit the recordings, or of several subjects in
            them none is the one asked for.
        FormatError: If a file cannot be read.
    """
    chosen = with_known(options or SolveOptions())
    clock = Clock(progress)
    with clock.stage("read"):
        takes = taken(recordings, chosen.subject)
    return Bench(takes, chosen).solved(edits_of(chosen.edits), clock)
