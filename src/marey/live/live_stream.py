"""A live stream, from packets to poses."""

from collections.abc import Iterator, Sequence
from math import isfinite
from os import PathLike, fspath
from types import TracebackType
from typing import Any

import numpy as np

from marey.errors import OptionError, StreamError
from marey.io import read_skeleton
from marey.live.address import parse_address
from marey.live.frame import Frame
from marey.live.intake import Intake
from marey.live.recorder import Recorder
from marey.live.sinks import Sink, open_sink
from marey.live.sources import CONNECT_S, open_source
from marey.live.statistics import RATE_TOLERANCE, StreamStatistics
from marey.live.tracking import LivePose, SkeletonTracker
from marey.report import Finding
from marey.skeleton import Skeleton

RECORD = "record"


class Stream(Iterator[LivePose]):
    """The poses of a stream as they come; see `marey.stream`.

    Iteration ends when the source does, or when it is silent for `timeout` seconds. A
    loop that is slower than the stream gets the latest pose each time.
    """

    def __init__(
        self,
        source: str,
        skeleton: Skeleton | None,
        to: Sequence[str],
        *,
        timeout: float,
        retry: bool,
        overwrite: bool,
        options: dict[str, Any],
    ) -> None:
        self.source, self.timeout, self.retry = source, timeout, retry
        self.skeleton = skeleton
        self._options = options
        self._tracker: SkeletonTracker | None = None
        self._n_given = 0
        self._sinks: list[Sink] = []
        opened = open_source(source, timeout)
        recorders: list[Recorder] = []
        try:
            if skeleton is not None and isfinite(opened.rate):
                self._tracker = SkeletonTracker(skeleton, opened.rate, **options)
            for text in to:
                address = parse_address(text)
                if address.scheme == RECORD:
                    recorders.append(
                        Recorder(
                            address.target,
                            source=source,
                            rate=opened.rate,
                            overwrite=overwrite,
                        )
                    )
                else:
                    self._sinks.append(open_sink(text))
        except BaseException:
            opened.close()
            for recorder in recorders:
                recorder.close()
            for sink in self._sinks:
                sink.close()
            raise
        self._stated_rate = opened.rate
        self._intake = Intake(opened, recorders, retry)

    @property
    def statistics(self) -> StreamStatistics:
        """What was measured of the stream so far: loss, jitter, rate and clock."""
        return self._intake.statistics

    def findings(self) -> tuple[Finding, ...]:
        """Return what is worth knowing of the stream so far."""
        return self.statistics.findings()

    def __next__(self) -> LivePose:
        """Return the latest pose, when there is a new one.

        Raises:
            StreamError: If no frame came within `timeout` seconds from the start.
            DataError: If the first frame has none of the skeleton's markers.
        """
        frame = self._intake.latest(self.timeout)
        while frame is None:
            if self._intake.has_ended or not (self.retry or self._n_given == 0):
                raise StopIteration
            if not self.retry:
                self._fail_silent()
            frame = self._intake.latest(self.timeout)
        self._n_given += 1
        pose = self._pose(frame)
        for sink in self._sinks:
            sink.send(pose.as_frame())
        return pose

    def _pose(self, frame: Frame) -> LivePose:
        if self.skeleton is None:
            return LivePose(frame)
        rate = self._stated_rate
        if not isfinite(rate):
            rate = self.statistics.rate
        if not isfinite(rate):  # the first frames of a sender that states no rate
            return LivePose(frame)
        tracker = self._tracker
        if tracker is None or abs(rate / tracker.rate - 1.0) > RATE_TOLERANCE:
            tracker = SkeletonTracker(self.skeleton, rate, **self._options)
            self._tracker = tracker
        return tracker.update(frame)

    def _fail_silent(self) -> None:
        n_damaged = self.statistics.damaged
        found = f"{n_damaged} packets of another protocol" if n_damaged else "none"
        raise StreamError(
            self.source,
            expected=f"frames within {self.timeout:g} s; is the sender on, and does it "
            "send to this machine and port?",
            found=found,
        )

    def close(self) -> None:
        """End the stream; recordings are closed, ports are free."""
        self._intake.close()
        while self._sinks:
            self._sinks.pop().close()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def stream(
    source: str | PathLike[str],
    skeleton: Skeleton | str | PathLike[str] | None = None,
    *,
    to: str | Sequence[str] = (),
    timeout: float = CONNECT_S,
    retry: bool = False,
    overwrite: bool = False,
    **options: Any,
) -> Stream:
    """Return the poses of a skeleton in a live stream, as they come.

    ::

        with marey.stream("natnet://127.0.0.1", "ann.skel.json") as poses:
            for pose in poses:
                print(pose.T_world_joint[0, :3, 3], pose.latency)

    Every frame is counted and recorded; a loop that is slow gets the latest pose.

    Args:
        source: Address of the stream (docs/live.md), or a file, which is played.
        skeleton: With its markers or sensors, or a file that holds it. Without one,
            frames come without poses.
        to: Addresses of sinks, such as "vmc://127.0.0.1" or
            "record:session.marey-live".
        timeout: Seconds without a frame after which the stream is silent: an error at
            first, the end later.
        retry: Whether to wait on when the stream is silent, and to connect again.
        overwrite: Replace recordings that exist.
        **options: Fields of `GaussNewtonOptions`, such as `marker_sd`.

    Raises:
        OptionError: If an address or an option is not known.
        StreamError: If nobody is there.
        MissingExtraError: If a protocol needs a package that is not installed.
    """
    if not 0.0 < timeout < np.inf:
        raise OptionError("timeout", found=timeout, needed="seconds above 0")
    if isinstance(skeleton, str | PathLike):
        skeleton = read_skeleton(skeleton)
    return Stream(
        fspath(source),
        skeleton,
        [to] if isinstance(to, str) else to,
        timeout=timeout,
        retry=retry,
        overwrite=overwrite,
        options=options,
    )
