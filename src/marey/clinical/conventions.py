"""Sequences, signs and names of joint angles, by convention.

All rows are of the right side in anatomical axes: x forward, y to the left, z up. A
left joint is mirrored first, so that both sides have the same signs. A rotation is
taken apart in moving axes: "YXZ" is flexion about the axis across the proximal segment,
then adduction about the floating axis, then rotation about the long axis of the distal
segment, which is the joint coordinate system of Grood and Suntay (1983).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from marey.anatomy import names as vrm
from marey.options import read_package_table

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


def _rows(convention: Convention) -> Iterator[AngleRow]:
    """Yield the rows of a convention, which are the ISB's where it has none."""
    tables = read_package_table("marey.clinical", "conventions.toml")
    for joint, row in {**tables["isb"], **tables[convention]}.items():
        angles, signs = tuple(row["angles"]), tuple(row["signs"])
        yield AngleRow(
            joint, row["proximal"], row["distal"], row["order"], angles, signs
        )


def rows_of_sides(convention: Convention) -> tuple[tuple[str, AngleRow], ...]:
    """Return every row of a convention with its side: "", "Left" or "Right"."""
    sided = {*vrm.ARM, *vrm.LEG}
    return tuple(
        (side, _on_side(row, side))
        for row in _rows(convention)
        for side in (vrm.SIDES if row.distal in sided else ("",))
    )


def _on_side(row: AngleRow, side: str) -> AngleRow:
    """Return a row with the names of segments and joint of one side."""
    sided = {*vrm.ARM, *vrm.LEG}
    proximal = side + row.proximal if row.proximal in sided else row.proximal
    joint = f"{side.lower()}_{row.joint}".lstrip("_")
    return replace(row, joint=joint, proximal=proximal, distal=side + row.distal)
