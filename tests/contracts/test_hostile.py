"""Files made to harm: a typed error or a read that says what it met, in little memory.

What is specific to one format stands in its own test; C3D, whose every byte declares
something, has all of it there. Here each format meets the tricks that they share:
counts that are not true, lines and trees without end, names that repeat, cycles, and
archives that are not what they say. Files have 1 MB, with --slow the 10 MB for which
the bounds are promised.
"""

import re
import time

import pytest
import samples
from hostile_text import (
    BODIES,
    CSV,
    CSV_ROW,
    ONE,
    STILL,
    TEXTS,
    TRC_ROW,
    Hostile,
    asf,
    bvh,
    empty_frames,
    htr,
    trb,
    trc,
)
from hostile_trees import ARCHIVES, SHOT, TREES, mvnx
from memory import peak_memory

import marey

MOST_MEMORY = 256 * 2**20
MOST_SECONDS = 10.0
"""Of the processor, against hanging; it says nothing about speed."""


@pytest.fixture(scope="module")
def size(slow):
    return 10_000_000 if slow else 1_000_000


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """Compile first, so that no case pays for it."""
    folder = tmp_path_factory.mktemp("small")
    for name, thing in {
        "a.bvh": samples.motion(),
        "a.amc": samples.motion(),
        "a.trc": samples.take(sensors=False),
    }.items():
        marey.write(thing, folder / name)
        marey.read(folder / name)


def saved(folder, hostile, size):
    content = hostile.content(size)
    path = folder / hostile.name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    if path.suffix == ".amc":
        path.with_suffix(".asf").write_text(asf())
    return path


def outcome(read, path):
    """What the error says, else the codes of the findings."""
    try:
        thing = read(path)
    except marey.MareyError as error:
        return str(error)
    return " ".join(finding.code for finding in thing.source.findings)


PATTERNS = [
    "\n",
    " ",
    "\t",
    "1",
    "1 ",
    "1\n",
    "1\t\n",
    ",",
    "a,",
    ":",
    "#",
    "<",
    "[",
    "(",
]


@pytest.mark.parametrize("pattern", PATTERNS, ids=repr)
def test_recognising_a_file_does_not_hang(pattern, tmp_path):
    (tmp_path / "a").write_text(pattern * 50_000)
    start = time.process_time()
    with pytest.raises(marey.MareyError):
        marey.read(tmp_path / "a")
    assert time.process_time() - start < MOST_SECONDS


@pytest.mark.usefixtures("unchecked", "kernels")
@pytest.mark.parametrize("hostile", TEXTS + BODIES + TREES + ARCHIVES, ids=str)
def test_a_hostile_file_is_refused_or_flagged(hostile, size, tmp_path):
    path = saved(tmp_path, hostile, size)
    start = time.process_time()
    with peak_memory() as peak:
        message = outcome(hostile.read, path)
    seconds = time.process_time() - start
    assert message.isprintable()
    assert re.search(hostile.says, message), message[:300]
    assert seconds < MOST_SECONDS
    assert peak.size < MOST_MEMORY


SIX = "6 Xposition Yposition Zposition Zrotation Xrotation Yrotation"
DENSE = {
    "one.bvh": lambda n: bvh(("0.0 " * 6 + "\n") * (n // 25), channels=SIX),
    "wide.bvh": lambda n: bvh(
        ("0.0 " * 2006 + "\n") * (n // 8025),
        channels=SIX,
        inside="JOINT a { OFFSET 1 0 0 CHANNELS 1 Zrotation }\n" * 2000,
    ),
    "one.trc": lambda n: trc(TRC_ROW * (n // 10)),
    "one.csv": lambda n: CSV + CSV_ROW * (n // 17),
    "one.htr": lambda n: htr(
        ONE, "[a]\n" + "".join(f"{i} {STILL}" for i in range(n // 20))
    ),
    "one.htr2": lambda n: htr(
        ONE, "".join(f"Frame {i}:\na {STILL}" for i in range(n // 30))
    ),
    "one.mvnx": lambda n: mvnx("".join(SHOT.format(i) for i in range(n // 90))),
    "one.trb": lambda n: trb([b"a"] * 6, empty_frames(n // 12)),
    "one.amc": lambda n: ":DEGREES\n" + "1\nroot 0 0 0 0 0 0\nb\n" * (n // 24),
}


MOTIONS = ("one.bvh", "wide.bvh", "one.htr", "one.htr2", "one.amc")


@pytest.mark.usefixtures("unchecked", "kernels")
@pytest.mark.parametrize(
    ("name", "read"),
    [(name, marey.read) for name in DENSE]
    + [(name, marey.read_motion) for name in MOTIONS],
)
def test_a_dense_file_takes_memory_by_its_result(name, read, size, tmp_path):
    """A valid file of short numbers may hold a take of 64 times its bytes.

    So what bounds the memory is the result: three times it, for a take of joints that
    are a motion on the way and lose their ends, and 16 times the file.
    """
    path = saved(tmp_path, Hostile(name, DENSE[name], ""), size)
    with peak_memory() as peak:
        thing = read(path)
    arrays = ("points", "T_world_sensor", "T_world_root", "wxyz")
    result = sum(getattr(thing, a).nbytes for a in arrays if hasattr(thing, a))
    assert peak.size < 3 * result + 16 * path.stat().st_size + 16 * 2**20
