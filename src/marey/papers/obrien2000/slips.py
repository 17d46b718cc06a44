"""OBrien2000: sensors that slip during a recording (Sec. 5)."""

import numpy as np

from marey import synth
from marey.cleaning import find_sensor_slips
from marey.joints import fit_joints
from marey.papers.experiment import Effort, Experiment
from marey.papers.obrien2000.exact import RATE
from marey.report import Table
from marey.segmentation import segment
from marey.synth import Recording
from marey.topology import infer_tree

SLIPS = (0.0, 3.0, 5.0, 8.0, 12.0, 20.0)
RUNS, SECONDS = 30, 30.0


def record_slip(size: float, seed: int) -> Recording:
    """Return a person of whose 15 sensors one slips, by some millimetres."""
    return synth.human(seed=seed).record(
        "exercise",
        sensors=True,
        markers="none",
        seconds=SECONDS,
        rate=RATE,
        seed=seed,
        noise=0.005,
        turn_noise=0.0087,
        slips=int(size > 0.0),
        slip_size=1e-3 * size,
    )


def found_in(take: Recording) -> list[tuple[bool, int]]:
    """Return of every slip found if it is the right sensor, and how many frames off."""
    bodies = segment(take)
    fits = fit_joints(bodies, estimator="corrected")
    slips = find_sensor_slips(bodies, fits, infer_tree(fits))
    true = take.truth.changes("slips")
    return [
        (
            any(take.sensor_names[c.index] == slip.sensor for c in true),
            min((abs(slip.frame - c.first) for c in true), default=-1),
        )
        for slip in slips
    ]


def slips(effort: Effort) -> Experiment:
    """Sensors that slip: how small a slip is found, and when."""
    runs = effort.runs(RUNS)
    rows: list[tuple[str | float, ...]] = []
    for k, size in enumerate(SLIPS):
        effort.say(f"slips: {size:g} mm")
        first = 1000 * (effort.seed + k)
        found = [found_in(record_slip(size, first + run)) for run in range(runs)]
        hits = [off for one in found for right, off in one if right]
        extra = sum(not right for one in found for right, _ in one)
        seen = sum(any(right for right, _ in one) for one in found)
        rows.append(
            (
                f"{size:g}",
                round(100.0 * seen / runs, 1) if size else "",
                float(np.median(hits)) if hits else "",
                round(100.0 * extra / runs, 1),
            )
        )
    columns = ("slip mm", "found %", "frames off", "wrong sensors per 100 takes")
    return Experiment(
        title="Sensors that slip (Sec. 5)",
        tables={
            f"One of 15 sensors, noise 5 mm and 0.5°, {runs} takes a row": Table(
                columns, tuple(rows)
            )
        },
        note="The paper proposes to look for changes of the residual and gives no "
        "figures. A slip counts as found when the right sensor is named.",
    )
