"""
Read and write
==============

Read a recording, print its properties, write a part in another format.
"""

import tempfile
from pathlib import Path

from matplotlib.figure import Figure

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

# %%
# Heights of the markers on the left side. A position that was not seen is NaN, which
# leaves a gap in the curve.
figure = Figure(figsize=(7.0, 3.0))
axes = figure.subplots()
axes.plot(left.times, left.points[..., 2], linewidth=1.0)
axes.set_xlabel("time, s")
axes.set_ylabel("height, m")
figure
