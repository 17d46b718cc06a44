"""Recognition of a person: a head above, two feet below, and arms in between.

A body is named by its position along a limb, as a fraction of the figure's length, and
not by its number from the trunk. So a thigh that moved with the hips, a separate collar
bone or a separate piece of the pelvis does not change the names further out.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from marey.anatomy import names as vrm
from marey.anatomy.naming.limb_readings import (
    BONE_LENGTH,
    UNNAMED_BODY_COST,
    LimbChain,
    LimbNames,
)
from marey.anatomy.naming.limbs import (
    ARM,
    ARM_WITH_SHOULDER,
    LEG,
    LEG_WITH_TOES,
    MAX_POSITION_ERROR,
    LimbBodies,
    PersonLimbs,
    name_pair,
    squared_errors,
)
from marey.anatomy.naming.naming_input import (
    MIN_SIDE_CONFIDENCE,
    Naming,
    NamingInput,
    head_names,
    heading,
)
from marey.anatomy.naming.sides import arms_by_side, order_legs
from marey.numerics import Array, Float
from marey.numerics.robust import chi_squared_survival, column_medians
from marey.numerics.thresholds import FEW, OUTLIER_SD

CHEST_POSITION, HEAD_POSITION = 0.24, 0.16
"""Expected distance of the chest from the hips, and of the head from the chest, as
fractions of the path from a foot to the head. Higher expects them further up. Chosen
by hand."""

MAX_COST_LYING = UNNAMED_BODY_COST / 3.0
MAX_COST_LYING_UNCLEAR = UNNAMED_BODY_COST / 6.0
"""Largest mean cost per body of a person who lies along another axis, and who lies
there with unclear sides. Higher accepts other figures as people. Chosen by hand."""

HIPS_HEIGHT = 1.0 - CHEST_POSITION - HEAD_POSITION
LEG_MIDDLES = {
    vrm.FOOT: LEG[vrm.FOOT] / HIPS_HEIGHT,
    vrm.LOWER_LEG: (LEG[vrm.FOOT] + 0.5 * BONE_LENGTH[vrm.LOWER_LEG]) / HIPS_HEIGHT,
    vrm.UPPER_LEG: (
        LEG[vrm.FOOT] + BONE_LENGTH[vrm.LOWER_LEG] + 0.5 * BONE_LENGTH[vrm.UPPER_LEG]
    )
    / HIPS_HEIGHT,
    vrm.HIPS: 1.0,
}
"""Middles of the parts of a straight leg, as fractions of the height of the hips."""

UP_AXES = tuple(sign * axis for sign in (1.0, -1.0) for axis in np.eye(3)[[2, 1, 0]])
"""Directions that a person may stand along; +z is tried first."""


def name_person(figure: NamingInput) -> Naming | None:
    """Return the names of a person's bodies, None if the figure is no person.

    All pairs of low leaves are tried as feet, and the interpretation of least cost is
    taken. A person may stand along any axis of the world, because files may be wrong
    about the up axis. Along another axis than +z it must have all limbs, and either
    clear sides or positions very near to those of a person. A person without arms must
    have feet, and clear sides.
    """
    for up in UP_AXES:
        interpretations = _interpretations(figure, up)
        limbs = min(interpretations, key=lambda one: one.cost, default=None)
        if limbs is None:
            continue
        legs, confidence = order_legs(figure, limbs, up)
        arms = arms_by_side(figure, limbs, legs, up)
        n_bodies, has_sides = len(figure.neighbours), confidence > MIN_SIDE_CONFIDENCE
        is_upright = up is UP_AXES[0] and bool(arms or (limbs.has_feet and has_sides))
        if (is_upright and _is_upright_person(limbs, n_bodies)) or (
            _is_lying_person(limbs, n_bodies, has_sides)
        ):
            sided = [*zip(vrm.SIDES, legs, strict=True), *arms.items()]
            fit = float(1.0 / (1.0 + limbs.cost / n_bodies))
            names, unsure = _find_names(limbs, sided), _unsure_bodies(limbs)
            if confidence == 0.0:
                unsure = unsure.union(*(limb.values() for _, limb in sided))
            return Naming("human", names, up, confidence, fit, unsure)
    return None


def legs_that_lack_parts(figure: NamingInput) -> list[list[int]]:
    """Return the bodies from the hips to the foot of each leg without a part.

    Legs are those of the interpretation of least cost of a figure that stands upright;
    it need not be one of a person. A part is a thigh, a shank or a foot.
    """
    interpretations = _interpretations(figure, UP_AXES[0])
    limbs = min(interpretations, key=lambda one: one.cost, default=None)
    if limbs is None:
        return []
    return [
        figure.path(limbs.hips, list(leg.values())[-1])
        for leg in limbs.legs
        if not {vrm.UPPER_LEG, vrm.LOWER_LEG, vrm.FOOT} <= set(leg)
    ]


def _is_upright_person(limbs: PersonLimbs, n_bodies: int) -> bool:
    """Return whether bodies with names cost less than bodies without.

    Whoever leans aside is a person all the same.
    """
    cost = (limbs.cost - limbs.lateral_cost) / n_bodies
    return cost < UNNAMED_BODY_COST


def _is_lying_person(limbs: PersonLimbs, n_bodies: int, has_sides: bool) -> bool:
    """Return whether a figure is a person along any axis."""
    max_cost = MAX_COST_LYING if has_sides else MAX_COST_LYING_UNCLEAR
    return limbs.is_complete and limbs.cost / n_bodies < max_cost


def _unsure_bodies(limbs: PersonLimbs) -> frozenset[int]:
    """Return the bodies whose names are guesses, among them all above the hips or none.

    The latter are guesses if the bodies are not where those of a person are, by a
    chi-squared test of their cost at `OUTLIER_SD`. It has a degree of freedom for the
    position of every body, and another for the bone of every body of an arm. They are
    guesses, too, with the hips, if one leg alone has no thigh: then the thigh was taken
    for the hips, or the pelvis is in two bodies.
    """
    arms = [body for arm in limbs.arms for body in arm.values()]
    upper = [*arms, *limbs.trunk, *limbs.head]
    chance = chi_squared_survival(limbs.upper_cost, max(len(upper) + len(arms), 1))
    is_likely = chance > math.erfc(OUTLIER_SD / math.sqrt(2.0))
    if len({vrm.UPPER_LEG in leg for leg in limbs.legs}) > 1:
        return limbs.unsure.union(upper, [limbs.hips])
    return limbs.unsure if is_likely else limbs.unsure.union(upper)


def _interpretations(figure: NamingInput, up: Array) -> Iterator[PersonLimbs]:
    """Return the interpretations of the figure, for all pairs of low leaves as feet.

    Feet are in the lower half of the figure. Half of the bodies or more have names,
    among them a thigh or a shank of both legs. Interpretations that cost more than an
    earlier one, whatever the names, are left out: large figures have many.
    """
    least = math.inf
    for feet in combinations(figure.low_leaves(up), 2):
        for trunk in _trunks(figure, feet, up):
            limbs = _find_limbs(figure, feet, trunk, up, least)
            if limbs and limbs.has_legs and 2 * limbs.n_named >= len(figure.neighbours):
                least = min(least, limbs.cost)
                yield limbs


@dataclass(frozen=True, slots=True)
class _Trunk:
    """The bodies from the hips upward, and the leaves beside the feet."""

    bodies: list[int]
    has_head: bool
    others: list[int]

    @property
    def length_share(self) -> float:
        """Length of legs and trunk as a fraction of the path from foot to head."""
        return (
            1.0
            - CHEST_POSITION * (len(self.bodies) == 1)
            - HEAD_POSITION * (not self.has_head)
        )

    @property
    def n_missing(self) -> int:
        """How many of chest and head the trunk lacks."""
        return (len(self.bodies) == 1) + (not self.has_head)


def _trunks(figure: NamingInput, feet: Sequence[int], up: Array) -> Iterator[_Trunk]:
    """Return the trunks that a figure may have, given its feet.

    The trunk ends in the highest leaf as the head, or where the paths to the leaves
    part: there are the shoulders. On the way to a single leaf it may end anywhere: this
    may be the hand of the only arm. Two legs alone meet in hips, which are highest.
    """
    height = figure.heights(up)
    leaves = sorted(figure.leaves, key=lambda body: float(height[body]))
    others = [leaf for leaf in leaves if leaf not in feet]
    if not others:
        hips = max(figure.path(*feet), key=lambda body: float(height[body]))
        ends = [(hips, hips, False)]
    else:
        shoulders = _shoulder_junctions(figure, feet, others)
        tops = ((others[-1], True), *((body, False) for body in shoulders))
        ends = [(figure.junction(feet, top), top, is_head) for top, is_head in tops]
        ends = [end for end in ends if end[0] != end[1]]
    for hips, top, is_head in ends:
        if hips not in feet:
            yield _Trunk(figure.path(hips, top), is_head, others)


def _shoulder_junctions(
    figure: NamingInput, feet: Sequence[int], others: list[int]
) -> list[int]:
    """Return the bodies where a trunk without a head may end."""
    upward = figure.path(feet[0], others[0])
    if len(others) == 1:
        return [body for body in upward if body not in figure.path(*feet)]
    between = figure.path(others[0], others[-1])
    return [next(body for body in upward if body in between)]


def _find_limbs(
    figure: NamingInput,
    feet: Sequence[int],
    ends: _Trunk,
    up: Array,
    max_cost: float = math.inf,
) -> PersonLimbs | None:
    """Return the limbs of a figure whose feet and trunk are given, None if it has none.

    Args:
        figure: The bodies.
        feet: Two leaves.
        ends: The trunk.
        up: The direction that the figure stands along.
        max_cost: Cost of an interpretation that is not wanted.
    """
    height, trunk = figure.heights(up), ends.bodies
    legs = [figure.path(trunk[0], foot) for foot in feet]
    leg_length = float(np.mean([figure.arc_lengths(leg)[-1] for leg in legs]))
    length = (figure.arc_lengths(trunk)[-1] + leg_length) / ends.length_share
    if length <= 0.0:
        return None
    arms = _find_arms(
        figure, trunk, [leaf for leaf in ends.others if leaf not in trunk]
    )
    n_on_paths = len(trunk) + sum(map(len, (*legs, *arms))) - len(legs)
    n_beside = len(figure.neighbours) - n_on_paths
    is_costly = UNNAMED_BODY_COST * (n_beside + ends.n_missing) >= max_cost
    if is_costly or 2 * n_on_paths < len(figure.neighbours):
        return None
    chest = _chest_index(trunk, arms) if ends.has_head else len(trunk) - 1
    if ends.has_head and height[trunk[-1]] <= height[trunk[chest]]:
        return None
    errors = _trunk_errors(figure.arc_lengths(trunk) / length, chest, ends.has_head)
    if max(map(abs, errors), default=0.0) > MAX_POSITION_ERROR:
        return None
    lateral = _lateral_errors(figure, trunk, [leg[1] for leg in legs], length, up)
    clearance = _foot_clearance(figure, feet, length, up)
    named_legs = _name_legs(figure, legs, clearance, length)
    named_arms = _name_arms(figure, arms, length)
    limbs = [*named_legs, *named_arms]
    n_limb_bodies = sum(len(path) - 1 for path in (*legs, *arms))
    n_lost = len(figure.neighbours) - len(trunk) - n_limb_bodies
    n_absent = ends.n_missing + 2 - len(named_arms)
    return PersonLimbs(
        hips=trunk[0],
        legs=[leg.bodies for leg in named_legs],
        arms=[arm.bodies for arm in named_arms],
        trunk=trunk[1 : chest + 1],
        head=trunk[chest + 1 :] if ends.has_head else [],
        lower_cost=sum(leg.cost for leg in named_legs)
        + squared_errors([*clearance, *lateral[:1]]),
        upper_cost=sum(arm.cost for arm in named_arms)
        + squared_errors([*errors, *lateral[1:]]),
        lateral_cost=squared_errors(lateral),
        missing_cost=UNNAMED_BODY_COST * (n_lost + n_absent),
        unsure=frozenset().union(*(limb.unsure for limb in limbs)),
    )


def _name_legs(
    figure: NamingInput,
    legs: Sequence[list[int]],
    clearance: Sequence[float],
    length: float,
) -> list[LimbNames]:
    """Return the names of both legs of a figure of this length."""
    chains = [
        LimbChain(
            leg[1:],
            _leg_heights(figure, leg, raised, length),
            figure.joint_distances(leg) / length,
        )
        for leg, raised in zip(legs, clearance, strict=True)
    ]
    return name_pair(chains, (LEG, LEG_WITH_TOES))


def _name_arms(
    figure: NamingInput, arms: Sequence[list[int]], length: float
) -> list[LimbNames]:
    """Return the names of the arms of a figure that have any."""
    chains = [
        LimbChain(
            arm[1:],
            figure.arc_lengths(arm)[1:] / length,
            figure.joint_distances(arm) / length,
        )
        for arm in arms
    ]
    named = name_pair(chains, (ARM, ARM_WITH_SHOULDER))
    return [arm for arm in named if arm.bodies]


def _trunk_errors(position: Array, chest: int, has_head: bool) -> list[float]:
    """Return the errors of chest and head, as fractions of the figure's length.

    Hips alone have neither.
    """
    chest_error = float(position[chest]) - CHEST_POSITION
    head_error = float(position[-1] - position[chest]) - HEAD_POSITION
    return [chest_error, head_error][: len(position) - 1][: 1 + has_head]


def _lateral_errors(
    figure: NamingInput, trunk: list[int], legs: list[int], length: float, up: Array
) -> list[float]:
    """Return how far bodies of the trunk lie from the middle of the legs, sideways.

    Medians over time, as fractions of the figure's length. Hips are as wide as the
    legs, so that half a pelvis lies in the middle. An arm that hangs beside them is no
    trunk.
    """
    first, second = (figure.position[:, leg] for leg in legs)
    axis = heading(first - second, up)
    offset = figure.position[:, trunk] - 0.5 * (first + second)[:, None]
    lateral = np.abs(np.sum(offset * axis[:, None], axis=-1))
    half_width = 0.5 * np.sum((first - second) * axis, axis=-1)
    lateral[:, 0] = np.maximum(lateral[:, 0] - half_width, 0.0)
    return [float(v) for v in np.nan_to_num(column_medians(lateral)) / length]


def _foot_clearance(
    figure: NamingInput, feet: Sequence[int], length: float, up: Array
) -> list[float]:
    """Return the height of standing feet above the ground, as fractions of the length.

    The ground is z = 0 if that is just below all bodies, else the lowest body. A foot
    stands in a few frames at least.
    """
    lowest = float(figure.heights(up)[list(figure.neighbours)].min())
    ground = 0.0 if 0.0 <= lowest < FEW * length else lowest
    heights = (figure.position[:, foot] @ up for foot in feet)
    standing = [float(np.nanquantile(h, FEW)) for h in heights]
    return [max(height - ground, 0.0) / length for height in standing]


def _leg_heights(
    figure: NamingInput, leg: list[int], clearance: float, length: float
) -> Float[Array, " _"]:
    """Return the heights of a leg's bodies along it, as fractions of the length."""
    distance = figure.arc_lengths(leg)
    return np.asarray((distance[-1] - distance[1:]) / length + clearance)


def _find_arms(
    figure: NamingInput, trunk: list[int], leaves: list[int]
) -> list[list[int]]:
    """Return the two longest limbs that leave the trunk, each with its body there."""
    limbs = []
    for leaf in leaves:
        path = figure.path(trunk[0], leaf)
        n_trunk = sum(body in trunk for body in path)
        limbs.append(path[n_trunk - 1 :])
    limbs = [limb for limb in limbs if limb[0] != trunk[0] or len(trunk) < 3]
    limbs.sort(key=lambda limb: (len(limb), figure.arc_lengths(limb)[-1]), reverse=True)
    # Fingers share the bodies of their arm: the longest path stands for all of them.
    arms: list[list[int]] = []
    for limb in limbs:
        if all(limb[1] != arm[1] for arm in arms):
            arms.append(limb)
    return arms[:2]


def _chest_index(trunk: list[int], arms: list[list[int]]) -> int:
    """Return the index in the trunk of the body that carries the arms."""
    junctions = [trunk.index(arm[0]) for arm in arms]
    chest = max(junctions) if junctions else max(len(trunk) - 2, 0)
    return max(chest, min(1, len(trunk) - 2))


def _find_names(
    limbs: PersonLimbs, sided: Sequence[tuple[str, LimbBodies]]
) -> dict[int, str]:
    """Return the name of every recognised body."""
    names = {limbs.hips: vrm.HIPS}
    names |= dict(zip(limbs.trunk, _trunk_names(len(limbs.trunk)), strict=True))
    names |= dict(zip(limbs.head, head_names(len(limbs.head)), strict=True))
    for side, limb in sided:
        names |= {body: side + part for part, body in limb.items()}
    return names


def _trunk_names(count: int) -> list[str]:
    """Return the names of the bodies from above the hips up to the chest."""
    if count < 3:
        return [vrm.SPINE, vrm.CHEST][2 - count :]
    more = [f"{vrm.SPINE}{i}" for i in range(2, count - 1)]
    return [vrm.SPINE, *more, vrm.CHEST, vrm.UPPER_CHEST]
