"""What `marey demo` does: a performer with known truth, recorded and written."""

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from marey import synth
from marey.cli.application import busy
from marey.errors import OutputError
from marey.io import read, read_motion, write
from marey.metrics import compare
from marey.motion import Motion
from marey.pipeline import SolveOptions, solve
from marey.solution import Solution


def run(console: Console, folder: Path, *, seconds: float, seed: int) -> None:
    """Make a performer, record it two ways, write files and check them by reading."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made, {error}") from error
    figure = synth.human(height=1.8, seed=seed)
    _write_all(console, folder, figure, seconds=seconds, seed=seed)
    sensed = figure.record(
        "exercise", seconds=20.0, markers="none", sensors=True, noise=2e-3, seed=seed
    )
    _solve(console, sensed, folder / "sensors.csv", "2 mm noise", SolveOptions())
    marked = figure.record(
        "chicken_walk",
        seconds=12.0,
        markers="set53",
        noise=1e-3,
        soft_tissue=3e-3,
        gaps=0.05,
        swaps=1,
        slips=1,
        # Drawn apart from the figure, so that the usual seed shows a slip that shows.
        seed=seed + 1,
    )
    what = (
        "labels not used, 1 mm noise, 3 mm of skin motion, 5 % missing, two labels "
        "traded, one marker slipped"
    )
    unlabelled = SolveOptions(segment="overlap")
    solution = _solve(console, marked, folder / "markers.c3d", what, unlabelled)
    page = folder / "performer.html"
    write(solution, page, truth=marked.truth.motions, overwrite=True)
    console.print("\nThe answer beside the truth, to look at in any browser:")
    console.print(str(page.resolve()), soft_wrap=True)


def _write_all(
    console: Console, folder: Path, figure: synth.Figure, *, seconds: float, seed: int
) -> None:
    """Write a walk and its truth in several formats, and check them by reading."""
    take = figure.record(
        motion="walk",
        seconds=seconds,
        markers="set53",
        noise=1e-3,
        gaps=0.05,
        seed=seed,
    )
    (motion,) = take.truth.motions
    console.print(
        f"[bold]{figure.name}[/] of {figure.skeleton.n_joints} joints, "
        f"{seconds:g} s walk: {len(take.labels)} markers at {take.rate:g} Hz, "
        f"1 mm noise, {1.0 - take.seen.mean():.1%} missing, "
        f"{len(motion.contacts)} foot plants"
    )
    table = Table("file", "holds", "read back: largest difference", box=None)
    for name in ("walk.c3d", "walk.trc", "walk.csv", "walk.npz"):
        write(take, folder / name, overwrite=True)
        back = read(folder / name)
        worst = float(np.nanmax(np.abs(back.points - take.points)))
        table.add_row(str(folder / name), "recording", f"{worst * 1e6:.2g} µm")
    for name in ("walk.bvh", "walk.amc", "truth.npz"):
        write(motion, folder / name, overwrite=True)
        worst = float(np.abs(_centres(read_motion(folder / name), motion)).max())
        table.add_row(str(folder / name), "true motion", f"{worst * 1e6:.2g} µm")
    write(figure.skeleton, folder / "performer.skel.json", overwrite=True)
    table.add_row(str(folder / "performer.skel.json"), "true skeleton", "")
    console.print(table)


def _solve(
    console: Console,
    take: synth.Recording,
    path: Path,
    what: str,
    options: SolveOptions,
) -> Solution:
    """Write a recording, solve it, hold the answer to the truth and return it."""
    write(take, path, overwrite=True)
    with busy(f"solving {path.name}") as tell:
        solution = solve(path, options=options, progress=tell)
    answer = path.with_name(f"{path.stem}_solved.bvh")
    write(solution, answer, overwrite=True)
    seconds = sum(solution.report.seconds.values())
    count = f"{len(take.labels)} markers" if take.labels else ""
    count = count or f"{len(take.sensor_names)} sensors"
    console.print(
        f"\n[bold]{path}[/]: {count}, {what}, {take.n_frames} frames; solved in "
        f"{seconds:.2f} s to {answer}; against the truth:"
    )
    console.print(str(compare(solution, take)))
    repairs = _repairs(take, solution)
    if repairs.row_count:
        console.print(repairs)
    return solution


def _repairs(take: synth.Recording, solution: Solution) -> Table:
    """Return what went wrong in a recording beside what was found of it."""
    table = Table("what went wrong", "what was found", box=None)
    for change in take.truth.changes("swaps"):
        labels = {take.full_labels[change.index], take.full_labels[change.other]}
        found = [
            f"frames {finding.frames[0]} to {finding.frames[1]}"
            for finding in solution.report.findings
            if finding.code == "labels-swapped"
            and set(finding.subject.split("-")) == labels
        ]
        names = " and ".join(sorted(labels))
        wrong = f"{names} traded in frames {change.first} to {change.last}"
        table.add_row(wrong, "; ".join(found) or "not found")
    for change in take.truth.changes("slips"):
        label = take.full_labels[change.index] if take.labels else ""
        found = [
            f"frame {finding.frames[0]}, by {1e3 * finding.value:.0f} mm"
            for finding in solution.report.findings
            if finding.code == "marker-slipped" and finding.subject == label
        ]
        wrong = f"{label} slipped at frame {change.first} by {1e3 * change.size:.0f} mm"
        table.add_row(wrong, "; ".join(found) or "not found")
    return table


def _centres(found: Motion, wanted: Motion) -> np.ndarray:
    """Return how far joint centres are from those of the same name, in metres."""
    order = [found.skeleton.index(name) for name in wanted.skeleton.names]
    centres = found.T_world_joint()[:, order][..., :3, 3]
    return np.asarray(centres - wanted.T_world_joint()[..., :3, 3])
