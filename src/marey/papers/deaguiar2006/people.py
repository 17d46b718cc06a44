"""DeAguiar2006, Secs. 5 and 6: people, with bones of constant length."""

import numpy as np

from marey import synth
from marey.joints import fit_joints
from marey.numerics.robust import LOCATIONS
from marey.papers.deaguiar2006.plots import figure_2_drawing
from marey.papers.deaguiar2006.stick_figure import StickFigure, build_stick_figure
from marey.papers.experiment import Effort, Experiment
from marey.papers.measures import Cells, rms
from marey.report import Table
from marey.segmentation import segment
from marey.synth import Recording
from marey.topology import infer_tree

RATE, SECONDS = 60.0, 10.0

SEQUENCES = {
    "figure-2": ("exercise", "Exercises", (125, 225, 350, 500)),
    "figure-3": ("kick_punch", "Kicks and punches", (175, 75, 150, 400)),
}
"""Motion, title and frames of drawings like those of the paper."""


def record_person(motion: str, seed: int) -> Recording:
    """Return a person of 110 unlabelled markers on skin that slides by 2 mm rms."""
    return synth.human(seed=seed).record(
        motion,
        seconds=SECONDS,
        rate=RATE,
        markers="dense110",
        labels=False,
        seed=seed,
        noise=5e-4,
        soft_tissue=2e-3,
    )


def people(effort: Effort) -> Experiment:
    """Bodies, joints and constant bones of two people, drawn."""
    tables, drawings = {}, {}
    for name, (motion, title, frames) in SEQUENCES.items():
        effort.report(f"people: {motion}")
        take = record_person(motion, effort.seed)
        bodies = segment(take)
        fits = fit_joints(bodies)
        stick = build_stick_figure(bodies, fits, infer_tree(fits))
        drawings[name] = figure_2_drawing(take, bodies, stick, frames, title)
        tables[f"Bones before and after Sec. 5: {motion}"] = _length_table(stick)
    return Experiment(
        title="People, and constant bones (Sec. 5, Figs. 2 and 3)",
        tables=tables,
        note=(
            "A joint is drawn midway between its centres in both bodies. As the two "
            "separate, bone lengths vary; Sec. 5 gives each bone one length, from root "
            "to leaf. The last column is the distance that this moves the joints. The "
            "median minimises Eq. 6 as printed, the mean minimises Eq. 5."
        ),
        figures=drawings,
    )


def _length_table(stick: StickFigure) -> Table:
    """Return the variation of bone lengths before and after they are made constant."""
    rows: list[Cells] = []
    inner = np.setdiff1d(np.flatnonzero(stick.parent >= 0), stick.ends)
    for method in LOCATIONS:
        constant = stick.with_constant_lengths(method)
        moved = np.linalg.norm(constant.positions - stick.positions, axis=-1)
        variations = [
            float(np.mean(np.std(figure.lengths()[:, inner], axis=0)))
            for figure in (stick, constant)
        ]
        cells = (*variations, rms(moved[:, inner]))
        rows.append((method, *(round(1e3 * value, 3) for value in cells)))
    columns = ("length", "varies before mm", "after mm", "joints moved mm rms")
    return Table(columns, tuple(rows))
