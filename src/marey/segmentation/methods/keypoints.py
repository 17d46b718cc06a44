"""Bodies of points that are joints themselves, not markers.

Pose estimation from video gives such points, and programs that export the joint centres
they solved. A joint belongs to every bone that meets in it. Markers of one body keep
all their mutual distances; keypoints keep only those along bones. So the bodies are the
bones, and neighbouring bodies share the point between them.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np

from marey.anatomy.names import HIPS
from marey.bodies import Bodies
from marey.numerics import Array, Float, Int
from marey.numerics.thresholds import MOTION_TIME_S
from marey.report import Finding
from marey.segmentation.body_poses import make_bodies
from marey.segmentation.clusters.pair_statistics import Members, PairStats
from marey.segmentation.contract import SegmentationTask, Suitability
from marey.segmentation.labels.joint_names import (
    Bone,
    JointWord,
    are_joint_names,
    bones_of_names,
    limb_ends_of_names,
    name_of_bone,
    parse_joint_names,
    trunk_of_names,
)
from marey.segmentation.labels.limb_ends import MOVING_JOINTS
from marey.segmentation.marker_selection import group_by_subject, select_markers
from marey.segmentation.methods.overlap import default_names
from marey.take import Take

MAX_STEADY_SPREAD = 2.0
"""Spread of the distance of a point to a neighbour, in units of noise, up to which the
two are on one bone. Chosen by hand."""

MIN_MOVING_SPREAD = 10.0
"""Spread between two such neighbours, in units of noise, beyond which they move against
each other: the point is a joint between them. Higher finds fewer joints. Chosen by
hand."""

MIN_JOINT_FRACTION = 0.35
"""Fraction of the points that must be such joints. In 28 recordings of markers at most
a fifth are, on knees and elbows, and in walks of two people with 64 markers and 1 mm of
noise at most 0.31; in sets of exact keypoints two fifths or more. Higher recognises
fewer sets of keypoints."""

MIN_CONNECTED_FRACTION = 0.5
"""Fraction of the points that must have two neighbours on bones. Chosen by hand."""

STRETCH_EXPONENT = 0.5
"""Exponent of a bone's stretch beside its length in its cost. Higher prefers rigid
bones to short ones. Chosen by hand."""

CROSS_LIMB_FACTOR = 1.5
"""Factor on the cost of a bone between two points that both have a side. Higher avoids
bones between limbs. Chosen by hand."""

MAX_RIGID_SPREAD = 2.0
"""Spread inside a union of bones, in units of the median spread of bones or of the
noise, up to which the union is one body. Chosen by hand."""


def check_suitability(task: SegmentationTask) -> Suitability:
    """Return whether the points are joints, by their names or their motion.

    The points of every stated subject must be.
    """
    if task.n_bodies:
        return Suitability(suits=False)
    takes, stats = task.marker_takes, task.pair_stats
    kept, _ = select_markers(takes, stats, keep_computed=True)
    return Suitability(
        all(
            are_keypoints(takes[0], stats.select(own), own)
            for own in group_by_subject(takes[0], kept).values()
        )
    )


def find_bodies(task: SegmentationTask) -> tuple[Bodies, ...]:
    """Return the bones between the points as bodies, the same in every take.

    Points that are exactly rigid are kept: programs solve joints with constant bones.
    """
    takes, stats = task.marker_takes, task.pair_stats
    kept, findings = select_markers(takes, stats, keep_computed=True)
    members = find_bones(takes[0], stats.select(kept), kept)
    names = _bone_names(takes[0], members)
    recognised = Finding(
        "points-are-joints",
        "segment",
        "info",
        f"the {len(kept)} points are joints, not markers; the bodies are the "
        f"{len(members)} bones between them",
        value=float(len(kept)),
    )
    return tuple(
        replace(
            make_bodies(
                take,
                names,
                members,
                owning_bones(members),
                findings=(*findings, recognised),
                stats=stats,
            ),
            keypoints=True,
        )
        for take in takes
    )


def _bone_names(take: Take, members: Members) -> tuple[str, ...]:
    """Return names of a person's bones by those of their points, else numbers."""
    words = parse_joint_names(take.labels)
    ends = limb_ends_of_names(take.labels)
    points = [frozenset(np.flatnonzero(body).tolist()) for body in members]
    names = [ends.get(own) or name_of_bone(words, own) for own in points]
    default = default_names(len(members))
    if HIPS not in names or not any(trunk_of_names(take.labels)):
        return default
    is_own = [bool(name) and names.count(name) == 1 for name in names]
    return tuple(
        name if own else other
        for name, own, other in zip(names, is_own, default, strict=True)
    )


def are_keypoints(take: Take, stats: PairStats, kept: Int[Array, " kept"]) -> bool:
    """Return whether the points of a take are joints, by their names or their motion.

    By name: most labels are words for joints, and each side has one shoulder, elbow,
    hip or knee, where markers would come in pairs. By motion: many points keep their
    distance to neighbours that move against each other, as parts of one body never do.
    In less time than limbs need to move, all points keep most distances.

    Args:
        take: The recording.
        stats: Distances of the points to look at.
        kept: Indices of these points in the take.
    """
    words = parse_joint_names([take.labels[i] for i in kept])
    has_motion = take.duration >= MOTION_TIME_S
    return are_joint_names(words) or (has_motion and _move_as_joints(stats))


def find_bones(take: Take, stats: PairStats, kept: Int[Array, " kept"]) -> Members:
    """Return the points of every body: single bones, and unions that are rigid.

    The bones are the minimum spanning tree of the points by length and stretch, with
    the bones that follow from the names in it. Bones that meet and whose far ends keep
    their distance too are one body, such as a pelvis. Names also say which points are
    the trunk, a foot or a hand of a person.

    Args:
        take: The recording.
        stats: Distances of the points to look at.
        kept: Indices of these points in the take.
    """
    labels = [take.labels[i] for i in kept]
    words = parse_joint_names(labels)
    named = bones_of_names(words)
    ends = [set(body) for body in limb_ends_of_names(labels)]
    outer = {i for body in ends for i in body if words[i].joint not in MOVING_JOINTS}
    named = {bone for bone in named if not outer & set(bone)}
    whole = [*_trunk_bodies(labels, stats), *ends]
    inside = {bone for body in whole for bone in pairwise(sorted(body))}
    bones = _spanning_tree(_bone_costs(stats, words), named | inside)
    outside = [bone for bone in bones if bone not in inside]
    groups = _merge_rigid_bones(outside, named, stats, whole)
    members = np.zeros((len(groups), len(take.labels)), dtype=bool)
    for row, group in zip(members, groups, strict=True):
        row[kept[sorted(group)]] = True
    return members


def _trunk_bodies(labels: Sequence[str], stats: PairStats) -> list[set[int]]:
    """Return the points of pelvis and chest of a person whose joints have names.

    They are one body where they keep their distances, or where no point between the
    hips and none between the shoulders joins them.
    """
    pelvis, chest = trunk_of_names(labels)
    if not pelvis:
        return []
    joined = min(len(pelvis), len(chest)) > 2
    if joined and not _is_rigid(pelvis | chest, stats, stats.noise):
        return [pelvis, chest]
    return [pelvis | chest]


def owning_bones(members: Members) -> Int[Array, " marker"]:
    """Return the one body that owns each point: of bones that meet, the inner one.

    Breadth-first search from the body with most points, so that every other bone owns
    its far end.
    """
    owner = np.full(members.shape[1], -1, dtype=np.int64)
    root = int(members.sum(axis=1).argmax())
    queue, queued = [root], {root}
    for body in queue:
        owner[members[body] & (owner < 0)] = body
        neighbours = np.flatnonzero((members & members[body]).any(axis=1)).tolist()
        queue += [other for other in neighbours if other not in queued]
        queued |= set(neighbours)
    return owner


# --- motion ---------------------------------------------------------------------------


def _move_as_joints(stats: PairStats) -> bool:
    """Return whether many points are joints between neighbours that move."""
    noise = stats.noise
    spread = stats.known_spread
    moving = stats.is_known & (spread > MIN_MOVING_SPREAD * noise)
    steady = spread <= MAX_STEADY_SPREAD * noise
    if np.mean(steady.sum(axis=1) > 1) < MIN_CONNECTED_FRACTION:
        return False
    is_joint = [moving[np.ix_(near, near)].any() for near in steady if near.sum() > 1]
    return float(np.mean(is_joint)) > MIN_JOINT_FRACTION


def _bone_costs(
    stats: PairStats, words: Sequence[JointWord]
) -> Float[Array, "point point"]:
    """Return the cost of a bone between every two points: its length times stretch."""
    stretch = np.hypot(1.0, np.nan_to_num(stats.spread) / stats.noise)
    has_side = np.array([word.side != "" for word in words])
    factor = np.where(has_side[:, None] & has_side, CROSS_LIMB_FACTOR, 1.0)
    cost = stats.distance * stretch**STRETCH_EXPONENT * factor
    return np.where(stats.is_known, cost, np.inf)


def _spanning_tree(cost: Float[Array, "point point"], named: set[Bone]) -> list[Bone]:
    """Return the minimum spanning tree (Kruskal) that contains the named bones."""
    component = np.arange(len(cost))
    order = np.argsort(cost, axis=None, kind="stable").tolist()
    all_pairs = (divmod(index, len(cost)) for index in order)
    bones = []
    for i, j in (*sorted(named), *all_pairs):
        if component[i] != component[j] and np.isfinite(cost[i, j]):
            component[component == component[j]] = component[i]
            bones.append((min(i, j), max(i, j)))
    return bones


def _merge_rigid_bones(
    bones: Sequence[Bone],
    named: set[Bone],
    stats: PairStats,
    whole: Sequence[set[int]],
) -> list[set[int]]:
    """Return the points of each body: bones merged while their union is rigid.

    Named bones stay as they are, and so do the bodies that names give.
    """
    median = float(np.median([stats.spread[bone] for bone in bones]))
    steady = max(stats.noise, median)
    groups = [set(bone) for bone in bones if bone not in named]
    named_groups = [*map(set, sorted(named & set(bones))), *whole]
    while True:
        unions = (
            (one, other)
            for one, other in combinations(groups, 2)
            if one & other and _is_rigid(one | other, stats, steady)
        )
        one, other = next(unions, (set(), set()))
        if not one:
            return [*named_groups, *groups]
        groups = [g for g in groups if g not in (one, other)] + [one | other]


def _is_rigid(points: set[int], stats: PairStats, steady: float) -> bool:
    """Return whether all distances of points vary little beside a steady one."""
    pairs = np.ix_(sorted(points), sorted(points))
    return bool(np.nanmax(stats.spread[pairs]) <= MAX_RIGID_SPREAD * steady)
