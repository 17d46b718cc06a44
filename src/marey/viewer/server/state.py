"""What the pages show: the scene, the edit being tried, and what is being done."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marey.io.formats.html import Beside, scene_of
from marey.viewer.server.clients import Clients
from marey.viewer.server.protocol import Frame
from marey.viewer.worker.supervisor import (
    STOPPED,
    Limits,
    LostError,
    RefusedError,
    Workshop,
)

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

    own: Path | None = None
    """A folder for it alone, which goes when it is no longer shown."""


class Show:
    """The one thing that all pages show, and the worker behind it.

    What is shown is a source with a scene and a state, in which its edits are. The
    worker has the same on its desk; one that takes the place of another first opens the
    source with those edits.

    One job is worked on at a time. Opening something takes the place of whatever is
    being done; all else is refused until that is done. A job whose place was taken asks
    the worker nothing more and changes nothing that is shown.

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
            self._busy = ""
            if self._waiting:
                self._show(self._scene)
            self._tell_state()

    def _show(self, scene: bytes) -> None:
        self._scene, self._waiting = scene, b""
        self.version += 1

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
        shown = self._source
        left: Source | None = source
        try:
            await self._lay_out(source, job)
            left = shown
        except (RefusedError, LostError) as error:
            if job == self._job:
                self._not_opened(source, error)
        finally:
            if left is not None and left.own is not None:
                shutil.rmtree(left.own, ignore_errors=True)
            self._end(job)

    async def _lay_out(
        self, source: Source, job: int, known: Sequence[Mapping[str, Any]] | None = None
    ) -> None:
        """Have the worker open something and show it.

        Its edits are those that are known, or else those of its file.
        """
        state, scene = await self._ask(
            job,
            "open",
            path=str(source.path),
            title=source.title,
            edits=str(source.edits or ""),
            known=known,
        )
        self._source, self._desk, self.trial = source, self.workshop.pid, b""
        self._show(scene)
        self._take_in(state)

    def _edits(self) -> list[dict[str, Any]]:
        """Return the edits that are shown, as records."""
        told = self._state["edits"]
        return [{k: v for k, v in edit.items() if k != "text"} for edit in told]

    async def _ask(self, job: int, do: str, **request: Any) -> Frame:
        """Return the worker's answer, if the job is still the one worked on."""
        if job == self._job:
            answer = await self.workshop.ask(do, **request)
            if job == self._job:
                return answer
        raise LostError(STOPPED)

    def _take_in(self, state: dict[str, Any]) -> None:
        note = state.pop("note")
        self._state = state
        if note:
            self.clients.tell({"type": "error", "message": note})

    def _not_opened(self, source: Source, error: Exception) -> None:
        if self._source is None:
            # A page that comes too late for the message finds it in the scene.
            self._show(_empty(source.title, str(error)))
        self._failed(error)

    def _failed(self, error: Exception) -> None:
        lost = isinstance(error, LostError)
        message = f"{error}; {GO_ON}" if lost else str(error)
        self.clients.tell({"type": "error", "message": message})

    async def attempt(self, edit: Any) -> dict[str, Any]:
        """Return what an edit would change; its scene is `trial` then.

        Raises:
            RefusedError: If it cannot be done, or something else is being done.
        """
        async with self._at_work() as job:
            result, self.trial = await self._ask(job, "try", edit=edit)
            self._state = {**self._state, "trial": True}
        return result

    async def change(self, kind: str) -> dict[str, Any]:
        """Keep or drop the edit being tried, undo or redo; return the state then.

        Raises:
            RefusedError: If it cannot be done, or something else is being done.
        """
        async with self._at_work() as job:
            state, scene = await self._ask(job, kind)
            self.trial = b""
            if scene:
                self._show(scene)
            self._take_in(state)
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
        async with self._at_work() as job:
            return (await self._ask(job, "series", of=of))[1]

    @asynccontextmanager
    async def _at_work(self) -> AsyncIterator[int]:
        """Be busy with one job; a new worker first opens what is shown."""
        if self._busy:
            raise RefusedError(
                f"marey is still at work ({self._busy}): wait until it is done"
            )
        job = self._begin("edit")
        self._tell_state()
        try:
            if self._source is not None and not self._at_desk:
                await self._lay_out(self._source, job, self._edits())
                self._tell_state()
            yield job
        except LostError as error:
            if job == self._job:
                self._failed(error)
            raise RefusedError(f"{error}; {GO_ON}") from None
        finally:
            self._end(job)

    async def close(self) -> None:
        """Stop the worker and whatever is being done."""
        self._begin("end")
        await self.workshop.stop()
        if self._opening is not None:
            await asyncio.wait([self._opening])


def _empty(title: str, why: str = "choose a recording from the list") -> bytes:
    return scene_of(None, Beside(title=title, unsolved=why))
