"""Supervisor of the worker process: starts it, sends requests and kills it."""

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from marey.io.formats.html import MAX_DRAWN_ITEMS
from marey.options import Options, number
from marey.viewer.server.protocol import Frame, encode_frame, read_frame_async
from marey.workers import PIPES, machine_memory, worker_command

STOPPED_REASON = "stopped by another request"

EXIT_GRACE_S = 1.0
"""Seconds between the end of the worker's output and its kill. Higher waits longer for
a worker that hangs. Chosen by hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits(Options):
    """Limits of time, memory and size of one viewer."""

    seconds: float = number(900.0, above=0.0)
    """Longest time of one request, in seconds."""

    memory: int = number(0, low=0)
    """Memory limit of the worker, in bytes; 0 = the memory of the machine."""

    upload: int = number(512 * 2**20, low=0)
    """Largest file that can be dropped on the page, in bytes."""

    drawn: int = number(MAX_DRAWN_ITEMS, low=1)
    """Largest number of drawn values: frames times markers, sensors and joints.

    If a take is longer, only every second, third, ... frame is drawn. The curves of the
    selection always contain every frame.
    """

    def memory_bytes(self) -> int:
        """Return the memory limit of the worker in bytes; 0 = no limit."""
        return self.memory or machine_memory()


class RequestRefusedError(Exception):
    """A request is impossible; the message is the reason for the user."""


class WorkerLostError(Exception):
    """The worker died or was stopped; the message is the reason for the user."""


class WorkerSupervisor:
    """One worker process at a time, and the requests that it has not answered.

    Args:
        limits: Limits of time and memory.
        on_progress: Called with each message of the worker that answers no request, and
            with its bytes.
    """

    def __init__(
        self, limits: Limits, on_progress: Callable[[dict[str, Any], bytes], None]
    ) -> None:
        self._limits = limits
        self._on_progress = on_progress
        self._request_ids = itertools.count()
        self._pending: dict[int, asyncio.Future[Frame]] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._n_stops = 0

    @property
    def alive(self) -> bool:
        """Whether a worker process is running."""
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int:
        """Process id of the worker; 0 = no worker is running."""
        return self._process.pid if self._process is not None and self.alive else 0

    async def request(self, kind: str, **arguments: Any) -> Frame:
        """Return the worker's answer to a request, and the bytes of the answer.

        A worker is started if none is running.

        Raises:
            RequestRefusedError: If the worker answers with an error.
            WorkerLostError: If the worker died or was stopped.
        """
        if not self.alive:
            await self._start()
        request_id = next(self._request_ids)
        answer: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._pending[request_id] = answer
        try:
            self._send({"id": request_id, "do": kind, **arguments})
            async with asyncio.timeout(self._limits.seconds):
                message, data = await answer
        except TimeoutError:
            await self.stop()
            raise WorkerLostError(
                f"this took more than {self._limits.seconds:g} s and was stopped"
            ) from None
        finally:
            self._pending.pop(request_id, None)
        if "error" in message:
            raise RequestRefusedError(str(message["error"]))
        return dict(message["result"]), data

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(encode_frame(message))

    async def _start(self) -> None:
        n_stops = self._n_stops
        await self._kill()
        limits = self._limits.memory_bytes(), self._limits.drawn
        command = worker_command("marey.viewer.worker.worker", *limits)
        self._process = await asyncio.create_subprocess_exec(*command, **PIPES)
        self._reader = asyncio.create_task(self._read_answers(self._process))
        if n_stops != self._n_stops:
            await self._kill()
            raise WorkerLostError(STOPPED_REASON)

    async def _read_answers(self, process: asyncio.subprocess.Process) -> None:
        """Deliver the worker's messages until its output ends."""
        assert process.stdout is not None
        while (frame := await read_frame_async(process.stdout)) is not None:
            message, data = frame
            answer = self._pending.get(message.get("id", -1))
            if answer is None:
                self._on_progress(message, data)
            elif not answer.done():
                answer.set_result((message, data))
        try:
            async with asyncio.timeout(EXIT_GRACE_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        if process is self._process:
            self._fail_pending("the worker process died, perhaps from lack of memory")

    def _fail_pending(self, reason: str) -> None:
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(WorkerLostError(reason))

    async def stop(self) -> None:
        """Kill the worker at once, also one that is just being started."""
        self._n_stops += 1
        await self._kill()

    async def _kill(self) -> None:
        process, self._process = self._process, None
        reader, self._reader = self._reader, None
        if process is None:
            return
        if process.returncode is None:
            process.kill()
        if reader is not None and reader is not asyncio.current_task():
            await reader
        self._fail_pending(STOPPED_REASON)
