"""
A table with a column map
=========================

Read a table of a magnetic sensor by means of a column map.
"""

import tempfile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import marey

folder = Path(tempfile.mkdtemp())
rows = ["stamp,s1,s2,s3,a1,a2,a3"]
for t in np.arange(200) / 100.0:
    x, z, turn = 10.0 + 3.0 * np.sin(4.0 * t), 3.0 * np.cos(4.0 * t), 30.0 * np.sin(t)
    rows.append(f"{t:.2f},{x:.3f},0.5,{z:.3f},{turn:.2f},0,0")
(folder / "tracker.csv").write_text("\n".join(rows))
(folder / "map.toml").write_text(
    """
unit = "in"
time = "stamp"
[sensors.wrist]
position = ["s1", "s2", "s3"]
euler = ["a1", "a2", "a3"]
order = "ZYX"
"""
)
take = marey.read(folder / "tracker.csv", columns=folder / "map.toml")
print(take.sensor_names, take.rate)
print(np.round(take.T_world_sensor[1, 0], 4))

# %%
# Inches of the table are metres of the take:
figure = Figure(figsize=(7.0, 3.0))
axes = figure.subplots()
axes.plot(take.times, take.T_world_sensor[:, 0, :3, 3], label=["x", "y", "z"])
axes.set_xlabel("time, s")
axes.set_ylabel("position of the wrist, m")
axes.legend()
figure
