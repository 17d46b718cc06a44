"""Anatomical names expected of the bodies of real people, and scores of names."""

import numpy as np
from real import optical

from marey.anatomy.names import without_subject
from marey.rig import has_default_name

SIDES = {"L": "Left", "R": "Right"}
PARTS = {
    "UpperArm": ("uarm{s}", "humerus_{l}", "{S}Arm"),
    "LowerArm": ("farm{s}", "ulna_{l}", "{S}ForeArm"),
    "Hand": ("hand{s}", "hand_{l}", "{S}Hand"),
    "UpperLeg": ("thigh{s}", "femur_{l}", "{S}UpLeg"),
    "LowerLeg": ("shank{s}", "tibia_{l}", "{S}Leg"),
    "Foot": ("foot{s}", "talus_{l}", "{S}Foot"),
    "Toes": ("toe{s}", "{S}ToeBase", "{S}Toe"),
    "Shoulder": ("clav{s}", "{S}Shoulder"),
}
NAMES = {
    "head": {"Head"},
    "Head": {"Head"},
    "pelvis": {"Hips"},
    "Hips": {"Hips"},
    **{body: {"Chest", "Spine"} for body in ("torso", "Spine", "Spine1", "Spine2")},
    **{
        known.format(s=s, l=s.lower(), S=side): {side + part}
        for s, side in SIDES.items()
        for part, spellings in PARTS.items()
        for known in spellings
    },
}
"""Names that are right for each true body."""

PEOPLE = [
    name
    for name in optical.SETS
    if not name.startswith(("pendulum", "racing", "scapula", "glove"))
]


def count_names(known, names, marker_body, match):
    """Number of bodies with the right name, with a wrong one, and with none.

    Args:
        known: The recording with its true bodies.
        names: The name given to each body.
        marker_body: The body of each marker.
        match: The true body of each body.
    """
    count = {"right": 0, "wrong": 0, "none": 0}
    for body, name in enumerate(names):
        own = without_subject(name)
        inside = [known.allowed[m] for m in np.flatnonzero(marker_body == body)]
        right = own in _right_names(known, inside, match.get(body, ""))
        kind = "right" if right else "wrong"
        count["none" if has_default_name(own) else kind] += 1
    return count


def _right_names(known, inside, body):
    """Names that are right for a body with these markers.

    Those of the true body that it matches, and of bodies whose markers it mostly holds;
    for a piece that matches none, those of all bodies that it may be a piece of.
    """
    right = set(NAMES.get(body.rpartition(".")[2], ()))
    for true in {true for bodies in inside for true in bodies}:
        here = sum(true in bodies for bodies in inside)
        most = 2 * here > sum(bodies[0] == true for bodies in known.allowed)
        if most or not body:
            right |= NAMES.get(true.rpartition(".")[2], set())
    return right


def total(rows):
    """The sums of a table of counts."""
    return {
        key: sum(row[key] for row in rows.values())
        for key in ("right", "wrong", "none")
    }
