"""Reading a 170 MB C3D file: time and memory beside ezc3d, in one run.

Every reader runs in a process of its own, so that its peak memory is its own. The file
is made in another one: a process begins with the peak of the one that started it.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from marey.io.contract import WriteOptions
from marey.io.formats.c3d import write_take
from marey.take import Take

MARKERS, FRAMES = 265, 40_000
REPEATS = 3

READERS = {
    "marey.io.formats.c3d.load": "from marey.io.formats.c3d import load as read",
    "marey.read": """from pathlib import Path
from marey.io.contract import File
from marey.io.formats.c3d import read_take
def read(path): return read_take(File(Path(path), "c3d"))""",
    "ezc3d": "from ezc3d import c3d as read",
}

CHILD = """
import json, resource, sys, time
{statement}
path, start = sys.argv[1], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
seconds = []
for _ in range({repeats}):
    begin = time.perf_counter()
    kept = read(path)
    seconds.append(time.perf_counter() - begin)
    del kept
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([min(seconds), (peak - start) * 1024]))
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.c3d"
        subprocess.run([sys.executable, __file__, str(path)], check=True)
        size = path.stat().st_size
        found = {name: measure(line, path) for name, line in READERS.items()}
    reference = found["ezc3d"][0]
    print(f"C3D, {size / 1e6:.0f} MB, {MARKERS} markers x {FRAMES} frames")
    print(f"{'reader':>18} {'s':>8} {'MB/s':>8} {'x ezc3d':>8} {'memory / file':>14}")
    for name, (seconds, memory) in found.items():
        print(
            f"{name:>18} {seconds:8.3f} {size / 1e6 / seconds:8.0f} "
            f"{reference / seconds:8.1f} {memory / size:14.2f}"
        )


def make(path):
    rng = np.random.default_rng(0)
    points = rng.normal(1.0, 0.3, (FRAMES, MARKERS, 3))
    points[rng.random((FRAMES, MARKERS)) < 0.02] = np.nan
    labels = tuple(f"M{i:03}" for i in range(MARKERS))
    take = Take(rate=100.0, points=points, labels=labels)
    with path.open("wb") as file:
        file.writelines(write_take(take, WriteOptions())[""])


def measure(statement, path):
    code = CHILD.format(statement=statement, repeats=REPEATS)
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        make(Path(sys.argv[1]))
    else:
        main()
