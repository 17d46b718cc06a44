"""The page docs/benchmarks.md, made from the results on record and nothing else."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.harness.plots import IMAGES, draw_task, picture_name
from benchmarks.harness.results import (
    History,
    Result,
    read_history,
    read_results,
)
from benchmarks.harness.tables import markdown_table, spell
from benchmarks.harness.task import FOLDERS, ROOT, Task

PAGE = ROOT.parent / "docs" / "benchmarks.md"
TITLES = {
    "accuracy": "Accuracy with known truth",
    "recordings": "Accuracy on recordings",
    "speed": "Speed",
    "scale": "Scale",
    "peers": "Beside other programs",
}
HEAD = """# Benchmarks

`make bench` runs every task, one after the other, and writes this page. `python -m
benchmarks --list` says what there is, `python -m benchmarks speed.pose` runs one,
`--quick` with small sizes: a look, not a result. `make bench-smoke` compares ratios of
times to those on record and fails beyond twice. Figures with quartiles in brackets are
medians of repeats after a warm-up. Times are processor time of one thread where nothing
else is said, so that a busy machine changes them little; ratios within one table carry
over to other machines, times do not.

Every task is a file of `benchmarks/`, in the folder that its name begins with, and runs
in a process of its own with limits of time and memory. Results are in
`benchmarks/results.json`; the headlines of full runs, by version, in
`benchmarks/history.json`. "synth" is `marey.synth`; "independent" is
`benchmarks/generator`, which shares no code with marey.
"""


def write_page(tasks: Mapping[str, Task], page: Path = PAGE) -> None:
    """Draw the pictures and write the page."""
    results = read_results()
    for name, task in tasks.items():
        if name in results:
            draw_task(task, results[name])
    page.write_text(render_page(tasks, results, read_history()), encoding="utf-8")


def render_page(
    tasks: Mapping[str, Task],
    results: Mapping[str, Result],
    history: History,
) -> str:
    """Return the page."""
    parts = [HEAD, render_machines(results), render_history(tasks, history)]
    for folder in FOLDERS:
        inside = [t for n, t in tasks.items() if n.startswith(f"{folder}.")]
        parts.append(f"## {TITLES[folder]}\n")
        parts += [render_task(t, results[t.name]) for t in inside if t.name in results]
        missing = [f"`{t.name}`" for t in inside if t.name not in results]
        if missing:
            parts.append(f"Not on record yet: {', '.join(missing)}.\n")
    parts += render_scripts()
    return "\n".join(parts)


def render_machines(results: Mapping[str, Result]) -> str:
    """Return the machines of the results, each once."""
    machines: dict[str, list[str]] = {}
    for name, result in sorted(results.items()):
        facts = ", ".join(f"{key} {value}" for key, value in result.machine.items())
        machines.setdefault(facts, []).append(name)
    lines = [f"- {facts}: {len(names)} tasks" for facts, names in machines.items()]
    return "\n".join(["Machines:", "", *lines, ""])


def render_task(task: Task, result: Result) -> str:
    """Return the section of a task."""
    load = " to ".join(f"{one:g}" for one in result.load)
    whole = result.whole
    size = f"; {whole['cpu_s']:g} s of CPU, {whole['peak_mib']:g} MiB" if whole else ""
    how = f"`{task.name}`, {result.setting}, marey {result.version}, {result.date}, "
    parts = [f"### {task.title.rstrip('.')}\n", f"{task.text}\n" if task.text else ""]
    parts += [f"{how}load {load}{size}.\n"]
    if result.stopped:
        parts.append(f"**Stopped**: {result.stopped}\n")
    if result.rows:
        parts.append(f"{markdown_table(result)}\n")
    if task.plot and (IMAGES / picture_name(task)).exists():
        alt = task.title.rstrip(".")
        picture = f"images/{picture_name(task)}"
        parts.append(f"```{{image}} {picture}\n:alt: {alt}\n:width: 640px\n```\n")
    return "\n".join(part for part in parts if part)


def render_scripts() -> Iterator[str]:
    """Yield the scripts of all peers."""
    yield "## Scripts of the other programs\n"
    yield (
        "Each runs in an environment of its own, which is made on first use from what "
        "its head says; only\nNumPy and the program are imported.\n"
    )
    for script in sorted((ROOT / "peers" / "scripts").glob("*.[pc]*")):
        language = "python" if script.suffix == ".py" else "c"
        path = f"../benchmarks/peers/scripts/{script.name}"
        yield f"### {script.name}\n"
        yield f"```{{literalinclude}} {path}\n:language: {language}\n```\n"


def render_history(tasks: Mapping[str, Task], history: History) -> str:
    """Return the headlines of all tasks by version."""
    versions = list(history)
    head = ["task", "figure", "case", *versions]
    rows = [f"| {' | '.join(head)} |", "|---|---|---|" + "---:|" * len(versions)]
    for name, task in tasks.items():
        of_task = [history[version].get(name, {}) for version in versions]
        first = [f"`{name}`", task.headline]
        for case in dict.fromkeys(case for figures in of_task for case in figures):
            values = [figures.get(case) for figures in of_task]
            cells = ["" if value is None else spell(value) for value in values]
            rows.append(f"| {' | '.join([*first, case, *cells])} |")
            first = ["", ""]
    return "\n".join(["## Headlines by version\n", *rows, ""])
