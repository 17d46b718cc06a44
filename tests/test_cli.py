"""The command line: output, exit codes and files of each command."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import samples
import scenes
import staged
from c3d_oracles import c3d_bytes

import marey
from marey import joints, pose, synth
from marey.cli import main
from marey.cli.application import out, rich_table
from marey.io.solution_files import write_solution
from marey.report import Table


def run(capsys, *arguments):
    """Run the command line in this process; return its exit code and output."""
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    return stop.value.code, capsys.readouterr()


@pytest.fixture
def walk(tmp_path):
    marey.write(samples.take(60), tmp_path / "walk.c3d")
    return tmp_path / "walk.c3d"


def test_info_says_what_a_file_is(walk, capsys):
    code, printed = run(capsys, "info", walk)
    assert code == 0
    for words in ("walk.c3d", "60 at 120 Hz", "Ann:LFHD", "mm", "stated", "█"):
        assert words in printed.out


def test_info_of_angles_alone_has_no_extent(tmp_path, capsys):
    angles = np.zeros((20, 1, 3), dtype=int)
    point = {"LABELS": ["LKneeAngles"], "ANGLES": ["LKneeAngles"]}
    content = c3d_bytes(angles, np.zeros((20, 1), dtype=int), point=point)
    (tmp_path / "angles.c3d").write_bytes(content)
    code, printed = run(capsys, "info", tmp_path / "angles.c3d")
    assert code == 0
    assert "none, and no sensors" in printed.out
    assert "extent" not in printed.out


def test_info_as_json_is_the_same_for_machines(walk, capsys):
    code, printed = run(capsys, "info", walk, "--json")
    (about,) = json.loads(printed.out)
    take = marey.read(walk)
    assert code == 0
    assert (about["frames"], about["rate"]) == (60, 120.0)
    assert about["seen"] < 1.0
    assert about["sha256"] == take.source.sha256
    assert set(about["gaps"]) == {"Ann:LFHD", "Bob:C7", "thigh"}


def test_one_bad_file_among_good_ones_is_code_three(walk, tmp_path, capsys):
    bad = tmp_path / "bad.c3d"
    bad.write_bytes(b"not a recording")
    code, printed = run(capsys, "info", walk, bad)
    assert code == 3
    assert "60 at 120 Hz" in printed.out
    assert "bad.c3d" in printed.err
    assert run(capsys, "info", bad)[0] == 2


def test_view_shows_a_stream_as_live_does(capsys, monkeypatch):
    asked = {}

    def show(source, **options):
        asked.update(options, source=source)
        return 0

    monkeypatch.setattr("marey.cli.commands.view.show_stream", show)
    assert run(capsys, "view", "lsl://ann", "--live", "--no-browser")[0] == 0
    assert (asked["source"], asked["to"]) == ("lsl://ann", ("page",))
    assert asked["browser"] is False


def test_convert_writes_and_says_what_is_lost(walk, tmp_path, capsys):
    target = tmp_path / "walk.trc"
    code, printed = run(
        capsys, "convert", walk, target, "--frames", "10:20", "--drop", "R*"
    )
    assert code == 0
    assert "orientations" in printed.err
    take = marey.read(target)
    assert (take.n_frames, take.labels) == (
        10,
        ("LFHD", "C7", "T10", "pelvis", "thigh"),
    )


def test_convert_refuses_what_would_lose_data(walk, tmp_path, capsys):
    before = walk.read_bytes()
    assert run(capsys, "convert", walk, walk, "--overwrite")[0] == 2
    other = tmp_path / "taken.trc"
    other.write_text("mine")
    code, printed = run(capsys, "convert", walk, other)
    assert code == 2
    assert "exists" in printed.err
    assert (walk.read_bytes(), other.read_text()) == (before, "mine")


def test_convert_keeps_a_motion_a_motion(tmp_path, capsys):
    marey.write(samples.motion(20), tmp_path / "a.bvh")
    code, _ = run(
        capsys, "convert", tmp_path / "a.bvh", tmp_path / "b.npz", "--frames", ":5"
    )
    assert code == 0
    assert marey.read_motion(tmp_path / "b.npz").n_frames == 5


@pytest.mark.parametrize(
    "arguments",
    [
        ["info"],
        ["info", "gone.c3d"],
        ["convert", "gone.c3d"],
        ["convert", "gone.c3d", "x.trc"],
        ["convert", "gone.c3d", "x.nosuch"],
        ["frobnicate"],
    ],
)
def test_wrong_usage_is_code_two_and_a_message(
    arguments, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    code, printed = run(capsys, *arguments)
    assert code == 2
    assert printed.err or printed.out


def test_bad_frames_and_renames_are_explained(walk, tmp_path, capsys):
    target = tmp_path / "o.trc"
    for flag, value in [("--frames", "1-2"), ("--frames", "50:90"), ("--rename", "a")]:
        code, printed = run(capsys, "convert", walk, target, flag, value)
        assert code == 2
        assert "need" in printed.err
        assert not target.exists()


def test_doctor_knows_versions_and_extras(capsys):
    code, printed = run(capsys, "doctor", "--json")
    found = json.loads(printed.out)
    assert code == 0
    assert found["marey"] == marey.__version__
    assert found["packages"]["numpy"]
    assert "plots" in found["extras"]
    assert run(capsys, "doctor")[0] == 0


@pytest.mark.parametrize(("forbidden", "found"), [(False, True), (True, False)])
def test_doctor_says_that_bytecode_is_not_kept(
    monkeypatch, capsys, tmp_path, forbidden, found
):
    from marey.cli.commands import doctor

    place = str(tmp_path / "absent.pyc")
    monkeypatch.setattr(doctor, "cache_from_source", lambda path: place)
    monkeypatch.setattr(sys, "dont_write_bytecode", forbidden)
    assert json.loads(run(capsys, "doctor", "--json")[1].out)["bytecode"] is found
    assert ("bytecode" in run(capsys, "doctor")[1].out) is not found


def test_demo_writes_what_it_says(tmp_path, capsys):
    code, printed = run(capsys, "demo", tmp_path / "out", "--seconds", "2")
    assert code == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {
        "walk.c3d",
        "walk.trc",
        "performer.skel.json",
        "markers_solved.bvh",
        "performer.html",
    } <= names
    header = scenes.header(scenes.mailed_blob(tmp_path / "out" / "performer.html"))
    assert len(header["truth"]["takes"][0]["motions"]) == 1
    last = printed.out.strip().rpartition("\n")[2]
    assert last == str((tmp_path / "out" / "performer.html").resolve())
    assert "µm" in printed.out
    assert "14 edges right, 0 wrong, 0 missing" in printed.out


def test_the_report_leaves_out_what_says_nothing(tmp_path, capsys):
    """Exact sensors have no residuals, their last bones no length."""
    take = marey.synth.linkage().record(
        seconds=2.0, rate=30.0, markers="none", sensors=True
    )
    marey.write(take, tmp_path / "exact.npz")
    _, printed = run(capsys, "solve", tmp_path / "exact.npz")
    lines = printed.out.splitlines()
    residuals = next(k for k, line in enumerate(lines) if line.startswith("residuals"))
    assert lines[residuals + 1] == "none above 0.1 mm"
    ends = [line.split() for line in lines if "_end" in line]
    assert all(float(cells[2]) > 0.1 for cells in ends)
    times = next(line for line in lines if " seconds" in line)
    assert float(times.split()[0]) > 0.0
    assert " 0.0" not in times


def test_a_wide_table_breaks_headers_before_names_and_numbers():
    legs = ["HindLeftUpperLeg", "FrontLeftUpperLeg"]
    columns = ("joint", "parent", "kind", "centre ± mm", "angle ± deg", "angle seen %")
    rows = [(leg, "FrontRightLowerLeg", "ball", 0.0213, 12.5, 100.0) for leg in legs]
    with out.capture() as printed:
        out.print(rich_table(Table(columns, tuple(rows))))
    *header, hind, front = printed.get().splitlines()
    assert hind.split() == ["HindLeftUpperLeg", *front.split()[1:]]
    assert front.split()[1:] == ["FrontRightLowerLeg", "ball", "0.0213", "12.5", "100"]
    assert len(header) == 3
    assert sorted(" ".join(header).split()) == sorted(" ".join(columns).split())


def test_sentences_in_a_table_begin_at_the_left():
    table = Table(("joint", "what to do"), (("Hips", "bend it"), ("Neck", "nod")))
    with out.capture() as printed:
        out.print(rich_table(table))
    _, hips, neck = printed.get().splitlines()
    assert hips.index("bend") == neck.index("nod") == 7


def test_control_characters_in_names_do_not_reach_the_terminal(tmp_path, capsys):
    take = marey.Take(
        rate=10.0, points=samples.take(5).points[:, :1], labels=("\x1b[31mred",)
    )
    marey.write(take, tmp_path / "o.npz")
    _, printed = run(capsys, "info", tmp_path / "o.npz")
    assert "\x1b[31mred" not in printed.out
    assert "red" in printed.out


HELP = """
import sys
from marey.cli import main
try:
    main(["--help"])
except SystemExit:
    print([m for m in ("numba", "scipy", "matplotlib") if m in sys.modules])
"""


@pytest.mark.parametrize("package", [joints, pose])
def test_the_help_of_solve_names_every_method(package, capsys):
    with pytest.raises(SystemExit):
        main(["solve", "--help"])
    shown = capsys.readouterr().out
    assert [name for name in package.REGISTRY if name not in shown] == []


def test_help_comes_without_heavy_imports():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", HELP],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "convert" in done.stdout
    assert done.stdout.rstrip().endswith("[]")


def test_a_message_is_one_line_where_it_is_piped(tmp_path):
    missing = tmp_path / ("a" * 90 + ".c3d")
    start = "from marey.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", start, "info", str(missing)],
        capture_output=True,
        text=True,
        check=False,
    )
    (line,) = done.stderr.splitlines()
    assert missing.name in line


LEAVE = """
import atexit, gc
atexit.register(lambda: print(gc.get_freeze_count() > 10 * len(gc.get_objects())))
from marey.cli import main
main(["--help"])
"""


def test_a_command_ends_without_a_search_of_its_memory():
    done = subprocess.run(
        [sys.executable, "-c", LEAVE], capture_output=True, text=True, check=True
    )
    assert done.stdout.rstrip().endswith("True")


def test_a_closed_pipe_is_no_error(walk):
    start = "from marey.cli import main; main()"
    done = subprocess.run(
        f'"{sys.executable}" -c "{start}" info "{walk}" | head -n 1',
        shell=True,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "Traceback" not in done.stderr


def test_one_solve_writes_several_files(tmp_path, capsys):
    take = synth.linkage().record(markers=4, seconds=1.0, rate=50.0)
    marey.write(take, tmp_path / "rods.npz")
    names = ("rods.bvh", "rods.glb", "rods.html")
    outputs = [text for name in names for text in ("-o", str(tmp_path / name))]
    code, shown = run(capsys, "solve", tmp_path / "rods.npz", *outputs, "--quiet")
    assert (code, shown.out, shown.err) == (0, "", "")
    assert all((tmp_path / name).stat().st_size for name in names)


def test_each_subject_and_take_has_a_file_of_its_own_whatever_the_names(tmp_path):
    """Names that differ only in spaces or brackets do not share one."""
    solution = staged.handover()
    alike = zip(solution.subjects, ("A b", "A-b", "A_b"), strict=True)
    solution = replace(solution, subjects=tuple(replace(s, name=n) for s, n in alike))
    files = [
        file
        for name in ("a [1].bvh", "a (1).bvh")
        for file in write_solution(solution, tmp_path / name, {})[0]
    ]
    assert len(files) == len(set(files)) == len(list(tmp_path.iterdir())) == 12


def test_people_get_a_table_of_angles_and_a_prop_one_of_its_joints(tmp_path):
    files, _ = write_solution(staged.handover(), tmp_path / "out.csv", {})
    heads = {file.name: file.read_text().splitlines()[0] for file in files}
    assert len(heads) == 6  # three subjects in two takes
    for name, head in heads.items():
        assert ("knee" in head.lower()) == ("PROP" not in name)
