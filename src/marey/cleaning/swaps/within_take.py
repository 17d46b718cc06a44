"""Label swaps within a take, found and undone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from marey.cleaning.arrays import Labelling, Markers, Points
from marey.cleaning.neighbours import Neighbours, find_neighbours
from marey.cleaning.repairs import record_repair, repair_warning
from marey.cleaning.swaps.detect import detect_swap_events
from marey.cleaning.swaps.viterbi import (
    reference_neighbours,
    refine_with_repaired_labels,
    sort_by_marker,
    viterbi_labels,
)
from marey.numerics import geometry
from marey.numerics.procrustes import points_seen
from marey.numerics.thresholds import FEW, MIN_POSE_POINTS, MOST
from marey.report import Finding
from marey.take import Take

MAX_ITERATIONS = 3
"""Repetitions of detection and search on the repaired labels. Each undone swap makes
the others clearer. Chosen by hand."""


@dataclass(frozen=True, slots=True)
class Swap:
    """Labels that are on each other's markers in some frames."""

    labels: tuple[str, ...]
    """A cycle: the first label is on the second one's marker, and so on."""

    columns: tuple[int, ...]
    """The same labels by index."""

    first: int
    last: int
    """First and last frame, inclusive."""

    misfit_before: float
    """Mean deviation of distances to other markers as labelled, in metres."""

    misfit_after: float
    """The same after the swap is undone, in metres."""


def find_swaps(take: Take) -> tuple[Swap, ...]:
    """Return the label swaps of a take, in the order of time.

    At a swap two labels, or a cycle of several, jump to each other's markers: each is
    where the neighbours of the other marker predict that one, in the next frame or
    after a gap (`detect_swap_events`). A Viterbi search then decides which side of each
    event is right, and whether events were missed, by the distances that markers keep
    over the whole take (`viterbi_labels`).

    A label that jumps without another one is a spike, see `find_spikes`. Labels that
    are wrong in all frames cannot be found in one take; `marey.segment` compares the
    names of known marker sets with the motion.

    Args:
        take: The recording.
    """
    marker_of_label = track_labels(take.points, take.rate)
    if (marker_of_label == np.arange(marker_of_label.shape[1])).all():
        return ()
    points = sort_by_marker(take.points, marker_of_label)
    neighbours = find_neighbours(points, take.rate, labels_doubtful=True)
    swaps = []
    for cycle, first, last in _cycle_spans(marker_of_label, take.points):
        before, after = (
            _distance_misfit(values[first : last + 1], neighbours, cycle)
            for values in (take.points, points)
        )
        if after < MOST * before:
            labels = tuple(take.full_labels[column] for column in cycle)
            swaps.append(Swap(labels, cycle, first, last, before, after))
    return tuple(sorted(swaps, key=lambda swap: (swap.first, swap.columns)))


def track_labels(points: Points, rate: float) -> Labelling:
    """Return the marker of each label in every frame.

    Args:
        points: Positions in metres, NaN where a label was not seen.
        rate: Frames per second.
    """
    n_frames, n = points.shape[:2]
    total = np.tile(np.arange(n), (n_frames, 1))
    missing = ~points_seen(points)
    is_complete = bool(missing.sum() < FEW * missing.size)
    repaired = points
    for _ in range(MAX_ITERATIONS if n >= MIN_POSE_POINTS + 2 else 0):
        neighbours = find_neighbours(repaired, rate, labels_doubtful=is_complete)
        candidates = detect_swap_events(repaired, neighbours, rate)
        marker_of_label = viterbi_labels(repaired, neighbours, candidates)
        if is_complete and candidates.events:
            marker_of_label = refine_with_repaired_labels(
                repaired, rate, candidates, marker_of_label
            )
        if (marker_of_label == np.arange(n)).all():
            break
        total = np.take_along_axis(marker_of_label, total, axis=1)
        repaired = sort_by_marker(points, total)
    return total


def _cycle_spans(
    marker_of_label: Labelling, points: Points
) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """Yield every cycle of labels with the first and last frame that shows it."""
    seen = np.isfinite(points).all(axis=-1)
    changes = np.flatnonzero(np.diff(marker_of_label, axis=0).any(axis=1)) + 1
    borders = [0, *changes.tolist(), len(marker_of_label)]
    spans: dict[tuple[int, ...], tuple[int, int]] = {}
    for a, b in pairwise(borders):
        cycles = set(_cycles(marker_of_label[a]))
        for cycle in [old for old in spans if old not in cycles]:
            yield cycle, *spans.pop(cycle)
        for cycle in cycles:
            shown = a + np.flatnonzero(seen[a:b, list(cycle)].any(axis=1))
            if len(shown):
                first = spans.get(cycle, (int(shown[0]), 0))[0]
                spans[cycle] = first, int(shown[-1])
    yield from ((cycle, *span) for cycle, span in spans.items())


def _cycles(permutation: Markers) -> Iterator[tuple[int, ...]]:
    """Yield the cycles of a permutation, each from its smallest label on."""
    done: set[int] = set()
    for first in np.flatnonzero(permutation != np.arange(len(permutation))).tolist():
        cycle = []
        label = first
        while label not in done:
            done.add(label)
            cycle.append(label)
            label = int(permutation[label])
        if cycle:
            yield tuple(cycle)


def _distance_misfit(
    points: Points, neighbours: Neighbours, cycle: tuple[int, ...]
) -> float:
    """Return the mean deviation of distances from a cycle to its neighbours, in metres.

    Distances are weighted by the inverse of their standard deviation.
    """
    deviations, weights = [], []
    for marker in cycle:
        others, median, sd = reference_neighbours(neighbours, marker, np.array(cycle))
        distance = geometry.lengths(points[:, others] - points[:, marker, None])
        known = np.isfinite(distance)
        deviations.append(np.abs(distance - median)[known])
        weights.append(np.broadcast_to(1.0 / sd, distance.shape)[known])
    weight = np.concatenate(weights)
    return float(weight @ np.concatenate(deviations) / weight.sum())


def undo_swaps(take: Take, swaps: Sequence[Swap]) -> Take:
    """Return the take with swapped labels back on their own markers.

    Positions move to their labels unchanged.

    Args:
        take: The recording.
        swaps: From `find_swaps`.
    """
    findings = [_finding(swap, take.n_frames) for swap in swaps]
    return relabel(take, swaps, findings) if swaps else take


def relabel(take: Take, swaps: Sequence[Swap], findings: Sequence[Finding]) -> Take:
    """Return the take with the positions of swapped labels moved to their owners."""
    points, filled = take.points.copy(), take.filled.copy()
    for swap in swaps:
        frames, labels = slice(swap.first, swap.last + 1), list(swap.columns)
        owners = labels[1:] + labels[:1]
        points[frames, owners] = take.points[frames, labels]
        filled[frames, owners] = take.filled[frames, labels]
    count = f"{len(swaps)} label swap{'s' if len(swaps) > 1 else ''}"
    return record_repair(
        take, findings, [f"undid {count}"], points=points, filled=filled
    )


def _finding(swap: Swap, n_frames: int) -> Finding:
    pair = len(swap.labels) == 2
    labels = (" and " if pair else ", ").join(swap.labels)
    where = f"in frames {swap.first}-{swap.last}"
    if swap.first == 0:
        where += " from the start"
    elif swap.last == n_frames - 1:
        where += " to the end"
    message = (
        f"{labels} are swapped {where}; undone: distances to other markers deviate by "
        f"{1e3 * swap.misfit_after:.1f} instead of {1e3 * swap.misfit_before:.1f} mm"
    )
    subject, frames = "-".join(swap.labels), (swap.first, swap.last)
    return repair_warning(
        "labels-swapped", message, subject, frames, swap.misfit_before
    )
