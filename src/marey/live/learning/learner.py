"""Learning beside a stream: a thread that gives chosen frames to a worker process."""

import time
from collections.abc import Callable, Sequence
from threading import Event, Lock, Thread

from marey.live.frame import Frame
from marey.live.intake import PAUSE_S
from marey.live.learning.estimate import Learnt
from marey.live.learning.reservoir import FrameReservoir
from marey.live.statistics import RATE_FRAMES
from marey.skeleton import Skeleton
from marey.workers import Job, WorkerPool, machine_memory

ESTIMATE = "marey.live.learning.estimate:estimate_beside_stream"

MIN_PERIOD_S = 1.0
"""Least time between two estimates, in seconds. Higher learns later and computes less.
Chosen by hand."""

REST_SHARE = 0.5
"""Least share of the time that the worker rests. Higher learns later and computes less.
Chosen by hand."""

TIMEOUT_S = 600.0
"""Longest time of one estimate, in seconds; compiling kernels for the first time takes
a minute, and ten where ten other programs are busy. Higher waits longer for one that
never ends."""


class Learner:
    """Estimates the skeletons of a stream again and again, in a process beside it.

    Args:
        rate: Returns the frames per second, NaN while it is not known.
        prepare: Called with every estimate that shall be taken over, before that.
    """

    def __init__(
        self, rate: Callable[[], float], prepare: Callable[[Learnt], None]
    ) -> None:
        self.reservoir = FrameReservoir()
        self.latest: Learnt | None = None
        """The newest estimate, taken over or not."""
        self.n_estimates = 0
        """Estimates so far."""
        self.trouble = ""
        """Why the newest estimate failed; "" if it did not."""
        self.is_behind = False
        """Whether the estimate from all frames did not come in time."""
        self._rate, self._prepare = rate, prepare
        self._accepted: Sequence[Skeleton] | None = None
        self._fresh: Learnt | None = None
        self._lock, self._stop, self._last = Lock(), Event(), Event()
        self._thread = Thread(target=self._run, name="marey learner", daemon=True)

    def start(self) -> None:
        """Begin to estimate; the rate is asked for from here on."""
        self._thread.start()

    def add(self, frame: Frame) -> None:
        """Learn from a frame."""
        self.reservoir.add(frame)

    def take_new(self) -> Learnt | None:
        """Return skeletons that predict better than those before, once; else None."""
        with self._lock:
            fresh, self._fresh = self._fresh, None
        return fresh

    def finish(self) -> Learnt | None:
        """Return the estimate from all frames, if it comes in time.

        The one that is under way and the last one may take `TIMEOUT_S` each.
        It is taken over in any case: it is what `marey.solve` says of these frames.
        """
        self._last.set()
        self._thread.join(2.0 * TIMEOUT_S)
        self.is_behind = self._thread.is_alive()
        return self.latest

    def close(self) -> None:
        """End the thread and the worker."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        version, due = -1, 0.0
        with WorkerPool(1, machine_memory(), TIMEOUT_S) as pool:
            while not self._stop.wait(PAUSE_S):
                is_last = self._last.is_set()
                changed = self.reservoir.version != version
                ready = changed and self.reservoir.n_frames >= RATE_FRAMES
                rate = self._rate()
                if ready and rate > 0.0 and (is_last or time.monotonic() >= due):
                    version = self.reservoir.version
                    seconds = self._estimate(pool, rate)
                    rest = seconds * REST_SHARE / (1.0 - REST_SHARE)
                    due = time.monotonic() + max(MIN_PERIOD_S, rest)
                elif is_last:
                    return

    def _estimate(self, pool: WorkerPool, rate: float) -> float:
        """Let the worker estimate once; return how long it computed, in seconds."""
        self.n_estimates += 1
        arguments = {"take": self.reservoir.take(rate), "before": self._accepted}
        pool.submit(Job(str(self.n_estimates), ESTIMATE, arguments))
        outcome, seconds = None, 0.0
        while outcome is None and not self._stop.is_set():
            outcome = pool.poll(PAUSE_S)
        self.trouble = ""
        if outcome is not None and outcome.state != "done":
            self.trouble = str(outcome.value or f"the worker was {outcome.state}")
        if outcome is not None and outcome.state == "done":
            learnt: Learnt = outcome.value
            seconds = learnt.seconds
            self.latest = learnt
            if learnt.better:
                self._accepted = learnt.skeletons
                self._prepare(learnt)
                with self._lock:
                    self._fresh = learnt
        return seconds
