"""Gaps of markers, filled from the markers that go along with them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.bodies import Bodies
from marey.cleaning.neighbours import company_of
from marey.errors import OptionError
from marey.joint_fits import JointFits
from marey.numerics import geometry
from marey.report import Finding
from marey.take import Take
from marey.tree import Tree

Array = np.ndarray

# How much the distance of two markers may vary for them to count as one body where no
# bodies are known: times the steadiest distance of either, and times what is usual.
STEADY = 2.0

# Share of a distance by which it varies from rounding alone.
ROUNDING = 1e-9

# Share of a marker's distance from the line through its mates that they must be wide.
WIDE = 0.2

# How far off mates may carry a marker across its gap, as a share of their distance.
CLOSES = 0.1

# Gaps made in frames that do show the marker, to learn how well it is foretold.
TRIALS = 60


@dataclass(frozen=True, slots=True, eq=False)
class Support:
    """What may foretell a marker: others that go along with it rigidly."""

    points: Float[Array, "frame point 3"]
    """Markers, and joints as their neighbours see them."""

    mates: tuple[tuple[Int[Array, " _"], ...], ...]
    """For each marker of the take the points that go along with it; where these are too
    few, a larger choice."""

    def carry(self, marker: int, first: int, last: int) -> Float[Array, "gap 3"] | None:
        """Return a marker's way through frames; None where too little goes along."""
        for mates in self.mates[marker]:
            around = self.points[first - 1 : last + 2, mates]
            around = around[:, np.isfinite(around).all(axis=(0, 2))]
            track = self.points[first - 1 : last + 2, marker]
            way = _blended(around, track[0], track[-1])
            if way is not None:
                return way
        return None


def fill_gaps(
    take: Take,
    max_gap: float,
    *,
    bodies: Bodies | None = None,
    joints: JointFits | None = None,
    tree: Tree | None = None,
) -> Take:
    """Return the take with short gaps of markers filled, each value marked.

    The markers that go along with a marker, seen all through the gap, carry it into the
    gap from the frame before and, backwards, from the frame after; between the two it
    is blended, so that it leaves and meets its own track without a step. With bodies
    the mates are those of its body; where joints are known too, a joint as the
    neighbour sees it counts as one mate more, so that a body of which little is seen
    is held by its neighbours. Without bodies the mates are markers that keep their
    distances to it and to each other throughout the take.

    Gaps longer than `max_gap`, at either end of the take, or with fewer than three
    mates off one line stay NaN. What is filled is marked in `Take.filled`, told in a
    finding with the error that gaps made for trial show, and counts as a measurement
    nowhere.

    Args:
        take: The recording.
        max_gap: Longest gap that is filled, in seconds.
        bodies: The bodies of its markers, where they are known.
        joints: Their joints.
        tree: Which of the joints are real.

    Raises:
        OptionError: If `max_gap` is below zero.
    """
    if not max_gap >= 0.0:
        raise OptionError("max_gap", found=max_gap, needed="0 s or more")
    longest = int(max_gap * take.rate + 1e-6)
    if longest == 0 or take.seen.all():
        return take
    support = _support(take, bodies, joints, tree)
    points = take.points.copy()
    gaps = [
        (marker, *gap)
        for marker in np.flatnonzero(~take.seen.all(axis=0)).tolist()
        for gap in _gaps(take.seen[:, marker], longest)
    ]
    done = []
    for gap in gaps:
        way = support.carry(*gap)
        if way is not None:
            points[gap[1] : gap[2] + 1, gap[0]] = way
            done.append(gap)
    if not done:
        return take
    filled = take.filled | (np.isfinite(points).all(axis=-1) & ~take.seen)
    found = _finding(take, support, done, len(gaps))
    return replace(
        take,
        points=points,
        filled=filled,
        source=replace(take.source, findings=(*take.source.findings, found)),
        history=(*take.history, f"filled {_count(done)} positions of markers"),
    )


Gap = tuple[int, int, int]
"""A marker, and the first and last frame in which it was not seen."""


def _gaps(seen: Bool[Array, " frame"], longest: int) -> Iterator[tuple[int, int]]:
    """Return first and last frames of gaps that are short and have two ends."""
    shown = np.flatnonzero(seen)
    for k in np.flatnonzero(np.diff(shown) > 1).tolist():
        first, last = int(shown[k]) + 1, int(shown[k + 1]) - 1
        if last - first < longest:
            yield first, last


def _count(gaps: Sequence[Gap]) -> int:
    return sum(last - first + 1 for _, first, last in gaps)


def _blended(
    mates: Float[Array, "frame mate 3"],
    start: Float[Array, "3"],
    end: Float[Array, "3"],
) -> Float[Array, "gap 3"] | None:
    """Return the way from start to end as the mates go.

    None where they are too few, or where they do not arrive at the end: then they do
    not go along.
    """
    if not (_is_wide(mates[0], start) and _is_wide(mates[-1], end)):
        return None
    ahead = geometry.apply(geometry.kabsch(mates[0], mates), start)
    behind = geometry.apply(geometry.kabsch(mates[-1], mates), end)
    reach = np.linalg.norm(start - mates[0], axis=1).mean()
    if not np.linalg.norm(ahead[-1] - end) <= CLOSES * reach:
        return None
    share = np.linspace(0.0, 1.0, len(mates))[1:-1, None]
    way = (1.0 - share) * ahead[1:-1] + share * behind[1:-1]
    return np.asarray(way) if np.isfinite(way).all() else None


def _is_wide(mates: Float[Array, "mate 3"], place: Float[Array, "3"]) -> bool:
    """Return whether three mates or more fix the turn about their line well enough."""
    if len(mates) < 3 or not np.isfinite(place).all():
        return False
    off = mates - mates.mean(axis=0)
    _, size, axes = np.linalg.svd(off, full_matrices=False)
    arm = place - mates.mean(axis=0)
    lever = np.linalg.norm(arm - (arm @ axes[0]) * axes[0])
    return bool(size[1] > max(WIDE * lever, 1e-6 * size[0]))


def _finding(take: Take, support: Support, done: Sequence[Gap], count: int) -> Finding:
    errors = [
        e for gap in done[:: max(len(done) // TRIALS, 1)] for e in _trial(support, gap)
    ]
    rms = float(np.sqrt(np.mean(np.square(errors)))) if errors else float("nan")
    markers = {marker for marker, _, _ in done}
    known = f", {1e3 * rms:.1f} mm off as gaps made for trial show" if errors else ""
    left = f"; {count - len(done)} gaps with too little around stay open"
    return Finding(
        "gaps-filled",
        "clean",
        "info",
        f"{_count(done)} positions of {len(markers)} markers filled in {len(done)} "
        f"gaps from the markers around{known}{left if count > len(done) else ''}",
        frames=(min(g[1] for g in done), max(g[2] for g in done)),
        value=rms,
    )


def _trial(support: Support, gap: Gap) -> Iterator[float]:
    """Return how far off the way through a like gap is, next to a real one.

    The frames just before the gap, where they show the marker.
    """
    marker, first, last = gap
    length = last - first + 1
    start = first - 1 - length
    if start < 1:
        return
    way = support.carry(marker, start, start + length - 1)
    if way is not None:
        seen = support.points[start : start + length, marker]
        yield from np.linalg.norm(way - seen, axis=1)[np.isfinite(seen[:, 0])].tolist()


# --- who goes along with whom ---------------------------------------------------------


def _support(
    take: Take, bodies: Bodies | None, joints: JointFits | None, tree: Tree | None
) -> Support:
    measured = take.measured.points
    if bodies is None:
        return Support(measured, tuple((m,) for m in _companions(measured, take.rate)))
    body = bodies.marker_body
    own = [np.flatnonzero((body == b) & (b >= 0)) for b in body]
    own = [mates[mates != marker] for marker, mates in enumerate(own)]
    if joints is None or tree is None:
        return Support(measured, tuple((mates,) for mates in own))
    held, places = _joints_seen(bodies, joints, tree)
    far = [len(body) + np.flatnonzero(held == b) for b in body]
    both = [(a, np.concatenate([a, b])) for a, b in zip(own, far, strict=True)]
    return Support(np.concatenate([measured, places], axis=1), tuple(both))


def _joints_seen(
    bodies: Bodies, joints: JointFits, tree: Tree
) -> tuple[Int[Array, " end"], Float[Array, "frame end 3"]]:
    """Return the joints of each body as the body at their other end sees them."""
    held, places = [], [np.zeros((bodies.take.n_frames, 0, 3))]
    for row in tree.edge[tree.edge >= 0].tolist():
        a, b = joints.pair[row].tolist()
        ends = ((a, b, joints.center_b[row]), (b, a, joints.center_a[row]))
        for body, other, center in ends:
            held.append(body)
            seen = geometry.apply(bodies.T_world_body[:, other], center)
            places.append(seen[:, None])
    return np.array(held, dtype=np.int64), np.concatenate(places, axis=1)


def _companions(
    points: Float[Array, "frame marker 3"], rate: float
) -> Iterator[Int[Array, " _"]]:
    """Return for each marker others that keep distances to it and to each other."""
    company = company_of(points, rate)
    best = company.spread[:, 0] if company.spread.shape[1] else np.zeros(0)
    known = best[np.isfinite(best)]
    usual = float(np.median(known)) if len(known) else 0.0
    spread = {
        (marker, int(mate)): float(wide)
        for marker, row in enumerate(company.mates)
        for mate, wide in zip(row, company.spread[marker], strict=True)
    }
    size = company.distance[:, 0] if company.spread.shape[1] else np.zeros(0)
    limit = np.maximum(STEADY * np.maximum(best, usual), ROUNDING * size)
    for marker, row in enumerate(company.mates.tolist()):
        chosen: list[int] = []
        for mate in row:
            widest = max(
                (
                    spread.get((a, mate), spread.get((mate, a), np.inf))
                    for a in (marker, *chosen)
                ),
            )
            if widest <= limit[marker]:
                chosen.append(mate)
        yield np.array(chosen, dtype=np.int64)
