"""Options of the corruption of a recording, with their ranges and units."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from marey.errors import OptionError

_OPTION_RANGES: dict[str, tuple[float, float, str]] = {
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
    """The errors of a recording and their sizes. By default there are none.

    Each kind of error draws from its own random stream, so one kind can be switched on
    or off without a change of the others. `Truth.log` lists everything that was done.
    """

    noise: float = 0.0
    """White noise, standard deviation per axis of markers and sensors, 0 to 1 m."""

    coloured: float = 0.0
    """Coloured noise (first-order autoregression), deviation per axis, 0 to 1 m."""

    coloured_time: float = 0.5
    """Time constant of the coloured noise, above 0 s."""

    turn_noise: float = 0.0
    """White orientation noise of sensors, standard deviation per axis, 0 to 1 rad."""

    field: float = 0.0
    """Distortion of the magnetic field: a smooth displacement of each sensor that
    depends on its position, standard deviation per axis, 0 to 1 m. The sensor also
    rotates by half the curl of the displacement."""

    field_scale: float = 0.6
    """Correlation length of the distortion, 0.01 to 100 m."""

    soft_tissue: float = 0.0
    """Soft tissue artefact: skin moves over bone in proportion to the angles of the
    neighbouring joints. Rms distance on a thigh, 0 to 0.2 m; other bodies have less.
    Half of the variance is common to all markers of a body. Sensors move too."""

    soft_tissue_turn: float = 0.0
    """Soft tissue artefact of sensor orientations, rms on a thigh, 0 to 1 rad."""

    soft_tissue_on: tuple[str, ...] = ()
    """Joint names of the bodies with a soft tissue artefact, each as large as that of a
    thigh. If empty, all bodies have one, scaled by `SOFT_TISSUE_SCALE`."""

    knee_shift: float = 0.0
    """Travel of the knee centre while the knee bends, 0 to 5. A value of 1 is that of
    real knees: 7, 14.3 and 5.6 mm over two radians (OBrien2000, Sec. 4)."""

    slips: int = 0
    """Number of sensors (without sensors: markers) that slip on their body, once."""

    slip_size: float = 0.02
    """Distance of each slip, 0 to 1 m."""

    slip_turn: float = 0.0
    """Angle by which a slipping sensor rotates, 0 to 3 rad."""

    slip_frame: int = -1
    """Frame of all slips; -1 = drawn from the middle half of the take."""

    gross: float = 0.0
    """Share of the frames in which each marker and sensor has a gross error, 0 to
    0.5. Bodenheimer1997 has 6 / 508 in an example."""

    gross_size: float = 0.677
    """Mean of the exponentially distributed gross errors, 0 to 10 m."""

    swaps: int = 0
    """Number of label swaps between two neighbouring markers."""

    swap_seconds: float = 0.5
    """Mean length of a swap, in seconds."""

    phantoms: int = 0
    """Number of phantom markers: they belong to no body and are visible for a while."""

    gaps: float = 0.0
    """Share of the frames in which each marker is missing, 0 to 0.95."""

    gap_seconds: float = 0.25
    """Mean length of a gap, in seconds."""

    gap_of: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Share of missing frames of single markers, by true label; others have `gaps`."""

    sensor_gaps: float = 0.0
    """Share of the frames in which each sensor is missing, 0 to 0.95."""

    scale: float = 1.0
    """Scale factor on all positions, 0.01 to 100. OBrien2000 measured 0.94."""

    dropped: float = 0.0
    """Share of dropped frames, 0 to 0.95. The other frames keep their times."""

    drop_style: Literal["missing", "repeat"] = "missing"
    """Content of a dropped frame: missing values or a copy of the frame before."""

    def __post_init__(self) -> None:
        for name, (low, high, unit) in _OPTION_RANGES.items():
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


def merge_options(
    corruption: Corruption | None, options: Mapping[str, Any]
) -> Corruption:
    """Return a corruption with some of its options replaced.

    Raises:
        OptionError: If an option does not exist.
    """
    names = [f.name for f in fields(Corruption)]
    for name in options:
        if name not in names:
            raise OptionError(name, found="an unknown option", needed=", ".join(names))
    return dataclasses.replace(corruption or Corruption(), **options)
