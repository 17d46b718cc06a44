"""Bones of one person between takes that are solved alone.

Thighs, shanks, upper arms and forearms, as distances of the joints found. Spread is the
standard deviation between takes, bias the mean error.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np

from benchmarks.accuracy.subjects import (
    GENERATORS,
    bone_lengths,
    find_joints,
    record,
    solve_timed,
)
from benchmarks.generator.score import match_joints
from benchmarks.harness.task import Figure, Row, Setting

HEADLINE = "spread [mm]"


def measure(setting: Setting) -> Iterator[Row]:
    seconds, takes, people = setting.choose((10.0, 4, range(3)), (5.0, 2, range(1)))
    for generator, person in product(GENERATORS, people):
        errors, cpu = [], 0.0
        for number in range(takes):
            motion = ("exercise", "walk")[number % 2]
            subject = record(
                generator, motion, seconds=seconds, seed=100 + number, person=person
            )
            solution, spent = solve_timed(subject.take)
            cpu += spent
            joints = find_joints(solution)
            found = joints[:, match_joints(joints, subject.joints)]
            true = bone_lengths(subject.joints, subject)
            lengths = bone_lengths(found, subject)
            errors.append([lengths[bone] - true[bone] for bone in true])
        spread = np.std(errors, axis=0, ddof=1)
        figures: dict[str, Figure] = {
            "takes": takes,
            "spread [mm]": 1e3 * float(np.sqrt(np.mean(spread**2))),
            "bias [mm]": 1e3 * float(np.mean(errors)),
            "error, rms [mm]": 1e3 * float(np.sqrt(np.mean(np.square(errors)))),
            "CPU of a take [s]": cpu / takes,
        }
        yield Row(f"{generator}, person {person}", figures)
