"""Frames sent as UDP packets: MXTP and VMC."""

import socket
from collections.abc import Callable
from contextlib import suppress

from marey.live.address import LOOPBACK, Address, is_loopback, socket_errors
from marey.live.codecs import encode_mxtp, encode_vmc, mxtp, vmc
from marey.live.frame import Frame
from marey.live.sinks.contract import Sink

Encoder = Callable[[Frame], tuple[bytes, ...]]


class UdpSink(Sink):
    """Sends the packets of frames to one host and port."""

    def __init__(self, address: Address, port: int, encode: Encoder) -> None:
        super().__init__(address)
        address.check_options()
        host, port = address.host_and_port(port)
        with socket_errors(address, "a host that is known"):
            self._target = (socket.gethostbyname(host), port)
        self._encode = encode
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        if is_loopback(self._target[0]):  # else it would receive from anywhere
            self._socket.bind((LOOPBACK, 0))

    def send(self, frame: Frame) -> None:
        """Send a frame; packets that the system does not take are lost."""
        for packet in self._encode(frame):
            with suppress(OSError):
                self._socket.sendto(packet, self._target)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def open_port(address: Address) -> Sink:
    """Return the sink of MXTP or VMC packets."""
    encoders: dict[str, tuple[int, Encoder]] = {
        mxtp.PROTOCOL: (mxtp.PORT, encode_mxtp),
        vmc.PROTOCOL: (vmc.PORT, encode_vmc),
    }
    return UdpSink(address, *encoders[address.scheme])
