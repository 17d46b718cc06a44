"""Conversion between the unit and axes of a file and those of marey.

marey's world is metres, right-handed, +Z up.
"""

from typing import NamedTuple

import numpy as np

from marey.errors import OptionError, check_choice
from marey.numerics import Float
from marey.numerics.geometry import R_Z_UP

METRES_PER_UNIT = {"mm": 1e-3, "cm": 1e-2, "m": 1.0, "in": 0.0254, "ft": 0.3048}
"""Metres per length unit."""

SPELLINGS = {
    "mm": ("mm", "millimeter", "millimeters", "millimetre", "millimetres"),
    "cm": ("cm", "centimeter", "centimeters", "centimetre", "centimetres"),
    "m": ("m", "meter", "meters", "metre", "metres"),
    "in": ("in", "inch", "inches"),
    "ft": ("ft", "foot", "feet"),
}


def parse_unit(text: str) -> str | None:
    """Return the unit a file means by a word such as "Millimeters"; None if unknown."""
    word = text.strip().strip("()[]").lower()
    return next((unit for unit, names in SPELLINGS.items() if word in names), None)


def metres_per_unit(unit: str) -> float:
    """Return metres per unit.

    Raises:
        OptionError: If the unit is not known.
    """
    name = parse_unit(unit)
    if name is None:
        raise OptionError(
            "unit", found=unit, needed=f"one of {', '.join(METRES_PER_UNIT)}"
        )
    return METRES_PER_UNIT[name]


def rotation_to_z_up(up: str) -> Float[np.ndarray, "3 3"]:
    """Return R_marey_file for a file whose axis `up` points up.

    Raises:
        OptionError: If `up` is not an axis.
    """
    check_choice("up", up, R_Z_UP)
    return R_Z_UP[up].copy()


def points_from_file(
    points: Float[np.ndarray, "*batch 3"], unit: str, up: str
) -> Float[np.ndarray, "*batch 3"]:
    """Return points of a file in metres and +Z up; the given array may be reused."""
    if metres_per_unit(unit) != 1.0:
        points *= metres_per_unit(unit)
    if up != "z":
        points = points @ rotation_to_z_up(up).T
    return points


def points_to_file(
    points: Float[np.ndarray, "*batch 3"], unit: str, up: str
) -> Float[np.ndarray, "*batch 3"]:
    """Return points of marey's world in a file's units and axes."""
    rotated = points if up == "z" else points @ rotation_to_z_up(up)
    return rotated / metres_per_unit(unit)


def poses_from_file(
    T: Float[np.ndarray, "*batch 4 4"], unit: str, up: str
) -> Float[np.ndarray, "*batch 4 4"]:
    """Return poses T_world_sensor of a file in marey's world."""
    out = T.copy()
    out[..., :3, 3] *= metres_per_unit(unit)
    out[..., :3, :] = rotation_to_z_up(up) @ out[..., :3, :]
    return out


def poses_to_file(
    T: Float[np.ndarray, "*batch 4 4"], unit: str, up: str
) -> Float[np.ndarray, "*batch 4 4"]:
    """Return poses T_world_sensor of marey's world in a file's units and axes."""
    out = T.copy()
    out[..., :3, :] = rotation_to_z_up(up).T @ out[..., :3, :]
    out[..., :3, 3] /= metres_per_unit(unit)
    return out


class FileWorld(NamedTuple):
    """Unit and up axis of a file that is written."""

    unit: str
    up: str

    def points(
        self, points: Float[np.ndarray, "*batch 3"]
    ) -> Float[np.ndarray, "*batch 3"]:
        """Return points of marey's world as the file has them."""
        return points_to_file(points, self.unit, self.up)

    def poses(
        self, T: Float[np.ndarray, "*batch 4 4"]
    ) -> Float[np.ndarray, "*batch 4 4"]:
        """Return poses T_world_sensor of marey's world as the file has them."""
        return poses_to_file(T, self.unit, self.up)

    def rotations(
        self, wxyz: Float[np.ndarray, "*batch 4"]
    ) -> Float[np.ndarray, "*batch 4"]:
        """Return rotations of joints in the axes of the file."""
        turned = wxyz[..., 1:] @ rotation_to_z_up(self.up)
        return np.concatenate([wxyz[..., :1], turned], axis=-1)
