"""`marey view`: what is shown, put right and kept."""

import asyncio
import importlib.util
import json
import os
import re
import signal
import time
import zlib
from itertools import pairwise

import numpy as np
import pytest
import samples
import scenes
from viewing import PAGE, Browser, in_a_loop, served

import marey
from marey.cli import main
from marey.edits import parse_edit, read_edits, write_edits
from marey.io.formats import html
from marey.io.formats.html.page import page_of
from marey.pipeline.progress import COMPILING_NOTE
from marey.viewer import Limits
from marey.viewer.server import server
from marey.viewer.server.files import plain_name
from marey.viewer.server.state import Show, Source
from marey.viewer.worker.exact_values import series_of
from marey.viewer.worker.session import Session

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


def shown(session):
    return session._now.scene(session._drawn)


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
    assert stages[-1].removesuffix(f", {COMPILING_NOTE}") == "pose"
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
    assert read_edits(file) == (parse_edit(RENAME),)
    state, blob = session.do({"do": "undo"})
    assert blob == first
    assert read_edits(file) == ()
    assert (state["can_undo"], state["can_redo"]) == (False, True)
    state, blob = session.do({"do": "redo"})
    assert "Bob" in joints_of(blob)
    assert read_edits(file) == (parse_edit(RENAME),)


def test_an_edit_that_is_dropped_was_never_there(session, kept, tmp_path):
    _, first = opened(session, kept, tmp_path / "swing.edits.toml")
    session.do({"do": "try", "edit": RENAME})
    state, nothing = session.do({"do": "drop"})
    assert (state["trial"], state["edits"], nothing) == (False, [], b"")
    with pytest.raises(marey.OptionError, match="no edit being tried"):
        session.do({"do": "keep"})
    assert not (tmp_path / "swing.edits.toml").exists()
    assert shown(session) == first


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
    assert shown(session) == first
    assert session._state() == {k: v for k, v in state.items() if k != "note"}


def test_edits_beside_a_recording_are_read_again(session, kept, tmp_path):
    file = tmp_path / "swing.edits.toml"
    write_edits([parse_edit(RENAME)], file)
    state, blob = opened(session, kept, file)
    assert "Bob" in joints_of(blob)
    assert (state["can_undo"], state["note"]) == (True, "")


MISFITS = ('[[edit]]\ndo="rename"\nname="Nobody"\nto="X"\n', "not toml")


@pytest.mark.parametrize("misfit", MISFITS)
def test_edits_after_some_that_no_longer_fit_are_found_again(
    session, kept, tmp_path, misfit
):
    """What did not fit stays beside them, under another name; nothing is lost."""
    file = tmp_path / "swing.edits.toml"
    file.with_name("swing.edits.toml.1").write_text("from long ago")
    file.write_text(misfit)
    state, blob = opened(session, kept, file)
    assert "opened without its edits" in state["note"]
    assert "Lower" in joints_of(blob)
    assert file.read_text() == misfit
    session.do({"do": "try", "edit": RENAME})
    state, _ = session.do({"do": "keep"})
    assert "they are in swing.edits.toml.2 now" in state["note"]
    assert read_edits(file) == (parse_edit(RENAME),)
    assert file.with_name("swing.edits.toml.1").read_text() == "from long ago"
    assert file.with_name("swing.edits.toml.2").read_text() == misfit
    state, blob = opened(session, kept, file)
    assert (state["note"], state["edits"][0]["to"]) == ("", "Bob")
    assert "Bob" in joints_of(blob)
    assert session.do({"do": "undo"})[0]["note"] == ""
    assert len(list(tmp_path.glob("*.toml*"))) == 3


def test_edits_that_somebody_else_wrote_meanwhile_are_kept_beside(
    session, kept, tmp_path
):
    file = tmp_path / "swing.edits.toml"
    opened(session, kept, file)
    others = (parse_edit({**RENAME, "to": "Tip"}),)
    write_edits(others, file)
    session.do({"do": "try", "edit": RENAME})
    session.do({"do": "keep"})
    assert read_edits(file) == (parse_edit(RENAME),)
    assert read_edits(tmp_path / "swing.edits.toml.1") == others


def test_all_edits_undone_stay_undone(session, solution, tmp_path):
    """Also those that an answer was written with."""
    desk = marey.EditSession(solution, edits=[RENAME])
    marey.write(desk.solution, tmp_path / "swing.marey")
    file = tmp_path / "swing.edits.toml"
    _, blob = opened(session, tmp_path / "swing.marey", file)
    assert "Bob" in joints_of(blob)
    session.do({"do": "undo"})
    state, blob = opened(session, tmp_path / "swing.marey", file)
    assert state["edits"] == []
    assert "Lower" in joints_of(blob)


def test_edits_go_on_from_an_answer_that_was_edited_before(session, solution, tmp_path):
    """Those of the file are made, and what the answer has marked as bad stays so."""
    bad = {"do": "bad", "first": 20, "last": 29}
    marey.write(
        marey.EditSession(solution, edits=[bad]).solution, tmp_path / "swing.marey"
    )
    file = tmp_path / "swing.edits.toml"
    write_edits([parse_edit(RENAME)], file)
    state, blob = opened(session, tmp_path / "swing.marey", file)
    assert [edit["do"] for edit in state["edits"]] == ["bad", "rename"]
    assert "Bob" in joints_of(blob)
    session.do({"do": "undo"})
    state, _ = opened(session, tmp_path / "swing.marey", file)
    assert [edit["do"] for edit in state["edits"]] == ["bad"]
    assert not state["can_undo"]


def test_what_cannot_be_written_is_not_done(session, kept, tmp_path):
    """Keep, undo and redo: the desk, the trial and the files are as they were."""
    file = tmp_path / "there" / "swing.edits.toml"
    away = tmp_path / "away"
    file.parent.mkdir()
    _, first = opened(session, kept, file)

    def refused(kind):
        before = session._state(), shown(session), file.exists() and file.read_bytes()
        file.parent.rename(away)
        with pytest.raises(marey.OutputError, match="nothing was changed, and `marey"):
            session.do({"do": kind})
        away.rename(file.parent)
        after = session._state(), shown(session), file.exists() and file.read_bytes()
        assert after == before

    session.do({"do": "try", "edit": RENAME})
    refused("keep")
    assert session._state()["trial"]
    assert shown(session) == first
    session.do({"do": "keep"})
    refused("undo")
    session.do({"do": "undo"})
    refused("redo")
    _, blob = session.do({"do": "redo"})
    assert "Bob" in joints_of(blob)
    assert read_edits(file) == (parse_edit(RENAME),)


def test_what_was_put_aside_for_nothing_is_not_left(session, kept, tmp_path):
    file = tmp_path / "swing.edits.toml"
    file.write_text("not toml")
    opened(session, kept, file)
    session.do({"do": "try", "edit": RENAME})
    in_place = os.replace

    def full(part, path):
        if path == file:
            raise OSError("full")
        in_place(part, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.replace", full)
        with pytest.raises(marey.OutputError, match="full"):
            session.do({"do": "keep"})
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "swing.edits.toml",
        "swing.marey",
    ]
    assert file.read_text() == "not toml"


def test_a_file_that_cannot_be_read_leaves_what_was_open(session, kept, tmp_path):
    _, first = opened(session, kept)
    (tmp_path / "bad.c3d").write_bytes(b"nothing")
    with pytest.raises(marey.FormatError):
        opened(session, tmp_path / "bad.c3d")
    assert shown(session) == first


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
    gap = np.linalg.norm(
        marey.joints.joint_residuals(bodies, solution.joints, pair), axis=-1
    )
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
        assert read_edits(edits) == (parse_edit(RENAME),)
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


STEPS = (
    [{"do": "rename", "name": "Lower", "to": "Bob"}, "keep"],
    [{"do": "kind", "joint": "Bob", "kind": "hinge"}, "keep"],
    ["undo"],
)


def packed(blob):
    """The header of a scene, and its arrays as the bytes they are."""
    raw = zlib.decompress(blob)
    return scenes.header(blob), raw[8 + int.from_bytes(raw[4:8], "little") :]


def lose(viewer):
    """Kill the worker, as a system without memory would."""
    os.kill(viewer._show.workshop.pid, signal.SIGKILL)
    while viewer._show.workshop.pid:
        time.sleep(0.01)


@pytest.mark.parametrize("file", [True, False])
def test_no_edit_is_lost_with_a_worker(
    session, kept, solution, monkeypatch, tmp_path, file
):
    """Killed after every step, it is as if it had never been, edits file or not."""
    edits = tmp_path / "mine.edits.toml" if file else None
    opened(session, kept)
    with (
        served(solution, monkeypatch, edits=edits) as viewer,
        Browser(viewer) as browser,
    ):
        title = browser.wait()["title"]
        for *edit, kind in STEPS:
            for record in edit:
                session.do({"do": "try", "edit": record})
                assert browser.post("/api/try", record).status_code == 200
            state, _ = session.do({"do": kind})
            assert browser.post(f"/api/{kind}").status_code == 200
            lose(viewer)
            assert browser.get("/api/series?subject=0&joint=1").status_code == 200
            # What was undone cannot be done again by a worker that never did it.
            expected = {**state, "title": title, "saved": edits.name if edits else ""}
            del expected["note"], expected["can_redo"]
            now = browser.get("/api/state").json()
            assert set(now) == {*expected, "can_redo", "busy", "version"}
            assert {key: now[key] for key in expected} == expected
            header, arrays = packed(browser.get("/api/scene").content)
            wanted, exact = packed(shown(session))
            for key in wanted.keys() - {"seconds", "title"}:
                assert header[key] == wanted[key], key
            assert arrays == exact
            if edits is not None and edits.exists():
                assert [e.record() for e in read_edits(edits)] == header["edits"]


def test_a_trial_that_is_lost_with_its_worker_is_over(solution, monkeypatch):
    with served(solution, monkeypatch) as viewer, Browser(viewer) as browser:
        browser.wait()
        browser.post("/api/try", RENAME)
        lose(viewer)
        refused = browser.post("/api/keep")
        assert refused.status_code == 409
        assert "no edit being tried" in refused.json()["error"]
        state = browser.get("/api/state").json()
        assert (state["trial"], state["edits"]) == (False, [])
        assert browser.get("/api/scene?trial=1").status_code == 409


def test_a_bad_file_of_edits_outlives_the_worker_too(kept, monkeypatch, tmp_path):
    """The next worker knows as well that what is in it is not on its desk."""
    file = tmp_path / "swing.marey.edits.toml"
    file.write_text("not toml")
    with served(kept, monkeypatch) as viewer, Browser(viewer) as browser:
        browser.wait()
        lose(viewer)
        browser.post("/api/try", RENAME)
        assert browser.post("/api/keep").status_code == 200
    assert read_edits(file) == (parse_edit(RENAME),)
    assert (tmp_path / "swing.marey.edits.toml.1").read_text() == "not toml"


def test_each_recording_of_a_folder_has_edits_of_its_own(
    recorded, monkeypatch, tmp_path
):
    """Also where only the suffixes differ, and where a file of that name is dropped."""
    for suffix in (".csv", ".npz"):
        marey.write(recorded, tmp_path / f"swing{suffix}")
    with served(tmp_path, monkeypatch) as viewer, Browser(viewer) as browser:
        for name in ("swing.csv", "swing.npz"):
            browser.post("/api/open", {"path": name})
            state = browser.wait()
            assert (state["title"], state["edits"]) == (name, [])
            browser.post("/api/try", {**RENAME, "to": name[-3:]})
            assert browser.post("/api/keep").json()["saved"] == f"{name}.edits.toml"
        browser.drop("swing.npz", (tmp_path / "swing.npz").read_bytes())
        assert browser.wait()["edits"] == []
        browser.post("/api/try", RENAME)
        assert browser.post("/api/keep").json()["saved"] == ""
    for suffix in ("csv", "npz"):
        (edit,) = read_edits(tmp_path / f"swing.{suffix}.edits.toml")
        assert edit.to == suffix


def test_a_file_whose_name_is_no_text_is_listed_opened_and_written(
    monkeypatch, tmp_path
):
    odd = os.fsencode(tmp_path) + b"/w\xffalk.bvh"
    marey.write(samples.motion(6), tmp_path / "walk.bvh")
    (tmp_path / "walk.bvh").rename(os.fsdecode(odd))
    with served(tmp_path, monkeypatch) as viewer, Browser(viewer) as browser:
        answer = browser.get("/api/folder")
        assert answer.status_code == 200
        (file,) = answer.json()["files"]
        told = json.dumps({"path": file["path"]}).encode()
        headers = {"origin": browser.origin, "content-type": "application/json"}
        answer = browser.client.post("/api/open", content=told, headers=headers)
        assert answer.status_code == 202
        assert browser.wait()["title"] == "w\ufffdalk.bvh"
        header = scenes.header(browser.get("/api/scene").content)
        assert header["title"] == "w\ufffdalk.bvh"
    with served(os.fsdecode(odd), monkeypatch) as viewer, Browser(viewer) as browser:
        assert browser.wait()["title"] == "w\ufffdalk.bvh"
    motion = marey.read_motion(os.fsdecode(odd))
    scene = scenes.header(html.scene_of(motion))
    assert scene["title"] == "w\ufffdalk.bvh"


def test_what_is_dropped_goes_when_it_is_no_longer_shown(monkeypatch, tmp_path):
    """One file is kept, however many are dropped; so goes what was in memory."""
    marey.write(samples.motion(6), tmp_path / "walk.bvh")
    walk = (tmp_path / "walk.bvh").read_bytes()

    def stored():
        return [path.name for path in viewer.scratch.rglob("*") if path.is_file()]

    with (
        served(samples.motion(5), monkeypatch) as viewer,
        Browser(viewer) as browser,
    ):
        browser.wait()
        assert stored() == ["shown.marey"]
        for name in ("a.bvh", "b.bvh"):
            browser.drop(name, walk)
            assert browser.wait()["title"] == name
            assert stored() == [name]
        for name in ("c.bvh", "d.bvh"):  # Neither can be read.
            browser.drop(name, b"nothing")
        assert browser.wait()["title"] == "b.bvh"
        assert stored() == ["b.bvh"]
        lose(viewer)
        assert browser.get("/api/series?subject=0&joint=1").status_code == 200


@pytest.mark.parametrize("turns", [0, 1, 4])
def test_a_worker_that_only_starts_is_stopped_too(monkeypatch, tmp_path, turns):
    """Whenever another thing is opened or all is ended, the first is never shown."""
    marey.write(samples.motion(6), tmp_path / "walk.bvh")
    first, then = (Source(tmp_path / "walk.bvh", name, None) for name in "ab")

    async def begun():
        show = Show(Limits(), "nothing")
        await show.open(first)
        for _ in range(turns):
            await asyncio.sleep(0)
        return show

    async def opened_after():
        show = await begun()
        await show.open(then)
        await asyncio.wait([show._opening])
        title, version = show.state["title"], show.version
        await show.close()
        return title, version, show.workshop.pid

    async def closed_after():
        show = await begun()
        await show.close()
        return show.state["title"], show.version, show.workshop.pid

    assert in_a_loop(opened_after) == ("b", 1, 0)
    assert in_a_loop(closed_after) == ("nothing", 0, 0)


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
        for odd in ("x", "-1", "9" * 5000, "²"):
            assert browser.get(f"/api/series?take={odd}").status_code == 409
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
    assert read_edits(tmp_path / "swing.csv.edits.toml") == (parse_edit(RENAME),)


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
    monkeypatch.setattr("marey.io.formats.html.page.files", lambda _: tmp_path)
    before = set(os.listdir(tmp_path))
    with pytest.raises(marey.OutputError, match="the page was not built"):
        marey.view(tmp_path, browser=False, block=False)
    assert set(os.listdir(tmp_path)) == before


def test_the_browser_is_opened_and_ctrl_c_is_the_end(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("webbrowser.open", asked.append)
    monkeypatch.setattr(server.Viewer, "wait", lambda viewer: viewer.close())
    with served(tmp_path, monkeypatch):
        pass
    viewer = marey.view(tmp_path)
    assert asked == [viewer.url]
    assert not viewer.scratch.exists()


def test_the_command_line_tells_the_address_and_warns(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(server, "read_page", lambda: page_of(PAGE))
    monkeypatch.setattr(server.Viewer, "wait", lambda viewer: viewer.close())
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
        ("漢" * 120 + ".trc", "漢" * 32 + ".trc"),
        ("\ud800.trc", "_.trc"),
    ],
)
def test_names_of_dropped_files_are_made_harmless(name, plain):
    assert plain_name(name) == plain


def test_answers_are_json_whatever_the_numbers():
    from marey.viewer.server.protocol import framed

    frame = framed({"value": np.nan, "deep": [np.float64("inf"), np.int64(3)]})
    assert json.loads(frame[8:]) == {"value": None, "deep": [None, 3]}
