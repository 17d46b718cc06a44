"""Streams that do what they should not: wrong senders, clocks, values and clients."""

import os
import socket
import threading
import time
import uuid
from contextlib import ExitStack, closing, suppress
from ipaddress import IPv4Address
from pathlib import Path

import numpy as np
import posed
import pylsl
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

import marey
from marey.live import Frame, Recorder, open_sink, open_source
from marey.live.codecs import decode_frame, encode_mxtp
from marey.live.frame import MAX_NAMES
from marey.live.sinks.websocket import MAX_CLIENTS

MAX_UDP_BYTES = 65_507
PATIENCE_S = 20.0
RATE = 60.0


@pytest.fixture(scope="module")
def performer():
    return posed.record(motion="walk", seconds=2.0, rate=RATE, noise=5e-4)


@pytest.fixture
def walk(performer, tmp_path):
    path = tmp_path / "walk.c3d"
    marey.write(performer[1], path)
    return path


def free_port(kind=socket.SOCK_DGRAM):
    with closing(socket.socket(socket.AF_INET, kind)) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def sensor_frame(number):
    T = np.eye(4)[None].copy()
    T[0, 0, 3] = number
    return Frame(
        number=number,
        time=number / RATE,
        T_world_sensor=T,
        sensor_names=("Pelvis",),
    )


class Sender:
    """Sends frames to a sink in a thread, 60 each second, until it is stopped."""

    def __init__(self, sink, frame_of):
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(sink, frame_of))
        self._thread.start()

    def _run(self, sink, frame_of):
        number = 0
        while not self._stop.wait(1.0 / RATE):
            sink.send(frame_of(number))
            number += 1

    def close(self):
        self._stop.set()
        self._thread.join()


# --- senders --------------------------------------------------------------------------


def test_packets_of_another_protocol_are_named_in_the_error():
    """The port is right and the sender is another: the error says what came."""
    port = free_port()
    with (
        closing(open_sink(f"mxtp://127.0.0.1:{port}")) as other,
        marey.stream(f"vmc://:{port}", timeout=1.0) as poses,
        closing(Sender(other, sensor_frame)),
        pytest.raises(marey.StreamError, match=r"[1-9]\d* packets of another protocol"),
    ):
        next(poses)


def test_a_sender_that_falls_silent_is_waited_for_if_asked():
    """Packets without a connection: the same stream goes on when they come again."""
    port = free_port()
    numbers = []
    with (
        marey.stream(f"mxtp://:{port}", timeout=0.2, retry=True, learn=False) as poses,
        closing(open_sink(f"mxtp://127.0.0.1:{port}")) as sink,
    ):
        for start in (0, 100):
            with closing(Sender(sink, lambda n, start=start: sensor_frame(start + n))):
                numbers.append(
                    next(n for pose in poses if (n := pose.frame.number) >= start)
                )
            time.sleep(0.5)
    assert numbers[0] < 100 <= numbers[1]


def test_a_flood_of_garbage_hides_no_frame():
    """Between good packets come ten of every size; each good one is a frame."""
    port, rng = free_port(), np.random.default_rng(1)
    source = open_source(f"mxtp://:{port}")
    target, numbers = ("127.0.0.1", port), []
    with (
        closing(source),
        closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as sender,
    ):
        for number in range(50):
            for size in [*rng.integers(0, 2000, 9), MAX_UDP_BYTES]:
                sender.sendto(rng.bytes(int(size)), target)
            sender.sendto(encode_mxtp(sensor_frame(number))[0], target)
            end = time.monotonic() + PATIENCE_S
            while (frame := source.receive(0.5)) is None:
                assert time.monotonic() < end
            numbers.append(frame.number)
    assert numbers == [*range(50)]
    assert source.n_damaged == 500


def test_an_outlet_that_dies_and_returns_is_read_again():
    """Its new stream has the same name and other samples."""
    name = f"marey-test-{uuid.uuid4()}"
    numbers = []
    with marey.stream(f"lsl://{name}", retry=True, timeout=0.5, learn=False) as poses:
        for start in (0, 100):
            with (
                closing(open_sink(f"lsl://{name}")) as sink,
                closing(Sender(sink, lambda n, start=start: sensor_frame(start + n))),
            ):
                numbers += [
                    next(
                        x
                        for pose in poses
                        if (x := pose.frame.T_world_sensor[0, 0, 3]) >= start
                    )
                ]
    assert numbers[0] < 100.0 <= numbers[1]


def test_an_outlet_that_never_answers_is_a_typed_error(monkeypatch):
    """It was found, and went away before it could be read."""

    def fail(*_given, **_options):
        raise pylsl.util.TimeoutError("the operation failed due to a timeout.")

    name = f"marey-test-{uuid.uuid4()}"
    with closing(open_sink(f"lsl://{name}")) as sink:
        sink.send(sensor_frame(0))
        for step in ("info", "open_stream"):
            with monkeypatch.context() as patched:
                patched.setattr(pylsl.StreamInlet, step, fail)
                with pytest.raises(marey.StreamError, match="an answer within"):
                    open_source(f"lsl://{name}")


@pytest.mark.parametrize("scheme", ["ws", "qtm", "natnet", "mxtp"])
def test_a_host_that_cannot_be_is_a_typed_error(scheme):
    host = "a" * 70
    with pytest.raises(marey.StreamError, match=r"found (no host|Name)"):
        open_source(f"{scheme}://{host}:{free_port()}", timeout=1.0)


def test_a_source_that_fails_unforeseen_ends_the_loop(walk, monkeypatch):
    """An error of a package must not leave a loop that waits for ever."""

    def fail(*_given):
        raise ZeroDivisionError("not ours")

    with marey.stream(f"file:{walk}", learn=False) as poses:
        next(poses)
        monkeypatch.setattr(poses._intake._source, "receive", fail)
        with pytest.raises(ZeroDivisionError, match="not ours"):
            list(poses)
        assert poses.has_ended


# --- who may connect ------------------------------------------------------------------


def listening_hosts():
    """Local addresses at which sockets of this process wait for anybody (Linux)."""
    own = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the one of this loop is closed
            own.add(os.readlink(descriptor))
    listens, waits = "0A", "07"
    hosts = set()
    for table, state in (("tcp", listens), ("udp", waits)):
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
            field = line.split()
            if f"socket:[{field[9]}]" in own and field[3] == state:
                address, _, port = field[1].partition(":")
                host = IPv4Address(bytes.fromhex(address)[::-1])
                hosts.add((str(host), int(port, 16)))
    return hosts


@pytest.mark.skipif(not Path("/proc/self/net/udp").exists(), reason="tables of Linux")
def test_no_socket_is_reached_from_elsewhere_unless_asked():
    """Neither those that receive nor those that only send, which hear as well."""
    before = listening_hosts()
    with ExitStack() as opened:
        for scheme in ("mxtp", "vmc"):
            opened.enter_context(closing(open_source(f"{scheme}://:{free_port()}")))
            sink = open_sink(f"{scheme}://:{free_port()}")
            opened.enter_context(closing(sink)).send(sensor_frame(0))
        natnet = f"natnet://127.0.0.1:{free_port()}?data={free_port()}"
        source = opened.enter_context(closing(open_source(natnet)))
        assert source.receive(0.01) is None
        ws = open_sink(f"ws://:{free_port(socket.SOCK_STREAM)}")
        opened.enter_context(closing(ws))
        triggers = f"osc://:{free_port()}"
        to = f"mxtp://:{free_port()}"
        opened.enter_context(
            marey.stream(
                f"mxtp://:{free_port()}", to=to, triggers=triggers, learn=False
            )
        )
        found = listening_hosts() - before
    assert len(found) == 9
    assert {host for host, _ in found} == {"127.0.0.1"}


@pytest.mark.skipif(not Path("/proc/self/net/udp").exists(), reason="tables of Linux")
def test_an_outlet_that_others_can_reach_is_reported(walk):
    """Lab Streaming Layer has no setting for it, so the user has to know."""
    before = listening_hosts()
    with marey.stream(f"file:{walk}", to="lsl://", learn=False) as poses:
        next(poses)
        found = {host for host, _ in listening_hosts() - before}
        assert found - {"127.0.0.1"}
        assert [one.code for one in poses.findings()] == ["open-to-network"]


# --- values and clocks ----------------------------------------------------------------


def row_of(number, take):
    """Return the row of a walk that is played forward and backward in turn."""
    last = take.n_frames - 1
    return last - abs(last - number % (2 * last))


def play(frame_of, skeleton, count=60):
    """Return poses of a stream that a WebSocket sends, and its statistics."""
    port = free_port(socket.SOCK_STREAM)
    found = []
    with (
        closing(open_sink(f"ws://:{port}")) as sink,
        closing(Sender(sink, frame_of)),
        marey.stream(f"ws://127.0.0.1:{port}", skeleton, timeout=PATIENCE_S) as poses,
    ):
        while len(found) < count:
            pose = next(poses)
            found += [pose] if pose.subjects else []
    return found, poses.statistics


def joint_errors(poses, take):
    truth = take.truth.motion.T_world_joint()[..., :3, 3]
    return [
        np.linalg.norm(
            pose.T_world_joint[:, :3, 3] - truth[row_of(pose.frame.number, take)],
            axis=-1,
        )
        for pose in poses
    ]


def test_a_clock_that_jumps_moves_no_pose(performer):
    """An hour back and an hour ahead, in turn: counted, and joints stay right."""
    skeleton, take = performer

    def frame_of(number):
        return Frame(
            number=number,
            time=number / RATE + 3600.0 * (number // 50 % 2),
            points=take.points[row_of(number, take)],
            labels=take.labels,
        )

    poses, found = play(frame_of, skeleton, count=120)
    assert np.max(joint_errors(poses, take)) < 0.03
    assert found.clock_jumps >= 2
    assert found.rate == pytest.approx(RATE, rel=0.01)


def test_numbers_that_are_no_measurement_are_missing_markers(performer):
    """NaN, infinite and absurd coordinates are left out; the pose stays right."""
    skeleton, take = performer
    points, rng = take.points.copy(), np.random.default_rng(2)
    bad = rng.random(points.shape[:2]) < 0.1
    worst = np.array([np.nan, np.inf, -np.inf, 1e300, -2e9])
    points[bad, 0] = rng.choice(worst, bad.sum())

    def frame_of(number):
        row = row_of(number, take)
        return Frame(
            number=number, time=number / RATE, points=points[row], labels=take.labels
        )

    poses, _ = play(frame_of, skeleton)
    assert np.median(joint_errors(poses, take)) < 0.01
    for pose in poses:
        row = row_of(pose.frame.number, take)
        assert pose.n_seen == np.count_nonzero(~bad[row])
        assert np.isfinite(pose.T_world_joint).all()


def test_a_full_disk_ends_the_loop_and_frees_all(performer, tmp_path, small_files):
    path, port = tmp_path / "walk.npz", free_port(socket.SOCK_STREAM)
    marey.write(performer[1], path)
    n_threads = threading.active_count()
    to = [f"record:{tmp_path / 'a.marey-live'}", f"ws://:{port}"]
    with (
        pytest.raises(marey.OutputError, match=r"a.marey-live: not written"),
        small_files(100_000),
        marey.stream(f"file:{path}?speed=0&loop", to=to, learn=False) as poses,
    ):
        for _ in poses:
            pass
    open_sink(f"ws://:{port}").close()
    assert threading.active_count() == n_threads
    assert marey.read(tmp_path / "a.marey-live").n_frames > 10


def test_a_late_frame_of_a_raw_cloud_adds_no_marker(performer, tmp_path):
    """Its points have no names, and those of frames before and after are known."""
    points, path = performer[1].points, tmp_path / "session.marey-live"
    bare = tuple(f"unlabelled{i}" for i in range(points.shape[1]))

    def frame_of(number):
        late = number + (1, -1)[number % 2] if number % 20 in (10, 11) else number
        row = row_of(late, performer[1])
        return Frame(number=late, time=late / RATE, points=points[row], labels=bare)

    port = free_port(socket.SOCK_STREAM)
    to = f"record:{path}"
    with (
        closing(open_sink(f"ws://:{port}")) as sink,
        marey.stream(
            f"ws://127.0.0.1:{port}", to=to, timeout=PATIENCE_S, learn=False
        ) as poses,
        closing(Sender(sink, frame_of)),
    ):
        while poses.statistics.reordered < 3:
            next(poses)
    take = marey.read(path)
    assert not any(label.startswith("unlabelled") for label in take.labels)


def test_layouts_that_are_made_up_take_no_memory(tmp_path):
    """Every frame has other sensors: what the recorder remembers of them is bounded."""
    recorder = Recorder(tmp_path / "session.marey-live")
    numbers, bits = np.arange(2 * MAX_NAMES), np.arange(11)
    shown = numbers[:, None] >> bits & 1 == 1
    for i, there in enumerate(shown):
        names = tuple(f"s{bit}" for bit in bits[there])
        T = np.tile(np.eye(4), (len(names), 1, 1))
        recorder.write(Frame(number=i, T_world_sensor=T, sensor_names=names))
    assert len(recorder._layouts) <= MAX_NAMES
    recorder.close()
    take = marey.read(recorder.path)
    order = [take.sensor_names.index(f"s{bit}") for bit in bits]
    seen = np.isfinite(take.T_world_sensor[:, order, 0, 0])
    np.testing.assert_array_equal(seen, shown)


# --- clients --------------------------------------------------------------------------


def test_ten_clients_get_frames_in_order_and_too_many_are_refused():
    port = free_port(socket.SOCK_STREAM)

    def join():  # with a full queue, closing would wait for its timeout
        return connect(f"ws://127.0.0.1:{port}", max_queue=None)

    with (
        closing(open_sink(f"ws://:{port}")) as sink,
        closing(Sender(sink, sensor_frame)),
        ExitStack() as connected,
    ):
        clients = [connected.enter_context(join()) for _ in range(10)]
        for client in clients:
            numbers = [
                decode_frame(client.recv(PATIENCE_S, decode=False)).number
                for _ in range(10)
            ]
            assert np.diff(numbers).min() >= 1
        for _ in range(MAX_CLIENTS - len(clients)):
            connected.enter_context(join()).recv(PATIENCE_S)
        with pytest.raises(InvalidStatus, match="503"), join():
            pass


def test_an_outlet_is_what_an_independent_inlet_reads(rng):
    """The meta-data are those of motion capture in XDF: metres, A is the real part."""
    from marey.live.lsl_channels import load_pylsl

    pylsl = load_pylsl(whole_network=False)
    name = f"marey-test-{uuid.uuid4()}"
    frame = Frame(
        number=0,
        time=12.5,
        points=np.array([[1.0, 2.0, 3.0], [np.nan] * 3]),
        labels=("LASI", "RASI"),
        T_world_sensor=np.diag([1.0, -1.0, -1.0, 1.0])[None],  # half a turn about x
        sensor_names=("Hips",),
    )
    with closing(open_sink(f"lsl://{name}")) as sink:
        sink.send(frame)
        (found,) = pylsl.resolve_byprop("name", name, timeout=PATIENCE_S)
        inlet = pylsl.StreamInlet(found)
        info = inlet.info(timeout=PATIENCE_S)
        inlet.open_stream(timeout=PATIENCE_S)
        with closing(Sender(sink, lambda _: frame)):
            sample, stamp = inlet.pull_sample(timeout=PATIENCE_S)
        inlet.close_stream()
    channels, one = [], info.desc().child("channels").child("channel")
    while not one.empty():
        text = one.child_value
        channels.append((text("marker"), text("type"), text("unit")))
        one = one.next_sibling("channel")
    position = [f"Position{axis}" for axis in "XYZ"]
    assert channels == [
        *(("LASI", kind, "meters") for kind in position),
        *(("RASI", kind, "meters") for kind in position),
        *(("Hips", kind, "meters") for kind in position),
        *(("Hips", f"Orientation{part}", "quaternion") for part in "ABCD"),
    ]
    assert (info.type(), info.channel_count(), stamp) == ("MoCap", 13, 12.5)
    np.testing.assert_array_equal(sample[:6], [1.0, 2.0, 3.0, *[np.nan] * 3])
    np.testing.assert_allclose(np.abs(sample[9:]), [0.0, 1.0, 0.0, 0.0], atol=1e-12)
