"""A library: whose each recording is, what is done again, and what a kill leaves."""

import hashlib
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import marey
from marey import synth
from marey.cli import main
from marey.cli.commands.batch import _rate
from marey.io.atomic import is_abandoned
from marey.library import run
from marey.library.clusters import DaskExecutor, check_versions
from marey.library.index import take_row, write_index
from marey.library.jobs import fit_subject
from marey.library.jobs.describe import is_labelled, measure_spread
from marey.library.jobs.fit import solve_common
from marey.library.jobs.labels import label_take
from marey.library.jobs.take import solve_take, solve_with_skeletons
from marey.library.lock import SubjectLock
from marey.library.page import page_row
from marey.library.recordings import LibraryTake, find_recordings, group_by_subject
from marey.library.records import (
    file_name,
    library_versions,
    lock_path,
    plan_record,
    read_record,
    short_path,
)
from marey.library.subject_work import (
    OF_POSES,
    BatchPlan,
    SubjectWork,
    choose_fit_takes,
)
from marey.workers import Job, Outcome, WorkerPool

FORMATS = ("bvh", "amc")

TIMES = ("timings.jsonl", "timings.parquet")
"""Files that differ from run to run."""


def subjects(names, **options):
    return {take.name: take.subject for take in group_by_subject(names, **options)}


def content(folder):
    """Bytes of every file of a batch by relative path, but times and locks."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in TIMES and ".locks" not in path.parts
    }


@pytest.fixture(scope="module", autouse=True)
def shared_worker():
    """One process for all batches with one worker: it starts longer than it works."""
    start = run._executor

    @contextmanager
    def executor(options, n_takes):
        if options.workers == 1 and not (options.dask or options.slurm):
            yield pool
        else:
            with start(options, n_takes) as other:
                yield other

    with pytest.MonkeyPatch.context() as patch, WorkerPool(1) as pool:
        patch.setattr(run, "_executor", executor)
        yield


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Three takes of two bodies by each of two people, a broken file and a text."""
    root = tmp_path_factory.mktemp("library")
    for seed, name in enumerate("AB", start=1):
        (root / name).mkdir()
        for number in (1, 2, 3):
            take = pair_of(figure=seed, seed=10 * seed + number)
            marey.write(take, root / name / f"take{number}.c3d")
    (root / "A" / "broken.c3d").write_bytes(b"\x02\x50" + b"junk" * 300)
    (root / "A" / "notes.txt").write_text("no recording")
    return root


@pytest.fixture(scope="module")
def solved(library, tmp_path_factory):
    """The folder of an undisturbed batch; tests copy it before they change it."""
    out = tmp_path_factory.mktemp("solved") / "out"
    marey.batch(library, out, formats=("bvh", "amc"), workers=1)
    return out


@pytest.fixture
def out(solved, tmp_path):
    return shutil.copytree(solved, tmp_path / "out")


def again(library, out, **options):
    return marey.batch(library, out, **{"formats": FORMATS, "workers": 1, **options})


def pair_of(figure=1, **options):
    pair = synth.hinge_pair(seed=figure)
    return pair.record(markers=4, seconds=1.0, rate=50.0, noise=0.0005, **options)


# --- whose ----------------------------------------------------------------------------


def test_takes_of_a_folder_are_of_one_subject():
    names = ["S01/a.c3d", "S01/b.c3d", "S02/day1/a.c3d", "02_01.c3d", "02_02.c3d"]
    found = list(subjects(names).values())
    assert found == ["S01", "S01", "S02/day1", "02", "02"]


def test_a_pattern_or_a_table_says_whose_a_take_is(tmp_path):
    names = ["x/anna_walk.c3d", "x/ben_run.c3d"]
    by_pattern = subjects(names, pattern=r"/([a-z]+)_")
    (tmp_path / "who.csv").write_text("take,subject\nx/anna*,anna\nben_run.c3d,ben\n")
    (tmp_path / "who.toml").write_text('[subjects]\nanna = ["*anna*"]\nben = ["*ben*"]')
    assert by_pattern == dict(zip(names, ("anna", "ben"), strict=True))
    for table in ("who.csv", "who.toml"):
        assert subjects(names, table=tmp_path / table) == by_pattern


def test_a_file_may_say_whose_it_is(library, tmp_path):
    take = marey.read(library / "A" / "take1.c3d")
    named = replace(take, subjects=("anna",) * len(take.labels))
    marey.write(named, tmp_path / "x1.c3d")
    marey.write(take, tmp_path / "x2.c3d")
    found = subjects(["x1.c3d", "x2.c3d"], pattern="file", library=tmp_path)
    assert found == {"x1.c3d": "anna", "x2.c3d": "x"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("excel.csv", b"Take;Subject\r\nx/anna*;anna\r\n;\r\nben_run.c3d;ben\r\n;\r\n"),
        ("sheet.csv", "take\tsubject\nx/anna*\tanna\nben*\tben".encode("utf-16")),
        ("one.toml", b"[subjects]\nanna = 'x/anna*'\nben = ['ben*']"),
    ],
)
def test_tables_of_spreadsheets_and_single_takes_are_read(tmp_path, name, content):
    names = ["x/anna_walk.c3d", "x/ben_run.c3d"]
    (tmp_path / name).write_bytes(content)
    found = subjects(names, table=tmp_path / name)
    assert found == dict(zip(names, ("anna", "ben"), strict=True))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("who.csv", "file,name\na.c3d,anna", "columns file, name"),
        ("who.csv", "take,subject\n,\na.c3d,", "empty cell in line 3"),
        ("who.toml", "[people]\nanna = ['*']", "no .subjects."),
        ("who.toml", "[subjects.anna]\ntakes = ['*']", "anna is no list of takes"),
        ("none.csv", None, "No such file"),
    ],
)
def test_a_table_of_another_kind_is_refused(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(marey.OptionError, match=message):
        subjects(["a.c3d"], table=tmp_path / name)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"pattern": "("}, "regular expression"),
        ({"pattern": "anna"}, "a group"),
        ({"pattern": "(S[0-9]+)"}, "no subject for 1 recordings: x/anna.c3d"),
    ],
)
def test_a_rule_that_names_nobody_is_refused(rule, message):
    with pytest.raises(marey.OptionError, match=message.replace("(", r"\(")):
        subjects(["x/anna.c3d"], **rule)


def test_circles_hidden_files_and_solutions_are_no_recordings(library, tmp_path):
    root = shutil.copytree(library, tmp_path / "library")
    (root / "B" / "take1.bvh").write_text("the motion of take1, by another program")
    (root / "B" / "circle").symlink_to(root, target_is_directory=True)
    (root / ".hidden").mkdir()
    shutil.copy(root / "B" / "take1.c3d", root / ".hidden" / "take1.c3d")
    (root / "out").mkdir()
    shutil.copy(root / "B" / "take1.c3d", root / "out" / "take1.c3d")
    found = find_recordings(root, without=root / "out")
    assert found == [
        "A/broken.c3d",
        *(f"{s}/take{n}.c3d" for s in "AB" for n in (1, 2, 3)),
    ]
    assert find_recordings(root, patterns=["B/*"], without=root / "out") == found[4:]
    assert find_recordings(root, patterns=["*.bvh"]) == ["B/take1.bvh"]
    with pytest.raises(marey.DataError, match=r"no recording like \*\.trc"):
        find_recordings(root, patterns=["*.trc"])


def test_a_plan_leaves_out_results_in_the_library(library, solved, tmp_path):
    root = shutil.copytree(library, tmp_path / "library")
    before = [take.name for take in marey.plan_batch(root)]
    shutil.copytree(solved, root / "solved")  # of another batch, with BVH files
    (root / "B" / "out").mkdir()
    shutil.copy(root / "B" / "take1.c3d", root / "B" / "out")
    assert [take.name for take in marey.plan_batch(root, root / "B" / "out")] == before
    parts = [marey.plan_batch(root, root / "B" / "out", shard=(i, 2)) for i in (1, 2)]
    assert sorted(take.name for part in parts for take in part) == before


def test_what_cannot_be_read_is_failed_with_its_reason(library, tmp_path, monkeypatch):
    root = tmp_path / "library"
    shutil.copytree(library / "B", root / "B")
    (root / "B" / "gone.c3d").symlink_to("nowhere.c3d")
    (root / "B" / "round.c3d").symlink_to("round.c3d")
    (root / "closed").mkdir()
    if os.name == "posix":
        os.mkfifo(root / "B" / "pipe.c3d")  # no file; reading it would never end
    scan = os.scandir

    def refuse(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    summary = again(root, tmp_path / "out", formats=("bvh",))
    assert set(summary.failed) == {"B/gone.c3d", "B/round.c3d", "closed/"}
    assert "No such file" in summary.failed["B/gone.c3d"]
    assert "expected a readable file" in summary.failed["closed/"]
    assert summary.done == 3
    monkeypatch.setattr(os, "scandir", scan)
    (root / "B" / "round.c3d").unlink()
    assert set(again(root, tmp_path / "out", formats=("bvh",)).failed) == {"B/gone.c3d"}
    index = pq.read_table(tmp_path / "out/index.parquet").to_pylist()
    assert len(index) == 4


def test_ten_thousand_files_are_grouped_in_seconds(tmp_path):
    """Each is looked at once, by its name alone."""
    for person in range(100):
        (tmp_path / f"P{person:02d}").mkdir()
        for take in range(100):
            (tmp_path / f"P{person:02d}" / f"take_{take:02d}.c3d").touch()
    (tmp_path / "P00" / "circle").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "P01" / "empty").mkdir()
    start = time.process_time()
    takes = marey.plan_batch(tmp_path)
    assert time.process_time() - start < 20.0
    assert len(takes) == 10_000
    assert len({take.subject for take in takes}) == 100
    with pytest.raises(marey.DataError, match="no recording"):
        marey.plan_batch(tmp_path / "P01" / "empty")


def test_files_of_one_frame_each_are_one_recording(tmp_path):
    """As OpenPose writes them; other numbered files are takes of their own."""
    points = pair_of().points[:12]
    keypoints = np.concatenate([points, np.ones((*points.shape[:2], 1))], axis=-1)
    for name in ("a/x", "a/y", "b/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        for number, values in enumerate(keypoints):
            person = {"pose_keypoints_3d": values.ravel().tolist()}
            path = tmp_path / f"{name}_{number:03d}_keypoints.json"
            path.write_text(json.dumps({"people": [person]}))
    (tmp_path / "b" / "settings_1.json").write_text("{}")
    names = [f"{name}_000_keypoints.json" for name in ("a/x", "a/y", "b/x")]
    assert find_recordings(tmp_path) == names
    summary = again(tmp_path, tmp_path / "out", formats=("bvh",), subject_from="(./.)")
    assert summary.failed == {}
    record = read_record(tmp_path / f"out/takes/{names[0]}.record.json")
    assert len(record.inputs) == 12
    (tmp_path / "a" / "x_007_keypoints.json").write_text('{"people": []}')
    (tmp_path / "a" / "y_012_keypoints.json").write_text('{"people": []}')
    summary = again(tmp_path, tmp_path / "out", formats=("bvh",), subject_from="(./.)")
    assert (summary.done, summary.kept) == (2, 1)


def test_archives_of_numpy_are_recordings_by_what_they_hold(tmp_path):
    """Others are what programs computed from recordings."""
    take = pair_of()
    np.savez(tmp_path / "a.npz", labels=take.labels, points=take.points, rate=50.0)
    np.savez(tmp_path / "b.npz", joints=take.points, rate=50.0)
    marey.write(take, tmp_path / "c.npz")
    (tmp_path / "d.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:500])
    assert find_recordings(tmp_path) == ["a.npz", "c.npz", "d.npz"]


def test_the_skeleton_file_of_a_motion_is_an_input(solved, tmp_path):
    root = tmp_path / "library"
    root.mkdir()
    for suffix in ("amc", "asf"):
        shutil.copy(solved / "takes/B" / f"take1.{suffix}", root)
    assert again(root, tmp_path / "out", formats=("gltf",)).done == 1
    record = read_record(tmp_path / "out/takes/take1.amc.record.json")
    assert sorted(record.inputs) == ["take1.amc", "take1.asf"]
    scene = json.loads((tmp_path / "out/takes/take1.gltf").read_text())
    assert scene["asset"]["extras"]["provenance"] == record.provenance()
    assert again(root, tmp_path / "out", formats=("gltf",)).kept == 1
    with (root / "take1.asf").open("a") as file:
        file.write("# changed")
    assert again(root, tmp_path / "out", formats=("bvh",)).done == 1
    (root / "take1.asf").unlink()
    failed = again(root, tmp_path / "out", formats=("bvh",)).failed
    assert "ASF" in failed["take1.amc"]


# --- what is done ---------------------------------------------------------------------


def test_every_take_ends_with_a_record_and_one_skeleton_per_subject(library, solved):
    index = pq.read_table(solved / "index.parquet").to_pylist()
    states = {row["take"]: row["state"] for row in index}
    assert states.pop("A/broken.c3d") == "failed"
    assert len(states) == 6
    assert set(states.values()) == {"done"}
    lengths = {}
    for row in pq.read_table(solved / "bones.parquet").to_pylist():
        lengths.setdefault((row["subject"], row["bone"]), set()).add(row["length_mm"])
    assert lengths
    assert all(len(values) == 1 for values in lengths.values())
    reason = next(row["error"] for row in index if row["error"])
    assert reason.startswith("A/broken.c3d (c3d), byte")
    page = (solved / "index.html").read_text()
    assert page.index("A/broken.c3d") < page.index("A/take1.c3d")
    assert "6 takes" not in page
    assert "7 takes of 2 subjects, 1 failed" in page
    motion = marey.read_motion(solved / "takes" / "B" / "take2.bvh")
    assert motion.n_frames == 50


def test_a_record_says_from_what_its_outputs_were_made(library, solved):
    record = json.loads((solved / "takes/B/take1.c3d.record.json").read_text())
    assert record["inputs"] == {
        "B/take1.c3d": marey.read(library / "B/take1.c3d").source.sha256
    }
    skeleton = (solved / "subjects/B.skel.json").read_bytes()
    made_from = json.loads(skeleton)["provenance"]["inputs"]
    assert sorted(made_from) == [f"B/take{number}.c3d" for number in (1, 2, 3)]
    digest = hashlib.sha256(skeleton).hexdigest()
    assert record["skeletons"] == {"subjects/B.skel.json": digest}
    assert set(record["options"]) == set(marey.SolveOptions.__dataclass_fields__)
    assert record["options"]["limits"] == "safe"
    assert set(record["versions"]) == {"marey", "numpy", "scipy", "numba", "python"}
    outputs = [f"takes/B/take1.{suffix}" for suffix in ("amc", "asf", "bvh")]
    assert sorted(record["outputs"]) == outputs


def test_a_second_run_keeps_all_and_changes_no_byte(library, out):
    before = content(out)
    summary = again(library, out)
    assert (summary.done, summary.kept, list(summary.failed)) == (
        0,
        6,
        ["A/broken.c3d"],
    )
    assert content(out) == before


def test_pages_and_solutions_are_the_same_in_every_run(library, tmp_path):
    """They would show the seconds of each stage."""
    options = {"formats": ("html", "marey"), "patterns": ("B/take1.c3d",)}
    for out in ("first", "second"):
        assert again(library, tmp_path / out, **options).done == 1
    assert content(tmp_path / "first") == content(tmp_path / "second")


def test_the_number_of_workers_does_not_change_a_byte(library, solved, tmp_path):
    again(library, tmp_path / "two", workers=2)
    assert content(tmp_path / "two") == content(solved)


def test_a_cluster_of_two_workers_gives_the_same_bytes(
    library, solved, tmp_path, monkeypatch
):
    done_by = {}
    wait = DaskExecutor.wait

    def count(executor):
        outcome = wait(executor)
        done_by.update(
            executor._client.run(lambda dask_worker: dask_worker.state.executed_count)
        )
        return outcome

    monkeypatch.setattr(DaskExecutor, "wait", count)
    again(library, tmp_path / "cluster", dask="local", workers=2)
    assert content(tmp_path / "cluster") == content(solved)
    assert len(done_by) == 2
    assert min(done_by.values()) > 0
    assert all(address.startswith("tcp://127.0.0.1:") for address in done_by)


def test_two_runs_at_once_share_the_work(library, solved, tmp_path):
    """Each take is solved by one of them, and both end when all are over."""
    out, summaries = tmp_path / "out", []

    def run_beside(workers):
        summaries.append(again(library, out, workers=workers))

    beside = threading.Thread(target=run_beside, args=(2,))
    beside.start()
    run_beside(1)
    beside.join()
    assert content(out) == content(solved)
    assert sum(summary.done for summary in summaries) == 6
    assert [summary.total for summary in summaries] == [7, 7]
    rows = map(json.loads, (out / "timings.jsonl").read_text().splitlines())
    solves = [row["name"] for row in rows if row["step"] == "solve_take"]
    assert len(solves) == len(set(solves)) == 6


POISON = {
    "A/take1.c3d": ("late", "hang"),
    "A/take3.c3d": ("lost", "crash_with_anything"),
    "B/take2.c3d": ("large", "take_all_memory"),
}
"""States of takes, and what their workers do in place of a solve."""


@contextmanager
def pool_with_poison(monkeypatch):
    """Let batches have two workers, which some takes harm; the pool is in the list."""
    here, submit, pools = str(Path(__file__).parent), WorkerPool.submit, []

    def submit_with_poison(pool, job):
        step, _, name = job.key.partition(" ")
        if step == "solve_take" and name in POISON:
            job = replace(job, function=f"work_samples:{POISON[name][1]}")
        submit(pool, job)

    @contextmanager
    def start_pool(*_):
        with WorkerPool(2, memory=2**33, attempts=1) as pool:
            pools.append(pool)
            yield pool

    with monkeypatch.context() as patch:
        patch.setenv("PYTHONPATH", here, prepend=os.pathsep)
        patch.setattr(run, "_executor", start_pool)
        patch.setattr(WorkerPool, "submit", submit_with_poison)
        yield pools


def test_poison_costs_its_take_alone(library, solved, tmp_path, monkeypatch):
    """Takes that hang, end their worker or want all memory, each with its state."""
    out, ended = tmp_path / "out", {}

    def stop_the_last(progress):
        ended[progress.record.name] = progress.record.state
        if len(ended) == 6:  # the only one at work hangs
            pools[0].seconds = 0.0

    with pool_with_poison(monkeypatch) as pools:
        summary = again(library, out, progress=stop_the_last)
    assert {n: ended[n] for n in POISON} == {
        n: state for n, (state, _) in POISON.items()
    }
    assert set(summary.failed) == {*POISON, "A/broken.c3d"}
    assert marey.verify_batch(out).is_whole
    truth = content(solved)
    whole = {n: v for n, v in content(out).items() if n.endswith((".bvh", ".amc"))}
    assert len(whole) == 6
    assert whole.items() <= truth.items()
    assert again(library, out).done == len(POISON)
    assert content(out) == truth


def test_a_subject_is_worked_on_by_one_run_at_a_time(tmp_path):
    first, second = (SubjectLock(tmp_path / "A.lock") for _ in range(2))
    assert first.acquire()
    assert not second.acquire()
    first.release()
    assert second.acquire()
    second.release()


def test_a_part_without_subjects_changes_nothing(library, out):
    before = content(out)
    assert again(library, out, shard=(3, 3)).total == 0
    assert content(out) == before


def test_the_library_is_no_folder_of_results(library, tmp_path):
    with pytest.raises(marey.OptionError, match="another folder"):
        again(library, library)
    (tmp_path / "file").touch()
    with pytest.raises(marey.OutputError, match="cannot be written"):
        again(library, tmp_path / "file" / "out")


@pytest.mark.parametrize("out", ["", "solved"])
def test_results_never_replace_recordings_or_other_files(library, tmp_path, out):
    """Results lie in `takes`, as these recordings do, one of which is a motion."""
    recordings = tmp_path / "takes" / "day1"
    shutil.copytree(library / "B", recordings)
    (recordings / "take1.bvh").write_text("measured by another program")
    (tmp_path / "solved").mkdir()
    (tmp_path / "solved" / "index.html").write_text("mine")
    before = content(tmp_path)
    for folder in (recordings, recordings.parent) if not out else (recordings,):
        with pytest.raises(marey.OptionError, match="out: "):
            again(folder, tmp_path / out)
    assert content(tmp_path) == before


def test_a_folder_of_recordings_in_the_library_is_none_of_results(library, tmp_path):
    """Its recordings would be left out, and have results beside them."""
    root = shutil.copytree(library, tmp_path / "library")
    before = content(root)
    with pytest.raises(marey.OptionError, match=r"take1.c3d.* of no batch"):
        again(root, root / "A")
    assert content(root) == before


def test_the_records_of_another_batch_below_are_left_alone(library, solved, out):
    """Results may lie around the recordings, and those around other results."""
    other = shutil.copytree(solved, out / "recordings" / "solved")
    shutil.copytree(library / "B", out / "recordings" / "B")
    before = content(other)
    again(out / "recordings", out)
    assert content(other) == before
    takes = pq.read_table(out / "index.parquet").column("take").to_pylist()
    assert takes == [f"B/take{number}.c3d" for number in (1, 2, 3)]


def test_a_scheduler_that_is_not_there_is_an_error(library, tmp_path, monkeypatch):
    monkeypatch.setattr("marey.library.clusters.CONNECT_S", 1.0)
    with pytest.raises(marey.OptionError, match="a running Dask scheduler"):
        again(library, tmp_path / "out", dask="tcp://127.0.0.1:1")


@pytest.mark.skipif(os.name == "nt", reason="no scripts of a shell")
@pytest.mark.parametrize(
    ("slurm", "message"),
    [
        (None, "slurm: found 'sbatch: No such file or directory'"),
        ("echo invalid partition >&2; exit 1", "sbatch: found 'invalid partition'"),
    ],
)
def test_jobs_that_slurm_does_not_take_are_an_error(
    library, tmp_path, monkeypatch, slurm, message
):
    """Dask would submit them again and again, and wait for ever."""
    if slurm:
        sbatch = tmp_path / "sbatch"
        sbatch.write_text(f"#!/bin/sh\n{slurm}\n")
        sbatch.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}")
    with pytest.raises(marey.OptionError, match=message):
        again(library, tmp_path / "out", slurm=True, workers=2)


def test_a_cluster_with_other_versions_is_refused():
    """Its results would not be those that the records state."""

    def cluster(**changed):
        versions = library_versions() | changed
        return SimpleNamespace(run=lambda _: {"tcp://a:1": versions})

    def without_marey(_):
        raise ModuleNotFoundError("No module named 'marey'")

    check_versions(cluster())
    with pytest.raises(marey.OptionError, match=r"numpy 1\.0 on tcp://a:1"):
        check_versions(cluster(numpy="1.0"))
    with pytest.raises(marey.OptionError, match="No module named 'marey'"):
        check_versions(SimpleNamespace(run=without_marey))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (OSError("the connection was closed"), "running"),
        (Exception("the client is closed"), "closed"),
    ],
)
def test_a_scheduler_that_dies_between_two_jobs_is_an_error(monkeypatch, error, status):
    monkeypatch.setattr("distributed.as_completed", list)

    def refuse(*_, **__):
        raise error

    client = SimpleNamespace(nthreads=refuse, submit=refuse, status=status)
    executor = DaskExecutor(client, 0, 1.0)
    with pytest.raises(marey.MareyError, match="scheduler is gone"):
        _ = executor.has_room
    with pytest.raises(marey.MareyError, match="scheduler is gone"):
        executor.submit(Job("a", "b:c", {}))


def test_only_what_depends_on_a_change_is_done_again(library, out, tmp_path):
    before = content(out)
    root = shutil.copytree(library, tmp_path / "library")
    os.utime(root / "B" / "take1.c3d")  # touched only
    (out / "takes/B/take2.asf").unlink()
    assert again(root, out).done == 1
    assert content(out) == before
    assert again(root, out, formats=("bvh",)).done == 6
    assert again(root, out, formats=("bvh",), resume=False).done == 6
    assert again(root, out, formats=("bvh",)).kept == 6
    assert content(out)["subjects/A.skel.json"] == before["subjects/A.skel.json"]
    shutil.copy(root / "B" / "take1.c3d", root / "B" / "take2.c3d")
    assert again(root, out, formats=("bvh",)).done == 3  # those of B
    (root / "A" / "broken.c3d").unlink()
    assert again(root, out, formats=("bvh",)).failed == {}
    takes = pq.read_table(out / "index.parquet").column("take").to_pylist()
    assert len(takes) == 6  # that of the broken one is gone


POSE_OPTIONS: dict[str, Any] = {
    "contacts": True,
    "hold": "auto",
    "ground": 0.0,
    "friction": 1.0,
    "outlier": 3.0,
    "max_gap": 0.5,
}


def test_options_of_poses_leave_the_skeleton_as_it_is(library, solved, out):
    """`marey.solve` gives the same one whatever they are."""
    take = marey.read(library / "B" / "take1.c3d")
    usual = marey.solve(take)
    for name, value in POSE_OPTIONS.items():
        other = marey.solve(take, **{name: value}).skeleton
        np.testing.assert_array_equal(other.offset, usual.skeleton.offset, name)
        np.testing.assert_array_equal(other.limits, usual.skeleton.limits, name)
    assert set(POSE_OPTIONS) | {"reference"} == OF_POSES
    before = content(out)
    time_of_fit = (out / "subjects/B.record.json").stat().st_mtime_ns
    assert again(library, out, outlier=3.0).done == 6
    assert (out / "subjects/B.record.json").stat().st_mtime_ns == time_of_fit
    assert content(out)["takes/B/take1.bvh"] != before["takes/B/take1.bvh"]


def test_takes_without_a_skeleton_are_solved_again_for_another_subject(tmp_path):
    """The name of the subject is in their outputs."""
    root, out = tmp_path / "library", tmp_path / "out"
    root.mkdir()
    marey.write(pair_of(), root / "a.c3d")
    plan = BatchPlan(root, out, ("bvh",), {}, "", 6, resume=True, retry=False)
    keys = set()
    for subject in ("anna", "ben"):
        work = SubjectWork(
            plan, subject, [LibraryTake("a.c3d", subject)], {"a.c3d": []}
        )
        work.described["a.c3d"] = {"inputs": {"a.c3d": "0"}}
        (job,) = work._solve_jobs()
        keys.add(job.arguments["planned"].key)
    assert len(keys) == 2


def test_a_folder_that_was_away_for_a_while_is_kept(library, out, tmp_path):
    """As one on a disk of the network that did not answer."""
    before = content(out)
    root = shutil.copytree(library, tmp_path / "library")
    (root / "B").rename(tmp_path / "B")
    again(root, out)
    assert content(out)["index.parquet"] != before["index.parquet"]
    (tmp_path / "B").rename(root / "B")
    assert again(root, out).done == 0
    assert content(out) == before


def test_verify_finds_what_is_missing_or_changed(out, capsys):
    assert marey.verify_batch(out).is_whole
    (out / "takes/A/take1.bvh").unlink()
    with (out / "takes/B/take3.amc").open("a") as file:
        file.write(" ")
    found = marey.verify_batch(out)
    assert found.missing == ["takes/A/take1.bvh"]
    assert found.changed == ["takes/B/take3.amc"]
    assert list(found.failed) == ["A/broken.c3d"]
    with pytest.raises(SystemExit) as end:
        main(["verify", str(out)])
    assert end.value.code == 1
    assert "missing: takes/A/take1.bvh" in capsys.readouterr().out


def test_what_verify_finds_changed_is_made_again(library, out):
    """Also where a disk or a person changed a byte, and the size stayed."""
    before = content(out)
    for name in ("takes/A/take1.bvh", "subjects/B.skel.json"):
        (out / name).write_bytes(before[name].replace(b"0", b"1", 1))
    assert not marey.verify_batch(out).is_whole
    assert again(library, out).kept == 5
    assert content(out) == before
    assert marey.verify_batch(out).is_whole


def test_verify_finds_broken_records_other_files_and_an_old_index(out):
    (out / "takes/A/take1.c3d.record.json").write_text("{")
    (out / "takes/mine.bvh").write_text("")
    found = marey.verify_batch(out)
    assert not found.is_whole
    assert "takes/A/take1.c3d.record.json" in found.changed
    assert {"index.html", "index.parquet"} <= set(found.changed)
    outputs = [f"takes/A/take1.{suffix}" for suffix in ("amc", "asf", "bvh")]
    assert found.unrecorded == [*outputs, "takes/mine.bvh"]


def test_a_disk_that_fails_at_any_step_is_no_fault_of_the_take(
    library, solved, tmp_path, monkeypatch
):
    """Such a take is tried again by the next run, so its state is not "failed"."""
    record = read_record(solved / "takes/B/take1.c3d.record.json")
    skeleton = "subjects/B.skel.json"
    out = tmp_path / "out"
    (out / "subjects").mkdir(parents=True)
    shutil.copy(solved / skeleton, out / skeleton)
    targets = ("takes/B/take1.bvh",)
    arguments = (str(library), str(out), record, {}, (skeleton,), targets, {})

    def refuse(*_, **__):
        raise OSError(28, "No space left on device")

    for step in ("replace", "mkdir"):
        with monkeypatch.context() as patch:
            patch.setattr(os, step, refuse)
            with pytest.raises(marey.OutputError, match=r"take1.bvh: not written, No"):
                solve_take(*arguments)
    assert solve_take(*arguments).state == "done"


def test_a_full_disk_and_kills_leave_what_a_later_run_completes(
    library, solved, tmp_path, slow
):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "marey", "batch", str(library), "-o", str(out)]
    command += ["--formats", "bvh,amc", "--quiet", "--workers", "1"]
    if os.name == "posix":
        full = ["sh", "-c", f"ulimit -f 4; exec {shlex.join(command)}"]
        # Python itself would leave half a file of bytecode behind.
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        ended = subprocess.run(
            full, check=False, capture_output=True, timeout=300, env=environment
        )
        assert ended.returncode == 2
        assert f"{out}{os.sep}subjects" in ended.stderr.decode().replace("\n", "")
        assert "not written" in ended.stderr.decode()
    for count in (0, 1, 3) if slow else (2,):
        process = subprocess.Popen([*command[:-1], "2"], start_new_session=True)
        while len(list(out.glob("takes/*/take*.record.json"))) < count:
            assert process.poll() is None
            time.sleep(0.05)
        workers = psutil.Process(process.pid).children()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        # They end by themselves when they miss the run.
        deadline = time.monotonic() + 60.0
        while any(map(is_at_work, workers)):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert subprocess.run(command, check=False, timeout=300).returncode == 3
    assert content(out) == content(solved)


def is_at_work(process):
    """Whether a process lives; nobody may have asked yet how a dead one ended."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.skipif(os.name == "nt", reason="no signal of Ctrl-C")
def test_ctrl_c_ends_a_run_with_its_workers(library, tmp_path):
    """At any time; it does not end by itself, because another has one of its locks."""
    out = tmp_path / "out"
    other = SubjectLock(lock_path(out, "B"))
    assert other.acquire()
    command = [sys.executable, "-m", "marey", "batch", str(library), "-o", str(out)]
    run = subprocess.Popen([*command, "--workers", "2"], start_new_session=True)
    while not any(out.glob("takes/*/*.record.json")):  # that of the broken file
        assert run.poll() is None
        time.sleep(0.05)
    workers = psutil.Process(run.pid).children()
    assert workers
    run.send_signal(signal.SIGINT)
    assert run.wait(60.0) == 130
    other.release()
    assert not any(map(is_at_work, workers))
    assert all(map(is_abandoned, out.rglob(".*.part")))


def test_a_skeleton_of_fewer_takes_after_killed_workers_is_made_again(
    library, solved, out
):
    """The fit of all takes killed its workers; that of one take is no last word."""
    chosen = read_record(out / "subjects/A.record.json")
    assert chosen is not None
    first = dict([*chosen.inputs.items()][:1])
    planned = plan_record("subject", "A", "A", first, chosen.options)
    folders = str(library), str(out)
    job = fit_subject(*folders, planned, {}, [*first], ("killed",), is_final=False)
    assert job.outputs != chosen.outputs
    again(library, out)
    assert content(out) == content(solved)


def test_a_fit_that_needs_too_much_memory_is_repeated_with_half_of_its_takes(tmp_path):
    """So memory is bounded, whatever --fit-takes; those that show most stay."""
    names = [f"take{number}.c3d" for number in range(9)]
    plan = BatchPlan(tmp_path, tmp_path, ("bvh",), {}, "", 8, resume=True, retry=False)
    takes = [LibraryTake(name, "S") for name in names]
    work = SubjectWork(plan, "S", takes, {name: [] for name in names})
    jobs = work.begin()
    for number, job in enumerate(jobs):
        shown = {"positions": 1, "labelled": True, "spread": {"M": 9.0 - number}}
        value = {"inputs": {names[number]: "0"}, **shown}
        _, fits = work.advance(Outcome(job, "done", value))
    tried = []
    for state in ("large", "late", "failed"):
        (fit,) = fits
        tried.append(fit.arguments["names"])
        _, fits = work.advance(Outcome(fit, state, marey.MareyError(state)))
    assert tried == [tuple(names[:8]), tuple(names[:4]), tuple(names[:2])]
    (fit,) = fits
    assert fit.arguments["names"] == (names[0],)
    assert not fit.arguments["is_final"]


def test_odd_names_results_in_the_library_and_files_that_change(tmp_path):
    """A file that changes between plan and work is failed; the next run does it."""
    library = tmp_path / "a library"
    names = ("ünï 'x' \"y\".c3d", "line\nfeed.c3d", "z" * 240 + ".c3d", "-rf.c3d")
    library.mkdir()
    for number, name in enumerate(names):
        marey.write(pair_of(seed=number), tmp_path / "take.c3d", overwrite=True)
        shutil.move(tmp_path / "take.c3d", library / name)
    out = library / "solved"
    last = max(names)
    ended = []

    def change(progress):
        ended.append(progress.record)
        if len(ended) == 1:
            marey.write(pair_of(seed=9), tmp_path / "other.c3d")
            shutil.move(tmp_path / "other.c3d", library / last)

    options = {"subjects": tmp_path / "who.csv", "workers": 1, "formats": ("bvh",)}
    (tmp_path / "who.csv").write_text("take,subject\n*,S\n")
    summary = marey.batch(library, out, progress=change, **options)
    assert [*summary.failed] == [last]
    assert "changed since" in summary.failed[last]
    summary = marey.batch(library, out, **options)
    assert summary.failed == {}
    assert summary.total == len(names)
    assert marey.verify_batch(out).is_whole


# --- whose skeleton -------------------------------------------------------------------


def rods_of(noise=0.0005, **options):
    return synth.linkage().record(
        markers=4, seconds=1.0, rate=50.0, noise=noise, **options
    )


def test_the_fit_takes_show_together_what_moves():
    def described(**spread):
        return {"positions": 100, "labelled": True, "spread": spread}

    takes = {
        "walk1": described(knee=90.0, elbow=5.0),
        "walk2": described(knee=88.0, elbow=6.0),
        "wave": described(knee=0.0, elbow=40.0),
        "unknown": described(M1=500.0) | {"labelled": False},
    }
    assert choose_fit_takes(takes, 2) == ["walk1", "wave"]
    assert choose_fit_takes(takes, 9) == ["walk1", "wave", "walk2"]
    assert choose_fit_takes({"unknown": takes["unknown"]}, 2) == ["unknown"]


def test_a_still_figure_has_no_spread_wherever_it_goes():
    take = rods_of(noise=0.0)
    still = replace(take, points=take.points[:1] + np.arange(50.0)[:, None, None])
    assert set(measure_spread(still).values()) == {0.0}
    assert min(measure_spread(take).values()) > 10.0


def test_numbers_are_no_labels():
    take = rods_of()
    n = len(take.labels)
    assert not is_labelled(replace(take, labels=tuple(f"M{i:03d}" for i in range(n))))
    assert is_labelled(replace(take, labels=tuple("abcdefghijklmnopqrstuvwxyz"[:n])))


def test_the_skeleton_labels_a_take_that_has_no_labels():
    take = synth.human(seed=1).record("walk", seconds=1.0, rate=60.0, markers="set53")
    solution = marey.solve(take)
    order = np.random.default_rng(0).permutation(len(take.labels))
    shuffled = take.select(order)
    labels = tuple(f"M{i:03d}" for i in range(len(order)))
    bare = replace(shuffled, labels=labels)
    found = label_take(bare, solution.skeleton, solution.motion)
    assert found.labels == shuffled.labels
    # A point of something else, 9 cm from where a marker was that is not seen.
    points = bare.points.copy()
    points[:, 0, 2] += 0.09
    moved = replace(bare, points=points)
    found = label_take(moved, solution.skeleton, solution.motion)
    assert found.labels == (labels[0], *shuffled.labels[1:])


def test_a_take_of_another_subject_is_reported_and_solved_by_itself():
    first, other = rods_of(), rods_of()
    other = replace(other, points=1.2 * other.points)
    skeleton = marey.solve(first).skeleton
    solved = solve_with_skeletons(other, "A", {}, [skeleton])
    assert "other-subject" in {f.code for f in solved.report.findings}
    longer = solved.skeleton.lengths[1:] / skeleton.lengths[1:]
    np.testing.assert_allclose(longer, 1.2, atol=0.02)
    same = solve_with_skeletons(first, "A", {}, [skeleton])
    np.testing.assert_array_equal(same.skeleton.lengths, skeleton.lengths)


def test_brackets_and_stars_in_names_are_no_patterns(tmp_path):
    """They are in names of folders, whose takes have the name as their subject."""
    take, subject = rods_of(), "odd [b] *?"
    fit = solve_common([take], subject, {})
    solved = solve_with_skeletons(take, subject, {}, [fit.skeleton])
    np.testing.assert_array_equal(solved.skeleton.lengths, fit.skeleton.lengths)
    (tmp_path / "who.csv").write_text(f"take,subject\n{subject}/a.c3d,anna\n")
    found = subjects([f"{subject}/a.c3d"], table=tmp_path / "who.csv")
    assert [*found.values()] == ["anna"]


def test_a_take_that_contradicts_the_others_has_no_part_in_the_fit(tmp_path):
    root, out = tmp_path / "library", tmp_path / "out"
    (root / "S").mkdir(parents=True)
    long = synth.linkage().record(markers=4, seconds=4.0, rate=50.0, noise=0.0005)
    names = ("take0", "take1", "take2", "other")
    for name, points in zip(names, np.split(long.points, 4), strict=True):
        size = 1.2 if name == "other" else 1.0
        take = marey.Take(rate=50.0, points=size * points, labels=long.labels)
        marey.write(take, root / "S" / f"{name}.c3d")
    summary = again(root, out, formats=("bvh",))
    fit = read_record(out / "subjects/S.record.json").facts["fit"]
    assert fit["others"] == ["S/other.c3d"]
    assert fit["takes"] == [f"S/take{number}.c3d" for number in range(3)]
    assert summary.codes["other-subject"] == 1
    assert summary.done == 4


def test_a_take_that_fits_badly_is_solved_by_itself_though_its_bones_hardly_move():
    """Bones are compared at joints that move; those of a larger figure do not here."""
    take = rods_of(noise=0.0)
    skeleton = marey.solve(take).skeleton
    noise = np.random.default_rng(1).normal(scale=5e-4, size=take.points.shape)
    larger = take.points[:1] + 0.1 * (take.points - take.points[:1])
    larger = replace(take, points=1.3 * larger + noise)
    solved = solve_with_skeletons(larger, "A", {}, [skeleton])
    codes = {f.code for f in solved.report.findings}
    assert "other-subject" in codes


def test_a_take_of_another_figure_is_solved_by_itself():
    """Its bones are not on the skeleton at all, which must not fail the take."""
    rods, pair = rods_of(), pair_of()
    pair = replace(pair, labels=tuple("abcdefghijklmnop"[: len(pair.labels)]))
    for take, skeleton_of in ((pair, rods), (rods, pair)):
        solved = solve_with_skeletons(
            take, "A", {}, [marey.solve(skeleton_of).skeleton]
        )
        codes = {f.code for f in solved.report.findings}
        assert "other-subject" in codes
        assert "labelled" not in codes


def test_each_of_several_figures_has_one_skeleton_in_all_takes(tmp_path):
    root = tmp_path / "library"
    root.mkdir()
    for number in (1, 2):
        figures = [rods_of(seed=seed) for seed in (number, number + 5)]
        shift = np.array([[[0.0, 0.0, 0.0]], [[3.0, 0.0, 0.0]]])
        points = [f.points + s for f, s in zip(figures, shift, strict=True)]
        names = [n for n, f in zip("PQ", figures, strict=True) for _ in f.labels]
        both = marey.Take(
            rate=50.0,
            points=np.concatenate(points, axis=1),
            labels=(*figures[0].labels, *figures[1].labels),
            subjects=tuple(names),
        )
        marey.write(both, root / f"duo_{number}.c3d")
    again(root, tmp_path / "out", formats=("bvh",))
    assert len(list((tmp_path / "out/subjects").glob("duo.*.skel.json"))) == 2
    lengths = {}
    for row in pq.read_table(tmp_path / "out/bones.parquet").to_pylist():
        lengths.setdefault((row["subject"], row["bone"]), []).append(row["length_mm"])
    assert {name for name, _ in lengths} == {"P", "Q"}
    assert all(len(of_takes) == 2 for of_takes in lengths.values())
    assert all(len(set(of_takes)) == 1 for of_takes in lengths.values())


def test_a_given_skeleton_keeps_its_bones(library, solved, tmp_path):
    shutil.copy(solved / "subjects/B.skel.json", tmp_path)
    out = tmp_path / "out"
    given = str(tmp_path / "{subject}.skel.json")
    options = {"formats": ("bvh",), "patterns": ("B/*",)}
    assert again(library, out, skeleton=given, **options).done == 3
    before = marey.read_skeleton(tmp_path / "B.skel.json")
    after = marey.read_skeleton(out / "subjects/B.skel.json")
    np.testing.assert_array_equal(after.lengths, before.lengths)


def test_any_name_makes_a_file_name():
    long = "x" * 300
    assert len(short_path(f"a/{long}").rpartition("/")[2]) <= 200
    assert short_path(long + "1") != short_path(long + "2")
    assert file_name("a/b\udcff:c") == "a%2Fb%FF%3Ac"


# --- the command line -----------------------------------------------------------------


def test_a_plan_shows_the_subjects_and_solves_nothing(library, tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        main(["batch", str(library), "-o", str(tmp_path / "out"), "--plan"])
    assert end.value.code == 0
    shown = capsys.readouterr().out
    assert "7 takes of 2 subjects" in shown
    assert not (tmp_path / "out").exists()
    (tmp_path / "who.csv").write_text("take,subject\n*,anna\nC/*,ben\n")
    with pytest.raises(SystemExit):
        main(["batch", str(library), "--plan", "--subjects", str(tmp_path / "who.csv")])
    shown = capsys.readouterr().out
    assert "7 takes of 1 subject\n" in shown
    assert shown.endswith("no such recording: C/*\n")


def test_lines_of_json_have_every_take_and_code_3_says_that_some_failed(
    library, out, capsys
):
    options = ["--formats", "bvh,amc", "--workers", "1", "--json"]
    with pytest.raises(SystemExit) as end:
        main(["batch", str(library), "-o", str(out), *options])
    assert end.value.code == 3
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["done"] for row in rows] == [*range(1, 8)]
    assert {row["total"] for row in rows} == {7}
    (failed,) = [row for row in rows if row["state"] != "done"]
    assert (failed["take"], failed["state"]) == ("A/broken.c3d", "failed")
    assert "(c3d), byte" in failed["error"]
    assert all(
        row["kept"] and row["residual_mm"] < 2.0 for row in rows if row != failed
    )


def test_a_bar_counts_takes_failures_and_findings(library, out, monkeypatch):
    text = io.StringIO()
    terminal = Console(file=text, force_terminal=True, width=160, highlight=False)
    monkeypatch.setattr("marey.cli.commands.batch.err", terminal)
    command = ["batch", str(library), "-o", str(out)]
    with pytest.raises(SystemExit) as end:
        main([*command, "--formats", "bvh,amc", "--workers", "1"])
    assert end.value.code == 3
    shown = text.getvalue()
    assert "7/7" in shown
    assert re.search(r"1 failed, 0 with errors, \d+ findings", shown)
    assert re.search(r"failed:\S* A/broken\.c3d \(c3d\), byte", shown)  # named once


def test_the_time_left_follows_from_the_takes_that_were_solved_in_this_run():
    """Thousands that were kept take no time, and do not make the rest look short."""
    assert _rate(0, 10, 5.0) == ""
    assert _rate(2, 10, 30.0) == "4.0 takes/min, 0:02:30 left"
    assert _rate(500, 2000, 1000.0) == "30 takes/min, 1:06:40 left"


@pytest.mark.parametrize(
    "wrong",
    [
        ["--formats", "docx", "-o", "x"],
        ["--shard", "3/2", "-o", "x"],
        ["--shard", "one", "-o", "x"],
        ["--memory", "1", "-o", "x"],
        ["--edits", "x.toml", "-o", "x"],
        [],
    ],
)
def test_a_wrong_option_is_one_clear_error(
    library, tmp_path, capsys, wrong, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(["batch", str(library), *wrong])
    assert end.value.code == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error:")
    assert "Traceback" not in shown


def test_links_to_the_outputs_of_several_subjects_have_their_names(solved):
    record = read_record(solved / "takes/B/take1.c3d.record.json")
    names = (
        "walk_1_Ann_walk-1.bvh",
        "walk_1_Ben_walk-1.bvh",
        "walk_1.glb",
        "walk_1 #.html",
    )
    record = replace(record, outputs={f"takes/B/{name}": {} for name in names})
    line = page_row(record, take_row(record))
    outputs = line.partition("<span>")[2]
    links = re.findall("<a [^>]*>([^<]*)</a>", outputs)
    assert links == ["html", "glb", "Ann bvh", "Ben bvh"]
    assert (
        '<b><a href="takes/B/walk_1%20%23.html">B/<wbr>take1.<wbr>c3d</a></b>' in line
    )


def test_names_and_findings_of_takes_are_data_on_the_page(solved, tmp_path):
    out = shutil.copytree(solved, tmp_path / "out")
    path = out / "takes/B/take1.c3d.record.json"
    record = json.loads(path.read_text())
    record["name"] = "<script>alert(1)</script>\udcff"
    error = ["error", "attach", "other-subject", "A", "bones <differ>"]
    record["facts"]["findings"] = [error, ["info", "clean", "unit", "", "no matter"]]
    path.write_text(json.dumps(record))
    write_index(out)
    page = (out / "index.html").read_text()
    assert "1 error<span>other-subject</span>" in page
    assert "bones &lt;differ&gt;" in page
    assert "no matter" not in page
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
