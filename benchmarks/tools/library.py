"""A library of generated people: speed, memory, faults, and the executors' bytes.

    python -m benchmarks.tools.library speed [--takes 2000] [--people 50]
    python -m benchmarks.tools.library faults [--takes 200] [--people 5] [--kills 20]
    python -m benchmarks.tools.library poison
    python -m benchmarks.tools.library fit [--people 4]

`speed` solves the library with one and with two workers and in a bare loop, and states
takes per second of wall clock and of CPU, the overhead, and the memory of the run and
of its workers over time. `faults` disturbs a batch in every way that it must survive,
and compares the outputs with those of an undisturbed one, byte by byte. `poison` adds a
take that needs more memory or time than the limit. `fit` compares skeletons fitted to
six takes, chosen by what they show or by their size, and to all.
"""

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import marey
from marey import synth
from marey.library.jobs import describe_take
from marey.library.jobs.fit import solve_common
from marey.library.jobs.take import solve_with_skeletons
from marey.library.subject_work import choose_fit_takes

MOTIONS = ("walk", "exercise", "swing", "jump", "kick_punch")
SECONDS, RATE, MARKERS = 1.0, 60.0, "set53"
VARYING = ("timings.jsonl", "timings.parquet")
MIB = 2**20
Command = list[str]


def make_library(
    root: Path, takes: int, people: int, *, linkages: bool = False
) -> Path:
    """Return a folder of takes of several people; those that are there are kept.

    Args:
        root: The folder.
        takes: Number of takes.
        people: Number of subjects.
        linkages: Whether subjects are chains of rods, which are solved sooner.
    """
    for number in range(takes):
        who, which = number % people, number // people
        path = root / f"P{who:03d}" / f"take_{which:03d}.c3d"
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        options = {"seconds": SECONDS, "rate": RATE, "seed": number, "noise": 0.0005}
        if linkages:
            take = synth.linkage().record(markers=4, **options)
        else:
            motion = MOTIONS[which % len(MOTIONS)]
            take = synth.human(seed=who).record(motion, markers=MARKERS, **options)
        marey.write(take, path)
    return root


def batch_command(library: Path, out: Path, *options: str) -> Command:
    start = [sys.executable, "-m", "marey", "batch", str(library), "-o", str(out)]
    return [*start, "--quiet", *options]


def content(out: Path) -> dict[str, bytes]:
    """Return every file of a batch but times and locks."""
    return {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.name not in VARYING and ".locks" not in path.parts
    }


# --- speed ----------------------------------------------------------------------------


def measure_speed(folder: Path, takes: int, people: int) -> None:
    library = make_library(folder / "library", takes, people)
    rates = {}
    for workers in (1, 2):
        out = folder / f"out{workers}"
        shutil.rmtree(out, ignore_errors=True)
        wall, cpu, memory = run_watched(
            batch_command(library, out, "--workers", str(workers))
        )
        rates[workers] = takes / wall
        print(
            f"{workers} workers: {takes / wall:.2f} takes/s, {cpu / takes:.3f} s of "
            f"CPU per take; memory in MiB (run, largest worker):"
        )
        print("  " + " ".join(f"{a:.0f},{b:.0f}" for a, b in thin(memory, 12)))
    print(f"two workers against one: {rates[2] / rates[1]:.2f}")
    same = content(folder / "out1") == content(folder / "out2")
    print(f"same bytes: {same}")
    cpu_of_loop(library, folder / "loop", takes)


def cpu_of_loop(library: Path, out: Path, takes: int) -> None:
    """Print what the same work costs in one process without records."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    began = time.monotonic()
    for subject in sorted(library.iterdir()):
        files = sorted(subject.glob("*.c3d"))
        described = {str(path): describe_take(str(path), {}) for path in files}
        chosen = sorted(choose_fit_takes(described, 6))
        skeleton = solve_common([marey.read(p) for p in chosen], subject.name, {})
        for path in files:
            take = marey.read(path)
            given = [skeleton.skeleton]
            solution = solve_with_skeletons(take, subject.name, {}, given)
            target = out / subject.name / f"{path.stem}.bvh"
            target.parent.mkdir(parents=True, exist_ok=True)
            marey.write(solution.motion, target, overwrite=True)
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    wall = time.monotonic() - began
    print(f"bare loop: {takes / wall:.2f} takes/s, {cpu / takes:.3f} s of CPU per take")


def run_watched(command: Command) -> tuple[float, float, list[tuple[float, float]]]:
    """Return wall and CPU seconds of a command, and memory of it and of its workers."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    process = subprocess.Popen(command)
    memory = []
    while process.poll() is None:
        workers = [rss_mib(pid) for pid in children_of(process.pid)]
        memory.append((rss_mib(process.pid), max(workers, default=0.0)))
        time.sleep(0.5)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - began, cpu, memory


def thin(values: list[tuple[float, float]], count: int) -> list[tuple[float, float]]:
    places = np.linspace(0, len(values) - 1, min(count, len(values))).astype(int)
    return [values[i] for i in places]


def rss_mib(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / MIB


def children_of(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(number) for number in text.split()]


# --- faults ---------------------------------------------------------------------------


def try_faults(folder: Path, takes: int, people: int, kills: int, only: str) -> None:
    library = make_library(folder / "library", takes, people, linkages=True)
    expected = folder / "expected"
    if not (expected / "index.html").exists():
        subprocess.run(batch_command(library, expected, "--workers", "2"), check=True)
    truth = content(expected)
    spread = random.Random(1)
    faults: Mapping[str, Callable[[Path, Path], None]] = {
        "kill -9 of workers": lambda a, b: kill_workers(a, b, kills, spread),
        "kill -9 of the run": lambda a, b: kill_runs(a, b, kills, spread),
        "kill -9 of the scheduler": lambda a, b: kill_schedulers(a, b, kills, spread),
        "full disk": fill_disk,
    }
    for name, disturb in faults.items():
        if only and only not in name:
            continue
        out = folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        disturb(library, out)
        code = subprocess.run(
            batch_command(library, out, "--workers", "2"), check=False
        ).returncode
        found = content(out)
        lost = sorted(set(truth) - set(found))
        more = sorted(set(found) - set(truth))
        other = sorted(n for n in truth if n in found and truth[n] != found[n])
        print(
            f"{name}: exit {code}; lost {len(lost)}, duplicated {len(more)}, changed "
            f"{len(other)} of {len(truth)} files {[*lost, *more, *other][:3]}",
            flush=True,
        )


def try_poison(folder: Path) -> None:
    """Solve a library with a take of 300,000 frames under limits that it exceeds."""
    library = make_library(folder / "poisoned", 8, 2, linkages=True)
    path = library / "Z" / "poison.c3d"
    path.parent.mkdir(exist_ok=True)
    if not path.exists():
        take = marey.read(library / "P000" / "take_000.c3d")
        points = np.tile(take.points, (5000, 1, 1))
        marey.write(marey.Take(rate=RATE, points=points, labels=take.labels), path)
    for name, limit in {
        "memory": ["--memory", "1200"],
        "time": ["--seconds", "20"],
    }.items():
        out = folder / f"poison_{name}"
        shutil.rmtree(out, ignore_errors=True)
        command = batch_command(library, out, "--workers", "2", "--json", *limit)
        ended = subprocess.run(command, check=False, capture_output=True, text=True)
        lines = [json.loads(line) for line in ended.stdout.splitlines()]
        bad = {
            r["take"]: (r["state"], r["error"]) for r in lines if r["state"] != "done"
        }
        print(f"poison by {name}: exit {ended.returncode}, {len(lines)} takes, {bad}")


def kill_workers(library: Path, out: Path, kills: int, chance: random.Random) -> None:
    """Kill random workers of one run at random moments."""
    process = subprocess.Popen(batch_command(library, out, "--workers", "2"))
    done = 0
    while done < kills and process.poll() is None:
        time.sleep(chance.uniform(0.5, 5.0))
        workers = children_of(process.pid)
        if workers:
            os.kill(chance.choice(workers), signal.SIGKILL)
            done += 1
    print(f"  {done} workers killed; the run ended with {process.wait()}", flush=True)


def kill_runs(library: Path, out: Path, kills: int, chance: random.Random) -> None:
    """Kill whole runs, one after the other, at random moments."""
    done = 0
    for _ in range(kills):
        process = subprocess.Popen(batch_command(library, out, "--workers", "2"))
        try:
            process.wait(timeout=chance.uniform(1.0, 15.0))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            done += 1
    print(f"  {done} runs killed", flush=True)


def kill_schedulers(
    library: Path, out: Path, kills: int, chance: random.Random
) -> None:
    """Kill the scheduler of a Dask cluster at random moments."""
    codes = []
    for _ in range(kills):
        with dask_cluster() as (address, scheduler):
            command = batch_command(library, out, "--dask", address)
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            try:
                process.wait(timeout=chance.uniform(5.0, 20.0))
            except subprocess.TimeoutExpired:
                scheduler.kill()
            codes.append(process.wait(timeout=120.0))
    print(f"  exit codes of the runs: {codes}", flush=True)


@contextmanager
def dask_cluster() -> "Iterator[tuple[str, subprocess.Popen[str]]]":
    """Yield the address and the process of a scheduler with two workers."""
    environment = os.environ | {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s"}
    options = ["--host", "127.0.0.1", "--no-dashboard"]
    processes = []
    with tempfile.TemporaryDirectory() as scratch:
        address_file = Path(scratch) / "scheduler.json"
        dask = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0"]
        where = ["--scheduler-file", str(address_file)]
        quiet = {"stderr": subprocess.DEVNULL, "env": environment}
        scheduler = subprocess.Popen([*dask, *options, *where], text=True, **quiet)
        processes.append(scheduler)
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", *options, *where]
        more = ["--nthreads", "1", "--nworkers", "2", "--death-timeout", "10"]
        processes.append(subprocess.Popen([*worker, *more], text=True, **quiet))
        while not address_file.exists() or not address_file.read_text():
            time.sleep(0.1)
        try:
            yield json.loads(address_file.read_text())["address"], scheduler
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(timeout=60.0)


def fill_disk(library: Path, out: Path) -> None:
    """Run on a disk of 256 kB (as root), and else with files of at most 4 kB."""
    out.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(out)]
    command = batch_command(library, out, "--workers", "2")
    if subprocess.run(mount, check=False, stderr=subprocess.DEVNULL).returncode:
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # noqa: E731
        process = subprocess.run(
            command, check=False, preexec_fn=limit, capture_output=True, text=True
        )
        how = "files of 4 kB"
    else:
        process = subprocess.run(command, check=False, capture_output=True, text=True)
        saved = out.with_name("saved")
        shutil.rmtree(saved, ignore_errors=True)
        shutil.copytree(out, saved)
        subprocess.run(["umount", str(out)], check=True)
        shutil.rmtree(out)
        saved.rename(out)
        how = "a disk of 256 kB"
    whole = marey.verify_batch(out) if any(out.rglob("*.record.json")) else None
    print(f"  {how}: exit {process.returncode}, {process.stderr.strip()[-160:]}")
    if whole is not None:
        print(f"  {whole.whole} outputs whole, changed: {whole.changed}", flush=True)


# --- fit ------------------------------------------------------------------------------


def compare_fits(people: int) -> None:
    """Print errors of bones by the takes that skeletons are fitted to."""
    kinds = ["walk"] * 16 + ["exercise", "swing", "jump", "kick_punch"]
    errors: dict[str, list[float]] = {"chosen": [], "largest": [], "all": []}
    for who in range(people):
        person = synth.human(seed=100 + who)
        with tempfile.TemporaryDirectory() as scratch:
            described, recordings = {}, {}
            for number, kind in enumerate(kinds):
                seconds = 2.0 if kind == "walk" else 1.0
                options = {"seconds": seconds, "rate": RATE, "markers": MARKERS}
                recording = person.record(kind, seed=number, noise=0.001, **options)
                path = Path(scratch) / f"{number:02d}.c3d"
                marey.write(recording, path)
                recordings[path.name] = recording
                described[path.name] = describe_take(str(path), {})
        size = lambda name: -described[name]["positions"]  # noqa: E731, B023
        sets = {
            "chosen": choose_fit_takes(described, 6),
            "largest": sorted(described, key=size)[:6],
            "all": sorted(described),
        }
        for name, takes in sets.items():
            solution = marey.solve([recordings[take] for take in takes])
            truth = next(iter(recordings.values()))
            errors[name].append(bone_error_mm(solution.skeleton, truth))
        print({k: round(v[-1], 2) for k, v in errors.items()}, flush=True)
    for name, values in errors.items():
        print(f"{name}: rms error of bones {np.mean(values):.2f} mm")


def bone_error_mm(skeleton: marey.Skeleton, truth: synth.Recording) -> float:
    """Return the rms error of the lengths of bones that both have, in mm."""
    true = truth.truth.skeleton
    common = [
        name
        for name, seen in zip(skeleton.names, skeleton.observed, strict=True)
        if seen and name in true.names and skeleton.parent[skeleton.index(name)] > 0
    ]
    found = [skeleton.lengths[skeleton.index(name)] for name in common]
    difference = np.subtract(found, [true.lengths[true.index(n)] for n in common])
    return 1e3 * float(np.sqrt(np.mean(np.square(difference))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("speed", "faults", "poison", "fit"))
    parser.add_argument("--takes", type=int, default=0)
    parser.add_argument("--people", type=int, default=0)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--only", default="", help="only faults with this word")
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp())
    if given.what == "speed":
        measure_speed(folder, given.takes or 2000, given.people or 50)
    elif given.what == "faults":
        try_faults(
            folder, given.takes or 200, given.people or 5, given.kills, given.only
        )
    elif given.what == "poison":
        try_poison(folder)
    else:
        compare_fits(given.people or 4)


if __name__ == "__main__":
    main()
