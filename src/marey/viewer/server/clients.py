"""WebSocket connections of the pages, each with a short queue of messages.

The queues are bounded, so that a page that does not read cannot delay the others.
"""

import asyncio
import json
from collections import deque
from contextlib import suppress
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from marey.viewer.server.answers import send_until_disconnect

MAX_QUEUED_MESSAGES = 8
"""Longest queue of one page. Higher keeps older messages for a slow page. Chosen by
hand."""


class PageConnection:
    """One page and the messages that are not sent yet."""

    def __init__(self) -> None:
        self.queue: deque[str] = deque(maxlen=MAX_QUEUED_MESSAGES)
        self.has_message = asyncio.Event()

    def enqueue(self, message: dict[str, Any]) -> None:
        """Append a message; a full queue drops its oldest message."""
        self.queue.append(json.dumps(message))
        self.has_message.set()

    async def send_to(self, socket: WebSocket) -> None:
        """Send all messages, as they are queued, until the page disconnects."""
        with suppress(WebSocketDisconnect, RuntimeError):
            while await self.has_message.wait():
                while self.queue:
                    await socket.send_text(self.queue.popleft())
                self.has_message.clear()


class PageConnections:
    """The WebSocket connections of all open pages."""

    def __init__(self) -> None:
        self.connections: set[PageConnection] = set()

    def broadcast(self, message: dict[str, Any]) -> None:
        """Queue a message for every page, without waiting."""
        for connection in self.connections:
            connection.enqueue(message)

    async def serve(self, socket: WebSocket, first: dict[str, Any]) -> None:
        """Send a page the first message, then all broadcasts, until it disconnects."""
        await socket.accept()
        connection = PageConnection()
        connection.enqueue(first)
        self.connections.add(connection)
        try:
            await send_until_disconnect(socket, connection.send_to(socket))
        finally:
            self.connections.discard(connection)
