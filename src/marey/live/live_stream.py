"""A live stream, from packets to poses."""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from math import isfinite
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from marey.errors import OptionError, StreamError
from marey.io import read_skeleton
from marey.live.address import parse_address
from marey.live.frame import Frame
from marey.live.intake import Intake
from marey.live.learning import Learner, Learnt
from marey.live.posing.performers import Performers
from marey.live.posing.tracking import LivePose
from marey.live.recording.switch import RecordingSwitch
from marey.live.sinks import open_sink
from marey.live.sources import CONNECT_S, open_or_await_source
from marey.live.statistics import StreamStatistics
from marey.live.triggers import OscTriggers
from marey.report import Finding
from marey.skeleton import Skeleton

RECORD = "record"
SkeletonSource = Skeleton | str | PathLike[str] | None

STALE_S = 0.5
"""Seconds after which the newest pose is not live any more. Higher shows a frozen
figure for longer. Chosen by hand."""

RECENT_FRAMES = 16
"""Newest frames in which the poses of a new skeleton converge before it is shown.
Raised, a take-over takes longer. Chosen by hand."""


MAX_LATENCIES_CACHED = 100_000
"""Newest poses whose latencies are kept. Higher takes more memory."""


class Stream(Iterator[LivePose]):
    """The poses of a stream as they come; see `marey.stream`.

    Iteration ends when the source does, or when it is silent for `timeout` seconds. A
    loop that is slower than the stream gets the latest pose each time.
    """

    _learns_rest = True
    """Whether skeletons are estimated from all frames at the end."""

    def __init__(
        self,
        source: str,
        names: Sequence[str],
        skeletons: Sequence[Skeleton],
        to: Sequence[str],
        *,
        learn: bool,
        virtual: bool,
        triggers: str,
        timeout: float,
        retry: bool,
        overwrite: bool,
        options: dict[str, Any],
    ) -> None:
        self.source, self.timeout, self.retry = source, timeout, retry
        self.learnt: Learnt | None = None
        """The skeletons that were learnt and taken over; None if none were."""
        self.latencies: deque[float] = deque(maxlen=MAX_LATENCIES_CACHED)
        """Seconds from the arrival of a packet to its pose, of the newest poses."""
        self.is_virtual = virtual
        """Whether skeletons follow their sensors directly."""
        self._performers = Performers(names, skeletons, virtual, options)
        self._n_given, self._last_given, self._has_ended = 0, -np.inf, False
        self._frames: deque[Frame] = deque(maxlen=RECENT_FRAMES)
        addresses = [parse_address(text) for text in to]
        recorded = [one for one in addresses if one.scheme == RECORD]
        # Kernels load before the sender is connected, at any rate, since its own is not
        # known: frames that come meanwhile would wait, and overflow its buffer.
        self._performers.prepare(1.0)
        with ExitStack() as opened:
            self._sinks = [
                open_sink(one.text) for one in addresses if one.scheme != RECORD
            ]
            for sink in self._sinks:
                opened.callback(sink.close)
            from_source = open_or_await_source(source, timeout, retry)
            opened.callback(from_source.close)
            self._stated_rate = from_source.rate
            if isfinite(self._stated_rate):
                self._performers.prepare(self._stated_rate)
            self._recording = RecordingSwitch(
                recorded, source=source, rate=self._stated_rate, overwrite=overwrite
            )
            opened.callback(self._recording.stop)
            self._triggers = OscTriggers(triggers, self) if triggers else None
            opened.pop_all()
        self._learner = (
            Learner(self._rate, self._make_trackers)
            if learn and not skeletons
            else None
        )
        add = self._learner.add if self._learner is not None else None
        self._intake = Intake(from_source, self._recording, add, retry)
        if self._learner is not None:
            self._learner.start()

    @property
    def n_refused_triggers(self) -> int:
        """Messages of triggers that could not be obeyed, and packets of others."""
        return self._triggers.n_refused if self._triggers is not None else 0

    @property
    def skeletons(self) -> tuple[Skeleton, ...]:
        """The skeletons that are tracked now."""
        return self._performers.skeletons

    @property
    def is_live(self) -> bool:
        """Whether a frame came within the last half second."""
        return time.monotonic() - self._last_given < STALE_S

    @property
    def is_learning(self) -> bool:
        """Whether skeletons are learnt from the stream."""
        return self._learner is not None

    @property
    def has_ended(self) -> bool:
        """Whether there are no more poses; skeletons are final then."""
        return self._has_ended

    @property
    def is_recording(self) -> bool:
        """Whether frames are being recorded."""
        return self._recording.is_recording

    def start_recording(self, path: str | PathLike[str] | None = None) -> None:
        """Begin to record; see `marey.live.recording.switch.RecordingSwitch.start`.

        Raises:
            OptionError: If there is no path, or the file exists.
        """
        self._recording.start(None if path is None else fspath(path))

    def stop_recording(self) -> None:
        """End the recordings; they are complete then."""
        self._recording.stop(self.statistics)

    def mark(self, label: str = "mark") -> None:
        """Append an event at the time of the newest frame to the recordings."""
        self._recording.mark(label)

    def set_zero_pose(self) -> None:
        """Take the newest frame for the rest pose of a virtual skeleton.

        Raises:
            OptionError: If the skeletons are not virtual.
            DataError: If a sensor was never seen.
        """
        self._performers.set_zero_pose()

    @property
    def statistics(self) -> StreamStatistics:
        """What was measured of the stream so far: loss, jitter, rate and clock."""
        return self._intake.statistics

    def findings(self) -> tuple[Finding, ...]:
        """Return what is worth knowing of the stream so far."""
        learner = self._learner
        trouble = "" if learner is None else learner.trouble
        if learner is not None and learner.is_behind:
            known = "there is no skeleton"
            if learner.latest is not None:
                n_frames = learner.latest.n_frames
                known = f"the skeleton is that of the first {n_frames} frames"
            trouble = f"{known}: the last estimate took too long; solve the recording"
        found = [one for sink in self._sinks for one in sink.findings()]
        found += self.statistics.findings()
        if count := self.n_refused_triggers:
            text = f"messages of triggers were not obeyed ({count})"
            found.append(
                Finding("triggers-refused", "read", "warning", text, value=float(count))
            )
        if trouble:
            found.append(Finding("not-learnt", "skeleton", "warning", trouble))
        return tuple(found)

    def __next__(self) -> LivePose:
        """Return the latest pose, when there is a new one.

        Raises:
            StreamError: If no frame came within `timeout` seconds from the start.
            DataError: If the first frame has none of the skeleton's markers.
        """
        try:
            return self._wait_for_pose()
        except Exception:  # StopIteration is one
            self._has_ended = True
            raise

    def _wait_for_pose(self) -> LivePose:
        frame = self._intake.latest(self.timeout)
        while frame is None:
            if self._intake.has_ended or not (self.retry or self._n_given == 0):
                if self._intake.has_ended:
                    self.stop_recording()
                self._learn_the_rest()
                raise StopIteration
            if not self.retry:
                self._fail_silent()
            frame = self._intake.latest(self.timeout)
        self._n_given += 1
        self._last_given = time.monotonic()
        pose = self._pose(frame)
        if pose.subjects:
            self.latencies.append(pose.latency)
        for sink in self._sinks:
            sink.send(pose.as_frame())
        return pose

    def _rate(self) -> float:
        """Return the frames per second, stated or measured; NaN while not known."""
        stated = self._stated_rate
        return stated if isfinite(stated) else self.statistics.rate

    def _pose(self, frame: Frame) -> LivePose:
        rate = self._rate()
        if not isfinite(rate):  # the first frames of a sender that states no rate
            return LivePose(frame)
        if self._learner is not None and self._frames:
            self._take_over(self._learner.take_new(), rate)
        self._performers.prepare(rate)
        if self._intake.labeller.is_used and self._learner is None:
            frame = self._label_known(frame)
        pose = self._performers.update(frame)
        if not self._frames and not self._intake.labeller.is_used:
            self._performers.check_names(frame)
        self._frames.append(frame)
        self._intake.labeller.expect(pose)
        return pose

    def _label_known(self, frame: Frame) -> Frame:
        """Return a frame of a raw cloud with labels of skeletons that were found."""
        labels = self._performers.find_in_cloud(frame)
        if labels:
            self._intake.labeller.rename(labels)
        return frame.rename(labels)

    def _make_trackers(self, learnt: Learnt) -> None:
        """Prepare a take-over beside the loop: compiled kernels load slowly."""
        self._performers.make_next(learnt.names, learnt.skeletons, self._rate())

    def _take_over(self, learnt: Learnt | None, rate: float) -> None:
        if learnt is not None:
            recent = tuple(self._frames)
            self._performers.take_over(learnt.names, learnt.skeletons, recent, rate)
            self.learnt = learnt

    def _learn_the_rest(self) -> None:
        """Take over the estimate from all frames, after the last one."""
        if self._learner is not None and self._frames and self._learns_rest:
            self._take_over(self._learner.finish(), self._rate())

    def _fail_silent(self) -> None:
        n_damaged = self.statistics.damaged
        found = f"{n_damaged} packets of another protocol" if n_damaged else "none"
        raise StreamError(
            self.source,
            expected=f"frames within {self.timeout:g} s (is the sender on, and does it "
            "send to this machine and port?)",
            found=found,
        )

    def stop(self, *, learn: bool = True) -> None:
        """Receive no more frames, so that the loop ends; any thread may call this.

        Args:
            learn: Whether skeletons are estimated once more, from all frames, as when
                the source ends.
        """
        self._learns_rest = learn
        self._intake.stop()

    def close(self) -> None:
        """End the stream; recordings are closed, ports are free.

        Raises:
            OutputError: If a recording could not be written; the rest ends all the
                same.
        """
        with ExitStack() as ended:
            while self._sinks:
                ended.callback(self._sinks.pop().close)
            if self._learner is not None:
                ended.callback(self._learner.close)
            ended.callback(self._performers.close)
            ended.callback(self._intake.close)
            if self._triggers is not None:
                ended.callback(self._triggers.close)

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
    skeleton: SkeletonSource | Sequence[SkeletonSource] = (),
    *,
    to: str | Sequence[str] = (),
    learn: bool = True,
    virtual: bool = False,
    triggers: str = "",
    timeout: float = CONNECT_S,
    retry: bool = False,
    overwrite: bool = False,
    **options: Any,
) -> Stream:
    """Return the poses of skeletons in a live stream, as they come.

    ::

        with marey.stream("natnet://127.0.0.1", "ann.skel.json") as poses:
            for pose in poses:
                print(pose.T_world_joint[0, :3, 3], pose.latency)

    Every frame is counted and recorded; a loop that is slow gets the latest pose.

    Args:
        source: Address of the stream (docs/live.md), or a file, which is played.
        skeleton: With its markers or sensors, or a file that holds it; several for
            several subjects. Without one, skeletons are learnt from the stream.
        to: Addresses of sinks, such as "vmc://127.0.0.1" or
            "record:session.marey-live".
        learn: Whether skeletons are learnt if none is given.
        virtual: Whether skeletons follow their sensors directly, without optimisation;
            `Stream.set_zero_pose` sets how the sensors sit on the bones.
        triggers: Address to listen on for OSC messages that start and stop recordings,
            such as "osc://127.0.0.1:9000".
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
    known = _read_subjects(skeleton)
    return Stream(
        fspath(source),
        [name for name, _ in known],
        [one for _, one in known],
        [to] if isinstance(to, str) else to,
        learn=learn and not virtual,
        virtual=virtual,
        triggers=triggers,
        timeout=timeout,
        retry=retry,
        overwrite=overwrite,
        options=options,
    )


def _read_subjects(
    given: SkeletonSource | Sequence[SkeletonSource],
) -> list[tuple[str, Skeleton]]:
    """Return names and skeletons of subjects, given or read from files.

    The subject is that of the marker labels, else the file, else the root joint.
    """
    if given is None:
        return []
    if isinstance(given, Skeleton):
        return [(given.subject or given.names[0], given)]
    if isinstance(given, str | PathLike):
        skeleton = read_skeleton(given)
        stem = Path(given).name.partition(".")[0]
        return [(skeleton.subject or stem or skeleton.names[0], skeleton)]
    return [subject for one in given for subject in _read_subjects(one)]
