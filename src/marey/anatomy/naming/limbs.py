"""Limbs of a person, and the names of their bodies by the positions along a limb.

An exhaustive search over all assignments of names to bodies that keep the order from
the trunk outward. The cost of an assignment is a sum of squared position errors, in
units of `POSITION_SD`, and of penalties for names and bodies that stay alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float

from marey.anatomy import names as vrm
from marey.numerics.thresholds import OUTLIER_SD

LEG = {vrm.UPPER_LEG: 0.37, vrm.LOWER_LEG: 0.14, vrm.FOOT: 0.03}
"""Expected positions of the bodies of a leg: height above the ground as a fraction of
the path from a foot over the hips to the head. Higher expects them further up. Means
over 20 recordings of people whose markers are known."""

TOES_LENGTH = 0.07
"""Path from a foot to separate toes, as the same fraction and from the same recordings.
It lies along the ground; higher expects all bodies of such a leg further up."""

LEG_WITH_TOES = {name: height + TOES_LENGTH for name, height in LEG.items()} | {
    vrm.TOES: LEG[vrm.FOOT]
}
"""The same positions where the path begins at separate toes."""

ARM = {vrm.UPPER_ARM: 0.2, vrm.LOWER_ARM: 0.36, vrm.HAND: 0.43}
"""Expected positions of the bodies of an arm: distance from the chest, as the same
fraction and from the same recordings. Higher expects them further out."""

ARM_WITH_SHOULDER = {vrm.SHOULDER: 0.1} | ARM
"""The same positions where the collar bone is a body of its own."""

POSITION_SD = 0.05
"""Position error that costs one, as a fraction of the figure's length. Higher makes
positions count less than missing names. Chosen by hand."""

MAX_POSITION_ERROR = OUTLIER_SD * POSITION_SD
"""Largest position error of a named body, as a fraction of the figure's length."""

UNNAMED_BODY_COST = 3.0
"""Cost of a body without a name, and of a name without a body between two named ones.
Higher names more bodies. Chosen by hand."""

MISSING_END_COST = 1.0
"""Cost of a name without a body at the end of a limb, which is common: hands often move
with their forearms. Chosen by hand."""

OPTIONAL_NAMES = {vrm.SHOULDER: vrm.UPPER_ARM, vrm.TOES: vrm.FOOT}
"""Names that cost nothing if no body has them, and the name that each requires."""

MIN_COST_MARGIN = 1.0
"""Cost by which the next best name of a body must be worse. Higher leaves more bodies
without a name. Chosen by hand."""

LimbBodies = dict[str, int]
"""Bodies of a limb by their names without the side, from the trunk outward."""

Assignment = tuple[LimbBodies, float]
"""The body of each name, and the cost."""


@dataclass(frozen=True, slots=True)
class PersonLimbs:
    """One interpretation of a figure as a person."""

    hips: int
    legs: list[LimbBodies]
    arms: list[LimbBodies]
    trunk: list[int]
    """From above the hips up to the chest, which is included."""

    head: list[int]
    """From above the chest up to the head, which is included."""

    lower_cost: float
    """Cost of hips and legs: squared position errors and penalties."""

    upper_cost: float
    """Cost of the bodies above the hips."""

    lateral_cost: float
    """The part of both that is due to distances from the middle of the legs."""

    missing_cost: float
    """Penalties for bodies on no limb, and for parts of a person that are not there."""

    @property
    def cost(self) -> float:
        """Squared position errors, and penalties for missing names and bodies."""
        return self.lower_cost + self.upper_cost + self.missing_cost

    @property
    def chest(self) -> int:
        """The body that carries the arms."""
        return self.trunk[-1] if self.trunk else self.hips

    @property
    def has_legs(self) -> bool:
        """Whether both legs have a thigh or a shank."""
        return all({vrm.UPPER_LEG, vrm.LOWER_LEG} & set(leg) for leg in self.legs)

    @property
    def has_feet(self) -> bool:
        """Whether both legs have a thigh, a shank and a foot."""
        return all(
            {vrm.UPPER_LEG, vrm.LOWER_LEG, vrm.FOOT} <= set(leg) for leg in self.legs
        )

    @property
    def is_complete(self) -> bool:
        """Whether there are a head, two arms and two legs with knees."""
        knees = all({vrm.UPPER_LEG, vrm.LOWER_LEG} <= set(leg) for leg in self.legs)
        return bool(self.head and len(self.arms) == 2 and knees)

    @property
    def n_named(self) -> int:
        """Number of bodies with a name."""
        limbs = sum(map(len, (*self.legs, *self.arms)))
        return 1 + limbs + len(self.trunk) + len(self.head)


def assign_pair(
    limbs: Sequence[tuple[Sequence[int], Float[np.ndarray, " _"]]],
    variants: Sequence[Mapping[str, float]],
) -> list[Assignment]:
    """Return the names of one or two limbs of a kind, by the variant of least cost.

    A person has toes, or collar bones, on both sides or on none: on one side only they
    are half of a limb that the segmentation has cut in two. So a variant needs its
    optional names on every limb.

    Args:
        limbs: Bodies of each limb from the trunk outward, and their positions.
        variants: Expected positions of the names; the first has no optional names.
    """
    named = [
        [assign_names(bodies, positions, expected) for bodies, positions in limbs]
        for expected in variants
    ]
    allowed = [
        pair
        for pair, expected in zip(named, variants, strict=True)
        if all(
            expected.keys() & OPTIONAL_NAMES.keys() <= names.keys() for names, _ in pair
        )
    ]
    return min(allowed, key=lambda pair: sum(cost for _, cost in pair))


def assign_names(
    bodies: Sequence[int],
    positions: Float[np.ndarray, " _"],
    expected: Mapping[str, float],
) -> Assignment:
    """Return the names of a limb's bodies of least cost, and the cost.

    A body too far from all expected positions has no name. Neither has a body that
    could as well have another name, with one exception: if the other name is free, the
    body is two parts in one, and has the name of the part nearer to the trunk.

    Args:
        bodies: The limb from the trunk outward.
        positions: Of the bodies, as fractions of the figure's length.
        expected: Positions of the names, in the same order.
    """
    assignments = sorted(
        _assignments(bodies, positions.tolist(), expected), key=lambda one: one[1]
    )
    best, cost = assignments[0]
    rivals = [names for names, value in assignments if value <= cost + MIN_COST_MARGIN]
    order = list(expected)
    certain = {}
    for name, body in best.items():
        other = _rival_name(rivals, name, body)
        if other == name:
            certain[name] = body
        elif other and other not in best:
            nearer = min(
                name, other, key=lambda n: (n in OPTIONAL_NAMES, order.index(n))
            )
            certain[nearer] = body
    return certain, cost


def _rival_name(rivals: Sequence[Mapping[str, int]], name: str, body: int) -> str:
    """Return another name of a body among assignments of almost the same cost.

    "" if the body has no name in one of them, its own name if all agree.
    """
    names = (next((n for n, b in one.items() if b == body), "") for one in rivals)
    return next((other for other in names if other != name), name)


def _assignments(
    bodies: Sequence[int], positions: Sequence[float], expected: Mapping[str, float]
) -> Iterator[Assignment]:
    """Return every assignment that keeps the order, with its cost."""
    for count in range(min(len(expected), len(bodies)) + 1):
        for names in combinations(expected, count):
            if any(OPTIONAL_NAMES.get(name, name) not in names for name in names):
                continue
            penalty = _missing_cost(names, list(expected))
            penalty += UNNAMED_BODY_COST * (len(bodies) - count)
            for indices in combinations(range(len(bodies)), count):
                pairs = list(zip(indices, names, strict=True))
                errors = [positions[i] - expected[name] for i, name in pairs]
                if all(abs(error) < MAX_POSITION_ERROR for error in errors):
                    cost = penalty + squared_errors(errors)
                    yield {name: bodies[i] for i, name in pairs}, cost


def squared_errors(errors: Sequence[float]) -> float:
    """Return the cost of position errors, given as fractions of the figure's length."""
    return float(sum((error / POSITION_SD) ** 2 for error in errors))


def _missing_cost(names: Sequence[str], expected: Sequence[str]) -> float:
    """Return the cost of the expected names that no body has."""
    last = expected.index(names[-1]) if names else len(expected)
    missing = (
        UNNAMED_BODY_COST if i < last else MISSING_END_COST
        for i, name in enumerate(expected)
        if name not in names and name not in OPTIONAL_NAMES
    )
    return float(sum(missing))
