"""
A table with a column map
=========================

Read a table of a magnetic sensor by means of a column map.
"""

import tempfile
from pathlib import Path

import marey

folder = Path(tempfile.mkdtemp())
(folder / "tracker.csv").write_text(
    "stamp,s1,s2,s3,a1,a2,a3\n0.00,10.0,0.5,3.0,0,0,0\n0.01,10.1,0.5,3.0,5,0,0\n"
)
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
print(take.sensor_names, take.rate, take.T_world_sensor[1, 0])
