"""3-D keypoints in HDF5: analysis files of SLEAP, netCDF files of `movement`.

SLEAP stores `tracks`, `node_names`, `track_names` and `point_scores`; `movement` stores
`position` and `confidence` with the dimensions time, space, keypoint and individual.
The HDF5 library hangs or crashes on some damaged files. So it runs in a process of its
own (`library`), with limited time and memory; a file that was cut off is refused
before.
"""

from importlib.util import find_spec
from typing import Any

import numpy as np

from marey.errors import DataError, MissingExtraError
from marey.io.contract import Format
from marey.io.file import Facts, File
from marey.io.text.names import name_all
from marey.numerics import Float
from marey.take import Take
from marey.workers import Job, WorkerPool, machine_memory

SIGNATURE = b"\x89HDF\r\n\x1a\n"
SUPERBLOCK_BYTES = 128
"""Enough of a file for its superblock, in every version."""

END_OF_FILE = {0: (13, 24), 1: (13, 28), 2: (9, 12), 3: (9, 12)}
"""Bytes of the superblock with the size of its addresses and with the first of them, by
its version; the third address is the end of the file."""

READER = "marey.io.formats.hdf5.library:read_keypoints"

SECONDS = 8.0
"""Longest time for a small file, in seconds; a process starts in less than one. It
guards against a library that never returns."""

BYTES_PER_SECOND = 10e6
"""Slowest reading of a large file, which gets that much more time."""

UNITS = {"metres": "m", "meters": "m", "millimetres": "mm", "centimetres": "cm"}
"""Units in words, as datasets of `movement` may state them."""


def sniff(head: bytes) -> bool:
    """Whether a file begins with the signature of HDF5."""
    return head.startswith(SIGNATURE)


def read_take(file: File) -> Take:
    """Return the keypoints of a file as markers, with their confidences.

    Raises:
        FormatError: If the file is damaged, or holds no 3-D keypoints.
        MissingExtraError: If h5py is not installed.
    """
    _check_complete(file)
    if find_spec("h5py") is None:
        raise MissingExtraError("h5py", "tables")
    facts, points, confidence = _run_library(file)
    if not points.size:
        file.fail("at least one frame and one keypoint", f"shape {points.shape}")
    points[~np.isfinite(points).all(axis=-1)] = np.nan
    names = name_all(file, facts["names"], points.shape[1], "marker")
    unit = str(facts.get("space_unit", ""))
    times = facts.get("times", [])
    rate = facts.get("fps")
    if rate is None and len(times) == 2 and times[1] > times[0]:
        rate = f"{1.0 / (times[1] - times[0]):g}"
    note = "none in files of keypoints"
    decided = Facts(
        file.decide_fact(
            "unit", stated=UNITS.get(unit, unit) or None, assumed="mm", note=note
        ),
        file.decide_fact("up", stated=facts.get("up"), assumed="z", note=note),
        file.decide_fact("rate", stated=rate, assumed="100", note=note),
    )
    start = float(times[0]) if times and np.isfinite(times[0]) else 0.0
    return file.take(
        decided,
        points=points,
        markers=names,
        confidence=confidence,
        start=start if rate is not None else 0.0,
    )


def _check_complete(file: File) -> None:
    """Refuse a file that ends before the address its superblock states."""
    with file.path.open("rb") as handle:
        head = handle.read(SUPERBLOCK_BYTES)
    version = head[8] if len(head) > 8 else -1
    if version not in END_OF_FILE:
        file.fail("a superblock of version 0 to 3", version, byte=8)
    at_width, first = END_OF_FILE[version]
    width = head[at_width] if len(head) > at_width else 0
    end = head[first + 2 * width : first + 3 * width]
    if width not in (2, 4, 8) or len(end) < width:
        file.fail("the end of the file in the superblock", f"{width}-byte addresses")
    size = int.from_bytes(end, "little")
    if size > file.size:
        file.fail(f"{size} bytes", f"{file.size}: the file was cut off", byte=file.size)


def _run_library(
    file: File,
) -> tuple[
    dict[str, Any], Float[np.ndarray, "frame point 3"], Float[np.ndarray, "frame point"]
]:
    """Return facts, positions and confidences (0 to 1) that `library` reads.

    Positions are in the unit of the file. A worker reads it in limited time and memory.
    """
    seconds = SECONDS + file.size / BYTES_PER_SECOND
    with WorkerPool(1, machine_memory(), seconds, attempts=1) as pool:
        pool.submit(Job(file.path.name, READER, {"path": str(file.path)}))
        outcome = pool.wait()
    if outcome.state == "done":
        keypoints: tuple[dict[str, Any], np.ndarray, np.ndarray] = outcome.value
        return keypoints
    if isinstance(outcome.value, DataError):
        file.fail(str(outcome.value.needed), outcome.value.found)
    found = f"damage: {outcome.value or 'the HDF5 library crashed'}"
    if outcome.state == "late":
        found = f"a file that the HDF5 library does not read in {seconds:.0f} s"
    file.fail("an HDF5 file of SLEAP or movement", found)


FORMAT = Format(
    name="hdf5",
    title="3-D keypoints of SLEAP or movement (HDF5, netCDF)",
    suffixes=(".h5", ".nc"),
    sniff=sniff,
    read_take=read_take,
)
"""3-D keypoints of SLEAP and `movement`, with confidences."""
