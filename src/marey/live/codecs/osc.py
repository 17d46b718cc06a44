"""Open Sound Control 1.0: messages and bundles."""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from marey.live.codecs.packet import Packet

PROTOCOL = "osc"
BUNDLE = b"#bundle\0"
IMMEDIATELY = 1
"""Time tag of bundles that take effect when they come."""

MAX_DEPTH = 8
"""Largest nesting of bundles; deeper ones are refused. Higher costs stack."""

OscValue = int | float | str | bytes | bool | None

NUMBERS = {"i": "i", "f": "f", "h": "q", "d": "d", "t": "Q", "c": "I"}
"""`struct` character of each type tag that is a number."""

CONSTANTS: dict[str, OscValue] = {"T": True, "F": False, "N": None, "I": float("inf")}
"""Values of type tags without bytes."""


class OscMessage(NamedTuple):
    """An address and its values."""

    address: str
    values: tuple[OscValue, ...] = ()


def decode_osc(data: bytes) -> tuple[OscMessage, ...]:
    """Return the messages of a packet, those of bundles in their order.

    Raises:
        StreamError: If the packet is no message or bundle.
    """
    return _decode(data, 0)


def _decode(data: bytes, depth: int) -> tuple[OscMessage, ...]:
    packet = Packet(PROTOCOL, data, ">")
    if depth > MAX_DEPTH:
        packet.fail(f"at most {MAX_DEPTH} bundles in each other", "more")
    if not data.startswith(BUNDLE):
        return (_decode_message(packet),)
    packet.take(len(BUNDLE) + 8)
    messages: list[OscMessage] = []
    while packet.remaining:
        messages += _decode(packet.take(packet.count(1)), depth + 1)
    return tuple(messages)


def _decode_message(packet: Packet) -> OscMessage:
    address = _read_text(packet)
    if not address.startswith("/"):
        packet.fail("an address that begins with /", repr(address[:40]))
    tags = _read_text(packet) if packet.remaining else ","
    if not tags.startswith(","):
        packet.fail("type tags that begin with a comma", repr(tags[:40]))
    return OscMessage(address, tuple(_read_value(packet, tag) for tag in tags[1:]))


def _read_text(packet: Packet) -> str:
    text = packet.text()
    packet.take(-packet.position % 4)
    return text


def _read_value(packet: Packet, tag: str) -> OscValue:
    if tag in NUMBERS:
        value: OscValue = packet.number(NUMBERS[tag])
        return value
    if tag in ("s", "S"):
        return _read_text(packet)
    if tag == "b":
        blob = packet.take(packet.count(1))
        packet.take(-packet.position % 4)
        return blob
    if tag not in CONSTANTS:
        packet.fail("a type tag of OSC 1.0", repr(tag))
    return CONSTANTS[tag]


def encode_message(address: str, *values: OscValue) -> bytes:
    """Return a message; whole numbers become 32 or 64 bits, others 32-bit floats."""
    encoded = [_encode_value(value) for value in values]
    tags = "," + "".join(tag for tag, _ in encoded)
    parts = [_pad(address), _pad(tags), *(data for _, data in encoded)]
    return b"".join(parts)


def _encode_value(value: OscValue) -> tuple[str, bytes]:
    if value is None or isinstance(value, bool):
        return {True: "T", False: "F", None: "N"}[value], b""
    if isinstance(value, int):
        small = -(2**31) <= value < 2**31
        return ("i", struct.pack(">i", value)) if small else _encode_long(value)
    if isinstance(value, float):
        return "f", struct.pack(">f", value)
    if isinstance(value, str):
        return "s", _pad(value)
    blob = struct.pack(">i", len(value)) + value
    return "b", blob + b"\0" * (-len(blob) % 4)


def _encode_long(value: int) -> tuple[str, bytes]:
    return "h", struct.pack(">q", value)


def _pad(text: str) -> bytes:
    data = text.replace("\0", "").encode() + b"\0"
    return data + b"\0" * (-len(data) % 4)


def encode_bundle(messages: Sequence[bytes]) -> bytes:
    """Return a bundle of encoded messages that takes effect immediately."""
    parts = [BUNDLE, struct.pack(">Q", IMMEDIATELY)]
    for message in messages:
        parts += [struct.pack(">i", len(message)), message]
    return b"".join(parts)
