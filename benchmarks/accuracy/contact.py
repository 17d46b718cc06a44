"""Foot plants of a walk: which are found, and how far begin and end are off.

Plants at the begin or the end of the take are not scored. A plant is found if a contact
within 15 cm shares half of the time of both; `marey.synth` has plants of heels and of
toes.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np

from benchmarks.accuracy.subjects import GENERATORS, Subject, record, solve_timed
from benchmarks.harness.task import Row, Setting, with_means
from marey import Solution

HEADLINE = "begin, rms [ms]"
KEY_CASES = ("*, mean",)
NEAR_M, MIN_SHARE = 0.15, 0.5


def measure(setting: Setting) -> Iterator[Row]:
    yield from with_means(score_people(setting))


def score_people(setting: Setting) -> Iterator[Row]:
    """Yield the row of every person."""
    seconds, seeds = setting.choose((15.0, range(5)), (6.0, range(1)))
    for generator, noise, seed in product(GENERATORS, (0.5e-3, 2e-3), seeds):
        subject = record(generator, "walk", seconds=seconds, seed=seed, noise=noise)
        solution, cpu = solve_timed(subject.take, contacts=True)
        case = f"{generator}, {1e3 * noise:g} mm, person {seed}"
        yield Row(case, {**score_plants(solution, subject), "CPU [s]": cpu})


def score_plants(solution: Solution, subject: Subject) -> dict[str, float]:
    """Return how many plants are found, and the errors of their times."""
    last = (subject.take.n_frames - 1) / subject.take.rate
    margin = 1.0 / subject.take.rate
    inside = [
        plant for plant in subject.plants if plant[1] > 0 and plant[2] < last - margin
    ]
    contacts = [c for s in solution.subjects for c in s.motions[0].contacts]
    errors = []
    for foot, begin, end in inside:
        near = [
            (common_share(begin, end, c.start, c.end), c.start - begin, c.end - end)
            for c in contacts
            if np.linalg.norm(c.anchor[:2] - foot) < NEAR_M
        ]
        share, *off_times = max(near, default=(0.0, 0.0, 0.0))
        if share > MIN_SHARE:
            errors.append(off_times)
    off = 1e3 * np.array(errors or [(np.nan, np.nan)])
    rms = np.sqrt(np.mean(off**2, axis=0))
    return {
        "found": len(errors),
        "of plants": len(inside),
        "contacts": len(contacts),
        "begin, rms [ms]": float(rms[0]),
        "end, rms [ms]": float(rms[1]),
        "begin, mean [ms]": float(off[:, 0].mean()),
        "end, mean [ms]": float(off[:, 1].mean()),
    }


def common_share(a: float, b: float, c: float, d: float) -> float:
    """Return the common time of two intervals over that of both together."""
    return max(min(b, d) - max(a, c), 0.0) / (max(b, d) - min(a, c))
