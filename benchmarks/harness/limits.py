"""Commands with limits of time and memory. One that hangs is ended, with a reason."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"),
    "1",
)
REASON_CHARACTERS = 300
GRACE_S = 5.0
"""Seconds between a request to end and the end."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a command may take: seconds of the wall clock, MiB of address space.

    0 MiB are no limit.
    """

    seconds: float = 1800.0
    mebibytes: int = 12_000


class Outcome(NamedTuple):
    """What a command wrote, also if it was stopped; why it failed, or nothing."""

    output: str
    reason: str


def run_limited(
    command: Sequence[str],
    limits: Limits,
    *,
    environment: Mapping[str, str] | None = None,
) -> Outcome:
    """Run a command with one thread per library; end it and its children in time."""
    reason, process = "", None
    try:
        with end_held_back():
            process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, **ONE_THREAD, **(environment or {})},
                start_new_session=True,
            )
        limit_memory(process.pid, limits.mebibytes)
        output, errors = process.communicate(timeout=limits.seconds)
    except subprocess.TimeoutExpired:
        end_group(process)
        output, errors = process.communicate()
        reason = f"stopped after {limits.seconds:g} s"
    except BaseException:
        if process is not None:
            end_group(process)
            process.communicate()
        raise
    if process.returncode and not reason:
        reason = f"exit {process.returncode}: {last_line(errors)}"
    return Outcome(output, reason)


def limit_memory(pid: int, mebibytes: int) -> None:
    """Bound the address space of a process, where the system can."""
    if mebibytes and hasattr(resource, "prlimit"):
        size = mebibytes * 2**20
        with contextlib.suppress(OSError):
            resource.prlimit(pid, resource.RLIMIT_AS, (size, size))


def end_group(process: subprocess.Popen[str]) -> None:
    """End a process that leads a session, and all that it has started.

    It is asked first, so that it can end sessions that it has started itself.
    """
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=GRACE_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def end_held_back() -> Iterator[None]:
    """Answer a request to end after the block, so that none of it is half done.

    A process that `Popen` has started and not yet returned could not be ended.
    """
    asked: list[int] = []
    handler = signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)
        for number in asked:
            signal.raise_signal(number)


def exit_when_asked() -> None:
    """Let a request to end raise SystemExit, so that what was started ends too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def last_line(text: str) -> str:
    """Return the last line that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:REASON_CHARACTERS] if lines else "no message"
