"""OBrien2000: sensors that slip during a recording (Sec. 5)."""

import numpy as np

from marey import synth
from marey.cleaning import find_sensor_slips
from marey.joints import fit_joints
from marey.papers.experiment import Effort, Experiment
from marey.papers.measures import Cells
from marey.papers.obrien2000.exact import RATE
from marey.papers.recordings import record_sensors
from marey.report import Table
from marey.segmentation import segment
from marey.synth import Recording
from marey.topology import infer_tree

SLIPS_MM = (0.0, 3.0, 5.0, 8.0, 12.0, 20.0)
RUNS, SECONDS = 30, 30.0


def record_slip(size: float, seed: int) -> Recording:
    """Return a person in 15 sensors, one of which slips.

    Args:
        size: Distance of the slip in millimetres; 0 = no slip.
        seed: Draws the performance, the sensor and the noise.
    """
    return record_sensors(
        synth.human(seed=seed),
        "exercise",
        seconds=SECONDS,
        rate=RATE,
        seed=seed,
        noise=0.005,
        turn_noise=0.0087,
        slips=int(size > 0.0),
        slip_size=1e-3 * size,
    )


def score_slips(take: Recording) -> list[tuple[bool, int]]:
    """Return, for every slip found, whether the sensor is right and the frame error."""
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
    """Detection rate of sensor slips against their size (Sec. 5)."""
    runs = effort.runs(RUNS)
    rows: list[Cells] = []
    for k, size in enumerate(SLIPS_MM):
        effort.report(f"slips: {size:g} mm")
        first = 1000 * (effort.seed + k)
        scores = [score_slips(record_slip(size, first + run)) for run in range(runs)]
        frame_errors = [off for run in scores for right, off in run if right]
        false_alarms = sum(not right for run in scores for right, _ in run)
        detected = sum(any(right for right, _ in run) for run in scores)
        rows.append(
            (
                f"{size:g}",
                round(100.0 * detected / runs, 1) if size else "",
                float(np.median(frame_errors)) if frame_errors else "",
                round(100.0 * false_alarms / runs, 1),
            )
        )
    columns = (
        "slip mm",
        "found %",
        "frame error, median",
        "wrong sensors per 100 takes",
    )
    return Experiment(
        title="Sensors that slip (Sec. 5)",
        tables={
            f"One of 15 sensors, noise 5 mm and 0.5°, {runs} takes a row": Table(
                columns, tuple(rows)
            )
        },
        note="The paper proposes to look for changes of the residual and gives no "
        "figures. A slip is found if the right sensor is reported.",
    )
