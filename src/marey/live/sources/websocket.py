"""Frames of a WebSocket server, such as the sink `ws://` of another marey."""

import time
from contextlib import ExitStack
from urllib.parse import urlencode

from marey.errors import StreamError, import_extra
from marey.live.address import Address, socket_errors
from marey.live.codecs.message import MAX_MESSAGE_BYTES, decode_frame
from marey.live.frame import Frame
from marey.live.sources.contract import StreamSource

PORT = 8765
MAX_QUEUE = 8
"""Messages that wait while this program is busy; then the server must wait. Higher
delivers older frames."""


class WebSocketSource(StreamSource):
    """Connects to a server and decodes its binary messages."""

    def __init__(self, address: Address, timeout: float) -> None:
        super().__init__(address)
        address.check_options("token")
        exceptions = import_extra("websockets.exceptions", "live")
        connect = import_extra("websockets.sync.client", "live").connect
        self._closed, self._open = exceptions.ConnectionClosed, ExitStack()
        host, port = address.host_and_port(PORT)
        token = address.options.get("token")
        query = "?" + urlencode({"token": token}) if token else ""
        expected = f"a WebSocket server at {host}:{port} within {timeout:g} s"
        try:
            with socket_errors(address, expected):
                connection = connect(
                    f"ws://{host}:{port}/{query}",
                    open_timeout=timeout,
                    close_timeout=1.0,
                    max_size=MAX_MESSAGE_BYTES,
                    max_queue=MAX_QUEUE,
                    compression=None,
                    proxy=None,
                )
        except exceptions.WebSocketException as error:
            found = str(error) or "silence"
            raise StreamError(address.text, expected=expected, found=found) from error
        self._connection = self._open.enter_context(connection)

    def receive(self, timeout: float) -> Frame | None:
        """Return the frame of the next message."""
        end = time.monotonic() + timeout
        while (wait := end - time.monotonic()) >= 0.0:
            try:
                data = self._connection.recv(timeout=wait)
                if isinstance(data, bytes):
                    return decode_frame(data, time.monotonic())
                self.n_damaged += 1
            except TimeoutError:
                return None
            except StreamError:
                self.n_damaged += 1
            except self._closed:
                self.has_ended = True
                return None
        return None

    def close(self) -> None:
        """Close the connection."""
        self._open.close()
