"""A batch from beginning to end: plan, work, index."""

import json
import os
import shutil
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from marey.errors import DataError, OptionError, OutputError, reason
from marey.io import format_for_suffix
from marey.io.atomic import is_abandoned
from marey.io.formats.parquet import import_pyarrow
from marey.library.clusters import cluster_executor
from marey.library.index import write_index
from marey.library.lock import SubjectLock
from marey.library.options import BatchOptions
from marey.library.recordings import LibraryTake, find_recordings, group_by_subject
from marey.library.records import (
    PARTS,
    RESULTS,
    Record,
    is_batch,
    lock_path,
    mark_gone_takes,
    short_path,
)
from marey.library.subject_work import BatchPlan, SubjectWork
from marey.options import options_from, replace_options
from marey.pipeline import SolveOptions
from marey.workers import Job, Outcome, WorkerPool, machine_memory

FILE_OPTIONS = ("limits", "hold", "reference", "template")
"""Options of `marey.solve` whose text may be the path of a file."""

WAIT_S = 0.5
"""Seconds between two looks at subjects that another run works on."""

Progress = Callable[["BatchProgress"], None]


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """How far a batch is, after each take that ends."""

    record: Record
    """The take that just ended, or that was over before."""

    seconds: float
    """Time that it took now; 0 if it was over before."""

    done: int
    total: int
    """Takes that are over, those kept from earlier runs among them, and all takes."""


@dataclass(slots=True)
class BatchSummary:
    """What a batch did."""

    done: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    """Reason of every take that has no output."""

    kept: int = 0
    """Takes that were done before and are current."""

    codes: Counter[str] = field(default_factory=Counter)
    """Findings of all takes, by code."""

    @property
    def total(self) -> int:
        """Number of takes."""
        return self.done + len(self.failed) + self.kept


@runtime_checkable
class Executor(Protocol):
    """Where jobs run: a pool of processes, or a cluster."""

    @property
    def has_room(self) -> bool:
        """Whether another job can start at once."""

    def submit(self, job: Job) -> None:
        """Start a job."""

    def wait(self) -> Outcome:
        """Return the next outcome."""


def plan_batch(
    library: str | PathLike[str],
    out: str | PathLike[str] | None = None,
    **options: Any,
) -> list[LibraryTake]:
    """Return the recordings of a library and whose they are; nothing is solved.

    Args:
        library: Folder of the recordings.
        out: Folder of the results, which is left out if it lies in the library.
        **options: Fields of `BatchOptions`.

    Raises:
        DataError: If there is no recording.
        OptionError: If an option is not allowed, or a take has no subject.
    """
    chosen = options_from(BatchOptions, options)
    without = Path(out).resolve() if out is not None else None
    takes = _group(Path(library), chosen, without)
    return _shard(takes, chosen.shard)


def batch(
    library: str | PathLike[str],
    out: str | PathLike[str],
    *,
    progress: Progress | None = None,
    **options: Any,
) -> BatchSummary:
    """Solve all recordings of a library, one skeleton per subject, and index them.

    What was done before and depends on nothing that changed is kept. A take that fails
    has its reason in the index, and the others go on. The records in `out` say what was
    made from what; `marey.verify_batch` checks them.

    Args:
        library: Folder of the recordings.
        out: Folder of the results, outside of any take; it may lie in the library.
        progress: Called after each take.
        **options: Fields of `BatchOptions` and of `marey.SolveOptions`.

    Raises:
        DataError: If there is no recording.
        OptionError: If an option is not allowed, a take has no subject, or no cluster
            answers.
        OutputError: If the folder cannot be written.
        MissingExtraError: If pyarrow, which writes the index, or Dask is not installed.
    """
    import_pyarrow()
    names = BatchOptions.__dataclass_fields__
    chosen = options_from(
        BatchOptions, {k: v for k, v in options.items() if k in names}
    )
    fields = {k: v for k, v in options.items() if k not in names}
    skeleton = ""
    if isinstance(fields.get("skeleton"), str | PathLike):
        skeleton = fspath(fields.pop("skeleton"))
    replace_options(SolveOptions(), fields)
    folder = Path(library).resolve()
    _check_apart(folder, Path(out))
    takes = _group(folder, chosen, without=Path(out).resolve())
    plan = BatchPlan(
        library=folder,
        out=_make_out(Path(out)),
        formats=chosen.formats,
        fields={name: _absolute(name, value) for name, value in fields.items()},
        skeleton=skeleton,
        fit_takes=chosen.fit_takes,
        resume=chosen.resume,
        retry=chosen.retry,
    )
    takes = _shard(takes, chosen.shard)
    run = _Run(plan, _subject_works(plan, takes), len(takes), progress)
    with _executor(chosen, len(takes)) as executor:
        run.work(executor)
    mark_gone_takes(plan.out, plan.library)
    write_index(plan.out)
    return run.summary


@contextmanager
def _executor(options: BatchOptions, n_takes: int) -> "Iterator[Executor]":
    """Yield where jobs run, by the options."""
    workers = max(1, min(options.workers or os.cpu_count() or 1, n_takes))
    if options.dask or options.slurm:
        with cluster_executor(options, workers) as executor:
            yield executor
    else:
        memory = options.memory or machine_memory(workers)
        with WorkerPool(workers, memory, options.seconds) as pool:
            yield pool


def _absolute(name: str, value: Any) -> Any:
    """Return the value of an option, a file as its absolute path for workers."""
    is_file = isinstance(value, PathLike) or (
        name in FILE_OPTIONS and isinstance(value, str) and Path(value).is_file()
    )
    return Path(value).resolve() if is_file else value


def _group(
    library: Path, options: BatchOptions, without: Path | None
) -> list[LibraryTake]:
    names = find_recordings(library, patterns=options.patterns, without=without)
    table = Path(options.subjects) if options.subjects else None
    return group_by_subject(
        names, pattern=options.subject_from, table=table, library=library
    )


def _check_apart(library: Path, out: Path) -> None:
    """Refuse results that would lie among recordings, or replace files of others.

    Raises:
        OptionError: If the folder is that of the recordings or one of them, would hold
            results beside them, or has files with the names of results that are of no
            batch.
    """
    results = [(out / name).resolve() for name in RESULTS]
    if out.resolve() == library or not set(results).isdisjoint(
        (library, *library.parents)
    ):
        needed = "another folder than that of the recordings"
        raise OptionError("out", found=str(out), needed=needed)
    if is_batch(out):
        return
    others = [path.name for path in results if os.path.lexists(path)]
    if not others and library in out.resolve().parents and out.is_dir():
        with suppress(DataError):  # Without recordings it may have any name.
            others = find_recordings(out)
    if others:
        found = f"{', '.join(others[:5])} in {out}, of no batch"
        raise OptionError("out", found=found, needed="a new or empty folder")


def _make_out(out: Path) -> Path:
    """Return the folder of the results, made if needed, without left-over scratch.

    Raises:
        OutputError: If it cannot be made or written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        for folder in PARTS:
            for part in (out / folder).rglob(".*.part"):
                if part.is_dir() and is_abandoned(part):
                    shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise OutputError(f"{out}: cannot be written, {reason(error)}") from error
    return out.resolve()


def _shard(takes: list[LibraryTake], shard: tuple[int, int]) -> list[LibraryTake]:
    """Return the takes of every n-th subject.

    Raises:
        OptionError: If there is no such part.
    """
    part, parts = shard
    if not 1 <= part <= parts:
        raise OptionError("shard", found=f"{part}/{parts}", needed="1/n to n/n")
    subjects = set(sorted({take.subject for take in takes})[part - 1 :: parts])
    return [take for take in takes if take.subject in subjects]


def _subject_works(
    plan: BatchPlan, takes: Sequence[LibraryTake]
) -> "list[SubjectWork]":
    of_subject: dict[str, list[LibraryTake]] = {}
    for take in takes:
        of_subject.setdefault(take.subject, []).append(take)
    targets = _targets(takes, plan.formats)
    return [
        SubjectWork(plan, subject, of_subject[subject], targets)
        for subject in sorted(of_subject)
    ]


def _targets(
    takes: Sequence[LibraryTake], formats: Sequence[str]
) -> dict[str, list[str]]:
    """Return the files to write of each take, relative to the folder of the batch.

    They are named like the take, and like its whole file where two differ only in
    their suffix.

    Raises:
        OptionError: If a format cannot be written.
    """
    suffixes = ["." + name.lstrip(".") for name in formats]
    for suffix in suffixes:
        format_for_suffix(Path("take" + suffix))
    stems = Counter(_stem(take.name) for take in takes)
    targets = {}
    for take in takes:
        stem = _stem(take.name)
        name = short_path(stem if stems[stem] == 1 else take.name)
        targets[take.name] = [f"takes/{name}{suffix}" for suffix in suffixes]
    return targets


def _stem(name: str) -> str:
    folder, slash, file = name.rpartition("/")
    return folder + slash + (file.rpartition(".")[0] or file)


@dataclass(slots=True)
class _Run:
    """The subjects that are left, those at work, and what came out so far."""

    plan: BatchPlan
    left: list[SubjectWork]
    total: int
    progress: Progress | None
    ready: deque[Job] = field(default_factory=deque)
    owner: dict[str, SubjectWork] = field(default_factory=dict)
    """Subject of each open job."""

    locks: dict[str, SubjectLock] = field(default_factory=dict)
    summary: BatchSummary = field(default_factory=BatchSummary)

    def work(self, executor: Executor) -> None:
        """Work until all takes are over; subjects of another run are waited for."""
        running = 0
        try:
            while True:
                for job in self._jobs(executor):
                    executor.submit(job)
                    running += 1
                if running:
                    self._receive(executor.wait())
                    running -= 1
                elif self.left:
                    time.sleep(WAIT_S)
                else:
                    break
        finally:
            for lock in self.locks.values():
                lock.release()

    def _jobs(self, executor: Executor) -> Iterator[Job]:
        """Yield jobs while there is room for them."""
        while executor.has_room:
            if not self.ready and not self._begin_subject():
                return
            if self.ready:
                yield self.ready.popleft()

    def _begin_subject(self) -> bool:
        """Begin with the next subject that no other run works on; return if one was."""
        for work in self.left:
            lock = SubjectLock(lock_path(self.plan.out, work.subject))
            if lock.acquire():
                self.left.remove(work)
                self.locks[work.subject] = lock
                self._add(work, work.begin())
                return True
        return False

    def _add(self, work: SubjectWork, jobs: Sequence[Job]) -> None:
        self.ready.extend(jobs)
        self.owner |= dict.fromkeys([job.key for job in jobs], work)

    def _receive(self, outcome: Outcome) -> None:
        work = self.owner.pop(outcome.job.key)
        self._note_time(outcome)
        record, jobs = work.advance(outcome)
        self._add(work, jobs)
        for kept in work.kept:
            self.summary.kept += kept.state == "done"
            self._report(kept, 0.0)
        work.kept.clear()
        if not work.n_open:
            self.locks.pop(work.subject).release()
        if record is not None:
            self.summary.done += record.state == "done"
            self._report(record, outcome.seconds)

    def _report(self, record: Record, seconds: float) -> None:
        """Count a take that is over, and report it to the caller."""
        self.summary.codes.update(record.facts.get("codes", {}))
        if record.state != "done":
            self.summary.failed[record.name] = record.error
        if self.progress is not None:
            over = self.summary.total
            self.progress(BatchProgress(record, seconds, over, self.total))

    def _note_time(self, outcome: Outcome) -> None:
        """Append the seconds of a job to the file of times.

        They differ from run to run, and records must not.
        """
        step, _, name = outcome.job.key.partition(" ")
        row = {"step": step, "name": name, "seconds": round(outcome.seconds, 3)}
        path = self.plan.out / "timings.jsonl"
        with suppress(OSError), path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
