"""How fast the text formats are read, against a plain Python loop over the same file.

The loop splits lines, converts each cell with `float` and puts it in an array: no
units, no axes, no rotations, no checks. "numbers" is our reader up to that same
point, which should be 8 times as fast; "read" is the whole of it: for a motion also
the rotations of all joints, all checks and the hash of the file. Ratios within one run.
"""

import tempfile
import time
from pathlib import Path

import numpy as np

import marey
from marey.io.contract import File
from marey.io.formats import bvh, trc
from marey.io.formats.amc import read_frames
from marey.io.formats.asf.read import read_asf
from marey.io.text.numbers import parse_table

FRAMES = 3000
REPEATS = 5


def best(function, *arguments):
    """Return the shortest of several times, in seconds; the first call warms up."""
    function(*arguments)
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - start)
    return min(times)


def sample_take(rng, n_markers=40):
    points = np.cumsum(rng.normal(scale=1e-3, size=(FRAMES, n_markers, 3)), axis=0)
    points[rng.random((FRAMES, n_markers)) < 0.02] = np.nan
    labels = tuple(f"M{i:02d}" for i in range(n_markers))
    return marey.Take(rate=120.0, points=points, labels=labels)


def sample_motion(rng, n_joints=31):
    names = tuple(f"joint{i:02d}" for i in range(n_joints))
    parent = np.array([-1, *(int(rng.integers(i)) for i in range(1, n_joints))])
    skeleton = marey.Skeleton(
        names=names, parent=parent, offset=rng.normal(scale=0.2, size=(n_joints, 3))
    )
    rotvec = np.cumsum(rng.normal(scale=0.02, size=(FRAMES, n_joints, 3)), axis=0)
    wxyz = marey.geometry.quat_exp(rotvec)
    T = marey.geometry.transform(
        marey.geometry.matrix_from_quat(wxyz[:, 0]),
        np.cumsum(rng.normal(scale=0.01, size=(FRAMES, 3)), axis=0),
    )
    return marey.Motion(skeleton=skeleton, T_world_root=T, wxyz=wxyz, rate=120.0)


def loop_trc(path):
    lines = path.read_text().split("\n")[6:-1]
    values = np.full((len(lines), len(lines[0].split("\t"))), np.nan)
    for i, line in enumerate(lines):
        for j, cell in enumerate(line.split("\t")):
            if cell:
                values[i, j] = float(cell)
    return values


def loop_bvh(path):
    lines = path.read_text().split("MOTION\n")[1].split("\n")[2:-1]
    values = np.empty((len(lines), len(lines[0].split())))
    for i, line in enumerate(lines):
        for j, cell in enumerate(line.split()):
            values[i, j] = float(cell)
    return values


def loop_amc(path):
    lines = path.read_text().split("\n")[3:-1]
    frames = sum(line.isdigit() for line in lines)
    columns, values, frame = {}, np.empty((frames, 200)), -1
    for line in lines:
        if line.isdigit():
            frame += 1
            continue
        name, *cells = line.split()
        first = columns.setdefault(name, 6 * len(columns))
        for j, cell in enumerate(cells):
            values[frame, first + j] = float(cell)
    return values


def numbers_bvh(path):
    """The reader up to the point where the loop ends: an array of channels."""
    file = File(path, "bvh")
    data = file.text()
    head = bvh.MOTION_HEADER.search(data)
    columns = len(data[head.end() :].split(b"\n", 2)[1].split())
    return parse_table(file, data[head.end() :], columns=columns, delimiter=" ")


def numbers_amc(path):
    """The same for an AMC, its ASF included."""
    file = File(path, "amc")
    asf = read_asf(File(path.with_suffix(".asf"), "amc"))
    return read_frames(file, file.text(), asf, n_joints=31, declared=None)


def main():
    rng = np.random.default_rng(0)
    cases = [
        ("trc", sample_take(rng), marey.read, trc.load, loop_trc),
        ("bvh", sample_motion(rng), marey.read_motion, numbers_bvh, loop_bvh),
        ("amc", sample_motion(rng), marey.read_motion, numbers_amc, loop_amc),
    ]
    print(
        f"{'format':8}{'MB':>6}{'loop ms':>10}{'numbers ms':>12}{'ratio':>7}"
        f"{'read ms':>10}{'ratio':>7}{'MB/s':>7}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, thing, reader, numbers, loop in cases:
            path = Path(folder) / f"sample.{name}"
            marey.write(thing, path)
            size = path.stat().st_size / 1e6
            plain, part, read = (
                best(loop, path),
                best(numbers, path),
                best(reader, path),
            )
            print(
                f"{name:8}{size:6.2f}{1e3 * plain:10.1f}{1e3 * part:12.1f}"
                f"{plain / part:7.1f}{1e3 * read:10.1f}{plain / read:7.1f}"
                f"{size / read:7.0f}"
            )


if __name__ == "__main__":
    main()
