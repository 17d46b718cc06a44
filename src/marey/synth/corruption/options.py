"""What goes wrong in a capture studio, each kind switchable, all of it logged."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from marey.errors import OptionError

_RANGES: dict[str, tuple[float, float, str]] = {
    "noise": (0.0, 1.0, "m"),
    "coloured": (0.0, 1.0, "m"),
    "coloured_time": (1e-4, 1e4, "s"),
    "turn_noise": (0.0, 1.0, "rad"),
    "field": (0.0, 1.0, "m"),
    "field_scale": (0.01, 100.0, "m"),
    "soft_tissue": (0.0, 0.2, "m"),
    "soft_tissue_turn": (0.0, 1.0, "rad"),
    "knee_shift": (0.0, 5.0, ""),
    "slips": (0, 1000, ""),
    "slip_size": (0.0, 1.0, "m"),
    "slip_turn": (0.0, 3.0, "rad"),
    "slip_frame": (-1, 10**9, ""),
    "gross": (0.0, 0.5, ""),
    "gross_size": (0.0, 10.0, "m"),
    "swaps": (0, 10**6, ""),
    "swap_seconds": (0.0, 1e4, "s"),
    "phantoms": (0, 10**4, ""),
    "gaps": (0.0, 0.95, ""),
    "gap_seconds": (0.0, 1e4, "s"),
    "sensor_gaps": (0.0, 0.95, ""),
    "scale": (0.01, 100.0, ""),
    "dropped": (0.0, 0.95, ""),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Corruption:
    """Everything that may go wrong, and how much of it; nothing by default.

    Each kind draws from its own random stream, so switching one on or off leaves the
    others as they are.
    """

    noise: float = 0.0
    """White noise, standard deviation per axis of markers and sensors, 0 to 1 m."""

    coloured: float = 0.0
    """Slow noise (a first-order autoregression), sd per axis, 0 to 1 m."""

    coloured_time: float = 0.5
    """Time constant of the slow noise, above 0 s."""

    turn_noise: float = 0.0
    """White orientation noise of sensors, sd per axis, 0 to 1 rad."""

    field: float = 0.0
    """Distortion of the magnetic field: smooth displacement of the sensors by where
    they are, sd per axis, 0 to 1 m. They turn by half the curl of it."""

    field_scale: float = 0.6
    """Length over which the distortion changes, 0.01 to 100 m."""

    soft_tissue: float = 0.0
    """Skin sliding over bone in proportion to the angles of the neighbouring joints:
    rms distance on a thigh, 0 to 0.2 m; less where there is less flesh. Half of its
    variance is common to all markers of a body. Sensors slide too."""

    soft_tissue_turn: float = 0.0
    """The same for the orientation of sensors, rms angle on a thigh, 0 to 1 rad."""

    soft_tissue_on: tuple[str, ...] = ()
    """Bodies whose skin slides, by joint name, each as far as that of a thigh; empty =
    all bodies, each by its flesh."""

    knee_shift: float = 0.0
    """Knee centres that move as the knee bends, as real ones do: 1 = by 7, 14.3 and
    5.6 mm over two radians (OBrien2000, Sec. 4), 0 to 5. Feet move along."""

    slips: int = 0
    """Number of sensors (without sensors: markers) that slip on their body, once."""

    slip_size: float = 0.02
    """Distance of each slip, 0 to 1 m."""

    slip_turn: float = 0.0
    """Angle by which a slipping sensor turns, 0 to 3 rad."""

    slip_frame: int = -1
    """Frame of all slips; -1 = drawn from the middle half of the take."""

    gross: float = 0.0
    """Share of the frames in which each marker and sensor is wildly off, 0 to 0.5.
    6 / 508 is the example of Bodenheimer1997."""

    gross_size: float = 0.677
    """Mean of the exponentially distributed gross errors, 0 to 10 m."""

    swaps: int = 0
    """Number of times two near markers trade their labels for a while."""

    swap_seconds: float = 0.5
    """Mean time of a swap, in seconds."""

    phantoms: int = 0
    """Number of extra markers that belong to nothing, each seen for a while."""

    gaps: float = 0.0
    """Share of its frames in which each marker is not seen, 0 to 0.95."""

    gap_seconds: float = 0.25
    """Mean length of a gap, in seconds."""

    gap_of: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Shares that differ from `gaps`, by true label."""

    sensor_gaps: float = 0.0
    """Share of its frames in which each sensor is not seen, 0 to 0.95."""

    scale: float = 1.0
    """Factor on all positions, 0.01 to 100; the rig of OBrien2000 had 0.94."""

    dropped: float = 0.0
    """Share of frames that the system lost, 0 to 0.95. Frames keep their times."""

    drop_style: Literal["missing", "repeat"] = "missing"
    """What stands in a lost frame: nothing, or the frame before it again."""

    def __post_init__(self) -> None:
        for name, (low, high, unit) in _RANGES.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise OptionError(
                    name, found=value, needed=f"{low} to {high} {unit}".strip()
                )
        for label, share in self.gap_of.items():
            if not 0.0 <= share <= 0.95:
                raise OptionError(
                    f"gap_of[{label!r}]", found=share, needed="0.0 to 0.95"
                )
        if self.drop_style not in ("missing", "repeat"):
            raise OptionError(
                "drop_style", found=self.drop_style, needed='"missing" or "repeat"'
            )


def corruption_of(given: Corruption | None, options: Mapping[str, Any]) -> Corruption:
    """Return the corruption given, with single options replaced.

    Raises:
        OptionError: If an option does not exist.
    """
    names = [f.name for f in fields(Corruption)]
    for name in options:
        if name not in names:
            raise OptionError(name, found="an unknown option", needed=", ".join(names))
    base = Corruption() if given is None else given
    return Corruption(**{name: getattr(base, name) for name in names} | dict(options))
