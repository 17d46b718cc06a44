"""Answers that both servers give: to requests, and over a WebSocket."""

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket


def json_response(content: Any, status: int = 200, headers: Any = None) -> Response:
    """Return an answer in ASCII JSON, which also encodes non-UTF-8 file names."""
    text = json.dumps(content, allow_nan=False)
    return Response(text, status, headers, media_type="application/json")


def scene_response(scene: bytes, version: int) -> Response:
    """Return an answer with an encoded scene and its version."""
    headers = {"Scene-Version": str(version)}
    return Response(scene, media_type="application/octet-stream", headers=headers)


async def no_content(_: Request) -> Response:
    """Answer with nothing."""
    return Response(status_code=204)


async def send_until_disconnect(
    socket: WebSocket, messages: Coroutine[Any, Any, None]
) -> None:
    """Run what sends messages to a page until the page disconnects.

    Messages from the page are ignored: requests come by HTTP.
    """
    sender = asyncio.create_task(messages)
    try:
        while (await socket.receive())["type"] != "websocket.disconnect":
            pass
    finally:
        sender.cancel()
        await asyncio.wait([sender])
