"""Label swaps between takes: two labels on each other's markers in a whole take.

Within one take such a swap does not show, because no label jumps.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from marey.cleaning.arrays import Array, Points
from marey.cleaning.neighbours import (
    distance_deviation,
    row_median_and_sd,
)
from marey.cleaning.repairs import repair_warning
from marey.cleaning.swaps.within_take import Swap, relabel
from marey.numerics import Float, geometry
from marey.numerics.resampling import evenly_spaced
from marey.numerics.robust import finite_median
from marey.numerics.thresholds import (
    MARKER_NOISE_M,
    MIN_POSE_POINTS,
    OUTLIER_SD,
    SKIN_MOTION_M,
)
from marey.report import Finding
from marey.take import Take

MAX_NEIGHBOURS = 8
"""Markers that two labels are compared by: those with the steadiest distance to both.
More of them include markers across joints. Chosen by hand; with 12, swapped markers of
a wrist in a test are not found."""

TAKE_DEVIATION_M = 2.0 * MARKER_NOISE_M
"""Deviation of the same distance between takes, in metres. Chosen by hand."""

MAX_NEIGHBOUR_SD_M = 2.0 * SKIN_MOTION_M
"""Largest deviation of the distance to a neighbour, in metres. Higher compares markers
across joints. Chosen by hand."""

MIN_SWAP_MISFIT_M = 0.5 * SKIN_MOTION_M
"""Smallest misfit of swapped labels, in metres. Higher misses swaps of near markers.
Chosen by hand."""

MIN_SWAP_MISFIT_RATIO = 2.0
"""Smallest misfit of swapped labels relative to the median of all pairs of labels. The
median is large if all markers were attached again. Chosen by hand."""


MAX_REMAINING_MISFIT = 1.0 / OUTLIER_SD
"""Misfit after the swap is undone, relative to before. Lower finds fewer swaps."""


@dataclass(frozen=True, slots=True)
class SwapBetweenTakes:
    """Two labels that are on each other's markers in the whole of one take."""

    take: int
    """Index of the take."""

    labels: tuple[str, str]

    others: tuple[int, ...]
    """Indices of the takes that it differs from."""

    certain: bool
    """Whether most takes agree; if not, it is only known that the takes differ."""

    misfit_before: float
    """Root mean square difference between the takes as labelled, in metres; compared
    are the differences of the two labels' distances to each neighbour."""

    misfit_after: float
    """The same after the swap is undone, in metres."""


OtherPoints = Float[Array, "other_frame marker 3"]
"""Positions of the same markers in another take, in metres."""

Pair = tuple[int, int]
"""Columns of two labels."""

Misfits = tuple[float, float]
"""Misfit of two labels as they are and swapped, in metres."""


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """How the distances of two labels to their neighbours differ between two takes."""

    neighbours: tuple[int, ...]
    """Columns of the steady neighbours of both."""

    variance: Float[Array, " neighbour"]
    """Variance of each change, in square metres; NaN if unknown."""

    as_labelled: Float[Array, " neighbour"]
    """Half the change of the difference of both distances, in metres."""

    swapped: Float[Array, " neighbour"]
    """The same after the labels change places."""

    def misfits(self, left_out: tuple[int, ...] = ()) -> Misfits:
        """Return the root mean squares, weighted by the inverse variance, in metres.

        NaN if there are too few neighbours.

        Args:
            left_out: Neighbours that do not count.
        """
        counts = np.array([k not in left_out for k in self.neighbours], dtype=bool)
        variance = self.variance[counts]
        if np.isfinite(variance).sum() < MIN_POSE_POINTS:
            return float("nan"), float("nan")
        weight = 1.0 / (variance * np.nansum(1.0 / variance))
        before, after = (
            float(np.sqrt(np.nansum(weight * change[counts] ** 2)))
            for change in (self.as_labelled, self.swapped)
        )
        return before, after

    def has_change_for_swap(self, minimum: float) -> bool:
        """Return whether any change above a minimum, in metres, speaks for a swap."""
        is_large = self.as_labelled > minimum
        return bool(np.any(is_large & (self.swapped < self.as_labelled)))


def find_swaps_between_takes(takes: Sequence[Take]) -> tuple[SwapBetweenTakes, ...]:
    """Return the labels that are swapped between takes of one subject.

    A third marker near two others is nearer to one of them by the same difference in
    every take, even across joints. Two labels are swapped if these differences agree
    with another take far better after the labels change places. No bodies are needed.
    If markers were attached again between takes, all pairs differ a little, and the
    threshold rises with the usual difference. Where no two labels are clearly swapped,
    two pairs are tried together, each without the other among its neighbours. Two
    markers at equal distances to all neighbours cannot be distinguished.

    All takes are compared with the one that shows most. The takes in the minority are
    wrong; in a tie, those with fewer frames. Frames in which the same labels were
    swapped within a take (`find_swaps`) count for the other side.

    Args:
        takes: The recordings, after swaps within each take were undone.
    """
    if len(takes) < 2:
        return ()
    reference = int(np.argmax([take.seen.sum() for take in takes]))
    found: dict[tuple[str, str], dict[int, Misfits]] = {}
    for number, take in enumerate(takes):
        if number != reference:
            for labels, misfits in _compare_takes(takes[reference], take).items():
                found.setdefault(labels, {})[number] = misfits
    swaps = [
        swap
        for labels, misfits_by_take in found.items()
        for swap in _choose_wrong_takes(takes, labels, misfits_by_take)
    ]
    return tuple(sorted(swaps, key=lambda swap: (swap.take, swap.labels)))


def undo_swaps_between_takes(
    takes: Sequence[Take], swaps: Sequence[SwapBetweenTakes]
) -> tuple[Take, ...]:
    """Return the takes with swapped labels back on their own markers.

    Positions move to their labels unchanged.

    Args:
        takes: The recordings.
        swaps: From `find_swaps_between_takes`.
    """
    repaired = []
    for number, take in enumerate(takes):
        of_take = [swap for swap in swaps if swap.take == number]
        last = take.n_frames - 1
        in_all_frames = [
            Swap(
                swap.labels,
                tuple(map(take.full_labels.index, swap.labels)),
                0,
                last,
                swap.misfit_before,
                swap.misfit_after,
            )
            for swap in of_take
        ]
        findings = [_finding(swap, last) for swap in of_take]
        repaired.append(relabel(take, in_all_frames, findings) if of_take else take)
    return tuple(repaired)


def _choose_wrong_takes(
    takes: Sequence[Take], labels: tuple[str, str], misfits_by_take: dict[int, Misfits]
) -> Iterator[SwapBetweenTakes]:
    """Yield a swap for each take in which two labels are wrong.

    Args:
        takes: All takes.
        labels: The two labels.
        misfits_by_take: Misfits of the takes that differ from the reference take.
    """
    wrong = sorted(misfits_by_take)
    right = [
        number
        for number, take in enumerate(takes)
        if number not in wrong and set(labels) <= set(_unique_labels(take))
    ]
    votes = [
        (len(side), sum(_count_votes(takes[number], labels) for number in side))
        for side in (wrong, right)
    ]
    if votes[0] > votes[1]:
        wrong, right = right, wrong
    before, after = np.mean(list(misfits_by_take.values()), axis=0).tolist()
    certain = len(wrong) < len(right)
    for number in wrong:
        yield SwapBetweenTakes(number, labels, tuple(right), certain, before, after)


def _count_votes(take: Take, labels: tuple[str, str]) -> int:
    """Return the frames in which two labels were right, minus those swapped before."""
    columns = [*map(take.full_labels.index, labels)]
    subjects = {"-".join(labels), "-".join(labels[::-1])}
    swapped = sum(
        finding.frames[1] - finding.frames[0] + 1
        for finding in take.source.findings
        if finding.code == "labels-swapped" and finding.subject in subjects
    )
    return int(take.seen[:, columns].all(axis=1).sum()) - 2 * swapped


def _unique_labels(take: Take) -> list[str]:
    """Return the labels that are seen and occur once."""
    count = Counter(take.full_labels)
    seen = zip(take.full_labels, np.any(take.seen, axis=0).tolist(), strict=True)
    return [label for label, is_seen in seen if is_seen and count[label] == 1]


def _compare_takes(reference: Take, take: Take) -> dict[tuple[str, str], Misfits]:
    """Return the pairs of labels that are swapped between two takes."""
    labels = sorted(set(_unique_labels(reference)) & set(_unique_labels(take)))
    if len(labels) < MIN_POSE_POINTS + 2:
        return {}
    first, second = (
        t.points[evenly_spaced(t.n_frames), [*map(t.full_labels.index, labels)]]
        for t in (reference, take)
    )
    found: dict[Pair, Misfits] = {}
    for _ in range(len(labels) // 2):
        # One at a time, because a swap spoils the comparison of labels around it.
        clearest = _find_clearest_swaps(first, second)
        if not clearest or found.keys() & clearest.keys():
            break
        second = _swap_columns(second, *clearest)
        found |= clearest
    return {(labels[a], labels[b]): misfits for (a, b), misfits in found.items()}


def _swap_columns(points: OtherPoints, *pairs: Pair) -> OtherPoints:
    """Return the points with the two columns of each pair swapped."""
    swapped = points.copy()
    for pair in pairs:
        swapped[:, pair] = points[:, pair[::-1]]
    return swapped


def _find_clearest_swaps(first: Points, second: OtherPoints) -> Mapping[Pair, Misfits]:
    """Return the pair, or the two pairs, whose swap reduces the misfit most.

    Two pairs are tried if no single pair is clear. Only labels that are neighbours in
    both takes are compared.
    """
    columns = np.arange(first.shape[1])
    sd = np.stack([distance_deviation(points, columns) for points in (first, second)])
    total_sd = np.hypot(*sd)
    np.fill_diagonal(total_sd, np.inf)
    near = np.argsort(total_sd, axis=1, kind="stable")[:, :MAX_NEIGHBOURS].tolist()
    pairs = {(min(a, b), max(a, b)) for a, others in enumerate(near) for b in others}
    compared = {pair: _compare_pair(first, second, sd, pair) for pair in sorted(pairs)}
    misfits = {pair: changes.misfits() for pair, changes in compared.items()}
    usual = finite_median(np.array([before for before, _ in misfits.values()]))
    minimum = max(MIN_SWAP_MISFIT_M, MIN_SWAP_MISFIT_RATIO * usual)
    clear = [
        {pair: each} for pair, each in misfits.items() if _is_clear(each, minimum)
    ] or [
        swaps
        for swaps in _find_clear_twins(compared, minimum)
        if _agree(first, _swap_columns(second, *swaps), sd, swaps)
    ]
    return max(reversed(clear), key=_total_gain, default={})


def _total_gain(swaps: Mapping[Pair, Misfits]) -> float:
    """Return by how much swaps reduce the misfit, in metres."""
    return sum(before - after for before, after in swaps.values())


def _is_clear(misfits: Misfits, minimum: float) -> bool:
    """Return whether a swap of two labels explains a misfit above a minimum."""
    before, after = misfits
    return before > minimum and after < _max_remaining(before)


def _max_remaining(before: float) -> float:
    """Return the misfit below which a swap explains the misfit before, in metres."""
    return min(SKIN_MOTION_M, MAX_REMAINING_MISFIT * before)


def _find_clear_twins(
    compared: Mapping[Pair, Changes], minimum: float
) -> Iterator[dict[Pair, Misfits]]:
    """Yield two pairs of labels that are clearly swapped if neither counts the other.

    Opposite markers of a plate that are all swapped leave its shape as it was, so
    that each pair agrees with the other. Markers elsewhere show both swaps.
    """
    for pair, changes in compared.items():
        if not changes.has_change_for_swap(minimum):
            continue
        for twin in combinations(sorted(changes.neighbours), 2):
            other = compared.get(twin)
            if other is None or not {*pair} <= {*other.neighbours}:
                continue
            swaps = {pair: changes.misfits(twin), twin: other.misfits(pair)}
            each_better = all(after < before for before, after in swaps.values())
            if each_better and _is_clear(_pool(swaps.values()), minimum):
                yield swaps


def _pool(misfits: Iterable[Misfits]) -> Misfits:
    """Return the root mean square of the misfits of several swaps, in metres."""
    before, after = np.sqrt(np.mean(np.square([*misfits]), axis=0)).tolist()
    return before, after


def _agree(
    first: Points,
    swapped: OtherPoints,
    sd: Float[Array, "2 n n"],
    swaps: Mapping[Pair, Misfits],
) -> bool:
    """Return whether pairs agree with all their neighbours after both are swapped."""
    remaining, _ = _pool(
        _compare_pair(first, swapped, sd, pair).misfits() for pair in swaps
    )
    return remaining < _max_remaining(_pool(swaps.values())[0])


def _compare_pair(
    first: Points, second: OtherPoints, sd: Float[Array, "2 n n"], pair: Pair
) -> Changes:
    """Return how the distances of two labels to their neighbours differ between takes.

    Compared is the difference of the two labels' distances to each steady neighbour of
    both. A swap changes its sign.

    Args:
        first: The labels in one take.
        second: The same labels in the other.
        sd: Deviation of all distances in each take, in metres.
        pair: Columns of the two labels.
    """
    pair_sd = np.hypot(*sd[:, pair].max(axis=1))
    pair_sd[list(pair)] = np.inf
    nearest = np.argsort(pair_sd, kind="stable")[:MAX_NEIGHBOURS]
    neighbours = nearest[pair_sd[nearest] < MAX_NEIGHBOUR_SD_M]
    difference, variance = [], np.full(len(neighbours), TAKE_DEVIATION_M**2)
    for points in (first, second):
        others = points[:, neighbours]
        a, b = (geometry.lengths(others - points[:, k, None]) for k in pair)
        median, median_sd = row_median_and_sd((a - b).T)
        difference.append(median)
        variance = variance + median_sd**2
    as_labelled, swapped = (
        0.5 * np.abs(difference[0] + sign * difference[1]) for sign in (-1.0, 1.0)
    )
    return Changes(tuple(neighbours.tolist()), variance, as_labelled, swapped)


def _finding(swap: SwapBetweenTakes, last: int) -> Finding:
    """Return the finding of a swap in a take with this last frame."""
    before, after = 1e3 * swap.misfit_before, 1e3 * swap.misfit_after
    here = f"take {swap.take + 1}"
    others = " and ".join(f"take {number + 1}" for number in swap.others)
    message = " and ".join(swap.labels) + (
        f" are swapped in {here}, compared with {others} "
        if swap.certain
        else f" are swapped between {here} and {others} "
    )
    message += f"({before:.0f} mm, {after:.0f} after); " + (
        "undone"
        if swap.certain
        else f"it is unknown which is right; changed in {here}, which has fewer frames"
    )
    subject, code = "-".join(swap.labels), "labels-swapped-between-takes"
    return repair_warning(code, message, subject, (0, last), swap.misfit_before)
