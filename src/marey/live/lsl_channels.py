"""Channels of Lab Streaming Layer: meta-data of motion capture, as XDF has it.

Positions are `PositionX`, `Y` and `Z`, orientations quaternions `OrientationA` to `D`
with A the real part; `marker` names what they belong to.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from marey.errors import MissingExtraError, StreamError
from marey.io.units_axes import METRES_PER_UNIT, parse_unit
from marey.live.codecs.poses import make_poses
from marey.live.frame import Frame
from marey.numerics import Array, Float, Int, geometry

CONTENT = "MoCap"
"""Type of streams of motion capture."""

POSITION = ("PositionX", "PositionY", "PositionZ")
ORIENTATION = ("OrientationA", "OrientationB", "OrientationC", "OrientationD")
LOG_WARNINGS = "[log]\nlevel = -1\n"
"""Settings of liblsl that keep its messages of start and end from the terminal."""

ON_THIS_MACHINE = "[lab]\nKnownPeers = {}\n[multicast]\nResolveScope = machine\n"
"""Settings of liblsl that find streams of this machine only."""

MAX_CHANNELS = 30_000
"""Channels of a stream; others are refused. Higher takes more memory when somebody
offers a stream of many channels."""


class Channel(NamedTuple):
    """One channel of a sample."""

    name: str
    """The marker or sensor."""

    kind: str
    """One of `POSITION` and `ORIENTATION`."""

    unit: str = "meters"


class SampleLayout:
    """Where the markers and sensors of a sample are.

    Args:
        channels: Names and kinds of all channels, in their order.

    Raises:
        StreamError: If no channel is a position.
    """

    def __init__(self, channels: Sequence[Channel]) -> None:
        columns: dict[str, dict[str, int]] = {}
        for i, channel in enumerate(channels):
            columns.setdefault(channel.name, {})[channel.kind] = i
        placed = {n: own for n, own in columns.items() if own.keys() >= {*POSITION}}
        sensors = {n: own for n, own in placed.items() if own.keys() >= {*ORIENTATION}}
        if not placed:
            found = f"{len(channels)} channels without"
            raise StreamError("lsl", expected="channels PositionX, Y, Z", found=found)
        self.labels = tuple(n for n in placed if n not in sensors)
        self.sensor_names = tuple(sensors)
        self._points = _columns([placed[n] for n in self.labels], POSITION)
        self._positions = _columns([*sensors.values()], POSITION)
        self._rotations = _columns([*sensors.values()], ORIENTATION)
        units = [parse_unit(channel.unit) or "m" for channel in channels]
        self._metres = np.array([METRES_PER_UNIT[unit] for unit in units])

    def frame(
        self,
        sample: Sequence[float] | Array,
        number: int,
        time: float,
        arrival: float,
    ) -> Frame:
        """Return the frame of a sample, of the times of sender and arrival.

        Raises:
            StreamError: If the sample has texts, or another number of channels.
        """
        try:
            values = np.array(sample, dtype=float).reshape(self._metres.shape)
        except (TypeError, ValueError) as error:
            expected = f"{len(self._metres)} numbers"
            raise StreamError("lsl", expected=expected, found=repr(sample)) from error
        with np.errstate(over="ignore"):
            metres = values * self._metres
        return Frame(
            number=number,
            time=time,
            arrival=arrival,
            points=metres[self._points],
            labels=self.labels,
            T_world_sensor=make_poses(metres[self._positions], values[self._rotations]),
            sensor_names=self.sensor_names,
        )


def _columns(
    items: Sequence[dict[str, int]], kinds: Sequence[str]
) -> Int[Array, "item kind"]:
    rows = [[item[kind] for kind in kinds] for item in items]
    return np.array(rows, dtype=np.int64).reshape(-1, len(kinds))


def channels_of(frame: Frame) -> list[Channel]:
    """Return the channels of the frames of a layout: markers, then sensors."""
    channels = [Channel(name, kind) for name in frame.labels for kind in POSITION]
    for name in frame.sensor_names:
        channels += [Channel(name, kind) for kind in POSITION]
        channels += [Channel(name, kind, "quaternion") for kind in ORIENTATION]
    return channels


def sample_of(frame: Frame) -> Float[Array, " channel"]:
    """Return the sample of a frame, in metres; NaN where something was not seen."""
    T = frame.T_world_sensor
    wxyz = geometry.quat_from_matrix(T[:, :3, :3])
    poses = np.concatenate([T[:, :3, 3], wxyz], axis=1)
    return np.concatenate([frame.points.ravel(), poses.ravel()])


def load_pylsl(*, whole_network: bool) -> Any:
    """Return the module pylsl, set to look for streams on this machine only.

    Settings hold from the first call on, for the whole process.

    Raises:
        MissingExtraError: If it is not installed.
    """
    try:
        import pylsl
    except (ImportError, RuntimeError) as error:  # without its library
        raise MissingExtraError("pylsl", "live") from error
    if hasattr(pylsl, "set_config_content"):
        scope = "" if whole_network else ON_THIS_MACHINE
        pylsl.set_config_content(LOG_WARNINGS + scope)
    return pylsl
