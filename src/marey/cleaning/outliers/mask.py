"""Outliers of sensors and markers, and the take without them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from marey.cleaning.repairs import record_repair, repair_warning
from marey.numerics.thresholds import FEW
from marey.report import Finding, count_noun
from marey.take import Take

Kind = Literal["jump", "flip", "frozen", "joint", "spike", "zero"]

MAX_LISTED_SPANS = 5
"""Spans of frames that a finding lists. Chosen by hand."""

_CODES_AND_MESSAGES: dict[Kind, tuple[str, str]] = {
    "jump": ("sensor-jump", "jumps away and back by up to {mm:.0f} mm"),
    "flip": ("sensor-flip", "flips over and back by up to {deg:.0f} deg"),
    "frozen": ("sensor-frozen", "repeats its last value while it moves"),
    "joint": ("sensor-gap", "leaves its joints by up to {mm:.0f} mm and returns"),
    "spike": ("marker-spike", "jumps away and back by up to {mm:.0f} mm"),
    "zero": ("points-zero", "is exactly zero, at least {mm:.0f} mm from elsewhere"),
}


@dataclass(frozen=True, slots=True)
class Outlier:
    """Frames in which one sensor or marker is away from its true pose."""

    name: str
    """The sensor, or the marker with its subject."""

    kind: Kind
    """How it was found: "joint" by open joints of a sensor, "spike" and "zero" are of a
    marker, all others by the motion of a sensor itself."""

    first: int
    last: int
    """First and last frame, inclusive."""

    size: float
    """Largest deviation in metres; in radians for a flip; NaN for a frozen sensor."""

    @property
    def n_frames(self) -> int:
        """Number of frames."""
        return self.last - self.first + 1


def drop_frequent(
    outliers: Sequence[Outlier], n_frames: Mapping[str, int]
) -> tuple[Outlier, ...]:
    """Return the outliers of sensors and markers that have few of them.

    If many are found, they are the normal motion of a sensor or marker.

    Args:
        outliers: Of any sensors or markers.
        n_frames: How many frames each sensor or marker has.
    """
    lost: Counter[str] = Counter()
    for outlier in outliers:
        lost[outlier.name] += outlier.n_frames
    return tuple(
        outlier
        for outlier in outliers
        if lost[outlier.name] <= FEW * n_frames[outlier.name]
    )


def mask_outliers(take: Take, outliers: Sequence[Outlier]) -> Take:
    """Return the take with the values of outliers set to NaN.

    Each sensor and marker gets one finding per kind of outlier.

    Args:
        take: The recording.
        outliers: From `find_sensor_outliers`, `find_joint_outliers` or `find_spikes`.
    """
    if not outliers:
        return take
    T, points = take.T_world_sensor.copy(), take.points.copy()
    groups: dict[tuple[str, Kind], list[Outlier]] = {}
    for outlier in outliers:
        frames = slice(outlier.first, outlier.last + 1)
        if outlier.kind in ("spike", "zero"):
            points[frames, take.full_labels.index(outlier.name)] = np.nan
        else:
            T[frames, take.sensor_names.index(outlier.name)] = np.nan
        groups.setdefault((outlier.name, outlier.kind), []).append(outlier)
    is_finite = np.isfinite(points).all(axis=-1)
    masked = {
        "poses of sensors": take.sensor_seen & ~np.isfinite(T).all(axis=(-1, -2)),
        "positions of markers": take.seen & ~is_finite,
    }
    return record_repair(
        take,
        [_finding(group) for group in groups.values()],
        [f"masked {m.sum()} outlier {what}" for what, m in masked.items() if m.any()],
        T_world_sensor=T,
        points=points,
        filled=take.filled & is_finite,
    )


def _finding(group: list[Outlier]) -> Finding:
    """Return one finding for all outliers of one kind and sensor or marker."""
    worst = max(group, key=lambda o: np.nan_to_num(o.size))
    spans = [f"{o.first}-{o.last}" if o.last > o.first else f"{o.first}" for o in group]
    if len(spans) > MAX_LISTED_SPANS:
        spans[MAX_LISTED_SPANS:] = ["..."]
    count = sum(o.n_frames for o in group)
    mm, deg = 1e3 * worst.size, np.degrees(worst.size)
    code, message = _CODES_AND_MESSAGES[worst.kind]
    message = message.format(mm=mm, deg=deg)
    message += f"; {count_noun(count, 'frame')} masked: {', '.join(spans)}"
    frames = group[0].first, group[-1].last
    return repair_warning(code, message, worst.name, frames, worst.size)
