"""Pages that listen, each with a short queue: none holds up the others."""

import asyncio
import json
from collections import deque
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

LONGEST_QUEUE = 8
"""Messages kept for a page that does not read; older ones are dropped."""


class Client:
    """One page and what it has not been sent yet."""

    def __init__(self) -> None:
        self.queue: deque[str] = deque(maxlen=LONGEST_QUEUE)
        self._some = asyncio.Event()

    def put(self, text: str) -> None:
        """Keep a message; the oldest goes when there are too many."""
        self.queue.append(text)
        self._some.set()

    async def next(self) -> str:
        """Return the oldest message, once there is one."""
        while not self.queue:
            self._some.clear()
            await self._some.wait()
        return self.queue.popleft()


class Clients:
    """All pages that listen."""

    def __init__(self) -> None:
        self._clients: set[Client] = set()

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message to every page, without waiting for any."""
        text = json.dumps(message)
        for client in self._clients:
            client.put(text)

    async def serve(self, socket: WebSocket, first: dict[str, Any]) -> None:
        """Send a page all that is told, from the first message until it leaves."""
        await socket.accept()
        client = Client()
        client.put(json.dumps(first))
        self._clients.add(client)
        sending = asyncio.create_task(_send(socket, client))
        try:
            # Nothing that a page says here changes anything.
            while (await socket.receive())["type"] != "websocket.disconnect":
                pass
        finally:
            self._clients.discard(client)
            sending.cancel()
            await asyncio.wait([sending])


async def _send(socket: WebSocket, client: Client) -> None:
    try:
        while True:
            await socket.send_text(await client.next())
    except (WebSocketDisconnect, RuntimeError):
        return
