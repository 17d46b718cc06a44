"""Recordings with known truth of two generators, in one form.

"synth" is `marey.synth`, "independent" is `benchmarks.generator`, which shares no code
with it.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import marey
from benchmarks.generator import damage as damages
from benchmarks.generator import score
from benchmarks.generator.motion import Performance, exercise, walk
from benchmarks.generator.person import make_person

GENERATORS = ("synth", "independent")
MOTIONS: Mapping[str, Callable[..., Performance]] = {"walk": walk, "exercise": exercise}
BONES = {"thigh": ("thigh", "shank"), "shank": ("shank", "foot")} | {
    "upper arm": ("upper_arm", "forearm"),
    "forearm": ("forearm", "hand"),
}
"""Joints at the ends of each bone, by the segment that begins there."""

SYNTH_NAMES = {
    "thigh": "UpperLeg",
    "shank": "LowerLeg",
    "foot": "Foot",
    "upper_arm": "UpperArm",
    "forearm": "LowerArm",
    "hand": "Hand",
}
SLIP_M = 0.03


@dataclass(frozen=True)
class Subject:
    """A recording and its truth.

    Attributes:
        take: What marey gets.
        names: Of the true bodies; each begins at its joint.
        joints: True joints in the world, (frame, body, 3).
        axis: True axes of hinges in the world, (frame, body, 3); zero for others.
        parent: Of each body.
        marker_body: True body of each marker.
        plants: Foot plants: where, in the plane of the ground, from when to when.
        performance: Angles, of the independent generator only.
    """

    take: marey.Take
    names: tuple[str, ...]
    joints: np.ndarray
    axis: np.ndarray
    parent: np.ndarray
    marker_body: np.ndarray
    plants: tuple[tuple[np.ndarray, float, float], ...]
    performance: Performance | None = None


def record(
    generator: str,
    motion: str,
    *,
    seconds: float,
    seed: int = 0,
    noise: float = 1e-3,
    labels: bool = True,
    gaps: float = 0.0,
    swaps: int = 0,
    slips: int = 0,
    person: int | None = None,
) -> Subject:
    """Return one recording at 100 Hz; `person` is its seed if another than `seed`."""
    make = record_synth if generator == "synth" else record_independent
    return make(
        motion,
        seconds=seconds,
        seed=seed,
        noise=noise,
        labels=labels,
        gaps=gaps,
        swaps=swaps,
        slips=slips,
        person=seed if person is None else person,
    )


def record_synth(
    motion: str, *, person: int, slips: int, labels: bool, **options: Any
) -> Subject:
    """Return a recording of `marey.synth`, with 53 markers."""
    take = marey.synth.human(seed=person).record(
        motion, rate=100.0, markers="set53", labels=labels, slips=slips, **options
    )
    truth = take.truth
    bodies = np.unique(truth.marker_joint)
    places = {joint: i for i, joint in enumerate(bodies.tolist())}
    parent = []
    for joint in bodies.tolist():
        above = truth.skeleton.parent[joint]
        while above >= 0 and above not in places:
            above = truth.skeleton.parent[above]
        parent.append(places.get(int(above), -1))
    T = truth.motion.T_world_joint()[:, bodies]
    is_hinge = np.array([truth.skeleton.kind[joint] == "hinge" for joint in bodies])
    axis = np.where(is_hinge[:, None], truth.skeleton.axes[bodies, 0], 0.0)
    return Subject(
        take,
        tuple(truth.skeleton.names[joint] for joint in bodies),
        T[..., :3, 3],
        np.einsum("fbij,bj->fbi", T[..., :3, :3], axis),
        np.array(parent),
        np.array([places[joint] for joint in truth.marker_joint.tolist()]),
        tuple((c.anchor[:2], c.start, c.end) for c in truth.motion.contacts),
    )


def record_independent(
    motion: str,
    *,
    person: int,
    seconds: float,
    seed: int,
    noise: float,
    labels: bool,
    gaps: float,
    swaps: int,
    slips: int,
) -> Subject:
    """Return a recording of the generator that shares no code with marey."""
    who = make_person(person)
    done = MOTIONS[motion](who, seconds, seed=seed)
    points = damages.slip(done.points, done.R, who, SLIP_M, slips, seed)
    points = damages.add_noise(damages.swap(points, who, swaps, seed), noise, seed)
    points = damages.hide(points, gaps, seed) if gaps else points
    names = who.labels if labels else tuple(f"M{i:03}" for i in range(len(who.labels)))
    take = marey.Take(rate=done.rate, points=points, labels=names)
    return Subject(
        take,
        who.names,
        done.joint,
        done.axis,
        who.parent,
        who.marker_segment,
        tuple(place_plants(done)),
        done,
    )


def place_plants(done: Performance) -> Iterator[tuple[np.ndarray, float, float]]:
    """Yield where the foot of each plant is, and its times."""
    for side, begin, end in done.plants:
        middle = round((begin + end) / 2.0 * done.rate)
        foot = done.person.names.index(f"foot_{side}")
        yield done.joint[middle, foot, :2], begin, end


def find_joints(solution: marey.Solution) -> np.ndarray:
    """Return the joints of all subjects in the world, (frame, joint, 3)."""
    motions = [subject.motions[0] for subject in solution.subjects]
    return np.concatenate([m.T_world_joint()[..., :3, 3] for m in motions], axis=1)


def solve_timed(take: marey.Take, **options: Any) -> tuple[marey.Solution, float]:
    """Return the solution without joints that nothing observes, and its CPU seconds."""
    chosen = marey.SolveOptions(whole=False, **options)
    begin = time.process_time()
    solution = marey.solve(take, options=chosen)
    return solution, time.process_time() - begin


def score_bodies(solution: marey.Solution, subject: Subject) -> dict[str, float]:
    """Return how far bodies and tree are right."""
    found = solution.bodies[0].marker_body
    alone = found.max(initial=-1) + 1 + np.arange(len(found))
    found = np.where(found >= 0, found, alone)
    match = score.match_groups(found, subject.marker_body)
    right, possible = score.edges_right(solution.tree.parent, match, subject.parent)
    return {
        "ARI": score.rand_index(found, subject.marker_body),
        "bodies": len(solution.bodies[0].names),
        "of bodies": len(subject.names),
        "joints of the tree": right,
        "of joints": possible,
    }


def score_joints(solution: marey.Solution, subject: Subject) -> dict[str, float]:
    """Return the errors of the positions of all joints but the root, in mm.

    Those of hinges are distances from the axis; the rest is along it.
    """
    inner = np.flatnonzero(subject.parent >= 0)
    found, true = find_joints(solution), subject.joints[:, inner]
    axis = subject.axis[:, inner]
    errors = 1e3 * score.joint_errors(found, true, axis)
    whole = 1e3 * score.joint_errors(found, true)
    along = np.sqrt(np.maximum(whole**2 - errors**2, 0.0))[axis[0].any(axis=-1)]
    return {
        "joints, median [mm]": float(np.nanmedian(errors)),
        "joints, rms [mm]": float(np.sqrt(np.nanmean(errors**2))),
        "worst joint [mm]": float(np.nanmax(errors)),
        "along hinges, rms [mm]": float(np.sqrt(np.mean(along**2)))
        if len(along)
        else float("nan"),
    }


def bone_lengths(joints: np.ndarray, subject: Subject) -> dict[str, float]:
    """Return the mean lengths of the bones between joints that are found for theirs.

    Args:
        joints: (frame, joint, 3), in the order of the bodies of the subject.
        subject: Which joints there are.
    """
    lengths = {}
    for bone, ends in BONES.items():
        for side in ("l", "r"):
            first, last = (subject.names.index(name_of(e, side, subject)) for e in ends)
            apart = np.linalg.norm(joints[:, first] - joints[:, last], axis=-1)
            lengths[f"{bone} {side}"] = float(np.nanmean(apart))
    return lengths


def name_of(segment: str, side: str, subject: Subject) -> str:
    """Return the name of a segment in the words of a generator."""
    if subject.performance is not None:
        return f"{segment}_{side}"
    return {"l": "Left", "r": "Right"}[side] + SYNTH_NAMES[segment]
