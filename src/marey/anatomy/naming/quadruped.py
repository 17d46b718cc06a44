"""Recognition of an animal on four legs: two pairs of feet and a level trunk.

The trunk may be one body, where hips and chest did not move against each other.
"""

from itertools import combinations

import numpy as np

from marey.anatomy import names as vrm
from marey.anatomy.naming.naming_input import (
    UP,
    Naming,
    NamingInput,
    head_names,
    heading,
    mean_cosine,
    number_names,
)
from marey.numerics import Float

Pair = tuple[int, int]

MAX_TRUNK_SLOPE = float(np.sqrt(0.5))
"""Largest rise of the trunk over its length: it is nearer to level than to upright."""


def name_quadruped(figure: NamingInput) -> Naming | None:
    """Return the names of an animal on four legs, None if the figure is none.

    The four lowest leaves, all in the lower half, are the feet. Each must be nearer to
    the ground than to the trunk, and the trunk level, so that a person who bends down
    stays a person. The head is the highest other leaf, and the front legs are the pair
    nearer to the head.
    """
    height = figure.heights(UP)
    leaves = sorted(figure.leaves, key=lambda body: float(height[body]))
    feet, others = leaves[:4], leaves[4:]
    if not others or feet[-1] not in figure.low_leaves(UP):
        return None
    pairs = _pair_feet(figure, feet)
    if pairs is None:
        return None
    head = max(others, key=lambda body: float(height[body]))
    legs = [leg for pair in pairs for leg in _legs(figure, pair, head)]
    sizes = [len(leg) for leg in legs]
    if min(sizes) < 2 or abs(sizes[0] - sizes[1]) > 1 or abs(sizes[2] - sizes[3]) > 1:
        return None
    if not all(_stands(figure, leg) for leg in legs):
        return None
    front, hind = sorted(pairs, key=lambda pair: _distance_to_head(figure, pair, head))
    trunk = _shoulders(figure, front, head) - _shoulders(figure, hind, head)
    if _slope(trunk) > MAX_TRUNK_SLOPE:
        return None
    names, confidence = _find_names(figure, front, hind, head, trunk)
    return Naming("quadruped", names, UP, confidence)


def _legs(figure: NamingInput, pair: Pair, head: int) -> list[list[int]]:
    """Return the bodies of both legs of a pair, from the trunk to the feet."""
    junction = figure.junction(pair, head)
    return [figure.path(junction, foot)[1:] for foot in pair]


def _stands(figure: NamingInput, leg: list[int]) -> bool:
    """Return whether the foot of a leg is nearer to the ground than to the trunk.

    The ground is as high as the lowest body. A hand of a person who bends down is not.
    """
    height = figure.heights(UP)
    upper, foot = height[[leg[0], leg[-1]]] - np.nanmin(height)
    return bool(foot < 0.5 * upper)


def _shoulders(
    figure: NamingInput, pair: Pair, head: int
) -> Float[np.ndarray, "frame 3"]:
    """Return the middle of the uppermost bodies of a pair of legs, in metres."""
    uppermost = [leg[0] for leg in _legs(figure, pair, head)]
    return np.asarray(figure.position[:, uppermost].mean(axis=1))


def _distance_to_head(figure: NamingInput, pair: Pair, head: int) -> tuple[int, float]:
    """Return the bodies between a pair of legs and the head, and the metres."""
    n_bodies = len(figure.path(figure.junction(pair, head), head))
    away = figure.position[:, head] - _shoulders(figure, pair, head)
    return n_bodies, float(np.nanmedian(np.linalg.norm(away, axis=-1)))


def _slope(trunk: Float[np.ndarray, "frame 3"]) -> float:
    length = np.linalg.norm(trunk, axis=-1)
    return float(np.nanmedian(np.abs(trunk @ UP) / np.maximum(length, 1e-9)))


def _pair_feet(figure: NamingInput, feet: list[int]) -> tuple[Pair, Pair] | None:
    """Return two pairs of feet whose connecting paths do not touch; None if none do.

    If all paths meet in one body, the pairs are those whose feet are nearest.
    """
    first, *others = feet
    pairings: list[tuple[Pair, Pair]] = []
    for other in others:
        third, fourth = (foot for foot in others if foot != other)
        pairings.append(((first, other), (third, fourth)))
    for one, two in pairings:
        if set(figure.path(*one)).isdisjoint(figure.path(*two)):
            return one, two
    paths = [set(figure.path(*pair)) for pair in combinations(feet, 2)]
    if len(set.intersection(*paths)) != 1:
        return None
    return min(pairings, key=lambda pairs: sum(_gap(figure, pair) for pair in pairs))


def _gap(figure: NamingInput, pair: Pair) -> float:
    """Return the median distance of two feet, in metres."""
    a, b = (figure.position[:, foot] for foot in pair)
    return float(np.nanmedian(np.linalg.norm(a - b, axis=-1)))


def _find_names(
    figure: NamingInput,
    front: Pair,
    hind: Pair,
    head: int,
    trunk: Float[np.ndarray, "frame 3"],
) -> tuple[dict[int, str], float]:
    """Return the names of all bodies, and the agreement on left and right, 0 to 1."""
    chest, hips = (figure.junction(pair, head) for pair in (front, hind))
    left = np.cross(UP, heading(trunk, UP))
    names = {chest: vrm.CHEST, hips: vrm.HIPS}
    cosines = []
    for end, pair in (("Front", front), ("Hind", hind)):
        legs = _legs(figure, pair, head)
        across = figure.position[:, legs[0][0]] - figure.position[:, legs[1][0]]
        cosine = mean_cosine(left, heading(across, UP))
        cosines.append(abs(cosine))
        for side, leg in zip(
            vrm.SIDES, legs if cosine > 0 else legs[::-1], strict=True
        ):
            parts = zip(leg, vrm.LEG, strict=False)
            names |= {body: f"{end}{side}{part}" for body, part in parts}
    spine = figure.path(hips, chest)[1:-1]
    names |= dict(zip(spine, number_names(vrm.SPINE, len(spine)), strict=True))
    neck = figure.path(chest, head)[1:]
    names |= dict(zip(neck, head_names(len(neck)), strict=True))
    tail = _find_tail(figure, hips, set(names))
    names |= dict(zip(tail, number_names(vrm.TAIL, len(tail)), strict=True))
    return names, min(1.0, *cosines)


def _find_tail(figure: NamingInput, hips: int, named: set[int]) -> list[int]:
    """Return the longest path from the hips to a leaf through bodies without names."""
    paths = [figure.path(hips, leaf)[1:] for leaf in figure.leaves]
    return max((path for path in paths if not named & set(path)), key=len, default=[])
