"""OBrien2000, Secs. 3.3 and 4: how often the inferred hierarchy is the true one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from marey import synth
from marey.joints import fit_joints
from marey.papers.experiment import Effort, Experiment
from marey.papers.measures import Cells
from marey.papers.obrien2000.exact import RATE, is_true_tree
from marey.papers.plots import rates_drawing
from marey.papers.recordings import record_sensors
from marey.report import Table
from marey.segmentation import segment
from marey.synth import Recording
from marey.topology import infer_tree

RUNS, SECONDS = 100, 20.0

MOTIONS = {"exercise": "exercise", "chicken_walk": "chicken walk", "walk": "plain walk"}
SLIDES_MM = (0.0, 15.0, 30.0, 45.0)

WEIGHTS = ("residual", "normalised", "mediated", "auto")
PUBLISHED = {
    ("exercise", 0.0): "5 of 5",
    ("chicken_walk", 0.0): "2 of 5",
}


@dataclass(frozen=True, slots=True)
class HierarchySetting:
    """Motion and noise of a recording of a person."""

    motion: str
    slide: float = 0.0
    """Slide of the pelvis sensor in mm rms; it rotates by a third of it in degrees."""

    noise: float = 5.0
    """White noise of positions, in mm."""

    turn_noise: float = 0.5
    """White noise of rotations, in degrees."""


SETTINGS = (
    *(HierarchySetting(motion, slide) for motion in MOTIONS for slide in SLIDES_MM),
    HierarchySetting("exercise", 0.0, 30.0, 3.0),
    HierarchySetting("chicken_walk", 0.0, 30.0, 3.0),
    HierarchySetting("walk", 0.0, 15.0, 2.0),
    HierarchySetting("walk", 0.0, 30.0, 3.0),
)


def record_setting(setting: HierarchySetting, seed: int) -> Recording:
    """Return 20 s of a person in 15 sensors with a loose pelvis sensor."""
    return record_sensors(
        synth.human(seed=seed),
        setting.motion,
        seconds=SECONDS,
        rate=RATE,
        seed=seed,
        noise=1e-3 * setting.noise,
        turn_noise=float(np.radians(setting.turn_noise)),
        soft_tissue=1e-3 * setting.slide,
        soft_tissue_turn=float(np.radians(setting.slide / 3.0)),
        soft_tissue_on=("Hips",),
    )


def rate_of_true_trees(
    setting: HierarchySetting, seeds: Sequence[int]
) -> dict[str, float]:
    """Return the fraction of trees that are the true one, by edge weight."""
    n_true = dict.fromkeys(WEIGHTS, 0)
    for seed in seeds:
        take = record_setting(setting, seed)
        bodies = segment(take)
        published = fit_joints(bodies, estimator="least_squares", mediation=False)
        # Maximum likelihood changes centres, not trees, and takes four times as long.
        corrected = fit_joints(bodies, estimator="corrected")
        for weight in WEIGHTS:
            fits = published if weight == "residual" else corrected
            n_true[weight] += is_true_tree(infer_tree(fits, weight=weight), take)
    return {weight: count / len(seeds) for weight, count in n_true.items()}


def hierarchy(effort: Effort) -> Experiment:
    """Rate of true hierarchies against the slide of the pelvis sensor (Sec. 3.3)."""
    runs = effort.runs(RUNS)
    rows: list[Cells] = []
    lines: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for k, setting in enumerate(SETTINGS):
        name = MOTIONS[setting.motion]
        noise = f"{setting.noise:g} mm {setting.turn_noise:g}°"
        effort.report(f"hierarchy: {name}, {setting.slide:g} mm, noise {noise}")
        first = 1000 * (effort.seed + k)
        rate = rate_of_true_trees(setting, range(first, first + runs))
        default_noise = setting.noise == HierarchySetting("").noise
        paper = (
            PUBLISHED.get((setting.motion, setting.slide), "") if default_noise else ""
        )
        percent = [round(100.0 * rate[weight], 1) for weight in WEIGHTS]
        rows.append((name, f"{setting.slide:g}", noise, paper, *percent))
        if default_noise:
            for weight, value in zip(WEIGHTS, percent, strict=True):
                panel = lines.setdefault(name, {}).setdefault(weight, [])
                panel.append((setting.slide, value))
    columns = ("motion", "slide mm", "noise", "paper", *WEIGHTS[:-1], "ours")
    return Experiment(
        title="Hierarchy of 15 bodies (Sec. 3.3)",
        tables={f"True trees, % of {runs} people, 20 s": Table(columns, tuple(rows))},
        note="The pelvis sensor slides and rotates with the hips and the waist, as the "
        "paper's may have done on its battery pack; how far is unknown. The walks of "
        "the paper were chicken walks. Residual is the paper's edge weight; "
        "`marey.infer_tree` documents the others.",
        figures={"hierarchy": rates_drawing(lines)},
    )
