"""Limbs of a person: where their bodies are expected, and the names of both sides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from marey.anatomy import names as vrm
from marey.anatomy.naming.limb_readings import (
    BONE_LENGTH,
    OPTIONAL_NAMES,
    POSITION_SD,
    LimbChain,
    LimbNames,
    name_limb,
)
from marey.numerics.thresholds import OUTLIER_SD

LEG = {vrm.UPPER_LEG: 0.37, vrm.LOWER_LEG: 0.14, vrm.FOOT: 0.03}
"""Expected positions of the bodies of a leg: height above the ground as a fraction of
the path from a foot over the hips to the head. Higher expects them further up. Means
over 20 recordings of people whose markers are known."""

TOES_LENGTH = BONE_LENGTH[vrm.FOOT]
"""Path from a foot to separate toes, as the same fraction; the same recordings agree.
It lies along the ground; higher expects all bodies of such a leg further up."""

LEG_WITH_TOES = {name: height + TOES_LENGTH for name, height in LEG.items()} | {
    vrm.TOES: LEG[vrm.FOOT]
}
"""The same positions where the path begins at separate toes."""

ARM = {vrm.UPPER_ARM: 0.2, vrm.LOWER_ARM: 0.36, vrm.HAND: 0.43}
"""Expected positions of the bodies of an arm: distance from the chest, as the same
fraction and from the same recordings. Higher expects them further out."""

ARM_WITH_SHOULDER = {vrm.SHOULDER: 0.1} | ARM
"""The same positions where the collar bone is a body of its own. Higher expects that
body further out. Chosen by hand."""

MAX_POSITION_ERROR = OUTLIER_SD * POSITION_SD
"""Largest position error of a body of the trunk, as a fraction of the figure's
length."""

MIN_COST_MARGIN = 1.0
"""Cost by which a figure must fit a person better. Higher keeps more trees as the
motion has them. Chosen by hand."""

LimbBodies = dict[str, int]
"""Bodies of a limb by their names without the side, from the trunk outward."""


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

    unsure: frozenset[int]
    """Bodies of limbs whose names are not probable."""

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


def name_pair(
    limbs: Sequence[LimbChain], variants: Sequence[Mapping[str, float]]
) -> list[LimbNames]:
    """Return the names of one or two limbs of a kind, by the variant of least cost.

    A person has toes, or collar bones, on both sides or on none: on one side only they
    are half of a limb that the segmentation has cut in two. So a variant needs its
    optional names on every limb.

    Args:
        limbs: The limbs.
        variants: Expected positions of the names; the first has no optional names.
    """
    named = [[name_limb(limb, expected) for limb in limbs] for expected in variants]
    allowed = [
        pair
        for pair, expected in zip(named, variants, strict=True)
        if all(
            set(expected) & set(OPTIONAL_NAMES) <= limb.bodies.keys() for limb in pair
        )
    ]
    return min(allowed, key=lambda pair: sum(limb.cost for limb in pair))


def squared_errors(errors: Sequence[float]) -> float:
    """Return the cost of position errors, given as fractions of the figure's length."""
    return float(sum((error / POSITION_SD) ** 2 for error in errors))
