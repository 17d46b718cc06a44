"""Calibration of a person: time, and errors of bones before and after.

A person with 41 markers walks and punches; the soft-tissue artefact is 0 or 8 mm. Bones
are fitted to 80 frames of each take.
"""

from collections.abc import Iterator, Sequence

import numpy as np

import marey
from benchmarks.harness.task import Figure, Row, Setting
from benchmarks.harness.timing import time_call
from marey import synth
from marey.calibration import calibrate
from marey.skeleton import Skeleton
from marey.take import Take
from marey.topology import tree_from_parents

MOTIONS = ("walk", "kick_punch", "circle", "exercise")
BONES = ("LowerLeg", "Foot", "LowerArm", "Hand")
HEADLINE = "CPU [s]"


def record(figure: synth.Figure, motion: str, soft_tissue: float) -> Take:
    """Return 8 s of a motion."""
    return figure.record(
        motion,
        seconds=8.0,
        rate=100.0,
        markers="sparse41",
        noise=5e-4,
        soft_tissue=soft_tissue,
        seed=1,
    )


def initial_skeleton(takes: Sequence[Take]) -> Skeleton:
    """Return the skeleton before calibration."""
    bodies = marey.segment(takes)
    joints = marey.fit_joints(bodies)
    tree = tree_from_parents(bodies[0].parents, bodies[0].names, joints)
    return marey.build_skeleton(bodies[0], joints, tree)


def length_errors(found: Skeleton, true: Skeleton) -> np.ndarray:
    """Return the errors of bone lengths, left then right of each bone, in metres."""
    names = [side + bone for bone in BONES for side in ("Left", "Right")]
    errors = [
        found.lengths[found.index(n)] - true.lengths[true.index(n)] for n in names
    ]
    return np.array(errors)


def rms(values: np.ndarray) -> float:
    """Return the root mean square."""
    return float(np.sqrt(np.mean(np.square(values))))


def measure(setting: Setting) -> Iterator[Row]:
    figure = synth.human(1.75, seed=1)
    for soft_tissue in (0.0, 0.008):
        for count in setting.choose((1, 2, 4), (1, 2)):
            takes = [record(figure, motion, soft_tissue) for motion in MOTIONS[:count]]
            initial = initial_skeleton(takes)
            timing = time_call(lambda i=initial, t=takes: calibrate(i, t), setting)
            found = timing.result
            before, after = (
                1e3 * rms(length_errors(one, figure.skeleton))
                for one in (initial, found.skeleton)
            )
            figures: dict[str, Figure] = {
                "CPU [s]": timing.cpu,
                "bones before [mm]": before,
                "bones [mm]": after,
                "markers [mm]": 1e3 * found.rms,
            }
            yield Row(f"{count} takes, {1e3 * soft_tissue:.0f} mm of tissue", figures)
