"""QTM: our decoder and client beside those of qtm-rt, and packets that lie."""

import asyncio
import socket
import struct
import threading
import time
from contextlib import closing, contextmanager, suppress

import numpy as np
import pytest
import qtm_rt
from damage import damaged
from qtm_rt.packet import QRTPacket

import marey
from marey.live import open_source
from marey.live.codecs import qtm

R = marey.geometry.matrix_from_quat(np.array([0.5, 0.5, 0.5, 0.5]))
NAMES = qtm.QtmNames(("a", "b"), ("club",))
MUTATIONS = 2000


def message(kind, content):
    return struct.pack("<II", 8 + len(content), kind) + content


def data_of(number, points, *bodies):
    """A data message in the layout of QTM's manual, in millimetres."""
    markers = struct.pack("<Ihh", len(points), 0, 0) + np.array(points, "<f4").tobytes()
    parts = [message(qtm.MARKERS, markers)]
    if bodies:
        rows = np.array([[*at, *turned.T.ravel()] for at, turned in bodies], "<f4")
        content = struct.pack("<Ihh", len(bodies), 0, 0) + rows.tobytes()
        parts.append(message(qtm.BODIES, content))
    head = struct.pack("<qII", 10_000 * number, number, len(parts))
    return head + b"".join(parts)


@pytest.fixture
def packet():
    """Two markers, one of them hidden, and a body."""
    return data_of(42, [(1000, 2000, 3000), (np.nan,) * 3], ((10, 20, 30), R))


def parameters(*labels):
    names = "".join(f"<Label><Name>{label}</Name></Label>" for label in labels)
    text = f"<QTM_Parameters_Ver_1.24><The_3D>{names}</The_3D><The_6D/>"
    return f"{text}</QTM_Parameters_Ver_1.24>\0".encode()


# --- packets --------------------------------------------------------------------------


def test_a_packet_is_what_the_official_parser_reads(packet):
    frame, other = qtm.decode_qtm(packet, NAMES, 0.0), QRTPacket(packet)
    assert (frame.number, 1e6 * frame.time) == (other.framenumber, other.timestamp)
    assert (frame.labels, frame.sensor_names) == NAMES
    _, markers = other.get_3d_markers()
    np.testing.assert_allclose(1e3 * frame.points, [(m.x, m.y, m.z) for m in markers])
    _, ((position, rotation),) = other.get_6d()
    np.testing.assert_allclose(1e3 * frame.T_world_sensor[0, :3, 3], position)
    np.testing.assert_allclose(frame.T_world_sensor[0, :3, :3], R)
    np.testing.assert_allclose(R.T.ravel(), rotation.matrix)


def test_a_matrix_that_is_no_rotation_is_no_pose():
    for matrix in (np.zeros((3, 3)), 2.0 * R, -R, np.full((3, 3), np.inf)):
        data = data_of(1, [(0, 0, 0)] * 2, ((10, 20, 30), matrix))
        assert np.isnan(qtm.decode_qtm(data, NAMES, 0.0).T_world_sensor).all()


def test_names_are_those_of_the_parameters():
    names = qtm.decode_names(parameters("a", "b"))
    assert names == (("a", "b"), ())
    for text in (b"<!DOCTYPE a><a/>", b"", b"<a>", b"\xff\0"):
        with pytest.raises(marey.StreamError, match="plain XML"):
            qtm.decode_names(text)


def decode_damaged(whole, decode, rng):
    """How much was decoded of cut and forged bytes, and the typed errors.

    Args:
        whole: Bytes as they were sent.
        decode: Yields whether there is content, part by part.
        rng: What is damaged, and how.
    """
    n_read, errors, slowest = 0, [], 0.0
    for i in range(MUTATIONS):
        data = damaged(whole, rng) if i % 4 else whole[: rng.integers(len(whole))]
        start = time.process_time()
        try:
            n_read += sum(decode(data))
        except (marey.StreamError, marey.DataError) as error:
            errors.append(str(error))
        slowest = max(slowest, time.process_time() - start)
    assert all(map(str.isprintable, errors))
    assert slowest < 5.0, "hangs"
    return n_read, errors


@pytest.mark.usefixtures("unchecked")
def test_cut_and_forged_packets_give_frames_or_typed_errors(packet, rng):
    def decode(data):
        yield qtm.decode_qtm(data, NAMES, 0.0).n_seen > 0

    n_read, errors = decode_damaged(packet, decode, rng)
    assert min(n_read, len(errors)) > MUTATIONS // 20


def test_components_without_a_size_are_refused(packet):
    """The official parser would step through four billion of them."""
    forged = packet[:12] + struct.pack("<III", 2**32 - 1, 0, 1) + packet[24:]
    with pytest.raises(marey.StreamError, match="count"):
        qtm.decode_qtm(forged, NAMES, 0.0)
    forged = packet[:16] + struct.pack("<I", 0) + packet[20:]
    with pytest.raises(marey.StreamError, match="bytes"):
        qtm.decode_qtm(forged, NAMES, 0.0)


def test_messages_are_found_whatever_the_pieces(packet):
    sent = [(1, b"hello\0"), (3, packet), (4, b"")]
    stream = b"".join(message(*one) for one in sent)
    for size in (1, 7, len(stream)):
        messages, found = qtm.QtmMessages(), []
        for at in range(0, len(stream), size):
            messages.add(stream[at : at + size])
            found += list(messages)
        assert found == sent


@pytest.mark.usefixtures("unchecked")
def test_cut_and_forged_connections_give_messages_or_typed_errors(packet, rng):
    """Names, lengths and frames of whole connections, in pieces."""

    def decode(data):
        cut, messages = int(rng.integers(len(data) + 1)), qtm.QtmMessages()
        for part in (data[:cut], data[cut:]):
            messages.add(part)
            for kind, content in messages:
                if kind == qtm.XML:
                    qtm.decode_names(content)
                elif kind == qtm.DATA:
                    qtm.decode_qtm(content, NAMES, 0.0)
                yield True

    whole = message(qtm.XML, parameters("a", "b")) + message(qtm.DATA, packet)
    n_read, errors = decode_damaged(whole, decode, rng)
    assert min(n_read, len(errors)) > MUTATIONS // 10


@pytest.mark.parametrize("size", [0, 7, 2**31])
def test_a_forged_length_is_an_error(size):
    messages = qtm.QtmMessages()
    messages.add(struct.pack("<II", size, 3))
    with pytest.raises(marey.StreamError, match="length"):
        list(messages)


# --- connections ----------------------------------------------------------------------


class QtmServer:
    """A real-time server of QTM for one client: versions, parameters and frames.

    After `n_frames` it has three markers instead of two, or sends other bytes.
    """

    def __init__(self, version="1.24", n_frames=10**9, then=None, port=0):
        self.version, self.n_frames, self.then = version, n_frames, then
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", port))
        self._listener.listen()
        self.port = self._listener.getsockname()[1]
        self.address = f"qtm://127.0.0.1:{self.port}"
        self._stop, self._number = threading.Event(), 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        client, _ = self._listener.accept()
        with client, suppress(ConnectionError):
            client.settimeout(0.01)
            client.sendall(message(qtm.COMMAND, b"QTM RT Interface connected\0"))
            streaming = False
            while not self._stop.is_set():
                try:
                    data = client.recv(4096).lower()
                    if not data:
                        return
                    streaming |= b"streamframes" in data
                    client.sendall(self._answer(data))
                except TimeoutError:
                    pass
                if streaming:
                    self._number += 1
                    client.sendall(self._frame())

    def _answer(self, data):
        if b"version" in data:
            if self.version.encode() in data:
                text = f"Version set to {self.version}\0"
                return message(qtm.COMMAND, text.encode())
            return message(qtm.ERROR, b"Version NOT supported\0")
        labels = ("a", "b", "c") if self._has_changed else ("a", "b")
        return message(qtm.XML, parameters(*labels)) if b"getpar" in data else b""

    @property
    def _has_changed(self):
        return self._number > self.n_frames

    def _frame(self):
        if self._has_changed and self.then is not None:
            return self.then
        points = [(1000.0 * self._number, 0, 0), (1, 2, 3), (4, 5, 6)]
        n_markers = 3 if self._has_changed else 2
        return message(qtm.DATA, data_of(self._number, points[:n_markers]))

    def close(self):
        self._stop.set()
        self._thread.join()
        self._listener.close()


@contextmanager
def connected(**options):
    """A source of a server with these options."""
    with closing(QtmServer(**options)) as server:
        source = open_source(server.address, timeout=5.0)
        with closing(source):
            yield source


def frames_of(source, enough, seconds=20.0):
    """Frames until there are enough of them."""
    frames, end = [], time.monotonic() + seconds
    while not enough(frames) and time.monotonic() < end and not source.has_ended:
        frame = source.receive(0.5)
        frames += [] if frame is None else [frame]
    return frames


@pytest.mark.parametrize("version", ["1.24", "1.8"])
def test_a_server_is_asked_for_names_and_frames(version):
    with connected(version=version) as source:
        frames = frames_of(source, lambda frames: len(frames) == 20)
    assert [frame.number for frame in frames] == [*range(1, 21)]
    assert frames[-1].labels == ("a", "b")
    assert frames[-1].points[0, 0] == pytest.approx(20.0)


def test_the_official_client_reads_the_server_of_these_tests():
    """So that our client is tried against a server that speaks QTM's protocol."""
    numbers = []

    async def read(port):
        connection = await qtm_rt.connect("127.0.0.1", port, version="1.24")
        await connection.get_parameters(parameters=["3d", "6d"])
        await connection.stream_frames(
            components=["3d", "6d"], on_packet=lambda p: numbers.append(p.framenumber)
        )
        while len(numbers) < 5:
            await asyncio.sleep(0.01)
        connection.disconnect()
        await asyncio.sleep(0.0)

    with closing(QtmServer()) as server:
        asyncio.run(asyncio.wait_for(read(server.port), 20.0))
    assert numbers[:5] == [1, 2, 3, 4, 5]


def test_markers_that_are_added_get_their_names():
    with connected(n_frames=5) as source:
        frames = frames_of(source, lambda f: bool(f) and len(f[-1].labels) == 3)
    assert frames[0].labels == ("a", "b")
    assert frames[-1].labels == ("a", "b", "c")
    assert source.n_damaged > 0


def test_a_stream_that_lies_about_lengths_is_ended():
    forged = struct.pack("<II", 0, 3)
    with connected(n_frames=5, then=forged) as source:
        frames = frames_of(source, lambda _: False)
    assert [frame.number for frame in frames] == [1, 2, 3, 4, 5]
    assert source.has_ended
    assert source.n_damaged == 1


def test_a_server_that_dies_and_returns_is_asked_again():
    """It counts from the start, and has other names."""
    first = QtmServer()
    port = first.port
    with marey.stream(first.address, retry=True, learn=False) as poses:
        with closing(first):
            assert next(poses).frame.labels == ("a", "b")
        with closing(QtmServer(n_frames=0, port=port)):
            found = next(pose for pose in poses if len(pose.frame.labels) == 3)
    assert found.frame.labels == ("a", "b", "c")
    assert poses.statistics.received > 1


def test_a_server_of_another_version_or_none_is_a_typed_error():
    with (
        pytest.raises(marey.StreamError, match="NOT supported"),
        connected(version="0"),
    ):
        pass
    with closing(socket.socket()) as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(marey.StreamError, match=r"within 0\.3 s"):
            open_source(f"qtm://127.0.0.1:{silent.getsockname()[1]}", timeout=0.3)
