"""Zordan2003: real recordings of punches and walks, where they are to be had."""

from pathlib import Path

import numpy as np

from marey import io
from marey.papers._deaguiar_cmu import recordings
from marey.papers._experiment import Drawing, Effort, Experiment
from marey.papers._zordan_pictures import filmstrip, spaced
from marey.pose import physics
from marey.report import Table
from marey.solve import solve

TAKES = {"02_05": ("punches and strikes", 0.17), "02_01": ("a walk", 0.5)}
"""Recordings of the CMU graphics lab: what they show, seconds between stills."""

FRAMES = 400


def recorded(effort: Effort) -> Experiment:
    """A fighter and a walker of the CMU graphics lab, if recordings are there."""
    folder = recordings()
    rows: list[tuple[str | float, ...]] = []
    figures: dict[str, Drawing] = {}
    for name, (what, spacing) in TAKES.items():
        if folder is not None:
            effort.say(f"recordings: {name}")
            row, drawing = _mapped(folder / f"{name}.c3d", what, spacing)
            rows.append(row)
            figures[f"recording-{name}"] = drawing
    columns = (
        "take",
        "markers off mm, median",
        "rms",
        "springs off %",
        "simulation off the least energy mm, worst",
        "steps per frame",
        "frames not at rest",
    )
    return Experiment(
        title="Real punches and walks (Secs. 4.1 and 4.2)",
        tables={"Mapped by simulation": Table(columns, tuple(rows))},
        note="The skeleton comes from the recording itself, which the paper wished "
        f"for; the first {FRAMES} frames are mapped. There is no truth here. Set "
        "MAREY_DATA to a folder that holds the recordings in cmu; without it the "
        "table is empty.",
        figures=figures,
    )


def _mapped(
    path: Path, what: str, spacing: float
) -> tuple[tuple[str | float, ...], Drawing]:
    """Return a row of the table, and a filmstrip."""
    whole = io.read(path)
    skeleton = solve(whole).skeleton
    take = whole.cut(0, min(FRAMES, whole.n_frames))
    direct, simulated = (
        physics.fit(skeleton, take, settle=settle)
        for settle in ("direct", "simulation")
    )
    away = simulated.away[np.isfinite(simulated.away) & ~simulated.off]
    apart = simulated.motion.T_world_joint() - direct.motion.T_world_joint()
    row = (
        f"{path.stem}, {what}",
        round(1e3 * float(np.median(away)), 1),
        round(1e3 * float(np.sqrt(np.mean(away**2))), 1),
        round(100.0 * float(simulated.off.mean()), 2),
        round(1e3 * float(np.linalg.norm(apart[..., :3, 3], axis=-1).max()), 3),
        round(float(simulated.steps.mean()), 0),
        float(simulated.restless.sum()),
    )
    motion = simulated.motion
    strip = spaced(motion, 0.2, spacing, 7)
    return row, filmstrip(motion, strip, f"{path.stem}: {what}, {spacing:g} s apart")
