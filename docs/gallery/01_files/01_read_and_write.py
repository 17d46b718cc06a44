"""
Read and write
==============

Read a recording, print its properties, write a part in another format.
"""

import tempfile
from pathlib import Path

import marey

folder = Path(tempfile.mkdtemp())
marey.write(
    marey.synth.human(seed=1).record(motion="walk", gaps=0.05), folder / "walk.c3d"
)

take = marey.read(folder / "walk.c3d")
print(f"{len(take.labels)} markers, {take.n_frames} frames at {take.rate:g} Hz")
print(f"unit {take.source.unit}, up {take.source.up}, seen {take.seen.mean():.1%}")

left = marey.read(folder / "walk.c3d", markers=["L*"], frames=(0, 120))
for finding in marey.write(left, folder / "left.trc"):
    print(finding)
print(sorted(path.name for path in folder.iterdir()))
