"""The stages of a running job and the seconds of each."""

import time
from collections.abc import Callable
from typing import Any


class StageClock:
    """Stages of one job, in the order in which they began.

    A message about a stage begins with its name; a comma and more words may follow,
    such as that its kernels are being compiled.

    Args:
        now: Clock in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._messages: list[str] = []
        self._starts: list[float] = []

    @property
    def running(self) -> str:
        """The last message about the running stage; "" = no job runs."""
        return self._messages[-1] if self._messages else ""

    def restart(self, message: str = "") -> None:
        """Forget all stages, and begin the first one of another job, if it has one."""
        self._messages, self._starts = [], []
        if message:
            self.begin(message)

    def begin(self, message: str) -> None:
        """Begin a stage; a message about the running stage replaces the one before."""
        if _name(message) == _name(self.running):
            self._messages[-1] = message
        else:
            self._messages.append(message)
            self._starts.append(self._now())

    def seconds(self) -> list[dict[str, Any]]:
        """Return message and seconds of every stage, up to now of the last one."""
        ends = [*self._starts[1:], self._now()]
        return [
            {"stage": message, "seconds": end - start}
            for message, start, end in zip(
                self._messages, self._starts, ends, strict=False
            )
        ]


def _name(message: str) -> str:
    return message.partition(",")[0]
