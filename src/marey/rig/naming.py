"""Names for the bodies of a figure that looks like a person or a four-legged animal.

A person has a head above, two feet below, and hands on the way between; which side is
left follows from where toes, knees and elbows point. Names are those of the VRM
humanoid: Hips, Spine, Chest, Neck, Head, LeftUpperArm, ...
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

Array = np.ndarray
Graph = Mapping[int, Sequence[int]]

LEG = ("UpperLeg", "LowerLeg", "Foot", "Toes")
ARM = ("UpperArm", "LowerArm", "Hand")

# How far apart in height the two feet may be, as a share of the figure's height.
LEVEL = 0.25

# Longest limbs, in bodies.
LONGEST_LEG, LONGEST_ARM = 5, 5

# How well cues on left and right must agree for a person who lies on another axis.
CLEAR = 0.3

# Leaves beside the feet that a four-legged animal may have: head, tail, ears.
MOST_ENDS = 4

# Cues on which way the figure faces count so much.
TOES, KNEES, ELBOWS = 2.0, 1.0, 1.0

AXES = tuple(sign * axis for sign in (1.0, -1.0) for axis in np.eye(3)[[2, 1, 0]])


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """What naming looks at: bodies over time and how they hang together."""

    place: Float[Array, "frame body 3"]
    """Middle of every body, in metres; a sample of frames will do."""

    joint: Mapping[tuple[int, int], Float[Array, "frame 3"]]
    """Centre of the joint of two neighbours, smaller number first."""

    near: Graph
    """Neighbours of each body."""


@dataclass(frozen=True, slots=True, eq=False)
class Naming:
    """Names found, and which way is up and ahead."""

    kind: str
    """"human" or "quadruped"."""

    names: Mapping[int, str]
    """Name of each body that has a part to play; others keep their own."""

    up: Float[Array, " 3"]
    """The direction that the figure stands along, in the world."""

    sure: float
    """How well the cues on left and right agree, 0 to 1."""


@dataclass(frozen=True, slots=True)
class _Limbs:
    legs: list[list[int]]
    """From the hips outward."""

    arms: list[list[int]] = field(default_factory=list)
    trunk: list[int] = field(default_factory=list)
    """From above the hips up to and with the chest."""

    head: list[int] = field(default_factory=list)
    """From above the chest up to and with the head."""

    hips: int = -1

    @property
    def has_feet(self) -> bool:
        """Whether both legs have a thigh, a shank and a foot."""
        return min(map(len, self.legs)) >= 3

    @property
    def is_whole(self) -> bool:
        """Whether there are a head, two arms and two legs with knees."""
        return bool(self.head and len(self.arms) == 2 and min(map(len, self.legs)) >= 2)


def named(figure: Figure) -> Naming | None:
    """Return names for the bodies, None when the figure looks like nothing known.

    A person may lie along any axis of the world, as files may be wrong about which is
    up; but then it must have all limbs and know its left from its right. Legs without
    arms must have feet that point somewhere.
    """
    for up in AXES:
        limbs = _person(figure, up)
        if limbs is None:
            continue
        side, sure = _left_first(figure, limbs, up)
        upright = up is AXES[0] and len(limbs.arms) == 2
        legs_alone = up is AXES[0] and limbs.has_feet and sure > CLEAR
        if upright or legs_alone or (limbs.is_whole and sure > CLEAR):
            return Naming("human", _human_names(limbs, side), up, sure)
    names = _four_legs(figure, AXES[0])
    return None if names is None else Naming("quadruped", names, AXES[0], 1.0)


# --- the parts of a person ------------------------------------------------------------


def _person(figure: Figure, up: Array) -> _Limbs | None:
    height = np.nanmedian(figure.place @ up, axis=0)
    leaves = [body for body, near in figure.near.items() if len(near) == 1]
    if len(leaves) < 3:
        return None
    leaves.sort(key=lambda body: float(height[body]))
    feet, rest = leaves[:2], leaves[2:]
    tall = float(height.max() - height[feet[0]])
    if height[feet[1]] - height[feet[0]] > LEVEL * tall:
        return None
    for top in (rest[-1], _shoulders(figure, feet, rest)):
        limbs = _limbs(figure, feet, rest, top)
        if limbs is not None and _plausible(limbs, height, tall):
            return limbs
    return None


def _shoulders(figure: Figure, feet: list[int], rest: list[int]) -> int:
    """Return where the ways from the other leaves meet, for figures without a head."""
    between = path(figure.near, rest[0], rest[-1])
    return next(b for b in path(figure.near, feet[0], rest[0]) if b in between)


def _limbs(figure: Figure, feet: list[int], rest: list[int], top: int) -> _Limbs | None:
    """Return the limbs of a figure whose trunk ends in `top`, a head or shoulders."""
    between = path(figure.near, *feet)
    meeting = [body for body in path(figure.near, feet[0], top) if body in between]
    hips = meeting[-1]
    legs = [path(figure.near, hips, foot)[1:] for foot in feet]
    if top == hips or not all(legs):
        return None
    upward = path(figure.near, hips, top)
    arms = _arms(figure, upward, [leaf for leaf in rest if leaf != top])
    headless = top not in rest
    return _split(hips, legs, arms, upward, headless=headless)


def _arms(figure: Figure, upward: list[int], leaves: list[int]) -> list[list[int]]:
    """Return the two longest limbs that leave the trunk, the body they leave first."""
    found = []
    for leaf in leaves:
        way = path(figure.near, upward[0], leaf)
        on_trunk = [body for body in way if body in upward]
        found.append(way[len(on_trunk) - 1 :])
    found = [way for way in found if way[0] != upward[0] or len(upward) < 3]
    # Of limbs that share bodies, fingers, the longest stands for all.
    found.sort(key=len, reverse=True)
    apart: list[list[int]] = []
    for way in found:
        if all(way[1] != other[1] for other in apart):
            apart.append(way)
    return apart[:2]


def _split(
    hips: int,
    legs: list[list[int]],
    arms: list[list[int]],
    upward: list[int],
    *,
    headless: bool,
) -> _Limbs:
    if headless:
        limbs = [arm[1:] for arm in arms]
        return _Limbs(legs=legs, arms=limbs, trunk=upward[1:], hips=hips)
    starts = [upward.index(arm[0]) for arm in arms if arm[0] in upward]
    chest = max(starts) if starts else max(len(upward) - 2, 0)
    chest = max(chest, min(1, len(upward) - 2))
    return _Limbs(
        legs=legs,
        arms=[arm[1:] for arm in arms],
        trunk=upward[1 : chest + 1],
        head=upward[chest + 1 :],
        hips=hips,
    )


def _plausible(limbs: _Limbs, height: Array, tall: float) -> bool:
    """Return whether limbs are of the right number and length, hips above knees."""
    long = [len(leg) for leg in limbs.legs]
    hips = float(height[limbs.hips] - height[limbs.legs[0][-1]])
    return (
        1 <= min(long) <= max(long) <= LONGEST_LEG
        and abs(long[0] - long[1]) <= 1
        and len(limbs.arms) in (0, 2)
        and all(1 <= len(arm) <= LONGEST_ARM for arm in limbs.arms)
        and 0.35 * tall < hips < 0.8 * tall
    )


def path(near: Graph, start: int, end: int) -> list[int]:
    """Return the bodies from one to another along the tree, both among them."""
    before = {start: -1}
    queue = [start]
    for body in queue:
        for other in near[body]:
            if other not in before:
                before[other] = body
                queue.append(other)
    way = [end]
    while before[way[-1]] >= 0:
        way.append(before[way[-1]])
    return way[::-1]


# --- left and right -------------------------------------------------------------------


def _left_first(figure: Figure, limbs: _Limbs, up: Array) -> tuple[_Limbs, float]:
    """Return the limbs with the left ones first, and how well the cues agree."""
    first, second = (figure.place[:, leg[0]] for leg in limbs.legs)
    left = np.cross(up, _ahead(figure, limbs, up))
    across = _level(first - second, up)
    score = np.nanmean(np.sum(left * across, axis=-1))
    legs = limbs.legs if score > 0 else limbs.legs[::-1]
    arms = limbs.arms
    if arms:
        hands = figure.place[:, arms[0][0]] - figure.place[:, arms[1][0]]
        same = np.nanmean(np.sum(_level(hands, up) * across, axis=-1)) > 0
        arms = arms if same == (score > 0) else arms[::-1]
    return (
        _Limbs(legs, arms, limbs.trunk, limbs.head, limbs.hips),
        min(float(abs(score)), 1.0),
    )


def _ahead(figure: Figure, limbs: _Limbs, up: Array) -> Float[Array, "frame 3"]:
    """Return which way the figure faces, level, of length one when all cues agree."""
    total = np.zeros((len(figure.place), 3))
    weight = 0.0
    for leg in limbs.legs:
        if len(leg) >= 3:
            ankle = _joint(figure, leg[1], leg[2])
            total += TOES * _level(figure.place[:, leg[2]] - ankle, up)
            weight += TOES
        if len(leg) >= 2:
            hip, knee = _joint(figure, limbs.hips, leg[0]), _joint(figure, *leg[:2])
            end = figure.place[:, leg[1]]
            total += KNEES * _level(knee - 0.5 * (hip + end), up)
            weight += KNEES
    for arm in limbs.arms:
        if len(arm) >= 2:
            elbow = _joint(figure, *arm[-2:]) if len(arm) == 2 else None
            elbow = _joint(figure, arm[-3], arm[-2]) if elbow is None else elbow
            ends = figure.place[:, arm[-1]] + figure.place[:, arm[0]]
            total += ELBOWS * _level(0.5 * ends - elbow, up)
            weight += ELBOWS
    return total / max(weight, 1.0)


def _joint(figure: Figure, a: int, b: int) -> Float[Array, "frame 3"]:
    return figure.joint[min(a, b), max(a, b)]


def _level(way: Float[Array, "frame 3"], up: Array) -> Float[Array, "frame 3"]:
    """Return unit vectors along the ground; zero where there is no direction."""
    flat = way - np.outer(way @ up, up)
    length = np.linalg.norm(flat, axis=-1, keepdims=True)
    unit = np.divide(flat, length, out=np.zeros_like(flat), where=length > 1e-9)
    return np.asarray(np.nan_to_num(unit))


# --- names ----------------------------------------------------------------------------


def _human_names(limbs: _Limbs, side: _Limbs) -> dict[int, str]:
    names = {limbs.hips: "Hips"}
    names |= dict(zip(limbs.trunk, _trunk_names(len(limbs.trunk)), strict=True))
    names |= dict(zip(limbs.head, _head_names(len(limbs.head)), strict=True))
    for whose, leg in zip(("Left", "Right"), side.legs, strict=True):
        names |= {body: whose + part for body, part in zip(leg, LEG, strict=False)}
    for whose, arm in zip(("Left", "Right"), side.arms, strict=False):
        parts = ("Shoulder", *ARM) if len(arm) > len(ARM) else ARM
        names |= {body: whose + part for body, part in zip(arm, parts, strict=False)}
    return names


def _trunk_names(count: int) -> list[str]:
    known = {0: [], 1: ["Chest"], 2: ["Spine", "Chest"]}
    if count in known:
        return known[count]
    more = [f"Spine{i}" for i in range(2, count - 1)]
    return ["Spine", *more, "Chest", "UpperChest"]


def _head_names(count: int) -> list[str]:
    if count < 2:
        return ["Head"][:count]
    return ["Neck", *(f"Neck{i}" for i in range(2, count)), "Head"]


# --- four legs ------------------------------------------------------------------------


def _four_legs(figure: Figure, up: Array) -> dict[int, str] | None:
    height = np.nanmedian(figure.place @ up, axis=0)
    leaves = [body for body, near in figure.near.items() if len(near) == 1]
    leaves.sort(key=lambda body: float(height[body]))
    if not 5 <= len(leaves) <= 4 + MOST_ENDS:
        return None
    feet, rest = leaves[:4], leaves[4:]
    tall = float(height.max() - height[feet[0]])
    pairs = _two_pairs(figure, feet)
    if height[feet[3]] - height[feet[0]] > LEVEL * tall or pairs is None:
        return None
    head = max(rest, key=lambda body: float(height[body]))
    ends = [_meeting(figure, pair, head) for pair in pairs]
    legs = [
        len(path(figure.near, end, foot)) - 1
        for end, pair in zip(ends, pairs, strict=True)
        for foot in pair
    ]
    if min(legs) < 2 or abs(legs[0] - legs[1]) > 1 or abs(legs[2] - legs[3]) > 1:
        return None
    steps = [len(path(figure.near, end, head)) for end in ends]
    front, hind = (0, 1) if steps[0] < steps[1] else (1, 0)
    return _quadruped_names(figure, up, pairs[front], pairs[hind], head)


def _two_pairs(
    figure: Figure, feet: list[int]
) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return the feet in two pairs, each meeting before it meets the other."""
    first, *others = feet
    for other in others:
        rest = [foot for foot in others if foot != other]
        one = set(path(figure.near, first, other))
        two = set(path(figure.near, *rest))
        if not one & two:
            return (first, other), (rest[0], rest[1])
    return None


def _meeting(figure: Figure, pair: tuple[int, int], outside: int) -> int:
    between = path(figure.near, *pair)
    return [b for b in path(figure.near, pair[0], outside) if b in between][-1]


def _quadruped_names(
    figure: Figure, up: Array, front: tuple[int, int], hind: tuple[int, int], head: int
) -> dict[int, str]:
    chest, hips = (_meeting(figure, pair, head) for pair in (front, hind))
    ahead = figure.place[:, chest] - figure.place[:, hips]
    left = np.cross(up, _level(ahead, up))
    names = {chest: "Chest", hips: "Hips"}
    for where, pair, end in (("Front", front, chest), ("Hind", hind, hips)):
        legs = [path(figure.near, end, foot)[1:] for foot in pair]
        across = figure.place[:, legs[0][0]] - figure.place[:, legs[1][0]]
        first_left = np.nanmean(np.sum(left * across, axis=-1)) > 0
        for whose, leg in zip(
            ("Left", "Right"), legs if first_left else legs[::-1], strict=True
        ):
            parts = zip(leg, LEG, strict=False)
            names |= {body: f"{where}{whose}{part}" for body, part in parts}
    spine = path(figure.near, hips, chest)[1:-1]
    names |= {b: "Spine" + ("" if i == 0 else str(i + 1)) for i, b in enumerate(spine)}
    neck = path(figure.near, chest, head)[1:]
    return names | dict(zip(neck, _head_names(len(neck)), strict=True))
