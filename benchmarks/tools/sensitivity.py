"""Halve and double every tuned number, and see what that does to the answers.

    python -m benchmarks.tools.sensitivity run RESULTS.jsonl [--only PATTERN]
    python -m benchmarks.tools.sensitivity report RESULTS.jsonl [--page docs/code.md]

A tuned number is any numeric literal of the estimators that `code_size.py` counts: in a
named constant, in a tuple or inside a line. Each one is doubled, and the takes of the
panel (`panel.py`) that run it are solved, cheapest first, until one of them has a
figure that changes by 1 % or more; if none has, the number is halved as well. A number
that no take of the panel runs is reported as such.

The panel is solved once before. Stages are functions of their arguments alone, so each
call of one is kept with its arguments, its result and the functions that ran inside. A
change is made in a fork of that process (`live_patch.py`), where a stage with equal
arguments in which nothing uses the number has the answer that is kept
(`stage_memo.py`). Kernels are compiled: a number in one is changed in a copy of the
sources instead, without that saving.

Results are kept one line per change, so that an interrupted run can be resumed: a
number that stands there already, by file, name, place among the numbers of that name
and value, is not tried again.
"""

import argparse
import ast
import json
import multiprocessing
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.tools.code_size import (
    FUNCTIONS,
    OUTSIDE,
    Constant,
    Module,
    constants_of,
    lines_of,
    package_of,
    read_module,
)
from benchmarks.tools.live_patch import patch_module
from benchmarks.tools.panel import NO_EFFECT, UNLIKE, change_of, panel
from benchmarks.tools.stage_memo import Function, StageMemo

FACTORS = (2.0, 0.5)

TIME_LIMIT = 600.0
"""Seconds after which a change counts as hanging; a kernel may have to be compiled."""

SOURCE = Path(__file__).resolve().parents[2] / "src"

TABLE = re.compile(r"(?<=<!-- sensitivity -->\n).*?(?=<!-- end -->)", re.DOTALL)


class Number(NamedTuple):
    """A tuned number, and what identifies it when lines move."""

    constant: Constant
    key: str

    def changed(self, factor: float) -> float:
        """Return the number after the change; whole numbers stay whole and differ."""
        value = self.constant.value
        if isinstance(value, int):
            return max(round(value * factor), 1) if value > 1 else value + 1
        return value * factor


def tuned_numbers(modules: Sequence[Module]) -> list[Number]:
    """Return every tuned number of the estimators."""
    numbers, places = [], Counter[str]()
    for module in modules:
        for constant in sorted(constants_of(module), key=lambda c: c[1:3]):
            if constant.status != "tuned" or package_of(module.path) in OUTSIDE:
                continue
            name = f"{constant.path}:{constant.name}"
            places[name] += 1
            key = f"{name}:{places[name]}:{constant.value!r}"
            numbers.append(Number(constant, key))
    return numbers


def read_modules() -> list[Module]:
    """Return all modules of the sources."""
    package = SOURCE / "marey"
    return [read_module(path, package) for path in sorted(package.rglob("*.py"))]


# --- where a number is used -----------------------------------------------------------


class Uses:
    """Where each number of the sources is used."""

    def __init__(self, modules: Sequence[Module]) -> None:
        """Parse who mentions which name, in functions and outside of them."""
        self._functions = {
            m.path.as_posix(): list(functions_of(m.tree)) for m in modules
        }
        self._mentions: dict[str, set[Function]] = defaultdict(set)
        self._derived: dict[str, set[str]] = defaultdict(set)
        for module in modules:
            path = module.path.as_posix()
            for node in ast.walk(module.tree):
                name = getattr(node, "id", getattr(node, "attr", ""))
                if name and isinstance(getattr(node, "ctx", None), ast.Load):
                    self._mentions[name].add((path, self._function_at(path, node)))
            for node in module.tree.body:
                if isinstance(node, (ast.Assign, ast.AnnAssign)):
                    self._note_derived(node)

    def _note_derived(self, node: ast.Assign | ast.AnnAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
        for one in ast.walk(node.value or node):
            if isinstance(one, ast.Name):
                self._derived[one.id] |= names

    def _function_at(self, path: str, node: ast.AST) -> str:
        line = getattr(node, "lineno", 0)
        around = [name for name, rows in self._functions[path] if line in rows]
        return around[-1] if around else ""

    def functions_with(self, constant: Constant) -> frozenset[Function]:
        """Return the functions in which a number is used, path and qualified name.

        The name is empty where it is used outside of functions. A default is used by
        its function, a field of options wherever its name is read.
        """
        path = constant.path
        inside = [name for name, rows in self._functions[path] if constant.line in rows]
        if inside:
            return frozenset({(path, inside[-1])})
        names = {constant.name}
        while more := {n for name in names for n in self._derived[name]} - names:
            names |= more
        uses = {use for name in names for use in self._mentions[name]}
        return frozenset(uses) or frozenset({(path, "")})


def functions_of(node: ast.AST, name: str = "") -> Iterator[tuple[str, range]]:
    """Yield the qualified names of all functions below a node, with their lines."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, FUNCTIONS):
            inner = f"{name}{child.name}"
            yield inner, range(child.lineno, lines_of(child).stop)
            yield from functions_of(child, f"{inner}.<locals>.")
        else:
            prefix = f"{name}{child.name}." if isinstance(child, ast.ClassDef) else name
            yield from functions_of(child, prefix)


def is_used_by(uses: frozenset[Function], called: frozenset[Function]) -> bool:
    """Whether one of the functions was called; always, if one has no name."""
    return any(not name for _, name in uses) or not uses.isdisjoint(called)


# --- one change -----------------------------------------------------------------------


def edited(text: str, number: Number, factor: float) -> str:
    """Return a source with one literal changed."""
    lines = text.split("\n")
    row, column = number.constant.line - 1, number.constant.column
    line = lines[row].encode()
    match = re.match(rb"[\d._]+(?:[eE][+-]?\d+)?", line[column:])
    assert match, number.key
    literal = repr(number.changed(factor)).encode()
    lines[row] = (line[:column] + literal + line[column + match.end() :]).decode()
    return "\n".join(lines)


def effect_in_fork(
    number: Number, factor: float, memo: StageMemo, uses: frozenset[Function]
) -> tuple[float, str]:
    """Return the effect of a number that is changed in the modules as imported."""
    path = SOURCE / "marey" / number.constant.path
    patch_module(path, edited(path.read_text(encoding="utf-8"), number, factor))
    memo.forget(lambda called: is_used_by(uses, called))
    return first_effect(memo.cheapest_first(), memo.figures)


def effect_in_copy(
    number: Number, factor: float, takes: Sequence[str], before: Mapping[str, Any]
) -> tuple[float, str]:
    """Return the effect of a number in a kernel, in a copy of the sources."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "src"
        shutil.copytree(SOURCE, root, ignore=shutil.ignore_patterns("page"))
        path = root / "marey" / number.constant.path
        text = edited(path.read_text(encoding="utf-8"), number, factor)
        path.write_text(text, encoding="utf-8")
        for name in [n for n in sys.modules if n.partition(".")[0] == "marey"]:
            del sys.modules[name]
        sys.path.insert(0, str(root))
        return first_effect(takes, before)


def first_effect(takes: Iterable[str], before: Mapping[str, Any]) -> tuple[float, str]:
    """Return the change of the first figure that has one, else the largest."""
    worst, which, solvers = 0.0, "", dict(panel())
    for take in takes:
        try:
            after: Mapping[str, Any] = solvers[take]()
        except Exception as error:
            after = {"error": f"{type(error).__name__}: {error}"[:200]}
        change, figure = change_of(before[take], after)
        if change > worst:
            worst, which = change, f"{take}: {figure.partition(':')[0]}"
        if worst >= NO_EFFECT:
            break
    return worst, which


def in_fork(work: Callable[..., tuple[float, str]], *arguments: Any) -> Any:
    """Return what a function returns in a fork of this process."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=_answer, args=(sender, work, *arguments))
    process.start()
    sender.close()
    try:
        if not receiver.poll(TIME_LIMIT):
            os.kill(process.pid or 0, signal.SIGKILL)
            return UNLIKE, "no answer in time"
        return receiver.recv()
    except EOFError:
        return UNLIKE, "the process died"
    finally:
        process.join()


def _answer(sender: Any, work: Callable[..., Any], *arguments: Any) -> None:
    try:
        sender.send(work(*arguments))
    except Exception as error:
        sender.send((UNLIKE, f"{type(error).__name__}: {error}"[:200]))


# --- all changes ----------------------------------------------------------------------


def run(results: Path, only: str) -> None:
    """Try every number that is not among the results yet."""
    modules, done = read_modules(), read_results(results)
    uses = Uses(modules)
    numbers = [n for n in tuned_numbers(modules) if re.search(only, n.key)]
    print(f"{len(numbers)} numbers; solving the panel", flush=True)
    memo = StageMemo(SOURCE / "marey", panel())
    began = time.perf_counter()
    for count, number in enumerate(numbers, 1):
        places = uses.functions_with(number.constant)
        for factor in FACTORS:
            row = done.get(f"{number.key}*{factor:g}")
            if row is None:
                row = attempt(number, factor, memo, places)
                with results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
            if row["effect"] >= NO_EFFECT:
                break
        left = (time.perf_counter() - began) / count * (len(numbers) - count)
        where = f"{number.constant.path}:{number.constant.line} {number.constant.name}"
        print(
            f"{count} of {len(numbers)}, {left / 60:.0f} min left: "
            f"{where}: {row['effect']:.2%} {row['figure']}",
            flush=True,
        )


def attempt(
    number: Number, factor: float, memo: StageMemo, uses: frozenset[Function]
) -> dict[str, Any]:
    """Return the row of one change."""
    takes = list(memo.figures)
    if number.constant.path.endswith("_kernel.py"):
        found = in_fork(effect_in_copy, number, factor, takes, memo.figures)
    else:
        takes = [t for t in takes if is_used_by(uses, memo.called[t])]
        found = (
            in_fork(effect_in_fork, number, factor, memo, uses) if takes else (0, "")
        )
    key = f"{number.key}*{factor:g}"
    return {"key": key, "effect": found[0], "figure": found[1], "takes": len(takes)}


def read_results(results: Path) -> dict[str, Any]:
    """Return the rows that are there, by the key of the change."""
    if not results.exists():
        return {}
    rows = map(json.loads, results.read_text(encoding="utf-8").splitlines())
    return {row["key"]: row for row in rows}


def report(results: Path, page: Path | None) -> None:
    """Print the effect of every number that stands in the sources, smallest first."""
    rows, table = read_results(results), []
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for constant, key in tuned_numbers(read_modules()):
        found = [rows.get(f"{key}*{factor:g}") for factor in FACTORS]
        known = [row for row in found if row]
        best = max(known, key=lambda row: row["effect"], default=None)
        count = counts[package_of(Path(constant.path))]
        if best is None or (best["effect"] < NO_EFFECT and len(known) < len(FACTORS)):
            count["not tried"] += 1
            continue
        verdict = "effect" if best["effect"] >= NO_EFFECT else "none"
        count[verdict if best["takes"] else "never run"] += 1
        figure = best["figure"] if best["takes"] else "never run"
        name = constant.name or "(in a line)"
        where = f"{constant.path}:{constant.line}  {name} = {constant.value:g}"
        table.append((best["effect"], where, figure))
    for effect, where, figure in sorted(table):
        print(f"{effect:8.2%}  {where}  {figure}")
    print(package_table(counts))
    if page:
        text = page.read_text(encoding="utf-8")
        table_of_page = TABLE.sub(lambda _: package_table(counts), text)
        page.write_text(table_of_page, encoding="utf-8")


def package_table(counts: Mapping[str, Counter[str]]) -> str:
    """Return the table of a page: how many numbers of each package have an effect."""
    columns = ("effect", "none", "never run", "not tried")
    lines = [
        "| package | tuned | effect | none | not run by the panel | not tried |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    whole = sum(counts.values(), Counter[str]())
    for name, count in [*sorted(counts.items()), ("all", whole)]:
        cells = (name, count.total(), *(count[column] for column in columns))
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run one of the two commands."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("command", choices=("run", "report"))
    parser.add_argument("results", type=Path)
    parser.add_argument(
        "--only", default="", help="regular expression on the path and the name"
    )
    parser.add_argument("--page", type=Path, help="page whose table to replace")
    arguments = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["NUMBA_THREADING_LAYER"] = "workqueue"  # survives a fork
    if arguments.command == "run":
        multiprocessing.set_start_method("fork")
        sys.path.insert(0, str(SOURCE))
        run(arguments.results, arguments.only)
    else:
        report(arguments.results, arguments.page)


if __name__ == "__main__":
    main()
