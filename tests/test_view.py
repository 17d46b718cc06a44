"""`marey view`: what the page shows, and how edits are tried, kept and saved."""

import asyncio
import importlib.util
import json
import os
import re
import signal
import time
import zlib
from dataclasses import asdict
from itertools import pairwise

import numpy as np
import pytest
import samples
import scenes
from viewing import PAGE, Browser, run_in_loop, served

import marey
from marey.cli import main
from marey.edits import parse_edit, read_edits, write_edits
from marey.io.formats import html
from marey.io.formats.html import MAX_DRAWN_ITEMS
from marey.io.formats.html.page import parse_page
from marey.pipeline.progress import COMPILING_NOTE
from marey.viewer import Limits
from marey.viewer.server import server
from marey.viewer.server.files import sanitize_file_name
from marey.viewer.server.stages import StageClock
from marey.viewer.server.state import ServerState, ViewedFile
from marey.viewer.worker.exact_values import encode_exact_values
from marey.viewer.worker.session import WorkerSession

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
    progress = []
    session = WorkerSession(lambda message, data: progress.append((message, data)))
    session.progress = progress  # type: ignore[attr-defined]
    return session


def opened(session, path, edits=None):
    request = {"do": "open", "path": str(path), "title": path.name}
    return session.handle({**request, "edits_path": str(edits or "")})


def shown(session):
    return session.open_file.scene(MAX_DRAWN_ITEMS)


def joints_of(blob):
    return [j["name"] for j in scenes.header(blob)["subjects"][0]["joints"]]


@pytest.fixture
def solution_path(solution, tmp_path):
    marey.write(solution, tmp_path / "swing.marey")
    return tmp_path / "swing.marey"


def test_a_recording_is_shown_while_it_is_solved(session, recorded, tmp_path):
    marey.write(recorded, tmp_path / "swing.csv")
    state, blob = opened(session, tmp_path / "swing.csv")
    stages = [message["stage"] for message, _ in session.progress if "stage" in message]
    assert stages[:2] == ["read", "clean"]
    assert stages[-1].removesuffix(f", {COMPILING_NOTE}") == "pose"
    ((_, early),) = (sent for sent in session.progress if "scene" in sent[0])
    assert scenes.header(early)["unsolved"] == "being solved"
    assert len(scenes.header(early)["takes"][0]["sensors"]) == 4
    header = scenes.header(blob)
    assert (header["title"], header["unsolved"]) == ("swing.csv", "")
    assert header["editable"]
    assert "Lower" in joints_of(blob)
    assert state["edits"] == []


def test_a_solution_is_shown_as_it_is(session, solution_path, solution):
    _, blob = opened(session, solution_path)
    assert session.progress == [({"stage": "read"}, b"")]
    lengths = [j["length"] for j in scenes.header(blob)["subjects"][0]["joints"]]
    assert lengths == solution.skeleton.lengths.tolist()


def test_a_motion_is_shown_as_it_is_and_not_edited(session, tmp_path):
    marey.write(samples.motion(6), tmp_path / "walk.bvh")
    _, blob = opened(session, tmp_path / "walk.bvh")
    assert not scenes.header(blob)["editable"]
    assert joints_of(blob)[3] == "Foot"
    with pytest.raises(marey.DataError, match="a motion, which cannot be edited"):
        session.handle({"do": "try", "edit": RENAME})


def test_a_take_that_cannot_be_solved_shows_markers_and_the_reason(session, tmp_path):
    points = np.full((5, 2, 3), np.nan)
    points[0, 0] = 1.0
    take = marey.Take(rate=10.0, points=points, labels=("A", "B"))
    marey.write(take, tmp_path / "few.npz")
    _, blob = opened(session, tmp_path / "few.npz")
    header = scenes.header(blob)
    assert "need" in header["unsolved"]
    assert not header["editable"]
    assert [m["label"] for m in header["takes"][0]["markers"]] == ["A", "B"]


def test_an_edit_is_tried_kept_undone_and_made_again(session, solution_path, tmp_path):
    file = tmp_path / "swing.edits.toml"
    _, first = opened(session, solution_path, file)
    result, tried = session.handle({"do": "try", "edit": RENAME})
    assert set(result) == {"before", "after", "changes", "findings", "text"}
    assert result["before"]["bodies"] == result["after"]["bodies"] == 4
    assert "Bob" in joints_of(tried)
    assert scenes.header(tried)["edits"] == [RENAME]
    assert not file.exists()
    state, blob = session.handle({"do": "keep"})
    assert state["edits"] == [{"text": "Lower renamed Bob", **RENAME}]
    assert (state["can_undo"], state["can_redo"]) == (True, False)
    assert state["saved"] == file.name
    assert "Bob" in joints_of(blob)
    assert read_edits(file) == (parse_edit(RENAME),)
    state, blob = session.handle({"do": "undo"})
    assert blob == first
    assert read_edits(file) == ()
    assert (state["can_undo"], state["can_redo"]) == (False, True)
    state, blob = session.handle({"do": "redo"})
    assert "Bob" in joints_of(blob)
    assert read_edits(file) == (parse_edit(RENAME),)


def test_an_edit_that_is_dropped_was_never_there(session, solution_path, tmp_path):
    _, first = opened(session, solution_path, tmp_path / "swing.edits.toml")
    session.handle({"do": "try", "edit": RENAME})
    state, nothing = session.handle({"do": "drop"})
    assert (state["trial"], state["edits"], nothing) == (False, [], b"")
    with pytest.raises(marey.OptionError, match="no edit being tried"):
        session.handle({"do": "keep"})
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
def test_an_edit_that_cannot_be_is_refused_and_nothing_is_lost(
    session, solution_path, edit
):
    state, first = opened(session, solution_path)
    with pytest.raises(marey.MareyError, match="need"):
        session.handle({"do": "try", "edit": edit})
    assert shown(session) == first
    assert {**asdict(session.page_state()), "note": state["note"]} == state


def test_edits_beside_a_recording_are_read_again(session, solution_path, tmp_path):
    file = tmp_path / "swing.edits.toml"
    write_edits([parse_edit(RENAME)], file)
    state, blob = opened(session, solution_path, file)
    assert "Bob" in joints_of(blob)
    assert (state["can_undo"], state["note"]) == (True, "")


MISFITS = ('[[edit]]\ndo="rename"\nname="Nobody"\nto="X"\n', "not toml")


@pytest.mark.parametrize("misfit", MISFITS)
def test_edits_that_cannot_be_applied_are_backed_up(
    session, solution_path, tmp_path, misfit
):
    """The edits file is renamed before new edits are saved; nothing is lost."""
    file = tmp_path / "swing.edits.toml"
    file.with_name("swing.edits.toml.1").write_text("from long ago")
    file.write_text(misfit)
    state, blob = opened(session, solution_path, file)
    assert "opened without its edits" in state["note"]
    assert "Lower" in joints_of(blob)
    assert file.read_text() == misfit
    session.handle({"do": "try", "edit": RENAME})
    state, _ = session.handle({"do": "keep"})
    assert "they are in swing.edits.toml.2 now" in state["note"]
    assert read_edits(file) == (parse_edit(RENAME),)
    assert file.with_name("swing.edits.toml.1").read_text() == "from long ago"
    assert file.with_name("swing.edits.toml.2").read_text() == misfit
    state, blob = opened(session, solution_path, file)
    assert (state["note"], state["edits"][0]["to"]) == ("", "Bob")
    assert "Bob" in joints_of(blob)
    assert session.handle({"do": "undo"})[0]["note"] == ""
    assert len(list(tmp_path.glob("*.toml*"))) == 3


def test_edits_of_another_program_are_backed_up(session, solution_path, tmp_path):
    file = tmp_path / "swing.edits.toml"
    opened(session, solution_path, file)
    others = (parse_edit({**RENAME, "to": "Tip"}),)
    write_edits(others, file)
    session.handle({"do": "try", "edit": RENAME})
    session.handle({"do": "keep"})
    assert read_edits(file) == (parse_edit(RENAME),)
    assert read_edits(tmp_path / "swing.edits.toml.1") == others


def test_an_empty_edits_file_means_that_all_edits_are_undone(
    session, solution, tmp_path
):
    """Also those that an answer was written with."""
    edit_session = marey.EditSession(solution, edits=[RENAME])
    marey.write(edit_session.solution, tmp_path / "swing.marey")
    file = tmp_path / "swing.edits.toml"
    _, blob = opened(session, tmp_path / "swing.marey", file)
    assert "Bob" in joints_of(blob)
    session.handle({"do": "undo"})
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
    session.handle({"do": "undo"})
    state, _ = opened(session, tmp_path / "swing.marey", file)
    assert [edit["do"] for edit in state["edits"]] == ["bad"]
    assert not state["can_undo"]


def test_an_edit_that_cannot_be_saved_is_not_applied(session, solution_path, tmp_path):
    """Keep, undo and redo: session, trial and files are unchanged."""
    file = tmp_path / "there" / "swing.edits.toml"
    away = tmp_path / "away"
    file.parent.mkdir()
    _, first = opened(session, solution_path, file)

    def refused(kind):
        before = (
            session.page_state(),
            shown(session),
            file.exists() and file.read_bytes(),
        )
        file.parent.rename(away)
        with pytest.raises(marey.OutputError, match="nothing was changed, and `marey"):
            session.handle({"do": kind})
        away.rename(file.parent)
        after = (
            session.page_state(),
            shown(session),
            file.exists() and file.read_bytes(),
        )
        assert after == before

    session.handle({"do": "try", "edit": RENAME})
    refused("keep")
    assert session.page_state().trial
    assert shown(session) == first
    session.handle({"do": "keep"})
    refused("undo")
    session.handle({"do": "undo"})
    refused("redo")
    _, blob = session.handle({"do": "redo"})
    assert "Bob" in joints_of(blob)
    assert read_edits(file) == (parse_edit(RENAME),)


def test_a_backup_is_deleted_if_the_edits_cannot_be_written(
    session, solution_path, tmp_path
):
    file = tmp_path / "swing.edits.toml"
    file.write_text("not toml")
    opened(session, solution_path, file)
    session.handle({"do": "try", "edit": RENAME})
    in_place = os.replace

    def full(part, path):
        if path == file:
            raise OSError("full")
        in_place(part, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.replace", full)
        with pytest.raises(marey.OutputError, match="full"):
            session.handle({"do": "keep"})
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "swing.edits.toml",
        "swing.marey",
    ]
    assert file.read_text() == "not toml"


def test_a_file_that_cannot_be_read_leaves_what_was_open(
    session, solution_path, tmp_path
):
    _, first = opened(session, solution_path)
    (tmp_path / "bad.c3d").write_bytes(b"nothing")
    with pytest.raises(marey.FormatError):
        opened(session, tmp_path / "bad.c3d")
    assert shown(session) == first


def test_exact_values_have_every_frame():
    take = marey.synth.pendulum().record(seconds=1.0, noise=1e-3)
    solution = marey.solve(take)
    _, found = scenes.unpacked(encode_exact_values(solution, take=0, marker=7))
    points = solution.take.points[:, 7]
    np.testing.assert_array_equal(found["points"], points.astype(np.float32))
    skeleton = solution.motion.skeleton
    index = skeleton.marker_labels.index(solution.take.full_labels[7])
    away = np.linalg.norm(solution.motion.marker_points()[:, index] - points, axis=-1)
    np.testing.assert_allclose(found["residual"], away, atol=1e-7)
    bodies = solution.bodies[0]
    joint = skeleton.n_joints - 3
    _, found = scenes.unpacked(
        encode_exact_values(solution, take=0, subject=0, joint=joint)
    )
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
            encode_exact_values(solution, **odd)


def test_every_format_of_the_page_is_written(session, solution_path, tmp_path):
    """Each suffix of the scene's list gives a file, or says which package it needs."""
    opened(session, solution_path)
    exports = scenes.header(shown(session))["exports"]
    choices = [
        (suffix, content)
        for export in exports
        for suffix in export["suffixes"]
        for content in export["contents"] or [""]
    ]
    assert {".bvh", ".glb", ".marey", ".html"} <= {suffix for suffix, _ in choices}
    written, refused = [], {}
    for number, (suffix, content) in enumerate(choices):
        folder = tmp_path / str(number)
        folder.mkdir()
        request = {"folder": str(folder), "suffix": suffix, "content": content}
        try:
            answer, _ = session.handle({"do": "export", **request})
        except marey.MareyError as error:
            refused[suffix] = str(error)
            continue
        assert (folder / answer["file"]).stat().st_size > 0
        written.append(answer["file"])
    assert {"swing.bvh", "swing.zip", "swing.csv", "swing.glb"} <= set(written)
    assert all("install" in why for why in refused.values()), refused


def test_an_export_is_named_after_the_recording_and_leaves_nothing(
    solution, monkeypatch
):
    with served(solution, monkeypatch) as viewer, Browser(viewer) as browser:
        title = browser.wait()["title"]
        answer = browser.post("/api/export", {"suffix": ".bvh"})
        assert answer.status_code == 200
        assert f'filename="{title}.bvh"' in answer.headers["content-disposition"]
        assert json.loads(answer.headers["export-findings"])
        assert answer.content.startswith(b"HIERARCHY")
        for wrong in ("/../../x.bvh", "bvh", ".bvh/", "", 7, ".unknown", ".BVH\0"):
            answer = browser.post("/api/export", {"suffix": wrong})
            assert answer.status_code == 409, wrong
        # A written file is deleted after the answer, by the server's own thread.
        end = time.monotonic() + 60.0
        while left := [p for p in viewer.scratch.rglob("*") if p.name.endswith(".bvh")]:
            assert time.monotonic() < end, left
            time.sleep(0.01)
        assert [p.name for p in viewer.scratch.rglob("*.*")] == ["shown.marey"]


def test_stages_have_the_seconds_until_the_next_one_begins():
    seconds = iter([0.0, 2.0, 5.0, 6.0])
    clock = StageClock(lambda: next(seconds))
    clock.restart("read")
    clock.begin("clean")
    clock.begin("pose")
    clock.begin(f"pose, {COMPILING_NOTE}")
    assert clock.running == f"pose, {COMPILING_NOTE}"
    assert clock.seconds() == [
        {"stage": "read", "seconds": 2.0},
        {"stage": "clean", "seconds": 3.0},
        {"stage": f"pose, {COMPILING_NOTE}", "seconds": 1.0},
    ]
    clock.restart()
    assert clock.running == ""
    assert StageClock().seconds() == []


def test_pages_hear_of_a_job_before_its_worker_has_started(monkeypatch, tmp_path):
    """It takes seconds to start, in which a page would show nothing."""

    async def heard():
        state = ServerState(Limits(), "nothing")
        messages = []
        monkeypatch.setattr(state.connections, "broadcast", messages.append)
        path = tmp_path / "made.c3d"
        await state.open(ViewedFile(path, path.name, None, generated=True))
        first = list(messages)
        await state.close()
        return first

    (message,) = run_in_loop(heard)
    assert (message["type"], message["busy"]) == ("state", "generate")
    assert [stage["stage"] for stage in message["stages"]] == ["generate"]


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
        # A worker that dies between two edits is replaced, with all kept edits.
        os.kill(viewer.state.supervisor.pid, signal.SIGKILL)
        while viewer.state.supervisor.pid:
            time.sleep(0.01)
        assert browser.post("/api/undo").json()["can_redo"]
        assert "Lower" in joints_of(browser.get("/api/scene").content)
        assert read_edits(edits) == ()
        assert browser.get("/api/folder").json() == {"root": "", "files": []}
        assert browser.post("/api/open", {"path": "x.c3d"}).status_code == 404
        messages = [heard()]
        while not messages[-1].get("can_redo"):
            messages.append(heard())
    # The end of a job is sent once, with its result: never before with the old state.
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


def kill_worker(viewer):
    """Kill the worker, as a system without free memory does."""
    os.kill(viewer.state.supervisor.pid, signal.SIGKILL)
    while viewer.state.supervisor.pid:
        time.sleep(0.01)


@pytest.mark.parametrize("file", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_no_edit_is_lost_with_a_worker(
    session, solution_path, solution, monkeypatch, tmp_path, file
):
    """Killed after every step, it is as if it had never been, edits file or not."""
    edits = tmp_path / "mine.edits.toml" if file else None
    opened(session, solution_path)
    with (
        served(solution, monkeypatch, edits=edits) as viewer,
        Browser(viewer) as browser,
    ):
        title = browser.wait()["title"]
        for *edit, kind in STEPS:
            for record in edit:
                session.handle({"do": "try", "edit": record})
                assert browser.post("/api/try", record).status_code == 200
            state, _ = session.handle({"do": kind})
            assert browser.post(f"/api/{kind}").status_code == 200
            kill_worker(viewer)
            assert browser.get("/api/series?subject=0&joint=1").status_code == 200
            # What was undone cannot be done again by a worker that never did it.
            expected = {**state, "title": title, "saved": edits.name if edits else ""}
            del expected["note"], expected["can_redo"]
            now = browser.get("/api/state").json()
            assert set(now) == {*expected, "can_redo", "busy", "version", "stages"}
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
        kill_worker(viewer)
        refused = browser.post("/api/keep")
        assert refused.status_code == 409
        assert "no edit being tried" in refused.json()["error"]
        state = browser.get("/api/state").json()
        assert (state["trial"], state["edits"]) == (False, [])
        assert browser.get("/api/scene?trial=1").status_code == 409


def test_an_invalid_edits_file_is_backed_up_also_by_a_new_worker(
    solution_path, monkeypatch, tmp_path
):
    """The next worker also knows that the edits in the file are not applied."""
    file = tmp_path / "swing.marey.edits.toml"
    file.write_text("not toml")
    with served(solution_path, monkeypatch) as viewer, Browser(viewer) as browser:
        browser.wait()
        kill_worker(viewer)
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
        content = json.dumps({"path": file["path"]}).encode()
        headers = {"origin": browser.origin, "content-type": "application/json"}
        answer = browser.client.post("/api/open", content=content, headers=headers)
        assert answer.status_code == 202
        assert browser.wait()["title"] == "w\ufffdalk.bvh"
        header = scenes.header(browser.get("/api/scene").content)
        assert header["title"] == "w\ufffdalk.bvh"
    with served(os.fsdecode(odd), monkeypatch) as viewer, Browser(viewer) as browser:
        assert browser.wait()["title"] == "w\ufffdalk.bvh"
    motion = marey.read_motion(os.fsdecode(odd))
    scene = scenes.header(html.encode_scene(motion))
    assert scene["title"] == "w\ufffdalk.bvh"


def test_a_dropped_file_is_deleted_when_another_is_shown(monkeypatch, tmp_path):
    """Only one dropped file exists at a time; a file from memory is deleted too."""
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
        kill_worker(viewer)
        assert browser.get("/api/series?subject=0&joint=1").status_code == 200


@pytest.mark.parametrize("n_yields", [0, 1, 4])
def test_a_worker_that_is_just_starting_is_stopped_too(monkeypatch, tmp_path, n_yields):
    """Whenever another thing is opened or all is ended, the first is never shown."""
    marey.write(samples.motion(6), tmp_path / "walk.bvh")
    first, then = (ViewedFile(tmp_path / "walk.bvh", name, None) for name in "ab")

    async def begun():
        state = ServerState(Limits(), "nothing")
        await state.open(first)
        for _ in range(n_yields):
            await asyncio.sleep(0)
        return state

    async def opened_after():
        state = await begun()
        await state.open(then)
        await asyncio.wait([state.open_task])
        title, version = state.page_state["title"], state.version
        await state.close()
        return title, version, state.supervisor.pid

    async def closed_after():
        state = await begun()
        await state.close()
        return state.page_state["title"], state.version, state.supervisor.pid

    assert run_in_loop(opened_after) == ("b", 1, 0)
    assert run_in_loop(closed_after) == ("nothing", 0, 0)


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


def test_a_missing_extra_is_reported_with_its_pip_command(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda n: None if n == "uvicorn" else found(n)
    )
    with pytest.raises(marey.MissingExtraError, match=r'pip install "marey\[view\]"'):
        marey.view(samples.take())


def test_a_missing_file_or_page_is_reported_before_the_server_starts(
    tmp_path, monkeypatch
):
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


def test_the_command_line_prints_the_address_and_warns(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(server, "read_page", lambda: parse_page(PAGE))
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
    assert sanitize_file_name(name) == plain


def test_answers_are_json_whatever_the_numbers():
    from marey.viewer.server.protocol import encode_frame

    frame = encode_frame({"value": np.nan, "deep": [np.float64("inf"), np.int64(3)]})
    assert json.loads(frame[8:]) == {"value": None, "deep": [None, 3]}
