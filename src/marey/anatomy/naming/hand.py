"""Recognition of a hand: five short limbs on one body, four of them side by side."""

from itertools import permutations

import numpy as np

from marey.anatomy import names as vrm
from marey.anatomy.naming.naming_input import (
    MIN_SIDE_CONFIDENCE,
    UP,
    Naming,
    NamingInput,
    mean_cosine,
)
from marey.numerics import geometry

MIN_ALIGNMENT = 0.8
"""Length of the mean of vectors over the mean of their lengths, 0 to 1: of the fingers,
and of the steps from one finger to the next. Higher demands fingers that are more
parallel, and side by side. Chosen by hand."""


def name_hand(figure: NamingInput) -> Naming | None:
    """Return the names of a hand's bodies, None if the figure is no hand.

    The palm carries five limbs of one to three bodies; a sixth limb may be the arm. The
    shortest open path through four of their bases, and the fifth beside its end, are
    little to index finger and the thumb. Fingers bend towards the palm, which
    determines the side; names of fingers that never bent have no side.
    """
    palm = max(figure.neighbours, key=lambda body: len(figure.neighbours[body]))
    if len(figure.neighbours[palm]) not in (len(vrm.FINGERS), len(vrm.FINGERS) + 1):
        return None
    limbs = _limbs_of(figure, palm)
    fingers = [limb for limb in limbs if len(limb) <= len(vrm.PHALANGES)]
    arm_size = sum(map(len, limbs)) - sum(map(len, fingers))
    if arm_size > len(figure.neighbours) // 2:
        return None

    def length(finger: list[int]) -> float:
        return float(figure.arc_lengths([palm, *finger])[-1])

    fingers = sorted(fingers, key=length)[: len(vrm.FINGERS)]
    if len(fingers) < len(vrm.FINGERS):
        return None
    row = _order_fingers(figure, fingers)
    if row is None or not _are_parallel(figure, palm, row[1:]):
        return None
    side, confidence = _find_side(figure, palm, row)
    names = {palm: f"{side}{vrm.HAND}"}
    for finger, bodies in zip(vrm.FINGERS, row, strict=True):
        parts = zip(bodies, vrm.PHALANGES, strict=False)
        names |= {body: f"{side}{finger}{part}" for body, part in parts}
    return Naming("hand", names, UP, confidence)


def _limbs_of(figure: NamingInput, palm: int) -> list[list[int]]:
    """Return the limbs on the palm from the inside out, without those that fork."""
    limbs = [figure.path(palm, leaf)[1:] for leaf in figure.leaves if leaf != palm]
    bases = [limb[0] for limb in limbs]
    return [limb for limb in limbs if bases.count(limb[0]) == 1]


def _order_fingers(
    figure: NamingInput, fingers: list[list[int]]
) -> list[list[int]] | None:
    """Return thumb, index, middle, ring and little finger; None without a clear row."""
    bases = np.nanmedian(figure.position[:, [f[0] for f in fingers]], axis=0)

    def length(order: tuple[int, ...]) -> float:
        steps = np.diff(bases[list(order)], axis=0)
        return float(np.linalg.norm(steps, axis=1).sum())

    orders = [o for o in permutations(range(5)) if length(o[:2]) > length(o[-2:])]
    best = min(orders, key=length, default=None)
    if best is None:
        return None
    is_row = length((best[1], best[-1])) > MIN_ALIGNMENT * length(best[1:])
    return [fingers[i] for i in best] if is_row else None


def _are_parallel(figure: NamingInput, palm: int, fingers: list[list[int]]) -> bool:
    """Return whether fingers leave the palm in about the same direction."""
    bases = figure.position[:, [f[0] for f in fingers]] - figure.position[:, [palm]]
    mean = np.nanmean(geometry.unit_vectors(bases), axis=1)
    return bool(np.nanmedian(np.linalg.norm(mean, axis=-1)) > MIN_ALIGNMENT)


def _find_side(
    figure: NamingInput, palm: int, row: list[list[int]]
) -> tuple[str, float]:
    """Return the side of a hand, "" if it is unclear, and how clear it is."""
    fingers = row[1:]
    origin = figure.position[:, palm]
    tips = np.nanmean(figure.position[:, [f[-1] for f in fingers]], axis=1)
    bases = np.nanmean(figure.position[:, [f[0] for f in fingers]], axis=1)
    forward = bases - origin
    across = figure.position[:, row[1][0]] - figure.position[:, row[4][0]]
    # With the palm down and fingers ahead, the thumb of a right hand is at the left.
    bend = np.cross(np.cross(forward, tips - origin), forward)
    normal = np.cross(forward, across)
    score = mean_cosine(geometry.unit_vectors(bend), geometry.unit_vectors(normal))
    if abs(score) < MIN_SIDE_CONFIDENCE:
        return "", abs(score)
    return (vrm.LEFT if score > 0 else vrm.RIGHT), min(abs(score), 1.0)
