"""Sides of labels that name a limb and no side, by the other labels of the subject."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from marey.anatomy import names as vrm
from marey.segmentation.labels.marker_sets import MIN_BODIES
from marey.segmentation.labels.words import (
    Bodies,
    Reading,
    label_chunks,
    limb_of,
    readings_of_label,
    side_as_position,
    vocabulary,
    with_side,
)

MIDDLE_FINGER = "middlefinger"

_LEFT_WORD = re.compile(vrm.LEFT)

LimbSides = Mapping[str, frozenset[str]]
"""Sides that labels name of the arms and of the legs. "" alone: no label names one, and
words without a side name two bodies or more of the limb."""


def bodies_of_labels(labels: Mapping[str, str]) -> dict[str, tuple[Bodies, ...]]:
    """Return the bodies that each label of a subject may name; several are ambiguous.

    As `bodies_of_label`, and labels that name a limb without a side are on the only
    side that other labels of such limbs name, or on either one. If none names a side,
    there is a single arm or leg, and its bodies have no side: "UpperArm".

    Args:
        labels: The labels as they are written, by any key.
    """
    readings = _read_together(with_spelled_sides(labels))
    sides = {
        limb: _sides_of_limb(limb, [*readings.values()]) for limb in ("arm", "leg")
    }
    return {
        key: tuple(dict.fromkeys(_bodies_of_readings(some, sides)))
        for key, some in readings.items()
    }


def with_spelled_sides(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels with letters that stand for sides in their language spelled out.

    "Genou_G" and "Genou_D" are a left and a right knee, "EIASG" and "EIASD" points of
    the pelvis, if several pairs of labels differ in these letters alone. More labels
    must have them than name a side otherwise: "P_kolano" is right beside "L_kolano".
    """
    n_sided = sum(
        any(one.side for one in readings_of_label(label)) for label in labels.values()
    )
    chunks = {key: label_chunks(label) for key, label in labels.items()}
    best: dict[str, str] = {}
    for letters, spell in product(
        vocabulary().side_letters, (_spell_side, _spell_first, _spell_last)
    ):
        side_of_letter = dict(zip(letters, vrm.SIDES, strict=True))
        spelled = {key: spell(some, side_of_letter) for key, some in chunks.items()}
        sides = {label for label in spelled.values() if label}
        n_pairs = sum(_LEFT_WORD.sub(vrm.RIGHT, one) in sides - {one} for one in sides)
        if n_pairs >= MIN_BODIES and len(sides) > max(len(best), n_sided):
            best = {key: label for key, label in spelled.items() if label}
    return {**labels, **best}


def _spell_side(chunks: Sequence[str], side_of_letter: Mapping[str, str]) -> str:
    """Return a label whose first or last part is such a letter; "" for others."""
    for place in (0, -1):
        letter = chunks[place].rstrip("0123456789") if len(chunks) > 1 else ""
        if letter in side_of_letter:
            number = chunks[place].removeprefix(letter)
            rest = list(chunks)
            rest[place] = side_of_letter[letter] + (f"_{number}" if number else "")
            return "_".join(rest)
    return ""


def _spell_first(chunks: Sequence[str], side_of_letter: Mapping[str, str]) -> str:
    """Return a label of one part that begins with such a letter; "" for others."""
    side = side_of_letter.get(chunks[0][0]) if len(chunks) == 1 else None
    return f"{side}_{chunks[0][1:]}" if side and chunks[0][1:] else ""


def _spell_last(chunks: Sequence[str], side_of_letter: Mapping[str, str]) -> str:
    """Return a label of one part that ends with such a letter; "" for others."""
    side = side_of_letter.get(chunks[0][-1]) if len(chunks) == 1 else None
    return f"{chunks[0][:-1]}_{side}" if side and chunks[0][:-1] else ""


def _read_together(labels: Mapping[str, str]) -> dict[str, tuple[Reading, ...]]:
    """Return the readings of labels, those understood that only the others explain.

    "hand_left" beside "hand_top" is the left end of a hand. "middle_tip" beside words
    for other fingers is of the middle finger.
    """
    split = {key: side_as_position(label) for key, label in labels.items()}
    sides = vocabulary().sides
    tops = {stem for stem, word in split.values() if stem and word not in sides}
    readings = {
        key: readings_of_label(split[key][0])
        if split[key][0] in tops and split[key][1] in sides
        else readings_of_label(label)
        for key, label in labels.items()
    }
    fingers = {
        body
        for some in readings.values()
        for one in some
        for body in one.bodies
        if body.startswith(vrm.FINGERS)
    }
    if len(fingers) > 1:
        for key, label in labels.items():
            lower = label.casefold()
            if not readings[key] and "middle" in lower:
                renamed = lower.replace("middle", MIDDLE_FINGER, 1)
                readings[key] = readings_of_label(renamed)
    return readings


def _sides_of_limb(
    limb: str, readings: Sequence[tuple[Reading, ...]]
) -> frozenset[str]:
    """Return the sides that labels name of a limb, see `LimbSides`."""
    named = {
        one.side
        for some in readings
        for one in some
        if one.side and limb_of(one.bodies[0]) == limb
    }
    bodies = {
        some[0].bodies[0]
        for some in readings
        if len(some) == 1 and all(limb_of(body) == limb for body in some[0].bodies)
    }
    return frozenset(named or ({""} if len(bodies) > 1 else ()))


def _bodies_of_readings(
    readings: Sequence[Reading], sides: LimbSides
) -> Iterator[Bodies]:
    """Yield the bodies that a label may mean.

    Limbs without a side count beside others only where no label names a side: "th12" is
    a vertebra, not either thigh.
    """
    plain = [with_side(one.bodies, one.side) for one in readings]
    for one, bodies in zip(readings, plain, strict=True):
        limbs = [limb for limb in map(limb_of, one.bodies) if limb and not one.side]
        possible = sides[limbs[0]] if limbs else frozenset()
        if possible == {""}:
            yield one.bodies
        elif bodies:
            yield bodies
        elif not any(plain):
            yield from (with_side(one.bodies, side) for side in sorted(possible))
