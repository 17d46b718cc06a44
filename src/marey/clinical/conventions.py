"""Sequences, signs and names of joint angles, by convention.

All rows are of the right side in anatomical axes: x forward, y to the left, z up. A
left joint is mirrored first, so that both sides have the same signs. A rotation is
taken apart in moving axes: "YXZ" is flexion about the axis across the proximal segment,
then adduction about the floating axis, then rotation about the long axis of the distal
segment, which is the joint coordinate system of Grood and Suntay (1983).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from marey.anatomy import names as vrm

Convention = Literal["isb", "plug-in-gait"]

WORLD = ""
"""Stands for the laboratory, turned to the direction of walking."""


@dataclass(frozen=True, slots=True)
class AngleRow:
    """The three angles between two segments."""

    joint: str
    """Name of the joint in the names of its angles."""

    proximal: str
    """The inner segment without its side; "" for the laboratory."""

    distal: str
    """The outer segment without its side."""

    order: str
    """Axes of the three rotations."""

    angles: tuple[str, str, str]
    """What a positive angle of each rotation is."""

    signs: tuple[int, int, int]
    """Sign of each rotation in that direction, on the right side."""


LEG_ANGLES = ("flexion", "adduction", "internal_rotation")

ISB = (
    AngleRow(
        "pelvis",
        WORLD,
        vrm.HIPS,
        "ZXY",
        ("left_rotation", "right_up", "anterior_tilt"),
        (1, -1, 1),
    ),
    AngleRow(
        "trunk",
        vrm.HIPS,
        vrm.CHEST,
        "YXZ",
        ("flexion", "right_bending", "left_rotation"),
        (1, 1, 1),
    ),
    AngleRow(
        "neck",
        vrm.CHEST,
        vrm.HEAD,
        "YXZ",
        ("flexion", "right_bending", "left_rotation"),
        (1, 1, 1),
    ),
    AngleRow("hip", vrm.HIPS, vrm.UPPER_LEG, "YXZ", LEG_ANGLES, (-1, 1, 1)),
    AngleRow("knee", vrm.UPPER_LEG, vrm.LOWER_LEG, "YXZ", LEG_ANGLES, (1, 1, 1)),
    AngleRow(
        "ankle",
        vrm.LOWER_LEG,
        vrm.FOOT,
        "YXZ",
        ("dorsiflexion", "inversion", "internal_rotation"),
        (-1, 1, 1),
    ),
    AngleRow(
        "shoulder",
        vrm.CHEST,
        vrm.UPPER_ARM,
        "ZXZ",
        ("plane_of_elevation", "elevation", "internal_rotation"),
        (1, -1, 1),
    ),
    AngleRow(
        "elbow",
        vrm.UPPER_ARM,
        vrm.LOWER_ARM,
        "YXZ",
        ("flexion", "carrying_angle", "pronation"),
        (-1, -1, 1),
    ),
    AngleRow(
        "wrist",
        vrm.LOWER_ARM,
        vrm.HAND,
        "XYZ",
        ("flexion", "ulnar_deviation", "pronation"),
        (1, 1, 1),
    ),
)
"""Wu and others, J. Biomech. 35 (2002) 543 and 38 (2005) 981; the pelvis in the order
of Baker, Hum. Mov. Sci. 20 (2001) 787. Arms hang with the palms to the body at zero."""

PLUG_IN_GAIT: Mapping[str, AngleRow] = {
    "pelvis": AngleRow(
        "pelvis",
        WORLD,
        vrm.HIPS,
        "YXZ",
        ("anterior_tilt", "right_up", "left_rotation"),
        (1, -1, 1),
    ),
    "ankle": AngleRow(
        "ankle",
        vrm.LOWER_LEG,
        vrm.FOOT,
        "YZX",
        ("dorsiflexion", "internal_rotation", "inversion"),
        (-1, 1, 1),
    ),
    "shoulder": AngleRow(
        "shoulder",
        vrm.CHEST,
        vrm.UPPER_ARM,
        "YXZ",
        ("flexion", "adduction", "internal_rotation"),
        (-1, 1, 1),
    ),
}
"""The joints whose sequence differs: Plug-in Gait has Y X Z, for the ankle Y Z X."""

CONVENTIONS: Mapping[Convention, tuple[AngleRow, ...]] = {
    "isb": ISB,
    "plug-in-gait": tuple(PLUG_IN_GAIT.get(row.joint, row) for row in ISB),
}


def rows_of_sides(convention: Convention) -> tuple[tuple[str, AngleRow], ...]:
    """Return every row of a convention with its side: "", "Left" or "Right"."""
    rows = CONVENTIONS[convention]
    sided = {*vrm.ARM, *vrm.LEG}
    return tuple(
        (side, _on_side(row, side))
        for row in rows
        for side in (vrm.SIDES if row.distal in sided else ("",))
    )


def _on_side(row: AngleRow, side: str) -> AngleRow:
    """Return a row with the names of segments and joint of one side."""
    sided = {*vrm.ARM, *vrm.LEG}
    proximal = side + row.proximal if row.proximal in sided else row.proximal
    joint = f"{side.lower()}_{row.joint}".lstrip("_")
    return replace(row, joint=joint, proximal=proximal, distal=side + row.distal)
