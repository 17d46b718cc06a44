"""Bodies, tree and joints without labels, by two generators.

Every solve is also timed: accuracy and speed are those of the same run.
"""

from collections.abc import Iterator
from itertools import product

from benchmarks.accuracy.subjects import (
    GENERATORS,
    record,
    score_bodies,
    score_joints,
    solve_timed,
)
from benchmarks.harness.task import Row, Setting, with_means

HEADLINE = "ARI"
KEY_CASES = ("*, mean",)
MOTIONS = ("walk", "exercise")


def measure(setting: Setting) -> Iterator[Row]:
    yield from with_means(score_people(setting))


def score_people(setting: Setting) -> Iterator[Row]:
    """Yield the row of every person."""
    seconds, seeds = setting.choose((20.0, range(5)), (6.0, range(1)))
    for generator, motion, seed in product(GENERATORS, MOTIONS, seeds):
        case = f"{generator}, {motion}, person {seed}"
        if not setting.wants(case):
            continue
        subject = record(generator, motion, seconds=seconds, seed=seed, labels=False)
        solution, cpu = solve_timed(subject.take)
        figures = score_bodies(solution, subject) | score_joints(solution, subject)
        yield Row(case, {**figures, "CPU [s]": cpu})
