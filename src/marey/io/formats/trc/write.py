"""Writing TRC: five header lines, then a line of tab-separated numbers per frame."""

from collections.abc import Iterator, Sequence

import numpy as np

from marey.io.contract import Output, WriteOptions
from marey.io.text.names import printable_name
from marey.io.text.numbers import decimals_for, round_values
from marey.io.units_axes import parse_unit, points_to_file
from marey.take import Take

FIELDS = (
    "DataRate",
    "CameraRate",
    "NumFrames",
    "NumMarkers",
    "Units",
    "OrigDataRate",
    "OrigDataStartFrame",
    "OrigNumFrames",
)
PRECISION_M = 1e-8
"""Metres to which a coordinate is written."""

TIME_DECIMALS = 9


def write_take(take: Take, options: WriteOptions) -> Output:
    """Return the TRC of a take: mm and Y up, or what the TRC it came from had.

    Sensors become markers at their origins. Coordinates are rounded to 1e-8 m.
    """
    from_trc = take.source.format == "trc"
    unit = (
        parse_unit(options.unit or (from_trc and take.source.unit.value) or "mm")
        or "mm"
    )
    up = options.up or (from_trc and take.source.up.value) or "y"
    positions = np.concatenate([take.points, take.T_world_sensor[..., :3, 3]], axis=1)
    labels = [printable_name(n) for n in (*take.full_labels, *take.sensor_names)]
    points = points_to_file(positions, unit, up)
    points[~np.isfinite(points).all(axis=-1)] = np.nan
    decimals = decimals_for(unit, PRECISION_M)
    values = round_values(points.reshape(take.n_frames, -1), decimals)
    return {"": _lines(_header(take, unit, labels), take.times, values, decimals)}


def _header(take: Take, unit: str, labels: Sequence[str]) -> str:
    rate, frames = repr(float(take.rate)), str(take.n_frames)
    values = (rate, rate, frames, str(len(labels)), unit, rate, "1", frames)
    axes = [f"{axis}{i + 1}" for i in range(len(labels)) for axis in "XYZ"]
    lines = [
        ["PathFileType", "4", "(X/Y/Z)", "marey.trc"],
        FIELDS,
        values,
        ["Frame#", "Time", *(cell for label in labels for cell in (label, "", ""))],
        ["", "", *axes],
        [],
    ]
    return "".join("\t".join(line) + "\n" for line in lines)


def _lines(
    header: str, times: np.ndarray, values: np.ndarray, decimals: int
) -> Iterator[bytes]:
    yield header.encode()
    row = "\t".join(
        ["%d", f"%.{TIME_DECIMALS}f", *[f"%.{decimals}f"] * values.shape[1]]
    )
    for frame, cells in enumerate(values):
        line = row % (frame + 1, times[frame], *cells.tolist())
        yield line.replace("nan", "").encode() + b"\n"
