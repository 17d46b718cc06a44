"""Editing sessions: try an edit, keep it, undo it, redo it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from marey.editing.kinds.mask_frames import pending_edits
from marey.editing.kinds.moved_sensors import edits_of_takes
from marey.editing.score import (
    EditChange,
    EditScore,
    list_changes,
    new_findings,
    score_of,
    summarise,
)
from marey.editing.solver import EditSolver
from marey.edits import Edit, parse_edit, parse_edits
from marey.errors import DataError, OptionError
from marey.pipeline import SolveOptions
from marey.pipeline.posing.settings import parse_reference
from marey.pipeline.progress import Clock
from marey.pipeline.stages.takes import Recording, read_takes
from marey.report import Finding
from marey.segmentation import Template
from marey.skeleton import Skeleton
from marey.solution import Solution


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """An edit that was tried, and what it would change."""

    edit: Edit
    solution: Solution
    """The solution with the edit."""

    before: EditScore
    after: EditScore
    changes: tuple[EditChange, ...]
    """Bones whose length would change, joints that would appear or disappear."""

    findings: tuple[Finding, ...]
    """Findings that exist only with the edit."""

    text: str
    """The effect in one line."""


class EditSession:
    """A solution and the edits made to it by hand.

    An edit costs only what depends on it. In a session of recordings the solution
    equals, to the bit, that of `marey.solve` with the same edits. A session of a
    solution goes on from the takes in it, which were cleaned and repaired with the
    bodies of that time: `marey.solve` of the recordings may repair them otherwise.

    The takes of a solution do not contain the frames that had been masked ("bad"), and
    their sensors are expressed as if they had not moved on their bones. Those edits
    stay in `edits`, but they cannot be undone.

    Args:
        solved: A solution, edited from the takes in it; or recordings, which are solved
            first.
        options: How to solve; those of the solution when left out.
        edits: Edits made before; those of the solution when left out. Those that its
            takes contain are among them in any case.
        progress: Called with the name of each stage as it begins, and once more, with a
            note, if the stage has to be compiled first.

    Raises:
        DataError: If there is nothing to solve.
        OptionError: If an edit does not fit.
    """

    def __init__(
        self,
        solved: Solution | Recording | Sequence[Recording],
        *,
        options: SolveOptions | None = None,
        edits: Iterable[Edit | Mapping[str, Any]] = (),
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self._progress = progress
        given = parse_edits(edits)
        is_solution = isinstance(solved, Solution)
        if isinstance(solved, Solution):
            chosen = options or parse_options(solved.options)
            takes = tuple(bodies.take for bodies in solved.bodies)
            before = parse_edits(solved.options.get("edits", ()))
            self._masked = edits_of_takes(before)
        else:
            chosen = options or SolveOptions()
            takes = read_takes(solved, chosen.subject)
            before, self._masked = parse_edits(chosen.edits), ()
        given = given or before
        missing = pending_edits(self._masked, given)
        self._edits = (*(self._masked[index] for index in missing), *given)
        self._solver = EditSolver(
            takes, chosen, cleaned=is_solution, masked=self._masked
        )
        self._undone: tuple[tuple[Edit, ...], ...] = ()
        self._solutions: dict[tuple[Edit, ...], Solution] = {}
        if isinstance(solved, Solution) and self._edits == before:
            self._solutions[before] = solved
        self._score = score_of(self._solution_with(self._edits))

    @property
    def solution(self) -> Solution:
        """The solution with all edits that were kept."""
        return self._solutions[self._edits]

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits that were kept, in order."""
        return self._edits

    @property
    def can_undo(self) -> bool:
        """Whether there is an edit to undo."""
        return bool(pending_edits(self._edits, self._masked))

    @property
    def can_redo(self) -> bool:
        """Whether there is an undone edit to make again."""
        return bool(self._undone)

    @property
    def score(self) -> EditScore:
        """The score of the solution."""
        return self._score

    def attempt(self, edit: Edit | Mapping[str, Any]) -> Trial:
        """Return what an edit would change; the session stays as it is.

        Raises:
            OptionError: If the edit does not fit, with what was found and is needed.
            DataError: If there is no solution with it, with the reason.
        """
        tried = edit if isinstance(edit, Edit) else parse_edit(edit)
        solution = self._solve((*self._edits, tried))
        before, after = self._score, score_of(solution)
        return Trial(
            edit=tried,
            solution=solution,
            before=before,
            after=after,
            changes=list_changes(self.solution, solution, tried),
            findings=new_findings(self.solution, solution, tried),
            text=summarise(tried, before, after),
        )

    def keep(self, trial: Trial) -> Solution:
        """Return the solution with an edit that was tried, which is kept from now on.

        Raises:
            OptionError: If other edits were kept or undone since it was tried.
        """
        edits = parse_edits(trial.solution.options["edits"])
        if edits != (*self._edits, trial.edit):
            found = f"{trial.edit}, tried on another answer"
            raise OptionError("trial", found=found, needed="it tried again")
        prefixes = {edits[:n] for n in range(len(edits))}
        known = self._solutions.items()
        self._solutions = {key: one for key, one in known if key in prefixes}
        self._solutions[edits] = trial.solution
        self._undone = ()
        self._go_to(edits)
        return self.solution

    def undo(self) -> Solution:
        """Return the solution without the last edit, which can be made again.

        Raises:
            OptionError: If there is none, or only those that the takes of this
                session contained from the beginning.
        """
        pending = pending_edits(self._edits, self._masked)
        if not pending:
            found = "no edits"
            if self._masked:
                found = "only edits made before, which the takes contain already"
            raise OptionError("undo", found=found, needed="one to take back")
        edits, last = self._edits, pending[-1]
        self._go_to((*edits[:last], *edits[last + 1 :]))
        self._undone = (*self._undone, edits)
        return self.solution

    def redo(self) -> Solution:
        """Return the solution with the last undone edit made again.

        Raises:
            OptionError: If there is none.
        """
        if not self._undone:
            raise OptionError("redo", found="nothing undone", needed="an edit undone")
        self._go_to(self._undone[-1])
        self._undone = self._undone[:-1]
        return self.solution

    def _go_to(self, edits: tuple[Edit, ...]) -> None:
        self._score = score_of(self._solution_with(edits))
        self._edits = edits

    def _solution_with(self, edits: tuple[Edit, ...]) -> Solution:
        if edits not in self._solutions:
            self._solutions[edits] = self._solve(edits)
        return self._solutions[edits]

    def _solve(self, edits: tuple[Edit, ...]) -> Solution:
        try:
            return self._solver.solve(edits, Clock(self._progress))
        except np.linalg.LinAlgError as error:
            what = str(edits[-1]) if edits else "solve"
            needed = "bodies and joints that the markers determine"
            raise DataError(what, found=str(error), needed=needed) from error


def parse_options(options: Mapping[str, Any]) -> SolveOptions:
    """Return the options of a solution from the mapping `Solution.options`."""
    known = {f.name for f in fields(SolveOptions)}
    values = {name: value for name, value in options.items() if name in known}
    for name in ("skeleton", "template"):
        values[name] = _parse_noun(values.get(name))
    values["reference"] = parse_reference(values.get("reference"))
    values["edits"] = parse_edits(values.get("edits", ()))
    return SolveOptions(**values)


def _parse_noun(value: Any) -> Any:
    """Return the skeleton or marker map of a mapping with its fields, or the value."""
    for noun in (Skeleton, Template):
        names = {f.name for f in fields(noun)}
        if isinstance(value, Mapping) and set(value) == names:
            return noun(**value)
    return value
