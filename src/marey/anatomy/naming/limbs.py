"""Names along a limb, by where its bodies are."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
from jaxtyping import Float

# Where the middles of bodies are, as shares of the way from a foot over the hips to the
# head: of a leg above the ground, of an arm from the chest. Means over 20 recordings of
# people whose markers are known.
LEG = {"UpperLeg": 0.37, "LowerLeg": 0.14, "Foot": 0.03}
LEG_WITH_TOES = {"UpperLeg": 0.44, "LowerLeg": 0.21, "Foot": 0.1, "Toes": 0.02}
ARM = {"Shoulder": 0.1, "UpperArm": 0.2, "LowerArm": 0.36, "Hand": 0.43}

# A body that is off by this much counts one; and how much one may be off at most.
OFF, WIDEST = 0.05, 0.125

# What is paid for a body without a name; for a name without a body at the end of a
# limb, as hands often move with their forearms; and for one in the middle.
NAMELESS, ENDLESS, SKIPPED = 4.0, 1.0, 3.0
SPARE = {"Shoulder": "UpperArm", "Toes": "Foot"}
"""Names that not everybody has a body for, and the name that they go beside."""

# How much worse the next best name of a body must be.
CLEAR = 1.0

Placed = tuple[dict[str, int], float]


def placed(
    bodies: Sequence[int], at: Float[np.ndarray, " _"], names: Mapping[str, float]
) -> Placed:
    """Return the names of a limb's bodies by where they are, and what is off.

    Of all ways to give names in their order the one whose bodies are nearest to where
    names have them. A body too far from all is left without a name, and one that might
    as well have another. A body between two names that are both free is two parts in
    one, and has the name of the part nearer to the trunk.

    Args:
        bodies: The limb from the trunk outward.
        at: Where they are, as shares of the figure's length.
        names: Where each name has its body, in the same order.
    """
    ways = sorted(_assignments(bodies, at.tolist(), names), key=lambda way: way[1])
    best, cost = ways[0]
    order = list(names)
    clear = {}
    for name, body in best.items():
        other = _rival(ways, name, body, cost)
        if other == name:
            clear[name] = body
        elif other and other not in best:
            clear[min(name, other, key=lambda n: (n in SPARE, order.index(n)))] = body
    return clear, cost


def _rival(ways: Sequence[Placed], name: str, body: int, cost: float) -> str:
    """Return what else a body might as well be called: "" for nothing at all.

    Its own name if there is no doubt.
    """
    near = (names for names, value in ways if value <= cost + CLEAR)
    others = (next((n for n, b in names.items() if b == body), "") for names in near)
    return next((other for other in others if other != name), name)


def _assignments(
    bodies: Sequence[int], at: Sequence[float], names: Mapping[str, float]
) -> Iterator[Placed]:
    """Return every way to give names in their order, with what it costs."""
    for count in range(min(len(names), len(bodies)) + 1):
        for some in combinations(names, count):
            if any(name in SPARE and SPARE[name] not in some for name in some):
                continue
            unpaid = _lacking(some, list(names)) + NAMELESS * (len(bodies) - count)
            for which in combinations(range(len(bodies)), count):
                off = [at[i] - names[n] for i, n in zip(which, some, strict=True)]
                if all(abs(x) < WIDEST for x in off):
                    cost = unpaid + sum((x / OFF) ** 2 for x in off)
                    yield {n: bodies[i] for i, n in zip(which, some, strict=True)}, cost


def _lacking(some: Sequence[str], names: Sequence[str]) -> float:
    """Return what is paid for the names that no body has."""
    last = names.index(some[-1]) if some else len(names)
    missing = [i for i, n in enumerate(names) if n not in some and n not in SPARE]
    return float(sum(SKIPPED if i < last else ENDLESS for i in missing))
