"""NatNet of OptiTrack Motive: connect to a server and receive its frames."""

import socket
import time
from contextlib import suppress

from marey.errors import OptionError
from marey.live.address import Address, socket_errors
from marey.live.codecs import NatNetDecoder, natnet
from marey.live.frame import Frame
from marey.live.sources.udp import UdpSource, bind_socket

REQUEST_S = 1.0
"""Seconds between messages that keep the connection alive and ask for names. Higher
sends less and notices new names later. Chosen by hand; Motive waits for several."""


class NatNetSource(UdpSource):
    """Asks a server for version and names, and reads the frames that it sends.

    Options of the address: `version` until the server states its own, `up` (y or z),
    `data` (port of the frames), and `multicast`, a group to join, for servers that do
    not send to each client. Packets of other hosts are not read.
    """

    def __init__(self, address: Address, timeout: float) -> None:
        address.check_options("version", "up", "data", "multicast")
        host, port = address.host_and_port(natnet.COMMAND_PORT)
        with socket_errors(address, "a host that is known"):
            self._server = (socket.gethostbyname(host), port)
        decoder = NatNetDecoder(_version(address), address.options.get("up", "y"))
        local = _local_address(address, self._server)
        data_port = int(address.number("data", natnet.DATA_PORT))
        group = address.options.get("multicast")
        sockets = [bind_socket(address, group or local, data_port)]
        if group is not None:
            sockets.append(bind_socket(address, local, 0))
            _join_group(address, sockets[0], group or natnet.MULTICAST, local)
        super().__init__(address, sockets, decoder)
        self._asked = -REQUEST_S

    def receive(self, timeout: float) -> Frame | None:
        """Return the next frame; the server is asked again from time to time."""
        now = time.monotonic()
        if now - self._asked > REQUEST_S:
            self._asked = now
            kinds = (natnet.CONNECT, natnet.REQUEST_MODELS, natnet.KEEP_ALIVE)
            for kind in kinds:
                with suppress(OSError):
                    self._sockets[-1].sendto(natnet.request(kind), self._server)
        return super().receive(timeout)

    def accepts(self, host: str) -> bool:
        """Return whether packets of this host are read: the server's alone."""
        return host == self._server[0]


def _version(address: Address) -> tuple[int, int]:
    text = address.options.get("version", "3.1")
    major, _, minor = text.partition(".")
    if major not in ("3", "4") or not (minor or "0").isdigit():
        raise OptionError("version", found=text, needed="3.0, 3.1, 4.0 or 4.1")
    return int(major), int(minor or 0)


def _local_address(address: Address, server: tuple[str, int]) -> str:
    """Return the address of this machine from which the server is reached."""
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        with socket_errors(address, "a network that reaches the server"):
            probe.connect(server)
        return str(probe.getsockname()[0])
    finally:
        probe.close()


def _join_group(address: Address, data: socket.socket, group: str, local: str) -> None:
    with socket_errors(address, f"a multicast group {group}"):
        member = socket.inet_aton(group) + socket.inet_aton(local)
        data.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
