"""Detection of swap events: frames at which labels jump to each other's markers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from marey.cleaning.arrays import Array, Frames, Markers, Points, Values, Vectors
from marey.cleaning.neighbours import (
    MarkerPredictor,
    MarkerSteps,
    Neighbours,
    predict_from_neighbours,
)
from marey.numerics import Float, Int, geometry
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

PREDICTED_PER_CHUNK = 64
"""Frames whose positions are predicted at once. No effect on answers; higher repeats
more predictions after each event."""


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
    events = tuple(tracker.detect_events(unpredicted))
    return SwapCandidates(events, tuple(sorted(tracker.suspects)), unpredicted)


class _Jump(NamedTuple):
    """Labels that jump in one frame, and the markers that they may have jumped to."""

    frame: int
    labels: Markers
    hidden: Markers
    """Markers that were seen shortly before, but not in this frame."""

    markers: Markers
    """The markers of the labels, then the hidden ones."""

    last_label: Markers
    """The label that last showed each of these markers, and in which frame."""

    last_frame: Frames


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

    def _last_observation(self, frame: int | Array) -> tuple[Array, Array]:
        """Return the label and frame that last showed each marker before a frame.

        With a column of frames, which lie between two events, one row for each.
        """
        label = np.argsort(self.marker_of_label)
        last = self.last_seen[frame - 1, label]
        is_old = last < self.change_frame
        return (
            np.where(is_old, self.old_label, label),
            np.where(is_old, self.old_frame, last),
        )

    def detect_events(self, unpredicted: MarkerSteps) -> Iterator[SwapEvent]:
        """Yield the swap events at the ends of steps, which are in the order of time.

        Positions are predicted for many frames at once, and again for those that follow
        an event, because labels are on other markers from there on.
        """
        frames, first = np.unique(unpredicted.end, return_index=True)
        labels = np.split(unpredicted.marker, first[1:])
        done = 0
        while done < len(frames):
            batch = slice(done, done + PREDICTED_PER_CHUNK)
            jumps = self._jumps(frames[batch], labels[batch])
            for jump, predicted in zip(jumps, self._predict(jumps), strict=True):
                done += 1
                event = self._detect(jump, predicted)
                if event is not None:
                    yield event
                    break

    def _jumps(self, frames: Frames, labels: list[Markers]) -> list[_Jump]:
        """Return the markers that labels may have jumped to in each of some frames."""
        rows = frames[:, None]
        last_label, last_frame = self._last_observation(rows)
        is_hidden = (
            ~self.seen[rows, np.argsort(self.marker_of_label)]
            & (last_frame >= 0)
            & (rows - last_frame <= self.max_hidden)
        )
        jumps = []
        for k, frame in enumerate(frames.tolist()):
            hidden = np.flatnonzero(is_hidden[k])
            markers = np.concatenate([self.marker_of_label[labels[k]], hidden])
            of_markers = last_label[k, markers], last_frame[k, markers]
            jumps.append(_Jump(frame, labels[k], hidden, markers, *of_markers))
        return jumps

    def _predict(self, jumps: list[_Jump]) -> list[Vectors]:
        """Return the predicted positions of the markers of each jump, in metres."""
        sizes = [len(jump.markers) for jump in jumps]
        start = np.concatenate([jump.last_frame for jump in jumps])
        last_label = np.concatenate([jump.last_label for jump in jumps])
        jumped = np.zeros((len(jumps), self.points.shape[1]), dtype=bool)
        for k, jump in enumerate(jumps):
            jumped[k, jump.labels] = True
        predicted = predict_from_neighbours(
            self.points,
            self.predictor.neighbours,
            np.concatenate([jump.markers for jump in jumps]),
            self.points[start, last_label],
            start,
            np.repeat([jump.frame for jump in jumps], sizes),
            excluded=np.repeat(jumped, sizes, axis=0),
        )
        return np.split(predicted, np.cumsum(sizes)[:-1])

    def _detect(self, jump: _Jump, predicted: Vectors) -> SwapEvent | None:
        """Return the swap event of a frame, if any, and update the markers of labels.

        Args:
            jump: The labels that jump; its frame is later than those of previous calls.
            predicted: Predicted positions of its markers, in metres.
        """
        frame, labels, markers = jump.frame, jump.labels, jump.markers
        if len(markers) == 1:  # no other marker to swap with
            return None
        label_of_marker = np.argsort(self.marker_of_label)
        distance = geometry.lengths(self.points[frame, labels, None] - predicted)
        distance[np.isnan(distance)] = np.inf
        limit = self.predictor.limit(markers, frame - jump.last_frame)
        for k, m in _match(distance, OUTLIER_SD * limit, SUSPECT_RATIO).items():
            pair = int(labels[k]), int(label_of_marker[markers[m]])
            self.suspects.add((min(pair), max(pair)))
        match = _match(distance, limit, MIN_OWN_TO_OTHER_RATIO)
        following = {
            int(labels[k]): int(label_of_marker[markers[m]]) for k, m in match.items()
        }
        cycles = _find_cycles(following, set(label_of_marker[jump.hidden].tolist()))
        if not cycles:
            return None
        self._apply(frame, cycles)
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

    def _apply(self, frame: int, cycles: list[list[int]]) -> None:
        """Update the marker of each label from this frame on."""
        observed = self._last_observation(frame)
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
    is_far = (own > limit[:n]) & np.isfinite(own)
    if not is_far.any():
        return {}
    others = distance.copy()
    np.fill_diagonal(others[:, :n], np.inf)
    # No other label confirms an unseen marker, so it must be within the tolerance.
    others[:, n:][distance[:, n:] > limit[n:]] = np.inf
    best = others.argmin(axis=1)
    miss = others[np.arange(n), best]
    has_left = is_far & (ratio * miss < own)
    match: dict[int, int] = {}
    for k in sorted(np.flatnonzero(has_left).tolist(), key=lambda k: float(miss[k])):
        if best[k] not in match.values():
            match[k] = int(best[k])
    return match
