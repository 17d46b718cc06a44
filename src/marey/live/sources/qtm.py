"""Qualisys Track Manager: its real-time server, by the package qtm-rt."""

import asyncio
import time
from collections.abc import Sequence
from queue import Empty, Full, Queue
from threading import Thread
from typing import Any
from xml.etree import ElementTree

import numpy as np

from marey.errors import DataError, StreamError, import_extra
from marey.live.address import Address
from marey.live.frame import Frame
from marey.live.sources.contract import StreamSource
from marey.numerics import geometry

PORT = 22223
MAX_QUEUE = 64
"""Frames that wait between the thread of the connection and the reader; more are lost,
which their numbers show. Higher delivers older frames."""


class QtmSource(StreamSource):
    """Streams labelled markers and 6-DoF bodies of QTM, in millimetres and +Z up."""

    def __init__(self, address: Address, timeout: float) -> None:
        super().__init__(address)
        address.check_options()
        self._qtm = import_extra("qtm_rt", "live", "qtm-rt")
        self._frames: Queue[Frame] = Queue(MAX_QUEUE)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._connection: Any = None
        try:
            self._run(self._connect(timeout), 3.0 * timeout)
        except Exception as error:  # whatever the package raises about the connection
            self.close()
            expected = f"a QTM real-time server within {timeout:g} s"
            found = str(error) or type(error).__name__
            raise StreamError(address.text, expected=expected, found=found) from error

    def _run(self, coroutine: Any, timeout: float) -> Any:
        """Run a coroutine in the thread of the connection."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout)

    async def _connect(self, timeout: float) -> None:
        host, port = self.address.host_and_port(PORT)
        self._connection = await self._qtm.connect(
            host, port, timeout=timeout, on_disconnect=self._end
        )
        if self._connection is None:
            raise ConnectionError("no answer")
        text = await self._connection.get_parameters(parameters=["3d", "6d"])
        self._labels, self._bodies = read_names(text)
        await self._connection.stream_frames(
            components=["3d", "6d"], on_packet=self._add_packet
        )

    def _end(self, *reason: object) -> None:
        self.has_ended = True

    def _add_packet(self, packet: Any) -> None:
        arrival = time.monotonic()
        try:
            frame = frame_of(packet, self._labels, self._bodies, arrival)
            self._frames.put_nowait(frame)
        except (Full, DataError, StreamError):
            self.n_damaged += 1

    def receive(self, timeout: float) -> Frame | None:
        """Return the next frame."""
        try:
            return self._frames.get(timeout=timeout)
        except Empty:
            return None

    def close(self) -> None:
        """Close the connection and end its thread."""
        if self._connection is not None:
            self._loop.call_soon_threadsafe(self._connection.disconnect)
            # The transport closes its socket in a later turn of the loop.
            self._run(asyncio.sleep(0.0), 1.0)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(2.0)
        if not self._thread.is_alive():
            self._loop.close()


def read_names(text: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return labels of markers and names of bodies in the parameters of QTM.

    Raises:
        StreamError: If they are no XML.
    """
    try:
        if b"<!" in text:  # entities are declared there
            raise ElementTree.ParseError("a document type")
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        raise StreamError("qtm", expected="plain XML", found=str(error)) from error
    labels = [_name(item) for item in root.findall("./The_3D/Label")]
    bodies = [_name(item) for item in root.findall("./The_6D/Body")]
    return tuple(labels), tuple(bodies)


def _name(item: Any) -> str:
    return (item.findtext("Name") or "").strip()


def frame_of(
    packet: Any, labels: Sequence[str], bodies: Sequence[str], arrival: float
) -> Frame:
    """Return the frame of a packet of qtm-rt.

    Args:
        packet: A `qtm_rt.QRTPacket` with 3D and 6D components.
        labels: Labels of the markers.
        bodies: Names of the bodies.
        arrival: When it came, in seconds.

    Raises:
        StreamError: If it is cut or forged.
        DataError: If it has other numbers of markers or bodies than there are names.
    """
    try:
        _, markers = packet.get_3d_markers() or (None, ())
        _, poses = packet.get_6d() or (None, ())
    except Exception as error:  # whatever the package raises about the bytes
        found = str(error) or type(error).__name__
        raise StreamError("qtm", expected="3D and 6D", found=found) from error
    points = 1e-3 * np.array([[m.x, m.y, m.z] for m in markers]).reshape(-1, 3)
    position = 1e-3 * np.array([[p.x, p.y, p.z] for p, _ in poses]).reshape(-1, 3)
    matrices = np.array([R.matrix for _, R in poses], dtype=float).reshape(-1, 3, 3)
    R = matrices.swapaxes(1, 2)  # column by column
    return Frame(
        number=packet.framenumber,
        time=packet.timestamp * 1e-6,
        arrival=arrival,
        points=points,
        labels=tuple(labels),
        T_world_sensor=geometry.transform(R, position),
        sensor_names=tuple(bodies),
    )


def open_source(address: Address, timeout: float) -> StreamSource:
    """Return the stream of QTM."""
    return QtmSource(address, timeout)
