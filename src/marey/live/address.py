"""Addresses of streams: "natnet://192.168.1.5?version=4.1", "file:walk.c3d?loop"."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qsl

from marey.errors import OptionError, StreamError, reason

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Address:
    """An address in its parts."""

    text: str
    """As it was given."""

    scheme: str
    """The protocol, such as "natnet"."""

    target: str
    """Host and port, the name of a stream or the path of a file."""

    options: Mapping[str, str]

    def host_and_port(self, port: int) -> tuple[str, int]:
        """Return host and port; loopback and the usual port where none is given.

        Raises:
            OptionError: If the port is no number of one.
        """
        host, _, given = self.target.rpartition(":")
        if not given.isdigit():
            host, given = self.target, str(port)
        if not 0 <= int(given) < 2**16:
            raise OptionError("port", found=given, needed="0 to 65535")
        return host or LOOPBACK, int(given)

    def number(self, name: str, default: float | int) -> float:
        """Return a number among the options.

        Raises:
            OptionError: If it is something else, or negative.
        """
        try:
            value = float(self.options.get(name, default))
        except ValueError:
            value = -1.0
        if not value >= 0.0:
            needed = "a number from 0 on"
            raise OptionError(name, found=self.options[name], needed=needed)
        return value

    def check_options(self, *known: str) -> None:
        """Refuse options that the protocol does not have.

        Raises:
            OptionError: If there is another.
        """
        for name in self.options:
            if name not in known:
                needed = f"one of {', '.join(known)}" if known else "no option"
                raise OptionError(self.scheme, found=name, needed=needed)


def parse_address(text: str) -> Address:
    """Return the parts of an address; a path without a scheme is a file.

    Raises:
        OptionError: If there is no scheme, and no file of this name.
    """
    scheme, colon, rest = text.partition(":")
    if not colon or len(scheme) < 2:  # "C:" is a drive
        if not Path(text.partition("?")[0]).exists():
            needed = "an address such as natnet://127.0.0.1, or a file"
            raise OptionError("address", found=text, needed=needed)
        scheme, rest = "file", text
    target, _, query = rest.removeprefix("//").partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    return Address(text, scheme.lower(), target, options)


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


@contextmanager
def socket_errors(address: Address, expected: str) -> Iterator[None]:
    """Turn errors of sockets into a `StreamError` about this address."""
    try:
        yield
    except UnicodeError as error:
        raise StreamError(address.text, expected=expected, found="no host") from error
    except (OSError, OverflowError) as error:
        found = reason(error) or "silence"
        raise StreamError(address.text, expected=expected, found=found) from error
