"""The left side of a person: from toes, knees and elbows, or else from the travel."""

from collections.abc import Sequence

import numpy as np

from marey.anatomy import names as vrm
from marey.anatomy.naming.limbs import LimbBodies, PersonLimbs
from marey.anatomy.naming.naming_input import (
    MIN_HORIZONTAL_M,
    MIN_SIDE_CONFIDENCE,
    NamingInput,
    heading,
    mean_cosine,
)
from marey.numerics import Array, Float, geometry
from marey.numerics.robust import column_medians
from marey.numerics.thresholds import FEW


def order_legs(
    figure: NamingInput, limbs: PersonLimbs, up: Array
) -> tuple[list[LimbBodies], float]:
    """Return the left and the right leg, and the agreement of the cues, 0 to 1.

    The direction of travel counts only where the body itself shows no clear side:
    people also walk backward. The agreement is 0 if the travel contradicts the body and
    neither is clear.
    """
    first, second = (_base(figure, leg) for leg in limbs.legs)
    across = heading(first - second, up)
    cues, length = _body_cues(figure, limbs, up)
    score = _side_score(across, cues, length, up)
    if abs(score) <= MIN_SIDE_CONFIDENCE:
        travel, longest = _travel_cue(figure, limbs, up, length)
        together = _side_score(across, cues + travel, length + longest, up)
        if abs(together) <= MIN_SIDE_CONFIDENCE and together * score < 0.0:
            return limbs.legs, 0.0
        score = together
    ordered = limbs.legs if score > 0 else limbs.legs[::-1]
    return ordered, min(abs(score), 1.0)


def _side_score(
    across: Float[Array, "frame 3"],
    forward: Float[Array, "frame 3"],
    length: Float[Array, "frame 1"],
    up: Array,
) -> float:
    """Return the mean cosine of a direction with the left of a figure, -1 to 1.

    Args:
        across: Horizontal unit vectors.
        forward: Sum of the cues on where the figure faces, in metres.
        length: Sum of their lengths; so a sum of cues that disagree is short.
        up: The direction that the figure stands along.
    """
    facing = forward / np.maximum(length, MIN_HORIZONTAL_M)
    return mean_cosine(np.cross(up, facing), across)


def arms_by_side(
    figure: NamingInput, limbs: PersonLimbs, legs: Sequence[LimbBodies], up: Array
) -> dict[str, LimbBodies]:
    """Return the arms by their side, without those in the middle.

    Args:
        figure: The bodies.
        limbs: The limbs, with at most two arms.
        legs: The left and the right leg.
        up: The direction that the figure stands along.
    """
    left = heading(_base(figure, legs[0]) - _base(figure, legs[1]), up)
    bases = [_base(figure, arm) for arm in limbs.arms]
    # One arm is compared with the chest, two with each other.
    origins = bases[::-1] if len(bases) > 1 else [figure.position[:, limbs.chest]]
    cosines = [
        mean_cosine(heading(base - origin, up), left)
        for base, origin in zip(bases, origins, strict=False)
    ]
    return {
        vrm.LEFT if cosine > 0 else vrm.RIGHT: arm
        for cosine, arm in zip(cosines, limbs.arms, strict=True)
        if abs(cosine) > MIN_SIDE_CONFIDENCE
    }


def _base(figure: NamingInput, limb: LimbBodies) -> Float[Array, "frame 3"]:
    """Return the position of a limb's body nearest to the trunk, in metres."""
    return figure.position[:, next(iter(limb.values()))]


def _body_cues(
    figure: NamingInput, limbs: PersonLimbs, up: Array
) -> tuple[Float[Array, "frame 3"], Float[Array, "frame 1"]]:
    """Return the sum of the cues of all limbs, horizontal, and of their lengths.

    A foot that points down, or a straight knee, hardly counts.
    """
    cues = [cue for leg in limbs.legs for cue in _leg_cues(figure, limbs.hips, leg)]
    cues += [cue for arm in limbs.arms for cue in _arm_cues(figure, arm)]
    nothing = np.zeros_like(figure.position[:, limbs.hips])
    horizontal = np.stack([nothing, *(_horizontal(cue, up) for cue in cues)])
    lengths = np.linalg.norm(horizontal, axis=-1, keepdims=True)
    return horizontal.sum(axis=0), lengths.sum(axis=0)


def _travel_cue(
    figure: NamingInput, limbs: PersonLimbs, up: Array, length: Float[Array, "frame 1"]
) -> tuple[Float[Array, "frame 3"], Float[Array, "frame 1"]]:
    """Return the cue that people travel forward, in metres, and its length.

    It counts as much as the path is long, and at most as much as all other cues
    together, or as a tenth of a leg.

    Args:
        figure: The bodies.
        limbs: The limbs.
        up: The direction that the figure stands along.
        length: Sum of the lengths of the other cues.
    """
    leg = figure.path(limbs.hips, list(limbs.legs[0].values())[-1])
    leg_length = float(figure.arc_lengths(leg)[-1])
    travel = _horizontal(_travel(figure.position[:, limbs.hips], leg_length), up)
    longest = np.maximum(length, FEW * leg_length)
    travel *= np.minimum(longest / np.maximum(_lengths(travel), MIN_HORIZONTAL_M), 1.0)
    return travel, _lengths(travel)


def _travel(
    position: Float[Array, "frame 3"], leg_length: float
) -> Float[Array, "frame 3"]:
    """Return the path of the hips over a tenth of the frames around each frame.

    Zero for a person who stays within a leg's length, such as on a treadmill.
    """
    extent = np.nanmax(position, axis=0) - np.nanmin(position, axis=0)
    if not np.linalg.norm(extent) > leg_length:
        return np.zeros_like(position)
    n_frames = len(position)
    half = max(round(0.5 * FEW * n_frames), 1)
    frames = np.arange(n_frames)
    later = position[np.minimum(frames + half, n_frames - 1)]
    return np.asarray(later - position[np.maximum(frames - half, 0)])


def _horizontal(vectors: Float[Array, "frame 3"], up: Array) -> Float[Array, "frame 3"]:
    """Return the horizontal part of vectors, in their unit; zero where unknown."""
    return np.asarray(np.nan_to_num(vectors - np.outer(vectors @ up, up)))


def _lengths(vectors: Float[Array, "frame 3"]) -> Float[Array, "frame 1"]:
    """Return the length of each vector, in its unit."""
    return np.asarray(np.linalg.norm(vectors, axis=-1, keepdims=True))


def _leg_cues(
    figure: NamingInput, hips: int, leg: LimbBodies
) -> list[Float[Array, "frame 3"]]:
    """Return the cues of a leg, in metres: foot and knee point forward."""
    cues = []
    if {vrm.LOWER_LEG, vrm.FOOT} <= set(leg):
        ankle = _joint_between(figure, leg[vrm.LOWER_LEG], leg[vrm.FOOT])
        # On average the foot is ahead of the shank too.
        ankle = figure.position[:, leg[vrm.LOWER_LEG]] if ankle is None else ankle
        cues.append(figure.position[:, leg.get(vrm.TOES, leg[vrm.FOOT])] - ankle)
    if {vrm.UPPER_LEG, vrm.LOWER_LEG} <= set(leg):
        hip = _joint_between(figure, hips, leg[vrm.UPPER_LEG])
        knee = _joint_between(figure, leg[vrm.UPPER_LEG], leg[vrm.LOWER_LEG])
        shank = figure.position[:, leg[vrm.LOWER_LEG]]
        if hip is not None and knee is not None:
            cues.append(knee - 0.5 * (hip + shank))
    return cues


def _arm_cues(figure: NamingInput, arm: LimbBodies) -> list[Float[Array, "frame 3"]]:
    """Return the cue of an arm, in metres: the elbow points backward."""
    if not {vrm.UPPER_ARM, vrm.LOWER_ARM} <= set(arm):
        return []
    elbow = _joint_between(figure, arm[vrm.UPPER_ARM], arm[vrm.LOWER_ARM])
    if elbow is None:
        return []
    hand = figure.position[:, arm.get(vrm.HAND, arm[vrm.LOWER_ARM])]
    middle = 0.5 * (hand + figure.position[:, arm[vrm.UPPER_ARM]])
    return [middle - elbow]


def _joint_between(
    figure: NamingInput, a: int, b: int
) -> Float[Array, "frame 3"] | None:
    """Return the position of the joint of two bodies, in metres; None if not near them.

    It is near them if it is nearer to one than they are to each other.
    """
    joint = figure.joint.get((min(a, b), max(a, b)))
    if joint is None:
        return None
    ends = figure.position[:, [a, b]]
    to_joint = column_medians(geometry.lengths(ends - joint[:, None]))
    distance = column_medians(geometry.lengths(ends[:, 0] - ends[:, 1]))
    return joint if to_joint.min() < distance else None
