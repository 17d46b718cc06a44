"""Joint positions of whole solves under gaps, swaps and slips, by two generators.

An exercise with labels and 1 mm of noise. Slips of the independent generator are 3 cm.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from benchmarks.accuracy.subjects import GENERATORS, record, score_joints, solve_timed
from benchmarks.harness.task import Row, Setting, with_means

HEADLINE = "joints, rms [mm]"
KEY_CASES = ("*, mean",)
DAMAGES: Mapping[str, Mapping[str, Any]] = {
    "noise alone": {},
    "gaps, 10 %": {"gaps": 0.1},
    "gaps, 30 %": {"gaps": 0.3},
    "6 swaps": {"swaps": 6},
    "3 slips": {"slips": 3},
    "all": {"gaps": 0.1, "swaps": 6, "slips": 3},
}


def measure(setting: Setting) -> Iterator[Row]:
    yield from with_means(score_people(setting))


def score_people(setting: Setting) -> Iterator[Row]:
    """Yield the row of every person."""
    seconds, seeds = setting.choose((15.0, range(3)), (6.0, range(1)))
    for generator, (name, damage), seed in product(GENERATORS, DAMAGES.items(), seeds):
        case = f"{generator}, {name}, person {seed}"
        if not setting.wants(case):
            continue
        subject = record(generator, "exercise", seconds=seconds, seed=seed, **damage)
        solution, cpu = solve_timed(subject.take)
        yield Row(case, {**score_joints(solution, subject), "CPU [s]": cpu})
