"""Solutions of real recordings, shared by all tests."""

from functools import cache

import pytest

import marey


@pytest.fixture(scope="session")
def solved(recordings):
    """A function that solves recordings by their names, each in each way once."""

    @cache
    def solve(name, **options):
        return marey.solve(recordings / name, **options)

    return solve
