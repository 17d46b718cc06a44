"""Calibration of a person: seconds per subject, how near its bones come, how honest.

A person of 41 markers walks and punches; skin slides by 8 mm. Bones are fitted to 80
frames of each take. Then many people, each in a short take: the error of every bone
over the standard deviation that is told for it. How many is the argument, 5 if none;
the table of the documentation is that of 200:
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


def started(takes: Sequence[Take]) -> Skeleton:
    bodies = marey.segment(takes)
    joints = marey.fit_joints(bodies)
    tree = named_tree(bodies[0].parents, bodies[0].names, joints)
    return marey.build_skeleton(bodies[0], joints, tree)


def off(found: Skeleton, true: Skeleton) -> np.ndarray:
    """Return how far bones are from their true lengths, left then right of each."""
    names = [side + bone for bone in BONES for side in ("Left", "Right")]
    lengths = [
        found.lengths[found.index(n)] - true.lengths[true.index(n)] for n in names
    ]
    return np.array(lengths)


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def speed() -> None:
    figure = synth.human(1.75, seed=1)
    head = ("takes", "skin mm", "first s", "warm s", "start mm", "mm", "markers mm")
    print(("{:>11}" * len(head)).format(*head))
    for skin in (0.0, 0.008):
        for count in (1, 2, 4):
            takes = [recorded(figure, motion, skin) for motion in MOTIONS[:count]]
            start = started(takes)
            seconds = []
            for _ in range(REPEATS):
                begin = time.perf_counter()
                found = calibrate(start, takes)
                seconds.append(time.perf_counter() - begin)
            print(
                f"{count:11d}{1e3 * skin:11.0f}{seconds[0]:11.2f}{min(seconds):11.2f}"
                f"{1e3 * rms(off(start, figure.skeleton)):11.1f}"
                f"{1e3 * rms(off(found.skeleton, figure.skeleton)):11.1f}"
                f"{1e3 * found.rms:11.2f}"
            )


# --- doubts ---------------------------------------------------------------------------

PERFORMED = ("walk", "kick_punch", "circle", "exercise", "swing")
SETS = ("sparse41", "set53")

SHARES = dict(zip(BONES, (0.2425, 0.249, 0.1618, 0.1545), strict=True))
"""Bones that end in these joints as a share of the stature of people (de Leva 1996),
of which people differ by this much."""
SHARE_SD = 0.05

SKINS = {
    "noise alone": (0.0, 0.0),
    "skin 3 mm rms": (0.003, 0.0),
    "skin 10 mm rms": (0.010, 0.0),
    "skin 15 mm/rad": (0.0, 0.015),
    "skin 40 mm/rad": (0.0, 0.040),
}
"""Metres that skin slides in all, as `synth` has it, and per radian of the joints."""


def drawn(skin: str, seed: int, *, as_people: bool) -> Recording:
    """Return someone moving: stature, bones, motion, markers and noise by the seed."""
    rms_skin, per_radian = SKINS[skin]
    rng = np.random.default_rng([seed, 7])
    stature = rng.uniform(1.5, 2.0)
    take = synth.human(stature, seed=seed).record(
        PERFORMED[seed % len(PERFORMED)],
        seconds=rng.uniform(3.0, 5.0),
        rate=60.0,
        markers=SETS[seed // len(PERFORMED) % len(SETS)],
        noise=5e-4,
        soft_tissue=rms_skin,
        seed=seed,
    )
    if as_people:
        take = rebuilt(take, stature, rng)
    return slid(take, per_radian, rng) if per_radian else take


def rebuilt(take: Recording, stature: float, rng: np.random.Generator) -> Recording:
    """Return the same done by someone of other proportions, as people have them."""
    truth = take.truth
    true, marker = truth.skeleton, truth.marker_offset.copy()
    offset = true.offset.copy()
    for name, share in SHARES.items():
        differs = SHARE_SD * np.clip(rng.normal(), -2.5, 2.5)
        for joint in (true.index(side + name) for side in ("Left", "Right")):
            longer = stature * share * (1.0 + differs) / true.lengths[joint]
            way = true.offset[joint] / true.lengths[joint]
            offset[joint] *= longer
            mine = truth.marker_joint == true.parent[joint]
            marker[mine] += (longer - 1.0) * np.outer(marker[mine] @ way, way)
    motion = replace(truth.motion, skeleton=replace(true, offset=offset))
    T = motion.T_world_joint()[:, truth.marker_joint]
    points = geometry.apply(T, marker)
    return replace(
        take,
        points=points + take.points - truth.points,
        truth=replace(truth, motions=(motion,), points=points, marker_offset=marker),
    )


def slid(take: Recording, size: float, rng: np.random.Generator) -> Recording:
    """Return the take with skin that slides so far per radian of the joints beside it.

    In proportion to the turns of the joint above, and half as much to those below; 70 %
    of it the same for all markers of a body.
    """
    truth, motion = take.truth, take.truth.motion
    parent, body_of = motion.skeleton.parent, truth.figures[0].body_of
    turns = geometry.quat_log(motion.wxyz)
    turns -= turns.mean(axis=0)
    R = motion.T_world_joint()[..., :3, :3]
    points = take.points.copy()
    for body in np.unique(truth.marker_joint).tolist():
        beside = [j for j in range(1, len(parent)) if body_of[parent[j]] == body]
        beside += [body] * (body > 0)
        share = np.repeat([1.0 if joint == body else 0.5 for joint in beside], 3)
        mine = np.flatnonzero(truth.marker_joint == body)
        common = rng.normal(size=(3, len(share)))
        own = rng.normal(size=(len(mine), 3, len(share)))
        gain = size * share / np.sqrt(3.0) * (0.7 * common + np.sqrt(0.51) * own)
        drive = turns[:, beside].reshape(len(turns), -1)
        points[:, mine] += np.einsum("fij,mjk,fk->fmi", R[:, body], gain, drive)
    return replace(take, points=points)


def doubts(draws: int, *, as_people: bool) -> None:
    """Print the error of bones over their standard deviation."""
    head = ("", "z rms", "within 2", "bone", "z rms", "median", "least", "most")
    head = (*head, "error mm", "bias mm", "sd mm")
    print("{:>15}{:>8}{:>9}{:>10}".format(*head), ("{:>9}" * 7).format(*head[4:]))
    for skin in SKINS:
        error, sd = np.empty((draws, len(BONES), 2)), np.empty((draws, len(BONES), 2))
        for seed in range(draws):
            take = drawn(skin, seed, as_people=as_people)
            found = calibrate(started([take]), take).skeleton
            error[seed] = off(found, take.truth.skeleton).reshape(-1, 2)
            names = [[side + bone for side in ("Left", "Right")] for bone in BONES]
            sd[seed] = [[found.length_sd[found.index(n)] for n in two] for two in names]
        z = error / sd
        print(f"{skin:>15}{rms(z):8.2f}{100 * np.mean(np.abs(z) < 2):8.0f}%")
        for k, bone in enumerate(("thigh", "shank", "upper arm", "forearm")):
            mine, far = z[:, k], 1e3 * error[:, k]
            print(
                f"{bone:>42} {rms(mine):9.2f}{np.median(mine):9.2f}{mine.min():9.1f}"
                f"{mine.max():9.1f}{rms(far):9.1f}{far.mean():9.1f}"
                f"{1e3 * np.median(sd[:, k]):9.1f}",
                flush=True,
            )


def main() -> None:
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    speed()
    print(f"\ndoubts of {draws} people, proportions as people have them")
    doubts(draws, as_people=True)
    print("\nthe same as `synth.human` builds them, upper arms 15 % longer")
    doubts(draws, as_people=False)


if __name__ == "__main__":
    main()
