"""All subjects of a stream: their trackers, and new skeletons taken over."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from marey.anatomy.names import without_subject
from marey.errors import DataError, OptionError
from marey.live.frame import Frame
from marey.live.learning.take_over import FADE_S, Fade
from marey.live.posing.tracking import LivePose, SkeletonTracker, SubjectPose
from marey.live.posing.virtual_tracking import VirtualTracker
from marey.live.recognition import recognise_best
from marey.live.statistics import RATE_TOLERANCE
from marey.numerics.thresholds import MIN_POSE_POINTS
from marey.skeleton import Skeleton

Tracker = SkeletonTracker | VirtualTracker


class Performers:
    """The subjects of a stream, each with its skeleton.

    Args:
        names: Names of the subjects that are known from the start; numbers are added
            to those that are not all different.
        skeletons: Their skeletons.
        virtual: Whether they follow their sensors directly, without optimisation.
        options: Fields of `GaussNewtonOptions`.
    """

    def __init__(
        self,
        names: Sequence[str],
        skeletons: Sequence[Skeleton],
        virtual: bool,
        options: dict[str, Any],
    ) -> None:
        self.names = tuple(names)
        if len(set(names)) < len(names):
            self.names = tuple(f"{name}-{i + 1}" for i, name in enumerate(names))
        self.skeletons = separate_labels(self.names, skeletons)
        self._virtual, self._options = virtual, options
        self._trackers: list[Tracker] = []
        self._fades: list[Fade | None] = []
        self._shown: tuple[SubjectPose, ...] = ()
        self._next: tuple[tuple[Skeleton, ...], list[Tracker]] = ((), [])
        self._searcher = ThreadPoolExecutor(1, "marey search")
        self._search: Future[Mapping[str, str]] | None = None

    def prepare(self, rate: float) -> None:
        """Make trackers for a rate in hertz, unless they are there."""
        known = self._trackers[0].rate if self._trackers else 0.0
        if self.skeletons and abs(rate - known) > RATE_TOLERANCE * known:
            self._trackers = self._make_trackers(self.names, self.skeletons, rate)
            self._fades = [None] * len(self._trackers)

    def _make_trackers(
        self, names: Sequence[str], skeletons: Sequence[Skeleton], rate: float
    ) -> list[Tracker]:
        pairs = zip(names, skeletons, strict=True)
        if self._virtual:
            return [VirtualTracker(one, rate, name) for name, one in pairs]
        options = self._options
        return [SkeletonTracker(one, rate, name, **options) for name, one in pairs]

    def update(self, frame: Frame) -> LivePose:
        """Return the poses in a frame of all subjects that were seen."""
        shown = []
        for i, tracker in enumerate(self._trackers):
            pose = tracker.update(frame)
            if pose is None:
                continue
            fade = self._fades[i]
            if fade is not None:
                pose = replace(pose, T_world_joint=fade.update(pose))
                self._fades[i] = None if fade.has_ended else fade
            shown.append(pose)
        self._shown = tuple(shown)
        return LivePose(frame, self._shown, time.monotonic() - frame.arrival)

    def check_names(self, frame: Frame) -> None:
        """Refuse a stream that has no marker and no sensor of any skeleton.

        Raises:
            DataError: If it has none.
        """
        trackers = [one for one in self._trackers if isinstance(one, SkeletonTracker)]
        if not trackers or any(tracker.is_in_stream for tracker in trackers):
            return
        needed = [
            name
            for skeleton in self.skeletons
            for name in (*skeleton.marker_labels, *skeleton.sensor_names)
        ]
        found = (frame.labels, frame.sensor_names)
        raise DataError("stream", found=found, needed=f"some of {needed}")

    def find_in_cloud(self, frame: Frame) -> Mapping[str, str]:
        """Return new labels of points, by their names: those of skeletons not seen now.

        The search is in a thread beside the loop, one frame at a time.

        Args:
            frame: Points with lasting names.
        """
        if self._search is not None and self._search.done():
            found, self._search = self._search.result(), None
            return found
        labels = [one.marker_labels for one in self.skeletons]
        seen = {
            name
            for name, point in zip(frame.labels, frame.points, strict=True)
            if np.isfinite(point[0])
        }
        known = set[str]().union(*labels)
        lost = [
            skeleton
            for skeleton, names in zip(self.skeletons, labels, strict=True)
            if names and len(seen.intersection(names)) < MIN_POSE_POINTS
        ]
        if self._search is None and lost:
            free = frame.select([name not in known for name in frame.labels])
            rate = self._trackers[0].rate
            self._search = self._searcher.submit(recognise_best, lost, free, rate)
        return {}

    def close(self) -> None:
        """End the thread."""
        self._searcher.shutdown(cancel_futures=True)

    def make_next(
        self, names: Sequence[str], skeletons: Sequence[Skeleton], rate: float
    ) -> None:
        """Make the trackers of a take-over to come; any thread may call this."""
        made = self._make_trackers(names, skeletons, rate)
        self._next = (tuple(skeletons), made)

    def take_over(
        self,
        names: Sequence[str],
        skeletons: Sequence[Skeleton],
        frames: Sequence[Frame],
        rate: float,
    ) -> None:
        """Go on with other skeletons from a frame on, without a jump.

        New trackers start some frames earlier, so that their poses have converged.

        Args:
            names: Names of the subjects.
            skeletons: Their skeletons.
            frames: The newest frames; in the last one the old skeletons were shown.
            rate: Frames per second.
        """
        made_for, trackers = self._next
        if made_for != tuple(skeletons) or trackers[0].rate != rate:
            trackers = self._make_trackers(names, skeletons, rate)
        poses = [[one.update(frame) for frame in frames][-1] for one in trackers]
        self._fades = [
            None if pose is None else Fade(self._shown, pose, FADE_S * rate)
            for pose in poses
        ]
        self.names, self.skeletons = tuple(names), tuple(skeletons)
        self._trackers = trackers

    def set_zero_pose(self) -> None:
        """Take the newest sensors for the rest pose of every virtual skeleton.

        Raises:
            OptionError: If the skeletons are not virtual.
            DataError: If a sensor was never seen.
        """
        if not self._virtual:
            needed = "virtual=True: a zero pose is of a virtual skeleton"
            raise OptionError("zero pose", found="no virtual skeleton", needed=needed)
        for tracker in self._trackers:
            assert isinstance(tracker, VirtualTracker)
            tracker.set_zero_pose()
        self.skeletons = tuple(tracker.skeleton for tracker in self._trackers)


def separate_labels(
    names: Sequence[str], skeletons: Sequence[Skeleton]
) -> tuple[Skeleton, ...]:
    """Return skeletons whose markers have labels that differ.

    Where two skeletons have a label in common, all labels begin with the name of the
    subject, "ANN:LASI".
    """
    labels = [label for one in skeletons for label in one.marker_labels]
    if len(set(labels)) == len(labels):
        return tuple(skeletons)
    return tuple(
        replace(
            one,
            marker_labels=tuple(
                f"{name}:{without_subject(label)}" for label in one.marker_labels
            ),
        )
        for name, one in zip(names, skeletons, strict=True)
    )
