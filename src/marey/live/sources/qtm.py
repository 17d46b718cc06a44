"""Qualisys Track Manager: connect to its real-time server and receive its frames."""

import socket
import time
from contextlib import suppress

from marey.errors import DataError, StreamError
from marey.live.address import Address, socket_errors
from marey.live.codecs import qtm
from marey.live.frame import Frame
from marey.live.sources.contract import StreamSource

VERSIONS = ("1.24", "1.8")
"""Versions of the protocol that are asked for, in turn; they send markers alike."""

REQUEST_S = 1.0
"""Seconds between requests for names, while frames do not fit those known. Higher sends
less and notices new names later. Chosen by hand."""

READ_BYTES = 2**16


class QtmSource(StreamSource):
    """Streams labelled markers and 6-DoF bodies of QTM.

    Markers that are added or left out while it streams are asked for by name.
    """

    def __init__(self, address: Address, timeout: float) -> None:
        super().__init__(address)
        address.check_options()
        self._messages, self._asked = qtm.QtmMessages(), time.monotonic()
        (host, port), end = address.host_and_port(qtm.PORT), time.monotonic() + timeout
        expected = f"a QTM real-time server at {host}:{port} within {timeout:g} s"
        with socket_errors(address, expected):
            self._socket = socket.create_connection((host, port), timeout)
            try:
                self._names = self._start_stream(end)
            except (OSError, StreamError):
                self.close()
                raise

    def _start_stream(self, end: float) -> qtm.QtmNames:
        """Agree on a version and return the names; frames come after them."""
        self._answer(qtm.COMMAND, end)  # the server says that it is there
        for version in VERSIONS:
            self._send(f"version {version}")
            try:
                self._answer(qtm.COMMAND, end)
                break
            except StreamError:  # an older server
                if version == VERSIONS[-1]:
                    raise
        self._send("getparameters 3d 6d")
        names = qtm.decode_names(self._answer(qtm.XML, end))
        self._send("streamframes allframes 3d 6d")
        return names

    def _answer(self, kind: int, end: float) -> bytes:
        """Return the content of the next message of a kind."""
        while (message := self._next_message(end)) is not None:
            if message[0] == qtm.ERROR:
                said = message[1].decode("utf-8", "replace").rstrip("\0")
                raise StreamError(qtm.PROTOCOL, expected="an answer", found=repr(said))
            if message[0] == kind:
                return message[1]
        raise TimeoutError("no answer")

    def _send(self, command: str) -> None:
        self._socket.sendall(qtm.encode_command(command))

    def _next_message(self, end: float) -> tuple[int, bytes] | None:
        """Return the next message; None at this time, or if no more come."""
        while (message := next(iter(self._messages), None)) is None:
            wait = end - time.monotonic()
            if wait <= 0.0 or self.has_ended:
                return None
            self._socket.settimeout(wait)
            try:
                data = self._socket.recv(READ_BYTES)
            except TimeoutError:
                return None
            except OSError:
                data = b""
            self.has_ended = not data
            self._messages.add(data)
        return message

    def receive(self, timeout: float) -> Frame | None:
        """Return the next frame."""
        end = time.monotonic() + timeout
        try:
            while (message := self._next_message(end)) is not None:
                frame = self._read(*message)
                if frame is not None:
                    return frame
        except StreamError:  # the next message cannot be found
            self.n_damaged += 1
            self.has_ended = True
        return None

    def _read(self, kind: int, content: bytes) -> Frame | None:
        """Return the frame of a message, if it has one; or keep new names."""
        try:
            if kind == qtm.XML:
                self._names = qtm.decode_names(content)
            elif kind == qtm.DATA:
                return qtm.decode_qtm(content, self._names, time.monotonic())
        except StreamError:
            self.n_damaged += 1
        except DataError:  # other markers or bodies than those that were named
            self.n_damaged += 1
            self._ask_for_names()
        return None

    def _ask_for_names(self) -> None:
        now = time.monotonic()
        if now - self._asked > REQUEST_S:
            self._asked = now
            with suppress(OSError):
                self._send("getparameters 3d 6d")

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
