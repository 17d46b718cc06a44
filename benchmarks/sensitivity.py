"""Halve and double every tuned number, and see what that does to the answers.

    python benchmarks/sensitivity.py run RESULTS.jsonl [--workers 2] [--only PATTERN]
    python benchmarks/sensitivity.py report RESULTS.jsonl

A tuned number is any numeric literal of the estimators that `code_size.py` counts: in a
named constant, in a tuple or inside a line. Each one is doubled in a copy of the
sources, and the takes of the panel (`panel.py`) that run it are solved, until one of
them has a figure that changes by 1 % or more; if none has, the number is halved as
well. A number that no take of the panel runs is reported as such.

Results are kept one line per change, so that an interrupted run can be resumed: a
number that stands there already, on the same line of the same source, is not tried
again.
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
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from code_size import (
    FUNCTIONS,
    OUTSIDE,
    Constant,
    Module,
    constants_of,
    lines_of,
    package_of,
    read_module,
)
from panel import NO_EFFECT, UNLIKE, change_of, panel

FACTORS = (2.0, 0.5)

TIME_LIMIT = 300.0
"""Seconds after which a change counts as hanging; a kernel may have to be compiled."""

SOURCE = Path(__file__).resolve().parents[1] / "src"

Calls = Mapping[str, frozenset[tuple[str, str]]]
"""For each take of the panel, the functions it calls: path and qualified name. Of a
kernel all functions count as called as soon as the module is imported."""


class Change(NamedTuple):
    """One number, and the factor by which it is multiplied."""

    constant: Constant
    factor: float

    @property
    def value(self) -> float:
        """The number after the change; whole numbers stay whole and differ."""
        value = self.constant.value
        if isinstance(value, int):
            return max(round(value * self.factor), 1) if value > 1 else value + 1
        return value * self.factor

    @property
    def key(self) -> str:
        """What identifies the change in the results."""
        c = self.constant
        return f"{c.path}:{c.line}:{c.column}:{c.value!r}*{self.factor:g}"


# --- which takes run a number ---------------------------------------------------------


def record_calls(root: Path, takes: Iterable[str]) -> Calls:
    """Return the functions that each take of the panel calls, and the kernels."""
    return {take: frozenset(in_child(_calls_of, root, take)) for take in takes}


def _calls_of(root: Path, take: str) -> set[tuple[str, str]]:
    folder = f"{root / 'marey'}{os.sep}"
    called = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(folder):
            called.add((path.removeprefix(folder), frame.f_code.co_qualname))

    threading.setprofile(note)
    sys.setprofile(note)
    dict(panel())[take]()
    sys.setprofile(None)
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None) or ""
        if path.startswith(folder) and path.endswith("_kernel.py"):
            called.add((path.removeprefix(folder), ""))
    return called


class Uses:
    """Where each number of the sources is used."""

    def __init__(self, modules: Sequence[Module]) -> None:
        """Parse who mentions which name, in functions and outside of them."""
        self._functions = {
            m.path.as_posix(): list(functions_of(m.tree)) for m in modules
        }
        self._mentions: dict[str, set[tuple[str, str]]] = defaultdict(set)
        self._derived: dict[str, set[str]] = defaultdict(set)
        for module in modules:
            path = module.path.as_posix()
            for node in ast.walk(module.tree):
                name = getattr(node, "id", getattr(node, "attr", ""))
                if name.isupper() and isinstance(node.ctx, ast.Load):
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

    def functions_with(self, constant: Constant) -> set[tuple[str, str]]:
        """Return the functions in which a number is used.

        The name is empty where it is used outside of functions: in a class body, a
        default or a decorator.
        """
        path = constant.path
        inside = [name for name, rows in self._functions[path] if constant.line in rows]
        if inside or not constant.name.isupper():
            return {(path, inside[-1] if inside else "")}
        names = {constant.name}
        while more := {n for name in names for n in self._derived[name]} - names:
            names |= more
        uses = {use for name in names for use in self._mentions[name]}
        return {use for use in uses if use[1]} or {(path, "")}


def functions_of(node: ast.AST, name: str = "") -> Iterator[tuple[str, range]]:
    """Yield the qualified names of all functions below a node, with their lines."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, FUNCTIONS):
            inner = f"{name}{child.name}"
            body = range(child.body[0].lineno, lines_of(child).stop)
            yield inner, body
            yield from functions_of(child, f"{inner}.<locals>.")
        else:
            prefix = f"{name}{child.name}." if isinstance(child, ast.ClassDef) else name
            yield from functions_of(child, prefix)


def takes_with(uses: set[tuple[str, str]], calls: Calls) -> list[str]:
    """Return the takes that call one of these functions; all, if one has no name."""

    def runs(called: frozenset[tuple[str, str]]) -> bool:
        kernels = {(path, "") for path, _ in uses if path.endswith("_kernel.py")}
        return bool(called & (uses | kernels))

    plain = any(not name and not path.endswith("_kernel.py") for path, name in uses)
    return [take for take, called in calls.items() if plain or runs(called)]


# --- one change -----------------------------------------------------------------------


class Copy:
    """A copy of the sources with its compiled kernels, in which numbers are changed."""

    def __init__(self, folder: Path) -> None:
        """Copy the sources, with the times of the files that Numba's cache asks for."""
        self.root = folder / "src"
        shutil.copytree(SOURCE, self.root, ignore=shutil.ignore_patterns("page"))
        self._users = kernel_users(self.root)

    def effect(
        self, change: Change, takes: Sequence[str], before: Mapping[str, Any]
    ) -> tuple[float, str]:
        """Return the change of the first figure that has one, else the largest."""
        path = self.root / "marey" / change.constant.path
        text, stamp = path.read_text(encoding="utf-8"), path.stat()
        caches = self._take_caches(path)
        try:
            path.write_text(edited(text, change), encoding="utf-8")
            return in_child(_effect_of, self.root, list(takes), before)
        except ChildError as error:
            return UNLIKE, str(error)
        finally:
            path.write_text(text, encoding="utf-8")
            os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
            self._give_caches(caches)

    def _take_caches(self, path: Path) -> dict[Path, bytes]:
        """Remove the compiled code of a kernel and of all that call it."""
        caches = {}
        for user in self._users.get(path, ()):
            for cache in (user.parent / "__pycache__").glob(f"{user.stem}.*.nb?"):
                caches[cache] = cache.read_bytes()
                cache.unlink()
        return caches

    def _give_caches(self, caches: Mapping[Path, bytes]) -> None:
        stems = {(cache.parent, cache.name.partition(".")[0]) for cache in caches}
        for folder, stem in stems:
            for cache in folder.glob(f"{stem}.*.nb?"):
                cache.unlink()
        for cache, content in caches.items():
            cache.write_bytes(content)


def kernel_users(root: Path) -> dict[Path, set[Path]]:
    """Return for each kernel the kernels whose compiled code contains it."""
    name_of = {
        ".".join(path.relative_to(root).with_suffix("").parts): path
        for path in root.rglob("*.py")
    }
    kernels = [path for path in name_of.values() if path.stem.endswith("_kernel")]
    imports = {
        path: {
            name_of[node.module]
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom) and node.module in name_of
        }
        for path in kernels
    }
    users = {path: {path} for path in kernels}
    for _ in kernels:
        for path, used in imports.items():
            for one in users:
                if used & users[one]:
                    users[one].add(path)
    return users


def edited(text: str, change: Change) -> str:
    """Return a source with one literal changed."""
    lines = text.split("\n")
    row, column = change.constant.line - 1, change.constant.column
    line = lines[row].encode()
    match = re.match(rb"[\d._]+(?:[eE][+-]?\d+)?", line[column:])
    assert match, change.key
    literal = repr(change.value).encode()
    lines[row] = (line[:column] + literal + line[column + match.end() :]).decode()
    return "\n".join(lines)


class ChildError(Exception):
    """What went wrong in a process."""


def in_child(work: Callable[..., Any], root: Path, *arguments: Any) -> Any:
    """Return what a function returns in a process that imports marey from a root."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(
        target=_child, args=(sender, work, root, *arguments)
    )
    process.start()
    sender.close()
    try:
        if not receiver.poll(TIME_LIMIT):
            os.kill(process.pid or 0, signal.SIGKILL)
            raise ChildError("no answer in time")
        good, answer = receiver.recv()
    except EOFError:
        raise ChildError("the process died") from None
    finally:
        process.join()
    if not good:
        raise ChildError(answer)
    return answer


def _child(sender: Any, work: Callable[..., Any], root: Path, *arguments: Any) -> None:
    sys.path.insert(0, str(root))
    try:
        sender.send((True, work(root, *arguments)))
    except Exception as error:
        sender.send((False, f"{type(error).__name__}: {error}"[:200]))


def _figures(_: Path) -> dict[str, Any]:
    return {name: dict(solve()) for name, solve in panel()}


def _effect_of(
    _: Path, takes: Sequence[str], before: Mapping[str, Any]
) -> tuple[float, str]:
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


# --- all changes ----------------------------------------------------------------------


def tuned_numbers(modules: Sequence[Module]) -> list[Constant]:
    """Return every tuned number of the estimators."""
    return [
        constant
        for module in modules
        for constant in constants_of(module)
        if constant.status == "tuned" and package_of(Path(constant.path)) not in OUTSIDE
    ]


def read_modules() -> list[Module]:
    """Return all modules of the sources."""
    package = SOURCE / "marey"
    return [read_module(path, package) for path in sorted(package.rglob("*.py"))]


def run(results: Path, workers: int, only: str) -> None:
    """Try every number that is not among the results yet."""
    modules, done = read_modules(), read_results(results)
    uses = Uses(modules)
    numbers = [n for n in tuned_numbers(modules) if re.search(only, n.path)]
    with tempfile.TemporaryDirectory() as folder:
        copies = [Copy(Path(folder) / str(i)) for i in range(workers)]
        print("solving the panel, and again for the calls", flush=True)
        before, *_ = [in_child(_figures, copy.root) for copy in copies]
        calls = record_calls(copies[0].root, before)
        began, count, free = time.perf_counter(), 0, list(copies)

        def attempt(number: Constant) -> None:
            nonlocal count
            copy = free.pop()
            takes = takes_with(uses.functions_with(number), calls)
            for factor in FACTORS:
                change = Change(number, factor)
                row = done.get(change.key)
                if row is None:
                    effect, figure = copy.effect(change, takes, before)
                    row = {"key": change.key, "effect": effect, "figure": figure}
                    row |= {"takes": len(takes)}
                    with results.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")
                if row["effect"] >= NO_EFFECT:
                    break
            free.append(copy)
            count += 1
            left = (time.perf_counter() - began) / count * (len(numbers) - count)
            name = f"{number.path}:{number.line} {number.name}"
            print(
                f"{count} of {len(numbers)}, {left / 60:.0f} min left: "
                f"{name}: {row['effect']:.2%} {row['figure']}",
                flush=True,
            )

        list(ThreadPoolExecutor(workers).map(attempt, numbers))


def read_results(results: Path) -> dict[str, Any]:
    """Return the rows that are there, by the key of the change."""
    if not results.exists():
        return {}
    rows = map(json.loads, results.read_text(encoding="utf-8").splitlines())
    return {row["key"]: row for row in rows}


def report(results: Path) -> None:
    """Print the effect of every number that stands in the sources, smallest first."""
    rows, table, missing = read_results(results), [], 0
    for constant in tuned_numbers(read_modules()):
        found = [rows.get(Change(constant, factor).key) for factor in FACTORS]
        known = [row for row in found if row]
        best = max(known, key=lambda row: row["effect"], default=None)
        if best is None or (best["effect"] < NO_EFFECT and len(known) < len(FACTORS)):
            missing += 1
            continue
        figure = best["figure"] if best["takes"] else "never run"
        table.append(
            (best["effect"], f"{constant.path}:{constant.line}", constant, figure)
        )
    for effect, where, constant, figure in sorted(table, key=lambda row: row[:2]):
        name = constant.name or "(in a line)"
        print(f"{effect:8.2%}  {where}  {name} = {constant.value:g}  {figure}")
    none = sum(row[0] < NO_EFFECT for row in table)
    print(f"{len(table)} tried, {none} without effect, {missing} not tried yet")


def main() -> None:
    """Run one of the two commands."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("command", choices=("run", "report"))
    parser.add_argument("results", type=Path)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", default="", help="regular expression on the path")
    arguments = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    if arguments.command == "run":
        multiprocessing.set_start_method("fork")
        import numba  # noqa: F401  imported once, before the processes part
        import scipy.optimize  # noqa: F401

        run(arguments.results, arguments.workers, arguments.only)
    else:
        report(arguments.results)


if __name__ == "__main__":
    main()
