"""BLAS has one thread while marey computes, and as many as before afterwards."""

import threading

import pytest
import scipy.linalg  # noqa: F401, its BLAS is counted beside that of NumPy
from threadpoolctl import threadpool_info, threadpool_limits

import marey
from marey import papers
from marey.kernels import one_blas_thread
from marey.papers import knight2007


def blas_threads():
    return {
        one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"
    }


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("this BLAS has one thread only")
        yield


def test_one_thread_inside_and_as_many_as_before_outside():
    with one_blas_thread():
        assert blas_threads() == {1}
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_an_error_restores_the_threads():
    with pytest.raises(ValueError, match="wrong"), one_blas_thread():
        raise ValueError("wrong")
    assert blas_threads() == {2}


def test_blocks_of_two_threads_that_overlap():
    """The one that began first ends first."""
    entered, left = threading.Event(), threading.Event()

    def second():
        with one_blas_thread():
            entered.set()
            left.wait()

    other = threading.Thread(target=second)
    with one_blas_thread():
        other.start()
        entered.wait()
    left.set()
    other.join()
    assert blas_threads() == {2}


class Watched:
    """What shows with how many threads of BLAS it is looked at."""

    def __init__(self):
        self.seen = set()

    def __getattr__(self, name):
        self.seen |= blas_threads()
        raise LookupError(name)

    def __iter__(self):
        return self.items


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "stage",
    [
        marey.clean,
        marey.segment,
        marey.fit_joints,
        marey.infer_tree,
        lambda joints: marey.find_sensor_slips((), joints, joints),
        lambda skeleton: marey.calibrate(skeleton, ()),
        lambda take: marey.solve_pose(take, take),
    ],
)
def test_a_stage_by_itself_computes_with_one_thread(stage):
    watched = Watched()
    with pytest.raises(LookupError):
        stage(watched)
    assert watched.seen == {1}
    assert blas_threads() == {2}


def test_an_experiment_of_a_paper_computes_with_one_thread(monkeypatch):
    monkeypatch.setitem(
        knight2007.EXPERIMENTS, "threads", lambda effort: blas_threads()
    )
    for _, threads in papers.run("knight2007", only=["threads"]):
        assert threads == {1}
        assert blas_threads() == {2}


def test_a_solve_computes_with_one_thread():
    seen = []
    take = marey.synth.hinge_pair().record(seconds=1.0, rate=50.0, noise=1e-3)
    marey.solve(take, progress=lambda stage: seen.append(blas_threads()))
    assert seen
    assert all(threads == {1} for threads in seen)
    assert blas_threads() == {2}
