import errno
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

import marey
from marey.io.atomic import check_target, remove_abandoned, write_atomic

OLD, NEW = b"old content", b"new content, longer than before"


@pytest.fixture
def target(tmp_path):
    path = tmp_path / "walk.bvh"
    path.write_bytes(OLD)
    return path


def only(path):
    """Whether the folder of this file holds nothing else."""
    return os.listdir(path.parent) == [path.name]


@contextmanager
def ordinary_user():
    """Give up the powers of root, to whom no folder is closed."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


# --- writing -------------------------------------------------------------------------


def test_the_new_file_is_whole_and_alone(target):
    write_atomic({target: [NEW[:4], b"", NEW[4:]]})
    assert target.read_bytes() == NEW
    assert only(target)


def test_no_chunks_make_an_empty_file(tmp_path):
    write_atomic({tmp_path / "empty": []})
    assert (tmp_path / "empty").read_bytes() == b""


def test_killed_in_the_middle_the_old_file_stays(target):
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from marey.io.atomic import write_atomic\n"
        "def chunks():\n"
        "    yield b'x' * 1_000_000\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_atomic({Path(sys.argv[1]): chunks()})\n"
    )
    run = subprocess.run([sys.executable, "-c", code, target], capture_output=True)
    assert run.returncode == -signal.SIGKILL
    assert target.read_bytes() == OLD
    assert not only(target)
    remove_abandoned.cache_clear()
    write_atomic({target: [NEW]})  # the next run removes what the killed one left
    assert only(target)


def test_parts_of_living_processes_and_of_other_machines_stay(target):
    host = socket.gethostname()
    living = target.parent / f".{host}-{os.getpid()}-{'0' * 16}.part"
    elsewhere = target.parent / f".not{host}-999999999-{'0' * 16}.part"
    living.touch()
    elsewhere.touch()
    remove_abandoned.cache_clear()
    write_atomic({target: [NEW]})
    assert living.exists()
    assert elsewhere.exists()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")
def test_parts_of_a_dead_process_that_nobody_waited_for_are_removed(target):
    """Where no process waits for orphans, as in a container, they stay zombies."""
    ended = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert ended.stdout is not None
    ended.stdout.read()  # until its end, without asking how it ended
    part = target.parent / f".{socket.gethostname()}-{ended.pid}-{'0' * 16}.part"
    part.touch()
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    remove_abandoned.cache_clear()
    write_atomic({target: [NEW]})
    assert not part.exists()
    ended.communicate()


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_that_is_replaced_keeps_its_permissions(target, mode):
    target.chmod(mode)
    write_atomic({target: [NEW]})
    assert stat.S_IMODE(target.stat().st_mode) == mode


def test_a_full_disk_keeps_the_old_file_and_names_the_new(target):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(marey.OutputError) as error:
            write_atomic({target: [b"x" * 20_000] * 5})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert str(error.value) == f"{target}: not written, File too large"
    assert target.read_bytes() == OLD
    assert only(target)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_at_any_step_keeps_the_old_file(target, monkeypatch, step):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, step, full)
    with pytest.raises(
        marey.OutputError, match=r"walk.bvh: not written, No space left"
    ):
        write_atomic({target: [NEW]})
    assert target.read_bytes() == OLD
    assert only(target)


@pytest.mark.parametrize("error", [marey.DataError, ValueError, KeyboardInterrupt])
def test_a_writer_that_fails_keeps_the_old_file_and_its_own_error(target, error):
    def chunks():
        yield NEW
        if error is marey.DataError:
            raise marey.DataError("joint", found=1, needed=2)
        raise error

    with pytest.raises(error):
        write_atomic({target: chunks()})
    assert target.read_bytes() == OLD
    assert only(target)


def test_a_folder_that_cannot_be_synced_is_no_failure(target, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, "denied")

    monkeypatch.setattr(os, "open", refuse)
    write_atomic({target: [NEW]})
    monkeypatch.undo()
    assert target.read_bytes() == NEW


def test_a_folder_that_vanished_is_named(tmp_path):
    with pytest.raises(marey.OutputError, match=r"walk.bvh: not written, No such file"):
        write_atomic({tmp_path / "gone" / "walk.bvh": [NEW]})


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_permissions_are_those_of_any_new_file(tmp_path, mask):
    before = os.umask(mask)
    try:
        write_atomic({tmp_path / "walk.bvh": [NEW]})
    finally:
        os.umask(before)
    mode = stat.S_IMODE((tmp_path / "walk.bvh").stat().st_mode)
    assert mode == 0o666 & ~mask


def test_other_threads_never_see_another_umask(tmp_path, monkeypatch):
    def refuse(_):
        raise AssertionError("the umask belongs to all threads")

    monkeypatch.setattr(os, "umask", refuse)
    writers = [
        threading.Thread(target=write_atomic, args=({tmp_path / str(i): [NEW]},))
        for i in range(8)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert all((tmp_path / str(i)).read_bytes() == NEW for i in range(8))


# --- refusing before any work --------------------------------------------------------


def test_a_good_target_is_accepted_without_a_trace(tmp_path, target):
    check_target(tmp_path / "new.bvh", overwrite=False, inputs=(str(target), ""))
    check_target(target, overwrite=True, inputs=("", "elsewhere.c3d"))
    assert only(target)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(marey.OutputError, match=r"folder .*out does not exist; create"):
        check_target(tmp_path / "out" / "walk.bvh", overwrite=False)


def test_a_closed_folder_is_refused():
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o555)
        path = Path(folder) / "walk.bvh"
        with (
            ordinary_user(),
            pytest.raises(
                marey.OutputError, match=r"walk.bvh: not written, Permission denied"
            ),
        ):
            check_target(path, overwrite=False)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="Linux only")
def test_a_folder_where_nothing_can_be_made_is_refused_whatever_its_permissions():
    with pytest.raises(marey.OutputError, match=r"/proc/walk.bvh: not written"):
        check_target(Path("/proc/walk.bvh"), overwrite=False)


def test_a_folder_as_target_is_refused(tmp_path):
    for overwrite in (False, True):
        with pytest.raises(marey.OutputError, match="is a folder, need a file name"):
            check_target(tmp_path, overwrite=overwrite)


@pytest.mark.parametrize("name", ["x" * 300 + ".bvh", "walk\0.bvh"])
def test_a_name_the_system_cannot_hold_is_refused(tmp_path, name):
    with pytest.raises(marey.OutputError, match="not written") as error:
        check_target(tmp_path / name, overwrite=True)
    assert str(error.value).isprintable()


def test_an_existing_file_needs_overwrite(target):
    with pytest.raises(marey.OptionError, match=r"which exists.* or overwrite=True"):
        check_target(target, overwrite=False)


def test_a_link_that_leads_nowhere_counts_as_existing(tmp_path):
    link = tmp_path / "walk.bvh"
    link.symlink_to(tmp_path / "nothing")
    with pytest.raises(marey.OptionError, match="which exists"):
        check_target(link, overwrite=False)


@pytest.mark.parametrize("link", ["same", "symlink", "hardlink", "folder"])
def test_the_input_is_never_overwritten_by_whatever_name(tmp_path, target, link):
    other = tmp_path / "other.bvh"
    if link == "same":
        other = tmp_path / ".." / tmp_path.name / target.name
    elif link == "symlink":
        other.symlink_to(target)
    elif link == "hardlink":
        other.hardlink_to(target)
    else:
        (tmp_path / "linked").symlink_to(tmp_path)
        other = tmp_path / "linked" / target.name
    with pytest.raises(marey.OptionError, match="this is the input file"):
        check_target(other, overwrite=True, inputs=("", str(target)))
    with pytest.raises(marey.OptionError, match="this is the input file"):
        check_target(target, overwrite=True, inputs=(str(other),))


def test_files_that_belong_together_are_replaced_together(tmp_path):
    asf, amc = tmp_path / "walk.asf", tmp_path / "walk.amc"
    asf.write_bytes(OLD)
    amc.write_bytes(OLD)

    def broken():
        yield NEW
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        write_atomic({asf: [NEW], amc: broken()})
    assert (asf.read_bytes(), amc.read_bytes()) == (OLD, OLD)
    assert sorted(tmp_path.iterdir()) == [amc, asf]
