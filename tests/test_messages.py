"""What commands say beside their results, and how much of it."""

import io
import json
import logging
import re
import shutil
import subprocess
import sys

import pytest
import samples
from rich.console import Console

import marey
from marey import synth
from marey.cli import main, solve_progress
from marey.viewer.worker.session import WorkerSession


def run(capsys, *arguments):
    """Run the command line in this process; return its exit code and output."""
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    return stop.value.code, capsys.readouterr()


@pytest.fixture(scope="module")
def rods(tmp_path_factory):
    path = tmp_path_factory.mktemp("rods") / "rods.npz"
    take = synth.linkage().record(markers=4, seconds=1.0, rate=50.0)
    marey.write(take, path)
    return path


def test_solve_says_all_that_a_target_loses(rods, tmp_path, capsys):
    code, shown = run(capsys, "solve", rods, "-o", tmp_path / "rods.bvh")
    assert code == 0
    solution = marey.solve(rods)
    lost = marey.write(solution, tmp_path / "again.bvh")
    assert lost
    (line,) = (text for text in shown.err.split("info: ") if "not kept" in text)
    said = " ".join(line.split())
    assert all(finding.subject in said for finding in lost)


def test_verbose_tells_files_and_stages_and_quiet_nothing(rods, tmp_path, capsys):
    _, shown = run(capsys, "solve", rods, "-o", tmp_path / "a.bvh", "--verbose")
    for words in ("rods.npz: ", "clean begins", "joints: ", "wrote "):
        assert words in shown.err
    _, shown = run(capsys, "solve", rods, "-o", tmp_path / "b.bvh")
    assert "clean begins" not in shown.err
    _, shown = run(capsys, "solve", rods, "--quiet")
    assert (shown.out, shown.err) == ("", "")


@pytest.mark.parametrize(
    ("name", "missing", "complaint"),
    [
        ("a.docx", "", "need a suffix out of"),
        ("a.parquet", "pyarrow", 'pip install "marey[parquet]"'),
        ("a.usda", "pxr", 'pip install "marey[usd]"'),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_the_solve(
    rods, tmp_path, capsys, monkeypatch, name, missing, complaint
):
    monkeypatch.setattr(solve_progress, "QUIET_SECONDS", 0.0)
    for module in [
        module for module in sys.modules if module.partition(".")[0] == missing
    ]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, missing or "nothing", None)
    code, shown = run(capsys, "solve", rods, "-o", tmp_path / name)
    assert code == 2
    assert complaint in " ".join(shown.err.split())
    assert "solving" not in shown.err


def test_a_piped_solve_prints_its_steps_and_the_time_left(rods, capsys, monkeypatch):
    monkeypatch.setattr(solve_progress, "QUIET_SECONDS", 0.0)
    steps = run(capsys, "solve", rods)[1].err
    numbers = [int(n) for n in re.findall(r"solving: step (\d+) of", steps)]
    assert numbers == sorted(numbers)
    assert len(numbers) >= 5
    assert not run(capsys, "solve", rods, "--quiet")[1].err
    half = next(s for s, share in solve_progress.BEGINS_AT.items() if share == 0.5)
    assert "about 8 s left" in solve_progress.describe_step(half, 8.0)
    assert "left" not in solve_progress.describe_step("clean", 0.0)


def test_a_solve_in_a_terminal_has_a_bar(monkeypatch):
    screen = io.StringIO()
    shown = Console(file=screen, force_terminal=True, width=100)
    monkeypatch.setattr(solve_progress, "err", shown)
    with solve_progress.show_solve_progress("solving [a]") as report:
        report("tree, compiling")
    drawn = screen.getvalue()
    assert "solving [a]: step 4 of 10, tree, compiling" in drawn
    assert "━" in drawn
    assert drawn.endswith("\x1b[2K")  # nothing of it stays


def test_warnings_of_the_library_are_printed_unless_quiet(rods, capsys, monkeypatch):
    def warn(*_, **__):
        logging.getLogger("marey.kernels").warning("compiling [kernels]")
        return marey.load(rods)

    monkeypatch.setattr(marey, "read", warn)
    target = rods.with_suffix(".csv")
    _, shown = run(capsys, "convert", rods, target)
    assert "compiling [kernels]" in shown.err
    _, shown = run(capsys, "convert", rods, target, "--overwrite", "--quiet")
    assert (shown.out, shown.err) == ("", "")


def test_the_library_itself_prints_nothing(capsys):
    logging.getLogger("marey.kernels").warning("nobody listens")
    assert capsys.readouterr() == ("", "")


def test_the_log_of_a_command_ends_with_it(rods, capsys):
    logger = logging.getLogger("marey")
    before = list(logger.handlers), logger.level
    run(capsys, "convert", rods, rods.with_name("c.csv"), "--verbose")
    assert (logger.handlers, logger.level) == before


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_know_commands_and_options(shell, tmp_path, capsys):
    code, shown = run(capsys, "completion", shell)
    assert code == 0
    assert all(word in shown.out for word in ("solve", "convert", "compile", "verbose"))
    if shutil.which(shell):
        script = tmp_path / "script"
        script.write_text(shown.out)
        subprocess.run([shell, "-n", str(script)], check=True, timeout=60)


def test_joints_of_a_motion_are_renamed(tmp_path, capsys):
    motion = samples.motion(5)
    marey.write(motion, tmp_path / "a.bvh")
    old = motion.skeleton.names[1]
    target = tmp_path / "b.bvh"
    code, _ = run(capsys, "convert", tmp_path / "a.bvh", target, "--rename", f"{old}=X")
    assert code == 0
    found = marey.read_motion(target)
    assert found.skeleton.names[1] == "X"
    assert found.wxyz == pytest.approx(motion.wxyz, abs=1e-5)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--rename", "Nobody=X"), "joints out of"),
        (("--rename", "Foot=Leg"), "a name of its own"),
        (("--markers", "L*"), "converted as a motion"),
        (("--drop", "L*"), "converted as a motion"),
    ],
)
def test_what_a_motion_cannot_take_is_refused(flags, said, tmp_path, capsys):
    motion = samples.motion(5)
    marey.write(motion, tmp_path / "a.bvh")
    flags = [flag.replace("Leg", motion.skeleton.names[0]) for flag in flags]
    target = tmp_path / "b.bvh"
    code, shown = run(capsys, "convert", tmp_path / "a.bvh", target, *flags)
    assert code == 2
    assert said in " ".join(shown.err.split())
    assert not target.exists()


def test_doctor_says_whether_kernels_are_compiled(capsys):
    code, shown = run(capsys, "doctor", "--json")
    assert code == 0
    kernels = json.loads(shown.out)["kernels"]
    assert bool(kernels["compiled for"]) or kernels["outdated"]
    assert "kernels" in run(capsys, "doctor")[1].out


def test_a_viewed_file_may_say_less_than_the_caller(tmp_path):
    marey.write(samples.motion(6), tmp_path / "walk.bvh")
    before = marey.read_motion(tmp_path / "walk.bvh")
    session = WorkerSession(lambda message, data: None)
    request = {"do": "open", "path": str(tmp_path / "walk.bvh"), "title": "walk"}
    reading = {"unit": "m", "rate": 10.0}
    session.handle({**request, "edits_path": "", "reading": reading})
    after = session.open_file.content
    assert after.rate == 10.0
    assert after.skeleton.lengths == pytest.approx(100.0 * before.skeleton.lengths)


def test_wrong_overrides_of_a_view_are_refused(tmp_path):
    marey.write(samples.take(5), tmp_path / "a.c3d")
    with pytest.raises(marey.OptionError, match="unit"):
        marey.view(tmp_path / "a.c3d", unit="parsec", browser=False, block=False)
    with pytest.raises(marey.OptionError, match="in memory"):
        marey.view(samples.take(5), unit="mm", browser=False, block=False)
