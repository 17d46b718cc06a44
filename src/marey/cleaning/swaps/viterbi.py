"""Viterbi search for the marker of each label in every frame.

The detected swap events are uncertain: a swap in a gap may be missed, and one event
does not show which of its two sides is right. The distances that markers keep to their
neighbours decide over the whole take.
"""

from collections.abc import Iterator

import numpy as np

from marey.cleaning.arrays import Array, Labelling, Markers, Points
from marey.cleaning.neighbours import (
    MAX_NEIGHBOURS,
    TINY_SD_M,
    Neighbours,
    distance_deviation,
    find_neighbours,
)
from marey.cleaning.swaps.detect import MIN_OWN_TO_OTHER_RATIO, SwapCandidates
from marey.numerics import Float, Int, geometry
from marey.numerics.thresholds import CERTAIN_SD, MOST

MIN_REFERENCES = 2
"""Neighbours below which the labels of a group are left as they are. Higher decides
fewer swaps. Chosen by hand."""

MAX_RELATIVE_SD = 0.25
"""Largest deviation of the distance to a reference neighbour, relative to the distance.
Higher compares markers across joints. Chosen by hand."""

SWAP_COST = CERTAIN_SD
"""Transition cost of ignoring a detected swap event, or of inserting a swap that was
not detected. The unit is a misfit of one standard deviation of one label for one
correlation time. Higher trusts the detection more."""

INSERT_AT_UNPREDICTED_COST = 2.0
"""Transition cost of inserting a swap at an unpredicted step that does not end at
another marker, in the same unit. Chosen by hand."""

SWAPPED_STATE_COST = 0.5
"""Cost of any state with swapped labels for one correlation time, in the same unit. It
is a prior for labels that are right most of the time. Chosen by hand."""

Permutation = tuple[int, ...]
"""The marker of each label of a group."""


def viterbi_labels(
    points: Points, neighbours: Neighbours, candidates: SwapCandidates
) -> Labelling:
    r"""Return the most likely marker of each label in every frame (Viterbi search).

    The hidden state of a group of labels is a permutation of its markers. Between
    segment borders the state is constant. The search minimises

    .. math:: \sum_k c_k(s_k) + \sum_k t_k(s_{k-1}, s_k),

    where the state cost :math:`c_k` is the sum over frames and labels of the deviations
    of distances to reference neighbours from their medians, in standard deviations,
    divided by the correlation time. The transition cost :math:`t_k` is zero for a
    detected event, and a constant for ignoring an event or for inserting a swap.

    So a swap that was missed in a gap does not invert all labels after it, and the side
    of an event that holds for longer is right.

    Args:
        points: Positions in metres, NaN where a label was not seen.
        neighbours: From `find_neighbours`.
        candidates: From `detect_swap_events`.
    """
    n_frames, n = points.shape[:2]
    marker_of_label = np.tile(np.arange(n), (n_frames, 1))
    for group in swap_groups(candidates, n):
        columns = np.array(group)
        n_references = [
            len(reference_neighbours(neighbours, marker, columns)[0])
            for marker in group
        ]
        if min(n_references) >= MIN_REFERENCES:
            search = _ViterbiSearch(points, neighbours, columns, candidates)
            marker_of_label[:, group] = search.best_path()
    return marker_of_label


def swap_groups(candidates: SwapCandidates, n: int) -> Iterator[list[int]]:
    """Yield the groups of labels that swap with each other, directly or indirectly."""
    root = list(range(n))
    cycles = (*(event.labels for event in candidates.events), *candidates.suspects)
    for cycle in cycles:
        merged = {root[label] for label in cycle}
        root = [min(merged) if r in merged else r for r in root]
    for first in range(n):
        group = [label for label in range(n) if root[label] == first]
        if len(group) > 1:
            yield group


class _ViterbiSearch:
    """States and costs of one group of labels."""

    def __init__(
        self,
        points: Array,
        neighbours: Neighbours,
        group: Markers,
        candidates: SwapCandidates,
    ) -> None:
        self.points, self.neighbours, self.group = points, neighbours, group
        position = {int(label): k for k, label in enumerate(group)}
        identity = np.arange(len(group))
        self.event_permutation: dict[int, Array] = {}
        self.event_clarity: dict[int, float] = {}
        # The first state is that all labels are right.
        states: list[Permutation] = [tuple(identity.tolist())]
        before = identity
        for event in candidates.events:
            if position.keys().isdisjoint(event.labels):
                continue
            after = np.array([position[int(m)] for m in event.marker_of_label[group]])
            # The label of the group that had each label's new marker before.
            permutation = np.argsort(before)[after]
            self.event_permutation[event.frame] = permutation
            clarity = event.distance_to_own / max(
                MIN_OWN_TO_OTHER_RATIO * event.distance_to_other, 1e-12
            )
            self.event_clarity[event.frame] = clarity
            states += [tuple(after.tolist()), tuple(permutation.tolist())]
            before = after
        for a, b in candidates.suspects:
            if a in position and b in position:
                pair = identity.copy()
                pair[[position[a], position[b]]] = position[b], position[a]
                states.append(tuple(pair.tolist()))
        self.states = list(dict.fromkeys(states))
        unpredicted = candidates.unpredicted
        in_group = np.isin(unpredicted.marker, group)
        self.unpredicted_frames = set(unpredicted.end[in_group].tolist())

    def best_path(self) -> Labelling:
        """Return the marker of each label of the group in every frame."""
        borders, state_cost = self._segments()
        total, previous = state_cost[0], []
        for k in range(1, len(state_cost)):
            cost = self._transition_cost(int(borders[k])) + total[:, None]
            previous.append(cost.argmin(axis=0))
            total = cost.min(axis=0) + state_cost[k]
        path = [int(total.argmin())]
        for best_previous in reversed(previous):  # backtracking
            path.append(int(best_previous[path[-1]]))
        states = np.array(self.states)[path[::-1]]
        return np.asarray(self.group[np.repeat(states, np.diff(borders), axis=0)])

    def _transition_cost(self, frame: int) -> Float[Array, "old new"]:
        """Return the cost of each change of state at a frame."""
        n = len(self.states)
        if frame not in self.event_permutation:
            is_unpredicted = frame in self.unpredicted_frames
            insert = INSERT_AT_UNPREDICTED_COST if is_unpredicted else SWAP_COST
            return insert * (1.0 - np.eye(n))
        ignore = SWAP_COST * self.event_clarity[frame]
        cost = np.full((n, n), ignore + SWAP_COST)
        np.fill_diagonal(cost, ignore)
        for old, state in enumerate(self.states):
            new = tuple(np.array(state)[self.event_permutation[frame]].tolist())
            if new in self.states:
                cost[old, self.states.index(new)] = 0.0
        return cost

    def _segments(self) -> tuple[Int[Array, " border"], Float[Array, "segment state"]]:
        """Return the borders of segments and the cost of each state in each segment.

        Labels can change at events, at unpredicted steps and where a label reappears.
        """
        seen = np.isfinite(self.points[:, self.group]).all(axis=-1)
        reappears = np.flatnonzero((seen[1:] & ~seen[:-1]).any(axis=1)) + 1
        changes = {*reappears.tolist(), *self.event_permutation}
        inner = sorted((changes | self.unpredicted_frames) - {0})
        borders = np.array([0, *inner, len(seen)])
        misfit = self._misfit() / self.neighbours.correlation_frames
        in_segment = np.add.reduceat(misfit, borders[:-1], axis=0)
        labels = np.arange(len(self.group))
        cost = np.stack(
            [in_segment[:, labels, state].sum(axis=1) for state in self.states], axis=1
        )
        per_frame = SWAPPED_STATE_COST / self.neighbours.correlation_frames
        cost[:, 1:] += per_frame * np.diff(borders)[:, None]
        return borders, cost

    def _misfit(self) -> Float[Array, "frame label marker"]:
        """Return how badly each label keeps the reference distances of each marker.

        Mean deviation from the median distances in standard deviations, each bounded;
        zero for labels that are not seen.
        """
        misfit = np.zeros((len(self.points), len(self.group), len(self.group)))
        for k, marker in enumerate(self.group.tolist()):
            others, median, sd = reference_neighbours(
                self.neighbours, marker, self.group
            )
            for label, column in enumerate(self.group.tolist()):
                vector = self.points[:, others] - self.points[:, column, None]
                deviation = np.abs(geometry.lengths(vector) - median) / sd
                known = np.isfinite(deviation)
                bounded = np.where(known, np.minimum(deviation, CERTAIN_SD), 0.0)
                count = np.maximum(known.sum(axis=1), 1)
                misfit[:, label, k] = bounded.sum(axis=1) / count
        return misfit


def reference_neighbours(
    neighbours: Neighbours, marker: int, group: Markers
) -> tuple[Array, Array, Array]:
    """Return steady neighbours outside a group, with median and deviation in metres."""
    index = neighbours.index[marker]
    distance, sd = neighbours.distance[marker], neighbours.distance_sd[marker]
    is_reference = (sd < MAX_RELATIVE_SD * distance) & ~np.isin(index, group)
    sd = np.maximum(sd, TINY_SD_M)[is_reference]
    return index[is_reference], distance[is_reference], sd


# --- second search --------------------------------------------------------------------


def refine_with_repaired_labels(
    points: Points, rate: float, candidates: SwapCandidates, first: Labelling
) -> Labelling:
    """Return the marker of each label by the better of two Viterbi searches.

    A long swap spoils the distances that are learned from the labels as recorded: if
    two near markers are swapped for 40 % of the take, the distances fit either order.
    The second search learns the distances from labels that follow every detected event,
    which are right if no event was missed. Each group of labels takes the search under
    which its markers keep their distances better.

    Args:
        points: Positions in metres, NaN where a label was not seen.
        rate: Frames per second.
        candidates: From `detect_swap_events`.
        first: From `viterbi_labels`, with neighbours from the labels as recorded.
    """
    followed = sort_by_marker(points, _follow_events(candidates, first.shape))
    neighbours = find_neighbours(followed, rate, labels_doubtful=True)
    second = viterbi_labels(points, neighbours, candidates)
    best = first.copy()
    for group in swap_groups(candidates, first.shape[1]):
        if (first[:, group] == second[:, group]).all():
            continue
        of_first, of_second = (
            _total_deviation(sort_by_marker(points, labels), group)
            for labels in (first, second)
        )
        if of_second < MOST * of_first:
            best[:, group] = second[:, group]
    return best


def sort_by_marker(values: Array, marker_of_label: Labelling) -> Array:
    """Return the values of labels in the order of their markers."""
    label_of_marker = np.argsort(marker_of_label, axis=1)
    return np.asarray(values[np.arange(len(values))[:, None], label_of_marker])


def _follow_events(candidates: SwapCandidates, shape: tuple[int, ...]) -> Labelling:
    """Return the marker of each label if all events are right.

    Each marker is named by the label that has it longest (optimal assignment).
    """
    from scipy.optimize import linear_sum_assignment

    n_frames, n = shape
    marker_of_label = np.tile(np.arange(n), (n_frames, 1))
    for event in candidates.events:
        marker_of_label[event.frame :] = event.marker_of_label
    n_shared = np.zeros((n, n))
    np.add.at(n_shared, (marker_of_label, np.arange(n)), 1.0)
    name = linear_sum_assignment(n_shared, maximize=True)[1]
    return np.asarray(name[marker_of_label])


def _total_deviation(points: Points, group: list[int]) -> float:
    """Return the deviation of distances from a group to its steadiest neighbours.

    The sum of standard deviations, in metres.
    """
    sd = distance_deviation(points, np.array(group))
    sd[:, group] = np.inf
    return float(np.sort(sd, axis=1)[:, :MAX_NEIGHBOURS].sum())
