"""Halve and double every tuned number, and see what that does to the answers.

    python benchmarks/sensitivity.py run RESULTS.jsonl [--workers 2] [--only PATTERN]
    python benchmarks/sensitivity.py report RESULTS.jsonl

A tuned number is any numeric literal of the estimators that `code_size.py` counts: in a
named constant, in a tuple or inside a line. Each one is changed in a copy of the
sources, and a fixed panel of 12 takes (generated and real, clean and damaged) is solved
with it. The effect of a number is the largest relative change of any figure of the
panel: errors against the truth, residuals, bone lengths, their uncertainties, and
counts of bodies, joints and findings. Under 1 % a number has no effect.

Results are kept one line per change, so that an interrupted run can be resumed: a
number that stands there already, on the same line of the same source, is not tried
again. The real takes need MAREY_DATA; without it the panel has the generated ones only.
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
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from code_size import OUTSIDE, Constant, constants_of, package_of, read_module

FACTORS = (0.5, 2.0)
NO_EFFECT = 0.01
"""Largest relative change of a figure that counts as none."""

TIME_LIMIT = 600.0
"""Seconds after which a panel counts as hanging; a kernel may have to be compiled."""

UNLIKE = 10.0
"""Effect of a change with which the panel fails or lacks a figure."""

SMALLEST = {"m": 1e-5, "": 1.0}
"""Differences below this never count as 1 %: of lengths in metres, and of counts."""

SOURCE = Path(__file__).resolve().parents[1] / "src"


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


# --- the panel ------------------------------------------------------------------------


def panel() -> Iterator[tuple[str, Callable[[], Mapping[str, float]]]]:
    """Yield the 12 takes: a name, and a call that returns the figures of its answer."""
    import marey
    from marey import synth

    def generated(make: Callable[[], Any], **options: Any) -> Mapping[str, float]:
        recording = make()
        chosen = marey.SolveOptions(**options)
        return figures(marey.solve(recording, options=chosen), recording)

    def real(*paths: str, frames: int = 800, **options: Any) -> Mapping[str, float]:
        takes = [marey.read(find(path)) for path in paths]
        takes = [take.cut(0, min(frames, take.n_frames)) for take in takes]
        return figures(marey.solve(takes, options=marey.SolveOptions(**options)))

    human, short = synth.human, {"seconds": 4.0, "rate": 100.0, "noise": 1e-3}
    hard = {"noise": 1e-3, "gaps": 0.1, "swaps": 2, "slips": 1, "gross": 0.002}
    sensors = {**short, "markers": "none", "sensors": True, "turn_noise": 2e-3}
    walk = {"motion": "walk", **short}

    yield (
        "walk",
        lambda: generated(lambda: human(seed=1).record(**walk), contacts=True),
    )
    yield (
        "damaged",
        lambda: generated(
            lambda: human(seed=4).record("walk", markers="set53", seconds=8.0, **hard),
            max_gap=0.2,
        ),
    )
    yield (
        "unlabelled",
        lambda: generated(
            lambda: human(seed=6).record(
                "exercise",
                markers="set53",
                labels=False,
                seconds=12.0,
                noise=1e-3,
                soft_tissue=3e-3,
                gaps=0.05,
            )
        ),
    )
    yield (
        "dense",
        lambda: generated(
            lambda: human(seed=7).record(
                "chicken_walk", markers="dense110", labels=False, **short
            )
        ),
    )
    yield (
        "sensors",
        lambda: generated(
            lambda: human(seed=17).record(
                "exercise",
                slips=1,
                slip_turn=0.1,
                gross=0.005,
                sensor_gaps=0.05,
                field=3e-3,
                **sensors,
            ),
            field=True,
        ),
    )
    yield (
        "gdke",
        lambda: generated(
            lambda: human(seed=16).record("walk", coloured=1e-3, **sensors),
            joints="gdke",
        ),
    )
    yield (
        "quadruped",
        lambda: generated(
            lambda: synth.quadruped().record(labels=False, gaps=0.05, **walk),
            pose="physics",
        ),
    )
    yield (
        "two people",
        lambda: generated(lambda: synth.scene("handover", swaps=2, **short)),
    )
    if os.environ.get("MAREY_DATA"):
        yield "boxer", lambda: real("cmu/02_05.c3d")
        yield (
            "session",
            lambda: real(
                "addbio_uhlrich_s4/static1.trc", "addbio_uhlrich_s4/walking1.trc"
            ),
        )
        yield (
            "unlabelled person",
            lambda: real("olafhaag_unlabelled/sample_recording.c3d", frames=1500),
        )
        yield (
            "bfgs",
            lambda: real(
                "hdm05/HDM_dg_06-03_03_120.c3d",
                joints="distance",
                segment="overlap",
                pose="bfgs",
            ),
        )


def find(path: str) -> Path:
    """Return the first file of this path below the folders of MAREY_DATA."""
    folders = os.environ["MAREY_DATA"].split(os.pathsep)
    return next(Path(f) / path for f in folders if (Path(f) / path).exists())


def figures(solution: Any, recording: Any = None) -> Mapping[str, float]:
    """Return the figures of an answer; the unit stands behind a colon."""
    import numpy as np

    report, subjects = solution.report, solution.subjects
    lengths = np.concatenate([subject.skeleton.lengths for subject in subjects])
    sd = np.concatenate([subject.skeleton.length_sd for subject in subjects])
    edges = solution.tree.edge[solution.tree.edge >= 0]
    serious = [one for one in report.findings if one.severity != "info"]
    seen = sum(take.seen.sum() + take.sensor_seen.sum() for take in solution.takes)
    result = {
        "bodies:": len(solution.bodies[0].names),
        "subjects:": len(subjects),
        "joints:": len(edges),
        "findings:": len(report.findings),
        "serious findings:": len(serious),
        "values kept:": float(seen),
        "residual:m": rms(solution.joints.residual[edges]),
        "length:m": rms(lengths),
        "length sd:m": rms(sd),
        "marker error:m": rms(marker_errors(solution)),
        "contacts:": sum(len(m.contacts) for s in subjects for m in s.motions),
    }
    if recording is not None:
        result |= errors(solution, recording)
    return {name: float(value) for name, value in result.items() if value == value}


def marker_errors(solution: Any) -> Any:
    """Return the distances of all markers from where the motion has them."""
    import numpy as np

    from marey.skeleton import marker_columns

    distances = [np.zeros(0)]
    for subject in solution.subjects:
        for take, motion in zip(solution.takes, subject.motions, strict=True):
            columns = marker_columns(motion.skeleton, take)
            found = motion.marker_points()[:, columns >= 0]
            off = found - take.points[:, columns[columns >= 0]]
            distances.append(np.linalg.norm(off, axis=-1).ravel())
    return np.concatenate(distances)


def errors(solution: Any, recording: Any) -> Mapping[str, float]:
    """Return the errors against the truth of a generated take."""
    import marey

    score = marey.metrics.compare(solution, recording)
    skeleton, motion = score.skeletons[0], score.motions[0]
    return {
        "adjusted Rand index:": score.bodies[0].ari,
        "centre error:m": score.joints.center,
        "edges right:": score.tree.right,
        "length error:m": skeleton.rms,
        "position error:m": motion.position,
        "rotation error:": motion.rotation,
    }


def rms(values: Any) -> float:
    """Return the root mean square of the finite values; 0 without any."""
    import numpy as np

    known = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(known**2))) if len(known) else 0.0


# --- one change -----------------------------------------------------------------------


class Copy:
    """A copy of the sources with its compiled kernels, in which numbers are changed."""

    def __init__(self, folder: Path) -> None:
        """Copy the sources, with the times of the files that Numba's cache asks for."""
        self.root = folder / "src"
        shutil.copytree(SOURCE, self.root, ignore=shutil.ignore_patterns("page"))
        self._users = kernel_users(self.root)

    def figures(self, change: Change | None) -> Mapping[str, Any]:
        """Return the figures of the panel, with a change or without."""
        if change is None:
            return run_panel(self.root)
        path = self.root / "marey" / change.constant.path
        before, stamp = path.read_text(encoding="utf-8"), path.stat()
        caches = self._take_caches(path)
        try:
            path.write_text(edited(before, change), encoding="utf-8")
            return run_panel(self.root)
        finally:
            path.write_text(before, encoding="utf-8")
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


def run_panel(root: Path) -> Mapping[str, Any]:
    """Return the figures of all takes, or an error, from a process of its own."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=_child, args=(str(root), sender))
    process.start()
    sender.close()
    answer: Mapping[str, Any] = {"error": "no answer in time"}
    if receiver.poll(TIME_LIMIT):
        try:
            answer = receiver.recv()
        except EOFError:
            answer = {"error": "the process died"}
    else:
        os.kill(process.pid or 0, signal.SIGKILL)
    process.join()
    return answer


def _child(root: str, sender: Any) -> None:
    sys.path.insert(0, root)
    answer: dict[str, Any] = {}
    for name, solve in panel():
        try:
            answer[name] = dict(solve())
        except Exception as error:
            answer[name] = {"error": f"{type(error).__name__}: {error}"[:200]}
    sender.send(answer)


# --- all changes ----------------------------------------------------------------------


def tuned_numbers() -> list[Constant]:
    """Return every tuned number of the estimators."""
    package = SOURCE / "marey"
    modules = [read_module(path, package) for path in sorted(package.rglob("*.py"))]
    return [
        constant
        for module in modules
        for constant in constants_of(module)
        if constant.status == "tuned" and package_of(Path(constant.path)) not in OUTSIDE
    ]


def run(results: Path, workers: int, only: str) -> None:
    """Try every change that is not among the results yet."""
    done = set(read_results(results))
    changes = [
        change
        for constant in tuned_numbers()
        for factor in FACTORS
        if (change := Change(constant, factor)).key not in done
        and re.search(only, change.key)
    ]
    with tempfile.TemporaryDirectory() as folder:
        copies = [Copy(Path(folder) / str(i)) for i in range(workers)]
        before, *_ = [copy.figures(None) for copy in copies]  # and compile in each
        failed = {name: f["error"] for name, f in before.items() if "error" in f}
        if failed:
            sys.exit(f"the panel fails without any change: {failed}")
        began, count = time.perf_counter(), 0
        pool = ThreadPoolExecutor(workers)
        free = list(copies)

        def attempt(change: Change) -> None:
            nonlocal count
            copy = free.pop()
            effect, figure = effect_of(before, copy.figures(change))
            free.append(copy)
            count += 1
            row = {"key": change.key, "effect": effect, "figure": figure}
            row |= {"name": change.constant.name, "to": change.value}
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            left = (time.perf_counter() - began) / count * (len(changes) - count)
            print(
                f"{count} of {len(changes)}, {left / 60:.0f} min left: "
                f"{change.key} {change.constant.name}: {effect:.2%} {figure}",
                flush=True,
            )

        list(pool.map(attempt, changes))


def effect_of(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[float, str]:
    """Return the largest relative change of a figure, and which figure that is."""
    worst, which = 0.0, ""
    for take, old in before.items():
        new = after.get(take, {"error": "no answer"})
        if "error" in new:
            return UNLIKE, f"{take}: {new['error']}"
        if new.keys() != old.keys():
            return UNLIKE, f"{take}: {' '.join(new.keys() ^ old.keys())}"
        for figure, value in old.items():
            unit = figure.rpartition(":")[2]
            difference = abs(new[figure] - value)
            change = difference / max(abs(value), SMALLEST[unit])
            if change > worst:
                worst, which = change, f"{take}: {figure.partition(':')[0]}"
    return worst, which


def read_results(results: Path) -> dict[str, Any]:
    """Return the rows that are there, by the key of the change."""
    if not results.exists():
        return {}
    rows = map(json.loads, results.read_text(encoding="utf-8").splitlines())
    return {row["key"]: row for row in rows}


def report(results: Path) -> None:
    """Print the effect of every number that stands in the sources, smallest first."""
    rows = read_results(results)
    table, missing = [], 0
    for constant in tuned_numbers():
        found = [rows.get(Change(constant, factor).key) for factor in FACTORS]
        known = [row for row in found if row]
        missing += len(known) < len(FACTORS)
        if known:
            best = max(known, key=lambda row: row["effect"])
            where = f"{constant.path}:{constant.line}"
            table.append((best["effect"], where, constant, best["figure"]))
    table.sort(key=lambda row: row[:2])
    for effect, where, constant, figure in table:
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
    parser.add_argument("--only", default="", help="regular expression on path:line")
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
