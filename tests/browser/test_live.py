"""A stream in the browser: the figure grows, keys record, nothing stale is shown."""

import socket
import time
from contextlib import closing
from threading import Event, Thread

import numpy as np
import posed
import pytest
from tabs import violations

import marey
from marey import synth
from marey.live import Frame, open_sink
from marey.live.learning.estimate import Learnt
from marey.live.learning.learner import Learner
from marey.live.sources.websocket import WebSocketSource

PATIENCE_MS = 120_000
RATE = 60.0


@pytest.fixture(scope="module")
def walk():
    return synth.human().record(
        "walk", rate=RATE, seconds=3.0, markers="set53", noise=5e-4
    )


@pytest.fixture
def sender(walk):
    """An address where a walk is sent again and again, and what makes it silent."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        address = f"ws://127.0.0.1:{free.getsockname()[1]}"
    silence = Event()

    def send():
        number = 0
        while not silence.wait(1.0 / RATE):
            row = number % walk.n_frames
            frame = Frame(
                number=number,
                time=time.monotonic(),
                points=walk.points[row],
                labels=walk.labels,
            )
            sink.send(frame)
            number += 1

    with closing(open_sink(address)) as sink:
        thread = Thread(target=send)
        thread.start()
        yield address, silence.set
        silence.set()
        thread.join()


def assert_controls_fit(page, width):
    """Controls at the top neither overlap nor leave the screen."""
    shown = page.locator(".topbar :is(button, .lamp)").all()
    boxes = sorted(
        (one.bounding_box() for one in shown if one.is_visible()),
        key=lambda box: box["x"],
    )
    ends = [box["x"] + box["width"] for box in boxes]
    assert len(boxes) >= 5
    assert all(end <= box["x"] for end, box in zip(ends, boxes[1:], strict=False))
    assert ends[-1] <= width


def assert_phone_and_tablet_show_all(page, axe):
    """Upright, the scene has the whole width, and the list below it is in sight."""
    page.wait_for_selector(".lamp.on", timeout=PATIENCE_MS)
    assert_controls_fit(page, 390)
    assert violations(page, axe) == []
    page.set_viewport_size({"width": 768, "height": 1024})
    assert_controls_fit(page, 768)
    stage = page.locator(".stage").bounding_box()
    to_move = page.get_by_role("button", name="What still needs to move")
    below = to_move.bounding_box()
    assert (stage["x"], stage["width"]) == (0, 768)
    assert stage["y"] + stage["height"] <= below["y"] < 1024
    assert 0 <= below["x"] < below["x"] + below["width"] <= 768


def assert_keys_of_views_act(page):
    """Bones are hidden and shown by a key."""
    bones = page.get_by_label("Bones")
    for is_drawn in (False, True):
        page.keyboard.press("b")
        assert bones.is_checked() == is_drawn


def test_a_figure_is_learnt_shown_recorded_and_hidden_when_the_sender_is_silent(
    sender, open_tab, tmp_path, axe
):
    address, make_silent = sender
    session = tmp_path / "session.marey-live"
    poses = marey.stream(address, to=f"record:{session}?wait=1", retry=True)
    with marey.view(poses, browser=False, block=False) as viewer:
        page = open_tab(viewer.url).page
        page.wait_for_selector(".lamp.on", timeout=PATIENCE_MS)
        assert page.locator(".banner").is_hidden()
        page.keyboard.press("r")
        page.wait_for_selector("button.recording")
        page.keyboard.press("m")
        page.wait_for_selector(".need", timeout=PATIENCE_MS)
        shown = "() => window.marey.where('Hips') !== null"
        page.wait_for_function(shown, timeout=PATIENCE_MS)
        assert violations(page, axe) == []
        foot = "() => window.marey.where('LeftFoot')"
        before = page.wait_for_function(foot, timeout=PATIENCE_MS).json_value()
        # It is hidden for a moment where a busy machine lets the sender be silent.
        page.wait_for_function(
            "(was) => Math.abs(window.marey.where('LeftFoot')?.x - was.x) > 1",
            arg=before,
        )
        page.keyboard.press("r")
        page.wait_for_selector("button.recording", state="detached")
        small = open_tab(viewer.url, width=390, height=844, touch=True).page
        assert_phone_and_tablet_show_all(small, axe)
        make_silent()
        page.wait_for_selector(".lamp.off", timeout=PATIENCE_MS)
        assert page.locator(".banner").is_visible()
        assert violations(page, axe) == []
        assert page.evaluate("() => window.marey.where('Hips')") is None
    take = marey.read(session)
    assert take.n_frames > 0
    assert [event.label for event in take.events] == ["mark"]


def test_a_virtual_skeleton_shows_separations_and_z_sets_its_zero_pose(
    open_tab, tmp_path
):
    """Nothing is estimated there, so the page asks for no motion."""
    skeleton, take = posed.record(
        motion="walk", markers=None, sensors="all", seconds=1.0, rate=RATE
    )
    path = tmp_path / "sensors.npz"
    marey.write(take, path)
    poses = marey.stream(f"file:{path}?loop=1", skeleton, virtual=True)
    with marey.view(poses, browser=False, block=False) as viewer:
        page = open_tab(viewer.url).page
        page.wait_for_selector(".separation", timeout=PATIENCE_MS)
        assert page.locator(".need").count() == 0
        assert_keys_of_views_act(page)
        shown = 'document.querySelectorAll(".separation i")'
        largest = f"() => Math.max(...Array.from({shown}, (one) => +one.textContent))"
        assert page.evaluate(largest) < 1.0
        page.keyboard.press("z")
        # The rest pose is no walk: bones of the wrong zero pose come apart.
        page.wait_for_function(f"() => ({largest})() > 10", timeout=PATIENCE_MS)


def height_of(page, *names):
    """The mean height of these on the screen, as a share of the stage from its top."""
    spots = [page.evaluate("name => window.marey.where(name)", name) for name in names]
    stage = page.locator(".stage").bounding_box()
    return (np.mean([spot["y"] for spot in spots]) - stage["y"]) / stage["height"]


def one_body(walk, *labels):
    """What is learnt first: a skeleton of one bone."""
    points = walk.select([walk.labels.index(label) for label in labels]).points[0]
    foot = marey.Skeleton(
        names=("Foot",),
        parent=np.array([-1]),
        offset=np.zeros((1, 3)),
        marker_labels=labels,
        marker_joint=np.zeros(len(labels), dtype=np.int64),
        marker_offset=points - points.mean(axis=0),
    )
    return Learnt(("Ann",), (foot,), ((),), np.zeros(1), True, 1, 0.0)


def test_the_figure_stays_in_the_middle_whatever_its_root(
    sender, walk, open_tab, monkeypatch
):
    """The page is there before the sender; then a foot is learnt, then a person."""
    performer, _ = posed.record(motion="walk", seconds=0.1, rate=RATE)
    person = Learnt(("Ann",), (performer,), ((),), np.zeros(1), True, 1, 0.0)
    due = [one_body(walk, "LHEE", "LTOE", "LMT5", "LANK"), person]
    learnt, is_open = [], Event()
    monkeypatch.setattr(Learner, "take_new", lambda _: learnt.pop() if learnt else None)
    receive = WebSocketSource.receive
    monkeypatch.setattr(
        WebSocketSource,
        "receive",
        lambda *given: receive(*given) if is_open.wait(0.1) else None,
    )
    poses = marey.stream(sender[0], retry=True)
    with marey.view(poses, browser=False, block=False) as viewer:
        page = open_tab(viewer.url).page
        page.wait_for_selector(".lamp.off", timeout=PATIENCE_MS)
        is_open.set()
        seen = "name => window.marey.where(name) !== null"
        for shown in ("LFHD", "Foot", "Hips"):
            if shown != "LFHD":
                learnt.append(due.pop(0))
            page.wait_for_function(seen, arg=shown, timeout=PATIENCE_MS)
            height = height_of(page, "LFHD", "RFHD", "LTOE", "RTOE")
            assert height == pytest.approx(0.5, abs=0.12)
