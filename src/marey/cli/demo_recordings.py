"""The recordings of `marey demo`: a synthetic performer with known truth."""

from pathlib import Path

import numpy as np
from rich.table import Table

from marey import synth
from marey.cli.application import make_folder, out
from marey.cli.solve_progress import show_solve_progress
from marey.editing import solve
from marey.io import read, read_motion, write
from marey.metrics import compare
from marey.motion import Motion
from marey.pipeline import SolveOptions
from marey.solution import Solution


def write_demo(folder: Path, *, seconds: float, seed: int) -> None:
    """Record a performer with markers and sensors, solve both and write all files."""
    make_folder(folder)
    performer = synth.human(height=1.8, seed=seed)
    _write_all(folder, performer, seconds=seconds, seed=seed)
    sensor_recording = performer.record(
        "exercise", seconds=20.0, markers="none", sensors=True, noise=2e-3, seed=seed
    )
    _solve(sensor_recording, folder / "sensors.csv", "2 mm noise", SolveOptions())
    marker_recording = performer.record(
        "chicken_walk",
        seconds=12.0,
        markers="set53",
        noise=1e-3,
        soft_tissue=3e-3,
        gaps=0.05,
        swaps=1,
        slips=1,
        # Not the seed of the performer: with the default seed, the slip is visible.
        seed=seed + 1,
    )
    what = (
        "labels not used, 1 mm noise, 3 mm of skin motion, 5 % missing, two labels "
        "swapped, one marker slipped"
    )
    unlabelled = SolveOptions(segment="overlap")
    solution = _solve(marker_recording, folder / "markers.c3d", what, unlabelled)
    page = folder / "performer.html"
    write(solution, page, truth=marker_recording.truth.motions, overwrite=True)
    out.print("\nThe solution and the truth, to open in any browser:")
    out.print(str(page.resolve()), soft_wrap=True)


def _write_all(
    folder: Path,
    performer: synth.Figure,
    *,
    seconds: float,
    seed: int,
) -> None:
    """Write a walk and its truth in several formats, and print round-trip errors."""
    take = performer.record(
        motion="walk",
        seconds=seconds,
        markers="set53",
        noise=1e-3,
        gaps=0.05,
        seed=seed,
    )
    (motion,) = take.truth.motions
    out.print(
        f"[bold]{performer.name}[/] of {performer.skeleton.n_joints} joints, "
        f"{seconds:g} s walk: {len(take.labels)} markers at {take.rate:g} Hz, "
        f"1 mm noise, {1.0 - take.seen.mean():.1%} missing, "
        f"{len(motion.contacts)} foot plants"
    )
    table = Table("file", "content", "largest round-trip error", box=None)
    for name in ("walk.c3d", "walk.trc", "walk.csv", "walk.npz"):
        write(take, folder / name, overwrite=True)
        copy = read(folder / name)
        error_m = float(np.nanmax(np.abs(copy.points - take.points)))
        table.add_row(str(folder / name), "recording", f"{error_m * 1e6:.2g} µm")
    for name in ("walk.bvh", "walk.amc", "truth.npz"):
        write(motion, folder / name, overwrite=True)
        error_m = float(
            np.abs(_centre_errors(read_motion(folder / name), motion)).max()
        )
        table.add_row(str(folder / name), "true motion", f"{error_m * 1e6:.2g} µm")
    write(performer.skeleton, folder / "performer.skel.json", overwrite=True)
    table.add_row(str(folder / "performer.skel.json"), "true skeleton", "")
    out.print(table)


def _solve(
    take: synth.Recording,
    path: Path,
    what: str,
    options: SolveOptions,
) -> Solution:
    """Write and solve a recording, print its errors and return the solution."""
    write(take, path, overwrite=True)
    with show_solve_progress(f"solving {path.name}") as report_stage:
        solution = solve(path, options=options, progress=report_stage)
    motion_path = path.with_name(f"{path.stem}_solved.bvh")
    write(solution, motion_path, overwrite=True)
    seconds = sum(solution.report.seconds.values())
    count = f"{len(take.labels)} markers" if take.labels else ""
    count = count or f"{len(take.sensor_names)} sensors"
    out.print(
        f"\n[bold]{path}[/]: {count}, {what}, {take.n_frames} frames; solved in "
        f"{seconds:.2f} s to {motion_path}; errors against the truth:"
    )
    out.print(str(compare(solution, take)))
    repairs = _repairs(take, solution)
    if repairs.row_count:
        out.print(repairs)
    return solution


def _repairs(take: synth.Recording, solution: Solution) -> Table:
    """Return the swaps and slips of a recording, and which of them were detected."""
    table = Table("fault", "detected", box=None)
    labels, findings = take.full_labels, solution.report.findings
    for change in take.truth.changes("swaps"):
        a, b = sorted((labels[change.index], labels[change.other]))
        detected = [
            f"frames {finding.frames[0]} to {finding.frames[1]}"
            for finding in findings
            if finding.code == "labels-swapped"
            and finding.subject in (f"{a}-{b}", f"{b}-{a}")
        ]
        fault = f"{a} and {b} swapped in frames {change.first} to {change.last}"
        table.add_row(fault, "; ".join(detected) or "not detected")
    for change in take.truth.changes("slips"):
        label = labels[change.index] if labels else ""
        detected = [
            f"frame {finding.frames[0]}, by {1e3 * finding.value:.0f} mm"
            for finding in findings
            if finding.code == "marker-slipped" and finding.subject == label
        ]
        fault = f"{label} slipped at frame {change.first} by {1e3 * change.size:.0f} mm"
        table.add_row(fault, "; ".join(detected) or "not detected")
    return table


def _centre_errors(motion: Motion, truth: Motion) -> np.ndarray:
    """Return the errors of joint centres, matched by name, in metres."""
    order = [motion.skeleton.index(name) for name in truth.skeleton.names]
    centres = motion.T_world_joint()[:, order][..., :3, 3]
    return np.asarray(centres - truth.T_world_joint()[..., :3, 3])
