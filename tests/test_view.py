"""`marey view`: what is shown, put right and kept."""

import importlib.util
import json
import os
import re
import signal
import time
from itertools import pairwise

import numpy as np
import pytest
import samples
import scenes
from viewing import PAGE, Browser, served

import marey
from marey.cli import main
from marey.edits import edit_of, read_edits, write_edits
from marey.io.html._page import page_of
from marey.solve._clock import FIRST_TIME
from marey.view import _server
from marey.view._files import plain_name
from marey.view._series import series_of
from marey.view._session import Session

RENAME = {"do": "rename", "name": "Lower", "to": "Bob"}


@pytest.fixture(scope="module")
def recorded():
    """A pendulum of four bodies, a sensor on each."""
    figure = marey.synth.pendulum()
    return figure.record(seconds=2.0, markers="none", sensors=True, noise=1e-3)


@pytest.fixture(scope="module")
def solution(recorded):
    return marey.solve(recorded)


@pytest.fixture
def session():
    told = []
    session = Session(lambda message, data: told.append((message, data)))
    session.told = told
    return session


def opened(session, path, edits=None):
    request = {"do": "open", "path": str(path), "title": path.name}
    return session.do({**request, "edits": str(edits or "")})


def joints_of(blob):
    return [j["name"] for j in scenes.header(blob)["subjects"][0]["joints"]]


@pytest.fixture
def kept(solution, tmp_path):
    marey.write(solution, tmp_path / "swing.marey")
    return tmp_path / "swing.marey"


def test_a_recording_is_shown_while_it_is_solved(session, recorded, tmp_path):
    marey.write(recorded, tmp_path / "swing.csv")
    state, blob = opened(session, tmp_path / "swing.csv")
    stages = [message["stage"] for message, _ in session.told if "stage" in message]
    assert stages[:2] == ["read", "clean"]
    assert stages[-1].removesuffix(f", {FIRST_TIME}") == "pose"
    ((_, early),) = (told for told in session.told if "scene" in told[0])
    assert scenes.header(early)["unsolved"] == "being solved"
    assert len(scenes.header(early)["takes"][0]["sensors"]) == 4
    header = scenes.header(blob)
    assert (header["title"], header["unsolved"]) == ("swing.csv", "")
    assert header["editable"]
    assert "Lower" in joints_of(blob)
    assert state["edits"] == []


def test_a_solution_is_shown_as_it_is(session, kept, solution):
    _, blob = opened(session, kept)
    assert session.told == [({"stage": "read"}, b"")]
    lengths = [j["length"] for j in scenes.header(blob)["subjects"][0]["joints"]]
    assert lengths == solution.skeleton.lengths.tolist()


def test_a_motion_is_shown_as_it_is_and_not_edited(session, tmp_path):
    marey.write(samples.motion(6), tmp_path / "walk.bvh")
    _, blob = opened(session, tmp_path / "walk.bvh")
    assert not scenes.header(blob)["editable"]
    assert joints_of(blob)[3] == "Foot"
    with pytest.raises(marey.DataError, match="a motion, which is shown as it is"):
        session.do({"do": "try", "edit": RENAME})


def test_what_cannot_be_solved_shows_its_markers_and_says_why(session, tmp_path):
    points = np.full((5, 2, 3), np.nan)
    points[0, 0] = 1.0
    take = marey.Take(rate=10.0, points=points, labels=("A", "B"))
    marey.write(take, tmp_path / "few.npz")
    _, blob = opened(session, tmp_path / "few.npz")
    header = scenes.header(blob)
    assert "need" in header["unsolved"]
    assert not header["editable"]
    assert [m["label"] for m in header["takes"][0]["markers"]] == ["A", "B"]


def test_an_edit_is_tried_kept_undone_and_made_again(session, kept, tmp_path):
    file = tmp_path / "swing.edits.toml"
    _, first = opened(session, kept, file)
    result, tried = session.do({"do": "try", "edit": RENAME})
    assert set(result) == {"before", "after", "changes", "findings", "text"}
    assert result["before"]["bodies"] == result["after"]["bodies"] == 4
    assert "Bob" in joints_of(tried)
    assert scenes.header(tried)["edits"] == [RENAME]
    assert not file.exists()
    state, blob = session.do({"do": "keep"})
    assert state["edits"] == [{"text": "Lower renamed Bob", **RENAME}]
    assert (state["can_undo"], state["can_redo"]) == (True, False)
    assert state["saved"] == file.name
    assert "Bob" in joints_of(blob)
    assert read_edits(file) == (edit_of(RENAME),)
    state, blob = session.do({"do": "undo"})
    assert blob == first
    assert read_edits(file) == ()
    assert (state["can_undo"], state["can_redo"]) == (False, True)
    state, blob = session.do({"do": "redo"})
    assert "Bob" in joints_of(blob)
    assert read_edits(file) == (edit_of(RENAME),)


def test_an_edit_that_is_dropped_was_never_there(session, kept, tmp_path):
    _, first = opened(session, kept, tmp_path / "swing.edits.toml")
    session.do({"do": "try", "edit": RENAME})
    state, nothing = session.do({"do": "drop"})
    assert (state["trial"], state["edits"], nothing) == (False, [], b"")
    with pytest.raises(marey.OptionError, match="no edit being tried"):
        session.do({"do": "keep"})
    assert not (tmp_path / "swing.edits.toml").exists()
    assert session._scene() == first


@pytest.mark.parametrize(
    "edit",
    [
        {"do": "rename", "name": "Nobody", "to": "X"},
        {"do": "explode"},
        {},
        {"do": "rename", "name": 7, "to": "X"},
        {"do": "cut", "bodies": ["Lower", "Lower"]},
    ],
)
def test_an_edit_that_cannot_be_is_refused_and_nothing_is_lost(session, kept, edit):
    state, first = opened(session, kept)
    with pytest.raises(marey.MareyError, match="need"):
        session.do({"do": "try", "edit": edit})
    assert session._scene() == first
    assert session._state() == {k: v for k, v in state.items() if k != "note"}


def test_edits_beside_a_recording_are_read_again(session, kept, tmp_path):
    file = tmp_path / "swing.edits.toml"
    write_edits([edit_of(RENAME)], file)
    state, blob = opened(session, kept, file)
    assert "Bob" in joints_of(blob)
    assert (state["can_undo"], state["note"]) == (True, "")


def test_edits_that_no_longer_fit_are_told_and_their_file_is_kept(
    session, kept, tmp_path
):
    file = tmp_path / "swing.edits.toml"
    for content in ('[[edit]]\ndo="rename"\nname="Nobody"\nto="X"\n', "not toml"):
        file.write_text(content)
        state, blob = opened(session, kept, file)
        assert "opened without its edits" in state["note"]
        assert "Lower" in joints_of(blob)
        session.do({"do": "try", "edit": RENAME})
        session.do({"do": "keep"})
        assert file.read_text() == content
        assert session._saved != file
        assert read_edits(session._saved) == (edit_of(RENAME),)


def test_a_file_that_cannot_be_read_leaves_what_was_open(session, kept, tmp_path):
    _, first = opened(session, kept)
    (tmp_path / "bad.c3d").write_bytes(b"nothing")
    with pytest.raises(marey.FormatError):
        opened(session, tmp_path / "bad.c3d")
    assert session._scene() == first


def test_series_are_exact_at_every_frame():
    take = marey.synth.pendulum().record(seconds=1.0, noise=1e-3)
    solution = marey.solve(take)
    _, found = scenes.unpacked(series_of(solution, take=0, marker=7))
    points = solution.take.points[:, 7]
    np.testing.assert_array_equal(found["points"], points.astype(np.float32))
    skeleton = solution.motion.skeleton
    place = skeleton.marker_labels.index(solution.take.full_labels[7])
    away = np.linalg.norm(solution.motion.marker_points()[:, place] - points, axis=-1)
    np.testing.assert_allclose(found["residual"], away, atol=1e-7)
    bodies = solution.bodies[0]
    joint = skeleton.n_joints - 3
    _, found = scenes.unpacked(series_of(solution, take=0, subject=0, joint=joint))
    angles = np.degrees(solution.motion.euler("ZXY")[:, joint])
    np.testing.assert_allclose(found["angles"], angles, atol=1e-4)
    centre = solution.motion.T_world_joint()[:, joint, :3, 3]
    np.testing.assert_allclose(found["points"], centre, atol=1e-6)
    body = bodies.names.index(skeleton.names[joint])
    pair = body, int(solution.tree.parent[body])
    gap = np.linalg.norm(marey.joints.residuals(bodies, solution.joints, pair), axis=-1)
    np.testing.assert_allclose(found["gap"], gap, atol=1e-7)
    for odd in ({"take": 1, "marker": 0}, {"take": 0, "marker": 99}, {"take": 0}):
        with pytest.raises(marey.OptionError, match="a number from 0"):
            series_of(solution, **odd)


def test_a_solution_in_memory_is_edited_in_the_browser(solution, monkeypatch, tmp_path):
    edits = tmp_path / "mine.edits.toml"
    with (
        served(solution, monkeypatch, edits=edits) as viewer,
        Browser(viewer) as browser,
        browser.listening() as heard,
    ):
        assert browser.wait()["saved"] == "mine.edits.toml"
        assert "Lower" in joints_of(browser.get("/api/scene").content)
        assert browser.get("/api/scene?trial=1").status_code == 409
        tried = browser.post("/api/try", RENAME)
        assert tried.status_code == 200
        assert "renamed" in tried.json()["text"]
        assert "Bob" in joints_of(browser.get("/api/scene?trial=1").content)
        assert "Lower" in joints_of(browser.get("/api/scene").content)
        assert browser.post("/api/keep").json()["can_undo"]
        assert read_edits(edits) == (edit_of(RENAME),)
        refused = browser.post(
            "/api/try", {"do": "rename", "name": "Nobody", "to": "A"}
        )
        assert refused.status_code == 409
        assert "Nobody" in refused.json()["error"]
        # A worker that dies between two edits is replaced, with all that was kept.
        os.kill(viewer._show.workshop.pid, signal.SIGKILL)
        while viewer._show.workshop.pid:
            time.sleep(0.01)
        assert browser.post("/api/undo").json()["can_redo"]
        assert "Lower" in joints_of(browser.get("/api/scene").content)
        assert read_edits(edits) == ()
        assert browser.get("/api/folder").json() == {"root": "", "files": []}
        assert browser.post("/api/open", {"path": "x.c3d"}).status_code == 404
        messages = [heard()]
        while not messages[-1].get("can_redo"):
            messages.append(heard())
    # What is over is told once, with its outcome: never first as it was before.
    busy = [bool(m["busy"]) for m in messages if m["type"] == "state"]
    assert (False, False) not in set(pairwise(busy))
    assert messages[-1]["edits"] == []


def test_a_folder_shows_its_recordings_and_opens_one_after_another(
    monkeypatch, tmp_path
):
    for name in ("a.bvh", "b.bvh"):
        marey.write(samples.motion(6), tmp_path / name)
    with served(tmp_path, monkeypatch) as viewer, Browser(viewer) as browser:
        header = scenes.header(browser.get("/api/scene").content)
        assert (header["takes"], header["unsolved"]) == (
            [],
            "choose a recording from the list",
        )
        files = browser.get("/api/folder").json()["files"]
        assert [(f["path"], f["format"]) for f in files] == [
            ("a.bvh", "bvh"),
            ("b.bvh", "bvh"),
        ]
        # The second is opened although the first is still being worked on.
        with browser.listening() as heard:
            jobs = [browser.post("/api/open", {"path": f["path"]}) for f in files]
            assert [job.json() for job in jobs] == [{"job": 1}, {"job": 2}]
            assert browser.wait()["title"] == "b.bvh"
            messages = [heard()]
            while messages[-1].get("title") != "b.bvh":
                messages.append(heard())
        assert "error" not in {message["type"] for message in messages}
        assert joints_of(browser.get("/api/scene").content)[0] == "Hips"
        assert browser.post("/api/try", {"do": "explode"}).status_code == 409
        assert browser.get("/api/series?take=x").status_code == 409
        assert browser.get("/favicon.ico").status_code == 204


def test_what_is_shown_can_be_edited_after_another_file_failed(
    recorded, monkeypatch, tmp_path
):
    marey.write(recorded, tmp_path / "swing.csv")
    (tmp_path / "bad.csv").write_text("a,b\n1,2\nx")
    with (
        served(tmp_path / "swing.csv", monkeypatch) as viewer,
        Browser(viewer) as browser,
    ):
        scene = browser.wait() and browser.get("/api/scene").content
        # Twice, so that the second stops the worker that holds what is shown.
        for _ in range(2):
            assert browser.post("/api/open", {"path": "bad.csv"}).status_code == 202
        assert browser.wait()["title"] == "swing.csv"
        assert browser.get("/api/scene").content == scene
        assert browser.post("/api/try", RENAME).status_code == 200
        assert browser.post("/api/keep").json()["edits"][0]["to"] == "Bob"
    assert read_edits(tmp_path / "swing.edits.toml") == (edit_of(RENAME),)


def test_without_its_packages_the_pip_line_is_told(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda n: None if n == "uvicorn" else found(n)
    )
    with pytest.raises(marey.MissingExtraError, match=r'pip install "marey\[view\]"'):
        marey.view(samples.take())


def test_what_is_not_there_is_told_before_anything_starts(tmp_path, monkeypatch):
    with pytest.raises(marey.FormatError, match="nothing there"):
        marey.view(tmp_path / "gone.c3d")
    monkeypatch.setattr("marey.io.html._page.files", lambda _: tmp_path)
    before = set(os.listdir(tmp_path))
    with pytest.raises(marey.OutputError, match="the page was not built"):
        marey.view(tmp_path, browser=False, block=False)
    assert set(os.listdir(tmp_path)) == before


def test_the_browser_is_opened_and_ctrl_c_is_the_end(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("webbrowser.open", asked.append)
    monkeypatch.setattr(_server.Viewer, "wait", lambda viewer: viewer.close())
    with served(tmp_path, monkeypatch):
        pass
    viewer = marey.view(tmp_path)
    assert asked == [viewer.url]
    assert not viewer.scratch.exists()


def test_the_command_line_tells_the_address_and_warns(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_server, "read_page", lambda: page_of(PAGE))
    monkeypatch.setattr(_server.Viewer, "wait", lambda viewer: viewer.close())
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with pytest.raises(SystemExit) as stop:
        main(["view", str(tmp_path), "--no-browser", "--host", "127.0.0.2"])
    printed = capsys.readouterr()
    assert stop.value.code == 0
    assert re.search(r"\nhttp://127\.0\.0\.2:\d+/\?token=\S{43}\n", printed.out)
    assert "warning: listening on 127.0.0.2" in printed.err
    with pytest.raises(SystemExit) as stop:
        main(["view", str(tmp_path / "gone.c3d")])
    assert stop.value.code == 2


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("walk.c3d", "walk.c3d"),
        ("../../etc/passwd", "passwd"),
        ("C:\\data\\walk 1.c3d", "walk_1.c3d"),
        ("..", "recording"),
        ("", "recording"),
        ("a" * 300 + ".c3d", "a" * 96 + ".c3d"),
        ("<b>\x00.trc", "_b__.trc"),
    ],
)
def test_names_of_dropped_files_are_made_harmless(name, plain):
    assert plain_name(name) == plain


def test_answers_are_json_whatever_the_numbers():
    from marey.view._wire import framed

    frame = framed({"value": np.nan, "deep": [np.float64("inf"), np.int64(3)]})
    assert json.loads(frame[8:]) == {"value": None, "deep": [None, 3]}
