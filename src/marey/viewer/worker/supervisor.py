"""The server's side of the worker: started when needed, stopped when it must be."""

import asyncio
import itertools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from marey.io.formats.html import MOST_DRAWN
from marey.viewer.server.protocol import Frame, framed, next_frame

LEAST_MEMORY = 4 * 2**30
"""Bytes that a worker may have on the smallest machine."""


STOPPED = "stopped for something else"

GRACE = 1.0
"""Seconds that a worker which has hung up gets to end by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one request may cost."""

    seconds: float = 900.0
    """Longest time that one request may take."""

    memory: int = 0
    """Bytes the worker may have; 0 = those of the machine."""

    upload: int = 512 * 2**20
    """Largest file that may be dropped on the page, in bytes."""

    drawn: int = MOST_DRAWN
    """Frames times markers, sensors and joints that are drawn; of longer takes only
    every second, third, ... frame is, and what is selected is exact."""

    def memory_bytes(self) -> int:
        """Return the bytes the worker may have; 0 = no limit is known."""
        if self.memory or not hasattr(os, "sysconf"):
            return self.memory
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return max(machine, LEAST_MEMORY)


class RefusedError(Exception):
    """The worker cannot do it; the words say why."""


class LostError(Exception):
    """The worker is gone; the words say why."""


class Workshop:
    """One worker at a time, and the requests it has not answered.

    Args:
        limits: What one request may cost.
        heard: Called with what the worker says unasked, and the bytes beside it.
    """

    def __init__(
        self, limits: Limits, heard: Callable[[dict[str, Any], bytes], None]
    ) -> None:
        self._limits = limits
        self._heard = heard
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[Frame]] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._stops = 0

    @property
    def alive(self) -> bool:
        """Whether there is a worker, with all it has on its desk."""
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int:
        """The worker's process number; 0 without a worker."""
        return self._process.pid if self._process is not None and self.alive else 0

    async def ask(self, do: str, **request: Any) -> Frame:
        """Return the worker's answer to a request, with the bytes beside it.

        Raises:
            RefusedError: If it cannot be done.
            LostError: If the worker ended or had to be stopped.
        """
        if not self.alive:
            await self._start()
        number = next(self._numbers)
        answer: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            self._send({"id": number, "do": do, **request})
            async with asyncio.timeout(self._limits.seconds):
                message, data = await answer
        except TimeoutError:
            await self.stop()
            raise LostError(
                f"this took more than {self._limits.seconds:g} s and was stopped"
            ) from None
        finally:
            self._waiting.pop(number, None)
        if "error" in message:
            raise RefusedError(str(message["error"]))
        return dict(message["result"]), data

    def _send(self, request: dict[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(framed(request))

    async def _start(self) -> None:
        stops = self._stops
        await self._end()
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "marey.viewer.worker.worker"),
            *(str(self._limits.memory_bytes()), str(self._limits.drawn)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            # Ctrl-C is the server's, which stops the worker itself.
            start_new_session=True,
        )
        self._listening = asyncio.create_task(self._listen(self._process))
        if stops != self._stops:
            await self._end()
            raise LostError(STOPPED)

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while (frame := await next_frame(process.stdout)) is not None:
            message, data = frame
            waiting = self._waiting.get(message.get("id", -1))
            if waiting is None:
                self._heard(message, data)
            elif not waiting.done():
                waiting.set_result((message, data))
        try:
            async with asyncio.timeout(GRACE):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        if process is self._process:
            self._give_up("the worker ended, perhaps for want of memory")

    def _give_up(self, why: str) -> None:
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(LostError(why))

    async def stop(self) -> None:
        """Stop the worker at once, whatever it is doing; one that only starts, too."""
        self._stops += 1
        await self._end()

    async def _end(self) -> None:
        process, self._process = self._process, None
        listening, self._listening = self._listening, None
        if process is None:
            return
        if process.returncode is None:
            process.kill()
        if listening is not None and listening is not asyncio.current_task():
            await listening
        self._give_up(STOPPED)
