"""A library of generated people: speed, memory, faults, and the executors' bytes.

    python -m benchmarks.tools.library speed [--takes 40] [--people 2] [--repeats 3]
    python -m benchmarks.tools.library scale --folder FOLDER [--takes 2000]
    python -m benchmarks.tools.library faults [--takes 200] [--people 5] [--kills 20]
    python -m benchmarks.tools.library poison
    python -m benchmarks.tools.library fit [--people 4] [--takes 24] [--sensors]

`speed` solves the library with one and with two workers and in bare loops, and states
takes per second of wall clock and seconds of CPU. `scale` solves a large one with two
workers and states the memory of the run and of its workers as takes are done; it goes
on in the same folder when it is interrupted. `faults` disturbs a batch in every way
that it must survive, and compares the outputs with those of an undisturbed one, byte by
byte. `poison` adds a take that needs more memory or time than the limit. `fit` compares
skeletons fitted to six takes, chosen by what they show or by their size, and to all.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import marey
from marey import synth
from marey.library.jobs import describe_take
from marey.library.jobs.describe import measure_spread
from marey.library.jobs.fit import solve_common
from marey.library.jobs.take import solve_with_skeletons
from marey.library.subject_work import choose_fit_takes
from marey.numerics import geometry
from marey.synth.recording import capture
from marey.workers.limits import ONE_THREAD

MOTIONS = ("walk", "exercise", "swing", "jump", "kick_punch")
SECONDS, RATE, MARKERS = 1.0, 60.0, "set53"
VARYING = ("timings.jsonl", "timings.parquet")
MIB = 2**20
Command = list[str]
Row = tuple[float, float, float, float]


def make_library(root: Path, takes: int, people: int, *, hinges: bool = False) -> Path:
    """Return a folder of takes of several people; those that are there are kept.

    Args:
        root: The folder.
        takes: Number of takes.
        people: Number of subjects.
        hinges: Whether subjects are two bodies with a hinge, which are solved sooner.
    """
    for number in range(takes):
        who, which = number % people, number // people
        path = root / f"P{who:03d}" / f"take_{which:03d}.c3d"
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        options = {"seconds": SECONDS, "rate": RATE, "seed": number, "noise": 0.0005}
        if hinges:
            options["seconds"] = 0.5
            take = synth.hinge_pair(seed=who).record(markers=4, **options)
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


def measure_speed(folder: Path, takes: int, people: int, repeats: int) -> None:
    """Print takes per second with one and two workers, and the overhead on a loop.

    All commands take turns, so that a busy machine disturbs them alike. The overhead is
    the ratio of CPU seconds of a batch with all its processes, from their start to
    their end, and of a loop in one process that does the same work.
    """
    library = make_library(folder / "library", takes, people)
    loop = [sys.executable, "-m", "benchmarks.tools.library", "loop", "--folder"]
    commands = {
        "1 worker": batch_command(library, folder / "out1", "--workers", "1"),
        "loop of the same work": [*loop, str(folder), "--shared"],
        "2 workers": batch_command(library, folder / "out2", "--workers", "2"),
        "loop of marey.solve": [*loop, str(folder)],
    }
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            shutil.rmtree(folder / f"out{name[0]}", ignore_errors=True)
            measured[name].append(run_measured(command))
            wall, cpu = measured[name][-1]
            print(f"  {name}: {wall:.2f} s, {cpu:.2f} s of CPU", flush=True)
    walls, costs = (
        {name: np.array([run[i] for run in runs]) for name, runs in measured.items()}
        for i in (0, 1)
    )
    for name in commands:
        rate, cost = takes / np.median(walls[name]), np.median(costs[name]) / takes
        print(f"{name}: {rate:.3f} takes/s, {cost:.3f} s of CPU per take")
    gains = walls["1 worker"] / walls["2 workers"]
    print(f"two workers against one: {spell_range(gains)}")
    print(f"same bytes: {content(folder / 'out1') == content(folder / 'out2')}")
    for name in ("loop of the same work", "loop of marey.solve"):
        ratios = costs["1 worker"] / costs[name]
        print(f"CPU against a {name}: {spell_range(ratios)}", flush=True)


def run_measured(command: Command) -> tuple[float, float]:
    """Return the seconds of a command by the clock, and of CPU with its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    # Kernels and threads of the loop are those of the command and of its workers.
    environment = os.environ | ONE_THREAD | {"MAREY_COMPILED_KERNELS": "1"}
    subprocess.run(command, check=True, env=environment)
    wall = time.monotonic() - began
    return wall, cpu_since(before, resource.RUSAGE_CHILDREN)


def spell_range(values: np.ndarray) -> str:
    """Return the median of some values, the least and the greatest."""
    return f"{np.median(values):.2f} ({values.min():.2f} to {values.max():.2f})"


def measure_scale(folder: Path, takes: int, people: int) -> None:
    """Print the memory of a long run; killed and started again, it goes on."""
    library = make_library(folder / "library", takes, people)
    out, curve = folder / "out", folder / "memory.csv"
    wall, memory = run_watched(
        ["nice", "-n", "10", *batch_command(library, out, "--workers", "2")], out, curve
    )
    done = [row[1] for row in memory]
    print(f"{done[-1] - done[0]} takes in {wall:.0f} s of this run")
    print("takes done, MiB of the run, of the largest worker:")
    for _, number, run, worker in thin(read_curve(curve), 20):
        print(f"  {number:6.0f} {run:6.0f} {worker:6.0f}")


def read_curve(path: Path) -> list[Row]:
    """Return the rows of a file of seconds, takes done, and memory in MiB."""
    rows = [line.split(",") for line in path.read_text().splitlines()]
    return [(float(a), float(b), float(c), float(d)) for a, b, c, d in rows]


def cpu_since(before: resource.struct_rusage, who: int) -> float:
    """Return the CPU seconds since an earlier look."""
    after = resource.getrusage(who)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def solve_in_loop(folder: Path, *, shared: bool) -> None:
    """Solve and write all takes in this process, without records.

    Args:
        folder: Where `measure_speed` works.
        shared: Whether takes are solved with the skeleton of their subject, as a batch
            does it, or each by itself.
    """
    for subject in sorted((folder / "library").iterdir()):
        files = sorted(subject.glob("*.c3d"))
        skeletons = []
        if shared:
            described = {str(p): describe_take(str(folder), str(p), {}) for p in files}
            chosen = sorted(choose_fit_takes(described, 6))
            fit = solve_common([marey.read(p) for p in chosen], subject.name, {})
            skeletons = [fit.skeleton]
        for path in files:
            solution = solve_with_skeletons(
                marey.read(path), subject.name, {}, skeletons
            )
            target = folder / "loop" / subject.name / f"{path.stem}.bvh"
            target.parent.mkdir(parents=True, exist_ok=True)
            marey.write(solution.motion, target, overwrite=True)


def run_watched(
    command: Command, out: Path, curve: Path | None = None
) -> tuple[float, list[Row]]:
    """Return the seconds that a batch took, and its memory over the takes done.

    Args:
        command: The batch.
        out: Its folder.
        curve: File to which the memory is appended as it is measured.
    """
    began = time.monotonic()
    process = subprocess.Popen(command)
    rows: list[Row] = []
    while process.poll() is None:
        largest = max(map(rss_mib, children_of(process.pid)), default=0.0)
        now = time.monotonic() - began
        rows.append((now, float(count_done(out)), rss_mib(process.pid), largest))
        if curve is not None:
            with curve.open("a") as file:
                file.write(",".join(f"{value:.1f}" for value in rows[-1]) + "\n")
        time.sleep(5.0 if curve else 0.5)
    return time.monotonic() - began, rows


def thin(values: list[Row], count: int) -> list[Row]:
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
    library = make_library(folder / "library", takes, people, hinges=True)
    expected = folder / "expected"
    if not (expected / "index.html").exists():
        subprocess.run(batch_command(library, expected, "--workers", "2"), check=True)
    truth = content(expected)
    spread = random.Random(1)
    faults: Mapping[str, Callable[[Path, Path], None]] = {
        "kill -9 of workers": lambda a, b: kill_workers(a, b, kills, spread),
        "kill -9 of the run": lambda a, b: kill_runs(a, b, kills, spread),
        "two runs at once": run_twice,
        "full disk": fill_disk,
        "kill -9 of the scheduler": lambda a, b: kill_schedulers(a, b, kills, spread),
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
    """Solve a library with a take of 300,000 frames under limits that it exceeds.

    The other takes must have the bytes of a run without it.
    """
    library = make_library(folder / "healthy", 8, 2, hinges=True)
    expected = folder / "healthy_out"
    subprocess.run(batch_command(library, expected, "--workers", "2"), check=True)
    truth = content(expected / "takes")
    poisoned = folder / "poisoned"
    shutil.copytree(library, poisoned, dirs_exist_ok=True)
    path = poisoned / "Z" / "poison.c3d"
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
        command = batch_command(poisoned, out, "--workers", "2", "--json", *limit)
        ended = subprocess.run(command, check=False, capture_output=True, text=True)
        lines = [json.loads(line) for line in ended.stdout.splitlines()]
        bad = {
            r["take"]: (r["state"], r["error"]) for r in lines if r["state"] != "done"
        }
        found = content(out / "takes")
        same = sum(found.get(name) == value for name, value in truth.items())
        print(
            f"poison by {name}: exit {ended.returncode}, {len(lines)} takes, {bad}; "
            f"{same} of {len(truth)} files of the others as without it",
            flush=True,
        )


def kill_workers(library: Path, out: Path, kills: int, chance: random.Random) -> None:
    """Kill random workers of one run, at random moments."""
    process = subprocess.Popen(batch_command(library, out, "--workers", "2"))
    moments: list[int] = []
    for goal in random_moments(library, kills, chance):
        while wait_for_takes(process, out, goal, chance):
            if workers := children_of(process.pid):
                os.kill(chance.choice(workers), signal.SIGKILL)
                moments.append(count_done(out))
                break
    code = process.wait()
    print(f"  {len(moments)} workers killed, exit {code}; takes done then: {moments}")


def kill_runs(library: Path, out: Path, kills: int, chance: random.Random) -> None:
    """Kill whole runs, one after the other, at random moments."""
    moments = []
    for goal in random_moments(library, kills, chance):
        process = subprocess.Popen(batch_command(library, out, "--workers", "2"))
        if wait_for_takes(process, out, goal, chance):
            process.kill()
            moments.append(count_done(out))
        process.wait()
    print(f"  {len(moments)} runs killed; takes done then: {moments}", flush=True)


def run_twice(library: Path, out: Path) -> None:
    """Start two runs into one folder."""
    command = batch_command(library, out, "--workers", "1")
    both = [subprocess.Popen(command) for _ in range(2)]
    print(f"  exit codes: {[process.wait() for process in both]}", flush=True)


def kill_schedulers(
    library: Path, out: Path, kills: int, chance: random.Random
) -> None:
    """Kill the schedulers of Dask clusters, at random moments."""
    codes, moments = [], []
    for goal in random_moments(library, kills, chance):
        with dask_cluster() as (address, scheduler):
            command = batch_command(library, out, "--dask", address)
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            if wait_for_takes(process, out, goal, chance):
                scheduler.kill()
                moments.append(count_done(out))
            codes.append(process.wait(timeout=300.0))
    print(f"  {len(moments)} schedulers killed; takes done then: {moments}")
    print(f"  exit codes of the runs: {codes}", flush=True)


def random_moments(library: Path, kills: int, chance: random.Random) -> list[int]:
    """Return numbers of takes after which to kill, early enough before the last."""
    n_takes = len(list(library.glob("*/*.c3d")))
    return sorted(chance.sample(range(n_takes - n_takes // 10), kills))


def wait_for_takes(
    process: "subprocess.Popen[bytes]", out: Path, goal: int, chance: random.Random
) -> bool:
    """Wait until so many takes are done, and a moment; return if the run goes on."""
    while process.poll() is None and count_done(out) < goal:
        time.sleep(0.02)
    time.sleep(chance.uniform(0.0, 0.5))
    return process.poll() is None


def count_done(out: Path) -> int:
    """Return the number of takes with a record."""
    return sum(1 for _ in (out / "takes").glob("*/*.record.json"))


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
        more = ["--nthreads", "1", "--no-nanny", "--death-timeout", "10"]
        for _ in range(2):
            processes.append(subprocess.Popen([*worker, *more], text=True, **quiet))
        while not address_file.exists() or not address_file.read_text():
            time.sleep(0.1)
        try:
            yield json.loads(address_file.read_text())["address"], scheduler
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                end_process(process)


def end_process(process: "subprocess.Popen[str]") -> None:
    """Wait for a process that was asked to end; kill it if it does not.

    A worker of Dask may wait for a scheduler that was killed.
    """
    try:
        process.wait(timeout=15.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


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


def compare_fits(people: int, n_takes: int, *, sensors: bool) -> None:
    """Print errors of bones by the takes that skeletons are fitted to.

    A person has takes with the markers of one day, soft tissue and noise: three of four
    are walks, as archives have.

    Args:
        people: Number of people.
        n_takes: Takes of each.
        sensors: Whether there is a sensor on every body, in place of markers.
    """
    others = ("swing", "jump", "kick_punch") * (n_takes // 12)
    kinds = ("walk",) * (n_takes - len(others)) + others
    sets = {"first 6": 6, "chosen 3": 3, "chosen 6": 6, "all": n_takes}
    errors: dict[str, list[float]] = {name: [] for name in sets}
    for who in range(people):
        takes = record_day(100 + who, kinds, sensors=sensors)
        described = {name: _described(take) for name, take in takes.items()}
        for name, count in sets.items():
            chosen = choose_fit_takes(described, count)
            if name.startswith("first"):
                chosen = sorted(takes)[:count]
            solution = marey.solve([takes[take] for take in sorted(chosen)])
            error = bone_error_mm(solution.skeleton, next(iter(takes.values())))
            errors[name].append(error)
        print({k: round(v[-1], 2) for k, v in errors.items()}, flush=True)
    for name, values in errors.items():
        print(f"{name}: rms error of bones {np.mean(values):.2f} mm")


def record_day(
    seed: int, kinds: Sequence[str], *, sensors: bool
) -> dict[str, synth.Recording]:
    """Return takes of a person whose markers or sensors stay where they are."""
    person, chance = synth.human(seed=seed), np.random.default_rng(seed)
    turn = np.deg2rad(2.0) if sensors else 0.0
    corruption = synth.Corruption(
        soft_tissue=0.01, knee_shift=1.0, soft_tissue_turn=turn
    )
    takes = {}
    for number, kind in enumerate(kinds):
        motion = person.perform(kind, seconds=1.0, rate=RATE, seed=number)
        take = capture(
            (person,),
            (motion,),
            names=("",),
            markers=None if sensors else MARKERS,
            sensors=sensors,
            seed=seed,
            corruption=corruption,
        )
        takes[f"{number:03d}"] = add_noise(take, chance)
    return takes


def add_noise(take: synth.Recording, chance: np.random.Generator) -> synth.Recording:
    """Return a take with noise of 1 mm and 0.2 degrees per axis."""
    T = take.T_world_sensor.copy()
    T[..., :3, 3] += chance.normal(scale=0.001, size=(*T.shape[:2], 3))
    turn = chance.normal(scale=np.deg2rad(0.2), size=(*T.shape[:2], 3))
    T[..., :3, :3] = T[..., :3, :3] @ geometry.rotation_exp(turn)
    noise = chance.normal(scale=0.001, size=take.points.shape)
    return replace(take, points=take.points + noise, T_world_sensor=T)


def _described(take: marey.Take) -> dict[str, Any]:
    """Return what `describe_take` finds of a file with this take."""
    positions = int(take.seen.sum()) + int(take.sensor_seen.sum())
    return {"positions": positions, "labelled": True, "spread": measure_spread(take)}


def bone_error_mm(skeleton: marey.Skeleton, truth: synth.Recording) -> float:
    """Return the rms error of the lengths of limbs, in mm.

    Spine and neck of the two skeletons are divided in other places.
    """
    found, true = map(bone_lengths, (skeleton, truth.truth.skeleton))
    limbs = [bone for bone in found.keys() & true.keys() if bone[0][0] in "LR"]
    difference = [found[bone] - true[bone] for bone in limbs]
    return 1e3 * float(np.sqrt(np.mean(np.square(difference))))


def bone_lengths(skeleton: marey.Skeleton) -> dict[tuple[str, str], float]:
    """Return the lengths of observed bones by the names of both joints, in metres."""
    return {
        (skeleton.names[parent], name): float(length)
        for name, parent, length, is_observed in zip(
            skeleton.names,
            skeleton.parent,
            skeleton.lengths,
            skeleton.observed,
            strict=True,
        )
        if parent >= 0 and is_observed
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    what = ("speed", "loop", "scale", "faults", "poison", "fit")
    parser.add_argument("what", choices=what)
    parser.add_argument("--shared", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--takes", type=int, default=0)
    parser.add_argument("--people", type=int, default=0)
    parser.add_argument("--sensors", action="store_true", help="with `fit`")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="only faults with this word")
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp())
    if given.what == "speed":
        measure_speed(folder, given.takes or 40, given.people or 2, given.repeats)
    elif given.what == "loop":
        solve_in_loop(folder, shared=given.shared)
    elif given.what == "scale":
        measure_scale(folder, given.takes or 2000, given.people or 50)
    elif given.what == "faults":
        try_faults(
            folder, given.takes or 200, given.people or 5, given.kills, given.only
        )
    elif given.what == "poison":
        try_poison(folder)
    else:
        compare_fits(given.people or 4, given.takes or 24, sensors=given.sensors)


if __name__ == "__main__":
    main()
