"""The addresses of `marey view`, and what each answers."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from marey.io.formats.html import plain_text
from marey.viewer.server.files import (
    NotThereError,
    TooLargeError,
    confined,
    listed,
    plain_name,
    stored,
)
from marey.viewer.server.state import Show, Source
from marey.viewer.worker.edits_file import edits_beside
from marey.viewer.worker.supervisor import Limits, RefusedError

LONGEST_BODY = 2**20
"""Bytes of JSON that a page may send."""

NUMBERS = ("take", "marker", "subject", "joint")
NUMBER = re.compile("[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Rooms:
    """What the addresses stand on."""

    show: Show
    page: str
    root: Path | None
    """The folder whose recordings may be opened."""

    scratch: Path
    """A folder of our own, for what is dropped on the page."""

    first: Source | None
    """What is opened at once."""

    limits: Limits

    def app(self) -> Starlette:
        """Return the application, without its guard."""
        changes = [
            Route(f"/api/{kind}", self._changing(kind), methods=["POST"])
            for kind in ("keep", "drop", "undo", "redo")
        ]
        return Starlette(
            routes=[
                Route("/", self.index),
                Route("/favicon.ico", _nothing),
                Route("/api/scene", self.scene),
                Route("/api/series", self.series),
                Route("/api/state", self.state),
                Route("/api/folder", self.folder),
                Route("/api/open", self.open, methods=["POST"]),
                Route("/api/upload", self.upload, methods=["POST"]),
                Route("/api/try", self.attempt, methods=["POST"]),
                *changes,
                WebSocketRoute("/ws", self.listen),
            ],
            lifespan=self.lifespan,
            exception_handlers={
                RefusedError: _refused(409),
                NotThereError: _refused(404),
                TooLargeError: _refused(413),
            },
        )

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Open the first thing; at the end, stop the worker."""
        if self.first is not None:
            await self.show.open(self.first)
        yield
        await self.show.close()

    async def index(self, _: Request) -> Response:
        """Return the page, which fetches the scene."""
        return HTMLResponse(self.page)

    async def scene(self, request: Request) -> Response:
        """Return the scene, or that of the edit being tried."""
        tried = request.query_params.get("trial") == "1"
        if tried and not self.show.trial:
            raise RefusedError("no edit is being tried")
        blob = self.show.trial if tried else self.show.scene
        headers = {"Scene-Version": str(self.show.version)}
        return Response(blob, media_type="application/octet-stream", headers=headers)

    async def series(self, request: Request) -> Response:
        """Return exact values of a marker or a joint."""
        given = request.query_params
        if not all(NUMBER.fullmatch(given[name]) for name in NUMBERS if name in given):
            raise RefusedError("take, marker, subject and joint are numbers from 0")
        of = {name: int(given[name]) for name in NUMBERS if name in given}
        blob = await self.show.series({"take": 0, **of})
        return Response(blob, media_type="application/octet-stream")

    async def state(self, _: Request) -> Response:
        """Return the edits and what can be done."""
        return _json(self.show.state)

    async def folder(self, _: Request) -> Response:
        """Return the recordings that may be opened."""
        if self.root is None:
            return _json({"root": "", "files": []})
        files = await asyncio.to_thread(listed, self.root)
        return _json({"root": self.root.name or "/", "files": files})

    async def open(self, request: Request) -> Response:
        """Begin to open a recording of the folder."""
        relative = (await _body(request)).get("path")
        if self.root is None or not isinstance(relative, str):
            raise NotThereError("there is no such recording in this folder")
        path = confined(self.root, relative)
        source = Source(path, plain_text(relative), edits_beside(path))
        return _begun(await self.show.open(source))

    async def upload(self, request: Request) -> Response:
        """Begin to open a file that was dropped on the page."""
        name = plain_name(request.query_params.get("name", ""))
        declared = request.headers.get("content-length", "")
        largest = self.limits.upload
        if NUMBER.fullmatch(declared) and int(declared) > largest:
            raise TooLargeError(f"a file of at most {largest} bytes is taken")
        folder = Path(mkdtemp(dir=self.scratch))
        try:
            await stored(request.stream(), folder / name, largest)
        except ClientDisconnect:
            raise RefusedError("the file did not come whole") from None
        beside = (self.root or Path.cwd()) / name
        edits = edits_beside(beside)
        # What is there already is another recording, or another's edits.
        taken = os.path.exists(beside) or os.path.exists(edits)
        source = Source(folder / name, name, None if taken else edits, own=folder)
        return _begun(await self.show.open(source))

    async def attempt(self, request: Request) -> Response:
        """Return what an edit would change."""
        return _json(await self.show.attempt(await _body(request)))

    def _changing(self, kind: str) -> Any:
        async def change(_: Request) -> Response:
            return _json(await self.show.change(kind))

        return change

    async def listen(self, socket: WebSocket) -> None:
        """Tell a page what goes on."""
        await self.show.clients.serve(socket, {"type": "state", **self.show.state})


async def _body(request: Request) -> dict[str, Any]:
    """Return the JSON object that a page sent."""
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > LONGEST_BODY:
                raise TooLargeError(f"at most {LONGEST_BODY} bytes are taken")
        content = json.loads(body or b"{}")
    except (ValueError, RecursionError, ClientDisconnect):
        content = None
    if not isinstance(content, dict):
        raise RefusedError("a JSON object is needed here")
    return content


async def _nothing(_: Request) -> Response:
    return Response(status_code=204)


def _begun(job: int) -> Response:
    return _json({"job": job}, 202)


def _json(content: Any, status: int = 200, headers: Any = None) -> Response:
    """Return an answer in ASCII, which holds names of files that are no text, too."""
    text = json.dumps(content, allow_nan=False)
    return Response(text, status, headers, media_type="application/json")


def _refused(status: int) -> Any:
    # Of what is too large the rest is not even listened to.
    ended = {"connection": "close"} if status == 413 else None

    async def answer(_: Request, error: Exception) -> Response:
        return _json({"error": str(error)}, status, ended)

    return answer
