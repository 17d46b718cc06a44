"""Calibration of a person: time, errors of bones, and consistency of their sd.

A person with 41 markers walks and punches; the soft-tissue artefact is 8 mm. Bones are
fitted to 80 frames of each take. Then many people, each in a short take: the error of
every bone over its standard deviation. The argument is the number of people, 5 by
default; the table of the documentation is that of 200:
python benchmarks/calibrate.py 200
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

import marey
from marey import synth
from marey.calibration import calibrate
from marey.numerics import geometry
from marey.skeleton import Skeleton
from marey.synth import Recording
from marey.take import Take
from marey.topology import tree_from_parents

MOTIONS = ("walk", "kick_punch", "circle", "exercise")
BONES = ("LowerLeg", "Foot", "LowerArm", "Hand")
REPEATS = 5


def record(figure: synth.Figure, motion: str, soft_tissue: float) -> Take:
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
    return float(np.sqrt(np.mean(np.square(values))))


def print_speed() -> None:
    figure = synth.human(1.75, seed=1)
    head = ("takes", "tissue mm", "first s", "warm s", "before mm", "mm", "markers mm")
    print(("{:>11}" * len(head)).format(*head))
    for soft_tissue in (0.0, 0.008):
        for count in (1, 2, 4):
            takes = [record(figure, motion, soft_tissue) for motion in MOTIONS[:count]]
            initial = initial_skeleton(takes)
            seconds = []
            for _ in range(REPEATS):
                begin = time.perf_counter()
                found = calibrate(initial, takes)
                seconds.append(time.perf_counter() - begin)
            print(
                f"{count:11d}{1e3 * soft_tissue:11.0f}"
                f"{seconds[0]:11.2f}{min(seconds):11.2f}"
                f"{1e3 * rms(length_errors(initial, figure.skeleton)):11.1f}"
                f"{1e3 * rms(length_errors(found.skeleton, figure.skeleton)):11.1f}"
                f"{1e3 * found.rms:11.2f}"
            )


# --- standard deviations --------------------------------------------------------------

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


def print_z_scores(n_people: int, *, as_people: bool) -> None:
    """Print the errors of bones over their standard deviations."""
    head = ("", "z rms", "within 2", "bone", "z rms", "median", "least", "most")
    head = (*head, "error mm", "bias mm", "sd mm")
    print("{:>15}{:>8}{:>9}{:>10}".format(*head), ("{:>9}" * 7).format(*head[4:]))
    names = [[side + bone for side in ("Left", "Right")] for bone in BONES]
    for kind in SOFT_TISSUES:
        error, sd = (np.empty((n_people, len(BONES), 2)) for _ in range(2))
        for seed in range(n_people):
            take = record_random_person(kind, seed, as_people=as_people)
            found = calibrate(initial_skeleton([take]), take).skeleton
            error[seed] = length_errors(found, take.truth.skeleton).reshape(-1, 2)
            sd[seed] = [[found.length_sd[found.index(n)] for n in two] for two in names]
        z = error / sd
        print(f"{kind:>15}{rms(z):8.2f}{100 * np.mean(np.abs(z) < 2):8.0f}%")
        for k, bone in enumerate(("thigh", "shank", "upper arm", "forearm")):
            z_bone, error_mm = z[:, k], 1e3 * error[:, k]
            print(
                f"{bone:>42} {rms(z_bone):9.2f}{np.median(z_bone):9.2f}"
                f"{z_bone.min():9.1f}{z_bone.max():9.1f}"
                f"{rms(error_mm):9.1f}{error_mm.mean():9.1f}"
                f"{1e3 * np.median(sd[:, k]):9.1f}",
                flush=True,
            )


def main() -> None:
    n_people = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print_speed()
    print(f"\nz scores of {n_people} people, proportions as people have them")
    print_z_scores(n_people, as_people=True)
    print("\nthe same as `synth.human` builds them, upper arms 15 % longer")
    print_z_scores(n_people, as_people=False)


if __name__ == "__main__":
    main()
