"""A library: whose each recording is, what is done again, and what a kill leaves."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pyarrow.parquet as pq
import pytest

import marey
from marey import synth
from marey.cli import main
from marey.library.index import write_index
from marey.library.recordings import find_recordings, group_by_subject

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


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Three takes of a linkage by each of two people, a broken file and a text."""
    root = tmp_path_factory.mktemp("library")
    for seed, name in enumerate("AB", start=1):
        rods = synth.linkage()
        (root / name).mkdir()
        for number in (1, 2, 3):
            take = rods.record(
                markers=4, seconds=1.0, rate=50.0, seed=10 * seed + number
            )
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


def test_circles_hidden_files_and_results_are_no_recordings(library, tmp_path):
    root = shutil.copytree(library, tmp_path / "library")
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
    with pytest.raises(marey.DataError, match=r"no recording like \*\.trc"):
        find_recordings(root, patterns=["*.trc"])


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


def test_the_number_of_workers_does_not_change_a_byte(library, solved, tmp_path):
    again(library, tmp_path / "two", workers=2)
    assert content(tmp_path / "two") == content(solved)


def test_a_cluster_gives_the_same_bytes(library, solved, tmp_path):
    again(library, tmp_path / "cluster", dask="local", workers=1)
    assert content(tmp_path / "cluster") == content(solved)


def test_a_scheduler_that_is_not_there_is_an_error(library, tmp_path, monkeypatch):
    monkeypatch.setattr("marey.library.dask_executor.CONNECT_S", 1.0)
    with pytest.raises(marey.OptionError, match="a running Dask scheduler"):
        again(library, tmp_path / "out", dask="tcp://127.0.0.1:1")


def test_only_what_depends_on_a_change_is_done_again(library, out, tmp_path):
    before = content(out)
    root = shutil.copytree(library, tmp_path / "library")
    os.utime(root / "B" / "take1.c3d")  # touched only
    (out / "takes/B/take2.asf").unlink()
    assert again(root, out).done == 1
    assert content(out) == before
    assert again(root, out, formats=("bvh",)).done == 6
    assert content(out)["subjects/A.skel.json"] == before["subjects/A.skel.json"]
    shutil.copy(root / "B" / "take1.c3d", root / "B" / "take2.c3d")
    assert again(root, out, formats=("bvh",)).done == 3  # those of B


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


def test_a_killed_run_is_resumed_to_the_same_bytes(library, solved, tmp_path, slow):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "marey", "batch", str(library), "-o", str(out)]
    command += ["--formats", "bvh,amc", "--workers", "2", "--quiet"]
    for seconds in (1.0, 4.0, 8.0) if slow else (6.0,):
        process = subprocess.Popen(command, start_new_session=True)
        time.sleep(seconds)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert subprocess.run(command, check=False, timeout=300).returncode == 3
    assert content(out) == content(solved)


# --- the command line -----------------------------------------------------------------


def test_a_plan_shows_the_subjects_and_solves_nothing(library, tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        main(["batch", str(library), "-o", str(tmp_path / "out"), "--plan"])
    assert end.value.code == 0
    shown = capsys.readouterr().out
    assert "7 takes of 2 subjects" in shown
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "wrong",
    [
        ["--formats", "docx", "-o", "x"],
        ["--shard", "3/2", "-o", "x"],
        ["--shard", "one", "-o", "x"],
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


def test_names_of_takes_are_data_on_the_page(solved, tmp_path):
    out = shutil.copytree(solved, tmp_path / "out")
    path = out / "takes/B/take1.c3d.record.json"
    record = json.loads(path.read_text())
    record["name"] = "<script>alert(1)</script>"
    path.write_text(json.dumps(record))
    write_index(out)
    page = (out / "index.html").read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
