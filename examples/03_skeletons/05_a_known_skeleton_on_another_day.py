"""
A known skeleton on another day
===============================

The skeleton of a performer is kept. On another day the markers sit elsewhere:
only their places are estimated, and the bones stay.
"""

import tempfile
from pathlib import Path

import numpy as np

import marey

folder = Path(tempfile.mkdtemp())
performer = marey.synth.human(seed=7)
settings = {"rate": 60.0, "markers": "set53", "noise": 1e-3}
first = performer.record("exercise", seconds=10.0, seed=1, **settings)
marey.write(marey.solve(first).skeleton, folder / "s07.skel.json")

# %%
# The next day:
second = performer.record("walk", seconds=4.0, seed=2, **settings)
known = marey.solve(second, skeleton=folder / "s07.skel.json")
kept = marey.read_skeleton(folder / "s07.skel.json")
same = np.allclose(known.skeleton.offset, kept.offset, atol=1e-6)
print("bones are kept:", same)
for finding in known.report.findings:
    print(finding)

# %%
# The walk, beside the true one in yellow:
stills = marey.plot.skeleton(known, truth=second)
stills
