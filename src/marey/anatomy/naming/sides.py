"""Which side of a person is left: where toes, knees, elbows and steps point."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from marey.anatomy.naming.naming_input import Figure, agreement, level

Array = np.ndarray
Limb = dict[str, int]

# Cues on which way the figure faces count so much.
TOES, KNEES, ELBOWS, STEPS = 2.0, 1.0, 1.0, 1.0

# Steps from one sample to the next that are shorter than this, in shares of the
# distance of the hips from a foot, lead nowhere.
SHORT = 0.02

# How much longer the way from body to body may be by their joint.
DETOUR = 1.5

# How clearly an arm must be on one side; of two arms each at least a little.
ASIDE, MIDDLE = 0.2, 0.05


def legs_left_first(
    figure: Figure, hips: int, legs: Sequence[Limb], arms: Sequence[Limb], up: Array
) -> tuple[list[Limb], float]:
    """Return the legs with the left one first, and how well the cues agree."""
    first, second = (figure.place[:, next(iter(leg.values()))] for leg in legs)
    left = np.cross(up, _ahead(figure, hips, legs, arms, up))
    score = agreement(left, level(first - second, up))
    ordered = list(legs) if score > 0 else list(legs[::-1])
    return ordered, min(abs(score), 1.0)


def arms_by_side(
    figure: Figure, chest: int, legs: Sequence[Limb], arms: Sequence[Limb], up: Array
) -> dict[str, Limb]:
    """Return the arms by their side; none that is in the middle, or on either.

    Args:
        figure: The bodies.
        chest: The body that arms hang from.
        legs: The left and the right one.
        arms: Some arms.
        up: Which way is up.
    """
    ends = [figure.place[:, next(iter(leg.values()))] for leg in legs]
    left = level(ends[0] - ends[1], up)
    roots = [figure.place[:, next(iter(arm.values()))] for arm in arms]
    middle = figure.place[:, chest]
    leans = [agreement(level(root - middle, up), left) for root in roots]
    if len(roots) == 2 and min(map(abs, leans)) > MIDDLE:
        lean = agreement(level(roots[0] - roots[1], up), left)
        leans = [lean, -lean]
    return {
        "Left" if lean > 0 else "Right": arm
        for lean, arm in zip(leans, arms, strict=True)
        if abs(lean) > ASIDE
    }


def _ahead(
    figure: Figure, hips: int, legs: Sequence[Limb], arms: Sequence[Limb], up: Array
) -> Float[Array, "frame 3"]:
    """Return which way the figure faces, level, of length one when all cues agree."""
    cues = [cue for leg in legs for cue in _leg_cues(figure, hips, leg)]
    cues += [cue for arm in arms for cue in _arm_cues(figure, arm)]
    total = sum(
        (weight * level(way, up) for weight, way in cues),
        np.zeros((len(figure.place), 3)),
    )
    steps = _steps(figure, hips, legs, up)
    # Who stands still has no steps: they count by how often there are any.
    stepping = np.mean(np.any(steps != 0.0, axis=1))
    weight = sum(weight for weight, _ in cues) + STEPS * stepping
    return np.asarray((total + STEPS * steps) / max(float(weight), 1.0))


def _leg_cues(figure: Figure, hips: int, leg: Limb) -> list[tuple[float, Array]]:
    cues = []
    if {"LowerLeg", "Foot"} <= set(leg):
        ankle = _between(figure, leg["LowerLeg"], leg["Foot"])
        # Feet are ahead of their shanks too, on average, where no ankle shows.
        ankle = figure.place[:, leg["LowerLeg"]] if ankle is None else ankle
        cues.append((TOES, figure.place[:, leg.get("Toes", leg["Foot"])] - ankle))
    if {"UpperLeg", "LowerLeg"} <= set(leg):
        hip = _between(figure, hips, leg["UpperLeg"])
        knee = _between(figure, leg["UpperLeg"], leg["LowerLeg"])
        end = figure.place[:, leg["LowerLeg"]]
        if hip is not None and knee is not None:
            cues.append((KNEES, knee - 0.5 * (hip + end)))
    return cues


def _arm_cues(figure: Figure, arm: Limb) -> list[tuple[float, Array]]:
    if not {"UpperArm", "LowerArm"} <= set(arm):
        return []
    elbow = _between(figure, arm["UpperArm"], arm["LowerArm"])
    if elbow is None:
        return []
    end = figure.place[:, arm.get("Hand", arm["LowerArm"])]
    return [(ELBOWS, 0.5 * (end + figure.place[:, arm["UpperArm"]]) - elbow)]


def _steps(
    figure: Figure, hips: int, legs: Sequence[Limb], up: Array
) -> Float[Array, "frame 3"]:
    """Return which way the hips move, where they move along the ground."""
    place = figure.place[:, hips]
    moved = np.gradient(place, axis=0) if len(place) > 1 else np.zeros_like(place)
    flat = moved - np.outer(moved @ up, up)
    foot = figure.place[:, list(legs[0].values())[-1]]
    scale = np.nanmedian(np.linalg.norm(place - foot, axis=-1))
    far = np.linalg.norm(flat, axis=-1) > SHORT * scale
    return level(np.where(far[:, None], flat, 0.0), up)


def _between(figure: Figure, a: int, b: int) -> Float[Array, "frame 3"] | None:
    """Return the joint of two bodies; None where it is not known to be between them."""
    if (min(a, b), max(a, b)) not in figure.joint:
        return None
    joint = figure.joint_of(a, b)
    ends = figure.place[:, [a, b]]
    away = np.nanmedian(np.linalg.norm(ends - joint[:, None], axis=-1), axis=0)
    apart = np.nanmedian(np.linalg.norm(ends[:, 0] - ends[:, 1], axis=-1))
    return joint if away.sum() < DETOUR * apart else None
