"""Detection of swap events: frames at which labels jump to each other's markers."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from marey.cleaning.arrays import Array, Markers, Points, Values
from marey.cleaning.neighbours import (
    MarkerPredictor,
    MarkerSteps,
    Neighbours,
    predict_from_neighbours,
)
from marey.numerics.thresholds import OUTLIER_SD

MIN_OWN_TO_OTHER_RATIO = OUTLIER_SD
"""Distance of a swapped label from its own marker's prediction, relative to that from
the other marker's prediction, which is its error. Higher misses swaps of near
markers."""

SUSPECT_RATIO = 1.0
"""The same ratio for a suspected swap. Chosen by hand."""

MAX_HIDDEN_S = 2.0
"""Seconds for which the position of an unseen marker is predicted. Higher finds swaps
across longer gaps, with more false alarms. Chosen by hand."""


@dataclass(frozen=True, slots=True, eq=False)
class SwapEvent:
    """A frame from which labels are on other markers than before."""

    frame: int
    marker_of_label: Int[Array, " label"]
    """The marker of each label from this frame on."""

    labels: tuple[int, ...]
    """The labels that changed their marker."""

    distance_to_own: float
    """Mean distance of these labels from the predictions of their own markers, in
    metres."""

    distance_to_other: float
    """Mean distance from the predictions of their new markers, in metres."""


@dataclass(frozen=True, slots=True, eq=False)
class SwapCandidates:
    """What the detection found, for the Viterbi search to decide."""

    events: tuple[SwapEvent, ...]
    """In the order of time."""

    suspects: tuple[tuple[int, int], ...]
    """Pairs of labels that may be swapped, by the motion of one of them."""

    unpredicted: MarkerSteps
    """All steps that the neighbours do not predict, in the order of time."""


def detect_swap_events(
    points: Points, neighbours: Neighbours, rate: float
) -> SwapCandidates:
    """Return the frames at which labels change their markers, in the order of time.

    A label changes its marker if its next position is far from the prediction of its
    own marker but near the prediction of another marker. It must be part of a closed
    cycle, in which each label takes the marker of the next, or the cycle must end at a
    marker that no label shows.

    Args:
        points: Positions in metres, NaN where a label was not seen.
        neighbours: From `find_neighbours`.
        rate: Frames per second.
    """
    predictor = MarkerPredictor(points, neighbours)
    unpredicted = predictor.find_unpredicted_steps()
    tracker = _LabelTracker(predictor, int(MAX_HIDDEN_S * rate))
    events = [
        event
        for frame in np.unique(unpredicted.end).tolist()
        if (
            event := tracker.detect(frame, unpredicted.marker[unpredicted.end == frame])
        )
    ]
    return SwapCandidates(tuple(events), tuple(sorted(tracker.suspects)), unpredicted)


class _LabelTracker:
    """The marker of each label, updated frame by frame."""

    def __init__(self, predictor: MarkerPredictor, max_hidden: int) -> None:
        self.predictor = predictor
        self.points = points = predictor.points
        self.max_hidden = max_hidden
        self.seen = np.isfinite(points).all(axis=-1)
        frames = np.where(self.seen, np.arange(len(points))[:, None], -1)
        self.last_seen = np.maximum.accumulate(frames, axis=0)
        n = points.shape[1]
        self.marker_of_label = np.arange(n)
        # The frame of each marker's last change of label, and its label and the frame
        # in which it was last seen at that time.
        self.change_frame = np.zeros(n, dtype=np.int64)
        self.old_label, self.old_frame = np.arange(n), np.full(n, -1)
        self.suspects: set[tuple[int, int]] = set()

    def _last_observation(self, frame: int) -> tuple[Array, Array]:
        """Return the label and frame that last showed each marker before a frame."""
        label = np.argsort(self.marker_of_label)
        last = self.last_seen[frame - 1, label]
        is_old = last < self.change_frame
        return (
            np.where(is_old, self.old_label, label),
            np.where(is_old, self.old_frame, last),
        )

    def detect(self, frame: int, labels: Markers) -> SwapEvent | None:
        """Return the swap event of a frame, if any, and update the markers of labels.

        Args:
            frame: The frame, later than those of previous calls.
            labels: The labels with an unpredicted step to this frame.
        """
        observed = self._last_observation(frame)
        last_label, last_frame = observed
        label_of_marker = np.argsort(self.marker_of_label)
        is_hidden = (
            ~self.seen[frame, label_of_marker]
            & (last_frame >= 0)
            & (frame - last_frame <= self.max_hidden)
        )
        if len(labels) == 1 and not is_hidden.any():  # no other marker to swap with
            return None
        hidden = np.flatnonzero(is_hidden)
        markers = np.concatenate([self.marker_of_label[labels], hidden])
        start = last_frame[markers]
        predicted = predict_from_neighbours(
            self.points,
            self.predictor.neighbours,
            markers,
            self.points[start, last_label[markers]],
            start,
            np.full(len(markers), frame),
            excluded=labels,
        )
        distance = np.linalg.norm(self.points[frame, labels, None] - predicted, axis=-1)
        distance = np.nan_to_num(distance, nan=np.inf)
        limit = self.predictor.limit(markers, frame - start)
        for k, m in _match(distance, OUTLIER_SD * limit, SUSPECT_RATIO).items():
            pair = int(labels[k]), int(label_of_marker[markers[m]])
            self.suspects.add((min(pair), max(pair)))
        match = _match(distance, limit, MIN_OWN_TO_OTHER_RATIO)
        following = {
            int(labels[k]): int(label_of_marker[markers[m]]) for k, m in match.items()
        }
        cycles = _find_cycles(following, set(label_of_marker[hidden].tolist()))
        if not cycles:
            return None
        self._apply(frame, cycles, observed)
        changed = tuple(label for cycle in cycles for label in cycle)
        row_of = {int(label): k for k, label in enumerate(labels)}
        rows = [row_of[label] for label in changed if label in following]
        return SwapEvent(
            frame,
            self.marker_of_label,
            changed,
            float(np.mean([distance[k, k] for k in rows])),
            float(np.mean([distance[k, match[k]] for k in rows])),
        )

    def _apply(
        self, frame: int, cycles: list[list[int]], observed: tuple[Array, Array]
    ) -> None:
        """Update the marker of each label from this frame on."""
        marker_of_label = self.marker_of_label.copy()
        for cycle in cycles:
            marker_of_label[cycle] = self.marker_of_label[np.roll(cycle, -1)]
            markers = self.marker_of_label[cycle]
            self.change_frame[markers] = frame
            self.old_label[markers] = observed[0][markers]
            self.old_frame[markers] = observed[1][markers]
        self.marker_of_label = marker_of_label


def _find_cycles(following: dict[int, int], hidden: set[int]) -> list[list[int]]:
    """Return disjoint cycles of labels, each taking the marker of the next.

    Args:
        following: For each label that left its marker, the label of its new marker.
        hidden: Labels that are not seen in this frame; a cycle may end with one.
    """
    cycles: list[list[int]] = []
    followed = set(following.values())
    for first in sorted(following, key=lambda label: label in followed):
        cycle, label = [first], following[first]
        while label in following and label not in cycle:
            cycle.append(label)
            label = following[label]
        if label in hidden:
            cycle.append(label)
        is_closed = label in hidden or label == first
        if is_closed and not any(set(cycle) & set(other) for other in cycles):
            cycles.append(cycle)
    return cycles


def _match(
    distance: Float[Array, "label marker"], limit: Values, ratio: float
) -> dict[int, int]:
    """Return the row of each label that left its marker, with the column it moved to.

    The first columns are the labels' own markers, the others are unseen. Each marker
    gets at most one label, the nearest.

    Args:
        distance: From each label to the prediction of each marker, in metres.
        limit: Prediction tolerance of each marker, in metres.
        ratio: Distance to the own marker, relative to the other one.
    """
    n = len(distance)
    own = np.diagonal(distance)
    others = distance.copy()
    np.fill_diagonal(others[:, :n], np.inf)
    # No other label confirms an unseen marker, so it must be within the tolerance.
    others[:, n:][distance[:, n:] > limit[n:]] = np.inf
    best = others.argmin(axis=1)
    miss = others[np.arange(n), best]
    has_left = (own > limit[:n]) & (ratio * miss < own) & np.isfinite(own)
    match: dict[int, int] = {}
    for k in sorted(np.flatnonzero(has_left).tolist(), key=lambda k: float(miss[k])):
        if best[k] not in match.values():
            match[k] = int(best[k])
    return match
