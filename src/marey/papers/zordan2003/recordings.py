"""Zordan2003: real recordings of punches and walks, where they are to be had."""

from time import perf_counter

import numpy as np

from marey import io
from marey.motion import Motion
from marey.papers.deaguiar2006.cmu import recordings
from marey.papers.experiment import Drawing, Effort, Experiment
from marey.papers.zordan2003.examples import roughness, three
from marey.papers.zordan2003.pictures import filmstrip, spaced
from marey.pipeline import solve
from marey.pose.contact.ground_contacts import enforce_contacts, find_ground_contacts
from marey.pose.physics import fit
from marey.report import Table
from marey.skeleton import Skeleton
from marey.take import Take

TAKES = {
    "02_05": ("punches and strikes", 0.17),
    "02_01": ("a walk", 0.5),
    "07_01": ("a walk", 0.5),
    "07_12": ("a brisk walk", 0.5),
}
"""Recordings of the CMU graphics lab: what they show, seconds between stills."""

FRAMES = 400

MAPPED = (
    "take",
    "markers off mm, mean",
    "worst",
    "springs off %",
    "simulation off the least energy mm, worst",
    "steps per frame",
    "frames not at rest",
    "frames/s",
)

STANDING = (
    "take",
    "plants",
    "skate mm/s",
    "with the ground",
    "held",
    "farthest that holding moves a joint mm",
    "acceleration m/s², rms",
    "held",
    "frames/s",
)


def recorded(effort: Effort) -> Experiment:
    """Fighters and walkers of the CMU graphics lab, if recordings are there."""
    folder = recordings()
    mapped: list[tuple[str | float, ...]] = []
    standing: list[tuple[str | float, ...]] = []
    figures: dict[str, Drawing] = {}
    for name, (what, spacing) in TAKES.items():
        if folder is None:
            break
        effort.say(f"recordings: {name}")
        whole = io.read(folder / f"{name}.c3d")
        skeleton = solve(whole).skeleton
        take = whole.cut(0, min(FRAMES, whole.n_frames))
        row, motion = _mapped(skeleton, take)
        mapped.append((f"{name}, {what}", *row))
        row, held = _stood(skeleton, take)
        standing.append((f"{name}, {what}", *row))
        for key, shown in (("", motion), ("-held", held)):
            strip = spaced(shown, 0.2, spacing, 7)
            title = f"{name}: {what}, {spacing:g} s apart{key.replace('-', ', feet ')}"
            figures[f"recording-{name}{key}"] = filmstrip(shown, strip, title)
    return Experiment(
        title="Real punches and walks (Secs. 4.1 and 4.2)",
        tables={
            "Mapped by simulation": Table(MAPPED, tuple(mapped)),
            "Feet": Table(STANDING, tuple(standing)),
        },
        note="The skeleton comes from the recording itself, which the paper wished "
        f"for; the first {FRAMES} frames are mapped. There is no truth here, and no "
        "soles: markers on top of feet tell plants but no floor, so that penetration "
        "is not known. Set MAREY_DATA to a folder that holds the recordings in cmu; "
        "without it the tables are empty.",
        figures=figures,
    )


def _mapped(skeleton: Skeleton, take: Take) -> tuple[tuple[str | float, ...], Motion]:
    """Return what the simulation makes of a take."""
    direct = fit.fit_physics(skeleton, take)
    start = perf_counter()
    simulated = fit.fit_physics(skeleton, take, settle="simulation")
    seconds = perf_counter() - start
    away = simulated.residual_m[
        np.isfinite(simulated.residual_m) & ~simulated.is_cut_off
    ]
    apart = simulated.motion.T_world_joint() - direct.motion.T_world_joint()
    row = (
        three(1e3 * float(away.mean())),
        three(1e3 * float(away.max())),
        three(100.0 * float(simulated.is_cut_off.mean())),
        three(1e3 * float(np.linalg.norm(apart[..., :3, 3], axis=-1).max())),
        three(float(simulated.steps.mean())),
        float(simulated.not_converged.sum()),
        three(take.n_frames / seconds),
    )
    return row, simulated.motion


def _stood(skeleton: Skeleton, take: Take) -> tuple[tuple[str | float, ...], Motion]:
    """Return how the feet of a take stand, before and after."""
    start = perf_counter()
    loose = fit.fit_physics(skeleton, take).motion
    footing = find_ground_contacts(loose, take)
    held, firm = enforce_contacts(loose, footing)
    seconds = perf_counter() - start
    ground = fit.fit_physics(skeleton, take, ground="found").motion
    moved = (held.T_world_joint() - loose.T_world_joint())[..., :3, 3]
    row = (
        len(firm.plants),
        three(1e3 * footing.skate(loose)),
        three(1e3 * firm.skate(ground)),
        three(1e3 * firm.skate(held)),
        three(1e3 * float(np.linalg.norm(moved, axis=-1).max())),
        three(roughness(loose)),
        three(roughness(held)),
        three(take.n_frames / seconds),
    )
    return row, held
