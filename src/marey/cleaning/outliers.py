"""Sensors that were elsewhere for a moment: jumps, flips and frozen values.

Bodenheimer1997 (Sec. 2) meets jumps of up to three metres in the poses of magnetic
sensors. They are found from a sensor's own motion, and the smaller ones from its
joints; they are blanked, as are spikes of markers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Float

from marey.cleaning.runs import (
    FEWEST,
    allowed_of,
    excursions,
    suddenness,
    usual,
)
from marey.errors import OptionError
from marey.numerics import geometry
from marey.report import Finding
from marey.take import Take

Array = np.ndarray
Kind = Literal["jump", "flip", "frozen", "gap", "spike"]

# Steps this many times as sudden as is usual at the moment are jumps.
TIMES = 8.0
# Fewest frames in a row with the very same pose that are a frozen sensor, and how many
# times the usual step of the moment the pose then jumps to catch up.
REPEATS, CATCHES_UP = 3, 3.0

# Share of a sensor's frames that may be odd; where more are, that is how it moves.
MOST = 0.2

_RANGES: dict[str, tuple[float, float, str]] = {
    "jump": (0.0, 100.0, "m"),
    "flip": (0.0, 3.2, "rad"),
    "spike": (0.0, 100.0, "m"),
    "longest": (0.0, 1e4, "s"),
    "max_gap": (0.0, 1e4, "s"),
}

_WORDS: dict[Kind, str] = {
    "jump": "jumps away and back",
    "flip": "turns over and back",
    "frozen": "repeats its last value while it moves on",
    "gap": "leaves its joints and comes back",
    "spike": "jumps away and back",
}
_SIZE: dict[Kind, str] = {
    "jump": ", by up to {0:.0f} mm",
    "flip": ", by up to {1:.0f} deg",
    "gap": ", by up to {0:.0f} mm",
    "spike": ", by up to {0:.0f} mm",
}

# Runs of frames that a finding spells out.
SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanOptions:
    """What counts as an error of the instrument, and what is done about it."""

    jump: float = 0.05
    """Smallest jump of a sensor that is looked at, 0 to 100 m."""

    flip: float = 0.5
    """Smallest sudden turn of a sensor that is looked at, 0 to 3.2 rad."""

    spike: float = 0.02
    """Smallest jump of a marker that is looked at, 0 to 100 m."""

    longest: float = 0.5
    """Longest time after which a sensor or marker is back from a jump, 0 to 1e4 s. One
    that stays away longer has really moved, or slipped."""

    frozen: bool = True
    """Whether to blank values that a sensor repeats while it must have moved."""

    swaps: bool = True
    """Whether labels that traded their markers are traded back."""

    max_gap: float = 0.0
    """Longest gap of a marker that is filled from the markers around it, 0 to 1e4 s;
    0 = none."""

    def __post_init__(self) -> None:
        for name, (low, high, unit) in _RANGES.items():
            value = getattr(self, name)
            if not low <= value <= high:
                needed = f"{low:g} to {high:g} {unit}"
                raise OptionError(name, found=value, needed=needed)


@dataclass(frozen=True, slots=True)
class Outlier:
    """Some frames in which one sensor or marker was not where it says."""

    name: str
    """The sensor, or the marker with its subject."""

    kind: Kind
    first: int
    last: int
    """First and last frame, inclusive."""

    size: float
    """How far off, in metres; radians for a flip, NaN for a frozen sensor."""


def find_outliers(
    take: Take, options: CleanOptions | None = None
) -> tuple[Outlier, ...]:
    """Return the frames in which sensors jump, flip or freeze, by their own motion.

    A jump is a step far from the steps next to it, against what is usual at that
    moment: a fast motion has large steps, but not a single one. A sensor that does not
    come back with a second jump, within `CleanOptions.longest`, has moved in earnest.

    Args:
        take: The recording.
        options: What counts as an error.
    """
    chosen = options or CleanOptions()
    found: list[Outlier] = []
    for index, name in enumerate(take.sensor_names):
        path = _Path(take.T_world_sensor[:, index], take.rate, chosen)
        runs = path.runs()
        lost = sum(last - first + 1 for _, first, last, _ in runs)
        if lost <= MOST * len(path.frames):
            found += [Outlier(name, kind, a, b, size) for kind, a, b, size in runs]
    return tuple(found)


Run = tuple[Kind, int, int, float]


class _Path:
    """The way of one sensor over the frames that show something new of it."""

    def __init__(
        self, T: Float[Array, "frame 4 4"], rate: float, options: CleanOptions
    ) -> None:
        self.options, self.rate = options, rate
        seen = np.flatnonzero(np.isfinite(T).all(axis=(1, 2)))
        new = np.ones(len(seen), dtype=bool)
        new[1:] = (np.diff(T[seen], axis=0) != 0.0).any(axis=(1, 2))
        # Frames that say something new, and for each the last that repeats it.
        self.frames, self.ends = seen[new], seen[np.roll(new, -1)]
        self.repeats = np.diff(np.flatnonzero(new), append=len(seen)) - 1
        self.T = T[self.frames]

    def apart(self, some: slice, others: slice) -> Float[Array, "2 pair"]:
        """Return distances and angles between poses."""
        A, B = self.T[some], self.T[others]
        away = np.linalg.norm(B[:, :3, 3] - A[:, :3, 3], axis=1)
        trace = np.sum(A[:, :3, :3] * B[:, :3, :3], axis=(1, 2))
        return np.stack([away, np.arccos(np.clip(0.5 * (trace - 1.0), -1.0, 1.0))])

    def runs(self) -> list[Run]:
        """Return all runs of frames in error."""
        if len(self.T) < FEWEST:
            return []
        frozen = list(self._frozen()) if self.options.frozen else []
        return [*self._jumps(), *frozen]

    def _jumps(self) -> Iterator[Run]:
        """Return the runs that begin and end with a jump."""
        R, gone = self.T[:, :3, :3], np.diff(self.frames)[:, None]
        turn = geometry.rotation_log(R[:-1].swapaxes(1, 2) @ R[1:]) / gone
        step = np.diff(self.T[:, :3, 3], axis=0) / gone
        sudden = np.stack([suddenness(step), suddenness(turn)])
        least = np.array([[self.options.jump], [self.options.flip]])
        allowed = allowed_of(sudden, TIMES, least, self.rate)
        longest = int(self.options.longest * self.rate)
        for first, last in excursions(
            self.apart, self.frames, sudden, allowed, longest
        ):
            before = first - 1 if first else last + 1
            away = self.apart(slice(before, before + 1), slice(first, last + 1))
            far = away.max(axis=1)
            more = far / least[:, 0].clip(1e-9)
            kind: Kind = "jump" if more[0] > more[1] else "flip"
            frames = int(self.frames[first]), int(self.ends[last])
            yield kind, *frames, float(far[0] if kind == "jump" else far[1])

    def _frozen(self) -> Iterator[Run]:
        """Return runs of one and the same pose after which the sensor catches up."""
        if self.repeats.max() + 1 < REPEATS:
            return
        step = self.apart(slice(0, -1), slice(1, None))
        catches_up = (step > CATCHES_UP * usual(step, self.rate)).any(axis=0)
        for place in np.flatnonzero(catches_up).tolist():
            if self.repeats[place] + 1 >= REPEATS:
                first, last = int(self.frames[place]) + 1, int(self.ends[place])
                yield "frozen", first, last, float("nan")


def blanked(take: Take, outliers: Sequence[Outlier]) -> Take:
    """Return the take without the values of these frames, and with word of them.

    What is blanked is NaN, as anything that was not seen. Every sensor and marker gets
    one finding for each kind of error, and the take one line of history.

    Args:
        take: The recording.
        outliers: From `find_outliers`, `find_gaping` or `find_spikes`.
    """
    if not outliers:
        return take
    T, points = take.T_world_sensor.copy(), take.points.copy()
    groups: dict[tuple[str, Kind], list[Outlier]] = {}
    for outlier in outliers:
        some = slice(outlier.first, outlier.last + 1)
        if outlier.kind == "spike":
            points[some, take.full_labels.index(outlier.name)] = np.nan
        else:
            T[some, take.sensor_names.index(outlier.name)] = np.nan
        groups.setdefault((outlier.name, outlier.kind), []).append(outlier)
    found = tuple(_finding(group) for group in groups.values())
    clean = replace(
        take,
        T_world_sensor=T,
        points=points,
        filled=take.filled & np.isfinite(points).all(axis=-1),
        source=replace(take.source, findings=(*take.source.findings, *found)),
    )
    return replace(clean, history=(*take.history, *_notes(take, clean)))


def _notes(take: Take, clean: Take) -> Iterator[str]:
    """Return how much of a take was blanked, in words."""
    poses = int((take.sensor_seen & ~clean.sensor_seen).sum())
    if poses:
        yield f"blanked {poses} poses of sensors in error"
    places = int((take.seen & ~clean.seen).sum())
    if places:
        yield f"blanked {places} positions of markers in error"


def _finding(group: list[Outlier]) -> Finding:
    """Return one word for all errors of one kind and sensor."""
    worst = max(group, key=lambda o: np.nan_to_num(o.size))
    spans = [f"{o.first}-{o.last}" if o.last > o.first else f"{o.first}" for o in group]
    shown = ", ".join(spans[:SHOWN]) + (", ..." if len(spans) > SHOWN else "")
    count = sum(o.last - o.first + 1 for o in group)
    size = _SIZE.get(worst.kind, "").format(1e3 * worst.size, np.degrees(worst.size))
    return Finding(
        "marker-spike" if worst.kind == "spike" else f"sensor-{worst.kind}",
        "clean",
        "warning",
        f"{_WORDS[worst.kind]}{size}: {count} frames blanked ({shown})",
        worst.name,
        (group[0].first, group[-1].last),
        worst.size,
    )
