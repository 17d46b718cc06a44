"""Labels that trade their markers for a while: found, and traded back."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int

from marey.cleaning.neighbours import Company, company_of
from marey.cleaning.swaps.detect import find_trades
from marey.cleaning.swaps.second_pass import second_opinion, sorted_by
from marey.cleaning.swaps.viterbi import settled, witnesses
from marey.report import Finding
from marey.take import Take

Array = np.ndarray

ROUNDS = 3
"""Times that labels are traded back and looked at again: each swap that is undone
makes the others plainer."""

GAPPY = 0.15
"""Share missing from which on there is no second opinion and mates are chosen by the
whole take: trades in gaps are missed, and to carry a marker across gaps takes mates
that keep their distance for long. Tried at 5 and 30 %."""

SOUND = 0.85
"""Share of the misfit of distances that may be left when a swap is undone."""


@dataclass(frozen=True, slots=True)
class Swap:
    """Labels that stood on each other's markers, in some frames."""

    labels: tuple[str, ...]
    """In a ring: the first label stood on the second one's marker, and so on."""

    columns: tuple[int, ...]
    """The same by index."""

    first: int
    last: int
    """First and last frame, inclusive."""

    before: float
    """How far distances to other markers are off as labelled, in metres on average."""

    after: float
    """The same when the labels are traded back."""


def find_swaps(take: Take) -> tuple[Swap, ...]:
    """Return the labels that traded their markers, and when, in the order of time.

    At a trade two labels, or a ring of several, jump to each other's places at once:
    each is where the mates of the other's marker carry that one, in the frame after or
    across a gap. Which side of a trade is the right one, and whether one was missed,
    the distances that the markers keep to others decide, over the whole take.

    A label that trades with nobody is none: see `find_spikes`. Labels that are wrong in
    all frames do not show here; `marey.segment` holds names of known sets to the
    motion.

    Args:
        take: The recording.
    """
    marker = traded(take.points, take.rate)
    if (marker == np.arange(marker.shape[1])).all():
        return ()
    points = sorted_by(take.points, marker)
    company = company_of(points, take.rate, doubtful=True)
    found = [
        _swap(take, points, company, *span) for span in _spans(marker, take.points)
    ]
    sound = (swap for swap in found if swap.after < SOUND * swap.before)
    return tuple(sorted(sound, key=lambda swap: (swap.first, swap.columns)))


def traded(
    points: Float[Array, "frame marker 3"], rate: float
) -> Int[Array, "frame label"]:
    """Return the marker that each label stands on in every frame."""
    total = np.tile(np.arange(points.shape[1]), (len(points), 1))
    missing = np.isnan(points).any(axis=-1)
    whole = bool(missing.sum() < GAPPY * missing.size)
    for _ in range(ROUNDS if points.shape[1] > 4 else 0):
        now = sorted_by(points, total)
        company = company_of(now, rate, doubtful=whole)
        walked = find_trades(now, company, rate)
        marker = settled(now, company, walked)
        if whole and walked.trades:
            marker = second_opinion(now, rate, walked, marker)
        if (marker == np.arange(points.shape[1])).all():
            break
        total = np.take_along_axis(marker, total, axis=1)
    return total


def _spans(
    marker: Int[Array, "frame label"], points: Float[Array, "frame marker 3"]
) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """Return every ring of labels with the first and last frame that shows it."""
    seen = np.isfinite(points).all(axis=-1)
    rows = np.flatnonzero(np.diff(marker, axis=0).any(axis=1)) + 1
    edges = [0, *rows.tolist(), len(marker)]
    open_: dict[tuple[int, ...], tuple[int, int]] = {}
    for a, b in pairwise(edges):
        rings = set(_rings(marker[a]))
        for ring in [r for r in open_ if r not in rings]:
            yield ring, *open_.pop(ring)
        for ring in rings:
            shown = a + np.flatnonzero(seen[a:b, list(ring)].any(axis=1))
            if len(shown):
                first = open_.get(ring, (int(shown[0]), 0))[0]
                open_[ring] = first, int(shown[-1])
    yield from ((ring, *span) for ring, span in open_.items())


def _rings(marker: Int[Array, " label"]) -> Iterator[tuple[int, ...]]:
    """Return the rings of a permutation, each from its smallest label on."""
    done: set[int] = set()
    for first in np.flatnonzero(marker != np.arange(len(marker))).tolist():
        ring = []
        label = first
        while label not in done:
            done.add(label)
            ring.append(label)
            label = int(marker[label])
        if ring:
            yield tuple(ring)


def _swap(
    take: Take,
    points: Float[Array, "frame marker 3"],
    company: Company,
    ring: tuple[int, ...],
    first: int,
    last: int,
) -> Swap:
    labels = tuple(take.full_labels[k] for k in ring)
    some = slice(first, last + 1)
    before, after = (
        _off(values[some], company, ring) for values in (take.points, points)
    )
    return Swap(labels, ring, first, last, before, after)


def _off(points: Array, company: Company, ring: tuple[int, ...]) -> float:
    """Return by how much distances to markers outside a ring are not as usual.

    The mean in metres; steadier distances count more.
    """
    off, weight = [], []
    for marker in ring:
        mates, usual, noise = witnesses(company, marker, np.array(ring))
        away = np.linalg.norm(points[:, mates] - points[:, marker, None], axis=-1)
        known = np.isfinite(away)
        off.append(np.abs(away - usual)[known])
        weight.append(np.broadcast_to(1.0 / noise, away.shape)[known])
    total = np.concatenate(weight).sum()
    return float(np.concatenate(weight) @ np.concatenate(off) / total)


def unswapped(take: Take, swaps: Sequence[Swap]) -> Take:
    """Return the take with labels back on their markers, and with word of it.

    Positions move to the label that they belong to, to the bit; nothing else changes.

    Args:
        take: The recording.
        swaps: From `find_swaps`.
    """
    found = tuple(_finding(swap, take.n_frames) for swap in swaps)
    return traded_back(take, swaps, found) if swaps else take


def traded_back(
    take: Take, swaps: Sequence[Swap], findings: tuple[Finding, ...]
) -> Take:
    """Return the take with labels back on their markers, and with these findings."""
    points, filled = take.points.copy(), take.filled.copy()
    for swap in swaps:
        some, labels = slice(swap.first, swap.last + 1), list(swap.columns)
        owners = labels[1:] + labels[:1]
        points[some, owners] = take.points[some, labels]
        filled[some, owners] = take.filled[some, labels]
    return replace(
        take,
        points=points,
        filled=filled,
        source=replace(take.source, findings=(*take.source.findings, *findings)),
        history=(*take.history, f"traded back labels {len(swaps)} times"),
    )


def _finding(swap: Swap, n_frames: int) -> Finding:
    who = " and ".join(swap.labels) if len(swap.labels) == 2 else ", ".join(swap.labels)
    lasts = " to the end" if swap.last == n_frames - 1 and swap.first else ""
    lasts = " from the beginning" if swap.first == 0 else lasts
    message = (
        f"{who} stand on each other's markers in frames {swap.first}-{swap.last}"
        f"{lasts}: traded back, which brings distances to the markers around from "
        f"{1e3 * swap.before:.1f} to {1e3 * swap.after:.1f} mm off"
    )
    return Finding(
        "labels-swapped",
        "clean",
        "warning",
        message,
        "-".join(swap.labels),
        (swap.first, swap.last),
        swap.before,
    )
