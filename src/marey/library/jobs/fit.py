"""The skeletons of a subject, fitted to several of its takes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from marey.editing import solve
from marey.io import write
from marey.io.atomic import writing
from marey.library.jobs.describe import measure_spread, read_unchanged
from marey.library.jobs.facts import facts_of
from marey.library.records import Record, finish_record, skeleton_path
from marey.report import Finding
from marey.solution import Solution
from marey.take import Take


def fit_subject(
    library: str,
    out: str,
    planned: Record,
    fields: Mapping[str, Any],
    names: Sequence[str],
    earlier_errors: Sequence[str] = (),
    is_final: bool = True,
) -> Record:
    """Fit a skeleton to several takes of a subject, and write it with its record.

    Takes of another subject, by their bones, are left out. Takes with several people or
    props get a skeleton of each.

    Args:
        library: Folder of the recordings.
        out: Folder of the batch.
        planned: The record of this work.
        fields: Options of `marey.solve`.
        names: The takes.
        earlier_errors: Why earlier fits failed.
        is_final: Whether a later run may keep this fit: earlier ones would fail again.

    Raises:
        DataError: If the takes have nothing in common.
        FormatError: If one of them cannot be read, or changed meanwhile.
        OutputError: If a skeleton cannot be written.
    """
    folder = Path(out)
    takes = {name: read_unchanged(library, name, planned.inputs) for name in names}
    solution = solve_common(list(takes.values()), planned.subject, fields)
    others: list[str] = []
    while odd := _takes_of_others(solution):
        others += [list(takes)[i] for i in odd]
        takes = {name: take for name, take in takes.items() if name not in others}
        solution = solve_common(list(takes.values()), planned.subject, fields)
    outputs = _write_skeletons(solution, planned, folder)
    facts = facts_of(solution, solution.report.findings)
    fitted = {"takes": list(takes), "others": others, "errors": list(earlier_errors)}
    facts |= {"fit": fitted, "is_final": is_final}
    return finish_record(planned, folder, "done", outputs=outputs, facts=facts)


def solve_common(
    takes: Sequence[Take], subject: str, fields: Mapping[str, Any], **given: Any
) -> Solution:
    """Return the solution of takes of one subject, by the name of the subject.

    Where a take names several people, and the subject is none of them, all are solved.
    """
    united = [name_subject(take, subject) for take in takes]
    named = [{name for name in take.subjects if name} for take in united]
    if all(not names or subject in names for names in named):
        given["subject"] = subject
    return solve(united, **fields, **given)


def name_subject(take: Take, subject: str) -> Take:
    """Return a take whose labels name one subject as a take of this subject.

    Files of one person may name it in several ways ("Joe", "Joe2").
    """
    if len({name for name in take.subjects if name}) != 1:
        return take
    return replace(take, subjects=tuple(name and subject for name in take.subjects))


def _takes_of_others(solution: Solution) -> list[int]:
    """Return the takes whose bones differ from those of the takes that show more.

    Two groups of takes differ; the one with less motion is left out. So a pose held
    still, which determines bones poorly, does not outvote a take with motion.
    """
    differ = {i for f in solution.report.findings for i in _differing_takes(f)}
    if not differ:
        return []
    motion = [sum(measure_spread(take).values()) for take in solution.takes]
    same = set(range(len(motion))) - differ
    most = sum(motion[i] for i in differ) > sum(motion[i] for i in same)
    return sorted(same if most else differ)


def _differing_takes(finding: Finding) -> list[int]:
    if finding.code != "subjects-differ":
        return []
    return [int(number) - 1 for number in re.findall(r"\d+", finding.subject)]


def _write_skeletons(solution: Solution, planned: Record, out: Path) -> list[Path]:
    several, provenance = len(solution.subjects) > 1, planned.provenance()
    outputs = []
    for one in solution.subjects:
        path = skeleton_path(out, planned.subject, one.name if several else "")
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        write(one.skeleton, path, provenance=provenance, overwrite=True)
        outputs.append(path)
    return outputs
