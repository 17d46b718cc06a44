"""Markers that slip on the skin during a recording, found and put back."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np
from jaxtyping import Float, Int

from marey import geometry
from marey.bodies import Bodies
from marey.clean._company import company_of
from marey.clean._noise import long_run_variance
from marey.clean._search import FEWEST, MARGIN, log_exceedance
from marey.clean._shift import ROUNDING
from marey.clean._steps import odd_steps, reach_of, steps_of
from marey.clean.slips import LEVEL
from marey.errors import OptionError
from marey.report import Finding
from marey.rigid import fit_rigid
from marey.take import Take

Array = np.ndarray

SMALLEST = 5e-3
"""Metres that a marker must shift for a slip: skin moves by less all the time."""

LARGEST = 0.1
"""Metres beyond which a marker has not slipped but is another one, or none."""

SUDDEN = 0.7
"""Share of the shift that must come about at once."""

ONCE = 1.5
"""How many times larger than any other step of the take that must be: skin moves
again and again, a marker slips once."""

MOMENT = 0.05
"""Seconds either side of a step from which it is taken."""

ALONE = 0.1
"""Seconds around a slip in which no other marker of the body does anything odd."""

# A step is looked at where the mates foretell it worse than so many times the usual.
TIMES = 2.5

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
            f"{self} on {self.body} (p = {self.p_value:.0e}): the frames after are put "
            "back to its old place; fasten it better, or record again"
        )
        frames = (self.frame, self.frame)
        return Finding(
            "marker-slipped", "clean", "warning", message, self.label, frames, self.size
        )


def find_marker_slips(
    bodies: Bodies, *, level: float = LEVEL
) -> tuple[MarkerSlip, ...]:
    """Return the markers that slipped on their bodies, and when, in the order of time.

    Seen from the other markers of its body a marker stands still, give or take its
    skin. Where it slips, it shifts at once and stays there: the likelihood ratio of
    such a shift is taken against noise with a memory, as skin has, at the steps that
    the markers around did not foretell, and most of the shift must come about there.
    The likeliest slip of a body is put back and the search goes on.

    A slip that hides in the noise of one step is not found, nor one of a marker whose
    body has fewer than three others.

    Args:
        bodies: Bodies made of markers.
        level: Probability of a false alarm that is accepted, above 0 and below 1.

    Raises:
        OptionError: If the level is out of range.
    """
    if not 0.0 < level < 1.0:
        raise OptionError("level", found=level, needed="above 0 and below 1")
    points = bodies.take.measured.points.copy()
    odd = _odd(points, bodies.take.rate)
    found: list[MarkerSlip] = []
    for body in np.flatnonzero(bodies.determined).tolist():
        several = bodies.shared[:, body].sum() > 3
        for _ in range(MOST_PER_BODY if several else 0):
            slip = _likeliest(bodies, points, body, odd, level)
            if slip is None:
                break
            found.append(slip)
            points[:, slip.column] = _put_back(points, slip)
    return tuple(sorted(found, key=lambda slip: (slip.frame, slip.column)))


def _odd(points: Float[Array, "frame marker 3"], rate: float) -> dict[int, list[int]]:
    """Return the frames at which each marker is where no other foretold it."""
    company, steps = company_of(points, rate), steps_of(points)
    reach = reach_of(points, company, steps)
    odd = odd_steps(points, company, steps, reach, times=TIMES)
    found: dict[int, list[int]] = {}
    for marker, frame in zip(odd.marker.tolist(), odd.end.tolist(), strict=True):
        found.setdefault(marker, []).append(frame)
    return found


def _likeliest(
    bodies: Bodies, points: Array, body: int, odd: dict[int, list[int]], level: float
) -> MarkerSlip | None:
    """Return the clearest slip of a body's markers, if any is clear enough."""
    own = np.flatnonzero(bodies.shared[:, body])
    shape = fit_rigid(points[:, own]).offset
    moment = max(round(MOMENT * bodies.take.rate), 3)
    count = log(max((bodies.marker_body >= 0).sum(), 1))
    tried = []
    mine = own[bodies.marker_body[own] == body]
    for marker in mine[np.isin(mine, list(odd))].tolist():
        mates = own != marker
        T = geometry.kabsch(shape[mates], points[:, own[mates]])
        local = geometry.apply(geometry.inverse(T), points[:, marker])
        tried += [
            (best.log_p + count, marker, best)
            for frame in odd[marker]
            if not _is_impact(frame, own[mates], odd, ALONE * bodies.take.rate)
            and (best := _Shift.at(local, frame)) is not None
            and best.log_p + count < log(level)
            and best.is_sudden(local, moment)
        ]
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


def _is_impact(
    frame: int, mates: Int[Array, " mate"], odd: dict[int, list[int]], around: float
) -> bool:
    """Return whether others of the body are wild at this moment too."""
    times = [f for marker in mates.tolist() for f in odd.get(marker, [])]
    return any(abs(time - frame) <= around for time in times)


@dataclass(frozen=True, slots=True, eq=False)
class _Shift:
    """The likeliest shift of a series that stands still but for its noise."""

    frame: int
    shift: Float[Array, "3"]
    log_p: float
    """Log probability of so much evidence without a shift, over all frames."""

    @classmethod
    def at(cls, local: Float[Array, "frame 3"], frame: int) -> "_Shift | None":
        """Return the shift of a series at a frame; None too near its ends."""
        rows = np.flatnonzero(np.isfinite(local).all(axis=1))
        edge = max(FEWEST, int(MARGIN * len(rows)))
        n, first = len(rows), int(np.searchsorted(rows, frame))
        if not edge <= first <= n - edge:
            return None
        y = local[rows] - np.median(local[rows], axis=0)
        shift = y[first:].mean(axis=0) - y[:first].mean(axis=0)
        stepless = y - shift * (np.arange(n) >= first)[:, None]
        variance, freedoms = long_run_variance(stepless)
        share = first * (n - first) / n
        statistic = float(share * shift @ shift / max(variance, ROUNDING**2))
        if np.isfinite(freedoms):
            statistic = freedoms * float(np.log1p(statistic / freedoms))
        log_p = log_exceedance(statistic, 3, (edge / n, edge / n))
        return cls(frame, shift, log_p)

    def is_sudden(self, local: Float[Array, "frame 3"], moment: int) -> bool:
        """Return whether most of the shift comes about at once, as no other step."""
        from scipy.ndimage import median_filter

        rows = np.flatnonzero(np.isfinite(local).all(axis=1))
        calm = median_filter(local[rows], size=(moment, 1), mode="nearest")
        reach = moment // 2 + 1
        step = calm[2 * reach - 1 :] - calm[: 1 - 2 * reach]
        at = int(np.searchsorted(rows, self.frame)) - reach
        size = float(np.linalg.norm(self.shift))
        if (
            not SMALLEST <= size <= LARGEST
            or not step[at] @ self.shift > SUDDEN * size**2
        ):
            return False
        other = np.linalg.norm(step, axis=1)
        other[max(at - 2 * reach, 0) : at + 2 * reach + 1] = 0.0
        return bool(np.linalg.norm(step[at]) > ONCE * other.max())


def _put_back(points: Array, slip: MarkerSlip) -> Float[Array, "frame 3"]:
    """Return the track of a marker as if it had not slipped."""
    track = points[:, slip.column].copy()
    after = points[slip.frame :, slip.mates]
    T = geometry.kabsch(slip.places, after)
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
