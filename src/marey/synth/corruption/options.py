"""Options of the corruption of a recording, with their ranges and units."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from marey.options import Options, choice, number, options_from


@dataclass(frozen=True, slots=True, kw_only=True)
class Corruption(Options):
    """The errors of a recording and their sizes. By default there are none.

    Each kind of error draws from its own random stream, so one kind can be switched on
    or off without a change of the others. `Truth.log` lists everything that was done.
    """

    noise: float = number(0.0, low=0.0, high=1.0)
    """White noise, standard deviation per axis of markers and sensors, 0 to 1 m."""

    coloured: float = number(0.0, low=0.0, high=1.0)
    """Coloured noise (first-order autoregression), deviation per axis, 0 to 1 m."""

    coloured_time: float = number(0.5, low=0.0001, high=1e4)
    """Time constant of the coloured noise, above 0 s."""

    turn_noise: float = number(0.0, low=0.0, high=1.0)
    """White orientation noise of sensors, standard deviation per axis, 0 to 1 rad."""

    field: float = number(0.0, low=0.0, high=1.0)
    """Distortion of the magnetic field: a smooth displacement of each sensor that
    depends on its position, standard deviation per axis, 0 to 1 m. The sensor also
    rotates by half the curl of the displacement."""

    field_scale: float = number(0.6, low=0.01, high=100.0)
    """Correlation length of the distortion, 0.01 to 100 m."""

    soft_tissue: float = number(0.0, low=0.0, high=0.2)
    """Soft tissue artefact: skin moves over bone in proportion to the angles of the
    neighbouring joints. Rms distance on a thigh, 0 to 0.2 m; other bodies have less.
    Half of the variance is common to all markers of a body. Sensors move too."""

    soft_tissue_turn: float = number(0.0, low=0.0, high=1.0)
    """Soft tissue artefact of sensor orientations, rms on a thigh, 0 to 1 rad."""

    soft_tissue_on: tuple[str, ...] = ()
    """Joint names of the bodies with a soft tissue artefact, each as large as that of a
    thigh. If empty, all bodies have one, scaled by `SOFT_TISSUE_SCALE`."""

    knee_shift: float = number(0.0, low=0.0, high=5.0)
    """Travel of the knee centre while the knee bends, 0 to 5. A value of 1 is that of
    real knees: 7, 14.3 and 5.6 mm over two radians (OBrien2000, Sec. 4)."""

    slips: int = number(0, low=0, high=1000)
    """Number of sensors (without sensors: markers) that slip on their body, once."""

    slip_size: float = number(0.02, low=0.0, high=1.0)
    """Distance of each slip, 0 to 1 m."""

    slip_turn: float = number(0.0, low=0.0, high=3.0)
    """Angle by which a slipping sensor rotates, 0 to 3 rad."""

    slip_frame: int = number(-1, low=-1, high=10**9)
    """Frame of all slips; -1 = drawn from the middle half of the take."""

    gross: float = number(0.0, low=0.0, high=0.5)
    """Share of the frames in which each marker and sensor has a gross error, 0 to
    0.5. Bodenheimer1997 has 6 / 508 in an example."""

    gross_size: float = number(0.677, low=0.0, high=10.0)
    """Mean of the exponentially distributed gross errors, 0 to 10 m."""

    swaps: int = number(0, low=0, high=10**6)
    """Number of label swaps between two neighbouring markers."""

    swap_seconds: float = number(0.5, low=0.0, high=1e4)
    """Mean length of a swap, in seconds."""

    phantoms: int = number(0, low=0, high=10**4)
    """Number of phantom markers: they belong to no body and are visible for a while."""

    gaps: float = number(0.0, low=0.0, high=0.95)
    """Share of the frames in which each marker is missing, 0 to 0.95."""

    gap_seconds: float = number(0.25, low=0.0, high=1e4)
    """Mean length of a gap, in seconds."""

    gap_of: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Share of missing frames of single markers, by true label; others have `gaps`."""

    sensor_gaps: float = number(0.0, low=0.0, high=0.95)
    """Share of the frames in which each sensor is missing, 0 to 0.95."""

    sensor_delay: float = number(0.0, low=-10.0, high=10.0)
    """Time by which sensors show a motion later than markers do, -10 to 10 s."""

    scale: float = number(1.0, low=0.01, high=100.0)
    """Scale factor on all positions, 0.01 to 100. OBrien2000 measured 0.94."""

    dropped: float = number(0.0, low=0.0, high=0.95)
    """Share of dropped frames, 0 to 0.95. The other frames keep their times."""

    drop_style: str = choice("missing", "repeat")
    """Content of a dropped frame: missing values or a copy of the frame before."""

    def __post_init__(self) -> None:
        Options.__post_init__(self)
        shares = self.gap_of.values()
        good = all(0.0 <= share <= 0.95 for share in shares)
        self.check("gap_of", "shares from 0 to 0.95", good=good)


def merge_options(
    corruption: Corruption | None, options: Mapping[str, Any]
) -> Corruption:
    """Return a corruption with some of its options replaced.

    Raises:
        OptionError: If an option does not exist.
    """
    base = corruption or Corruption()
    given = {one.name: getattr(base, one.name) for one in fields(base)}
    return options_from(Corruption, given | dict(options))
