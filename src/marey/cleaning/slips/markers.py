"""Markers that slip on the skin during a recording, found and put back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np
from jaxtyping import Float, Int

from marey.bodies import Bodies
from marey.cleaning.neighbours import carried, company_of
from marey.cleaning.prediction_error import odd_steps, reach_of, steps_of
from marey.cleaning.slips.long_run_variance import long_run_variance
from marey.cleaning.slips.sensor_likelihood import ROUNDING
from marey.cleaning.slips.sensor_search import FEWEST, MARGIN, log_exceedance
from marey.cleaning.slips.sensors import LEVEL
from marey.errors import OptionError
from marey.numerics import geometry
from marey.numerics.procrustes import median_in_body
from marey.report import Finding, mark_name
from marey.take import Take

Array = np.ndarray

SMALLEST = 5e-3
"""Metres that a marker must shift for a slip: skin moves by less all the time."""

LARGEST = 0.1
"""Metres beyond which a marker has not slipped but is another one, or none."""

STAYS = 0.5
"""Share of a jump by which the lasting shift may differ from it."""

MOMENT = 0.05
"""Seconds before and after a jump whose places must be as far apart."""

LASTS = 1.0
"""Seconds for which a marker must be seen before and after a slip: skin that a limb
pulls along stays away for as long as the limb does."""

STANDS_OUT = 2.5
"""How many times larger than the usual distance of the marker from its place a shift
must be: skin that moves far comes to rest elsewhere too."""

# A step is looked at where the mates foretell it worse than so many times the usual.
TIMES = 2.5

# Frames from which the shape of a body is taken.
SAMPLE = 600

# Slips per body after which its markers are loose rather than slipped.
MOST_PER_BODY = 3


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MarkerSlip:
    """One marker that moved on its body, once, and stayed there."""

    label: str
    column: int
    """The marker by index."""

    body: str
    mates: Int[Array, " mate"]
    """The markers of the body that show it, by index."""

    places: Float[Array, "mate 3"]
    """Where these sit in the body, in metres."""

    frame: int
    """First frame of the new place."""

    shift: Float[Array, "3"]
    """The way that it moved, in the body's axes, in metres."""

    p_value: float
    """Probability of so much evidence without a slip, over all frames and markers."""

    @property
    def size(self) -> float:
        """Length of the way, in metres."""
        return float(np.linalg.norm(self.shift))

    def __str__(self) -> str:
        return f"slipped by {1e3 * self.size:.1f} mm at frame {self.frame}"

    @property
    def finding(self) -> Finding:
        """What to tell the user."""
        message = (
            f"{self} on {mark_name(self.body)} (p = {self.p_value:.0e}): the frames after "
            "are put back to its old place; fasten it better, or record again"
        )
        frames = (self.frame, self.frame)
        return Finding(
            "marker-slipped", "clean", "warning", message, self.label, frames, self.size
        )


def find_marker_slips(
    bodies: Bodies, *, level: float = LEVEL
) -> tuple[MarkerSlip, ...]:
    """Return the markers that slipped on their bodies, and when, in the order of time.

    A marker that slips jumps away from where the markers around carry it; and seen
    from the others of its body it stays where it jumped to, give or take its skin.
    The likelihood ratio of such a lasting shift is taken against noise with a memory,
    as skin has. The likeliest slip of a body is put back and the search goes on.

    Two other markers on the body show a shift in the plane of the three; what leads
    out of it is taken from the jump. A marker whose body has fewer than two others is
    not looked at, nor is a slip found that hides in the noise of one step.

    Args:
        bodies: Bodies made of markers.
        level: Probability of a false alarm that is accepted, above 0 and below 1.

    Raises:
        OptionError: If the level is out of range.
    """
    if not 0.0 < level < 1.0:
        raise OptionError("level", found=level, needed="above 0 and below 1")
    points = bodies.take.measured.points.copy()
    jumps = _jumps(points, bodies.take.rate)
    found: list[MarkerSlip] = []
    for body in np.flatnonzero(bodies.determined).tolist():
        own = np.flatnonzero(bodies.shared[:, body])
        left = {k: v for k, v in jumps.items() if bodies.marker_body[k] == body}
        for _ in range(MOST_PER_BODY if len(own) > 2 else 0):
            slip = _likeliest(bodies, points, body, left, level)
            if slip is None:
                break
            found.append(slip)
            points[:, slip.column] = _put_back(points, slip)
            del left[slip.column]
    return tuple(sorted(found, key=lambda slip: (slip.frame, slip.column)))


@dataclass(frozen=True, slots=True, eq=False)
class _Jumps:
    """Steps of one marker that no other foretold."""

    frame: Int[Array, " jump"]
    way: Float[Array, "jump 3"]
    """From where it was foretold to where it is, in the world, in metres."""


def _jumps(points: Float[Array, "frame marker 3"], rate: float) -> dict[int, _Jumps]:
    """Return the steps of each marker that may be slips."""
    company, steps = company_of(points, rate), steps_of(points)
    reach = reach_of(points, company, steps)
    odd = odd_steps(points, company, steps, reach, times=TIMES)
    start, now = points[odd.start, odd.marker], points[odd.end, odd.marker]
    way = now - carried(points, company, odd.marker, start, odd.start, odd.end)
    size = np.linalg.norm(way, axis=1)
    fits = (size >= SMALLEST) & (size <= LARGEST)
    return {
        marker: _Jumps(odd.end[mine], way[mine])
        for marker in np.unique(odd.marker[fits]).tolist()
        if (mine := fits & (odd.marker == marker)).any()
    }


def _likeliest(
    bodies: Bodies,
    points: Array,
    body: int,
    jumps: Mapping[int, _Jumps],
    level: float,
) -> MarkerSlip | None:
    """Return the clearest slip among the jumps of a body's markers, if any is clear."""
    if not jumps:
        return None
    own = np.flatnonzero(bodies.shared[:, body])
    sample = slice(None, None, max(len(points) // SAMPLE, 1))
    shape = median_in_body(bodies.T_world_body[sample, body], points[sample, own])
    count = log(max((bodies.marker_body >= 0).sum(), 1))
    tried = []
    for marker, some in jumps.items():
        mates = own != marker
        T = _seen_from(points, own[mates], shape[mates], marker)
        axes = min(len(own) - 1, 3)
        lasting = _lasting(T, points[:, marker], some, axes, bodies.take.rate)
        if lasting is not None and lasting.log_p + count < log(level):
            tried.append((lasting.log_p + count, marker, lasting))
    if not tried:
        return None
    log_p, marker, best = min(tried, key=lambda row: row[:2])
    return MarkerSlip(
        label=bodies.take.full_labels[marker],
        column=marker,
        body=bodies.names[body],
        mates=own[own != marker],
        places=shape[own != marker],
        frame=best.frame,
        shift=best.shift,
        p_value=float(np.exp(log_p)),
    )


def _seen_from(
    points: Float[Array, "frame marker 3"],
    mates: Int[Array, " mate"],
    places: Float[Array, "mate 3"],
    marker: int,
) -> Float[Array, "frame 4 4"]:
    """Return the axes in which a marker's mates stand still.

    Two mates leave the turn about their line open: there the marker itself shows it.
    """
    if len(mates) > 2:
        return geometry.kabsch(places, points[:, mates])
    one, two = points[:, mates[0]], points[:, mates[1]]
    with np.errstate(invalid="ignore"):
        x = two - one
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
        z = np.cross(x, points[:, marker] - one)
        z = z / np.linalg.norm(z, axis=1, keepdims=True)
    R = np.stack([x, np.cross(z, x), z], axis=-1)
    return geometry.transform(R, 0.5 * (one + two))


@dataclass(frozen=True, slots=True, eq=False)
class _Lasting:
    """A shift that a jump left behind."""

    frame: int
    shift: Float[Array, "3"]
    log_p: float
    """Log probability of so much evidence without a shift, over all frames."""


def _lasting(
    T: Float[Array, "frame 4 4"],
    track: Float[Array, "frame 3"],
    jumps: _Jumps,
    axes: int,
    rate: float,
) -> _Lasting | None:
    """Return the largest shift that a jump left behind; None if none did.

    A jump too near either end of the take has nothing to be compared with.

    Args:
        T: Axes in which the marker's mates stand still.
        track: The marker in the world.
        jumps: When and how it jumped.
        axes: How many of the axes show a shift, the first ones.
        rate: Frames per second.
    """
    local = geometry.apply(geometry.inverse(T), track)
    rows = np.flatnonzero(np.isfinite(local).all(axis=1))
    n, moment = len(rows), max(round(MOMENT * rate), 3)
    edge = max(FEWEST, int(MARGIN * n), round(LASTS * rate))
    first = np.searchsorted(rows, jumps.frame)
    inner = np.flatnonzero((first >= edge) & (first <= n - edge))
    if not len(inner):
        return None
    first = first[inner]
    y = local[rows] - np.median(local[rows], axis=0)
    sums = np.concatenate([np.zeros((1, 3)), np.cumsum(y, axis=0)])
    shift = _mean(sums, first, n) - _mean(sums, 0, first)
    step = _mean(sums, first, first + moment) - _mean(sums, first - moment, first)
    way = (T[rows[first], :3, :3].mT @ jumps.way[inner, :, None])[..., 0]
    size, far, late, early = (
        np.linalg.norm(v[:, :axes], axis=1)
        for v in (shift, way, shift - way, step - way)
    )
    stays = (np.maximum(late, early) <= STAYS * far) & (size >= SMALLEST)
    if not stays.any():
        return None
    best = int(np.argmax(np.where(stays, first * (n - first) * size**2, 0.0)))
    k = int(first[best])
    noise = y - shift[best] * (np.arange(n) >= k)[:, None]
    noise -= np.median(noise, axis=0)
    if size[best] < STANDS_OUT * np.sqrt(np.mean(np.sum(noise**2, axis=1))):
        return None
    log_p = _log_p(noise, k, size[best], axes)
    whole = np.where(np.arange(3) < axes, shift[best], way[best])
    return _Lasting(int(jumps.frame[inner[best]]), whole, log_p)


def _mean(sums: Array, start: Array | int, end: Array | int) -> Float[Array, "jump 3"]:
    """Return the means from start to before end, from running sums."""
    return np.asarray((sums[end] - sums[start]) / np.reshape(end - start, (-1, 1)))


def _log_p(noise: Float[Array, "frame 3"], first: int, size: float, axes: int) -> float:
    """Return the log probability of a shift that large in noise alone, at any frame."""
    n = len(noise)
    variance, freedoms = long_run_variance(noise)
    variance = max(variance * 3.0 / axes, ROUNDING**2)
    statistic = first * (n - first) / n * size**2 / variance
    if np.isfinite(freedoms):
        statistic = freedoms * float(np.log1p(statistic / freedoms))
    edge = max(FEWEST, int(MARGIN * n)) / n
    return log_exceedance(statistic, axes, (edge, edge))


def _put_back(points: Array, slip: MarkerSlip) -> Float[Array, "frame 3"]:
    """Return the track of a marker as if it had not slipped."""
    track = points[:, slip.column].copy()
    T = _seen_from(points[slip.frame :], slip.mates, slip.places, slip.column)
    track[slip.frame :] -= T[:, :3, :3] @ slip.shift
    return np.asarray(track)


def put_back(take: Take, slips: Sequence[MarkerSlip]) -> Take:
    """Return the take with markers where they were before they slipped.

    Positions after a slip are moved back by its shift, in the axes of the body at each
    moment; where the body is not seen then, they are blanked. Each repair is a line of
    the history and a finding.

    Args:
        take: The recording.
        slips: From `find_marker_slips`.
    """
    if not slips:
        return take
    points = take.points.copy()
    for slip in slips:
        points[:, slip.column] = _put_back(points, slip)
    filled = take.filled & np.isfinite(points).all(axis=-1)
    found = tuple(slip.finding for slip in slips)
    return replace(
        take,
        points=points,
        filled=filled,
        source=replace(take.source, findings=(*take.source.findings, *found)),
        history=(*take.history, *(f"put back: {slip.label} {slip}" for slip in slips)),
    )
