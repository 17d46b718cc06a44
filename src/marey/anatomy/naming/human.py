"""People: a head above, two feet below, and hands on the way between.

Bodies are named by where they are along a limb, as a share of the figure's length, and
not by their number from the trunk: a thigh that went with the hips, a collar bone or a
piece of the pelvis by itself must not shift all names below.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from marey.anatomy.naming.limbs import (
    ARM,
    LEG,
    LEG_WITH_TOES,
    NAMELESS,
    OFF,
    Placed,
    placed,
)
from marey.anatomy.naming.naming_input import Figure, Naming, head_names, meeting, path
from marey.anatomy.naming.sides import arms_by_side, legs_left_first

Array = np.ndarray

# Where the chest is above the hips, and the head above the chest, as shares of the way
# from a foot to the head.
CHEST, HEAD = 0.24, 0.16

# How far apart in height the two feet may be, as a share of the figure's height.
LEVEL = 0.25

# The ground may be so far below the feet, as a share of the height.
ABOVE = 0.15

# Per cent of the time for which a foot is on the ground at least.
STANDING = 10.0

# Leaves that may be feet: the lowest.
MOST_FEET = 4

# Share of the bodies that must get names.
MOST_NAMED = 0.6

# How well cues on left and right must agree for a person who lies on another axis.
CLEAR = 0.3

# How much bodies may be off, on average: of somebody upright, of somebody who lies, and
# of one who lies and of whom the sides are not clear.
ALIKE, LIKE, EXACT = 3.0, 1.0, 0.5

AXES = tuple(sign * axis for sign in (1.0, -1.0) for axis in np.eye(3)[[2, 1, 0]])


@dataclass(frozen=True, slots=True)
class _Limbs:
    """The parts of a person, each by its name without the side."""

    hips: int
    legs: list[dict[str, int]]
    arms: list[dict[str, int]]
    trunk: list[int]
    """From above the hips up to and with the chest."""

    head: list[int]
    """From above the chest up to and with the head."""

    cost: float
    """How far bodies are from where their names have them, and what is missing."""

    @property
    def chest(self) -> int:
        """The body that arms hang from."""
        return self.trunk[-1] if self.trunk else self.hips

    @property
    def has_feet(self) -> bool:
        """Whether both legs have a thigh, a shank and a foot."""
        return all({"UpperLeg", "LowerLeg", "Foot"} <= set(leg) for leg in self.legs)

    @property
    def is_whole(self) -> bool:
        """Whether there are a head, two arms and two legs with knees."""
        knees = all({"UpperLeg", "LowerLeg"} <= set(leg) for leg in self.legs)
        return bool(self.head and len(self.arms) == 2 and knees)

    @property
    def count(self) -> int:
        """How many bodies have a name."""
        limbs = sum(map(len, (*self.legs, *self.arms)))
        return 1 + limbs + len(self.trunk) + len(self.head)


def person(figure: Figure) -> Naming | None:
    """Return the names of a person's bodies, None when it does not look like one.

    A person may lie along any axis of the world, as files may be wrong about which is
    up; but then it must have all limbs, and know its left from its right or be very
    much like a person. Legs without arms must have feet that point somewhere.
    """
    for up in AXES:
        found = min(_readings(figure, up), key=lambda limbs: limbs.cost, default=None)
        if found is None:
            continue
        legs, sure = legs_left_first(figure, found.hips, found.legs, found.arms, up)
        arms = arms_by_side(figure, found.chest, legs, found.arms, up)
        upright = up is AXES[0] and arms
        legs_alone = up is AXES[0] and found.has_feet and sure > CLEAR
        off = found.cost / len(figure.near)
        lying = found.is_whole and off < (LIKE if sure > CLEAR else EXACT)
        if (off < ALIKE and (upright or legs_alone)) or lying:
            fit = float(1.0 / (1.0 + off))
            limbs = [("Left", legs[0]), ("Right", legs[1]), *arms.items()]
            return Naming("human", _names(found, limbs), up, sure, fit)
    return None


def _readings(figure: Figure, up: Array) -> Iterator[_Limbs]:
    """Return the ways to see a person in the figure, whichever ends are its feet."""
    height = figure.heights(up)
    leaves = sorted(figure.leaves, key=lambda body: float(height[body]))
    tall = float(np.ptp(height[list(figure.near)]))
    for feet in combinations(leaves[:MOST_FEET], 2):
        rest = [leaf for leaf in leaves if leaf not in feet]
        if not rest or abs(height[feet[1]] - height[feet[0]]) > LEVEL * tall:
            continue
        for top in (rest[-1], _shoulders(figure, feet, rest)):
            limbs = _limbs(figure, feet, rest, top, up)
            if limbs is not None and _plausible(limbs, figure, height, tall):
                yield limbs


def _shoulders(figure: Figure, feet: Sequence[int], rest: list[int]) -> int:
    """Return where the ways from the other leaves meet, for figures without a head."""
    between = path(figure.near, rest[0], rest[-1])
    return next(b for b in path(figure.near, feet[0], rest[0]) if b in between)


def _limbs(
    figure: Figure, feet: Sequence[int], rest: list[int], top: int, up: Array
) -> _Limbs | None:
    """Return the limbs of a figure whose trunk ends in `top`, a head or shoulders."""
    height = figure.heights(up)
    hips = meeting(figure, feet, top)
    if top == hips or hips in feet:
        return None
    upward = path(figure.near, hips, top)
    legs = [path(figure.near, hips, foot) for foot in feet]
    headless = top not in rest
    leg = float(np.mean([figure.steps(way)[-1] for way in legs]))
    long = (figure.steps(upward)[-1] + leg) / (1.0 - HEAD * headless)
    if long <= 0.0:
        return None
    arms = _arm_ways(figure, upward, [leaf for leaf in rest if leaf != top])
    chest = len(upward) - 1 if headless else _chest(upward, arms)
    if not headless and height[top] <= height[upward[chest]]:
        return None
    ground = _ground(float(height[list(figure.near)].min()), long)
    stand = [float(np.nanpercentile(figure.place[:, f] @ up, STANDING)) for f in feet]
    raised = [max(low - ground, 0.0) / long for low in stand]
    named_legs = [
        _leg(figure, way, above, long) for way, above in zip(legs, raised, strict=True)
    ]
    named_arms = [placed(w[1:], figure.steps(w)[1:] / long, ARM) for w in arms]
    named_arms = [(names, cost) for names, cost in named_arms if names]
    ends = [*named_legs, *named_arms]
    off = [*_trunk_off(figure.steps(upward) / long, chest, headless), *raised]
    lost = len(figure.near) - len(upward) - sum(map(len, (*legs, *arms))) + len(ends)
    return _Limbs(
        hips=hips,
        legs=[names for names, _ in named_legs],
        arms=[names for names, _ in named_arms],
        trunk=upward[1 : chest + 1],
        head=[] if headless else upward[chest + 1 :],
        cost=sum(cost for _, cost in ends)
        + sum((x / OFF) ** 2 for x in off)
        + NAMELESS * (lost + headless + 2 - len(named_arms)),
    )


def _trunk_off(up: Array, chest: int, headless: bool) -> list[float]:
    """Return how far chest and head are from where they should be, as shares."""
    off = [float(up[chest]) - CHEST]
    return off if headless else [*off, float(up[-1] - up[chest]) - HEAD]


def _ground(lowest: float, long: float) -> float:
    """Return the height of the ground: 0 where that is just below all bodies."""
    return 0.0 if 0.0 <= lowest < ABOVE * long else lowest


def _leg(figure: Figure, way: list[int], end: float, long: float) -> Placed:
    """Return the names of a leg whose end is somewhat above the ground."""
    steps = figure.steps(way)
    above = (steps[-1] - steps[1:]) / long + end
    plain, long_foot = (placed(way[1:], above, n) for n in (LEG, LEG_WITH_TOES))
    toes = "Toes" in long_foot[0] and long_foot[1] < plain[1]
    return long_foot if toes else plain


def _arm_ways(figure: Figure, upward: list[int], leaves: list[int]) -> list[list[int]]:
    """Return the two longest limbs that leave the trunk, the body they leave first."""
    found = []
    for leaf in leaves:
        way = path(figure.near, upward[0], leaf)
        on_trunk = [body for body in way if body in upward]
        found.append(way[len(on_trunk) - 1 :])
    found = [way for way in found if way[0] != upward[0] or len(upward) < 3]
    # Of limbs that share bodies, fingers, the longest stands for all.
    found.sort(key=lambda way: (len(way), figure.steps(way)[-1]), reverse=True)
    apart: list[list[int]] = []
    for way in found:
        if all(way[1] != other[1] for other in apart):
            apart.append(way)
    return apart[:2]


def _chest(upward: list[int], arms: list[list[int]]) -> int:
    """Return how far up the body is that arms hang from."""
    starts = [upward.index(arm[0]) for arm in arms]
    chest = max(starts) if starts else max(len(upward) - 2, 0)
    return max(chest, min(1, len(upward) - 2))


def _plausible(limbs: _Limbs, figure: Figure, height: Array, tall: float) -> bool:
    """Return whether most bodies have a name, and hips are above legs with knees."""
    if not all({"UpperLeg", "LowerLeg"} & set(leg) for leg in limbs.legs):
        return False
    lowest = min(float(height[b]) for leg in limbs.legs for b in leg.values())
    return bool(
        limbs.count >= MOST_NAMED * len(figure.near)
        and 0.35 * tall < height[limbs.hips] - lowest < 0.8 * tall
    )


# --- names ----------------------------------------------------------------------------


def _names(
    limbs: _Limbs, sided: Sequence[tuple[str, dict[str, int]]]
) -> dict[int, str]:
    names = {limbs.hips: "Hips"}
    names |= dict(zip(limbs.trunk, _trunk_names(len(limbs.trunk)), strict=True))
    names |= dict(zip(limbs.head, head_names(len(limbs.head)), strict=True))
    for side, limb in sided:
        names |= {body: side + part for part, body in limb.items()}
    return names


def _trunk_names(count: int) -> list[str]:
    known = {0: [], 1: ["Chest"], 2: ["Spine", "Chest"]}
    if count in known:
        return known[count]
    more = [f"Spine{i}" for i in range(2, count - 1)]
    return ["Spine", *more, "Chest", "UpperChest"]
