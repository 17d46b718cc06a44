"""Streams of UDP packets: MXTP and VMC."""

import select
import socket
import time
from collections import deque
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from marey.errors import StreamError
from marey.live.address import Address, socket_errors
from marey.live.codecs import MxtpDecoder, VmcDecoder, mxtp, vmc
from marey.live.frame import Frame
from marey.live.sources.contract import StreamSource

MAX_PACKET_BYTES = 65_536
RECEIVE_BUFFER_BYTES = 2**20
"""Bytes that the system keeps while this program is busy; about a second of 100
markers at 500 Hz. Higher loses fewer frames in a pause, and delivers older ones."""


@runtime_checkable
class Decoder(Protocol):
    """Turns packets into frames."""

    def decode(self, data: bytes, arrival: float) -> list[Frame]:
        """Return the frames that a packet completes."""


class UdpSource(StreamSource):
    """Listens on sockets and decodes what comes."""

    def __init__(
        self, address: Address, sockets: Sequence[socket.socket], decoder: Decoder
    ) -> None:
        super().__init__(address)
        self._sockets, self._decoder = sockets, decoder
        self._pending: deque[Frame] = deque()

    def receive(self, timeout: float) -> Frame | None:
        """Return the next frame; damaged packets do not prolong the wait."""
        end = time.monotonic() + timeout
        while not self._pending:
            wait = end - time.monotonic()
            if wait < 0.0:
                return None
            self._receive_packets(wait)
        return self._pending.popleft()

    def _receive_packets(self, wait: float) -> None:
        for ready in select.select(self._sockets, [], [], wait)[0]:
            try:
                data, sender = ready.recvfrom(MAX_PACKET_BYTES)
            except OSError:  # an ICMP message: nobody listens where we sent to
                continue
            if self.accepts(sender[0]):
                self._decode(data)

    def _decode(self, data: bytes) -> None:
        try:
            self._pending += self._decoder.decode(data, time.monotonic())
        except StreamError:
            self.n_damaged += 1

    def accepts(self, host: str) -> bool:
        """Return whether packets of this host are read."""
        return True

    def close(self) -> None:
        """Close the sockets."""
        for one in self._sockets:
            one.close()


def bind_socket(address: Address, host: str, port: int) -> socket.socket:
    """Return a UDP socket that listens.

    Raises:
        StreamError: If the port is taken or the host is not this machine.
    """
    listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
    try:
        with socket_errors(address, f"a free port {port} at {host}, of this machine"):
            listening.bind((host, port))
    except StreamError:
        listening.close()
        raise
    return listening


def open_port(address: Address, timeout: float) -> StreamSource:
    """Return the stream of MXTP or VMC packets that come to a port."""
    address.check_options()
    decoders: dict[str, tuple[int, type[MxtpDecoder] | type[VmcDecoder]]] = {
        mxtp.PROTOCOL: (mxtp.PORT, MxtpDecoder),
        vmc.PROTOCOL: (vmc.PORT, VmcDecoder),
    }
    usual_port, decoder = decoders[address.scheme]
    listening = bind_socket(address, *address.host_and_port(usual_port))
    return UdpSource(address, [listening], decoder())
