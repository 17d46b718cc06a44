"""
Export to other programs
========================

One solution leaves as FBX and glTF with a skinned body, and as a model for MuJoCo. Each
writer returns what its format cannot keep.
"""

import tempfile
from pathlib import Path

import marey

folder = Path(tempfile.mkdtemp())
take = marey.synth.human(seed=4).record(
    "walk", seconds=2.0, rate=60.0, markers="set53", noise=1e-3
)
solution = marey.solve(take)
stills = marey.plot.skeleton(solution)
stills

# %%
# Bones named as another program expects them, in a T-pose:
marey.write(solution, folder / "walk.fbx", names="mixamo", rest="t")
marey.write(solution, folder / "walk.glb", names="vrm")

# %%
# A simulator gets masses and inertias, too, and the motion beside the model.
for finding in marey.write(solution, folder / "walk.mjcf"):
    print(finding)
for path in sorted(folder.iterdir()):
    print(f"{path.name:16} {path.stat().st_size / 1e3:7.0f} kB")
