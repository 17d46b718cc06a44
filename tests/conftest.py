"""Shared fixtures: seeded generators and the folder of real recordings."""

import json
import os
import signal
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import shape_checks

shape_checks.install()


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="also slow tests, all cases")


def pytest_configure(config):
    """Choose the calls to check, and give each worker one thread to compute in.

    More threads would wait for each other. The workers start after this and inherit the
    variables.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    # The programs that tests start use these kernels; all workers share one cache.
    os.environ.setdefault("MAREY_COMPILED_KERNELS", "1")
    # Programs that tests start and interrupt inherit that Ctrl-C is ignored, as it is
    # where a shell has put the tests in the background.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    shape_checks.Turn.every_call = config.getoption("--slow")


def pytest_runtest_setup():
    shape_checks.Turn.number += 1


def pytest_collection_modifyitems(config, items):
    """Leave out slow tests unless they are asked for."""
    if config.getoption("--slow"):
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if item not in slow]


@pytest.fixture(scope="session")
def slow(request):
    """Whether all cases are asked for."""
    return request.config.getoption("--slow")


@pytest.fixture
def rng():
    return np.random.default_rng(20061)


@pytest.fixture
def small_files():
    """Let files grow to so many bytes at most, as on a full disk, in a block."""
    resource = pytest.importorskip("resource")

    @contextmanager
    def limit(size):
        usual = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, usual[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, usual)

    return limit


@pytest.fixture(scope="session")
def recordings(tmp_path_factory):
    """All real recordings in one folder, gathered from those of MAREY_DATA.

    The variable lists folders, separated as in PATH. A file that several of them hold
    is taken from the first; the manifests are joined.
    """
    folders = data_folders()
    if not folders:
        pytest.skip("no real recordings: set MAREY_DATA to their folders")
    gathered = tmp_path_factory.mktemp("recordings")
    entries = []
    for folder in folders:
        for path in sorted(folder.glob("*/*")):
            link = gathered / path.relative_to(folder)
            link.parent.mkdir(exist_ok=True)
            if not link.exists():
                link.symlink_to(path.resolve())
        for entry in json.loads((folder / "manifest.json").read_text()):
            file = "/".join(Path(entry["file"]).parts[-2:])
            entries.append({**entry, "file": file})
    (gathered / "manifest.json").write_text(json.dumps(entries))
    return gathered


def data_folders():
    """The folders of real recordings that are there."""
    listed = os.environ.get("MAREY_DATA", "").split(os.pathsep)
    return [Path(folder) for folder in listed if folder and Path(folder).is_dir()]


def pytest_terminal_summary(terminalreporter):
    if not data_folders():
        terminalreporter.section("tests/real was skipped", yellow=True, bold=True)
        terminalreporter.line("Set MAREY_DATA to the folders of real recordings.")


@pytest.fixture
def unchecked():
    """Calls as users make them: without the shape checks that tests run under."""
    shape_checks.Turn.no_call = True
    yield
    shape_checks.Turn.no_call = False
