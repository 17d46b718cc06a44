"""Sources of streams, by the scheme of their address.

A new source is one module and one line in `REGISTRY`: what to call with the address and
the longest time to connect.
Nothing listens beyond this machine unless the address asks for it.
"""

from importlib import import_module

from marey.errors import StreamError, check_choice
from marey.live.address import parse_address
from marey.live.sources.contract import AbsentSource
from marey.live.sources.contract import StreamSource as StreamSource

REGISTRY = {
    "file": "marey.live.sources.file:FileSource",
    "natnet": "marey.live.sources.natnet:NatNetSource",
    "mxtp": "marey.live.sources.udp:open_port",
    "vmc": "marey.live.sources.udp:open_port",
    "ws": "marey.live.sources.websocket:WebSocketSource",
    "lsl": "marey.live.sources.lsl:LslSource",
    "qtm": "marey.live.sources.qtm:QtmSource",
}

CONNECTED = ("ws", "lsl", "qtm")
"""Protocols whose sender must be there when a source opens. Others wait for packets."""

CONNECT_S = 5.0
"""Longest wait for a source, in seconds. Higher gives up later."""


def open_source(text: str, timeout: float = CONNECT_S) -> StreamSource:
    """Return the source of an address.

    Args:
        text: Such as "natnet://127.0.0.1", "file:walk.c3d?speed=2&loop", or a file.
        timeout: Longest time to connect, in seconds.

    Raises:
        OptionError: If the protocol or one of its options is not known.
        StreamError: If nobody is there, or the port is taken.
        MissingExtraError: If the protocol needs a package that is not installed.
    """
    address = parse_address(text)
    check_choice("source", address.scheme, REGISTRY)
    module, _, name = REGISTRY[address.scheme].partition(":")
    source: StreamSource = getattr(import_module(module), name)(address, timeout)
    return source


def open_or_await_source(text: str, timeout: float, waits: bool) -> StreamSource:
    """Return the source of an address; an absent one to wait for if nobody is there.

    Args:
        text: Such as "qtm://127.0.0.1".
        timeout: Longest time to connect, in seconds.
        waits: Whether a sender that is not there is waited for.

    Raises:
        OptionError: If the protocol or one of its options is not known.
        StreamError: If the port is taken, or nobody is there and `waits` is False.
        MissingExtraError: If the protocol needs a package that is not installed.
    """
    try:
        return open_source(text, timeout)
    except StreamError:
        address = parse_address(text)
        if not waits or address.scheme not in CONNECTED:
            raise
        return AbsentSource(address)
