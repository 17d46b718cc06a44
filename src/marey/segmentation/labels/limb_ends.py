"""Feet, hands and fingers among points that are joints, by their names.

Heel and toes are points of one foot, knuckles those of one hand. The joints of a finger
make a chain from its knuckle to its tip.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from marey.anatomy import names as vrm
from marey.segmentation.labels.words import vocabulary

FINGER = re.compile(
    r"(hand)?(?P<finger>thumb|index|fore|middle|ring|pinky|little)(finger)?"
    r"(?P<joint>cmc|mcp|pip|dip|ip|tip|\d?)"
)
"""Label of a point of a finger, without its side; without a joint it is on the hand."""

MOVING_JOINTS = ("ankle", "wrist")
"""Joints that move feet and hands, which are also points of the limb above."""

FINGER_JOINTS = ("cmc", "mcp", "pip", "ip", "dip", "tip")
"""Joints of fingers from the hand outward."""

FINGER_NAMES = {finger.lower(): finger for finger in vrm.FINGERS} | {
    "fore": "Index",
    "pinky": "Little",
}


class LimbPoint(NamedTuple):
    """What the label of a point of a limb says."""

    side: str
    """"l" or "r"."""

    stem: str
    """The label without its side and separators, in lower case."""

    joint: str
    """The word for its joint."""


def is_finger(stem: str) -> bool:
    """Return whether a label without its side is of a point of a finger."""
    return FINGER.fullmatch(stem) is not None


def bodies_at_limb_ends(points: Sequence[LimbPoint]) -> dict[frozenset[int], str]:
    """Return the points of each foot, hand and finger bone, with the body's name.

    The points of a foot are one body if one is a heel, or if two have the same word:
    without, foot and toe are a chain of joints.
    """
    found: dict[frozenset[int], str] = {}
    for side, name in zip("lr", vrm.SIDES, strict=True):
        own = {i: point for i, point in enumerate(points) if point.side == side}
        foot = {i for i, point in own.items() if point.joint in ("foot", "toe")}
        if len(foot) > 1 and not _is_chain([own[i] for i in foot]):
            found |= _with_joint(own, "ankle", foot, name + vrm.FOOT)
        knuckles, bones = _divide_fingers(own, name)
        if len(knuckles) > 1:
            hand = _with_joint(own, "wrist", knuckles, name + vrm.HAND)
            found |= {**hand, **bones} if hand else {}
    return found


def _is_chain(foot: Sequence[LimbPoint]) -> bool:
    """Return whether the points of a foot are joints one after the other."""
    heels = [word for word, joint in vocabulary().same_joint.items() if joint == "toe"]
    has_heel = any(word in point.stem for point in foot for word in heels)
    return not has_heel and len({point.joint for point in foot}) == len(foot)


def _with_joint(
    own: Mapping[int, LimbPoint], joint: str, points: set[int], name: str
) -> dict[frozenset[int], str]:
    """Return a body of points and of the joint that moves them; none without it.

    A second point of this joint has no word of its own.
    """
    anchor = {i for i, point in own.items() if point.joint == joint}
    second = {i for i, point in own.items() if not point.joint and joint in point.stem}
    return {frozenset(points | anchor | second): name} if len(anchor) == 1 else {}


def _divide_fingers(
    own: Mapping[int, LimbPoint], side: str
) -> tuple[set[int], dict[frozenset[int], str]]:
    """Return the points of a hand with its knuckles, and the bones of its fingers."""
    fingers: dict[str, dict[int, int]] = defaultdict(dict)
    knuckles, bones = set(), {}
    for i, point in own.items():
        match = FINGER.fullmatch(point.stem)
        if match and match["joint"]:
            fingers[FINGER_NAMES[match["finger"]]][i] = _rank(match["joint"])
        elif match:
            knuckles.add(i)
    for finger, rank_of in fingers.items():
        chain = sorted(rank_of, key=lambda i: rank_of[i])
        knuckles.add(chain[0])
        for bone, phalanx in zip(pairwise(chain), vrm.PHALANGES, strict=False):
            bones[frozenset(bone)] = side + finger + phalanx
    return knuckles, bones


def _rank(joint: str) -> int:
    """Return the place of a joint along its finger."""
    return int(joint) if joint.isdigit() else FINGER_JOINTS.index(joint)
