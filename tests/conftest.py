"""Shared fixtures: seeded generators and the folder of real recordings."""

import os
from pathlib import Path

import jaxtyping
import numpy as np
import pytest


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run all fuzz cases")


@pytest.fixture
def rng():
    return np.random.default_rng(20061)


@pytest.fixture(scope="session")
def recordings():
    """Folder of real recordings, named by the environment variable MAREY_DATA."""
    folder = os.environ.get("MAREY_DATA", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("no real recordings: set MAREY_DATA to their folder")
    return Path(folder)


def pytest_terminal_summary(terminalreporter):
    if not os.environ.get("MAREY_DATA"):
        terminalreporter.section("tests/real was skipped", yellow=True, bold=True)
        terminalreporter.line(
            "Set MAREY_DATA to the folder of real recordings to run it."
        )


@pytest.fixture
def unchecked():
    """Calls as users make them: without the shape checks that tests run under."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
