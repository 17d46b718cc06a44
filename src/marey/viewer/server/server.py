"""The web server, which runs in a thread, and `Viewer`, which stops it."""

import asyncio
import errno
import logging
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from marey.errors import OptionError, OutputError
from marey.io.formats.html import read_page
from marey.io.formats.html.page import HtmlPage
from marey.live import Stream
from marey.viewer.server.app import ViewerRoutes
from marey.viewer.server.auth import LOCAL_HOSTS, Authenticator, new_token
from marey.viewer.server.live_app import LiveRoutes
from marey.viewer.server.live_feed import LiveFeed
from marey.viewer.server.state import ServerState, ViewedFile
from marey.viewer.server.timed_http import TimedH11Protocol
from marey.viewer.worker.supervisor import Limits

MAX_WEBSOCKET_MESSAGE_BYTES = 2**20
"""Largest WebSocket message of a page, in bytes. A larger one ends the connection.
Chosen by hand."""

SHUTDOWN_TIMEOUT_S = 1
"""Seconds that a shutdown waits for unfinished answers. Chosen by hand."""


class ClosingServer(uvicorn.Server):
    """A server whose shutdown also ends connections that clients leave open."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Shut down; abort connections whose client neither reads nor closes."""
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # transports close their sockets in the next round


class Viewer:
    """A running server; `url` is its address, `close()` stops it.

    Use it in a `with` block, or call `close()`.
    """

    def __init__(self, host: str, port: int, limits: Limits) -> None:
        self._socket = _listen(host, port)
        self.port: int = self._socket.getsockname()[1]
        """Port of the server."""

        self.scratch = Path(tempfile.mkdtemp(prefix="marey-"))
        """Temporary folder, deleted by `close()`."""

        self._token = new_token()
        self._host, self._limits = host, limits
        self._server: uvicorn.Server | None = None
        self._stopped = threading.Event()

    @property
    def url(self) -> str:
        """Address with the token: everyone who has it can view and edit."""
        name = "127.0.0.1" if self._host in ("0.0.0.0", "::") else self._host
        name = f"[{name}]" if ":" in name else name
        return f"http://{name}:{self.port}/?token={self._token}"

    def start(
        self,
        title: str,
        root: Path | None,
        first_file: ViewedFile | None,
        reading: Mapping[str, Any],
    ) -> None:
        """Start the server, which opens the first file.

        Args:
            title: Title of the page before any file is open.
            root: Folder of the recordings that can be opened; None = none can.
            first_file: File that is opened at once.
            reading: Options of `marey.read` for all files, if no file is opened first.
        """
        page = read_page()
        self.state = ServerState(self._limits, title)
        routes = ViewerRoutes(
            self.state,
            page.text,
            root,
            self.scratch,
            first_file,
            self._limits,
            reading={} if first_file else reading,
        )
        self._serve(routes.build_app(), page)

    def start_live(self, stream: Stream) -> None:
        """Start the server of a live page, which closes the stream at its end."""
        page = read_page()
        self._serve(
            LiveRoutes(LiveFeed(stream, stream.source), page.text).build_app(), page
        )

    def _serve(self, app: ASGIApp, page: HtmlPage) -> None:
        policy = page.policy("'self'") + "; frame-ancestors 'none'"
        authenticator = Authenticator(app, self._token, self.port, policy, self._host)
        config = uvicorn.Config(
            authenticator,
            http=TimedH11Protocol,
            ws="websockets-sansio",
            ws_max_size=MAX_WEBSOCKET_MESSAGE_BYTES,
            access_log=False,
            log_config=None,
            log_level="error",
            lifespan="on",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
        )
        logging.getLogger("uvicorn.error").addFilter(_is_no_bad_text)
        self._server = ClosingServer(config)
        threading.Thread(target=self._run, name="marey-view", daemon=True).start()

    def _run(self) -> None:
        assert self._server is not None
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._stopped.set()

    def wait(self) -> None:
        """Wait until the server has stopped; Ctrl-C stops it."""
        try:
            # Thread.join, when interrupted, marks a running thread as stopped.
            while not self._stopped.wait(0.2):
                pass
        finally:
            self.close()

    def close(self) -> None:
        """Stop the server and its worker, free the port and delete temporary files."""
        if self._server is not None:
            self._server.should_exit = True
            self._stopped.wait()
        self._socket.close()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def __enter__(self) -> "Viewer":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _is_no_bad_text(record: logging.LogRecord) -> bool:
    """Whether a record is worth a line: bytes of a client that are no text are not."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, UnicodeDecodeError)


def is_local(host: str) -> bool:
    """Return whether only this machine can reach a server at this address."""
    return host.lower() in (*LOCAL_HOSTS, "::1")


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 = any free port.

    Raises:
        OptionError: If the port is in use, or the address is not of this machine.
        OutputError: If the port is not permitted.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            # Without this, a port stays blocked for a minute after its server ends.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
    except (OSError, OverflowError) as error:
        listener.close()
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            needed = "a port that no other program uses, or 0 for any free port"
            raise OptionError("port", found=port, needed=needed) from None
        if isinstance(error, PermissionError):
            raise OutputError(
                f"port {port} is not permitted: {error.strerror}"
            ) from None
        found, needed = f"{host}:{port}", "an address of this machine"
        raise OptionError("host", found=found, needed=needed) from None
    return listener
