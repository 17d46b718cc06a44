"""Live streams on loopback: sources, sinks, poses and the command line."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace

import natnet_packets
import numpy as np
import posed
import pytest
from pythonosc.udp_client import SimpleUDPClient
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

import marey
from marey.live import Frame, open_sink, open_source
from marey.live.codecs import decode_frame, encode_mxtp
from marey.live.intake import Intake
from marey.live.posing.tracking import SkeletonTracker
from marey.live.recording.switch import RecordingSwitch
from marey.numerics import geometry

TIMEOUT = 10.0


@pytest.fixture(scope="module")
def performer():
    """A walk with markers, and its true skeleton with them."""
    skeleton, take = posed.record(motion="walk", seconds=2.0, rate=60.0, noise=5e-4)
    return take, skeleton


@pytest.fixture
def walk(performer, tmp_path):
    path = tmp_path / "walk.c3d"
    marey.write(performer[0], path)
    return path


@pytest.fixture
def skeleton(performer):
    return performer[1]


def free_port(kind=socket.SOCK_DGRAM):
    with closing(socket.socket(socket.AF_INET, kind)) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def sensors(number, names=("Pelvis", "Head")):
    T = np.tile(np.eye(4), (len(names), 1, 1))
    T[:, 0, 3] = number
    return Frame(number=number, time=number / 60, T_world_sensor=T, sensor_names=names)


@contextmanager
def sending(send, every=0.005):
    """Call a function with 0, 1, 2, ... in a thread until the block ends."""
    stop = threading.Event()

    def run():
        number = 0
        while not stop.wait(every):
            send(number)
            number += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def received(source, count):
    with closing(source):
        end = time.monotonic() + TIMEOUT
        frames = []
        while len(frames) < count and time.monotonic() < end:
            frame = source.receive(1.0)
            frames += [] if frame is None else [frame]
    assert len(frames) == count
    return frames


# --- sources and sinks ----------------------------------------------------------------


def test_a_file_is_played_at_its_own_times(walk, performer):
    take = marey.read(walk)
    source = open_source(f"file:{walk}?speed=4")
    time.sleep(0.1)  # what is prepared meanwhile misses nothing
    start = time.monotonic()
    frames = received(source, 40)
    assert time.monotonic() - start >= 39 / (4 * take.rate)
    np.testing.assert_array_equal([f.points for f in frames], take.points[:40])
    assert [f.number for f in frames] == list(range(40))
    assert np.diff([f.time for f in frames]) == pytest.approx(1.0 / take.rate)


def test_a_file_ends_or_begins_again(walk, performer):
    n = performer[0].n_frames
    source = open_source(f"file:{walk}?speed=0")
    assert [source.receive(0.1) is None for _ in range(n + 1)] == [False] * n + [True]
    assert source.has_ended
    again = received(open_source(f"file:{walk}?speed=0&loop"), 2 * n)
    assert again[-1].number == 2 * n - 1
    np.testing.assert_array_equal(again[n].points, again[0].points)


@pytest.mark.parametrize("scheme", ["mxtp", "vmc"])
def test_what_a_udp_sink_sends_a_source_receives(scheme):
    names = ("Pelvis", "Head") if scheme == "mxtp" else ("Hips", "Head")
    address = f"{scheme}://127.0.0.1:{free_port()}"
    source = open_source(address)
    with (
        closing(open_sink(address)) as sink,
        sending(lambda n: sink.send(sensors(n, names))),
    ):
        frames = received(source, 20)
    assert frames[-1].sensor_names == names
    sent = frames[-1].T_world_sensor[0, 0, 3]
    assert sent - frames[0].T_world_sensor[0, 0, 3] == pytest.approx(19.0)


def test_vmc_of_an_independent_client_is_received():
    port = free_port()
    source = open_source(f"vmc://:{port}")
    client = SimpleUDPClient("127.0.0.1", port)

    def send(number):
        pose = ["Hips", 0.0, float(number), 0.0, 0.0, 0.0, 0.0, 1.0]
        client.send_message("/VMC/Ext/Bone/Pos", pose)
        client.send_message("/VMC/Ext/T", float(number))

    with closing(client._sock), sending(send):
        frames = received(source, 10)
    heights = [f.T_world_sensor[0, 2, 3] for f in frames]
    assert np.diff(heights).tolist() == [1.0] * 9


def bind_elsewhere(port):
    with socket.socket(type=socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.2", port))


def test_sources_listen_on_loopback_alone_unless_asked():
    """Another program may still bind the port of another address."""
    port = free_port()
    with closing(open_source(f"mxtp://:{port}")):
        bind_elsewhere(port)
    everywhere = open_source(f"mxtp://0.0.0.0:{port}")
    with closing(everywhere), pytest.raises(OSError, match="in use"):
        bind_elsewhere(port)


def test_a_taken_port_is_a_typed_error():
    port = free_port()
    with (
        closing(open_source(f"mxtp://:{port}")),
        pytest.raises(marey.StreamError, match=f"a free port {port}"),
    ):
        open_source(f"mxtp://:{port}")
    open_source(f"mxtp://:{port}").close()


def test_garbage_is_counted_and_the_source_recovers():
    port = free_port()
    source = open_source(f"mxtp://:{port}")
    rng = np.random.default_rng(0)
    target = ("127.0.0.1", port)
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as sender:
        for size in (0, 1, 23, 24, 760, 65_507):
            sender.sendto(rng.bytes(size), target)
        sender.sendto(encode_mxtp(sensors(5))[0], target)
        (frame,) = received(source, 1)
    assert (frame.number, source.n_damaged) == (5, 6)


@contextmanager
def motive(name="JOE", port=0):
    """A server of NatNet 4.1 on loopback, with the markers a and b of one performer."""
    stop = threading.Event()
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as server:
        server.bind(("127.0.0.1", port))
        server.settimeout(0.02)
        thread = threading.Thread(target=serve_natnet, args=(server, name, stop))
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            stop.set()
            thread.join()


def serve_natnet(server, name, stop):
    """State version and names when asked, then send frames."""
    client, number = None, 0
    while not stop.is_set():
        try:
            data, client = server.recvfrom(100)
            if data[0] == 0:
                server.sendto(natnet_packets.server_info((4, 1)), client)
            elif data[0] == 4:
                names = natnet_packets.models((4, 1), [(name, ("a", "b"))])
                server.sendto(names, client)
        except TimeoutError:
            pass
        if client:
            sets = [(name, [(number, 1.0, 2.0), (3.0, 4.0, 5.0)])]
            packet = natnet_packets.frame((4, 1), number, number / 50, sets)
            server.sendto(packet, client)
            number += 1


def test_a_natnet_server_is_asked_for_version_and_names():
    with motive() as port:
        source = open_source(f"natnet://127.0.0.1:{port}?data={free_port()}")
        frames = received(source, 10)
    assert frames[-1].labels == ("JOE:a", "JOE:b")
    np.testing.assert_allclose(frames[-1].points[1], (3.0, -5.0, 4.0))


def test_a_natnet_server_that_dies_and_returns_is_asked_again():
    """It has another performer, whose names are asked for."""
    with motive() as port:
        address = f"natnet://127.0.0.1:{port}?data={free_port()}"
        poses = marey.stream(address, retry=True, learn=False, timeout=0.3)
        next(pose for pose in poses if pose.frame.labels == ("JOE:a", "JOE:b"))
    with closing(poses), motive("ANN", port):
        next(pose for pose in poses if pose.frame.labels == ("ANN:a", "ANN:b"))
    assert poses.statistics.layout_changes > 0


def test_websocket_frames_arrive_exactly():
    port = free_port(socket.SOCK_STREAM)
    with closing(open_sink(f"ws://:{port}")) as sink:
        source = open_source(f"ws://127.0.0.1:{port}")
        with sending(lambda n: sink.send(sensors(n))):
            frames = received(source, 20)
    assert np.diff([f.number for f in frames]).min() >= 1
    last = frames[-1]
    np.testing.assert_array_equal(
        last.T_world_sensor, sensors(last.number).T_world_sensor
    )


def test_a_client_that_does_not_read_delays_nobody():
    port = free_port(socket.SOCK_STREAM)
    with closing(open_sink(f"ws://:{port}")) as sink:
        url = f"ws://127.0.0.1:{port}"
        big = Frame(
            number=0,
            points=np.zeros((20_000, 3)),
            labels=tuple(map(str, range(20_000))),
        )
        with (
            ExitStack() as idle,
            connect(url, compression=None) as client,
            sending(lambda n: sink.send(replace(big, number=n)), every=0.05),
        ):
            for _ in range(10):
                idle.enter_context(connect(url, close_timeout=0.1, max_queue=1))
            numbers = [
                decode_frame(client.recv(TIMEOUT, decode=False)).number
                for _ in range(20)
            ]
        assert np.diff(numbers).min() >= 1


def test_websockets_refuse_pages_and_strangers():
    port = free_port(socket.SOCK_STREAM)
    with pytest.raises(marey.OptionError, match="token"):
        open_sink(f"ws://0.0.0.0:{port}")
    token = "t" * 22
    with closing(open_sink(f"ws://127.0.0.1:{port}?token={token}")):
        for path, origin in [
            ("/", None),
            ("/?token=wrong", None),
            (f"/?token={token}", Origin("http://example.com")),
            (f"/?token={token}", Origin("null")),
        ]:
            with (
                pytest.raises(InvalidStatus) as refused,
                connect(f"ws://127.0.0.1:{port}{path}", origin=origin),
            ):
                pass
            assert refused.value.response.status_code == 403
        open_source(f"ws://127.0.0.1:{port}?token={token}").close()


def test_lsl_keeps_frames(rng):
    name = f"marey-test-{uuid.uuid4()}"
    points = rng.normal(size=(3, 3))
    points[1] = np.nan
    labels = ("JOE:a", "JOE:b", "c")
    whole = replace(sensors(0), points=points, labels=labels)
    with closing(open_sink(f"lsl://{name}")) as sink:
        sink.send(whole)
        source = open_source(f"lsl://{name}", timeout=TIMEOUT)
        with sending(lambda n: sink.send(replace(whole, time=100.0 + n))):
            frames = received(source, 10)
    last = frames[-1]
    assert (last.labels, last.sensor_names) == (labels, ("Pelvis", "Head"))
    np.testing.assert_array_equal(last.points, points)
    np.testing.assert_allclose(last.T_world_sensor, whole.T_world_sensor, atol=1e-12)
    assert np.diff([f.time for f in frames]) == pytest.approx(1.0)


def test_samples_of_an_independent_outlet_without_names_are_positions():
    import pylsl

    from marey.live.lsl_channels import load_pylsl

    load_pylsl(whole_network=False)
    name = f"marey-test-{uuid.uuid4()}"
    outlet = pylsl.StreamOutlet(pylsl.StreamInfo(name, "MoCap", 6, 100.0, "float32"))
    source = open_source(f"lsl://{name}", timeout=TIMEOUT)
    assert source.rate == 100.0
    with sending(lambda n: outlet.push_sample([n, 1.0, 2.0, 3.0, 4.0, 5.0])):
        frames = received(source, 5)
    assert frames[0].labels == ("M1", "M2")
    np.testing.assert_array_equal(frames[0].points[1], (3.0, 4.0, 5.0))


@pytest.mark.parametrize(
    "address",
    ["ws://127.0.0.1:{tcp}", "qtm://127.0.0.1:{tcp}", "lsl://nobody-here-{tcp}"],
)
def test_nobody_there_is_a_typed_error_in_the_stated_time(address):
    start = time.monotonic()
    with pytest.raises(marey.StreamError, match=r"within 0\.5 s"):
        open_source(address.format(tcp=free_port(socket.SOCK_STREAM)), timeout=0.5)
    assert time.monotonic() - start < TIMEOUT


@pytest.mark.parametrize(
    "address",
    [
        *("gopher://x", "nowhere.c3d", "file:{walk}?sped=1", "file:{walk}?speed=fast"),
        *("mxtp://:99999", "natnet://127.0.0.1?version=2.9", "natnet://127.0.0.1?up=w"),
    ],
)
def test_wrong_addresses_are_refused_by_name(address, walk):
    with pytest.raises(marey.OptionError):
        open_source(address.format(walk=walk))


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pylsl", None)
    with pytest.raises(marey.MissingExtraError, match=r"marey\[live\]"):
        open_source("lsl://x")


# --- poses ----------------------------------------------------------------------------


def test_a_stream_gives_the_poses_of_a_known_skeleton(walk, performer, skeleton):
    truth = performer[0].truth.motion.T_world_joint()
    with marey.stream(f"file:{walk}?speed=0.5&loop", skeleton) as poses:
        found = [next(poses) for _ in range(30)]
    errors = [
        np.linalg.norm(
            p.T_world_joint[:, :3, 3] - truth[p.frame.number % len(truth), :, :3, 3]
        )
        / np.sqrt(len(truth[0]))
        for p in found
    ]
    assert np.median(errors) < 0.005
    assert all(p.n_seen == len(skeleton.marker_labels) for p in found)
    assert all(p.latency > 0.0 for p in found)


def test_poses_are_those_of_a_tracker_of_the_same_frames(performer, skeleton):
    from marey.live import SkeletonTracker
    from marey.pose.gauss_newton.tracker import PoseTracker

    take = performer[0]
    tracker = SkeletonTracker(skeleton, take.rate)
    other = PoseTracker(skeleton, take.full_labels, rate=take.rate)
    for i in range(20):
        frame = Frame(
            number=i, arrival=0.0, points=take.points[i], labels=take.full_labels
        )
        root, _ = other.update(take.points[i])
        T = tracker.update(frame).T_world_joint
        np.testing.assert_allclose(T[0, :3, 3], root, atol=1e-9)


def test_markers_that_change_in_mid_stream_keep_the_pose(performer, skeleton):
    from marey.live import SkeletonTracker

    take = performer[0]
    truth = take.truth.motion.T_world_joint()
    tracker = SkeletonTracker(skeleton, take.rate)
    n_seen = []
    for i in range(60):
        keep = slice(None, None, -1) if i % 20 < 10 else slice(5, None)
        frame = Frame(
            number=i,
            arrival=0.0,
            points=take.points[i, keep],
            labels=take.full_labels[keep],
        )
        if i == 30:
            frame = Frame(number=i, arrival=0.0)
        pose = tracker.update(frame)
        n_seen.append(pose.n_seen)
        error = pose.T_world_joint[0, :3, 3] - truth[i, 0, :3, 3]
        assert np.linalg.norm(error) < 0.02
    assert n_seen[30] == 0
    assert set(n_seen) == {0, len(take.labels), len(take.labels) - 5}


def test_a_skeleton_of_other_markers_is_refused(walk, skeleton):
    other = replace(
        skeleton,
        marker_labels=tuple(f"X{i}" for i in range(len(skeleton.marker_labels))),
    )
    with (
        marey.stream(f"file:{walk}", other) as poses,
        pytest.raises(marey.DataError, match="stream"),
    ):
        next(poses)


def test_kernels_load_before_the_sender_is_connected(walk, skeleton, monkeypatch):
    """Frames that come while they load would overflow the buffers of the system."""
    events = []

    def connect_to(address, timeout, waits):
        events.append("connected")
        return open_source(address, timeout)

    monkeypatch.setattr("marey.live.live_stream.open_or_await_source", connect_to)
    monkeypatch.setattr(SkeletonTracker, "_compile", lambda _: events.append("loaded"))
    marey.stream(walk, skeleton).close()
    assert events[:2] == ["loaded", "connected"]


def test_a_slow_loop_gets_the_latest_frame_and_everything_is_recorded(walk, tmp_path):
    session = tmp_path / "session.marey-live"
    take = marey.read(walk)
    with marey.stream(f"file:{walk}?speed=2", to=f"record:{session}") as poses:
        numbers = []
        for pose in poses:
            numbers.append(pose.frame.number)
            time.sleep(0.1)
    assert len(numbers) < take.n_frames / 2
    assert numbers[-1] == take.n_frames - 1
    recorded = marey.read(session)
    assert recorded.source.findings == ()
    np.testing.assert_array_equal(recorded.points, take.points)
    assert recorded.full_labels == take.full_labels
    assert poses.statistics.received == take.n_frames


def test_poses_go_to_sinks(walk, skeleton):
    port = free_port()
    source = open_source(f"vmc://:{port}")
    with marey.stream(str(walk), skeleton, to=[f"vmc://127.0.0.1:{port}"]) as poses:
        pose = next(poses)
        (frame,) = received(source, 1)
    hips = frame.T_world_sensor[frame.sensor_names.index(skeleton.names[0])]
    np.testing.assert_allclose(hips, pose.T_world_joint[0], atol=1e-5)


@pytest.mark.parametrize(
    "address", ["mxtp://:{0}", "vmc://:{0}", "natnet://127.0.0.1:{0}?data={1}"]
)
def test_a_source_that_nobody_sends_to_is_an_error(address):
    with (
        marey.stream(address.format(free_port(), free_port()), timeout=0.3) as poses,
        pytest.raises(marey.StreamError, match=r"frames within 0\.3 s"),
    ):
        next(poses)


def test_a_stream_that_falls_silent_ends():
    port = free_port()
    sink = open_sink(f"mxtp://127.0.0.1:{port}")
    with closing(sink), marey.stream(f"mxtp://:{port}", timeout=0.5) as poses:
        sink.send(sensors(0))
        assert [pose.frame.number for pose in poses] == [0]


def test_a_stream_that_opens_slowly_learns_all_the_same(monkeypatch):
    """The learner asks for the rate, which the stream knows once it is whole."""

    def open_slowly(*arguments):
        threading.Event().wait(0.5)
        return Intake(*arguments)

    monkeypatch.setattr("marey.live.live_stream.Intake", open_slowly)
    monkeypatch.setattr("marey.live.learning.learner.PAUSE_S", 0.01)
    with marey.stream(f"mxtp://127.0.0.1:{free_port()}", timeout=0.5) as poses:
        assert poses.is_learning


def test_whoever_reads_the_statistics_changes_no_count(walk, monkeypatch):
    """The thread that counts is interrupted between any two steps."""
    interval = sys.getswitchinterval()
    monkeypatch.setattr("marey.live.intake.PAUSE_S", 0.01)
    source = open_source(f"file:{walk}?speed=0&loop", 1.0)
    switch = RecordingSwitch([], source="", rate=60.0, overwrite=False)
    numbers: list[int] = []
    sys.setswitchinterval(1e-6)
    try:
        with closing(
            Intake(source, switch, lambda frame: numbers.append(frame.number))
        ) as intake:
            while intake.statistics.received < 2000:
                pass
    finally:
        sys.setswitchinterval(interval)
    assert intake.statistics.received == len(numbers)


def test_a_frame_that_takes_long_is_no_silence(walk):
    """The sender is not silent while this machine is busy with what it sent."""
    source = open_source(f"file:{walk}?speed=0", 1.0)
    switch = RecordingSwitch([], source="", rate=60.0, overwrite=False)
    intake = Intake(source, switch, lambda frame: time.sleep(0.5))
    with closing(intake):
        assert intake.latest(timeout=0.1) is not None
        assert intake.latest(timeout=0.1) is not None


def test_a_source_that_comes_back_is_connected_again():
    port = free_port(socket.SOCK_STREAM)
    numbers = []
    first = open_sink(f"ws://:{port}")
    with marey.stream(f"ws://127.0.0.1:{port}", retry=True, timeout=TIMEOUT) as poses:
        for sink in (first, None):
            sink = sink or open_sink(f"ws://:{port}")
            with closing(sink), sending(lambda n, sink=sink: sink.send(sensors(n))):
                numbers.append(next(poses).frame.number)
                numbers.append(next(poses).frame.number)
    assert len(numbers) == 4


def test_a_sender_that_comes_later_is_waited_for():
    port = free_port(socket.SOCK_STREAM)
    with marey.stream(f"ws://127.0.0.1:{port}", retry=True, timeout=TIMEOUT) as poses:
        sink = open_sink(f"ws://:{port}")
        with closing(sink), sending(lambda n: sink.send(sensors(n))):
            assert next(poses).frame.sensor_names == ("Pelvis", "Head")


def test_a_file_that_has_ended_does_not_begin_again(walk, skeleton):
    with marey.stream(f"file:{walk}?speed=0", skeleton, retry=True) as poses:
        for _ in poses:
            pass
        assert poses.has_ended
        assert poses.statistics.received == marey.read(walk).n_frames


def test_a_silent_stream_that_is_stopped_ends():
    with marey.stream(f"mxtp://:{free_port()}", retry=True) as poses:
        stopper = threading.Timer(0.1, poses.stop)
        stopper.start()
        assert list(poses) == []
        stopper.join()


def test_frames_that_are_lost_lose_no_limb():
    """Where bones do not fit, limbs are found again, as they are from scratch."""
    true, take = posed.record(motion="exercise", seconds=4.0, rate=60.0)
    skeleton = replace(true, offset=1.1 * true.offset)
    apart = {}
    for each in ("tracked", "from scratch"):
        tracker = SkeletonTracker(skeleton, take.rate)
        apart[each] = []
        for row in range(0, take.n_frames, 6):
            points = take.points[row]
            frame = Frame(number=row, points=points, labels=take.full_labels)
            if each == "from scratch":
                tracker = SkeletonTracker(skeleton, take.rate)
            T = tracker.update(frame).T_world_joint[skeleton.marker_joint]
            placed = geometry.apply(T, skeleton.marker_offset)
            apart[each].append(np.linalg.norm(points - placed, axis=-1).max())
    assert np.median(apart["tracked"]) < 2.0 * np.median(apart["from scratch"])


def test_wrong_sinks_leave_no_port_and_no_thread_behind(walk, tmp_path):
    port = free_port()
    before = threading.active_count()
    with pytest.raises(marey.OptionError, match="sink"):
        marey.stream(f"mxtp://:{port}", to=["gopher://x"])
    open_source(f"mxtp://:{port}").close()
    assert threading.active_count() == before
    with pytest.raises(marey.OptionError, match="timeout"):
        marey.stream(str(walk), timeout=0.0)


# --- command line ---------------------------------------------------------------------


@pytest.fixture
def run():
    """Start `marey live`; what has not ended with the test is killed."""
    with ExitStack() as started:

        def start(*arguments):
            command = [sys.executable, "-W", "error", "-m", "marey", "live", *arguments]
            process = started.enter_context(
                subprocess.Popen(
                    command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
                )
            )
            started.callback(process.kill)
            return process

        yield start


def test_ctrl_c_ends_cleanly_and_leaves_a_readable_recording(walk, tmp_path, run):
    session = tmp_path / "session.marey-live"
    process = run(f"file:{walk}?loop", "--to", f"record:{session}", "--json")
    end = time.monotonic() + 60.0
    while time.monotonic() < end and not (
        session.exists() and session.stat().st_size > 100_000
    ):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60.0)
    assert (process.returncode, errors) == (0, "")
    take = marey.read(session)
    assert take.source.findings == ()
    assert f'"received": {take.n_frames}' in output


def test_the_command_tracks_a_skeleton(walk, skeleton, tmp_path, run):
    known = tmp_path / "ann.skel.json"
    marey.write(skeleton, known)
    target = tmp_path / "out.trc"
    process = run(str(walk), "--skeleton", str(known), "--to", f"record:{target}")
    output, errors = process.communicate(timeout=120.0)
    assert (process.returncode, errors) == (0, "")
    assert "packet to pose" in output
    assert marey.read(target).n_frames == marey.read(walk).n_frames


def test_a_skeleton_that_cannot_be_written_is_refused_before_the_stream(walk, run):
    process = run(f"file:{walk}?loop", "--learnt", str(walk))
    output, errors = process.communicate(timeout=60.0)
    assert (process.returncode, output) == (2, "")
    assert "walk.c3d" in errors.replace("\n", "")


def test_a_skeleton_that_was_not_learnt_is_an_error(tmp_path, run):
    """Two markers: the recording is there, and the file of the skeleton is not."""
    still, session = tmp_path / "still.npz", tmp_path / "session.marey-live"
    points = np.random.default_rng(0).normal(size=(1, 2, 3)).repeat(60, axis=0)
    labels = ("m0", "m1")
    marey.write(marey.Take(rate=60.0, points=points, labels=labels), still)
    target = tmp_path / "ann.skel.json"
    process = run(str(still), "--to", f"record:{session}", "--learnt", str(target))
    output, errors = process.communicate(timeout=120.0)
    assert process.returncode == 2
    assert "no skeleton" in errors.replace("\n", " ")
    assert "60 received" in output
    assert marey.read(session).n_frames == 60
    assert not target.exists()


def test_nobody_there_is_one_line_and_code_2(run):
    process = run(f"mxtp://:{free_port()}", "--timeout", "0.3")
    output, errors = process.communicate(timeout=60.0)
    assert process.returncode == 2
    assert "frames within 0.3 s" in errors.replace("\n", " ")
    assert os.linesep not in output


def test_the_command_says_how_long_poses_took_that_a_page_showed(
    walk, skeleton, tmp_path, run
):
    known = tmp_path / "ann.skel.json"
    marey.write(skeleton, known)
    page = ("--to", "page", "--no-browser", "--seconds", "3")
    process = run(f"file:{walk}?loop", "--skeleton", str(known), *page)
    output, errors = process.communicate(timeout=120.0)
    assert (process.returncode, errors) == (0, "")
    (line,) = [one for one in output.splitlines() if "packet to pose" in one]
    assert "nan" not in line
