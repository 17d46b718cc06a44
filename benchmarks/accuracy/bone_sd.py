"""Standard deviations of bones: errors of 10 people over what is stated.

People of random stature, in a short take each, for each of several kinds of soft-tissue
artefact, with noise of 0.5 mm; "built" have the proportions of `synth.human`, whose
upper arms are 15 % longer than those of people. z is the error of a length over its
standard deviation: 1 is right, more is too bold.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks.harness.task import Row, Setting
from benchmarks.speed.calibrate import BONES, initial_skeleton, length_errors, rms
from marey import synth
from marey.calibration import calibrate
from marey.numerics import geometry
from marey.synth import Recording

HEADLINE = "z rms"
KEY_CASES = (
    "*, noise alone",
    "*, 3 mm rms",
    "*, 10 mm rms",
    "*, 15 mm/rad",
    "*, 40 mm/rad",
)
LIMIT_S = 7200.0
PEOPLE, QUICK_PEOPLE = 10, 3
BONE_NAMES = ("thigh", "shank", "upper arm", "forearm")
RANDOM_MOTIONS = ("walk", "kick_punch", "circle", "exercise", "swing")
MARKER_SETS = ("sparse41", "set53")

BONE_OF_STATURE = dict(zip(BONES, (0.2425, 0.249, 0.1618, 0.1545), strict=True))
"""Length of the bone that ends in each joint as a share of the stature (de Leva 1996).
"""

BONE_OF_STATURE_SD = 0.05
"""Relative standard deviation of these shares between people."""

SOFT_TISSUES = {
    "noise alone": (0.0, 0.0),
    "3 mm rms": (0.003, 0.0),
    "10 mm rms": (0.010, 0.0),
    "15 mm/rad": (0.0, 0.015),
    "40 mm/rad": (0.0, 0.040),
}
"""Soft-tissue artefact of `synth` in metres (rms on a thigh), and in metres per radian
of the joints next to a segment."""


def record_random_person(kind: str, seed: int, *, as_people: bool) -> Recording:
    """Return a take with random stature, bones, motion, markers and noise."""
    artefact_rms, per_radian = SOFT_TISSUES[kind]
    rng = np.random.default_rng([seed, 7])
    stature = rng.uniform(1.5, 2.0)
    take = synth.human(stature, seed=seed).record(
        RANDOM_MOTIONS[seed % len(RANDOM_MOTIONS)],
        seconds=rng.uniform(3.0, 5.0),
        rate=60.0,
        markers=MARKER_SETS[seed // len(RANDOM_MOTIONS) % len(MARKER_SETS)],
        noise=5e-4,
        soft_tissue=artefact_rms,
        seed=seed,
    )
    if as_people:
        take = change_proportions(take, stature, rng)
    return add_artefact(take, per_radian, rng) if per_radian else take


def change_proportions(
    take: Recording, stature: float, rng: np.random.Generator
) -> Recording:
    """Return the same motion of a person with random proportions."""
    truth = take.truth
    true, marker = truth.skeleton, truth.marker_offset.copy()
    offset = true.offset.copy()
    for name, share in BONE_OF_STATURE.items():
        deviation = BONE_OF_STATURE_SD * np.clip(rng.normal(), -2.5, 2.5)
        for joint in (true.index(side + name) for side in ("Left", "Right")):
            ratio = stature * share * (1.0 + deviation) / true.lengths[joint]
            direction = true.offset[joint] / true.lengths[joint]
            offset[joint] *= ratio
            on_bone = truth.marker_joint == true.parent[joint]
            along = marker[on_bone] @ direction
            marker[on_bone] += (ratio - 1.0) * np.outer(along, direction)
    motion = replace(truth.motion, skeleton=replace(true, offset=offset))
    T = motion.T_world_joint()[:, truth.marker_joint]
    points = geometry.apply(T, marker)
    return replace(
        take,
        points=points + take.points - truth.points,
        truth=replace(truth, motions=(motion,), points=points, marker_offset=marker),
    )


def add_artefact(take: Recording, size: float, rng: np.random.Generator) -> Recording:
    """Return the take with a soft-tissue artefact of `size` metres per radian.

    It is proportional to the rotation of the joint above each body, and by half to
    those below; 70 % of it is common to all markers of a body.
    """
    truth, motion = take.truth, take.truth.motion
    parent, body_of = motion.skeleton.parent, truth.figures[0].body_of
    rotation = geometry.quat_log(motion.wxyz)
    rotation -= rotation.mean(axis=0)
    R = motion.T_world_joint()[..., :3, :3]
    points = take.points.copy()
    for body in np.unique(truth.marker_joint).tolist():
        joints = [j for j in range(1, len(parent)) if body_of[parent[j]] == body]
        joints += [body] * (body > 0)
        share = np.repeat([1.0 if joint == body else 0.5 for joint in joints], 3)
        markers = np.flatnonzero(truth.marker_joint == body)
        common = rng.normal(size=(3, len(share)))
        separate = rng.normal(size=(len(markers), 3, len(share)))
        gain = size * share / np.sqrt(3.0) * (0.7 * common + np.sqrt(0.51) * separate)
        drive = rotation[:, joints].reshape(len(rotation), -1)
        points[:, markers] += np.einsum("fij,mjk,fk->fmi", R[:, body], gain, drive)
    return replace(take, points=points)


def measure(setting: Setting) -> Iterator[Row]:
    n_people = setting.choose(PEOPLE, QUICK_PEOPLE)
    for proportions in ("people", "built")[: setting.choose(2, 1)]:
        for kind in SOFT_TISSUES:
            case = f"{proportions}, {kind}"
            if setting.wants(case):
                yield from score_people(case, kind, n_people, proportions == "people")


def score_people(case: str, kind: str, n_people: int, as_people: bool) -> Iterator[Row]:
    """Yield the errors over standard deviations of all bones, and of each."""
    names = [[side + bone for side in ("Left", "Right")] for bone in BONES]
    error, sd = (np.empty((n_people, len(BONES), 2)) for _ in range(2))
    for seed in range(n_people):
        take = record_random_person(kind, seed, as_people=as_people)
        found = calibrate(initial_skeleton([take]), take).skeleton
        error[seed] = length_errors(found, take.truth.skeleton).reshape(-1, 2)
        sd[seed] = [[found.length_sd[found.index(n)] for n in two] for two in names]
    yield Row(case, describe_errors(error, sd))
    for k, bone in enumerate(BONE_NAMES):
        yield Row(f"{case}, {bone}", describe_errors(error[:, k], sd[:, k]))


def describe_errors(error: np.ndarray, sd: np.ndarray) -> dict[str, float]:
    """Return the figures of errors and their standard deviations, in metres."""
    z = error / sd
    return {
        "z rms": rms(z),
        "within 2 [%]": 100.0 * float(np.mean(np.abs(z) < 2)),
        "z median": float(np.median(z)),
        "z least": float(z.min()),
        "z most": float(z.max()),
        "error [mm]": 1e3 * rms(error),
        "bias [mm]": 1e3 * float(error.mean()),
        "sd [mm]": 1e3 * float(np.median(sd)),
    }
