"""Recognition of an animal on four legs: two pairs of feet and a level trunk."""

import numpy as np

from marey.anatomy import names as vrm
from marey.anatomy.naming.naming_input import (
    UP,
    Naming,
    NamingInput,
    head_names,
    heading,
    mean_cosine,
    numbered,
)

Pair = tuple[int, int]

MAX_TRUNK_SLOPE = float(np.sqrt(0.5))
"""Largest rise of the trunk over its length: it is nearer to level than to upright."""


def name_quadruped(figure: NamingInput) -> Naming | None:
    """Return the names of an animal on four legs, None if the figure is none.

    The four lowest leaves, all in the lower half, are the feet. The trunk must be
    level, so that a person who bends down stays a person. The head is the highest other
    leaf, and the front legs are the pair nearer to the head.
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
    junctions = [figure.junction(pair, head) for pair in pairs]
    sizes = [
        len(figure.path(junction, foot)) - 1
        for junction, pair in zip(junctions, pairs, strict=True)
        for foot in pair
    ]
    if min(sizes) < 2 or abs(sizes[0] - sizes[1]) > 1 or abs(sizes[2] - sizes[3]) > 1:
        return None
    to_head = [len(figure.path(junction, head)) for junction in junctions]
    front, hind = (0, 1) if to_head[0] < to_head[1] else (1, 0)
    if _trunk_slope(figure, junctions[hind], junctions[front]) > MAX_TRUNK_SLOPE:
        return None
    names, confidence = _find_names(figure, pairs[front], pairs[hind], head)
    return Naming("quadruped", names, UP, confidence)


def _trunk_slope(figure: NamingInput, hips: int, chest: int) -> float:
    trunk = figure.position[:, chest] - figure.position[:, hips]
    length = np.linalg.norm(trunk, axis=-1)
    return float(np.nanmedian(np.abs(trunk @ UP) / np.maximum(length, 1e-9)))


def _pair_feet(figure: NamingInput, feet: list[int]) -> tuple[Pair, Pair] | None:
    """Return two pairs of feet whose connecting paths do not touch; None if none do."""
    first, *others = feet
    for other in others:
        third, fourth = (foot for foot in others if foot != other)
        if set(figure.path(first, other)).isdisjoint(figure.path(third, fourth)):
            return (first, other), (third, fourth)
    return None


def _find_names(
    figure: NamingInput, front: Pair, hind: Pair, head: int
) -> tuple[dict[int, str], float]:
    """Return the names of all bodies, and the agreement on left and right, 0 to 1."""
    chest, hips = (figure.junction(pair, head) for pair in (front, hind))
    trunk = figure.position[:, chest] - figure.position[:, hips]
    left = np.cross(UP, heading(trunk, UP))
    names = {chest: vrm.CHEST, hips: vrm.HIPS}
    cosines = []
    for end, pair, junction in (("Front", front, chest), ("Hind", hind, hips)):
        legs = [figure.path(junction, foot)[1:] for foot in pair]
        across = figure.position[:, legs[0][0]] - figure.position[:, legs[1][0]]
        cosine = mean_cosine(left, heading(across, UP))
        cosines.append(abs(cosine))
        for side, leg in zip(
            vrm.SIDES, legs if cosine > 0 else legs[::-1], strict=True
        ):
            parts = zip(leg, vrm.LEG, strict=False)
            names |= {body: f"{end}{side}{part}" for body, part in parts}
    spine = figure.path(hips, chest)[1:-1]
    names |= dict(zip(spine, numbered(vrm.SPINE, len(spine)), strict=True))
    neck = figure.path(chest, head)[1:]
    names |= dict(zip(neck, head_names(len(neck)), strict=True))
    tail = _find_tail(figure, hips, set(names))
    names |= dict(zip(tail, numbered(vrm.TAIL, len(tail)), strict=True))
    return names, min(1.0, *cosines)


def _find_tail(figure: NamingInput, hips: int, named: set[int]) -> list[int]:
    """Return the longest path from the hips to a leaf through bodies without names."""
    paths = [figure.path(hips, leaf)[1:] for leaf in figure.leaves]
    return max((path for path in paths if not named & set(path)), key=len, default=[])
