"""Hands: five short limbs on one body, four of them side by side."""

from itertools import permutations

import numpy as np
from jaxtyping import Float

from marey.anatomy.naming.naming_input import UP, Figure, Naming, agreement, path

Array = np.ndarray

FINGERS = ("Thumb", "Index", "Middle", "Ring", "Little")
PHALANXES = ("Proximal", "Intermediate", "Distal")

# Longest finger over the shortest.
ALIKE = 3.0

# How much farther the thumb is from the index than fingers are from each other.
APART = 1.2

# How straight the row of fingers is, way over distance, and how far they point alike.
STRAIGHT, ALONG = 1.3, 0.8

# How well bending must tell left from right.
CLEAR = 0.2


def hand(figure: Figure) -> Naming | None:
    """Return the names of a hand's bodies, None when it does not look like one.

    Five limbs of one to three bodies hang on the palm; a sixth may be the arm. The row
    of four that takes the least way is index to little finger, and the thumb is beside
    the index. Fingers bend to the palm, which tells the left hand from the right; names
    of fingers that never bent have no side.
    """
    palm = max(figure.near, key=lambda body: len(figure.near[body]))
    limbs = [way[1:] for way in _ways(figure, palm)]
    fingers = [limb for limb in limbs if len(limb) <= len(PHALANXES)]
    rest = sum(map(len, limbs)) - sum(map(len, fingers))
    if len(figure.near[palm]) not in (5, 6) or rest > len(figure.near) // 2:
        return None
    long = {tuple(f): figure.steps([palm, *f])[-1] for f in fingers}
    fingers = sorted(fingers, key=lambda f: long[tuple(f)])[:5]
    lengths = [long[tuple(f)] for f in fingers]
    if len(fingers) < 5 or lengths[-1] > ALIKE * lengths[0]:
        return None
    row = _in_a_row(figure, fingers)
    if row is None or not _along(figure, palm, row[1:]):
        return None
    side, sure = _side(figure, palm, row)
    names = {palm: f"{side}Hand"}
    for finger, bodies in zip(FINGERS, row, strict=True):
        parts = zip(bodies, PHALANXES, strict=False)
        names |= {body: f"{side}{finger}{part}" for body, part in parts}
    return Naming("hand", names, UP, sure)


def _ways(figure: Figure, palm: int) -> list[list[int]]:
    """Return the limbs that hang on the palm; of one that forks, none."""
    ways = [path(figure.near, palm, leaf) for leaf in figure.leaves if leaf != palm]
    starts = [way[1] for way in ways]
    return [way for way in ways if starts.count(way[1]) == 1]


def _in_a_row(figure: Figure, fingers: list[list[int]]) -> list[list[int]] | None:
    """Return thumb, index, middle, ring and little finger; None if no row is clear."""
    base = np.nanmedian(figure.place[:, [f[0] for f in fingers]], axis=0)

    def way(order: tuple[int, ...]) -> float:
        return float(np.linalg.norm(np.diff(base[list(order)], axis=0), axis=1).sum())

    orders = [o for o in permutations(range(5)) if way(o[:2]) > way(o[-2:])]
    best = min(orders, key=way, default=None)
    if best is None or way(best[:2]) < APART * way(best[1:]) / 3.0:
        return None
    if way(best[1:]) > STRAIGHT * way((best[1], best[4])):
        return None
    return [fingers[i] for i in best]


def _along(figure: Figure, palm: int, fingers: list[list[int]]) -> bool:
    """Return whether fingers point the same way from the palm."""
    base = figure.place[:, [f[0] for f in fingers]] - figure.place[:, [palm]]
    mean = np.nanmean(_unit(base), axis=1)
    return bool(np.nanmedian(np.linalg.norm(mean, axis=-1)) > ALONG)


def _side(figure: Figure, palm: int, row: list[list[int]]) -> tuple[str, float]:
    """Return which hand it is, "" when that does not show, and how sure that is."""
    others = row[1:]
    middle = figure.place[:, palm]
    ends = np.nanmean(figure.place[:, [f[-1] for f in others]], axis=1)
    ahead = np.nanmean(figure.place[:, [f[0] for f in others]], axis=1) - middle
    across = figure.place[:, row[1][0]] - figure.place[:, row[4][0]]
    # With the palm down and fingers ahead a right hand's thumb is at the left.
    bend = _unit(np.cross(np.cross(ahead, ends - middle), ahead))
    score = agreement(bend, _unit(np.cross(ahead, across)))
    if abs(score) < CLEAR:
        return "", abs(score)
    return ("Left" if score > 0 else "Right"), min(abs(score), 1.0)


def _unit(way: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3"]:
    length = np.linalg.norm(way, axis=-1, keepdims=True)
    return np.asarray(way / np.maximum(length, 1e-12))
