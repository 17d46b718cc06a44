"""A pool of processes that outlives each of them.

Every worker is a process of its own that gets one job at a time. A worker that dies
takes only its job with it, which is tried again in a new process; a job that takes too
long is ended with its worker. So one bad file costs one job, never the run.
"""

import os
import pickle
import queue
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any, Literal

from marey.workers.limits import ONE_THREAD
from marey.workers.start import PIPES, worker_command

MAX_ATTEMPTS = 3
"""Times that a job is given to a worker before it counts as one that kills workers.
Higher survives more accidents, and gives a harmful file more chances."""

INTERRUPT_S = 1.0
"""Longest wait for an answer before the pool looks around, in seconds."""

LENGTH_BYTES = 8
"""Bytes in front of a message that say how long it is."""

State = Literal["done", "failed", "large", "late", "lost"]


@dataclass(frozen=True, slots=True)
class Job:
    """A function to call in a worker."""

    key: str
    """Name of the job among all jobs of a run."""

    function: str
    """Address of the function: "package.module:name"."""

    arguments: Mapping[str, Any]
    """Keyword arguments, which must pickle."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended."""

    job: Job
    state: State
    """"done"; "failed": the function raised; "large": it needs more memory than the
    limit; "late": it took too long and was stopped; "lost": its worker died every time.
    """

    value: Any = None
    """What the function returned, or the error that it raised."""

    seconds: float = 0.0
    """Time of the last attempt, by the clock."""


@dataclass(slots=True, eq=False)
class _Worker:
    process: "subprocess.Popen[bytes]"
    job: Job | None = None
    since: float = 0.0
    stopped: bool = False
    """Whether the pool itself killed it, because its job took too long."""


@dataclass(slots=True)
class WorkerPool:
    """Worker processes, and the jobs that they work on.

    Use it in a `with` block: its end kills workers that are still at work.
    """

    workers: int
    """Number of processes."""

    memory: int = 0
    """Memory limit of each, in bytes; 0 = none."""

    seconds: float = float("inf")
    """Longest time of one job."""

    attempts: int = MAX_ATTEMPTS
    """Times that a job is given to a worker."""

    _idle: list[_Worker] = field(default_factory=list)
    _busy: list[_Worker] = field(default_factory=list)
    _again: deque[Job] = field(default_factory=deque)
    _attempts: dict[str, int] = field(default_factory=dict)
    """Times that each job was given to a worker, until it is over."""

    _answers: "queue.Queue[tuple[_Worker, bytes | None]]" = field(
        default_factory=queue.Queue
    )

    def __enter__(self) -> "WorkerPool":
        return self

    def __exit__(self, *_: Any) -> None:
        for worker in (*self._busy, *self._idle):
            worker.process.kill()
        for worker in (*self._busy, *self._idle):
            _close(worker.process)

    @property
    def has_room(self) -> bool:
        """Whether another job can start at once."""
        return len(self._busy) + len(self._again) < self.workers

    def submit(self, job: Job) -> None:
        """Start a job; there must be room for it."""
        self._attempts[job.key] = self._attempts.get(job.key, 0) + 1
        worker = self._idle.pop() if self._idle else self._start()
        worker.job, worker.since = job, time.monotonic()
        self._busy.append(worker)
        with suppress(OSError):  # It died: the end of its output says so.
            send(worker.process.stdin, pickle.dumps(job))

    def wait(self) -> Outcome:
        """Return the next outcome, as soon as there is one."""
        while True:
            outcome = self.poll(float("inf"))
            if outcome is not None:
                return outcome

    def poll(self, timeout: float) -> Outcome | None:
        """Return the next outcome; None if there is none within `timeout` seconds.

        A shorter wait may also end without one.
        """
        while self._again and len(self._busy) < self.workers:
            self.submit(self._again.popleft())
        try:
            wait = min(self._time_left(), timeout)
            worker, answer = self._answers.get(timeout=wait)
        except queue.Empty:
            self._stop_late_workers()
            return None
        return self._receive(worker, answer)

    def _start(self) -> _Worker:
        command = worker_command("marey.workers.process", self.memory)
        process = subprocess.Popen(command, env=os.environ | ONE_THREAD, **PIPES)
        worker = _Worker(process)
        threading.Thread(target=self._listen, args=(worker,), daemon=True).start()
        return worker

    def _listen(self, worker: _Worker) -> None:
        """Pass on the answers of a worker, and None at the end of its output."""
        while (answer := receive(worker.process.stdout)) is not None:
            self._answers.put((worker, answer))
        self._answers.put((worker, None))

    def _receive(self, worker: _Worker, answer: bytes | None) -> Outcome | None:
        """Return the outcome of a worker's job, unless it has none or is done again."""
        job, worker.job = worker.job, None
        if answer is None:
            _close(worker.process)
        if job is None:
            if worker in self._idle:
                self._idle.remove(worker)
            return None
        self._busy.remove(worker)
        is_last = worker.stopped or self._attempts[job.key] >= self.attempts
        if answer is None and not is_last:
            self._again.append(job)
            return None
        del self._attempts[job.key]
        state: State = "late" if worker.stopped else "lost"
        value: Any = None
        if answer is not None:
            if not worker.stopped:  # Its end, which is near, belongs to no other job.
                self._idle.append(worker)
            state, value = pickle.loads(answer)
        return Outcome(job, state, value, time.monotonic() - worker.since)

    def _time_left(self) -> float:
        """Return the seconds until the next job is late, or until Ctrl-C is looked for.

        Windows does not interrupt a longer wait.
        """
        begun = [worker.since for worker in self._busy if not worker.stopped]
        late = min(begun, default=float("inf")) + self.seconds
        return min(max(late - time.monotonic(), 0.0), INTERRUPT_S)

    def _stop_late_workers(self) -> None:
        now = time.monotonic()
        for worker in self._busy:
            if now - worker.since >= self.seconds:
                worker.stopped = True
                worker.process.kill()


def send(stream: IO[bytes] | None, message: bytes) -> None:
    """Write a message to a stream, after its length."""
    assert stream is not None
    stream.write(len(message).to_bytes(LENGTH_BYTES, "big") + message)
    stream.flush()


def receive(stream: IO[bytes] | None) -> bytes | None:
    """Return the next message of a stream; None at its end, whole or not."""
    assert stream is not None
    try:
        head = stream.read(LENGTH_BYTES)
        size = int.from_bytes(head, "big")
        message = stream.read(size) if len(head) == LENGTH_BYTES else b""
    except (OSError, ValueError):
        return None
    return message if head and len(message) == size else None


def _close(process: "subprocess.Popen[bytes]") -> None:
    """Wait for the end of a process and close its pipes."""
    process.wait()
    for stream in (process.stdin, process.stdout):
        assert stream is not None
        with suppress(OSError):
            stream.close()
