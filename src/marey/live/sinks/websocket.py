"""A WebSocket server: every client gets the latest frame, as fast as it reads."""

import hmac
from http import HTTPStatus
from threading import Condition, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from marey.errors import OptionError, import_extra
from marey.live.address import Address, is_loopback, socket_errors
from marey.live.codecs.message import MAX_MESSAGE_BYTES, encode_frame
from marey.live.frame import Frame
from marey.live.sinks.contract import Sink

PORT = 8765
MAX_CLIENTS = 32
"""Clients at a time; more are refused. Higher takes one thread each."""

MIN_TOKEN_LENGTH = 22
"""Letters of a token: 128 bits in base 64 (RFC 6749, Sec. 10.10). Higher asks for
longer tokens."""

PAUSE_S = 0.5
"""Seconds after which an idle client is looked at again. Higher ends later."""


class WebSocketSink(Sink):
    """Serves frames; a client that does not read gets none, and delays nobody.

    Beyond loopback the address needs a `token`, which clients give in theirs. Pages of
    browsers are refused: they send an Origin.
    """

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        address.check_options("token")
        serve = import_extra("websockets.sync.server", "live").serve
        host, port = address.host_and_port(PORT)
        self._token = address.options.get("token", "")
        if not is_loopback(host) and len(self._token) < MIN_TOKEN_LENGTH:
            needed = f"{MIN_TOKEN_LENGTH} letters to serve beyond this machine"
            raise OptionError("token", found=self._token, needed=needed)
        self._new = Condition()
        self._message, self._count, self._n_clients = b"", 0, 0
        self._is_open = True
        with socket_errors(address, f"a free port {port} at {host}"):
            self._server = serve(
                self._serve_client,
                host,
                port,
                origins=[None],
                process_request=self._check_token,
                compression=None,
                max_size=MAX_MESSAGE_BYTES,
                close_timeout=PAUSE_S,
            )
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def send(self, frame: Frame) -> None:
        """Keep a frame as the latest, which clients get when they are ready."""
        message = encode_frame(frame)
        with self._new:
            self._message, self._count = message, self._count + 1
            self._new.notify_all()

    def _check_token(self, connection: Any, request: Any) -> Any:
        given = parse_qs(urlsplit(request.path).query).get("token", [""])[0]
        if not hmac.compare_digest(given.encode(), self._token.encode()):
            return connection.respond(HTTPStatus.FORBIDDEN, "wrong token\n")
        if self._n_clients >= MAX_CLIENTS:
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, "too many\n")
        return None

    def _serve_client(self, connection: Any) -> None:
        """Send the latest frame again and again; runs in a thread of its own."""
        with self._new:
            self._n_clients += 1
        try:
            sent = 0
            while self._is_open:
                with self._new:
                    if self._count == sent:
                        self._new.wait(PAUSE_S)
                    message, count = self._message, self._count
                if count != sent:
                    connection.send(message)
                    sent = count
        except Exception:  # the client went away, in one of the ways of websockets
            return
        finally:
            with self._new:
                self._n_clients -= 1

    def close(self) -> None:
        """Close all connections and free the port."""
        self._is_open = False
        with self._new:
            self._new.notify_all()
        self._server.shutdown()
        self._thread.join(2.0)
