"""What a stream does: loss, order, jitter, rate and clock, measured in fixed memory."""

from collections import deque
from dataclasses import asdict, dataclass
from math import isfinite, nan
from types import SimpleNamespace

import numpy as np

from marey.io.formats.journal.read import RESTART_FRAMES, RESTART_S, estimate_rate
from marey.live.frame import Frame
from marey.report import Finding

WINDOW_FRAMES = RESTART_FRAMES
"""Frame numbers before the newest one that are remembered, one bit each, which
distinguishes a late frame from a repeated one."""

RATE_FRAMES = 32
"""Frames over whose periods the rate is measured. Higher is steadier and notices
a change of rate later, and a skeleton is estimated from that many frames at the
earliest. Chosen by hand."""

RATE_TOLERANCE = 0.1
"""Change of the rate, relative, that counts as one. Higher reports fewer changes.
Chosen by hand; crystals of cameras differ by less than 0.001."""

CLOCK_JUMP_S = 0.5
"""Seconds by which the sender's clock moves more or less than this machine's between
two frames, beyond which it jumped, or frames were held up. Higher reports fewer of
both. Chosen by hand; packets on a busy network are late by less."""

JITTER_SHARE = 1.0 / 16.0
"""Weight of the newest frame in the jitter (RFC 3550, Sec. 6.4.1)."""


@dataclass(frozen=True, slots=True)
class StreamStatistics:
    """What was measured of a stream so far."""

    received: int = 0
    """Frames that came, repeated ones not counted."""

    lost: int = 0
    """Frames that the numbers show and that did not come."""

    reordered: int = 0
    """Frames that came after one with a higher number."""

    repeated: int = 0
    """Frames whose number had come before; they are not used."""

    restarts: int = 0
    """How often the sender began to count from the start again."""

    rate: float = nan
    """Frames per second by the sender's clock, over some frames; NaN at first."""

    rate_changes: int = 0
    """How often the rate changed by more than a tenth."""

    jitter: float = 0.0
    """Mean deviation of the transit time between frames, in seconds (RFC 3550)."""

    longest_gap: float = 0.0
    """Longest time between two arrivals, in seconds."""

    clock_jumps: int = 0
    """How often the sender's clock jumped."""

    stalls: int = 0
    """How often frames were held up after they were sent: the receiver or the network
    stalled."""

    layout_changes: int = 0
    """How often markers or sensors changed."""

    damaged: int = 0
    """Packets that were not what their protocol promises."""

    def findings(self) -> tuple[Finding, ...]:
        """Return what is worth knowing of the stream."""
        share = self.lost / max(self.lost + self.received, 1)
        sentences = {
            "frames-lost": (self.lost, f"{share:.1%} of the frames did not come"),
            "frames-reordered": (self.reordered, "frames came late, out of order"),
            "frames-repeated": (self.repeated, "frames came twice; one was used"),
            "stream-restarted": (
                self.restarts,
                "the sender began to count from the start",
            ),
            "rate-changed": (self.rate_changes, "the frame rate changed"),
            "clock-jumped": (self.clock_jumps, "the sender's clock jumped"),
            "stream-stalled": (
                self.stalls,
                "frames that were sent steadily came late: this machine or the network "
                "was busy",
            ),
            "layout-changed": (self.layout_changes, "markers or sensors changed"),
            "packets-damaged": (self.damaged, "packets were damaged and left out"),
        }
        return tuple(
            Finding(code, "read", "warning", f"{text} ({count})", value=float(count))
            for code, (count, text) in sentences.items()
            if count
        )


class StreamClock:
    """Measures a stream frame by frame; its memory does not grow."""

    def __init__(self) -> None:
        # Not frozen: this is written several times in every frame.
        self._measured = SimpleNamespace(**asdict(StreamStatistics()))
        self.newest: Frame | None = None
        """The frame with the highest number."""
        self._came = 0  # bit k: the frame with the newest number minus k came
        self._periods: deque[float] = deque(maxlen=RATE_FRAMES)
        self._layout: tuple[tuple[str, ...], tuple[str, ...]] | None = None

    @property
    def statistics(self) -> StreamStatistics:
        """What was measured so far."""
        return StreamStatistics(**vars(self._measured))

    def update(self, frame: Frame) -> bool:
        """Count a frame; return whether it is new, not a repeated one."""
        measured = self._measured
        newest = self.newest
        if newest is None:
            self._start(frame)
            return True
        step = frame.number - newest.number
        if abs(step) >= WINDOW_FRAMES or self._counts_from_start(newest, frame, step):
            self._start(frame)
            measured.restarts += 1
            return True
        if step <= 0:
            return self._count_late(-step)
        self._came = (self._came << step | 1) & ((1 << WINDOW_FRAMES) - 1)
        measured.received += 1
        measured.lost += step - 1
        self._measure_times(newest, frame, step)
        self._compare_layout(frame)
        self.newest = frame
        return True

    def _counts_from_start(self, newest: Frame, frame: Frame, step: int) -> bool:
        """Return whether an old number comes too late for a packet that was held up."""
        return step <= 0 and frame.arrival - newest.arrival > RESTART_S

    def _start(self, frame: Frame) -> None:
        self.newest, self._came = frame, 1
        self._periods.clear()
        self._compare_layout(frame)
        self._measured.received += 1

    def _count_late(self, age: int) -> bool:
        """Count a frame whose number is not the newest."""
        measured = self._measured
        if self._came >> age & 1:
            measured.repeated += 1
            return False
        self._came |= 1 << age
        measured.received += 1
        measured.reordered += 1
        # Before the first frame nothing was counted as lost.
        measured.lost = max(measured.lost - 1, 0)
        return True

    def _measure_times(self, last: Frame, frame: Frame, step: int) -> None:
        between = frame.arrival - last.arrival
        sent = frame.time - last.time
        if not isfinite(sent):
            sent = between
        if not (isfinite(sent) and isfinite(between)):
            return
        deviation = abs(between - sent)
        measured = self._measured
        if deviation > CLOCK_JUMP_S or sent < 0.0:
            if not self._is_steady(sent, between, step):
                measured.clock_jumps += 1
            elif between > sent:
                measured.stalls += 1
        else:
            measured.jitter += JITTER_SHARE * (deviation - measured.jitter)
            self._measure_rate(sent / step)
        measured.longest_gap = max(measured.longest_gap, between)

    def _is_steady(self, sent: float, between: float, step: int) -> bool:
        """Return whether the sender's clock went on as the frame numbers did.

        Before the rate is known, a clock that neither ran ahead nor back.
        """
        rate = self._measured.rate
        if not isfinite(rate):
            return 0.0 <= sent <= between
        return bool(abs(sent - step / rate) <= CLOCK_JUMP_S)

    def _measure_rate(self, period: float) -> None:
        """Follow the rate; a change shows when most periods differ."""
        self._periods.append(period)
        known = self._measured.rate
        if len(self._periods) < RATE_FRAMES and isfinite(known):
            return
        if len(self._periods) < 3:  # a median of three is robust
            return
        rate = estimate_rate(np.array(self._periods))
        if not isfinite(rate):
            return
        if isfinite(known) and abs(rate / known - 1.0) > RATE_TOLERANCE:
            self._measured.rate_changes += 1
        if len(self._periods) == RATE_FRAMES:
            self._periods.clear()
        self._measured.rate = rate

    def _compare_layout(self, frame: Frame) -> None:
        layout = (frame.labels, frame.sensor_names)
        if self._layout is not None and layout != self._layout:
            self._measured.layout_changes += 1
        self._layout = layout
