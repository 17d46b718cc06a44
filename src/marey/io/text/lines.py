"""What the text formats share: unique names, names that fit, rounding, held poses."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from marey.errors import DataError
from marey.io.contract import File
from marey.io.units_axes import metres
from marey.motion import Motion
from marey.numerics import geometry

LARGEST = 1e12
"""Numbers beyond this are damage: no length, angle or time is as large."""

FASTEST = 1e6
"""Frames per second beyond which a rate is damage."""

ANGLE_DECIMALS = 6
"""Decimals of a written angle in degrees: 2e-8 m at the end of a limb of 2 m."""


def unique_names(file: File, names: Sequence[str], what: str) -> tuple[str, ...]:
    """Return names in which none stands twice; what was renamed is a finding.

    Args:
        file: Keeps the finding.
        names: As the file has them; the first of equals keeps its name.
        what: "marker" or "joint".
    """
    unique = distinct(names)
    changed = [b for a, b in zip(names, unique, strict=True) if a != b]
    if changed:
        file.note(
            "labels-repeated",
            f"{len(changed)} {what}s share a name with another: "
            f"renamed, such as {changed[0]!r}",
            value=float(len(changed)),
        )
    return unique


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Return names in which none stands twice: "A", "A" becomes "A", "A_2"."""
    taken = set(names)
    seen: set[str] = set()
    copies: dict[str, int] = {}
    out = []
    for name in names:
        choice = name
        while choice in seen or (choice != name and choice in taken):
            copies[name] = copies.get(name, 1) + 1
            choice = f"{name}_{copies[name]}"
        seen.add(choice)
        out.append(choice)
    return tuple(out)


def spelled(name: str, unfit: str = "") -> str:
    """Return a name that fits on a line: odd characters become "_".

    Args:
        name: Any text.
        unfit: Characters the format cannot hold, besides those that do not print.
    """
    text = "".join(c if c.isprintable() and c not in unfit else "_" for c in name)
    return text.strip() or "_"


def decimals_of(unit: str, precision: float) -> int:
    """Return the decimals that hold lengths to a precision given in metres."""
    return max(int(np.ceil(np.log10(metres(unit) / precision) - 1e-9)), 0)


def rounded(values: np.ndarray, decimals: int) -> np.ndarray:
    """Return values as they will stand in the file; a rounded -0 becomes 0."""
    return np.asarray(np.round(values, decimals) + 0.0)


def even_rate(motion: Motion) -> float:
    """Return the frame rate of a motion.

    Raises:
        DataError: If its frames are not evenly spaced.
    """
    if not np.isfinite(motion.rate):
        raise DataError(
            "motion.rate",
            found="frames that are not evenly spaced",
            needed="an even rate: motion.resample(rate)",
        )
    return float(motion.rate)


def held_poses(
    motion: Motion,
) -> tuple[Float[np.ndarray, "frame 3"], Float[np.ndarray, "frame joint 4"]]:
    """Return root places and rotations with every gap held at the last known pose.

    Before the first known pose that one stands; what is never known rests.
    """
    place = motion.T_world_root[:, :3, 3]
    rest = motion.skeleton.offset[0]
    return _held(place, rest), _held(motion.wxyz, np.array([1.0, 0.0, 0.0, 0.0]))


def _held(values: np.ndarray, rest: np.ndarray) -> np.ndarray:
    known = np.isfinite(values).all(axis=-1)
    if known.all():
        return values
    frame = np.arange(len(values)).reshape(-1, *[1] * (known.ndim - 1))
    last = np.maximum.accumulate(np.where(known, frame, -1), axis=0)
    last = np.where(last < 0, np.argmax(known, axis=0), last)
    held = np.take_along_axis(values, last[..., None], axis=0)
    return np.where(known.any(axis=0)[..., None], held, rest)


def turned(
    wxyz: Float[np.ndarray, "frame joint 4"], R: Float[np.ndarray, "3 3"]
) -> Float[np.ndarray, "frame joint 4"]:
    """Return the rotations R q R^T: the same turns seen from other axes."""
    return np.concatenate([wxyz[..., :1], wxyz[..., 1:] @ R.T], axis=-1)


def degrees_of(
    wxyz: Float[np.ndarray, "frame joint 4"], order: str
) -> Float[np.ndarray, "frame joint 3"]:
    """Return continuous Euler angles in degrees, rounded as they are written."""
    angles = geometry.euler_continuous(wxyz, order)
    return rounded(np.rad2deg(angles), ANGLE_DECIMALS)
