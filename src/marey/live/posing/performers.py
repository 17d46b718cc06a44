"""All subjects of a stream: their trackers, and new skeletons taken over."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from marey.errors import OptionError
from marey.live.frame import Frame
from marey.live.learning.take_over import FADE_S, Fade
from marey.live.posing.tracking import LivePose, SkeletonTracker, SubjectPose
from marey.live.posing.virtual_tracking import VirtualTracker
from marey.live.statistics import RATE_TOLERANCE
from marey.skeleton import Skeleton

Tracker = SkeletonTracker | VirtualTracker


class Performers:
    """The subjects of a stream, each with its skeleton.

    Args:
        skeletons: Those that are known from the start.
        virtual: Whether they follow their sensors directly, without optimisation.
        options: Fields of `GaussNewtonOptions`.
    """

    def __init__(
        self, skeletons: Sequence[Skeleton], virtual: bool, options: dict[str, Any]
    ) -> None:
        self.skeletons = tuple(skeletons)
        self.names = tuple(skeleton.names[0] for skeleton in skeletons)
        if len(set(self.names)) < len(self.names):
            self.names = tuple(f"{name}{i + 1}" for i, name in enumerate(self.names))
        self._virtual, self._options = virtual, options
        self._trackers: list[Tracker] = []
        self._fades: list[Fade | None] = []
        self._shown: tuple[SubjectPose, ...] = ()
        self._next: tuple[tuple[Skeleton, ...], list[Tracker]] = ((), [])

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
        """Return the poses of all subjects in a frame."""
        shown = []
        for i, tracker in enumerate(self._trackers):
            pose = tracker.update(frame)
            fade = self._fades[i]
            if fade is not None:
                pose = replace(pose, T_world_joint=fade.update(pose))
                self._fades[i] = None if fade.has_ended else fade
            shown.append(pose)
        self._shown = tuple(shown)
        return LivePose(frame, self._shown, time.monotonic() - frame.arrival)

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
        self._fades = [Fade(self._shown, pose, FADE_S * rate) for pose in poses]
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
