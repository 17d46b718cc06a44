"""The work on one subject, step by step: describe its takes, fit, solve each take."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from marey.errors import OutputError
from marey.library.recordings import LibraryTake
from marey.library.records import (
    LASTING_STATES,
    Record,
    State,
    current_record,
    describe_options,
    finish_record,
    plan_record,
    read_record,
    record_path,
)
from marey.workers import Job, Outcome

JOBS = "marey.library.jobs:"
DESCRIBE, FIT, SOLVE = "describe_take", "fit_subject", "solve_take"

REASONS = {
    "late": "it took longer than the time limit and was stopped",
    "lost": "it killed its worker each time it was tried, perhaps for lack of memory",
}
"""Errors of jobs that end without a word."""

OF_POSES = frozenset(
    ("contacts", "hold", "ground", "friction", "reference", "outlier", "max_gap")
)
"""Options that decide poses and gaps of a take alone: the skeleton of the subject does
not depend on them, so that it is kept when they change."""

SHOWN = ("positions", "labelled", "spread")
"""What `describe_take` finds beside the inputs, which records keep for later runs."""


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """Folders and options that all subjects of a batch share."""

    library: Path
    out: Path
    formats: Sequence[str]
    fields: Mapping[str, Any]
    """Options of `marey.solve`, which pickle."""

    skeleton: str
    """File of a skeleton that is given, in which `{subject}` stands for the name of the
    subject; "" if none is."""

    fit_takes: int
    resume: bool
    retry: bool

    def fields_of(self, subject: str) -> dict[str, Any]:
        """Return the options of `marey.solve` for a subject."""
        if not self.skeleton:
            return dict(self.fields)
        path = Path(self.skeleton.replace("{subject}", subject)).resolve()
        return {**self.fields, "skeleton": path}


@dataclass(slots=True)
class SubjectWork:
    """The state of the work on one subject."""

    plan: BatchPlan
    subject: str
    takes: Sequence[LibraryTake]
    targets: Mapping[str, Sequence[str]]
    """Outputs of each take, relative to the folder of the batch."""

    fields: Mapping[str, Any] = field(init=False)
    """Options of `marey.solve`."""

    options: Mapping[str, Any] = field(init=False)
    """The same for records: files by their content."""

    fit_fields: Mapping[str, Any] = field(init=False)
    """Options of the fit of the skeleton."""

    fit_options: Mapping[str, Any] = field(init=False)
    """The same for records."""

    n_open: int = 0
    """Number of jobs that are not over."""

    kept: list[Record] = field(default_factory=list)
    """Takes that were over before and are current."""

    described: dict[str, dict[str, Any]] = field(default_factory=dict)
    chosen: list[str] = field(default_factory=list)
    """Takes of the fit, in the order of their gain."""

    fits: list[tuple[str, ...]] = field(default_factory=list)
    """Sets of takes from which a skeleton is still to be tried."""

    fit_errors: list[str] = field(default_factory=list)
    """Why earlier fits failed."""

    is_fit_final: bool = True
    """Whether earlier fits failed for a reason in the data, which stays. If workers
    died, the next run tries them again."""

    skeletons: dict[str, str] = field(default_factory=dict)
    """SHA-256 of each skeleton of the subject, by its file relative to the batch."""

    def __post_init__(self) -> None:
        self.fields = self.plan.fields_of(self.subject)
        self.options = describe_options(self.fields)
        self.fit_fields = {k: v for k, v in self.fields.items() if k not in OF_POSES}
        self.fit_options = describe_options(self.fit_fields)

    def begin(self) -> list[Job]:
        """Return the first jobs."""
        return self._count_open([self._describe_job(take.name) for take in self.takes])

    def advance(self, outcome: Outcome) -> tuple[Record | None, list[Job]]:
        """Return the record that an outcome completes, if any, and the next jobs.

        Raises:
            OutputError: If the results cannot be written.
        """
        self.n_open -= 1
        step, _, name = outcome.job.key.partition(" ")
        if step == DESCRIBE:
            return self._after_description(name, outcome)
        if step == FIT:
            return None, self._count_open(self._after_fit(outcome))
        if outcome.state == "done":
            return outcome.value, []
        return self._fail(outcome.job.arguments["planned"], outcome), []

    def _count_open(self, jobs: list[Job]) -> list[Job]:
        self.n_open += len(jobs)
        return jobs

    def _job(
        self, step: str, planned: Record, fields: Mapping[str, Any], **arguments: Any
    ) -> Job:
        folders = {"library": str(self.plan.library), "out": str(self.plan.out)}
        shared = {**folders, "planned": planned, "fields": fields}
        return Job(f"{step} {planned.name}", JOBS + step, {**shared, **arguments})

    # --- describe ---------------------------------------------------------------------

    def _describe_job(self, take: str) -> Job:
        record = read_record(record_path(self.plan.out, "take", take))
        known = {"inputs": record.inputs, **record.facts} if record else {}
        known = {name: known[name] for name in ("inputs", *SHOWN) if name in known}
        library = str(self.plan.library)
        arguments = {"library": library, "name": take, "known": known}
        return Job(f"{DESCRIBE} {take}", JOBS + DESCRIBE, arguments)

    def _after_description(
        self, take: str, outcome: Outcome
    ) -> tuple[Record | None, list[Job]]:
        failure = None
        if outcome.state == "done":
            self.described[take] = outcome.value
        else:
            planned = plan_record("take", take, self.subject, {}, self.options)
            failure = self._fail(planned, outcome)
        return failure, [] if self.n_open else self._count_open(self._begin_fits())

    # --- fit --------------------------------------------------------------------------

    def _begin_fits(self) -> list[Job]:
        """Return the first fit: of the takes that show most, then of each alone."""
        if not self.described:
            return []
        self.chosen = choose_fit_takes(self.described, self.plan.fit_takes)
        alone = [(name,) for name in self.chosen] if len(self.chosen) > 1 else []
        self.fits = [tuple(sorted(self.chosen)), *alone]
        for takes in self.fits:
            record = self._current(self._planned_fit(takes))
            if record is not None and record.facts.get("is_final", True):
                return self._use_fit(record)
        return self._next_fit()

    def _planned_fit(self, takes: Sequence[str]) -> Record:
        inputs = {k: v for t in takes for k, v in self.described[t]["inputs"].items()}
        name = self.subject
        return plan_record("subject", name, name, inputs, self.fit_options)

    def _next_fit(self) -> list[Job]:
        names = self.fits.pop(0)
        fit = {"names": names, "earlier_errors": tuple(self.fit_errors)}
        planned, is_final = self._planned_fit(names), self.is_fit_final
        return [self._job(FIT, planned, self.fit_fields, **fit, is_final=is_final)]

    def _after_fit(self, outcome: Outcome) -> list[Job]:
        if outcome.state == "done":
            return self._use_fit(outcome.value)
        if isinstance(outcome.value, OutputError):
            raise outcome.value
        self.fit_errors.append(_reason(outcome))
        if outcome.state not in LASTING_STATES:
            self.is_fit_final = False
            self._try_half(outcome.job.arguments["names"])
        if self.fits:
            return self._next_fit()
        self._fail(outcome.job.arguments["planned"], outcome, self.fit_errors[0])
        return self._solve_jobs()

    def _try_half(self, names: Sequence[str]) -> None:
        """Let the better half of the takes be fitted next: it needs less memory."""
        half = [name for name in self.chosen if name in names][: len(names) // 2]
        if len(half) > 1:
            self.fits.insert(0, tuple(sorted(half)))

    def _use_fit(self, record: Record) -> list[Job]:
        self.skeletons = {
            name: facts["sha256"] for name, facts in record.outputs.items()
        }
        return self._solve_jobs()

    # --- solve ------------------------------------------------------------------------

    def _solve_jobs(self) -> list[Job]:
        jobs = [self._solve_job(take) for take in sorted(self.described)]
        return [job for job in jobs if job is not None]

    def _solve_job(self, take: str) -> Job | None:
        """Return the job of a take; None if it is kept from before."""
        described, targets = self.described[take], self.targets[take]
        inputs = described["inputs"]
        planned = plan_record(
            "take",
            take,
            self.subject,
            inputs,
            self.options,
            skeletons=self.skeletons,
            targets=targets,
        )
        record = self._current(planned)
        if record is not None:
            self.kept.append(record)
            return None
        return self._job(
            SOLVE,
            planned,
            self.fields,
            skeletons=tuple(self.skeletons),
            targets=targets,
            shown=self._shown(take),
        )

    def _current(self, planned: Record) -> Record | None:
        """Return the record of work that is kept; None if it must be done again."""
        if not self.plan.resume:
            return None
        return current_record(planned, self.plan.out, retry=self.plan.retry)

    def _shown(self, take: str) -> dict[str, Any]:
        """Return what a take shows; nothing if it could not be read."""
        described = self.described.get(take, {})
        return {name: described[name] for name in SHOWN if name in described}

    def _fail(self, planned: Record, outcome: Outcome, reason: str = "") -> Record:
        """Return the record of work without a result, after writing it."""
        state: State = "unwritten"
        if not isinstance(outcome.value, OutputError):
            state = outcome.state
        error = (reason or _reason(outcome)).replace(f"{self.plan.library}{os.sep}", "")
        facts = self._shown(planned.name) if planned.kind == "take" else {}
        return finish_record(planned, self.plan.out, state, error=error, facts=facts)


def choose_fit_takes(
    described: Mapping[str, Mapping[str, Any]], count: int
) -> list[str]:
    """Return the takes that together show most motion, in the order of their gain.

    Greedy maximum coverage: each next take adds most to the largest spread of every
    marker so far (`measure_spread`). Takes without labels are chosen only if no other
    has labels.

    Args:
        described: What `describe_take` found of each take.
        count: Most takes to choose.
    """
    labelled = [name for name in described if described[name]["labelled"]]
    left, chosen = sorted(labelled or described), list[str]()
    covered: dict[str, float] = {}

    def gain(name: str) -> tuple[float, int]:
        spread = described[name]["spread"].items()
        gains = (max(value - covered.get(label, 0.0), 0.0) for label, value in spread)
        return sum(gains), described[name]["positions"]

    while left and len(chosen) < count:
        best = max(left, key=gain)
        left.remove(best)
        chosen.append(best)
        for label, value in described[best]["spread"].items():
            covered[label] = max(covered.get(label, 0.0), value)
    return chosen


def _reason(outcome: Outcome) -> str:
    """Return why a job has no result, in words for the user."""
    return REASONS.get(outcome.state) or str(outcome.value)
