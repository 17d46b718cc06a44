"""Animals on four legs: two pairs of feet below, a level trunk between."""

import numpy as np

from marey.anatomy.naming.naming_input import (
    UP,
    Figure,
    Naming,
    agreement,
    counted,
    head_names,
    level,
    meeting,
    path,
)

Array = np.ndarray
Pair = tuple[int, int]

LEG = ("UpperLeg", "LowerLeg", "Foot", "Toes")

# How far apart in height the four feet may be, as a share of the figure's height.
LEVEL = 0.3

# Leaves beside the feet that a four-legged animal may have: head, tail, ears.
MOST_ENDS = 4

# How steep the trunk may be: its rise over its length.
STEEP = 0.7


def animal(figure: Figure) -> Naming | None:
    """Return the names of an animal on four legs, None when it does not look like one.

    The trunk is level, which keeps a person who bends down a person, and the head is
    what rises highest beyond one pair of legs.
    """
    height = figure.heights(UP)
    leaves = sorted(figure.leaves, key=lambda body: float(height[body]))
    if not 5 <= len(leaves) <= 4 + MOST_ENDS:
        return None
    feet, rest = leaves[:4], leaves[4:]
    tall = float(np.ptp(height[list(figure.near)]))
    pairs = _two_pairs(figure, feet)
    if height[feet[3]] - height[feet[0]] > LEVEL * tall or pairs is None:
        return None
    head = max(rest, key=lambda body: float(height[body]))
    ends = [meeting(figure, pair, head) for pair in pairs]
    legs = [
        len(path(figure.near, end, foot)) - 1
        for end, pair in zip(ends, pairs, strict=True)
        for foot in pair
    ]
    if min(legs) < 2 or abs(legs[0] - legs[1]) > 1 or abs(legs[2] - legs[3]) > 1:
        return None
    steps = [len(path(figure.near, end, head)) for end in ends]
    front, hind = (0, 1) if steps[0] < steps[1] else (1, 0)
    if _steepness(figure, ends[hind], ends[front]) > STEEP:
        return None
    names, sure = _names(figure, pairs[front], pairs[hind], head)
    return Naming("quadruped", names, UP, sure)


def _steepness(figure: Figure, hips: int, chest: int) -> float:
    trunk = figure.place[:, chest] - figure.place[:, hips]
    long = np.linalg.norm(trunk, axis=-1)
    return float(np.nanmedian(np.abs(trunk @ UP) / np.maximum(long, 1e-9)))


def _two_pairs(figure: Figure, feet: list[int]) -> tuple[Pair, Pair] | None:
    """Return the feet in two pairs, each meeting before it meets the other."""
    first, *others = feet
    for other in others:
        rest = [foot for foot in others if foot != other]
        one = set(path(figure.near, first, other))
        two = set(path(figure.near, *rest))
        if not one & two:
            return (first, other), (rest[0], rest[1])
    return None


def _names(
    figure: Figure, front: Pair, hind: Pair, head: int
) -> tuple[dict[int, str], float]:
    chest, hips = (meeting(figure, pair, head) for pair in (front, hind))
    left = np.cross(UP, level(figure.place[:, chest] - figure.place[:, hips], UP))
    names = {chest: "Chest", hips: "Hips"}
    sure = []
    for where, pair, end in (("Front", front, chest), ("Hind", hind, hips)):
        legs = [path(figure.near, end, foot)[1:] for foot in pair]
        across = figure.place[:, legs[0][0]] - figure.place[:, legs[1][0]]
        lean = agreement(left, level(across, UP))
        sure.append(abs(lean))
        for whose, leg in zip(
            ("Left", "Right"), legs if lean > 0 else legs[::-1], strict=True
        ):
            parts = zip(leg, LEG, strict=False)
            names |= {body: f"{where}{whose}{part}" for body, part in parts}
    spine = path(figure.near, hips, chest)[1:-1]
    names |= dict(zip(spine, counted("Spine", len(spine)), strict=True))
    neck = path(figure.near, chest, head)[1:]
    names |= dict(zip(neck, head_names(len(neck)), strict=True))
    tail = _tail(figure, hips, set(names))
    names |= dict(zip(tail, counted("Tail", len(tail)), strict=True))
    return names, min(1.0, *sure)


def _tail(figure: Figure, hips: int, named: set[int]) -> list[int]:
    """Return the longest way from the hips to an end that has no name yet."""
    ways = [path(figure.near, hips, leaf)[1:] for leaf in figure.leaves]
    free = [way for way in ways if not named & set(way)]
    return max(free, key=len, default=[])
