"""A desk to put an answer right at: try an edit, keep it, take it back."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from marey.editing.mask_frames import unsettled
from marey.editing.score import Change as Change
from marey.editing.score import Score as Score
from marey.editing.score import changes_of, in_words, new_findings, score_of
from marey.edits import Edit, edit_of, edits_of
from marey.errors import DataError, OptionError
from marey.pipeline.inputs import Recorded, taken
from marey.pipeline.options import SolveOptions
from marey.pipeline.progress import Clock
from marey.pipeline.run import Bench
from marey.pipeline.subjects import with_known
from marey.report import Finding
from marey.segmentation import Template
from marey.skeleton import Skeleton
from marey.solution import Solution


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """An edit that was tried, and what it would change."""

    edit: Edit
    solution: Solution
    """The answer with the edit."""

    before: Score
    after: Score
    changes: tuple[Change, ...]
    """Bones that would have another length, joints that would come or go."""

    findings: tuple[Finding, ...]
    """What is found only with the edit."""

    text: str
    """All of it in one line."""


class EditSession:
    """An answer and the edits made to it by hand.

    What an edit does not concern is not worked out again. On a desk with recordings the
    answer is the same, to the bit, as `marey.solve` gives with these edits. A desk with
    an answer goes on from the takes in it, which were cleaned and mended with the
    bodies of that time: `marey.solve` of the recordings may mend them otherwise.

    Nor do the takes of an answer hold what had been marked as bad. Those edits stay in
    `edits`, as they are part of what was done, but cannot be undone.
    """

    def __init__(
        self,
        solved: Solution | Recorded | Sequence[Recorded],
        *,
        options: SolveOptions | None = None,
        edits: Iterable[Edit | Mapping[str, Any]] = (),
        progress: Callable[[str], None] | None = None,
    ) -> None:
        """Lay an answer, or recordings, on the desk.

        Args:
            solved: An answer, which is edited from the takes in it, cleaned as they
                are; or recordings, which are solved first.
            options: How to solve; those of the answer when left out.
            edits: What was done before; the edits of the answer when left out. What
                the answer had marked as bad is among them in any case.
            progress: Called with the name of each stage as it begins, and once more,
                with a word on it, if it has to be compiled first.

        Raises:
            DataError: If there is nothing to solve.
            OptionError: If an edit does not fit.
        """
        self._progress = progress
        own = edits_of(edits)
        whole = isinstance(solved, Solution)
        before: tuple[Edit, ...] = ()
        if isinstance(solved, Solution):
            chosen = options or options_of(solved.options)
            takes = tuple(bodies.take for bodies in solved.bodies)
            before = edits_of(solved.options.get("edits", ()))
        else:
            chosen = options or SolveOptions()
            takes = taken(solved, chosen.subject)
        self._settled = tuple(edit for edit in before if edit.do == "bad")
        own = own or (before if whole else edits_of(chosen.edits))
        missing = unsettled(self._settled, own)
        self._edits = (*(self._settled[place] for place in missing), *own)
        self._bench = Bench(
            takes, with_known(chosen), cleaned=whole, settled=self._settled
        )
        self._undone: tuple[tuple[Edit, ...], ...] = ()
        self._answers: dict[tuple[Edit, ...], Solution] = {}
        if isinstance(solved, Solution) and self._edits == before:
            self._answers[before] = solved
        self._score = score_of(self._answer(self._edits))

    @property
    def solution(self) -> Solution:
        """The answer with all edits that were kept."""
        return self._answers[self._edits]

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits that were kept, in order."""
        return self._edits

    @property
    def can_undo(self) -> bool:
        """Whether there is an edit to take back."""
        return bool(unsettled(self._edits, self._settled))

    @property
    def can_redo(self) -> bool:
        """Whether an edit was taken back that can be made again."""
        return bool(self._undone)

    @property
    def score(self) -> Score:
        """How good the answer is."""
        return self._score

    def attempt(self, edit: Edit | Mapping[str, Any]) -> Trial:
        """Return what an edit would change; nothing changes yet.

        Raises:
            OptionError: If the edit does not fit, with what was found and is needed.
            DataError: If with it there is no answer, with the reason.
        """
        wanted = edit if isinstance(edit, Edit) else edit_of(edit)
        answer = self._solved((*self._edits, wanted))
        before, after = self._score, score_of(answer)
        return Trial(
            edit=wanted,
            solution=answer,
            before=before,
            after=after,
            changes=changes_of(self.solution, answer, wanted),
            findings=new_findings(self.solution, answer, wanted),
            text=in_words(wanted, before, after),
        )

    def keep(self, trial: Trial) -> Solution:
        """Return the answer with an edit that was tried, which is kept from now on.

        Raises:
            OptionError: If other edits were kept or taken back since it was tried.
        """
        edits = edits_of(trial.solution.options["edits"])
        if edits != (*self._edits, trial.edit):
            raise OptionError(
                "trial",
                found=f"{trial.edit}, tried on another answer",
                needed="it tried again",
            )
        on_the_way = {
            edits[:n]: self._answers.get(edits[:n]) for n in range(len(edits))
        }
        self._answers = {k: v for k, v in on_the_way.items() if v is not None}
        self._answers[edits] = trial.solution
        self._undone = ()
        self._go_to(edits)
        return self.solution

    def undo(self) -> Solution:
        """Return the answer without the last edit, which can be made again.

        Raises:
            OptionError: If there is none, or only frames marked as bad in an answer
                that was laid on the desk so.
        """
        places = unsettled(self._edits, self._settled)
        if not places:
            found = "no edits"
            if self._settled:
                found = "only frames marked as bad before, which the answer lacks"
            raise OptionError("undo", found=found, needed="one to take back")
        edits = self._edits
        self._go_to((*edits[: places[-1]], *edits[places[-1] + 1 :]))
        self._undone = (*self._undone, edits)
        return self.solution

    def redo(self) -> Solution:
        """Return the answer with the edit again that was taken back last.

        Raises:
            OptionError: If there is none.
        """
        if not self._undone:
            raise OptionError("redo", found="nothing undone", needed="an edit undone")
        self._go_to(self._undone[-1])
        self._undone = self._undone[:-1]
        return self.solution

    def _go_to(self, edits: tuple[Edit, ...]) -> None:
        self._score = score_of(self._answer(edits))
        self._edits = edits

    def _answer(self, edits: tuple[Edit, ...]) -> Solution:
        if edits not in self._answers:
            self._answers[edits] = self._solved(edits)
        return self._answers[edits]

    def _solved(self, edits: tuple[Edit, ...]) -> Solution:
        try:
            return self._bench.solved(edits, Clock(self._progress))
        except np.linalg.LinAlgError as error:
            what = str(edits[-1]) if edits else "solve"
            needed = "bodies and joints that the markers determine"
            raise DataError(what, found=str(error), needed=needed) from error


def options_of(options: Mapping[str, Any]) -> SolveOptions:
    """Return the options of an answer, as `Solution.options` tells them."""
    known = {f.name for f in fields(SolveOptions)}
    values = {name: value for name, value in options.items() if name in known}
    for name in ("skeleton", "template"):
        values[name] = _noun(values.get(name))
    values["edits"] = edits_of(values.get("edits", ()))
    return SolveOptions(**values)


def _noun(value: Any) -> Any:
    """Return what a mapping of fields was: a skeleton, a marker map, or itself."""
    for noun in (Skeleton, Template):
        names = {f.name for f in fields(noun)}
        if isinstance(value, Mapping) and set(value) == names:
            return noun(**value)
    return value
