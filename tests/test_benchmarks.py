"""The suite of benchmarks: tasks, results, limits, peers, the page and the guard."""

import ast
import fnmatch
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.accuracy.joints import cramer_rao_bound, make_pair
from benchmarks.generator import damage, score
from benchmarks.generator.motion import exercise, walk
from benchmarks.generator.person import make_person
from benchmarks.harness import page, smoke
from benchmarks.harness.limits import Limits, run_limited
from benchmarks.harness.plots import series_of
from benchmarks.harness.results import (
    Result,
    headlines_of,
    read_history,
    read_results,
    run_task,
    write_history,
    write_results,
)
from benchmarks.harness.tables import markdown_table, plain_table
from benchmarks.harness.task import (
    FOLDERS,
    ROOT,
    Row,
    Setting,
    Spread,
    Task,
    find_tasks,
    read_task,
    with_means,
)
from benchmarks.harness.timing import peak_memory, time_call, time_many_frames
from benchmarks.peers import runner
from benchmarks.peers.environment import SCRIPTS, PeerMissing, find_python, read_needs
from benchmarks.scale.slopes import slope

QUICK = Setting(quick=True)
ROWS = (
    Row("first", {"time [s]": Spread(2.0, 1.5, 2.5), "count": 3.0}),
    Row("second", {"count": float("nan")}),
    Row("third", skipped="it is not installed"),
)


# --- tasks ----------------------------------------------------------------------------


def test_every_task_says_what_it_measures():
    tasks = find_tasks()
    assert {name.partition(".")[0] for name in tasks} == set(FOLDERS)
    assert all(task.title.strip() for task in tasks.values())


@pytest.mark.parametrize("name", find_tasks())
def test_every_task_can_be_loaded(name):
    assert callable(find_tasks()[name].load())


def test_a_module_without_measure_is_no_task(tmp_path):
    path = tmp_path / "helper.py"
    path.write_text('"""Helps."""\n\n\ndef help() -> None: ...\n')
    assert read_task(path, "speed.helper") is None
    path.write_text('"""Title.\n\nText.\n"""\nLIMIT_S = 5.0\n\n\ndef measure(s): ...\n')
    assert read_task(path, "speed.helper") == Task("speed.helper", "Title.", "Text.", 5)


def test_the_pages_name_tasks_that_exist():
    pages = [*ROOT.parent.glob("docs/*.md"), ROOT.parent / "CONTRIBUTING.md"]
    tasks = find_tasks()
    for one in pages:
        for word in one.read_text(encoding="utf-8").split("python -m benchmarks ")[1:]:
            name = word.split()[0].strip("`'.,;:)")
            found = fnmatch.filter(tasks, name)
            assert name.startswith("-") or found, (one.name, name)


# --- results --------------------------------------------------------------------------


def test_results_survive_json(tmp_path):
    path = tmp_path / "results.json"
    result = Result(ROWS, "", "quick", "1.0", "2026-01-01", {"cores": 2}, (1.0, 2.0))
    write_results({"speed.a": result}, path)
    assert "NaN" not in path.read_text()
    found = read_results(path)["speed.a"]
    assert found.rows[0] == ROWS[0]
    assert np.isnan(found.rows[1].figures["count"])
    assert found.rows[2] == ROWS[2]
    assert (found.setting, found.machine, tuple(found.load)) == (
        "quick",
        {"cores": 2},
        (1.0, 2.0),
    )


def test_results_of_other_tasks_stay(tmp_path):
    path = tmp_path / "results.json"
    write_results({"speed.a": Result(ROWS[:1]), "speed.b": Result(ROWS[:1])}, path)
    write_results({"speed.a": Result(ROWS[1:])}, path)
    assert [len(one.rows) for one in read_results(path).values()] == [2, 1]


def test_history_keeps_the_headlines_of_full_runs_of_every_version(tmp_path):
    path = tmp_path / "history.json"
    tasks = {"speed.a": Task("speed.a", "A", headline="time [s]")}
    for version, setting in (("1", "full"), ("2", "full"), ("3", "quick")):
        result = Result(ROWS, setting=setting, version=version)
        write_history(tasks, {"speed.a": result}, path)
    assert read_history(path) == {
        "1": {"speed.a": {"first": 2.0}},
        "2": {"speed.a": {"first": 2.0}},
    }


def test_history_forgets_cases_that_a_task_no_longer_has(tmp_path):
    path, tasks = (
        tmp_path / "history.json",
        {"speed.a": Task("speed.a", "A", "", 1, "n")},
    )
    for case in ("old", "new"):
        write_history(tasks, {"speed.a": Result((Row(case, {"n": 1.0}),))}, path)
    assert read_history(path) == {"": {"speed.a": {"new": 1.0}}}


def test_history_keeps_key_cases_alone():
    task = Task("speed.a", "A", headline="n", key_cases=("all", "*, mean"))
    rows = [Row(case, {"n": 1.0}) for case in ("all", "all, person 0", "x, mean")]
    assert dict(headlines_of(task, Result(rows))) == {"all": 1.0, "x, mean": 1.0}


def test_every_task_has_headlines_on_record():
    tasks, newest = find_tasks(), [*read_history().values()][-1]
    full = [name for name, one in read_results().items() if one.setting == "full"]
    assert all(newest[name] for name in full if tasks[name].headline)


def test_people_of_a_setting_are_followed_by_their_mean():
    rows = [Row("walk, person 0", {"n": 1.0}), Row("walk, person 1", {"n": 3.0})]
    rows += [Row("run, person 0", {"n": 5.0}), Row("run, person 1", skipped="lame")]
    cases = [row.case for row in with_means(rows)]
    assert cases == [
        *(r.case for r in rows[:2]),
        "walk, mean",
        *(r.case for r in rows[2:]),
    ]
    assert [*with_means(rows)][2].figures == {"n": 2.0}


def test_a_skipped_case_is_loud_in_every_table():
    for table in (plain_table(Result(ROWS)), markdown_table(Result(ROWS))):
        assert "SKIPPED: it is not installed" in table
        assert "2.00 (1.50–2.50)" in table
    assert "STOPPED: too slow" in plain_table(Result(ROWS, "too slow"))


def test_the_page_is_that_of_the_results_on_record():
    found = page.render_page(find_tasks(), read_results(), read_history())
    assert page.PAGE.read_text(encoding="utf-8") == found


def test_a_page_says_setting_load_and_what_was_stopped():
    result = Result(ROWS, "stopped after 5 s", "quick", "1.0", "2026-01-01", {}, (3, 4))
    text = page.render_task(Task("speed.a", "A title."), result)
    for words in ("### A title\n", "quick", "load 3 to 4", "stopped after 5 s"):
        assert words in text


def test_rows_of_several_generators_are_drawn_as_series():
    rows = [Row(f"synth, after {t} s", {"time": t}) for t in (1.0, 2.0)]
    assert series_of(rows, "time") == {"": rows}
    others = [Row("independent, after 1 s", {"time": 1.0})]
    assert series_of([*rows, *others], "time") == {
        "synth: ": rows,
        "independent: ": others,
    }


# --- limits ---------------------------------------------------------------------------


def python(code):
    return [sys.executable, "-c", code]


def ends(pid, seconds=10.0):
    """Whether a process is gone or a zombie within that time, which it may need."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().split()[2]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_a_command_that_hangs_is_ended_with_its_children_and_keeps_its_output(tmp_path):
    child = tmp_path / "child"
    code = (
        "import subprocess, sys, time; print('a row', flush=True); "
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
        f"open({str(child)!r}, 'w').write(str(p.pid)); time.sleep(600)"
    )
    begin = time.monotonic()
    outcome = run_limited(python(code), Limits(seconds=2.0))
    assert time.monotonic() - begin < 60.0
    assert outcome == ("a row\n", "stopped after 2 s")
    assert ends(int(child.read_text()))


def test_what_a_command_has_started_ends_when_it_is_asked_to_end(tmp_path):
    child = tmp_path / "child"
    inner = f"import os, time; open({str(child)!r}, 'w').write(str(os.getpid())); "
    inner += "time.sleep(600)"
    code = (
        "from benchmarks.harness.limits import Limits, exit_when_asked, run_limited; "
        "import sys; exit_when_asked(); "
        f"run_limited([sys.executable, '-c', {inner!r}], Limits(600.0))"
    )
    path = {**os.environ, "PYTHONPATH": str(ROOT.parent)}
    with subprocess.Popen(python(code), env=path) as process:
        while not (child.exists() and child.read_text()):
            assert process.poll() is None
            time.sleep(0.02)
        process.terminate()
    assert ends(int(child.read_text()))


def test_a_request_to_end_waits_until_a_command_is_started(monkeypatch, tmp_path):
    """A command ends even if the request comes before `Popen` has returned."""
    child, start = tmp_path / "child", subprocess.Popen

    def asked_meanwhile(*arguments, **options):
        process = start(*arguments, **options)
        child.write_text(str(process.pid))
        signal.raise_signal(signal.SIGTERM)
        return process

    def leave(*_):
        raise SystemExit

    monkeypatch.setattr(subprocess, "Popen", asked_meanwhile)
    before = signal.signal(signal.SIGTERM, leave)
    try:
        with pytest.raises(SystemExit):
            run_limited(python("import time; time.sleep(600)"), Limits(600.0))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ends(int(child.read_text()))


def test_a_command_that_fails_says_why():
    outcome = run_limited(python("raise ValueError('no markers')"), Limits(60.0))
    assert outcome.reason == "exit 1: ValueError: no markers"


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
def test_a_command_that_takes_too_much_memory_fails():
    code = "import time; time.sleep(0.5); x = bytearray(2**30)"
    outcome = run_limited(python(code), Limits(60.0, mebibytes=512))
    assert "MemoryError" in outcome.reason


def test_a_task_that_fails_is_a_result_with_a_reason():
    result = run_task(Task("speed.missing", "No such task"), QUICK)
    assert not result.rows
    assert "KeyError" in result.stopped


# --- peers ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script", sorted(SCRIPTS.glob("run_*.py")), ids=lambda p: p.stem
)
def test_a_peer_imports_nothing_of_marey_and_says_what_it_needs(script):
    packages, (oldest, newest) = read_needs(script)
    assert oldest < newest
    assert all("==" in one for one in packages[:1])
    tree = ast.parse(script.read_text(encoding="utf-8"))
    roots = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        for name in imported_names(node)
    }
    assert roots.isdisjoint({"marey", "benchmarks"})


def imported_names(node):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) else []


def peer_script(folder, body, needs='">=3.10,<3.99"'):
    script = folder / "run_someone.py"
    head = f"# /// script\n# requires-python = {needs}\n# dependencies = []\n# ///\n"
    script.write_text(head + body)
    return script


def run_someone(script, folder, limits):
    return list(
        runner.run_peer(script, "ik", folder, lambda a: Row(a["case"]), QUICK, limits)
    )


def test_a_peer_that_hangs_is_skipped_loudly_after_its_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "peer_python", lambda script: sys.executable)
    line = json.dumps({"case": "fast"})
    body = f"import time\nprint('''{line}''', flush=True)\ntime.sleep(600)\n"
    rows = run_someone(peer_script(tmp_path, body), tmp_path, Limits(seconds=3.0))
    assert [row.case for row in rows] == ["fast", "someone, ik"]
    assert rows[1].skipped == "stopped after 3 s"


def test_a_peer_without_its_python_is_skipped_loudly(tmp_path):
    script = peer_script(tmp_path, "", needs='">=3.97,<3.98"')
    (row,) = run_someone(script, tmp_path, Limits(60.0))
    assert row == Row(
        "someone", skipped="no Python from 3.97 to below 3.98 on this machine"
    )


def test_a_peer_that_does_not_install_is_skipped_loudly(tmp_path, monkeypatch):
    def missing(script):
        raise PeerMissing("someone==1 does not install: exit 1: no such version")

    monkeypatch.setattr(runner, "peer_python", missing)
    (row,) = run_someone(peer_script(tmp_path, ""), tmp_path, Limits(60.0))
    assert row.skipped.startswith("someone==1 does not install")


def test_an_interpreter_is_that_of_the_version_asked_for():
    minor = sys.version_info[1]
    assert find_python(minor, minor + 1) == sys.executable


# --- time and memory ------------------------------------------------------------------


def test_the_time_of_a_frame_is_without_what_happens_once():
    def run(count):
        end = time.process_time() + 0.02 + 1e-4 * count
        while time.process_time() < end:
            pass

    each = time_many_frames(run, 10, 210, QUICK)
    assert each.median == pytest.approx(1e-4, rel=0.5)


def test_a_call_is_timed_after_a_first_one():
    calls = []

    def call():
        calls.append(1)
        time.sleep(0.01)

    timing = time_call(call, QUICK)
    assert timing.cpu.low <= timing.cpu.median <= timing.cpu.high
    assert timing.wall.median >= 0.01
    assert len(calls) > 2


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is that of Linux")
def test_the_peak_of_memory_is_that_of_the_call():
    large, _ = peak_memory(lambda: np.ones(2**24).sum())
    small, _ = peak_memory(lambda: np.ones(2**20).sum())
    assert large == pytest.approx(128.0, rel=0.2)
    assert small < 0.5 * large


def test_the_slope_of_a_power_law_is_its_exponent():
    sizes = (1, 10, 100)
    assert slope(sizes, [3.0 * size**1.5 for size in sizes]) == pytest.approx(1.5)


# --- the guard ------------------------------------------------------------------------


@pytest.mark.parametrize(("ratio", "code"), [(0.9, 0), (1.99, 0), (2.01, 1)])
def test_the_guard_fails_beyond_twice_the_record(monkeypatch, tmp_path, ratio, code):
    path = tmp_path / "smoke.json"
    path.write_text(json.dumps({"something": 1.0}))
    nothing = (lambda: None, lambda: None)
    monkeypatch.setattr(smoke, "ratios_of", lambda: iter([("something", nothing)]))
    monkeypatch.setattr(smoke, "measure_ratio", lambda *_: ratio)
    assert smoke.guard(path=path) == code


def test_the_guard_looks_twice(monkeypatch, tmp_path):
    path = tmp_path / "smoke.json"
    path.write_text(json.dumps({"something": 1.0}))
    ratios = iter([5.0, 1.1])
    nothing = (lambda: None, lambda: None)
    monkeypatch.setattr(smoke, "ratios_of", lambda: iter([("something", nothing)]))
    monkeypatch.setattr(smoke, "measure_ratio", lambda *_: next(ratios))
    assert smoke.guard(path=path) == 0


# --- the independent generator --------------------------------------------------------


def test_the_generator_imports_nothing_of_marey():
    for path in (ROOT / "generator").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = [name for node in ast.walk(tree) for name in imported_names(node)]
        assert not [name for name in names if name.partition(".")[0] == "marey"]


@pytest.mark.parametrize("motion", [walk, exercise])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_markers_of_a_segment_and_joints_of_a_bone_are_rigid(motion, seed):
    done = motion(make_person(seed), 3.0, seed=seed)
    person = done.person
    for segment in range(len(person.names)):
        own = done.points[:, person.marker_segment == segment]
        apart = np.linalg.norm(own[:, 0] - own[:, 1:].swapaxes(0, 1), axis=-1)
        assert np.ptp(apart, axis=-1).max() < 1e-12
    for i, parent in enumerate(person.parent):
        if parent >= 0:
            length = np.linalg.norm(done.joint[:, i] - done.joint[:, parent], axis=-1)
            assert length == pytest.approx(np.linalg.norm(person.joint[i]), abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_feet_stand_still_while_they_are_planted(seed):
    done = walk(make_person(seed), 5.0, seed=seed)
    for side, begin, end in done.plants:
        foot = done.person.names.index(f"foot_{side}")
        frames = slice(round(begin * done.rate) + 1, round(end * done.rate))
        assert np.ptp(done.joint[frames, foot], axis=0).max() < 1e-9


def test_gaps_cover_the_share_that_is_asked_for():
    points = np.zeros((4000, 20, 3))
    hidden = np.isnan(damage.hide(points, 0.2)[..., 0])
    assert hidden.mean() == pytest.approx(0.2, abs=0.03)


def test_a_swap_is_between_markers_of_one_segment():
    person = make_person(0)
    points = exercise(person, 3.0).points
    moved = np.any(damage.swap(points, person, 1) != points, axis=(0, 2))
    (segment,) = set(person.marker_segment[moved].tolist())
    assert moved.sum() == 2
    assert segment >= 0


def test_the_error_of_a_hinge_is_that_from_its_axis():
    true = np.zeros((4, 1, 3))
    found = true + np.array([0.0, 0.3, 0.01])
    axis = np.broadcast_to([0.0, 1.0, 0.0], true.shape)
    assert score.joint_errors(found, true, axis) == pytest.approx([0.01])
    assert score.joint_errors(found, true) == pytest.approx([np.hypot(0.3, 0.01)])


def test_equal_partitions_agree_whatever_their_numbers():
    groups = np.array([0, 0, 1, 1, 2, 2])
    assert score.rand_index(groups, np.array([2, 2, 0, 0, 1, 1])) == pytest.approx(1.0)
    assert score.rand_index(groups, np.array([0, 1, 0, 1, 0, 1])) < 0.0


def test_the_bound_is_proportional_to_noise_and_falls_with_the_root_of_frames():
    pair = make_pair(60, 0.4)
    twice = type(pair)(
        pair.parent,
        pair.child,
        pair.center,
        *(np.concatenate([x, x]) for x in (pair.R_parent, pair.R_child, pair.shift)),
    )
    bound = cramer_rao_bound(pair, 1e-3)
    assert cramer_rao_bound(pair, 3e-3) == pytest.approx(3.0 * bound)
    assert cramer_rao_bound(twice, 1e-3) == pytest.approx(bound / np.sqrt(2.0))
