"""HTTP connections that are closed when the client keeps the server waiting."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_WAIT_S = 20.0
"""Seconds in which a request must begin and its header end, and between two parts of
its body. Higher keeps slow or forgotten connections for longer. Chosen by hand."""


class TimedH11Protocol(H11Protocol):
    """HTTP/1.1 of uvicorn with a limit on how long a client may keep it waiting."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start to wait for a request."""
        super().connection_made(transport)
        self._set_deadline()

    def data_received(self, data: bytes) -> None:
        """Go on waiting, unless the header is still incomplete: it has one deadline."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        if self._deadline is not None:
            self._deadline.cancel()

    def _set_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(MAX_WAIT_S, self._close_if_late)

    def _close_if_late(self) -> None:
        upgraded = self.transport.get_protocol() is not self  # to a WebSocket
        if not upgraded and self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self.transport.close()
