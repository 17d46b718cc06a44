"""What the pages show: the scene, the edit being tried, and what is being done."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marey.io.html import Beside, scene_of
from marey.view._clients import Clients
from marey.view._wire import Frame
from marey.view._workshop import Limits, LostError, RefusedError, Workshop

GO_ON = "what you see is the answer before it: try again, or open another recording"


NOTHING_OPEN = {
    "edits": [],
    "can_undo": False,
    "can_redo": False,
    "trial": False,
    "saved": "",
}


@dataclass(frozen=True, slots=True)
class Source:
    """Something to open."""

    path: Path
    title: str
    edits: Path | None
    """Where its edits are kept; nowhere if None."""


class Show:
    """The one thing that all pages show, and the worker behind it.

    Args:
        limits: What one request may cost.
        title: What is shown before anything is open.
    """

    def __init__(self, limits: Limits, title: str) -> None:
        self.clients = Clients()
        self.workshop = Workshop(limits, self._heard)
        self.trial = b""
        self._scene = _empty(title)
        self._waiting = b""
        self.version = 0
        self._busy = ""
        self._state: dict[str, Any] = {"title": title, **NOTHING_OPEN}
        self._source: Source | None = None
        self._job = 0
        self._desk = 0
        self._switching = asyncio.Lock()
        self._opening: asyncio.Task[None] | None = None

    @property
    def scene(self) -> bytes:
        """The scene; of a recording that is being solved, its markers."""
        return self._waiting or self._scene

    @property
    def state(self) -> dict[str, Any]:
        """The edits, what can be done, what is being done, and which scene it is of."""
        return {**self._state, "busy": self._busy, "version": self.version}

    @property
    def _at_desk(self) -> bool:
        """Whether the worker is the one that opened what is shown."""
        return self._desk != 0 and self.workshop.pid == self._desk

    def _heard(self, message: dict[str, Any], data: bytes) -> None:
        """Pass on what the worker says while it works."""
        if "stage" in message:
            self._busy = str(message["stage"])
            self.clients.tell({"type": "stage", "stage": self._busy})
        elif "scene" in message:
            self._waiting = data
            self.version += 1
            self._tell_state()

    def _begin(self, stage: str) -> int:
        """Be busy with a new job and return its number."""
        self._job += 1
        self._busy = stage
        return self._job

    def _end(self, job: int) -> None:
        """Be done with a job, unless another has taken its place."""
        if job == self._job:
            self._busy, self._waiting = "", b""
            self._tell_state()

    def _tell_state(self) -> None:
        self.clients.tell({"type": "state", **self.state})

    async def open(self, source: Source) -> int:
        """Begin to open something and return the number of the job.

        Whatever is being worked on is given up for it.
        """
        async with self._switching:
            at_work = bool(self._busy)
            job = self._begin("read")
            if at_work:
                await self.workshop.stop()
            if self._opening is not None:
                await asyncio.wait([self._opening])
            self._opening = asyncio.create_task(self._open(source, job))
        return job

    async def _open(self, source: Source, job: int) -> None:
        try:
            result, scene = await self._opened(source)
        except (RefusedError, LostError) as error:
            if job == self._job:
                self._not_opened(source, error)
        else:
            self._source, self._scene, self._waiting = source, scene, b""
            note = result.pop("note")
            self._state = result
            self.version += 1
            if note:
                self.clients.tell({"type": "error", "message": note})
        finally:
            self._end(job)

    async def _opened(self, source: Source) -> Frame:
        edits = str(source.edits) if source.edits else ""
        answer = await self.workshop.ask(
            "open", path=str(source.path), title=source.title, edits=edits
        )
        self.trial, self._desk = b"", self.workshop.pid
        return answer

    def _not_opened(self, source: Source, error: Exception) -> None:
        if self._source is None:
            # A page that comes too late for the message finds it in the scene.
            self._scene = _empty(source.title, str(error))
        self._waiting = b""
        self._failed(error)
        self.version += 1

    def _failed(self, error: Exception) -> None:
        lost = isinstance(error, LostError)
        message = f"{error}; {GO_ON}" if lost else str(error)
        self.clients.tell({"type": "error", "message": message})

    async def attempt(self, edit: Any) -> dict[str, Any]:
        """Return what an edit would change; its scene is `trial` then.

        Raises:
            RefusedError: If it cannot be done, or something else is being done.
        """
        async with self._at_work():
            result, self.trial = await self.workshop.ask("try", edit=edit)
            self._state = {**self._state, "trial": True}
        return result

    async def change(self, kind: str) -> dict[str, Any]:
        """Keep or drop the edit being tried, undo or redo; return the state then.

        Raises:
            RefusedError: If it cannot be done, or something else is being done.
        """
        async with self._at_work():
            self._state, scene = await self.workshop.ask(kind)
            self.trial = b""
            if scene:
                self._scene = scene
                self.version += 1
        return self.state

    async def series(self, of: dict[str, int]) -> bytes:
        """Return exact values of a marker or a joint.

        Raises:
            RefusedError: If there is none such.
        """
        if self._at_desk:
            # A worker that is gone is noticed only now: another can tell as well.
            with suppress(LostError):
                return (await self.workshop.ask("series", of=of))[1]
        async with self._at_work():
            return (await self.workshop.ask("series", of=of))[1]

    @asynccontextmanager
    async def _at_work(self) -> AsyncIterator[None]:
        """Be busy with one thing; a new worker first opens what is shown."""
        if self._busy:
            raise RefusedError(
                f"marey is still at work ({self._busy}): wait until it is done"
            )
        job = self._begin("edit")
        self._tell_state()
        try:
            if self._source is not None and not self._at_desk:
                self._state = (await self._opened(self._source))[0]
            yield
        except LostError as error:
            self._failed(error)
            raise RefusedError(f"{error}; {GO_ON}") from None
        finally:
            self._end(job)

    async def close(self) -> None:
        """Stop the worker and what is being opened."""
        await self.workshop.stop()
        if self._opening is not None:
            await asyncio.wait([self._opening])


def _empty(title: str, why: str = "choose a recording from the list") -> bytes:
    return scene_of(None, Beside(title=title, unsolved=why))
