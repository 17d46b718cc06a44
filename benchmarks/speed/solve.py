"""Whole solves, warm: processor time, memory and errors of the same run.

A performer walks, with 1 mm of noise and 3 mm of soft-tissue artefact at 100 Hz. "x
take" is the peak of memory above that before, over the size of the points.
"""

from collections.abc import Iterator

import marey
from benchmarks.harness.task import Row, Setting
from benchmarks.harness.timing import MIB, peak_memory, time_call
from marey.anatomy.naming import find_names

HEADLINE = "CPU [s]"
RATE = 100.0


def measure(setting: Setting) -> Iterator[Row]:
    performer = marey.synth.human(seed=0)
    frames = setting.choose(4000, 600)
    for markers, method in (
        ("set53", "labels"),
        ("set53", "overlap"),
        ("dense110", "overlap"),
    ):
        take = performer.record(
            "chicken_walk",
            markers=markers,
            seconds=frames / RATE,
            rate=RATE,
            noise=1e-3,
            soft_tissue=3e-3,
        )
        labels = "labelled" if method == "labels" else "without labels"
        case = f"{len(take.labels)} x {take.n_frames}, {labels}"
        if setting.wants(case):
            yield measure_solve(case, take, method, setting)


def measure_solve(
    case: str, take: marey.synth.Recording, method: str, setting: Setting
) -> Row:
    """Return the row of one take."""
    options = marey.SolveOptions(segment=method)

    def solve() -> marey.Solution:
        find_names.cache_clear()  # or repeats would know the names of the figure
        return marey.solve(take, options=options)

    timing = time_call(solve, setting)
    peak, solution = peak_memory(lambda: marey.solve(take, options=options))
    score = marey.metrics.compare(solution, take)
    stages = sorted(solution.report.seconds.items(), key=lambda one: -one[1])
    return Row(
        case,
        {
            "CPU [s]": timing.cpu,
            "wall [s]": timing.wall,
            "peak [MiB]": peak,
            "x take": peak * MIB / take.points.nbytes,
            "ARI": score.bodies[0].ari,
            "joint positions [mm]": 1e3 * score.motions[0].position,
            "bones [mm]": 1e3 * score.skeletons[0].rms,
            **{f"{stage} [s]": seconds for stage, seconds in stages[:4]},
        },
    )
