"""Bodies of points that are joints themselves, not markers.

Pose estimation from video gives such points, and programs that export the joint centres
they solved. A joint belongs to every bone that meets in it. Markers of one body keep
all their mutual distances; keypoints keep only those along bones. So the bodies are the
bones, and neighbouring bodies share the point between them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, permutations

import numpy as np
from jaxtyping import Float, Int

from marey.anatomy.names import SIDE_SPELLINGS
from marey.bodies import Bodies
from marey.report import Finding
from marey.segmentation.body_poses import make_bodies
from marey.segmentation.clusters.pair_statistics import Members, PairStats
from marey.segmentation.contract import SegmentationTask, Suitability
from marey.segmentation.labels.match import MIN_MATCHED_FRACTION
from marey.segmentation.marker_selection import group_by_subject, select_markers
from marey.segmentation.methods.overlap import default_names
from marey.take import Take

Array = np.ndarray
Bone = tuple[int, int]
"""Two points, the smaller index first."""

LIMBS = (
    ("shoulder", "elbow", "wrist", "hand", "finger"),
    ("hip", "knee", "ankle", "foot", "toe"),
)
"""Words for the joints along a limb, from the trunk outward."""

SYNONYMS = {"paw": "foot", "heel": "toe", "thumb": "finger"}
"""Words that count as another one."""

MIDLINE = ("nose", "snout", "eye", "ear", "head", "neck", "chest", "spine", "tail")
"""Words for points that are on no limb."""

OPPOSITE_SIDES = tuple(
    sides
    for spelling in zip(*SIDE_SPELLINGS.values(), strict=True)
    for sides in permutations(spelling)
)
"""Spellings of a side, each with the other side in the same spelling."""

MIN_LIMB_JOINTS = 6
"""Number of labels that must be inner joints of limbs. Higher recognises fewer sets of
keypoints by name. Chosen by hand."""

MAX_STEADY_SPREAD = 2.0
"""Spread of the distance of a point to a neighbour, in units of noise, up to which the
two are on one bone. Chosen by hand."""

MIN_MOVING_SPREAD = 10.0
"""Spread between two such neighbours, in units of noise, beyond which they move against
each other: the point is a joint between them. Higher finds fewer joints. Chosen by
hand."""

MIN_JOINT_FRACTION = 0.3
"""Fraction of the points that must be such joints. In 28 recordings of markers at most
a fifth are, on knees and elbows; in sets of keypoints two fifths or more. Higher
recognises fewer sets of keypoints."""

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
                default_names(len(members)),
                members,
                owning_bones(members),
                findings=(*findings, recognised),
                stats=stats,
            ),
            keypoints=True,
        )
        for take in takes
    )


def are_keypoints(take: Take, stats: PairStats, kept: Int[Array, " kept"]) -> bool:
    """Return whether the points of a take are joints, by their names or their motion.

    By name: most labels are words for joints, and each side has one shoulder, elbow,
    hip or knee, where markers would come in pairs. By motion: many points keep their
    distance to neighbours that move against each other, as parts of one body never do.

    Args:
        take: The recording.
        stats: Distances of the points to look at.
        kept: Indices of these points in the take.
    """
    words = _parse_labels([take.labels[i] for i in kept])
    return _are_joint_names(words) or _move_as_joints(stats)


def find_bones(take: Take, stats: PairStats, kept: Int[Array, " kept"]) -> Members:
    """Return the points of every body: single bones, and unions that are rigid.

    The bones are the minimum spanning tree of the points by length and stretch, with
    the bones that follow from the names in it. Bones that meet and whose far ends keep
    their distance too are one body, such as a pelvis.

    Args:
        take: The recording.
        stats: Distances of the points to look at.
        kept: Indices of these points in the take.
    """
    words = _parse_labels([take.labels[i] for i in kept])
    named = _bones_of_names(words)
    bones = _spanning_tree(_bone_costs(stats, words), named)
    groups = _merge_rigid_bones(bones, named, stats)
    members = np.zeros((len(groups), len(take.labels)), dtype=bool)
    for row, group in zip(members, groups, strict=True):
        row[kept[sorted(group)]] = True
    return members


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


# --- names ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JointWord:
    """The joint and the side that a label names."""

    side: str
    """"l", "r", or "" for the middle."""

    joint: str
    """A word of `LIMBS` or `MIDLINE`; "" = none of them."""


def _parse_labels(labels: Sequence[str]) -> list[JointWord]:
    plain = [re.sub(r"[\W_]+", "", label.casefold()) for label in labels]
    return [_parse_label(label, set(plain)) for label in plain]


def _parse_label(label: str, labels: set[str]) -> JointWord:
    side, stem = _split_side(label, labels)
    words = (*SYNONYMS, *(word for limb in LIMBS for word in limb), *MIDLINE)
    joint = next((word for word in words if word in stem), "")
    return JointWord(side, SYNONYMS.get(joint, joint))


def _split_side(label: str, labels: set[str]) -> tuple[str, str]:
    """Return the side that a label begins or ends with, and the rest of the label.

    Only if the label of the other side is there too: "SpineL" may be the last of the
    spine.
    """
    for side, other in OPPOSITE_SIDES:
        after, before = label.removeprefix(side), label.removesuffix(side)
        if after != label and other + after in labels:
            return side[0], after
        if before != label and before + other in labels:
            return side[0], before
    return "", label


def _are_joint_names(words: Sequence[JointWord]) -> bool:
    inner = {word for limb in LIMBS for word in limb[:3]}
    limb_joints = [word for word in words if word.side and word.joint in inner]
    n_named = sum(bool(word.joint) for word in words)
    return (
        n_named >= MIN_MATCHED_FRACTION * len(words)
        and len(limb_joints) >= MIN_LIMB_JOINTS
        and len(set(limb_joints)) == len(limb_joints)
    )


def _bones_of_names(words: Sequence[JointWord]) -> set[Bone]:
    """Return the bones that follow from names: along limbs, spine and tail."""
    if not _are_joint_names(words):
        return set()
    bones = set()
    for i, word in enumerate(words):
        parent = _parent_point(words, word)
        if parent >= 0:
            bones.add((min(i, parent), max(i, parent)))
    for joint in ("spine", "tail"):
        chain = [i for i, w in enumerate(words) if w.joint == joint and not w.side]
        bones |= set(pairwise(chain))
    return bones


def _parent_point(words: Sequence[JointWord], word: JointWord) -> int:
    """Return the point next to a joint on its limb, towards the trunk; -1 = none."""
    limb = next((limb for limb in LIMBS if word.joint in limb), ())
    inward = limb[: limb.index(word.joint)][::-1] if limb else ()
    parents = (JointWord(word.side, joint) for joint in inward)
    return next((words.index(parent) for parent in parents if parent in words), -1)


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
    bones: Sequence[Bone], named: set[Bone], stats: PairStats
) -> list[set[int]]:
    """Return the points of each body: bones merged while their union is rigid.

    Named bones stay as they are.
    """
    median = float(np.median([stats.spread[bone] for bone in bones]))
    limit = MAX_RIGID_SPREAD * max(stats.noise, median)

    def is_rigid(points: set[int]) -> bool:
        pairs = np.ix_(sorted(points), sorted(points))
        return bool(np.nanmax(stats.spread[pairs]) <= limit)

    groups = [set(bone) for bone in bones if bone not in named]
    while True:
        unions = (
            (one, other)
            for one, other in combinations(groups, 2)
            if one & other and is_rigid(one | other)
        )
        one, other = next(unions, (set(), set()))
        if not one:
            return [*map(set, sorted(named & set(bones))), *groups]
        groups = [g for g in groups if g not in (one, other)] + [one | other]
