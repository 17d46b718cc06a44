"""WebSocket connections of the pages, each with a short queue of messages.

The queues are bounded, so that a page that does not read cannot delay the others.
"""

import asyncio
import json
from collections import deque
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

MAX_QUEUED_MESSAGES = 8
"""Longest queue of one page. Higher keeps older messages for a slow page. Chosen by
hand."""


class PageConnection:
    """One page and the messages that are not sent yet."""

    def __init__(self) -> None:
        self.queue: deque[str] = deque(maxlen=MAX_QUEUED_MESSAGES)
        self._has_message = asyncio.Event()

    def enqueue(self, text: str) -> None:
        """Append a message; a full queue drops its oldest message."""
        self.queue.append(text)
        self._has_message.set()

    async def dequeue(self) -> str:
        """Wait for a message and return the oldest."""
        while not self.queue:
            self._has_message.clear()
            await self._has_message.wait()
        return self.queue.popleft()


class PageConnections:
    """The WebSocket connections of all open pages."""

    def __init__(self) -> None:
        self.connections: set[PageConnection] = set()

    def broadcast(self, message: dict[str, Any]) -> None:
        """Queue a message for every page, without waiting."""
        text = json.dumps(message)
        for connection in self.connections:
            connection.enqueue(text)

    async def serve(self, socket: WebSocket, first: dict[str, Any]) -> None:
        """Send a page the first message, then all broadcasts, until it disconnects."""
        await socket.accept()
        connection = PageConnection()
        connection.enqueue(json.dumps(first))
        self.connections.add(connection)
        sender = asyncio.create_task(_send(socket, connection))
        try:
            # Messages from the page are ignored: requests come by HTTP.
            while (await socket.receive())["type"] != "websocket.disconnect":
                pass
        finally:
            self.connections.discard(connection)
            sender.cancel()
            await asyncio.wait([sender])


async def _send(socket: WebSocket, connection: PageConnection) -> None:
    try:
        while True:
            await socket.send_text(await connection.dequeue())
    except (WebSocketDisconnect, RuntimeError):
        return
