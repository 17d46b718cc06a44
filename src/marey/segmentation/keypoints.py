"""Bodies of points that are joints themselves, not markers.

Poses of animals and people from video are such points, and joint centres that another
program solved. A joint belongs to every bone that meets in it. Markers of one body keep
their distances all among each other; keypoints only along bones, so the bodies are the
bones, and neighbours share the point between them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from jaxtyping import Float, Int

from marey.segmentation.clusters.pair_log_odds import Members, Scales, scales_of
from marey.segmentation.clusters.pair_statistics import PairStats
from marey.take import Take

Array = np.ndarray
Bone = tuple[int, int]

LIMBS = (
    ("shoulder", "elbow", "wrist", "hand", "finger"),
    ("hip", "knee", "ankle", "foot", "toe"),
)
"""Joints along a limb, from the trunk outward."""

ALIKE = {"paw": "foot", "heel": "toe", "thumb": "finger"}
"""Other words for the same."""

MIDDLE = ("nose", "snout", "eye", "ear", "head", "neck", "chest", "spine", "tail")
"""Words for points that are on no limb."""

SIDES = (("left", "right"), ("right", "left"), ("l", "r"), ("r", "l"))

NAMED = 0.7
"""Share of the labels that must be words for joints."""

FEWEST_JOINTS = 6
"""Points of limbs that must be among them."""

NEAR_RIGID, OPEN = 2.0, 10.0
"""Times the noise up to which a point keeps its distance to a neighbour, and beyond
which two of its neighbours move against each other: then it is a joint between them."""

MOSTLY = 0.3
"""Share of such points that makes a set of joints. In 28 recordings of markers up to a
fifth are, on knees and elbows; in sets of joints two fifths and more."""

ENOUGH, CROWD = 0.5, 6
"""Share of the points that must have two such neighbours, and how many they usually
have at most: bones meet in twos and threes."""

STEADY = 0.5
"""Power of the unsteadiness of a bone beside its length."""

ASIDE = 1.5
"""Times the length that a bone between two sides, or two limbs, counts."""

RIGID = 2.0
"""Times the spread of two bones up to which their far ends keep their distance too."""


def are_keypoints(take: Take, stats: PairStats, kept: Int[Array, " kept"]) -> bool:
    """Return whether the points of a take are joints, by their names or their motion.

    By name: most labels are words for joints, and there is one shoulder, elbow, hip or
    knee a side, where markers would come in twos. By motion: many points keep their
    distance to neighbours that move against each other, as parts of one body never do.

    Args:
        take: The recording.
        stats: Distances of the points to look at.
        kept: Which of the take's points these are.
    """
    return _named_so(_words([take.labels[i] for i in kept])) or _moving_so(stats)


def bones_of(take: Take, stats: PairStats, kept: Int[Array, " kept"]) -> Members:
    """Return the points of every body: bones, and what is rigid of several bones.

    The bones are the tree of points that keeps its distances best and is shortest,
    those that the names tell taken for granted. Bones that meet and keep their far ends
    at one distance too are one body, a pelvis.

    Args:
        take: The recording.
        stats: Distances of the points to look at.
        kept: Which of the take's points these are.
    """
    words = _words([take.labels[i] for i in kept])
    scales = scales_of(stats)
    given = _given(words)
    bones = _spanning(_costs(stats, scales, words), given)
    groups = _rigid_groups(bones, given, stats, scales)
    members = np.zeros((len(groups), len(take.labels)), dtype=bool)
    for row, group in zip(members, groups, strict=True):
        row[kept[sorted(group)]] = True
    return members


def owners_of(members: Members) -> Int[Array, " marker"]:
    """Return the one body of each point: of bones that meet, the one nearer the root.

    The root is the body with most points, so that every other bone owns its far end.
    """
    owner = np.full(members.shape[1], -1, dtype=np.int64)
    first = int(members.sum(axis=1).argmax())
    queue, done = [first], {first}
    for body in queue:
        owner[members[body] & (owner < 0)] = body
        near = np.flatnonzero((members & members[body]).any(axis=1)).tolist()
        queue += [other for other in near if other not in done]
        done |= set(near)
    return owner


# --- names ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Word:
    """What a label says: which joint, on which side."""

    side: str
    """"l", "r", or "" for the middle."""

    joint: str
    """A word of `LIMBS` or `MIDDLE`; "" = none of them."""


def _words(labels: Sequence[str]) -> list[_Word]:
    plain = [re.sub(r"[\W_]+", "", label.casefold()) for label in labels]
    known = set(plain)
    return [_word(name, known) for name in plain]


def _word(name: str, known: set[str]) -> _Word:
    side, stem = _side_of(name, known)
    every = (*ALIKE, *(word for limb in LIMBS for word in limb), *MIDDLE)
    joint = next((word for word in every if word in stem), "")
    return _Word(side, ALIKE.get(joint, joint))


def _side_of(name: str, known: set[str]) -> tuple[str, str]:
    """Return the side that a name begins or ends with, and the rest of it.

    Only where the other side is there too: "SpineL" may be the last of the spine.
    """
    for this, other in SIDES:
        start, end = name.removeprefix(this), name.removesuffix(this)
        if start != name and other + start in known:
            return this[0], start
        if end != name and end + other in known:
            return this[0], end
    return "", name


def _named_so(words: Sequence[_Word]) -> bool:
    inner = {word for limb in LIMBS for word in limb[:3]}
    limbs = [(w.side, w.joint) for w in words if w.side and w.joint in inner]
    known = sum(bool(w.joint) for w in words)
    return (
        known >= NAMED * len(words)
        and len(limbs) >= FEWEST_JOINTS
        and len(set(limbs)) == len(limbs)
    )


def _given(words: Sequence[_Word]) -> set[Bone]:
    """Return the bones that names tell: along limbs, and along a spine or a tail."""
    if not _named_so(words):
        return set()
    found = set()
    for i, word in enumerate(words):
        limb = next((limb for limb in LIMBS if word.joint in limb), ())
        above = limb[: limb.index(word.joint)] if limb else ()
        for joint in reversed(above):
            ends = [
                j
                for j, other in enumerate(words)
                if (other.side, other.joint) == (word.side, joint)
            ]
            if ends:
                found.add((min(i, ends[0]), max(i, ends[0])))
                break
    for joint in ("spine", "tail"):
        chain = [i for i, w in enumerate(words) if w.joint == joint and not w.side]
        found |= set(pairwise(chain))
    return found


# --- motion ---------------------------------------------------------------------------


def _moving_so(stats: PairStats) -> bool:
    noise = scales_of(stats).noise
    spread = np.where(stats.known, stats.spread, np.inf)
    moving = stats.known & (spread > OPEN * noise)
    steady = spread <= NEAR_RIGID * noise
    count = steady.sum(axis=1)
    if np.mean(count > 1) < ENOUGH or np.median(count) > CROWD:
        return False
    joints = [moving[np.ix_(near, near)].any() for near in steady if near.sum() > 1]
    return float(np.mean(joints)) > MOSTLY


def _costs(
    stats: PairStats, scales: Scales, words: Sequence[_Word]
) -> Float[Array, "point point"]:
    """Return what each bone would cost: its length, times how it stretches."""
    stretch = np.hypot(1.0, np.nan_to_num(stats.spread) / scales.noise)
    side = np.array([word.side for word in words])
    aside = (side[:, None] != "") & (side != "")
    cost = stats.distance * stretch**STEADY * np.where(aside, ASIDE, 1.0)
    return np.where(stats.known, cost, np.inf)


def _spanning(cost: Float[Array, "point point"], given: set[Bone]) -> list[Bone]:
    """Return the cheapest tree of bones that has the given ones."""
    group = np.arange(len(cost))
    order = np.argsort(cost, axis=None, kind="stable").tolist()
    every = (divmod(place, len(cost)) for place in order)
    bones = []
    for i, j in (*sorted(given), *every):
        if group[i] != group[j] and np.isfinite(cost[i, j]):
            group[group == group[j]] = group[i]
            bones.append((min(i, j), max(i, j)))
    return bones


def _rigid_groups(
    bones: Sequence[Bone], given: set[Bone], stats: PairStats, scales: Scales
) -> list[set[int]]:
    """Return the points of each body: bones put together while all of it is rigid."""
    usual = float(np.median([stats.spread[bone] for bone in bones]))
    limit = RIGID * max(scales.noise, usual)

    def rigid(points: set[int]) -> bool:
        some = sorted(points)
        return bool(np.nanmax(stats.spread[np.ix_(some, some)]) <= limit)

    groups = [set(bone) for bone in bones if bone not in given]
    while True:
        unions = (
            (one, other)
            for one, other in combinations(groups, 2)
            if one & other and rigid(one | other)
        )
        one, other = next(unions, (set(), set()))
        if not one:
            return [*map(set, sorted(given & set(bones))), *groups]
        groups = [g for g in groups if g not in (one, other)] + [one | other]
