"""Calibration of a person: seconds per subject, and how near its bones come.

A person of 41 markers walks and punches; skin slides by 8 mm. Bones are fitted to 80
frames of each take. Run with one thread:
OMP_NUM_THREADS=1 python benchmarks/calibrate.py
"""

import time

import numpy as np

import marey
from marey import synth
from marey.calibrate import calibrate
from marey.skeleton import Skeleton
from marey.take import Take
from marey.topology import named_tree

MOTIONS = ("walk", "kick_punch", "circle", "exercise")
BONES = ("LowerLeg", "Foot", "LowerArm", "Hand")
REPEATS = 5


def recorded(figure: synth.Figure, motion: str, skin: float) -> Take:
    return figure.record(
        motion,
        seconds=8.0,
        rate=100.0,
        markers="sparse41",
        noise=5e-4,
        soft_tissue=skin,
        seed=1,
    )


def started(takes: list[Take]) -> Skeleton:
    bodies = marey.segment(takes)
    joints = marey.fit_joints(bodies)
    tree = named_tree(bodies[0].parents, bodies[0].names, joints)
    return marey.build_skeleton(bodies[0], joints, tree)


def off(found: Skeleton, true: Skeleton) -> float:
    """Return how far bones are from their true lengths, rms in millimetres."""
    names = [side + bone for bone in BONES for side in ("Left", "Right")]
    lengths = [
        found.lengths[found.index(n)] - true.lengths[true.index(n)] for n in names
    ]
    return 1e3 * float(np.sqrt(np.mean(np.square(lengths))))


def main() -> None:
    figure = synth.human(1.75, seed=1)
    head = ("takes", "skin mm", "first s", "warm s", "start mm", "mm", "markers mm")
    print(("{:>11}" * len(head)).format(*head))
    for skin in (0.0, 0.008):
        for count in (1, 2, 4):
            takes = [recorded(figure, motion, skin) for motion in MOTIONS[:count]]
            start = started(takes)
            seconds = []
            for _ in range(REPEATS):
                begin = time.process_time()
                found = calibrate(start, takes)
                seconds.append(time.process_time() - begin)
            print(
                f"{count:11d}{1e3 * skin:11.0f}{seconds[0]:11.2f}{min(seconds):11.2f}"
                f"{off(start, figure.skeleton):11.1f}"
                f"{off(found.skeleton, figure.skeleton):11.1f}"
                f"{1e3 * found.rms:11.2f}"
            )


if __name__ == "__main__":
    main()
