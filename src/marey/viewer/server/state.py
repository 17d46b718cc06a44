"""State of the server: the open file, its scene, the edit on trial and the job."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from marey.io.formats.html import SceneOptions, encode_scene
from marey.viewer.server.clients import PageConnections
from marey.viewer.server.protocol import Frame, PageState
from marey.viewer.server.stages import StageClock
from marey.viewer.worker.supervisor import (
    STOPPED_REASON,
    Limits,
    RequestRefusedError,
    WorkerLostError,
    WorkerSupervisor,
)

RETRY_HINT = "the page shows the previous result: try again, or open another recording"


@dataclass(frozen=True, slots=True)
class ViewedFile:
    """A file to open in the viewer."""

    path: Path
    title: str
    edits_path: Path | None
    """Edits file of the recording; None = edits are not saved."""

    temporary_folder: Path | None = None
    """Folder that contains only this file; deleted when another file is shown."""

    reading: Mapping[str, Any] = field(default_factory=dict)
    """Options of `marey.read` that override what the file says."""

    generated: bool = False
    """Whether the worker first records a synthetic performer to this file."""


class ServerState:
    """The open file that all pages show, and the worker process that edits it.

    The open file has a scene (bytes that the page draws) and a page state (JSON), which
    contains the edits. The worker holds the same file in memory. A worker that replaces
    a dead one first opens the file with the edits of the page state.

    Only one job runs at a time. A request to open a file cancels the running job; all
    other requests are refused until the job is finished. A cancelled job sends no more
    requests to the worker and does not change the state.

    Args:
        limits: Limits of time, memory and size.
        title: Title of the page before any file is open.
    """

    def __init__(self, limits: Limits, title: str) -> None:
        self.connections = PageConnections()
        self.supervisor = WorkerSupervisor(limits, self._forward_progress)
        self.trial_scene = b""
        self.version = 0
        self.open_task: asyncio.Task[None] | None = None
        self._open_lock = asyncio.Lock()
        self._file: ViewedFile | None = None
        self._scene = _empty_scene(title)
        self._preview_scene = b""
        self._page_state = PageState(title=title)
        self._stages = StageClock()
        self._job = 0
        self._worker_pid = 0

    @property
    def scene(self) -> bytes:
        """The scene; while a recording is being solved, a scene of its markers."""
        return self._preview_scene or self._scene

    @property
    def page_state(self) -> dict[str, Any]:
        """Edits, possible actions, the stages of the job and the scene's version."""
        stages = self._stages.seconds()
        now = {"busy": self._stages.running, "version": self.version, "stages": stages}
        return asdict(self._page_state) | now

    @property
    def _file_in_worker(self) -> bool:
        """Whether the running worker is the process that opened the file."""
        return self._worker_pid != 0 and self.supervisor.pid == self._worker_pid

    def _forward_progress(self, message: dict[str, Any], data: bytes) -> None:
        """Send a stage or a preview scene of the worker to the pages."""
        if "stage" in message:
            self._stages.begin(str(message["stage"]))
            stages = self._stages.seconds()
            self.connections.broadcast({"type": "stage", "stages": stages})
        elif "scene" in message:
            self._preview_scene = data
            self.version += 1
            self._broadcast_state()

    def _start_job(self, stage: str) -> int:
        """Make a new job the current one and return its number."""
        self._job += 1
        self._stages.restart(stage)
        return self._job

    def _finish_job(self, job: int) -> None:
        """Finish a job, unless a newer job has replaced it."""
        if job == self._job:
            self._stages.restart()
            if self._preview_scene:
                self._set_scene(self._scene)
            self._broadcast_state()

    def _set_scene(self, scene: bytes) -> None:
        self._scene, self._preview_scene = scene, b""
        self.version += 1

    def _broadcast_state(self) -> None:
        self.connections.broadcast({"type": "state", **self.page_state})

    async def open(self, file: ViewedFile) -> int:
        """Start to open a file and return the number of the job.

        The running job is cancelled: the worker is killed.
        """
        async with self._open_lock:
            was_busy = bool(self._stages.running)
            job = self._start_job("generate" if file.generated else "read")
            self._broadcast_state()  # a worker takes seconds to start
            if was_busy:
                await self.supervisor.stop()
            if self.open_task is not None:
                await asyncio.wait([self.open_task])
            self.open_task = asyncio.create_task(self._open(file, job))
        return job

    async def _open(self, file: ViewedFile, job: int) -> None:
        previous = self._file
        unused: ViewedFile | None = file
        try:
            if file.generated:
                await self._request(job, "generate", path=str(file.path))
            await self._open_in_worker(file, job)
            unused = previous
        except (RequestRefusedError, WorkerLostError) as error:
            if job == self._job:
                # The folder of a dropped file says nothing to who dropped it.
                reason = str(error).replace(str(file.path), file.title)
                if self._file is None:
                    # A page that connects later finds the reason in the scene.
                    self._set_scene(_empty_scene(file.title, reason))
                self._report_failure(error, reason)
        finally:
            if unused is not None and unused.temporary_folder is not None:
                shutil.rmtree(unused.temporary_folder, ignore_errors=True)
            self._finish_job(job)

    async def _open_in_worker(
        self,
        file: ViewedFile,
        job: int,
        edit_records: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Open a file in the worker and show it.

        The edits are `edit_records`; if None, the worker reads the edits file.
        """
        state, scene = await self._request(
            job,
            "open",
            path=str(file.path),
            title=file.title,
            edits_path=str(file.edits_path or ""),
            reading=dict(file.reading),
            edit_records=edit_records,
        )
        self._file, self._worker_pid = file, self.supervisor.pid
        self.trial_scene = b""
        self._set_scene(scene)
        self._set_page_state(state)

    async def _request(self, job: int, kind: str, **arguments: Any) -> Frame:
        """Return the worker's answer, if the job is still the current one."""
        if job == self._job:
            answer = await self.supervisor.request(kind, **arguments)
            if job == self._job:
                return answer
        raise WorkerLostError(STOPPED_REASON)

    def _set_page_state(self, state: dict[str, Any]) -> None:
        note = state.pop("note")
        self._page_state = PageState(**state)
        if note:
            self.connections.broadcast({"type": "error", "message": note})

    def _report_failure(self, error: Exception, reason: str) -> None:
        is_lost = isinstance(error, WorkerLostError)
        message = f"{reason}; {RETRY_HINT}" if is_lost else reason
        self.connections.broadcast({"type": "error", "message": message})

    async def try_edit(self, record: Any) -> dict[str, Any]:
        """Return what an edit would change, and set `trial_scene`.

        Raises:
            RequestRefusedError: If the edit is impossible, or another job runs.
        """
        async with self._run_job() as job:
            result, self.trial_scene = await self._request(job, "try", edit=record)
            self._page_state = replace(self._page_state, trial=True)
        return result

    async def change_edits(self, kind: str) -> dict[str, Any]:
        """Keep or drop the edit on trial, undo or redo; return the new page state.

        Raises:
            RequestRefusedError: If this is impossible, or another job runs.
        """
        async with self._run_job() as job:
            state, scene = await self._request(job, kind)
            self.trial_scene = b""
            if scene:
                self._set_scene(scene)
            self._set_page_state(state)
        return self.page_state

    async def exact_values(self, indices: dict[str, int]) -> bytes:
        """Return the values of one marker or joint at every recorded frame.

        Raises:
            RequestRefusedError: If there is no such marker or joint.
        """
        if self._file_in_worker:
            # If the worker has died, the job below starts a new one.
            with suppress(WorkerLostError):
                return (await self.supervisor.request("series", indices=indices))[1]
        async with self._run_job() as job:
            return (await self._request(job, "series", indices=indices))[1]

    async def export(self, folder: Path, suffix: str, content: str) -> dict[str, Any]:
        """Write the open file to a folder; return its name there, and the losses.

        Args:
            folder: Empty folder to write to.
            suffix: Suffix of the format.
            content: What a table holds; "" = the format decides.

        Raises:
            RequestRefusedError: If the format cannot hold the file, or a job runs.
        """
        async with self._run_job("export") as job:
            arguments = {"suffix": suffix, "content": content}
            answer, _ = await self._request(
                job, "export", folder=str(folder), **arguments
            )
        return answer

    @asynccontextmanager
    async def _run_job(self, stage: str = "edit") -> AsyncIterator[int]:
        """Run one job; if the worker is new, open the file in it first."""
        if self._stages.running:
            raise RequestRefusedError(
                f"marey is busy ({self._stages.running}): wait until it has finished"
            )
        job = self._start_job(stage)
        self._broadcast_state()
        try:
            if self._file is not None and not self._file_in_worker:
                edits = self._page_state.edits
                records = [{k: e[k] for k in e if k != "text"} for e in edits]
                await self._open_in_worker(self._file, job, records)
                self._broadcast_state()
            yield job
        except WorkerLostError as error:
            if job == self._job:
                self._report_failure(error, str(error))
            raise RequestRefusedError(f"{error}; {RETRY_HINT}") from None
        finally:
            self._finish_job(job)

    async def close(self) -> None:
        """Cancel the running job and stop the worker."""
        self._start_job("end")
        await self.supervisor.stop()
        if self.open_task is not None:
            await asyncio.wait([self.open_task])


def _empty_scene(title: str, why: str = "choose a recording from the list") -> bytes:
    return encode_scene(None, SceneOptions(title=title, unsolved=why))
