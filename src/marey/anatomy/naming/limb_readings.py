r"""Readings of a limb: the parts of a person that each of its bodies consists of.

A limb is a row of parts: thigh, shank, foot. Segmentation may have merged two of them,
cut one in two, or left the first with the trunk. A reading says for every body from
which part to which part it reaches. Its cost is minus twice the logarithm of its
likelihood, up to a constant: positions of the bodies and distances between the joints
are normally distributed about those of a person, and merged parts and cuts are rare.
Distances between joints are the sharper evidence: they do not depend on where on a part
its markers are. Positions along an arm have an error in common, that of the trunk they
are measured from, which depends on where the markers of the trunk are. The probability
of a name is that of all readings which give it:

.. math:: p = \sum e^{-c/2} / \sum_{all} e^{-c/2}
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf, log
from typing import NamedTuple

import numpy as np

from marey.anatomy import names as vrm
from marey.numerics import Float
from marey.numerics.thresholds import OUTLIER_SD

BONE_LENGTH = {
    vrm.UPPER_LEG: 0.255,
    vrm.LOWER_LEG: 0.256,
    vrm.SHOULDER: 0.1,
    vrm.UPPER_ARM: 0.194,
    vrm.LOWER_ARM: 0.152,
    vrm.HAND: 0.1,
    vrm.FOOT: 0.07,
    vrm.TOES: 0.07,
}
"""Distance between the joints of a part, or its length at the end of a limb, as a
fraction of the path from a foot to the head, which is 0.96 of the stature. Long bones:
Drillis and Contini 1966 (0.245, 0.246, 0.186 and 0.146 of the stature); others by hand.
Higher expects joints further apart."""

BONE_SD = 0.03
"""Error of a distance between joints that costs one, as the same fraction: spread of
people's proportions and errors of centres. Higher makes bones count less. Chosen by
hand on 58 recordings with known bodies; from 0.03 to 0.04 their names hardly change."""

MAX_BONE_COST = 4.0
"""Largest cost of a bone: the centre of a joint that hardly moves may be anywhere.
Higher trusts centres more. Chosen with `BONE_SD`."""

POSITION_SD = 0.05
"""Position error that costs one, as a fraction of the figure's length. Higher makes
positions count less than missing names. Chosen by hand."""

COMMON_VARIANCE = 0.5 * POSITION_SD**2
"""Variance of the error that all positions along an arm have in common. Half of it all:
the trunk is as uncertain as a body of the limb."""

UNNAMED_BODY_COST = 5.0
"""Cost of a joint between two parts that is missing, of a cut within a part, of a body
on no limb and of a part of the trunk that is not there: about -2 ln 0.08. Higher reads
more bodies as whole parts. Chosen with `BONE_SD`."""

MISSING_END_COST = 1.0
"""Cost of the last part of a limb without a body of its own, which is common: hands
often move with their forearms. Chosen by hand."""

MIN_PROBABILITY = 0.6
"""Probability of a name above which a body has it. Higher leaves more bodies without a
name. Chosen with `BONE_SD`; with each group of recordings left out in turn, the choice
of both gives 3 % wrong names."""

OPTIONAL_NAMES = (vrm.SHOULDER, vrm.TOES)
"""Parts that cost nothing if no body is one of them."""

MAX_EXCESS_COST = 30.0
"""Cost above the least at which an unfinished reading is given up. Guards long limbs
against a search of all readings: lower may miss the best one, higher takes longer.
Chosen by hand."""

TRUNK = -1
"""Number of the trunk as the part before the first one of a limb."""


@dataclass(frozen=True, slots=True, eq=False)
class LimbChain:
    """Bodies of a limb from the trunk outward; lengths as fractions of the figure's."""

    bodies: Sequence[int]
    positions: Float[np.ndarray, " body"]
    """Position of each body along the limb."""

    joint_distances: Float[np.ndarray, "body body"]
    """Between the joints at the inner ends of the bodies; NaN where one is unknown."""


class LimbNames(NamedTuple):
    """Names of a limb's bodies by the most likely reading."""

    bodies: dict[str, int]
    """Bodies by their names without the side, from the trunk outward."""

    cost: float
    unsure: frozenset[int]
    """Bodies whose names are not probable."""


_Error = tuple[float, float]
"""Error of a position and its variance, as fractions of the figure's length."""


class _Reading(NamedTuple):
    """Parts of the first bodies of a limb."""

    parts: tuple[tuple[int, int], ...]
    """First and last part of each body."""

    joint: tuple[int, int] | None
    """The body that begins at the last joint between two parts, and its first part."""

    cost: float
    errors: tuple[_Error, ...]
    """Of each body; the variance is infinite for pieces of the trunk."""


def name_limb(limb: LimbChain, expected: Mapping[str, float]) -> LimbNames:
    """Return the names of a limb's bodies.

    A body of two parts at the end of a limb has the name of the foot if it is a leg,
    which ends on the ground, and else of the inner part. Other bodies of two parts, and
    the further pieces of one part, have no sure name.

    Args:
        limb: The limb.
        expected: Positions of the parts, from the trunk outward.
    """
    model = _LimbModel(limb, expected)
    readings = model.readings()
    least = min(reading.cost for reading in readings)
    weight = np.exp([0.5 * (least - reading.cost) for reading in readings])
    probability: dict[tuple[str, int], float] = {}
    for reading, share in zip(readings, weight / weight.sum(), strict=True):
        for name, (body, is_clear) in model.names(reading).items():
            key = name, body
            probability[key] = probability.get(key, 0.0) + is_clear * float(share)
    best = model.names(min(readings, key=lambda reading: reading.cost))
    bodies = {name: limb.bodies[body] for name, (body, _) in best.items()}
    unsure = frozenset(
        limb.bodies[body]
        for name, (body, _) in best.items()
        if probability[name, body] <= MIN_PROBABILITY
    )
    return LimbNames(bodies, least, unsure)


def _position_cost(error: float, variance: float) -> float:
    """Return the cost of a position error whose variance is known, 0 if infinite."""
    if variance == inf:
        return 0.0
    return min(error**2 / variance, OUTLIER_SD**2) + log(variance / POSITION_SD**2)


def _changes_by_common_errors(
    readings: Sequence[_Reading],
) -> Float[np.ndarray, " reading"]:
    r"""Return what an error that all positions of a limb share changes of their costs.

    The error :math:`e_i` of body i has the variance :math:`v_i`, of which :math:`s` is
    that of a common error :math:`c`. In place of :math:`\sum e_i^2 / v_i` the cost is

    .. math:: \min_c \frac{c^2}{s} + \sum_i \frac{(e_i - c)^2}{v_i - s}
              + \sum_i \ln\frac{v_i - s}{v_i}
              + \ln\Bigl(1 + \sum_i \frac{s}{v_i - s}\Bigr)

    where no body costs more than at `OUTLIER_SD`. The minimum is taken over the common
    errors of all bodies, of all but one, and of none.
    """
    errors = np.array([reading.errors for reading in readings]).reshape(
        len(readings), -1, 2
    )
    error, variance = errors[..., 0], errors[..., 1]
    weight = 1.0 / (variance - COMMON_VARIANCE)
    used = 1.0 - np.eye(error.shape[1] + 2, error.shape[1], k=-1)
    used[-1] = 0.0
    precision = 1.0 / COMMON_VARIANCE + weight @ used.T
    common = (weight * error) @ used.T / precision
    squares = (error[:, None] - common[..., None]) ** 2 * weight[:, None]
    bounded = np.minimum(squares, OUTLIER_SD**2).sum(axis=-1)
    least = (bounded + common**2 / COMMON_VARIANCE).min(axis=-1)
    apart = np.minimum(error**2 / variance, OUTLIER_SD**2).sum(axis=-1)
    volume = np.log1p(-COMMON_VARIANCE / variance).sum(axis=-1)
    volume += np.log1p(COMMON_VARIANCE * weight.sum(axis=-1))
    return np.asarray(least - apart + volume)


class _LimbModel:
    """Costs of the readings of one limb."""

    def __init__(self, limb: LimbChain, expected: Mapping[str, float]) -> None:
        self.order = list(expected)
        self.expected = list(expected.values())
        self.position: list[float] = limb.positions.tolist()
        self.distance = limb.joint_distances.tolist()
        self.is_optional = [name in OPTIONAL_NAMES for name in expected]
        self.last = max(i for i, free in enumerate(self.is_optional) if not free)
        lengths = [BONE_LENGTH[name] for name in expected]
        self.joint_position = np.cumsum([0.0, *lengths]).tolist()
        missing = [self._missing_cost(part) for part in range(len(expected))]
        self.missing_costs = np.cumsum([0.0, *missing]).tolist()
        self.extent = [self._extent(body) for body in range(len(self.position))]
        # Readings share most of their parts, so each is looked at once.
        self._position_error = cache(self._find_position_error)
        self._part_names: dict[tuple[int, int, int], tuple[int, bool]] = {}

    def readings(self) -> list[_Reading]:
        """Return all readings that are not far more costly than others."""
        readings = [_Reading((), None, 0.0, ())]
        for body in range(len(self.position)):
            longer = [one for some in readings for one in self._extend(some, body)]
            least = min(one.cost for one in longer)
            readings = [one for one in longer if one.cost < least + MAX_EXCESS_COST]
        # Heights of a leg are measured from the ground, other positions from the trunk.
        is_from_trunk = vrm.FOOT not in self.order
        changes = is_from_trunk * _changes_by_common_errors(readings)
        return [
            one._replace(cost=one.cost + self._absence_cost(one) + change)
            for one, change in zip(readings, changes.tolist(), strict=True)
        ]

    def names(self, reading: _Reading) -> dict[str, tuple[int, bool]]:
        """Return the body of each name, and whether it is clear in this reading.

        If a part has several pieces, it is the one between the joints furthest apart.
        """
        best: dict[int, tuple[float, int, bool]] = {}
        for body, parts in enumerate(reading.parts):
            key = body, *parts
            if key not in self._part_names:
                self._part_names[key] = self._name_of_parts(*key)
            part, is_clear = self._part_names[key]
            extent = self.extent[body]
            if part != TRUNK and (part not in best or extent > best[part][0]):
                best[part] = extent, body, is_clear
        return {self.order[part]: best[part][1:] for part in sorted(best)}

    def _name_of_parts(self, body: int, first: int, last: int) -> tuple[int, bool]:
        """Return the part whose name a body of some parts has, and if it is clear."""
        first, last = self._without_optional(first, last)
        if first == TRUNK:
            return TRUNK, False
        is_end = last == self.last and last - first == 1
        part = last if is_end and vrm.FOOT in self.order else first
        return part, (first == last or is_end) and self._is_near(body, part)

    def _without_optional(self, first: int, last: int) -> tuple[int, int]:
        """Return first and last of some parts without the optional ones at the ends."""
        while first < last and self.is_optional[first]:
            first += 1
        while first < last and self.is_optional[last]:
            last -= 1
        return first, last

    def _is_near(self, body: int, part: int) -> bool:
        """Return whether a body may be a part: a stick beyond the hand is no hand."""
        error = abs(self.position[body] - self.expected[part])
        return error < OUTLIER_SD * POSITION_SD

    def _extent(self, body: int) -> float:
        """Return the distance between the joints of a body, 0 if one is not known."""
        is_last = body == len(self.position) - 1
        distance = 0.0 if is_last else self.distance[body][body + 1]
        return distance if distance == distance else 0.0

    def _extend(self, reading: _Reading, body: int) -> Iterator[_Reading]:
        """Return the readings of one more body."""
        n_parts = len(self.order)
        before = reading.parts[-1][1] if reading.parts else TRUNK
        for first in range(before, min(before + 2, n_parts) if body else n_parts):
            is_cut = first == before
            joint = reading.joint if is_cut else (body, first)
            cost = reading.cost + (
                UNNAMED_BODY_COST if is_cut else self._joint_cost(reading, body, first)
            )
            for last in range(first, n_parts if first != TRUNK else first + 1):
                error = self._position_error(body, first, last, is_cut)
                more = _position_cost(*error) + self._merging_cost(first, last)
                parts = (*reading.parts, (first, last))
                errors = (*reading.errors, error)
                yield _Reading(parts, joint, cost + more, errors)

    def _joint_cost(self, reading: _Reading, body: int, first: int) -> float:
        """Return the cost of the joint at which a body with another part begins."""
        cost = self._merging_cost(TRUNK, first - 1) if body == 0 else 0.0
        return cost + self._bone_cost(reading.joint, body, first)

    def _absence_cost(self, reading: _Reading) -> float:
        """Return the cost of the parts beyond the last body."""
        reached = reading.parts[-1][1] if reading.parts else TRUNK
        return self._merging_cost(reached, len(self.order) - 1)

    def _merging_cost(self, first: int, last: int) -> float:
        """Return the cost of joints that are missing between two parts."""
        return float(self.missing_costs[last + 1] - self.missing_costs[first + 1])

    def _missing_cost(self, part: int) -> float:
        """Return the cost of the joint before a part if it is missing."""
        if self._is_free(part):
            return 0.0
        return MISSING_END_COST if part == self.last else UNNAMED_BODY_COST

    def _is_free(self, part: int) -> bool:
        """Return whether the joint before a part may be missing at no cost."""
        before_is_optional = part > 0 and self.is_optional[part - 1]
        return self.is_optional[part] or (before_is_optional and part == 1)

    def _find_position_error(
        self, body: int, first: int, last: int, is_cut: bool
    ) -> _Error:
        """Return the error of a body's position and its variance.

        Bodies of several parts, and pieces of one, may be anywhere on them. The path to
        a limb whose first parts are with the trunk is shorter than usual, so these
        parts count as well.
        """
        if last == TRUNK:
            return 0.0, inf
        inner = 0 if body == 0 else max(first, 0)
        while inner < last and self.is_optional[inner]:
            inner += 1
        expected = self.expected[inner : last + 1]
        extent = abs(expected[0] - expected[-1])
        if is_cut:
            extent = max(extent, BONE_LENGTH[self.order[last]])
        error = self.position[body] - sum(expected) / len(expected)
        return error, POSITION_SD**2 + extent**2 / 12.0

    def _bone_cost(self, joint: tuple[int, int] | None, body: int, part: int) -> float:
        """Return the cost of the distance between two joints, one if it is not known.

        The inner end of a collar bone is not seen: chests turn with their arms.
        """
        if joint is None:
            return 0.0
        length = self.distance[joint[0]][body]
        begins_at_chest = joint[1] == 0 and self.order[0] == vrm.SHOULDER
        if length != length or begins_at_chest:
            return 1.0
        expected = self.joint_position[part] - self.joint_position[joint[1]]
        return float(min(((length - expected) / BONE_SD) ** 2, MAX_BONE_COST))
