"""The server in a thread of its own, and the handle by which it is stopped."""

import errno
import os
import shutil
import socket
import tempfile
import threading
from pathlib import Path
from typing import Any

import uvicorn

from marey.errors import OptionError, OutputError
from marey.io.formats.html import read_page
from marey.viewer.server.app import Rooms
from marey.viewer.server.auth import LOCAL, Guard, new_token
from marey.viewer.server.state import Show, Source
from marey.viewer.worker.supervisor import Limits

LONGEST_MESSAGE = 2**20
"""Bytes of a WebSocket message beyond which its sender is shut out."""

PATIENCE = 1
"""Seconds that an end waits for answers under way."""


class Viewer:
    """A page that is being served; `url` is its address, `close` ends it.

    Use it in a `with` block, or call `close`.
    """

    def __init__(
        self,
        *,
        host: str,
        port: int,
        title: str,
        root: Path | None,
        limits: Limits,
    ) -> None:
        self._socket = _bound(host, port)
        self.port: int = self._socket.getsockname()[1]
        """The port it listens on."""

        self._scratch = Path(tempfile.mkdtemp(prefix="marey-"))
        self._token = new_token()
        self._host, self._root, self._limits = host, root, limits
        self._show = Show(limits, title)
        self._server: uvicorn.Server | None = None
        self._ended = threading.Event()

    @property
    def url(self) -> str:
        """The address with its token: whoever has it may look and edit."""
        name = "127.0.0.1" if self._host in ("0.0.0.0", "::") else self._host
        name = f"[{name}]" if ":" in name else name
        return f"http://{name}:{self.port}/?token={self._token}"

    @property
    def scratch(self) -> Path:
        """A folder that lives as long as the viewer."""
        return self._scratch

    def start(self, first: Source | None) -> None:
        """Begin to serve, and to open the first thing."""
        page = read_page()
        rooms = Rooms(
            self._show, page.text, self._root, self._scratch, first, self._limits
        )
        policy = page.policy("'self'") + "; frame-ancestors 'none'"
        guard = Guard(rooms.app(), self._token, self.port, policy, self._host)
        config = uvicorn.Config(
            guard,
            http="h11",
            ws="websockets-sansio",
            ws_max_size=LONGEST_MESSAGE,
            access_log=False,
            log_config=None,
            log_level="error",
            lifespan="on",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=PATIENCE,
        )
        self._server = uvicorn.Server(config)
        threading.Thread(target=self._run, name="marey-view", daemon=True).start()

    def _run(self) -> None:
        assert self._server is not None
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._ended.set()

    def wait(self) -> None:
        """Return when the server has ended; Ctrl-C ends it."""
        try:
            # Not by joining the thread: interrupted, that takes it for ended.
            while not self._ended.wait(0.2):
                pass
        finally:
            self.close()

    def close(self) -> None:
        """End the server: the port is free and nothing is left behind."""
        if self._server is not None:
            self._server.should_exit = True
            self._ended.wait()
        self._socket.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def __enter__(self) -> "Viewer":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def is_local(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    return host.lower() in (*LOCAL, "::1")


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket on a port that nobody else has; port 0 is any.

    Raises:
        OptionError: If the port is taken, or there is no such address here.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            # A port is free again as soon as its server has ended.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(128)
    except (OSError, OverflowError) as error:
        listening.close()
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            needed = "a port that no other program uses, or 0 for any"
            raise OptionError("port", found=port, needed=needed) from None
        if isinstance(error, PermissionError):
            raise OutputError(f"port {port} is not allowed: {error.strerror}") from None
        found, needed = f"{host}:{port}", "an address of this machine"
        raise OptionError("host", found=found, needed=needed) from None
    return listening
