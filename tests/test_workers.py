"""A pool of processes: every job ends, whatever happens to its worker."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from marey.errors import DataError, MareyError
from marey.kernels.precompiled import VARIABLE
from marey.workers import Job, WorkerPool

GIGABYTE = 2**30


@pytest.fixture(autouse=True)
def found_by_workers(monkeypatch):
    here = str(Path(__file__).parent)
    monkeypatch.setenv("PYTHONPATH", here, prepend=os.pathsep)


def job(name, number=0, **arguments):
    return Job(f"{name} {number}", f"work_samples:{name}", arguments)


def run_all(pool, jobs):
    """Outcomes by key."""
    left, running, outcomes = list(jobs), 0, {}
    while left or running:
        while left and pool.has_room:
            pool.submit(left.pop(0))
            running += 1
        outcome = pool.wait()
        running -= 1
        outcomes[outcome.job.key] = outcome
    return outcomes


def test_every_job_is_done_once():
    with WorkerPool(2) as pool:
        outcomes = run_all(pool, [job("add", n, a=n, b=n) for n in range(20)])
    assert [outcomes[f"add {n}"].value for n in range(20)] == list(range(0, 40, 2))


def test_an_error_comes_back_whole():
    with WorkerPool(1) as pool:
        outcomes = run_all(pool, [job("fail"), job("fault"), job("add", a=1, b=1)])
    assert isinstance(outcomes["fail 0"].value, DataError)
    assert isinstance(outcomes["fault 0"].value, MareyError)
    assert "IndexError" in str(outcomes["fault 0"].value)
    assert [outcome.state for outcome in outcomes.values()] == ["failed"] * 2 + ["done"]


def test_a_job_that_kills_workers_takes_no_other_with_it(tmp_path):
    jobs = [job("crash"), *(job("add", n, a=n, b=0) for n in range(6))]
    jobs.insert(2, job("crash_once", mark=str(tmp_path / "mark")))
    with WorkerPool(2) as pool:
        outcomes = run_all(pool, jobs)
    assert outcomes["crash 0"].state == "lost"
    assert outcomes["crash_once 0"].value == "alive"
    assert [outcomes[f"add {n}"].value for n in range(6)] == list(range(6))


def test_a_job_that_takes_too_long_is_stopped():
    with WorkerPool(2) as pool:
        pool.submit(job("sleep", seconds=600))
        pool.submit(job("add", a=1, b=2))
        assert pool.wait().value == 3
        pool.seconds = 0.0
        assert pool.wait().state == "late"


def test_a_job_that_ends_as_it_is_stopped_leaves_no_dying_worker_to_the_next():
    with WorkerPool(1) as pool:
        pool.submit(job("add", a=1, b=2))
        while pool._answers.empty():
            time.sleep(0.01)
        pool.seconds = 0.0
        pool._stop_late_workers()
        assert pool.wait().value == 3
        pool.seconds = float("inf")
        pool.submit(job("add", 1, a=3, b=4))
        assert pool.wait().value == 7


def test_a_job_that_takes_all_memory_fails_with_the_reason():
    with WorkerPool(1, memory=2 * GIGABYTE) as pool:
        outcomes = run_all(pool, [job("take_memory", size=8 * GIGABYTE)])
    assert outcomes["take_memory 0"].state == "large"
    assert "more memory" in str(outcomes["take_memory 0"].value)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such limit")
def test_memory_that_is_short_is_no_fault_of_the_data_whoever_says_so():
    """Python has another error for threads, and the system for libraries."""
    jobs = [job("start_threads", size=2**28), job("no_room_for_a_library")]
    jobs += [job("fail_in_a_circle")]
    with WorkerPool(1, memory=2 * GIGABYTE) as pool:
        outcomes = run_all(pool, [*jobs, job("no_room_for_a_process")])
    assert outcomes.pop("fail_in_a_circle 0").state == "failed"
    assert [outcome.state for outcome in outcomes.values()] == ["large"] * 3


def test_a_smaller_limit_of_the_system_is_kept():
    """Where a batch system limits memory, workers of the default limit still start."""
    pytest.importorskip("resource")
    code = (
        "import resource as r; from marey.workers.limits import limit_memory;"
        "own = (4 * 2**30,) * 2; r.setrlimit(r.RLIMIT_AS, own);"
        "limit_memory(2**40); assert r.getrlimit(r.RLIMIT_AS) == own;"
        "limit_memory(2**30); assert r.getrlimit(r.RLIMIT_AS)[0] == 2**30"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_end_of_a_pool_ends_its_workers(tmp_path):
    note = tmp_path / "process"
    with WorkerPool(1) as pool:
        pool.submit(job("sleep", seconds=600, note=str(note)))
        while not (note.exists() and note.read_text()):
            time.sleep(0.05)
        began = time.monotonic()
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)
    assert time.monotonic() - began < 60.0


def test_nothing_of_the_current_folder_is_imported(tmp_path, monkeypatch):
    (tmp_path / "pickle.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    with WorkerPool(1) as pool:
        pool.submit(job("add", a=1, b=2))
        assert pool.wait().value == 3


@pytest.mark.parametrize(("asked", "used"), [("", True), ("0", False), ("1", True)])
def test_workers_use_compiled_kernels_unless_told_otherwise(monkeypatch, asked, used):
    monkeypatch.setenv(VARIABLE, asked)
    wants = "marey.kernels.precompiled:wants_compiled_kernels"
    with WorkerPool(1) as pool:
        pool.submit(Job("wants", wants, {}))
        assert pool.wait().value is used


def test_one_attempt_is_one_process(tmp_path):
    with WorkerPool(1, attempts=1) as pool:
        pool.submit(job("crash_once", mark=str(tmp_path / "mark")))
        assert pool.wait().state == "lost"
