"""Record what `marey.solve` answers on many takes, and compare two such records.

A change that only renames or moves code must leave every number as it was:

    python -m benchmarks.tools.answers record before/     (with the old code)
    python -m benchmarks.tools.answers record after/      (with the new code)
    python -m benchmarks.tools.answers compare before/ after/

`record` solves every recording below the folders of MAREY_DATA and 30 generated takes,
and writes one file per take: skeletons, motions and the codes of the findings. A take
that is on record already is not solved again, so an interrupted run can be resumed.
`compare` prints every difference above 1e-9 and exits with 1 if there is one.
"""

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import marey
from marey import synth

TOLERANCE = 1e-9
"""Largest difference, in metres or radians, that counts as equal."""

SUFFIXES = {".c3d", ".trc", ".trb", ".csv", ".tsv", ".mvnx", ".traj", ".txt"}
ARRAYS = ("parent", "offset", "axes", "limits", "marker_joint", "marker_offset")
SENSOR_ARRAYS = ("sensor_joint", "T_joint_sensor", "covariance", "length_sd")

Case = Callable[[], marey.Solution]


def main() -> None:
    """Run one of the two commands."""
    match sys.argv[1:]:
        case ["record", folder]:
            record(Path(folder))
        case ["record", folder, part]:
            record(Path(folder), part)
        case ["compare", before, after]:
            sys.exit(compare(Path(before), Path(after)))
        case _:
            sys.exit(__doc__)


# --- cases ----------------------------------------------------------------------------


def cases() -> Iterator[tuple[str, Case]]:
    """Yield the name of each case and the call that solves it."""
    yield from recorded_cases()
    yield from session_cases()
    yield from generated_cases()


def folders() -> list[Path]:
    """Return the folders of recordings that MAREY_DATA names."""
    listed = os.environ.get("MAREY_DATA", "").split(os.pathsep)
    return [Path(folder) for folder in listed if folder]


def recorded_cases() -> Iterator[tuple[str, Case]]:
    """Yield every recording of every folder, each solved alone."""
    for folder in folders():
        for path in sorted(folder.rglob("*")):
            if path.suffix.lower() in SUFFIXES:
                name = "-".join((folder.name, *path.relative_to(folder).parts))
                yield name, lambda path=path: marey.solve(path)  # type: ignore[misc]


def session_cases() -> Iterator[tuple[str, Case]]:
    """Yield recordings solved together, without labels and with other options."""
    for folder in folders():
        for group in sorted(folder.glob("addbio_*")):
            paths = sorted(group.glob("*.trc"))
            if len(paths) > 1:
                name = f"{folder.name}-{group.name}-together"
                yield name, lambda paths=paths: marey.solve(paths)  # type: ignore[misc]
        for take in sorted(folder.glob("cmu/*_0[15].c3d")):
            options = marey.SolveOptions(segment="overlap", contacts=True)
            yield (
                f"{folder.name}-{take.stem}-unlabelled",
                lambda take=take, options=options: marey.solve(  # type: ignore[misc]
                    take, options=options
                ),
            )


def generated_cases() -> Iterator[tuple[str, Case]]:
    """Yield 30 generated takes: people, animals, machines, clean and damaged."""
    human, short = synth.human, {"seconds": 4.0, "rate": 100.0}
    noisy = {**short, "noise": 1e-3}
    sensors = {**noisy, "markers": "none", "sensors": True, "turn_noise": 2e-3}
    hard = {"noise": 1e-3, "gaps": 0.1, "swaps": 2, "slips": 1, "gross": 0.002}
    takes: dict[str, Callable[[], marey.Take]] = {
        "walk": lambda: human(seed=0).record("walk", **short),
        "walk-noise": lambda: human(seed=1).record("walk", **noisy),
        "walk-hard": lambda: human(seed=2).record("walk", seconds=8.0, **hard),
        "walk-53": lambda: human(seed=3).record("walk", markers="set53", **noisy),
        "walk-53-hard": lambda: human(seed=4).record(
            "walk", markers="set53", seconds=8.0, **hard
        ),
        "walk-53-unlabelled": lambda: human(seed=5).record(
            "walk", markers="set53", labels=False, **noisy
        ),
        "exercise-unlabelled": lambda: human(seed=6).record(
            "exercise", markers="set53", labels=False, seconds=12.0, noise=1e-3
        ),
        "dense": lambda: human(seed=7).record(
            "chicken_walk", markers="dense110", labels=False, **noisy
        ),
        "skin": lambda: human(seed=8).record("walk", soft_tissue=0.01, **noisy),
        "skin-unlabelled": lambda: human(seed=9).record(
            "kick_punch", markers="set53", labels=False, soft_tissue=0.005, **noisy
        ),
        "jump": lambda: human(seed=10).record("jump", **noisy),
        "circle": lambda: human(seed=11).record("circle", gaps=0.3, **noisy),
        "still": lambda: human(seed=12).record("still", **noisy),
        "coloured": lambda: human(seed=13).record("walk", coloured=2e-3, **noisy),
        "phantoms": lambda: human(seed=14).record("walk", phantoms=5, **noisy),
        "sensors": lambda: human(seed=15).record("exercise", **sensors),
        "sensors-walk": lambda: human(seed=16).record("walk", **sensors),
        "sensors-slip": lambda: human(seed=17).record(
            "exercise", slips=1, slip_turn=0.1, **sensors
        ),
        "sensors-field": lambda: human(seed=18).record("walk", field=5e-3, **sensors),
        "sensors-gross": lambda: human(seed=19).record(
            "walk", gross=0.01, sensor_gaps=0.1, **sensors
        ),
        "quadruped": lambda: synth.quadruped().record("walk", **noisy),
        "quadruped-sensors": lambda: synth.quadruped().record("walk", **sensors),
        "robot": lambda: synth.robot().record("swing", **noisy),
        "snowman": lambda: synth.snowman().record("swing", **noisy),
        "linkage": lambda: synth.linkage().record(markers=4, **noisy),
        "linkage-sensors": lambda: synth.linkage().record(**sensors),
        "hinge": lambda: synth.hinge_pair().record(**noisy),
        "universal": lambda: synth.universal_pair().record(**sensors),
        "pendulum": lambda: synth.pendulum().record(**noisy),
        "two-people": lambda: synth.scene("handover", **noisy),
    }
    for name, make in takes.items():
        yield f"synth-{name}", lambda make=make: marey.solve(make())  # type: ignore[misc]


# --- records --------------------------------------------------------------------------


def record(folder: Path, part: str = "0/1") -> None:
    """Solve every case that is not in the folder yet, one part of several."""
    folder.mkdir(parents=True, exist_ok=True)
    first, step = map(int, part.split("/"))
    every = list(cases())[first::step]
    for number, (name, solve) in enumerate(every, 1):
        path = folder / f"{name}.npz"
        if path.exists():
            continue
        began = time.perf_counter()
        arrays = answer(solve)
        partial = path.with_suffix(".part")
        with partial.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
        partial.replace(path)
        seconds = time.perf_counter() - began
        print(f"{number} of {len(every)}: {name} {seconds:.1f} s", flush=True)


def answer(solve: Case) -> dict[str, np.ndarray]:
    """Return the arrays of a solution, or the kind of the error."""
    try:
        solution = solve()
    except Exception as error:
        return {"error": np.array(type(error).__name__)}
    codes = Counter(finding.code for finding in solution.report.findings)
    arrays = {
        "codes": np.array([f"{code} {n}" for code, n in sorted(codes.items())]),
        "subjects": np.array([subject.name for subject in solution.subjects]),
    }
    for number, subject in enumerate(solution.subjects):
        skeleton = subject.skeleton
        arrays[f"{number}.names"] = np.array(skeleton.names)
        arrays[f"{number}.kind"] = np.array(skeleton.kind)
        arrays[f"{number}.labels"] = np.array(skeleton.marker_labels)
        for name in (*ARRAYS, *SENSOR_ARRAYS):
            arrays[f"{number}.{name}"] = getattr(skeleton, name)
        for take, motion in enumerate(subject.motions):
            arrays[f"{number}.{take}.T_world_root"] = motion.T_world_root
            arrays[f"{number}.{take}.wxyz"] = motion.wxyz
    return arrays


# --- comparison -----------------------------------------------------------------------


def compare(before: Path, after: Path) -> int:
    """Print what differs between two records; return 1 if anything does."""
    names = sorted(
        {path.name for path in (*before.glob("*.npz"), *after.glob("*.npz"))}
    )
    differing = 0
    for name in names:
        differences = list(differences_of(before / name, after / name))
        differing += bool(differences)
        for line in differences:
            print(f"{name.removesuffix('.npz')}: {line}")
    print(f"{len(names) - differing} of {len(names)} takes are equal to {TOLERANCE:g}")
    return int(differing > 0)


def differences_of(before: Path, after: Path) -> Iterator[str]:
    """Yield one line for each array in which two records of a take differ."""
    if not (before.exists() and after.exists()):
        yield f"only in {(before if before.exists() else after).parent}"
        return
    with np.load(before) as old, np.load(after) as new:
        for key in sorted({*old, *new}):
            if key not in old or key not in new:
                yield f"{key} is only in {'the first' if key in old else 'the second'}"
            elif line := difference(old[key], new[key]):
                yield f"{key} {line}"


def difference(old: np.ndarray, new: np.ndarray) -> str:
    """Return how two arrays differ; empty if they are equal."""
    if old.shape != new.shape:
        return f"has shape {new.shape} after {old.shape}"
    if old.dtype.kind not in "fi":
        gone, come = (
            sorted({*old.ravel()} - {*new.ravel()}),
            sorted({*new.ravel()} - {*old.ravel()}),
        )
        return "" if (old == new).all() else f"was {gone}, is {come}"
    if (np.isnan(old.astype(float)) != np.isnan(new.astype(float))).any():
        return "is missing elsewhere"
    largest = np.nanmax(np.abs(old - new), initial=0.0)
    return f"differs by {largest:.3g}" if largest > TOLERANCE else ""


if __name__ == "__main__":
    main()
