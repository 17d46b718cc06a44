"""Damage: every format, written by marey or by others, survives what is done to it."""

import time
import tracemalloc

import foreign
import numpy as np
import pytest
from damage import assert_every_cut_is_noticed, damaged, error_message
from test_formats import PAIRS, READERS, saved

import marey

OTHERS = [
    pytest.param(fmt, noun, id=f"{fmt.name}-{noun}")
    for fmt in marey.formats()
    for noun in READERS
    if fmt.name in foreign.FILES and getattr(fmt, f"read_{noun}")
]
# A file of others that states no count cannot show a cut between two frames.
UNCOUNTED = {"trb", "keypoints"}

# HDF5 is read by a program of its own, which takes a while to start.
N_DAMAGED = {"hdf5": 12}

COUNTED = [p for p in PAIRS + OTHERS if p.values[0].name not in UNCOUNTED]
every_file = pytest.mark.parametrize(("fmt", "noun"), PAIRS + OTHERS)
pytestmark = pytest.mark.usefixtures("unchecked")


def sample(fmt, noun, folder):
    """A small file of this format."""
    if fmt.name not in foreign.FILES:
        return saved(fmt, noun, folder)
    path = folder / f"sample{fmt.suffixes[0]}"
    path.write_bytes(foreign.FILES[fmt.name])
    return path


@pytest.mark.parametrize(("fmt", "noun"), COUNTED)
def test_every_truncation_is_an_error_or_a_finding(fmt, noun, tmp_path, slow):
    path = sample(fmt, noun, tmp_path)
    size = path.stat().st_size
    # An odd step meets every place in the words of a binary file.
    step = 1 if size <= 512 or slow else size // 200 | 1
    assert_every_cut_is_noticed(path, READERS[noun], step)


@every_file
def test_damage_gives_a_typed_error_or_a_result(fmt, noun, tmp_path, slow):
    path = sample(fmt, noun, tmp_path)
    data = path.read_bytes()
    rng = np.random.default_rng(5)
    readers = sum(other.values[0] is fmt for other in PAIRS + OTHERS)
    count = N_DAMAGED.get(fmt.name, 500)
    for _ in range(40 * count if slow else count // (2 * readers)):
        path.write_bytes(damaged(data, rng))
        start = time.monotonic()
        assert error_message(READERS[noun], path).isprintable()
        assert time.monotonic() - start < 10.0, "hangs"


@every_file
def test_damage_does_not_fill_the_memory(fmt, noun, tmp_path, slow):
    path = sample(fmt, noun, tmp_path)
    data = path.read_bytes()
    rng = np.random.default_rng(6)
    tracemalloc.start()
    for _ in range(300 if slow else N_DAMAGED.get(fmt.name, 30)):
        path.write_bytes(damaged(data, rng))
        tracemalloc.reset_peak()
        error_message(READERS[noun], path)
        assert tracemalloc.get_traced_memory()[1] < 10 * len(data) + 64 * 2**20
    tracemalloc.stop()
