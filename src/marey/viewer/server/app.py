"""The routes of the server, and the answer of each."""

import asyncio
import json
import os
import re
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from marey.io.formats.html import replace_surrogates
from marey.viewer.server.answers import json_response, no_content, scene_response
from marey.viewer.server.files import (
    RecordingNotFoundError,
    RequestTooLargeError,
    list_recordings,
    resolve_inside,
    sanitize_file_name,
    store_upload,
)
from marey.viewer.server.state import ServerState, ViewedFile
from marey.viewer.worker.edits_file import default_edits_path
from marey.viewer.worker.supervisor import Limits, RequestRefusedError

MAX_BODY_BYTES = 2**20
"""Largest JSON of a request, in bytes. Chosen by hand."""

INDEX_PARAMETERS = ("take", "marker", "subject", "joint")
INDEX_PATTERN = re.compile("[0-9]{1,18}")
"""A non-negative integer that fits in 64 bits."""


SUFFIX_PATTERN = re.compile(r"(\.[a-z0-9]{1,12}){1,2}")
"""A suffix such as ".bvh" or ".skel.json", and no path."""

MAX_EXPORT_FINDINGS = 20
"""Findings that an exported file is sent with: browsers limit the size of headers."""

GENERATED_NAME = "generated_walk.c3d"


@dataclass(frozen=True, slots=True)
class ViewerRoutes:
    """The handlers of all routes, and the values that they need."""

    state: ServerState
    page: str
    root: Path | None
    """Folder of the recordings that can be opened; None = none can."""

    scratch: Path
    """Temporary folder for files that are dropped on the page."""

    first_file: ViewedFile | None
    """File that is opened when the server starts."""

    limits: Limits
    reading: Mapping[str, Any]
    """Options of `marey.read` for the recordings of the folder."""

    def build_app(self) -> Starlette:
        """Return the Starlette application, without authentication."""
        change_routes = [
            Route(f"/api/{kind}", self._change_handler(kind), methods=["POST"])
            for kind in ("keep", "drop", "undo", "redo")
        ]
        return Starlette(
            routes=[
                Route("/", self.index),
                Route("/favicon.ico", no_content),
                Route("/api/scene", self.scene),
                Route("/api/series", self.exact_values),
                Route("/api/state", self.page_state),
                Route("/api/folder", self.folder),
                Route("/api/open", self.open, methods=["POST"]),
                Route("/api/upload", self.upload, methods=["POST"]),
                Route("/api/generate", self.generate, methods=["POST"]),
                Route("/api/export", self.export, methods=["POST"]),
                Route("/api/try", self.try_edit, methods=["POST"]),
                *change_routes,
                WebSocketRoute("/ws", self.listen),
            ],
            lifespan=self.lifespan,
            exception_handlers={
                RequestRefusedError: _error_handler(409),
                RecordingNotFoundError: _error_handler(404),
                RequestTooLargeError: _error_handler(413),
            },
        )

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Open the first file when the server starts; stop the worker when it ends."""
        if self.first_file is not None:
            await self.state.open(self.first_file)
        yield
        await self.state.close()

    async def index(self, _: Request) -> Response:
        """Answer with the page, which then requests the scene."""
        return HTMLResponse(self.page)

    async def scene(self, request: Request) -> Response:
        """Answer with the scene, or with the scene of the edit on trial."""
        is_trial = request.query_params.get("trial") == "1"
        if is_trial and not self.state.trial_scene:
            raise RequestRefusedError("no edit is being tried")
        blob = self.state.trial_scene if is_trial else self.state.scene
        return scene_response(blob, self.state.version)

    async def exact_values(self, request: Request) -> Response:
        """Answer with the values of a marker or a joint at every recorded frame."""
        query = request.query_params
        given = {name: query[name] for name in INDEX_PARAMETERS if name in query}
        if not all(map(INDEX_PATTERN.fullmatch, given.values())):
            raise RequestRefusedError(
                "take, marker, subject and joint must be integers, 0 or greater"
            )
        indices = {name: int(text) for name, text in given.items()}
        blob = await self.state.exact_values({"take": 0, **indices})
        return Response(blob, media_type="application/octet-stream")

    async def page_state(self, _: Request) -> Response:
        """Answer with the edits and the possible actions."""
        return json_response(self.state.page_state)

    async def folder(self, _: Request) -> Response:
        """Answer with the recordings that can be opened."""
        if self.root is None:
            return json_response({"root": "", "files": []})
        files = await asyncio.to_thread(list_recordings, self.root)
        return json_response({"root": self.root.name or "/", "files": files})

    async def open(self, request: Request) -> Response:
        """Start to open a recording of the folder."""
        relative = (await _body(request)).get("path")
        if self.root is None or not isinstance(relative, str):
            raise RecordingNotFoundError("this folder has no such recording")
        path = resolve_inside(self.root, relative)
        title, edits_path = replace_surrogates(relative), default_edits_path(path)
        file = ViewedFile(path, title, edits_path, reading=self.reading)
        return json_response({"job": await self.state.open(file)}, 202)

    async def upload(self, request: Request) -> Response:
        """Start to open a file that was dropped on the page."""
        name = sanitize_file_name(request.query_params.get("name", ""))
        declared_bytes = request.headers.get("content-length", "")
        max_bytes = self.limits.upload
        if INDEX_PATTERN.fullmatch(declared_bytes) and int(declared_bytes) > max_bytes:
            raise RequestTooLargeError(
                f"the file is larger than the limit of {max_bytes} bytes"
            )
        folder = Path(mkdtemp(dir=self.scratch))
        try:
            await store_upload(request.stream(), folder / name, max_bytes)
        except ClientDisconnect:
            raise RequestRefusedError(
                "the connection ended before the whole file was received"
            ) from None
        recording_path = (self.root or Path.cwd()) / name
        edits_path = default_edits_path(recording_path)
        # An existing file of this name is another recording, with its own edits.
        exists = os.path.exists(recording_path) or os.path.exists(edits_path)
        file = ViewedFile(
            folder / name, name, None if exists else edits_path, temporary_folder=folder
        )
        return json_response({"job": await self.state.open(file)}, 202)

    async def generate(self, _: Request) -> Response:
        """Start to record a synthetic performer and to open the recording."""
        folder = Path(mkdtemp(dir=self.scratch))
        path = folder / GENERATED_NAME
        file = ViewedFile(
            path, path.name, None, temporary_folder=folder, generated=True
        )
        return json_response({"job": await self.state.open(file)}, 202)

    async def export(self, request: Request) -> Response:
        """Answer with the open file in another format, and what that cannot hold."""
        wanted = await _body(request)
        suffix, content = wanted.get("suffix", ""), wanted.get("content", "")
        is_text = isinstance(suffix, str) and isinstance(content, str)
        if not is_text or SUFFIX_PATTERN.fullmatch(suffix) is None:
            raise RequestRefusedError("an export needs the suffix of a format")
        folder = Path(mkdtemp(dir=self.scratch))
        try:
            written = await self.state.export(folder, suffix, content)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        findings = json.dumps(written["findings"][:MAX_EXPORT_FINDINGS])
        return FileResponse(
            folder / written["file"],
            media_type="application/octet-stream",
            filename=written["file"],
            headers={"Export-Findings": findings},
            background=BackgroundTask(shutil.rmtree, folder, ignore_errors=True),
        )

    async def try_edit(self, request: Request) -> Response:
        """Answer with the changes that an edit would make."""
        return json_response(await self.state.try_edit(await _body(request)))

    def _change_handler(self, kind: str) -> Any:
        async def change(_: Request) -> Response:
            return json_response(await self.state.change_edits(kind))

        return change

    async def listen(self, socket: WebSocket) -> None:
        """Send a page all changes of the state by WebSocket."""
        await self.state.connections.serve(
            socket, {"type": "state", **self.state.page_state}
        )


async def _body(request: Request) -> dict[str, Any]:
    """Return the JSON object in the body of a request."""
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                raise RequestTooLargeError(
                    f"the request is larger than the limit of {MAX_BODY_BYTES} bytes"
                )
        content = json.loads(body or b"{}")
    except (ValueError, RecursionError, ClientDisconnect):
        content = None
    if not isinstance(content, dict):
        raise RequestRefusedError("the body of this request must be a JSON object")
    return content


def _error_handler(status: int) -> Any:
    """Return a handler that answers an error with its message."""
    # The rest of a request that is too large is not received.
    headers = {"connection": "close"} if status == 413 else None

    async def answer(_: Request, error: Exception) -> Response:
        return json_response({"error": str(error)}, status, headers)

    return answer
