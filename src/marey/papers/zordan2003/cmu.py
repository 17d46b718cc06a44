"""Zordan2003: real recordings of punches and walks, if they are on disk."""

from time import perf_counter

import numpy as np

from marey import io
from marey.editing import solve
from marey.motion import Motion
from marey.papers.experiment import Drawing, Effort, Experiment
from marey.papers.measures import (
    Cells,
    joint_distances,
    rms_acceleration,
    round_to_digits,
)
from marey.papers.recordings import HOW_TO_GET_RECORDINGS, find_recording
from marey.papers.zordan2003.plots import evenly_spaced_frames, filmstrip
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

MAPPING_COLUMNS = (
    "take",
    "marker residual mm, mean",
    "max",
    "springs switched off %",
    "distance from the least energy mm, max",
    "steps per frame",
    "frames not at rest",
    "frames/s",
)

CONTACT_COLUMNS = (
    "take",
    "plants",
    "skate mm/s",
    "with the ground",
    "held",
    "joints moved by holding mm, max",
    "acceleration m/s², rms",
    "held",
    "frames/s",
)


def real_recordings(effort: Effort) -> Experiment:
    """Fighters and walkers of the CMU graphics lab, if recordings are there."""
    mapping: list[Cells] = []
    contact: list[Cells] = []
    figures: dict[str, Drawing] = {}
    for name, (content, spacing) in TAKES.items():
        path = find_recording(f"cmu/{name}.c3d")
        if path is None:
            continue
        effort.report(f"recordings: {name}")
        whole = io.read(path)
        skeleton = solve(whole).skeleton
        take = whole.cut(0, min(FRAMES, whole.n_frames))
        row, simulated = _map_by_simulation(skeleton, take)
        mapping.append((f"{name}, {content}", *row))
        row, held = _hold_feet(skeleton, take)
        contact.append((f"{name}, {content}", *row))
        title = f"{name}: {content}, {spacing:g} s apart"
        for suffix, more, motion in (
            ("", "", simulated),
            ("-held", ", feet held", held),
        ):
            strip = evenly_spaced_frames(motion, 0.2, spacing, 7)
            figures[f"recording-{name}{suffix}"] = filmstrip(
                motion, strip, title + more
            )
    return Experiment(
        title="Real punches and walks (Secs. 4.1 and 4.2)",
        tables={
            "Mapped by simulation": Table(MAPPING_COLUMNS, tuple(mapping)),
            "Feet": Table(CONTACT_COLUMNS, tuple(contact)),
        },
        note="The skeleton is estimated from the recording itself, which the paper "
        f"wished for; the first {FRAMES} frames are mapped. There is no truth here, "
        "and no soles: markers on top of feet determine plants but no floor, so that "
        f"penetration is unknown. {HOW_TO_GET_RECORDINGS}",
        figures=figures,
    )


def _map_by_simulation(skeleton: Skeleton, take: Take) -> tuple[Cells, Motion]:
    """Return the cells of the first table and the simulated motion of a take."""
    direct = fit.fit_physics(skeleton, take)
    start = perf_counter()
    simulated = fit.fit_physics(skeleton, take, settle="simulation")
    seconds = perf_counter() - start
    residual = simulated.residual_m[
        np.isfinite(simulated.residual_m) & ~simulated.is_cut_off
    ]
    cells = (
        1e3 * float(residual.mean()),
        1e3 * float(residual.max()),
        100.0 * float(simulated.is_cut_off.mean()),
        1e3 * float(joint_distances(simulated.motion, direct.motion).max()),
        float(simulated.steps.mean()),
    )
    rest = (
        float(simulated.not_converged.sum()),
        round_to_digits(take.n_frames / seconds),
    )
    return (*map(round_to_digits, cells), *rest), simulated.motion


def _hold_feet(skeleton: Skeleton, take: Take) -> tuple[Cells, Motion]:
    """Return the cells of the second table and the motion with its feet held."""
    start = perf_counter()
    free = fit.fit_physics(skeleton, take).motion
    footing = find_ground_contacts(free, take)
    held, held_footing = enforce_contacts(free, footing)
    seconds = perf_counter() - start
    ground = fit.fit_physics(skeleton, take, ground="found").motion
    cells = (
        1e3 * footing.skate(free),
        1e3 * held_footing.skate(ground),
        1e3 * held_footing.skate(held),
        1e3 * float(joint_distances(held, free).max()),
        rms_acceleration(free),
        rms_acceleration(held),
        take.n_frames / seconds,
    )
    return (len(held_footing.plants), *map(round_to_digits, cells)), held
