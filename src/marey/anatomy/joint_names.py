"""Everyday names of the joints of a person, and an exercise that shows each."""

from marey.anatomy import names as vrm

JOINTS = {
    (vrm.HIPS, vrm.UPPER_LEG): (
        "hip",
        "swing the leg forward, sideways and about itself",
    ),
    (vrm.UPPER_LEG, vrm.LOWER_LEG): ("knee", "bend it"),
    (vrm.LOWER_LEG, vrm.FOOT): ("ankle", "flex it"),
    (vrm.FOOT, vrm.TOES): ("ball of the foot", "rise on the toes"),
    (vrm.CHEST, vrm.UPPER_ARM): ("shoulder", "circle the arm"),
    (vrm.CHEST, vrm.SHOULDER): ("collar bone", "shrug"),
    (vrm.SHOULDER, vrm.UPPER_ARM): ("shoulder", "circle the arm"),
    (vrm.UPPER_ARM, vrm.LOWER_ARM): ("elbow", "bend it"),
    (vrm.LOWER_ARM, vrm.HAND): ("wrist", "flex it and wave"),
    (vrm.HIPS, vrm.SPINE): ("waist", "bend and twist the trunk"),
    (vrm.HIPS, vrm.CHEST): ("waist", "bend and twist the trunk"),
    (vrm.SPINE, vrm.CHEST): ("back", "bend and twist the trunk"),
    (vrm.CHEST, vrm.NECK): ("neck", "nod and look around"),
    (vrm.CHEST, vrm.HEAD): ("neck", "nod and look around"),
    (vrm.NECK, vrm.HEAD): ("neck", "nod and look around"),
}
"""Name of each joint and its exercise, by the two bodies without their sides."""


def joint_name_and_exercise(a: str, b: str) -> tuple[str, str] | None:
    """Return the everyday name of the joint of two bodies, and an exercise for it.

    For example "left knee" and "bend it". None for bodies that are not a person's.

    Args:
        a: Name of one body, with or without its subject.
        b: Name of the other body.
    """
    bodies = vrm.without_subject(a), vrm.without_subject(b)
    sides = [vrm.side_of(body) for body in bodies]
    side = next((side for side in vrm.SIDES if side in sides), "")
    first, second = (_without_side(body) for body in bodies)
    entry = JOINTS.get((first, second)) or JOINTS.get((second, first))
    if entry is None:
        return None
    joint, exercise = entry
    return f"{side.lower()} {joint}".strip(), exercise


def _without_side(name: str) -> str:
    """Return the name without its side; the upper chest is the chest here."""
    part = vrm.without_side(name)
    return vrm.CHEST if part == vrm.UPPER_CHEST else part
