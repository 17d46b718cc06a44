"""Start, stop and mark recordings by OSC messages of other programs."""

import select
from threading import Event, Thread
from typing import Protocol, runtime_checkable

from marey.errors import MareyError, OptionError, StreamError
from marey.live.address import parse_address
from marey.live.codecs import OscMessage, decode_osc
from marey.live.intake import PAUSE_S
from marey.live.sources.udp import MAX_PACKET_BYTES, bind_socket

SCHEME, PORT = "osc", 9000
START, STOP, MARK, ZERO = "/marey/start", "/marey/stop", "/marey/mark", "/marey/zero"


@runtime_checkable
class Triggered(Protocol):
    """What messages control: a stream."""

    def start_recording(self) -> None:
        """Begin to record."""

    def stop_recording(self) -> None:
        """End the recordings."""

    def mark(self, label: str = "mark") -> None:
        """Append an event to the recordings."""

    def set_zero_pose(self) -> None:
        """Take the newest frame for the rest pose."""


class OscTriggers:
    """Listens for messages: `/marey/start`, `/marey/stop`, `/marey/mark` with a label.

    `/marey/zero` sets the zero pose of a virtual skeleton. What cannot be done, and
    packets of anything else, are counted.

    Args:
        text: Address to listen on, "osc://127.0.0.1:9000".
        target: The stream.

    Raises:
        OptionError: If it is no address of OSC.
        StreamError: If the port is taken.
    """

    def __init__(self, text: str, target: Triggered) -> None:
        address = parse_address(text)
        if address.scheme != SCHEME:
            needed = f"an address such as {SCHEME}://127.0.0.1:{PORT}"
            raise OptionError("triggers", found=text, needed=needed)
        address.check_options()
        self._target, self._stop = target, Event()
        self._socket = bind_socket(address, *address.host_and_port(PORT))
        self.n_refused = 0
        """Messages that could not be obeyed, and packets of anything else."""
        self._thread = Thread(target=self._run, name="marey triggers", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            if not select.select([self._socket], [], [], PAUSE_S)[0]:
                continue
            try:
                for message in decode_osc(self._socket.recv(MAX_PACKET_BYTES)):
                    self._obey(message)
            except (StreamError, OSError):
                self.n_refused += 1

    def _obey(self, message: OscMessage) -> None:
        label = message.values[0] if message.values else "mark"
        actions = {
            START: self._target.start_recording,
            STOP: self._target.stop_recording,
            MARK: lambda: self._target.mark(str(label)),
            ZERO: self._target.set_zero_pose,
        }
        try:
            actions[message.address]()
        except (KeyError, MareyError):
            self.n_refused += 1

    def close(self) -> None:
        """End the thread and free the port."""
        self._stop.set()
        self._thread.join()
        self._socket.close()
