"""`marey batch` and `marey verify`."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.markup import escape

from marey.cli.application import (
    EXIT_BAD_INPUT,
    EXIT_ERROR_FINDING,
    EXIT_OK,
    EXIT_PARTIAL,
    Switch,
    err,
    out,
    print_json,
)
from marey.cli.commands.solve import DEFAULTS, SolveArguments
from marey.errors import OptionError, printable
from marey.report import count_noun

if TYPE_CHECKING:
    from marey.library import BatchProgress, LibraryTake
    from marey.library.records import Record

MEGABYTE = 10**6


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class BatchArguments:
    """How to go through a library: `BatchOptions`, in words."""

    formats: str = "bvh"
    """What to write of every take, such as bvh,glb,parquet,html."""

    pattern: tuple[str, ...] = ()
    """Only recordings like '*.c3d'."""

    subject_from: str = ""
    """Regular expression on the relative path, its first group is the subject; or file:
    the subject that the file names."""

    subjects: Path | None = None
    """CSV (columns take, subject) or TOML ([subjects]) that says whose each take is."""

    fit_takes: int = 6
    """Most takes from which the skeleton of a subject is fitted: those that together
    show most motion."""

    workers: int = 0
    """Number of processes; 0 is one per core."""

    dask: str = ""
    """Work on a Dask cluster: the address of its scheduler, or local."""

    slurm: bool = False
    """Work in jobs of SLURM, one for each of --workers."""

    sbatch: str = ""
    """Further options of these jobs: --sbatch='--partition=long --time=8:00:00'."""

    memory: int = 0
    """Memory limit of each worker in MB; 0 is its share of the machine's."""

    seconds: float = 900.0
    """Longest time for one take."""

    shard: str = "1/1"
    """i/n: only the i-th of n parts of the subjects, for array jobs."""

    resume: Switch = True
    """Keep what was done before and depends on nothing that changed."""

    retry: bool = False
    """Try takes again that failed before, though nothing changed."""

    def options(self) -> dict[str, Any]:
        """Return the fields of `BatchOptions`."""
        given = asdict(self)
        patterns = given.pop("pattern")
        return given | {
            "formats": tuple(filter(None, self.formats.split(","))),
            "patterns": patterns,
            "subjects": str(self.subjects) if self.subjects else "",
            "memory": self.memory * MEGABYTE,
            "shard": _parse_shard(self.shard),
        }


def _parse_shard(text: str) -> tuple[int, int]:
    part, _, parts = text.partition("/")
    if not (part.isdecimal() and parts.isdecimal()):
        raise OptionError("--shard", found=text, needed="i/n such as 2/8")
    return int(part), int(parts)


ONE_FORMAT = BatchArguments()


def batch(
    library: Path,
    /,
    *,
    out_: Annotated[Path | None, Parameter(alias="-o")] = None,
    arguments: BatchArguments = ONE_FORMAT,
    solving: SolveArguments = DEFAULTS,
    plan: bool = False,
    quiet: bool = False,
    json_: bool = False,
) -> int:
    """Solve every recording of a folder, one skeleton per subject, and index them.

    What was done before is kept. A take that fails is listed with its reason, and the
    others go on; the exit code is then 3.

    Args:
        library: Folder of the recordings.
        out_: Folder of the results.
        arguments: How to go through the library.
        solving: How to solve.
        plan: Only print the recordings and whose they are.
        quiet: Print errors only.
        json_: Print one line of JSON for each take.
    """
    from marey.library import batch as run_batch
    from marey.library import plan_batch

    options = arguments.options()
    if plan:
        return _print_plan(plan_batch(library, out_, **options), arguments, json_)
    if out_ is None:
        raise OptionError("--out", found="nothing", needed="a folder for the results")
    with _show(json_, quiet) as progress:
        summary = run_batch(
            library, out_, progress=progress, **options, **_fields(solving)
        )
    if not quiet and not json_:
        failed = f", {len(summary.failed)} failed" if summary.failed else ""
        kept = f", {summary.kept} kept from before" if summary.kept else ""
        solved = f"{count_noun(summary.done, 'take')} solved"
        err.print(f"{solved}{kept}{failed}: {out_ / 'index.html'}")
        for take, reason in sorted(summary.failed.items()):
            err.print(f"[red]failed:[/] {escape(_failure(take, reason))}")
    if not summary.failed:
        return EXIT_OK
    return EXIT_PARTIAL if summary.done or summary.kept else EXIT_BAD_INPUT


def _failure(take: str, reason: str) -> str:
    """Return the reason of a take without output, with its name once."""
    return printable(reason if reason.startswith(take) else f"{take}: {reason}")


def _fields(solving: SolveArguments) -> dict[str, Any]:
    """Return the options of `marey.solve` that differ from the defaults.

    Raises:
        OptionError: If one concerns single takes.
    """
    given = asdict(solving)
    changed = {k: v for k, v in given.items() if v != getattr(DEFAULTS, k)}
    of_one_take = sorted({"subject", "edits", "sessions"} & set(changed))
    if of_one_take:
        needed = "`marey solve`, take by take"
        raise OptionError(f"--{of_one_take[0]}", found="it", needed=needed)
    if not changed:
        return {}
    from marey.pipeline import SolveOptions

    options, usual = replace(solving, skeleton=None).read_options(), SolveOptions()
    fields = {
        name: getattr(options, name)
        for name in SolveOptions.__dataclass_fields__
        if getattr(options, name) != getattr(usual, name)
    }
    return fields | ({"skeleton": solving.skeleton} if solving.skeleton else {})


def _print_plan(
    takes: "list[LibraryTake]", arguments: BatchArguments, as_json: bool
) -> int:
    if as_json:
        print_json([asdict(take) for take in takes])
        return EXIT_OK
    names: dict[str, list[str]] = {}
    for take in takes:
        names.setdefault(take.subject, []).append(take.name)
    for subject in sorted(names):
        count = count_noun(len(names[subject]), "take")
        out.print(f"[bold]{escape(printable(subject))}[/]  {count}")
        for name in names[subject]:
            out.print(f"  {escape(printable(name))}")
    out.print(
        f"{count_noun(len(takes), 'take')} of {count_noun(len(names), 'subject')}"
    )
    if arguments.subjects:
        from marey.library.recordings import unused_rows

        for pattern in unused_rows(takes, arguments.subjects):
            out.print(f"[yellow]no such recording:[/] {escape(printable(pattern))}")
    return EXIT_OK


@contextmanager
def _show(
    as_json: bool, quiet: bool
) -> "Iterator[Callable[[BatchProgress], None] | None]":
    """Show how far a batch is: lines of JSON, a bar in a terminal, or plain lines."""
    if as_json:
        yield _print_json_line
    elif quiet:
        yield None
    elif err.is_terminal:
        yield from _bar()
    else:
        yield lambda now: err.print(
            f"{now.done} of {now.total}: {escape(printable(now.record.name))} "
            f"{now.record.state}"
        )


def _print_json_line(now: "BatchProgress") -> None:
    record = now.record
    row = {
        "take": record.name,
        "subject": record.subject,
        "state": record.state,
        "error": record.error,
        "kept": now.seconds == 0.0,
        "residual_mm": record.facts.get("residual_mm"),
        "findings": record.facts.get("codes", {}),
        "seconds": round(now.seconds, 3),
        "done": now.done,
        "total": now.total,
    }
    sys.stdout.write(json.dumps(row) + "\n")
    sys.stdout.flush()


def _bar() -> "Iterator[Callable[[BatchProgress], None]]":
    """Yield a function that moves a bar: rate, time left, failures and findings."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.description}"),
    )
    began = time.monotonic()
    solved, failed, erroneous, findings = 0, 0, 0, 0
    with Progress(*columns, console=err) as progress:
        task = progress.add_task("reading", total=None, rate="")

        def move(now: "BatchProgress") -> None:
            nonlocal solved, failed, erroneous, findings
            record, severities = now.record, _severities(now.record)
            solved += now.seconds > 0.0
            failed += record.state != "done"
            erroneous += "error" in severities
            findings += len(severities)
            progress.update(
                task,
                total=now.total,
                completed=now.done,
                rate=_rate(solved, now.total - now.done, time.monotonic() - began),
                description=f"{escape(printable(record.name, limit=40))}  "
                f"{failed} failed, {erroneous} with errors, {findings} findings",
            )

        yield move


def _rate(solved: int, left: int, seconds: float) -> str:
    """Return takes per minute and the time left; takes kept from before do not count.

    Args:
        solved: Takes that were solved in this run.
        left: Takes that are not over.
        seconds: Time of this run so far.
    """
    if not solved or seconds <= 0.0:
        return ""
    per_minute = 60.0 * solved / seconds
    time_left = timedelta(seconds=round(seconds * left / solved))
    number = f"{per_minute:.0f}" if per_minute >= 10.0 else f"{per_minute:.1f}"
    return f"{number} takes/min, {time_left} left"


def _severities(record: "Record") -> list[str]:
    return [severity for severity, *_ in record.facts.get("findings", [])]


def verify(folder: Path, /, *, json_: bool = False) -> int:
    """Compare every output of a batch with its recorded hash, and the index.

    Args:
        folder: Folder of the results of `marey batch`.
        json_: Print JSON.
    """
    from marey.library import verify_batch

    found = verify_batch(folder)
    if json_:
        print_json(asdict(found))
    else:
        for name in found.missing:
            out.print(f"[red]missing:[/] {escape(printable(name))}")
        for name in found.changed:
            out.print(f"[red]changed:[/] {escape(printable(name))}")
        for name in found.unrecorded:
            out.print(f"[yellow]not of this batch:[/] {escape(printable(name))}")
        for name, reason in sorted(found.failed.items()):
            out.print(f"[yellow]failed:[/] {escape(_failure(name, reason))}")
        out.print(f"{found.whole} outputs are as recorded")
    if not found.is_whole:
        return EXIT_ERROR_FINDING
    return EXIT_PARTIAL if found.failed else EXIT_OK
