"""Clinical angles of knees and elbows against the truth of the independent generator.

Flexion is the angle between the bones. The offset is the mean error, which depends on
where zero is; the rest is the error without it.
"""

from collections.abc import Iterator

import numpy as np

import marey
from benchmarks.accuracy.subjects import record, solve_timed
from benchmarks.harness.task import Figure, Row, Setting, with_means

HEADLINE = "without offset, rms [deg]"
KEY_CASES = ("*, mean",)
HINGES = {
    "left_knee_flexion": ("thigh_l", "shank_l"),
    "right_knee_flexion": ("thigh_r", "shank_r"),
    "left_elbow_flexion": ("upper_arm_l", "forearm_l"),
    "right_elbow_flexion": ("upper_arm_r", "forearm_r"),
}


def measure(setting: Setting) -> Iterator[Row]:
    yield from with_means(score_angles(setting))


def score_angles(setting: Setting) -> Iterator[Row]:
    """Yield the row of every angle."""
    seconds, seeds = setting.choose((15.0, range(3)), (6.0, range(1)))
    for motion in ("walk", "exercise"):
        for seed in seeds:
            subject = record("independent", motion, seconds=seconds, seed=seed)
            solution, cpu = solve_timed(subject.take)
            found = marey.angles(solution.motion)
            for angle, segments in HINGES.items():
                case = f"{motion}, person {seed}, {angle.replace('_', ' ')}"
                if angle not in found.names:
                    yield Row(case, skipped="no such angle: the person has no names")
                    continue
                assert subject.performance is not None
                error = found[angle] - subject.performance.flexion(*segments)
                figures: dict[str, Figure] = {
                    "rms [deg]": float(np.sqrt(np.nanmean(error**2))),
                    "offset [deg]": float(np.nanmean(error)),
                    "without offset, rms [deg]": float(np.nanstd(error)),
                    "CPU [s]": cpu,
                }
                yield Row(case, figures)
