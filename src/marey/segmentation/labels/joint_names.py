"""Names of joints in labels: points that are joints themselves, not markers."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations

from marey.anatomy import names as vrm
from marey.segmentation.labels.limb_ends import (
    LimbPoint,
    bodies_at_limb_ends,
    is_finger,
)
from marey.segmentation.labels.marker_sets import MIN_MATCHED_FRACTION
from marey.segmentation.labels.words import names_an_animal, vocabulary

Bone = tuple[int, int]
"""Two points, the smaller index first."""

OPPOSITE_SIDES = tuple(
    sides
    for spelling in zip(*vrm.SIDE_SPELLINGS.values(), strict=True)
    for sides in permutations(spelling)
)
"""Spellings of a side, each with the other side in the same spelling."""

FACE_POINTS = ("nose", "eye", "ear", "mouth", "lip", "chin")
"""Words for points of the face of a person."""

HEAD_POINTS = (*FACE_POINTS, "head")
"""Words for points of the head of a person."""

MIN_LIMB_JOINTS = 6
"""Number of labels that must be inner joints of limbs. Higher recognises fewer sets of
keypoints by name. Chosen by hand."""


@dataclass(frozen=True, slots=True)
class JointWord:
    """The joint and the side that a label names."""

    side: str
    """"l", "r", or "" for the middle."""

    joint: str
    """A word for a joint of a limb or for a point on no limb; "" = neither."""


def parse_joint_names(labels: Sequence[str]) -> list[JointWord]:
    """Return the joint that each label names.

    Programs call the joints of a skeleton after the segments that they move: "LeftLeg"
    is the left knee if both sides have one label for each segment of their limbs, and
    none for a knee.
    """
    plain = _plain_labels(labels)
    words = [_parse_label(label, set(plain)) for label in plain]
    joint_of = vocabulary().segments
    moved = [
        JointWord(side, joint_of.get(stem, "") if side else "")
        for side, stem in (_split_side(label, set(plain)) for label in plain)
    ]
    if not _are_segments(words, moved):
        return _without_second_points(words, plain)
    return [two if two.joint else one for one, two in zip(words, moved, strict=True)]


def _plain_labels(labels: Sequence[str]) -> list[str]:
    """Return labels in lower case and without separators."""
    return [re.sub(r"[\W_]+", "", label.casefold()) for label in labels]


def _without_second_points(
    words: Sequence[JointWord], labels: Sequence[str]
) -> list[JointWord]:
    """Return the words of labels, those of a second point of one joint taken away.

    Only if both eyes are named, on which no marker sits: the points are then from
    pictures, where a body and a hand may both have a wrist. The shortest label stays.
    """
    inner = {joint for limb in vocabulary().limbs for joint in limb[:3]}
    if not {JointWord("l", "eye"), JointWord("r", "eye")} <= set(words):
        return list(words)
    order = sorted(range(len(words)), key=lambda i: (len(labels[i]), labels[i]))
    first = {words[i]: i for i in reversed(order)}
    return [
        JointWord(w.side, "") if w.joint in inner and first[w] != i else w
        for i, w in enumerate(words)
    ]


def _are_segments(words: Sequence[JointWord], moved: Sequence[JointWord]) -> bool:
    """Return whether labels name each segment of the limbs once, and no inner joint.

    Args:
        words: What the labels name as joints.
        moved: The joints that move what they name as segments.
    """
    inner = {joint for limb in vocabulary().limbs for joint in limb[1:2]}
    every = {joint for limb in vocabulary().limbs for joint in limb[:3]}
    count = Counter(word for word in moved if word.joint in every)
    return (
        not any(word.joint in inner for word in words)
        and len(count) == len(every) * len(vrm.SIDES)
        and max(count.values()) == 1
    )


def _parse_label(label: str, labels: set[str]) -> JointWord:
    side, stem = _split_side(label, labels)
    table = vocabulary()
    if is_finger(stem):
        return JointWord(side, "finger")
    inner = (word for limb in table.limbs for word in limb)
    words = (*table.same_joint, *inner, *table.midline)
    joint = next((word for word in words if word in stem), "")
    return JointWord(side, table.same_joint.get(joint, joint))


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


def are_joint_names(words: Sequence[JointWord]) -> bool:
    """Return whether labels are the names of joints.

    Most are words for joints, and each side has one shoulder, elbow, hip or knee, where
    markers would come in pairs.
    """
    inner = {word for limb in vocabulary().limbs for word in limb[:3]}
    limb_joints = [word for word in words if word.side and word.joint in inner]
    n_named = sum(bool(word.joint) for word in words)
    return (
        n_named >= MIN_MATCHED_FRACTION * len(words)
        and len(limb_joints) >= MIN_LIMB_JOINTS
        and len(set(limb_joints)) == len(limb_joints)
    )


def bones_of_names(words: Sequence[JointWord]) -> set[Bone]:
    """Return the bones that follow from names: along limbs, spine and tail."""
    if not are_joint_names(words):
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


def trunk_of_names(labels: Sequence[str]) -> tuple[set[int], set[int]]:
    """Return the points of a person's pelvis and chest; none if a side lacks one.

    They are hips and shoulders, with the points between them. Animals bend more there.
    """
    words, none = parse_joint_names(labels), (set[int](), set[int]())
    if not are_joint_names(words) or any(map(names_an_animal, labels)):
        return none
    parts = []
    for joint, middle in (("hip", ("hip",)), ("shoulder", ("neck", "chest"))):
        sides = {i for i, w in enumerate(words) if w.side and w.joint == joint}
        center = {i for i, w in enumerate(words) if not w.side and w.joint in middle}
        parts.append(sides | center if len(sides) == 2 else set())
    return (parts[0], parts[1]) if all(parts) else none


def limb_ends_of_names(labels: Sequence[str]) -> dict[frozenset[int], str]:
    """Return the points of the feet, hands and finger bones of a person, with names."""
    words = parse_joint_names(labels)
    if not are_joint_names(words) or any(map(names_an_animal, labels)):
        return {}
    plain = _plain_labels(labels)
    stems = [_split_side(label, set(plain))[1] for label in plain]
    return bodies_at_limb_ends(
        [LimbPoint(w.side, s, w.joint) for w, s in zip(words, stems, strict=True)]
    )


def standing_points(labels: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return the joints that move chest, lower legs and feet of a person, by body."""
    words = parse_joint_names(labels)
    if not any(trunk_of_names(labels)):
        return {}
    joints = {vrm.CHEST: "shoulder", vrm.LOWER_LEG: "knee", vrm.FOOT: "ankle"}
    found = {
        body: tuple(i for i, w in enumerate(words) if w.side and w.joint == joint)
        for body, joint in joints.items()
    }
    return {body: points for body, points in found.items() if points}


def name_of_bone(words: Sequence[JointWord], points: Collection[int]) -> str:
    """Return the name of the body of a person between these points; "" = unknown."""
    found = {words[i] for i in points}
    for joint, body in (("hip", vrm.HIPS), ("shoulder", vrm.CHEST)):
        if {JointWord("l", joint), JointWord("r", joint)} <= found:
            return body
    if any(word.joint in HEAD_POINTS for word in found):
        return vrm.HEAD
    if {word.joint for word in found} in ({"hip", "neck"}, {"hip", "chest"}):
        return vrm.SPINE
    return _name_in_limb(found)


def _name_in_limb(words: Collection[JointWord]) -> str:
    """Return the body below the innermost joint of a limb; "" if of none or of two."""
    sided = {(word.side, word.joint) for word in words if word.side}
    if len({side for side, _ in sided}) != 1:
        return ""
    prefix = vrm.LEFT if min(sided)[0] == "l" else vrm.RIGHT
    inner = {joint for _, joint in sided}
    arm, leg = vocabulary().limbs
    body_of = dict(zip(arm, vrm.ARM[1:], strict=False))
    body_of |= dict(zip(leg, vrm.LEG, strict=False))
    return next((prefix + body_of[joint] for joint in body_of if joint in inner), "")


def _parent_point(words: Sequence[JointWord], word: JointWord) -> int:
    """Return the point next to a joint on its limb, towards the trunk; -1 = none."""
    limb = next((limb for limb in vocabulary().limbs if word.joint in limb), ())
    inward = limb[: limb.index(word.joint)][::-1] if limb else ()
    parents = (JointWord(word.side, joint) for joint in inward)
    return next((words.index(parent) for parent in parents if parent in words), -1)
