"""Receiving a stream beside the program that uses it."""

import time
from collections.abc import Callable
from dataclasses import replace
from threading import Condition, Thread

from marey.errors import StreamError
from marey.live.frame import Frame
from marey.live.labelling import PointLabeller
from marey.live.recording.switch import RecordingSwitch
from marey.live.sources import StreamSource, open_source
from marey.live.statistics import StreamClock, StreamStatistics

PAUSE_S = 0.1
"""Longest wait of a thread before it looks if it shall end, in seconds. Higher ends
later."""

RETRY_S = 0.5
"""Seconds between attempts to connect again. Higher asks less often."""


class Intake:
    """Counts and records every frame in a thread; keeps only the latest.

    Args:
        source: Where frames come from.
        recording: Gets every frame.
        learn: Called with every frame, in the order of their numbers.
        retry: Whether to connect again when the sender ends the connection.
    """

    def __init__(
        self,
        source: StreamSource,
        recording: RecordingSwitch,
        learn: Callable[[Frame], None] | None = None,
        retry: bool = False,
    ) -> None:
        self._source, self._recording, self._retry = source, recording, retry
        self._learn = learn
        self.labeller = PointLabeller()
        """Names points that have no labels."""
        self._clock, self._damaged_before = StreamClock(), 0
        self._new = Condition()
        self._latest: Frame | None = None
        self._error: Exception | None = None
        self._is_open, self._has_ended, self._is_waiting = True, False, False
        self._thread = Thread(target=self._run, name="marey intake", daemon=True)
        self._thread.start()

    @property
    def statistics(self) -> StreamStatistics:
        """What was measured of the stream so far."""
        # Any thread may ask; only the thread of the intake counts.
        n_damaged = self._damaged_before + self._source.n_damaged
        return replace(self._clock.statistics, damaged=n_damaged)

    @property
    def has_ended(self) -> bool:
        """Whether no more frames come, and the latest one was given."""
        with self._new:
            return self._has_ended and self._latest is None

    def latest(self, timeout: float) -> Frame | None:
        """Return the newest frame that was not given yet; None after a silence.

        Only time in which the thread waits for the sender is silence: a frame that is
        being recorded or labelled has come.

        Args:
            timeout: Longest silence, in seconds.

        Raises:
            OutputError: If a recording could not be written.
        """
        with self._new:
            silence = 0.0
            while silence < timeout and not (self._latest or self._has_ended):
                began = time.monotonic()
                self._new.wait(min(timeout - silence, PAUSE_S))
                if self._is_waiting:
                    silence += time.monotonic() - began
            if self._error is not None:
                raise self._error
            frame, self._latest = self._latest, None
            return frame

    def stop(self) -> None:
        """Receive no more frames; any thread may call this."""
        self._is_open = False

    def close(self) -> None:
        """End the thread, the source and the recordings."""
        self.stop()
        self._thread.join()
        try:
            self._recording.stop(self.statistics)
        finally:
            self._source.close()

    def _run(self) -> None:
        try:
            while self._is_open:
                self._is_waiting = True
                frame = self._source.receive(PAUSE_S)
                self._is_waiting = frame is None
                if frame is not None:
                    self._add(frame)
                elif self._source.has_ended and not self._reconnect():
                    break
        except Exception as error:  # whoever asks for a frame gets it
            self._error = error
        with self._new:
            self._has_ended = True
            self._new.notify_all()

    def _add(self, frame: Frame) -> None:
        if not self._clock.update(frame):
            return
        if self._clock.newest is not frame:  # late: it is recorded, but not shown
            self._recording.write(frame.leave_out_unlabelled())
            return
        frame = self.labeller.label(frame)
        self._recording.write(frame)
        if self._learn is not None:
            self._learn(frame)
        with self._new:
            self._latest = frame
            self._new.notify_all()

    def _reconnect(self) -> bool:
        """Connect again; return whether to go on."""
        if not (self._retry and self._source.can_return):
            return False
        text = self._source.address.text
        self._source.close()
        self._damaged_before += self._source.n_damaged
        while self._is_open:
            try:
                self._source = open_source(text, RETRY_S)
            except StreamError:
                time.sleep(RETRY_S)
            else:
                return True
        return False
