"""The work on one subject, step by step: describe its takes, fit, solve each take."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from marey.library.recordings import LibraryTake
from marey.library.records import (
    Record,
    is_current,
    library_versions,
    make_key,
    read_record,
    skeleton_path,
    subject_record_path,
    take_record_path,
    write_record,
)
from marey.workers import Job, Outcome

JOBS = "marey.library.jobs:"
DESCRIBE, FIT, SOLVE = "describe_take", "fit_subject", "solve_take"

REASONS = {
    "late": "it took longer than the time limit and was stopped",
    "lost": "it killed its worker each time it was tried, perhaps for lack of memory",
}
"""Errors of jobs that end without a word."""


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """Folders and options that all subjects of a batch share."""

    library: Path
    out: Path
    formats: Sequence[str]
    fields: Mapping[str, Any]
    """Options of `marey.solve`, which pickle."""

    fields_key: Mapping[str, Any]
    """The same for a hash: files by their content."""

    fit_takes: int
    retry: bool


@dataclass(slots=True)
class SubjectWork:
    """The state of the work on one subject."""

    plan: BatchPlan
    subject: str
    takes: Sequence[LibraryTake]
    targets: Mapping[str, Sequence[str]]
    """Outputs of each take, relative to the folder of the batch."""

    n_open: int = 0
    """Number of jobs that are not over."""

    n_kept: int = 0
    """Number of takes that were done before and are current."""

    described: dict[str, dict[str, Any]] = field(default_factory=dict)
    fits: list[tuple[str, ...]] = field(default_factory=list)
    """Sets of takes from which a skeleton is still to be tried."""

    fit_errors: list[str] = field(default_factory=list)
    """Why earlier fits failed."""

    skeleton_hash: str = ""
    """SHA-256 of the skeleton of the subject; "" without one."""

    def begin(self) -> list[Job]:
        """Return the first jobs."""
        return self._counted([self._describe_job(take.name) for take in self.takes])

    def advance(self, outcome: Outcome) -> tuple[Record | None, list[Job]]:
        """Return the record that an outcome completes, if any, and the next jobs."""
        self.n_open -= 1
        step, _, name = outcome.job.key.partition(" ")
        if step == DESCRIBE:
            return self._after_description(name, outcome)
        if step == FIT:
            return None, self._counted(self._after_fit(outcome))
        if outcome.state == "done":
            return outcome.value, []
        return self._failure(name, outcome), []

    def _counted(self, jobs: list[Job]) -> list[Job]:
        self.n_open += len(jobs)
        return jobs

    # --- describe ---------------------------------------------------------------------

    def _describe_job(self, take: str) -> Job:
        record = read_record(take_record_path(self.plan.out, take))
        known = dict(record.facts) if record else {}
        wanted = ("sha256", "frames", "positions")
        known = {name: known[name] for name in wanted if name in known}
        arguments = {"path": str(self.plan.library / take), "known": known}
        return Job(f"{DESCRIBE} {take}", JOBS + DESCRIBE, arguments)

    def _after_description(
        self, take: str, outcome: Outcome
    ) -> tuple[Record | None, list[Job]]:
        failure = None
        if outcome.state == "done":
            self.described[take] = outcome.value
        else:
            failure = self._failure(take, outcome)
        return failure, [] if self.n_open else self._counted(self._begin_fits())

    # --- fit --------------------------------------------------------------------------

    def _begin_fits(self) -> list[Job]:
        """Return the first fit: of the takes that show most, then of each alone."""
        richest = sorted(
            self.described, key=lambda name: (-self.described[name]["positions"], name)
        )
        chosen = tuple(sorted(richest[: self.plan.fit_takes]))
        if not chosen:
            return []
        alone = [(name,) for name in richest[: self.plan.fit_takes]]
        self.fits = [chosen, *(alone if len(chosen) > 1 else [])]
        record = read_record(subject_record_path(self.plan.out, self.subject))
        keys = map(self._fit_key, self.fits)
        if record and any(
            is_current(record, key, self.plan.out, retry=self.plan.retry)
            for key in keys
        ):
            return self._use_fit(record)
        return self._next_fit()

    def _fit_key(self, takes: Sequence[str]) -> str:
        return make_key(
            inputs=self._hashes(takes),
            options=self.plan.fields_key,
            versions=library_versions(),
        )

    def _hashes(self, takes: Sequence[str]) -> dict[str, str]:
        return {take: self.described[take]["sha256"] for take in takes}

    def _next_fit(self) -> list[Job]:
        takes = self.fits.pop(0)
        key = self._fit_key(takes)
        arguments = {
            "library": str(self.plan.library),
            "out": str(self.plan.out),
            "subject": self.subject,
            "takes": takes,
            "inputs": self._hashes(takes),
            "fields": self.plan.fields,
            "key": key,
            "earlier_errors": tuple(self.fit_errors),
        }
        return [Job(f"{FIT} {self.subject} {key}", JOBS + FIT, arguments)]

    def _after_fit(self, outcome: Outcome) -> list[Job]:
        if outcome.state == "done":
            return self._use_fit(outcome.value)
        self.fit_errors.append(_reason(outcome))
        if self.fits:
            return self._next_fit()
        record = Record(
            kind="subject",
            name=self.subject,
            subject=self.subject,
            state=outcome.state,
            key=outcome.job.arguments["key"],
            error=self.fit_errors[0],
            inputs=outcome.job.arguments["inputs"],
            options=dict(self.plan.fields),
            versions=library_versions(),
        )
        write_record(subject_record_path(self.plan.out, self.subject), record)
        return self._solve_jobs()

    def _use_fit(self, record: Record) -> list[Job]:
        for facts in record.outputs.values():
            self.skeleton_hash = facts["sha256"]
        return self._solve_jobs()

    # --- solve ------------------------------------------------------------------------

    def _solve_jobs(self) -> list[Job]:
        jobs = [self._solve_job(take) for take in sorted(self.described)]
        needed = [job for job in jobs if job is not None]
        self.n_kept = len(jobs) - len(needed)
        return needed

    def _solve_job(self, take: str) -> Job | None:
        """Return the job of a take; None if it was done before."""
        described, plan = self.described[take], self.plan
        key = make_key(
            sha256=described["sha256"],
            skeleton=self.skeleton_hash,
            targets=self.targets[take],
            options=plan.fields_key,
            versions=library_versions(),
        )
        record = read_record(take_record_path(plan.out, take))
        if is_current(record, key, plan.out, retry=plan.retry):
            return None
        skeleton = skeleton_path(plan.out, self.subject) if self.skeleton_hash else ""
        arguments = {
            "library": str(plan.library),
            "out": str(plan.out),
            "take": take,
            "subject": self.subject,
            "sha256": described["sha256"],
            "skeleton": str(skeleton),
            "targets": self.targets[take],
            "fields": plan.fields,
            "key": key,
            "described": described,
        }
        return Job(f"{SOLVE} {take}", JOBS + SOLVE, arguments)

    def _failure(self, take: str, outcome: Outcome) -> Record:
        """Return the record of a take that failed, after writing it."""
        described = self.described.get(take, {})
        record = Record(
            kind="take",
            name=take,
            subject=self.subject,
            state=outcome.state,
            key=str(outcome.job.arguments.get("key", "")),
            error=_reason(outcome).replace(f"{self.plan.library}{os.sep}", ""),
            inputs={take: described["sha256"]} if described else {},
            options=dict(self.plan.fields),
            versions=library_versions(),
            facts=dict(described),
        )
        write_record(take_record_path(self.plan.out, take), record)
        return record


def _reason(outcome: Outcome) -> str:
    """Return why a job has no result, in words for the user."""
    return REASONS.get(outcome.state) or str(outcome.value)
