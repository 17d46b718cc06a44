"""The routes of a live page."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from marey.errors import MareyError
from marey.viewer.server.answers import (
    json_response,
    no_content,
    scene_response,
    send_until_disconnect,
)
from marey.viewer.server.live_feed import LiveFeed

PERIOD_S = 1.0 / 60.0
"""Least time between two poses for a page, in seconds: no screen shows more."""

STATE_S = 0.25
"""Time between two states for a page, in seconds. Higher notices a silent stream
later."""

MAX_PAGES = 16
"""Pages at a time; more are refused."""


class LiveRoutes:
    """The handlers of a live page.

    Args:
        feed: The stream.
        page: The page, as HTML.
    """

    def __init__(self, feed: LiveFeed, page: str) -> None:
        self.feed, self.page = feed, page
        self._n_pages = 0

    def build_app(self) -> Starlette:
        """Return the Starlette application, without authentication."""
        return Starlette(
            routes=[
                Route("/", self.index),
                Route("/favicon.ico", no_content),
                Route("/api/scene", self.scene),
                Route("/api/live", self.act, methods=["POST"]),
                WebSocketRoute("/ws", self.listen),
            ],
            lifespan=self.lifespan,
        )

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """End the stream when the server ends."""
        yield
        await asyncio.to_thread(self.feed.close)

    async def index(self, _: Request) -> Response:
        """Answer with the page."""
        return HTMLResponse(self.page)

    async def scene(self, _: Request) -> Response:
        """Answer with the figure and the markers as they are now."""
        return scene_response(self.feed.scene, self.feed.version)

    async def act(self, request: Request) -> Response:
        """Start or stop a recording, mark a moment, or set the zero pose."""
        stream = self.feed.stream
        actions: dict[str, Callable[[], None]] = {
            "record": stream.start_recording,
            "stop": stream.stop_recording,
            "mark": stream.mark,
            "zero": stream.set_zero_pose,
        }
        try:
            wanted = json.loads((await request.body())[:1024])
            await asyncio.to_thread(actions[wanted["do"]])
        except MareyError as error:
            return json_response({"error": str(error)}, 409)
        except (ValueError, KeyError, TypeError, RecursionError):
            return json_response({"error": f"do one of {', '.join(actions)}"}, 400)
        return json_response(self.feed.state())

    async def listen(self, socket: WebSocket) -> None:
        """Send a page the newest pose as fast as it reads, and the state."""
        if self._n_pages >= MAX_PAGES:
            await socket.close(1013)
            return
        await socket.accept()
        self._n_pages += 1
        try:
            await send_until_disconnect(socket, self._send(socket))
        finally:
            self._n_pages -= 1

    async def _send(self, socket: WebSocket) -> None:
        feed, sent, due = self.feed, 0, 0.0
        clock = asyncio.get_running_loop().time
        with suppress(WebSocketDisconnect, RuntimeError):
            while True:
                if clock() >= due:
                    await socket.send_text(json.dumps(feed.state()))
                    due = clock() + STATE_S
                if feed.count != sent:
                    sent = feed.count
                    await socket.send_text(feed.message)
                await asyncio.sleep(PERIOD_S)
