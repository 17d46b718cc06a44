"""Zordan2003, Secs. 2.2, 4 and 5: one template of markers for several performers."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

import marey
from marey.papers import measures
from marey.papers.frame import Cells, Effort, Experiment, experiment, table
from marey.papers.plots import dots_drawing
from marey.papers.zordan2003.performances import (
    PUBLISHED_OPTIONS,
    RecordedPerformance,
    marker_residuals,
    record_performance,
)

PERFORMERS, SECONDS = 100, 3.4


def by_template(case: RecordedPerformance) -> marey.Motion:
    """Return the poses of the average skeleton with the template's markers."""
    return marey.solve_pose(case.average, case.recording, method="physics")


def by_two_bodies(case: RecordedPerformance) -> marey.Motion:
    """Return the same with markers near a joint on both bodies (Sec. 2.2)."""
    within = PUBLISHED_OPTIONS["shared_within"]
    return marey.solve_pose(
        case.average, case.recording, method="physics", shared_within=within
    )


def by_fitted_markers(case: RecordedPerformance) -> marey.Motion:
    """Return the poses of the average skeleton, its markers fitted to the take."""
    options = marey.CalibrateOptions(keep_bones=True)
    found = marey.calibrate(case.average, case.recording, options=options)
    return marey.solve_pose(found.skeleton, case.recording, method="physics")


METHODS: Mapping[str, Callable[[RecordedPerformance], marey.Motion]] = {
    "template": by_template,
    "template, two bodies": by_two_bodies,
    "template, then fitted": by_fitted_markers,
}


@experiment("One template for several performers (Secs. 2.2, 4 and 5)")
def templates(effort: Effort) -> Experiment:
    """One template of a marker set on several performers (Secs. 2.2, 4 and 5).

    Every performer kicks and punches. The average skeleton is scaled to the height;
    builds differ by some 3 % of a limb, and template and performer have each marker
    some 7 mm off its landmark, independently. `template` puts the markers on the
    skeleton by `marey.attach.place_template`; `two bodies` lets markers within
    {within:.0f} cm of a joint pull both bodies. `fitted` moves the markers on the same
    bones to where the take shows them (`marey.calibrate`): they are met more closely,
    and joints are no better, since a few seconds of kicks do not determine how head,
    hands and feet lie between their markers, which the template does.
    """
    errors: dict[str, list[float]] = {name: [] for name in METHODS}
    residuals: dict[str, list[float]] = {name: [] for name in METHODS}
    n_performers = effort.runs(PERFORMERS)
    for k in range(n_performers):
        effort.report(f"template: performer {k + 1} of {n_performers}")
        seeded = replace(effort, seed=effort.seed + k)
        case = record_performance("kick_punch", SECONDS, seeded)
        for name, solve in METHODS.items():
            motion = solve(case)
            off = measures.joint_errors(motion, case.recording)
            errors[name].append(1e3 * measures.rms(off))
            residual = marker_residuals(motion, case.recording)
            residuals[name].append(1e3 * float(np.mean(residual)))
    rows: list[Cells] = [
        (
            name,
            *measures.rounded(
                float(np.mean(errors[name])),
                min(errors[name]),
                max(errors[name]),
                float(np.mean(residuals[name])),
            ),
        )
        for name in METHODS
    ]
    header = (
        "markers | joint error mm, rms, mean | least | most | marker residual mm, mean"
    )
    drawing = dots_drawing(
        "Joints of the average skeleton, one dot per performer",
        {"": {name.replace(", ", ",\n"): errors[name] for name in METHODS}},
        ("how its markers are placed", "joint error, mm rms"),
    )
    return Experiment(
        tables={f"{n_performers} performers": table(header, rows)},
        facts={"within": 100.0 * PUBLISHED_OPTIONS["shared_within"]},
        figures={"templates": drawing},
    )
