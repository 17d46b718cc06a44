"""A session: triggers, recordings on demand, two subjects, virtual skeletons."""

import fcntl
import json
import os
import pty
import socket
import subprocess
import sys
import termios
import time
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, Request, build_opener

import numpy as np
import posed
import pytest
from damage import damaged
from pythonosc.udp_client import SimpleUDPClient

import marey
from marey.cli.commands.live import report_stream
from marey.cli.live_keys import obey_key
from marey.live import Frame
from marey.live.codecs import encode_bundle, encode_message
from marey.live.learning.take_over import FADE_S
from marey.live.posing.performers import Performers
from marey.live.posing.tracking import LivePose, SubjectPose
from marey.live.statistics import StreamStatistics
from marey.live.triggers import OscTriggers
from marey.numerics import geometry
from marey.pipeline.reporting.readiness import JointReadiness, JointState
from marey.viewer.server.live_feed import LiveFeed
from marey.virtual import calibrate_sensors

RATE = 60.0


@pytest.fixture(scope="module")
def performer():
    return posed.record(motion="walk", seconds=2.0, rate=60.0, noise=5e-4)


@pytest.fixture
def walk(performer, tmp_path):
    path = tmp_path / "walk.npz"
    marey.write(performer[1], path)
    return path


def free_port(kind=socket.SOCK_DGRAM):
    with closing(socket.socket(socket.AF_INET, kind)) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


# --- triggers -------------------------------------------------------------------------


def test_recordings_begin_and_end_on_demand(walk, tmp_path):
    first = tmp_path / "take.marey-live"
    address = f"record:{first}?wait=1"
    with marey.stream(f"file:{walk}?loop=1", to=address, learn=False) as poses:
        next(poses)
        assert not poses.is_recording
        for _ in range(2):
            poses.start_recording()
            for _ in range(10):
                next(poses)
            poses.mark("jump")
            poses.stop_recording()
            assert not poses.is_recording
    for path in (first, tmp_path / "take-2.marey-live"):
        take = marey.read(path)
        assert take.n_frames >= 9  # the first pose may have come before the start
        assert [event.label for event in take.events] == ["jump"]


def test_osc_messages_of_an_independent_client_trigger(walk, tmp_path):
    port, path = free_port(), tmp_path / "take.c3d"
    client = SimpleUDPClient("127.0.0.1", port)
    with (
        closing(client._sock),
        marey.stream(
            f"file:{walk}?loop=1",
            to=f"record:{path}?wait=1",
            triggers=f"osc://127.0.0.1:{port}",
            learn=False,
        ) as poses,
    ):
        next(poses)
        client._sock.sendto(b"garbage", ("127.0.0.1", port))
        client.send_message("/marey/zero", [])  # not virtual: refused, not fatal
        client.send_message("/marey/start", [])
        until(lambda: poses.is_recording)
        next(poses)
        time.sleep(0.2)
        client.send_message("/marey/mark", "kick")
        client.send_message("/marey/stop", [])
        until(lambda: not poses.is_recording)
        assert poses.n_refused_triggers == 2
        assert [one.code for one in poses.findings()] == ["triggers-refused"]
    assert [event.label for event in marey.read(path).events] == ["kick"]


@pytest.mark.usefixtures("unchecked")
def test_cut_and_forged_triggers_are_refused_and_the_next_is_obeyed(rng):
    """Whatever 2,000 packets ask for, whose recordings cannot be written."""
    packets = [
        encode_message("/marey/mark", "kick", 1, 0.5, b"blob", None),
        encode_message("/marey/start"),
        encode_bundle([encode_message("/marey/stop"), encode_message("/marey/zero")]),
    ]
    stream, port = FullDisk(), free_port()
    with (
        closing(OscTriggers(f"osc://127.0.0.1:{port}", stream)) as triggers,
        closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as sender,
    ):
        for i in range(2000):
            data = packets[i % len(packets)]
            data = damaged(data, rng) if i % 4 else data[: rng.integers(len(data))]
            sender.sendto(data[:60_000], ("127.0.0.1", port))
            if i % 100 == 0:  # packets that the system drops would not be tried
                time.sleep(0.01)
        sender.sendto(encode_message("/marey/mark", "last"), ("127.0.0.1", port))
        until(lambda: "last" in stream.marks)
        assert triggers.n_refused > 1000


class FullDisk:
    """A stream of which nothing can be recorded."""

    def __init__(self):
        self.marks = []

    def start_recording(self):
        raise marey.OutputError("the disk is full")

    def stop_recording(self):
        raise marey.OutputError("the disk is full")

    def set_zero_pose(self):
        raise marey.OptionError("zero pose", found="no virtual skeleton", needed="one")

    def mark(self, label="mark"):
        self.marks.append(label)


@pytest.mark.parametrize("name", ["take.xyz", "take.mvnx", "take.glb"])
def test_a_recording_needs_a_format_that_holds_it(walk, tmp_path, name):
    """The sentence comes before the take, not when it shall be converted."""
    with pytest.raises(marey.OptionError, match=name):
        marey.stream(walk, to=f"record:{tmp_path / name}")
    assert not list(tmp_path.glob(f"{name}*"))


def test_a_recording_that_waits_is_refused_before_the_take(walk, tmp_path):
    """Not when the performer has begun."""
    path = tmp_path / "take.c3d"
    path.write_bytes(b"of yesterday")
    with pytest.raises(marey.OptionError, match=r"take\.c3d"):
        marey.stream(walk, to=f"record:{path}?wait")
    assert path.read_bytes() == b"of yesterday"


def test_recordings_begin_all_or_none(walk, tmp_path):
    """What took the place of the second meanwhile leaves nothing of the first."""
    paths = [tmp_path / "a.marey-live", tmp_path / "b.marey-live"]
    to = [f"record:{path}?wait" for path in paths]
    with marey.stream(f"file:{walk}?loop", to=to, learn=False) as poses:
        paths[1].write_bytes(b"of another program")
        with pytest.raises(marey.OptionError, match=r"b\.marey-live"):
            poses.start_recording()
        assert not poses.is_recording
        assert not paths[0].exists()
        poses.start_recording()
        next(poses)  # of a frame that may have come before
        next(poses)
        poses.stop_recording()
    assert marey.read(tmp_path / "b-2.marey-live").n_frames > 0
    assert paths[1].read_bytes() == b"of another program"


def test_a_recording_needs_a_path(walk):
    with (
        marey.stream(walk, learn=False) as poses,
        pytest.raises(marey.OptionError, match="path"),
    ):
        poses.start_recording()
    with pytest.raises(marey.OptionError, match="triggers"):
        marey.stream(walk, triggers="vmc://127.0.0.1:1")


def test_keys_in_the_terminal_record_and_mark(walk, tmp_path):
    session = tmp_path / "take.marey-live"
    keyboard, terminal = pty.openpty()
    command = [sys.executable, "-W", "error", "-m", "marey", "live"]
    process = subprocess.Popen(
        [*command, f"file:{walk}?loop", "--to", f"record:{session}?wait", "--quiet"],
        stdin=terminal,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # The terminal must be that of the new session, as in a shell.
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(terminal)
    assert process.stderr is not None
    said = []
    until(lambda: not termios.tcgetattr(keyboard)[3] & termios.ICANON, 60.0)
    for key in (b"m", b"z", b"r", b"m", b"r"):
        os.write(keyboard, key)
        said.append(process.stderr.readline())
        if said[-1] == "recording\n":
            until(lambda: session.stat().st_size > 10_000)
    os.write(keyboard, b"\x03")  # Ctrl-C
    try:
        assert process.wait(60.0) == 0
    finally:
        process.kill()
        process.stderr.close()
        os.close(keyboard)
    assert said[0] == "not marked: nothing is recorded\n"
    assert "virtual" in said[1]
    assert said[2:] == ["recording\n", "marked\n", "recording ended\n"]
    assert [event.label for event in marey.read(session).events] == ["mark"]


# --- two subjects ---------------------------------------------------------------------


def test_two_skeletons_in_one_stream_are_those_of_two_streams(performer, tmp_path):
    skeleton, take = performer
    points = [take.points, take.points + np.array([0.0, 2.0, 0.0])]
    owners = ("ANN", "BOB")
    skeletons = [
        replace(
            skeleton,
            marker_labels=tuple(f"{owner}:{x}" for x in skeleton.marker_labels),
        )
        for owner in owners
    ]
    both = marey.Take(
        rate=take.rate,
        points=np.concatenate(points, axis=1),
        labels=2 * take.labels,
        subjects=tuple(owner for owner in owners for _ in take.labels),
    )
    path = tmp_path / "both.npz"
    marey.write(both, path)
    with marey.stream(f"file:{path}?speed=0.5", skeletons) as poses:
        for _ in range(10):
            pose = next(poses)
    a, b = (subject.T_world_joint for subject in pose.subjects)
    np.testing.assert_allclose(
        b[:, :3, 3] - a[:, :3, 3], [[0.0, 2.0, 0.0]] * len(a), atol=1e-6
    )
    names = pose.as_frame().sensor_names
    assert len(set(names)) == len(names)
    assert pose.n_seen == 2 * len(take.labels)


def test_a_subject_enters_leaves_and_comes_back_elsewhere(performer):
    """The other one is tracked all the time; the first frame back is right."""
    skeleton, take = performer
    owners = ("ANN", "BOB")
    skeletons = [
        replace(
            skeleton,
            marker_labels=tuple(f"{owner}:{x}" for x in skeleton.marker_labels),
        )
        for owner in owners
    ]
    ann, bob = (one.marker_labels for one in skeletons)
    truth = take.truth.motion.T_world_joint()
    turn = geometry.transform_exp(np.array([0.0, 0.0, np.pi, 3.0, 2.0, 0.0]))
    performers = Performers(owners, skeletons, False, {})
    performers.prepare(take.rate)
    names = []
    for i in range(take.n_frames):
        points, labels, T_bob = take.points[i], ann, np.eye(4)
        if 20 <= i < 50 or i >= 80:
            T_bob = turn if i >= 80 else T_bob
            points = np.concatenate([points, geometry.apply(T_bob, take.points[i])])
            labels = ann + bob
        frame = Frame(number=i, arrival=0.0, points=points, labels=labels)
        subjects = {one.name: one for one in performers.update(frame).subjects}
        names.append(tuple(subjects))
        for subject, T in zip(subjects.values(), (np.eye(4), T_bob), strict=False):
            if subject.n_seen:
                apart = subject.T_world_joint[:, :3, 3] - (T @ truth[i])[:, :3, 3]
                assert np.linalg.norm(apart, axis=1).max() < 0.02
            else:
                assert 50 <= i < 80
    performers.close()
    assert set(names[:20]) == {owners[:1]}
    assert set(names[20:]) == {owners}


def place_markers(subject):
    """Labels of the markers on a skeleton, and where its pose puts them."""
    T = subject.T_world_joint[subject.skeleton.marker_joint]
    return (
        subject.skeleton.marker_labels,
        geometry.apply(T, subject.skeleton.marker_offset),
    )


def test_who_is_not_known_enters_leaves_and_comes_back(tmp_path):
    """Both are learnt from a loop whose middle half alone has the second one."""
    takes = [
        marey.synth.linkage().record(
            markers=4, seconds=2.0, rate=RATE, noise=5e-4, seed=seed
        )
        for seed in (1, 2)
    ]
    n = takes[0].n_frames
    points = np.concatenate([one.points for one in takes], axis=1)
    k = points.shape[1] // 2
    points[:, k:] += (3.0, 0.0, 0.0)
    is_there = np.abs(np.arange(n) - n / 2) < n / 4
    points[~is_there, k:] = np.nan
    both = marey.Take(
        rate=RATE,
        points=points,
        labels=2 * takes[0].labels,
        subjects=("P",) * k + ("Q",) * k,
    )
    path, apart, end, due = tmp_path / "both.npz", [], None, 0
    enough = k * np.count_nonzero(is_there) // 2
    before = None
    marey.write(both, path)
    with marey.stream(f"file:{path}?loop") as poses:
        for pose in poses:
            number, learnt = pose.frame.number, poses.learnt
            if end is None and learnt is not None and learnt.n_frames >= 2 * n:
                end = number + 10 * n
            if learnt is not before:  # joints move to their new places
                before, due = learnt, number + FADE_S * RATE
            second = [one for one in pose.subjects if one.name == "Q"]
            for one in second:
                assert one.n_seen == k * is_there[number % n]
                if one.n_seen and end is not None and number > due:
                    true = dict(zip(pose.frame.labels, pose.frame.points, strict=True))
                    for label, place in zip(*place_markers(one), strict=True):
                        apart.append(np.linalg.norm(place - true[label]))
            if end is not None and (number > end or len(apart) >= enough):
                break
    assert set(before.names) == {"P", "Q"}
    assert len(apart) >= enough
    assert np.max(apart) < 0.02


class PoseList(list):
    """Poses in place of a stream."""

    is_virtual = True


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("n_poses", "is_shown"), [(1, True), (2, True), (3, False)])
def test_the_page_does_not_show_who_has_left(performer, n_poses, is_shown):
    """After half a second without a marker the pose is a guess."""
    skeleton, take = performer
    T = take.truth.motion.T_world_joint()[0]
    poses = [
        LivePose(Frame(number=i, arrival=t), (SubjectPose("ann", skeleton, T, n),))
        for i, (t, n) in enumerate(((1.0, 9), (1.2, 0), (2.0, 0)))
    ]
    stream: Any = PoseList(poses[:n_poses])
    feed = LiveFeed(stream, "ann")
    until(lambda: feed.trouble)
    (subject,) = json.loads(feed.message)["subjects"]
    assert (subject["place"][0] is not None) == is_shown


# --- virtual skeletons ----------------------------------------------------------------


@pytest.mark.parametrize(
    "asked", [b"[" * 1024, b"\xff", b"[1]", b'{"do": "leave"}', b'{"do": ["mark"]}']
)
def test_a_page_that_asks_for_anything_else_is_told_what_there_is(walk, asked):
    with (
        marey.stream(f"file:{walk}?loop", learn=False) as poses,
        marey.view(poses, browser=False, block=False) as viewer,
    ):
        browser = build_opener(HTTPCookieProcessor())
        browser.open(viewer.url).close()
        url = viewer.url.partition("?")[0]
        own = {"Origin": url.rstrip("/"), "Content-Type": "application/json"}
        post = Request(f"{url}api/live", asked, own)
        with pytest.raises(HTTPError, match="Bad Request") as refused:
            browser.open(post)
        with closing(refused.value):
            said = json.loads(refused.value.read())
        assert said == {"error": "do one of record, stop, mark, zero"}


def test_a_virtual_skeleton_follows_sensors_and_is_set_to_zero(tmp_path):
    skeleton, take = posed.record(
        motion="walk", markers=None, sensors="all", seconds=1.0, rate=60.0
    )
    path = tmp_path / "sensors.npz"
    marey.write(take, path)
    truth = take.truth.motion.T_world_joint()
    with marey.stream(f"file:{path}?speed=0.5", skeleton, virtual=True) as poses:
        pose = next(poses)
        true = truth[pose.frame.number]
        carried = np.unique(skeleton.sensor_joint)
        found = pose.subjects[0]
        apart = np.linalg.norm((found.T_world_joint - true)[carried, :3, 3], axis=-1)
        assert apart.max() < 1e-3
        assert np.nanmax(found.separation) < 1e-3
        said = []
        obey_key("z", poses, said.append)
        zero = calibrate_sensors(skeleton, pose.frame.T_world_sensor[None])
        (now,) = poses.skeletons
    assert said == ["zero pose set"]
    np.testing.assert_allclose(now.T_joint_sensor, zero.T_joint_sensor, atol=1e-9)


@pytest.mark.parametrize("received", [0, 1])
def test_a_rate_that_is_not_known_is_not_shown(received, capsys):
    statistics = StreamStatistics(received=received)
    nothing: Any = SimpleNamespace(
        statistics=statistics, latencies=[], findings=tuple, learnt=None
    )
    report_stream(nothing, as_json=False, quiet=False)
    printed = capsys.readouterr().out
    assert "nan" not in printed
    assert ("does the sender stream" in printed) == (received == 0)


def test_the_end_says_what_was_learnt_and_what_still_needs_to_move(capsys):
    """The verdict of the page, after the fact."""
    states: list[JointState] = ["ready", "unknown", "hinge seen", "unknown", "unknown"]
    joints = tuple(
        JointReadiness(f"J{i}", state, 0.5, "" if state == "ready" else f"move J{i}")
        for i, state in enumerate(states)
    )
    stream: Any = SimpleNamespace(
        statistics=StreamStatistics(received=9),
        latencies=[],
        findings=tuple,
        learnt=SimpleNamespace(names=("ann",), readiness=(joints,)),
    )
    report_stream(stream, as_json=False, quiet=False)
    said = " ".join(capsys.readouterr().out.split())
    needs = "move J1; move J2; move J3; 1 more"
    assert said.endswith(f"learnt ann: 1 of 5 joints ready; {needs}")
    report_stream(stream, as_json=True, quiet=False)
    learnt = json.loads(capsys.readouterr().out)["learnt"]
    assert [joint["state"] for joint in learnt["ann"]] == states
