"""Sinks of streams, by the scheme of their address.

A new sink is one module and one line in `REGISTRY`: what to call with the address.
Recordings (`record:`) are not among them: they get every frame, sinks the latest.
"""

from importlib import import_module

from marey.errors import OptionError
from marey.live.address import parse_address
from marey.live.sinks.contract import Sink as Sink

REGISTRY = {
    "mxtp": "marey.live.sinks.udp:open_port",
    "vmc": "marey.live.sinks.udp:open_port",
    "ws": "marey.live.sinks.websocket:WebSocketSink",
    "lsl": "marey.live.sinks.lsl:LslSink",
}


def open_sink(text: str) -> Sink:
    """Return the sink of an address.

    Args:
        text: Such as "vmc://127.0.0.1:39539" or "ws://127.0.0.1:8765".

    Raises:
        OptionError: If the protocol or one of its options is not known.
        StreamError: If the port is taken or the host is not known.
        MissingExtraError: If the protocol needs a package that is not installed.
    """
    address = parse_address(text)
    if address.scheme not in REGISTRY:
        needed = f"one of record, {', '.join(REGISTRY)}"
        raise OptionError("sink", found=address.scheme, needed=needed)
    module, _, name = REGISTRY[address.scheme].partition(":")
    sink: Sink = getattr(import_module(module), name)(address)
    return sink
