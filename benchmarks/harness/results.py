"""Results of tasks as JSON: one entry per task, with the machine that measured it."""

import json
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.harness import machine
from benchmarks.harness.limits import Limits, run_limited
from benchmarks.harness.task import ROOT, Row, Setting, Spread, Task

RESULTS = ROOT / "results.json"
HISTORY = ROOT / "history.json"

History = dict[str, dict[str, dict[str, float]]]
"""Headlines by version, task and case."""


@dataclass(frozen=True, slots=True)
class Result:
    """What one task found.

    Attributes:
        rows: Those that were measured, also if the task was stopped on the way.
        stopped: Why it was stopped or failed; empty if it ended well.
        setting: "full" or "quick".
        version: Of marey.
        date: Of the measurement.
        machine: Facts of the machine.
        load: Of the machine, before and after.
        whole: Processor and wall seconds and peak MiB of the whole task.
    """

    rows: Sequence[Row]
    stopped: str = ""
    setting: str = "full"
    version: str = ""
    date: str = ""
    machine: Mapping[str, Any] = field(default_factory=dict)
    load: Sequence[float] = ()
    whole: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the result in the types of JSON."""
        return asdict(replace(self, rows=())) | {
            "rows": [row.to_json() for row in self.rows]
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Result":
        """Return the result that `to_json` made."""
        return cls(**{**value, "rows": [Row.from_json(row) for row in value["rows"]]})


def run_task(task: Task, setting: Setting) -> Result:
    """Return what a task finds, in a process of its own and within its limits."""
    before = machine.load()
    command = [sys.executable, "-m", "benchmarks.harness.child", task.name]
    command += ["quick" if setting.quick else "full", setting.only]
    outcome = run_limited(
        command,
        Limits(seconds=task.limit_s, mebibytes=task.limit_mib),
        environment={"PYTHONPATH": python_path()},
    )
    lines = [json.loads(line) for line in outcome.output.splitlines()]
    return Result(
        rows=[Row.from_json(line) for line in lines if "case" in line],
        stopped=outcome.reason,
        setting="quick" if setting.quick else "full",
        version=machine.version(),
        date=machine.today(),
        machine=machine.describe_machine(),
        load=(before, machine.load()),
        whole=next((line for line in lines if "case" not in line), {}),
    )


def python_path() -> str:
    """Return the path on which a child finds what this process found."""
    return os.pathsep.join([str(ROOT.parent), *filter(None, sys.path)])


def read_results(path: Path = RESULTS) -> dict[str, Result]:
    """Return the results on record, by task."""
    if not path.exists():
        return {}
    values = json.loads(path.read_text(encoding="utf-8"))
    return {name: Result.from_json(value) for name, value in values.items()}


def write_results(results: Mapping[str, Result], path: Path = RESULTS) -> None:
    """Put results on record; those of other tasks stay."""
    known = read_results(path) | dict(results)
    values = {name: known[name].to_json() for name in sorted(known)}
    path.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")


def read_history(path: Path = HISTORY) -> History:
    """Return the headlines of each version, by task and case."""
    if not path.exists():
        return {}
    history: History = json.loads(path.read_text(encoding="utf-8"))
    return history


def write_history(
    tasks: Mapping[str, Task], results: Mapping[str, Result], path: Path = HISTORY
) -> None:
    """Keep the headlines of full runs under the version that was measured."""
    history = read_history(path)
    for name, result in results.items():
        if result.setting == "full":
            figures = dict(headlines_of(tasks[name], result))
            history.setdefault(result.version, {})[name] = figures
    path.write_text(json.dumps(history, indent=1) + "\n", encoding="utf-8")


def headlines_of(task: Task, result: Result) -> Iterator[tuple[str, float]]:
    """Yield the headline of every key case."""
    for row in result.rows:
        figure = row.figures.get(task.headline, math.nan)
        value = figure.median if isinstance(figure, Spread) else figure
        if math.isfinite(value) and task.is_key(row.case):
            yield row.case, float(f"{value:.4g}")
