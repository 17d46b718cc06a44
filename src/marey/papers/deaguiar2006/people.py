"""DeAguiar2006, Secs. 5 and 6: people, with bones of constant length."""

import numpy as np

from marey import synth
from marey.joints import fit_joints
from marey.numerics.robust import LOCATIONS
from marey.papers.deaguiar2006.pictures import figure_2
from marey.papers.deaguiar2006.stick import Stick, stick_of
from marey.papers.experiment import Effort, Experiment
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
    """Return a person of 110 unnamed markers on skin that slides a little."""
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
        effort.say(f"people: {motion}")
        take = record_person(motion, effort.seed)
        bodies = segment(take)
        fits = fit_joints(bodies)
        stick = stick_of(bodies, fits, infer_tree(fits))
        drawings[name] = figure_2(take, bodies, stick, frames, title)
        tables[f"Bones before and after Sec. 5: {motion}"] = _bones(stick)
    return Experiment(
        title="People, and constant bones (Sec. 5, Figs. 2 and 3)",
        tables=tables,
        note=(
            "Joints are found in both bodies and drawn midway; as the two drift apart "
            "the bones vary, until each gets one length, root to leaf. The last column "
            "is how far that moves the joints. The median makes Eq. 6 least as it is "
            "printed, the mean Eq. 5."
        ),
        figures=drawings,
    )


def _bones(stick: Stick) -> Table:
    rows = []
    before = stick.lengths()
    inner = np.setdiff1d(np.flatnonzero(stick.parent >= 0), stick.ends)
    for method in LOCATIONS:
        fixed = stick.with_constant_lengths(method)
        moved = np.linalg.norm(fixed.positions - stick.positions, axis=-1)[:, inner]
        after = fixed.lengths()[:, inner]
        rows.append(
            (
                method,
                round(1e3 * float(np.mean(np.std(before[:, inner], axis=0))), 3),
                round(1e3 * float(np.mean(np.std(after, axis=0))), 3),
                round(1e3 * float(np.sqrt(np.mean(moved**2))), 3),
            )
        )
    columns = ("length", "varies before mm", "after mm", "joints moved mm rms")
    return Table(columns, tuple(rows))
