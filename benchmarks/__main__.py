"""Run benchmarks: `python -m benchmarks --list`, `python -m benchmarks speed.pose`."""

import argparse
import fnmatch
import sys
from pathlib import Path

from benchmarks.harness.limits import exit_when_asked
from benchmarks.harness.results import (
    Result,
    run_task,
    write_history,
    write_results,
)
from benchmarks.harness.tables import plain_table
from benchmarks.harness.task import Setting, Task, find_tasks


def main() -> int:
    """Run the tasks that are named, or all; return 1 if one of them failed."""
    exit_when_asked()
    given = parse_arguments()
    tasks = find_tasks()
    if given.list:
        for name, task in tasks.items():
            print(f"{name:<26} {task.title}")
        return 0
    if given.smoke:
        from benchmarks.harness.smoke import guard

        return guard(record=given.record)
    chosen = choose_tasks(tasks, given.names)
    setting = Setting(quick=given.quick, only=given.only)
    results = {}
    for name, task in chosen.items():
        print(f"== {name}: {task.title}", flush=True)
        results[name] = run_task(task, setting)
        print(plain_table(results[name]), end="\n\n", flush=True)
        keep(tasks, {name: results[name]}, given)
    if given.record:
        from benchmarks.harness.page import write_page

        write_page(tasks)
    return int(any(result.stopped for result in results.values()))


def parse_arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="tasks or patterns such as 'speed.*'")
    parser.add_argument("--list", action="store_true", help="say what there is")
    parser.add_argument("--quick", action="store_true", help="small sizes: a look")
    parser.add_argument("--only", default="", help="only cases with this word")
    parser.add_argument("--json", type=Path, help="file that gets the results")
    parser.add_argument(
        "--record", action="store_true", help="record results, history and page"
    )
    parser.add_argument(
        "--smoke", action="store_true", help="compare quick ratios to those on record"
    )
    return parser.parse_args()


def choose_tasks(tasks: dict[str, Task], names: list[str]) -> dict[str, Task]:
    """Return the tasks that the names or patterns mean, all without any."""
    for name in names:
        if not fnmatch.filter(tasks, name):
            sys.exit(f"no task {name!r}; there are: {', '.join(tasks)}")
    return {
        name: task
        for name, task in tasks.items()
        if not names or any(fnmatch.fnmatch(name, one) for one in names)
    }


def keep(
    tasks: dict[str, Task], results: dict[str, Result], given: argparse.Namespace
) -> None:
    """Write results where they are asked for."""
    if given.json:
        write_results(results, given.json)
    if given.record:
        write_results(results)
        write_history(tasks, results)


if __name__ == "__main__":
    sys.exit(main())
