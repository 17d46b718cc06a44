"""How fast the text formats are read, against a plain Python loop over the same file.

The loop splits lines, converts each cell with `float` and puts it in an array: no
units, no axes, no rotations, no checks. "Numbers" is marey's reader up to that same
point; "read" is the whole of it: for a motion also the rotations of all joints, all
checks and the hash of the file.
"""

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import marey
from benchmarks.harness.task import Figure, Row, Setting
from benchmarks.harness.timing import invert, scale, time_call
from marey.io.file import File
from marey.io.formats import bvh, trc
from marey.io.formats.amc import read_frames
from marey.io.formats.asf.read import read_asf
from marey.io.text.numbers import parse_table

HEADLINE = "x loop"
KEY_CASES = ("*, read",)


def measure(setting: Setting) -> Iterator[Row]:
    frames = setting.choose(3000, 500)
    take, motion = sample_take(frames), sample_motion(frames)
    with tempfile.TemporaryDirectory() as folder:
        for kind, written, read, numbers, loop in (
            ("trc", take, marey.read, trc.load, loop_trc),
            ("bvh", motion, marey.read_motion, numbers_bvh, loop_bvh),
            ("amc", motion, marey.read_motion, numbers_amc, loop_amc),
        ):
            path = Path(folder) / f"sample.{kind}"
            marey.write(written, path)
            yield from time_readers(path, loop, numbers, read, setting)


def time_readers(
    path: Path,
    loop: Callable[[Path], Any],
    numbers: Callable[[Path], Any],
    read: Callable[[Path], Any],
    setting: Setting,
) -> Iterator[Row]:
    """Yield the times of three ways to read one file."""
    size, slow = path.stat().st_size / 1e6, 0.0
    for name, reader in (("loop", loop), ("numbers", numbers), ("read", read)):
        cpu = time_call(partial(reader, path), setting).cpu
        slow = slow or cpu.median
        figures: dict[str, Figure] = {
            "CPU [ms]": scale(cpu, 1e3),
            "MB/s": invert(cpu, size),
            "x loop": slow / cpu.median,
        }
        yield Row(f"{path.suffix[1:]}, {size:.1f} MB, {name}", figures)


def sample_take(n_frames: int, n_markers: int = 40) -> marey.Take:
    """Return a take of markers that wander, with gaps."""
    rng = np.random.default_rng(0)
    points = np.cumsum(rng.normal(scale=1e-3, size=(n_frames, n_markers, 3)), axis=0)
    points[rng.random((n_frames, n_markers)) < 0.02] = np.nan
    labels = tuple(f"M{i:02d}" for i in range(n_markers))
    return marey.Take(rate=120.0, points=points, labels=labels)


def sample_motion(n_frames: int, n_joints: int = 31) -> marey.Motion:
    """Return a motion of a random tree."""
    rng = np.random.default_rng(0)
    names = tuple(f"joint{i:02d}" for i in range(n_joints))
    parent = np.array([-1, *(int(rng.integers(i)) for i in range(1, n_joints))])
    skeleton = marey.Skeleton(
        names=names, parent=parent, offset=rng.normal(scale=0.2, size=(n_joints, 3))
    )
    rotvec = np.cumsum(rng.normal(scale=0.02, size=(n_frames, n_joints, 3)), axis=0)
    wxyz = marey.geometry.quat_exp(rotvec)
    T = marey.geometry.transform(
        marey.geometry.matrix_from_quat(wxyz[:, 0]),
        np.cumsum(rng.normal(scale=0.01, size=(n_frames, 3)), axis=0),
    )
    return marey.Motion(skeleton=skeleton, T_world_root=T, wxyz=wxyz, rate=120.0)


def loop_trc(path: Path) -> np.ndarray:
    """Return an array of cells, by a loop."""
    lines = path.read_text().split("\n")[6:-1]
    values = np.full((len(lines), len(lines[0].split("\t"))), np.nan)
    for i, line in enumerate(lines):
        for j, cell in enumerate(line.split("\t")):
            if cell:
                values[i, j] = float(cell)
    return values


def loop_bvh(path: Path) -> np.ndarray:
    """Return an array of channels, by a loop."""
    lines = path.read_text().split("MOTION\n")[1].split("\n")[2:-1]
    values = np.empty((len(lines), len(lines[0].split())))
    for i, line in enumerate(lines):
        for j, cell in enumerate(line.split()):
            values[i, j] = float(cell)
    return values


def loop_amc(path: Path) -> np.ndarray:
    """Return an array of channels, by a loop."""
    lines = path.read_text().split("\n")[3:-1]
    frames = sum(line.isdigit() for line in lines)
    columns: dict[str, int] = {}
    values, frame = np.empty((frames, 200)), -1
    for line in lines:
        if line.isdigit():
            frame += 1
            continue
        name, *cells = line.split()
        first = columns.setdefault(name, 6 * len(columns))
        for j, cell in enumerate(cells):
            values[frame, first + j] = float(cell)
    return values


def numbers_bvh(path: Path) -> Any:
    """Return what the reader has where the loop ends: an array of channels."""
    file = File(path, "bvh")
    data = file.text()
    head = bvh.MOTION_HEADER.search(data)
    columns = len(data[head.end() :].split(b"\n", 2)[1].split())
    return parse_table(file, data[head.end() :], columns=columns, delimiter=" ")


def numbers_amc(path: Path) -> Any:
    """Return the same for an AMC, its ASF included."""
    file = File(path, "amc")
    asf = read_asf(File(path.with_suffix(".asf"), "amc"))
    return read_frames(file, file.text(), asf, n_joints=31, declared=None)
