"""Names of the bodies and joints of people, and what makes a figure a person.

The names are those of the VRM humanoid: Hips, Spine, Chest, Neck, Head, LeftUpperArm.
A joint has the name of the body that it moves. A name may begin with the subject,
as in "JOE:Hips". All other modules take names, sides and limbs from here.
"""

from collections.abc import Collection, Sequence

HIPS, SPINE, CHEST, UPPER_CHEST = "Hips", "Spine", "Chest", "UpperChest"
NECK, HEAD, TAIL = "Neck", "Head", "Tail"
SHOULDER, UPPER_ARM, LOWER_ARM, HAND = "Shoulder", "UpperArm", "LowerArm", "Hand"
UPPER_LEG, LOWER_LEG, FOOT, TOES = "UpperLeg", "LowerLeg", "Foot", "Toes"

FINGERS = ("Thumb", "Index", "Middle", "Ring", "Little")
PHALANGES = ("Proximal", "Intermediate", "Distal")

LEFT, RIGHT = "Left", "Right"
SIDES = (LEFT, RIGHT)

SIDE_SPELLINGS = {LEFT: ("left", "l"), RIGHT: ("right", "r")}
"""How labels of markers and sensors write a side, in lower case."""

TRUNK = (SPINE, CHEST, UPPER_CHEST, NECK, HEAD)
"""Bodies above the hips that have no side, from the hips upward."""

ARM = (SHOULDER, UPPER_ARM, LOWER_ARM, HAND)
"""Bodies of an arm without their side, from the trunk outward."""

LEG = (UPPER_LEG, LOWER_LEG, FOOT, TOES)
"""Bodies of a leg without their side, from the trunk outward."""


def side_of(name: str) -> str:
    """Return the side that a name begins with, "Left" or "Right"; "" for the middle."""
    return next((side for side in SIDES if name.startswith(side)), "")


def without_side(name: str) -> str:
    """Return the name without its side: "UpperLeg" for "LeftUpperLeg"."""
    return name.removeprefix(side_of(name))


def subject_of(name: str) -> str:
    """Return the subject that a name begins with: "JOE" for "JOE:Hips", else ""."""
    return name.rpartition(":")[0]


def without_subject(name: str) -> str:
    """Return the name without its subject: "Hips" for "JOE:Hips"."""
    return name.rpartition(":")[2]


def split_subjects(names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return labels and subjects: "JOE:RTHI" is the label RTHI of the subject JOE."""
    parts = [split_subject(name) for name in names]
    return tuple(label for _, label in parts), tuple(subject for subject, _ in parts)


def split_subject(name: str) -> tuple[str, str]:
    """Return subject and label of a name; a name without one of them is a label."""
    subject, _, label = name.rpartition(":")
    return (subject, label) if subject and label else ("", name)


def mirror_name(name: str) -> str:
    """Return the name of the body on the other side; of the middle the same name."""
    side = side_of(name)
    return {LEFT: RIGHT, RIGHT: LEFT}.get(side, "") + without_side(name)


def both_sides(part: str) -> tuple[str, str]:
    """Return the names of the left and of the right body of one kind."""
    return LEFT + part, RIGHT + part


def is_person(names: Collection[str]) -> bool:
    """Return whether the names are of a person: hips and two upper legs, but no tail.

    An animal may have hips and upper legs too.
    """
    return {HIPS, *both_sides(UPPER_LEG)} <= set(names) and not has_tail(names)


def has_arms(names: Collection[str]) -> bool:
    """Return whether the names include two upper arms."""
    return set(both_sides(UPPER_ARM)) <= set(names)


def has_tail(names: Collection[str]) -> bool:
    """Return whether one of the names is that of a tail, as only animals have."""
    return any(name.startswith(TAIL) for name in names)
