"""Small recordings in formats that marey reads but does not write, as others do."""

import io
import json
import struct

import h5py
import numpy as np

HTR = """[Header]
FileType htr
DataType HTRS
FileVersion 1
NumSegments 2
NumFrames 3
DataFrameRate 60
EulerRotationOrder ZYX
CalibrationUnits mm
RotationUnits Degrees
GlobalAxisofGravity Y
BoneLengthAxis Y
ScaleFactor 1.0
[SegmentNames&Hierarchy]
Hips GLOBAL
Thigh Hips
[BasePosition]
Hips 0 900 0 0 0 0 100
Thigh 100 -50 0 0 0 10 400
[Hips]
1 0 0 0 0 0 0 1
2 10 0 5 0 20 0 1
3 20 0 9 5 40 0 1
[Thigh]
1 0 0 0 30 0 0 1
2 0 0 0 45 0 0 1
3 0 0 0 60 0 15 1
[EndOfFile]
"""

MVNX = """<?xml version="1.0" encoding="UTF-8"?>
<mvnx version="4"><subject label="S" frameRate="60">
<segments>
<segment label="Pelvis"><points>
<point label="jHip"><pos_b>0 0.1 -0.05</pos_b></point></points></segment>
<segment label="Thigh"><points>
<point label="jHip"><pos_b>0 0 0</pos_b></point></points></segment>
</segments>
<joints><joint label="jHip"><connector1>Pelvis/jHip</connector1>
<connector2>Thigh/jHip</connector2></joint></joints>
<frames>
<frame index="0" type="normal"><orientation>1 0 0 0 1 0 0 0</orientation>
<position>0 0 1 0 0.1 0.95</position></frame>
<frame index="1" type="normal"><orientation>1 0 0 0 0.6 0.8 0 0</orientation>
<position>0.2 0 1 0.2 0.1 0.95</position></frame>
</frames></subject></mvnx>
"""

MOTIVE = """Format Version,1.21,Capture Frame Rate,120,Export Frame Rate,120,\
Rotation Type,Quaternion,Length Units,Meters,Coordinate Space,Global,\
Total Exported Frames,3
,,Rigid Body,Rigid Body,Rigid Body,Rigid Body,Rigid Body,Rigid Body,Rigid Body,\
Marker,Marker,Marker
,,Bat,Bat,Bat,Bat,Bat,Bat,Bat,Ann:LFHD,Ann:LFHD,Ann:LFHD
,,1,1,1,1,1,1,1,2,2,2
,,Rotation,Rotation,Rotation,Rotation,Position,Position,Position,\
Position,Position,Position
Frame,Time,X,Y,Z,W,X,Y,Z,X,Y,Z
0,0.000000,0,0,0,1,0.1,1.0,0.3,0.5,1.5,0.7
1,0.008333,0.6,0,0,0.8,0.2,1.1,0.4,,,
2,0.016667,0.8,0,0,0.6,0.3,1.2,0.5,0.6,1.6,0.8
"""

QUALISYS = """NO_OF_FRAMES\t3
NO_OF_CAMERAS\t7
NO_OF_MARKERS\t2
FREQUENCY\t100
NO_OF_ANALOG\t0
DESCRIPTION\t--
DATA_INCLUDED\t3D
MARKER_NAMES\thand_top\tC7
Frame\tTime\thand_top X\thand_top Y\thand_top Z\tC7 X\tC7 Y\tC7 Z
1\t0.00000\t1.5\t20.25\t900.0\t-4.0\t5.0\t1400.0
2\t0.01000\t2.5\t21.25\t901.0\t\t\t
3\t0.02000\t3.5\t22.25\t902.0\t-6.0\t7.0\t1402.0
"""


KEYPOINTS = """scorer,DLC,DLC,DLC,DLC,DLC,DLC,DLC,DLC
bodyparts,nose,nose,nose,nose,tail,tail,tail,tail
coords,x,y,z,likelihood,x,y,z,likelihood
0,1.0,2.0,3.0,0.9,4.0,5.0,6.0,0.8
1,1.5,2.5,3.5,0.95,,,,0.1
"""


VSK = """<?xml version="1.0" standalone="yes"?>
<KinematicModel><Parameters><Parameter NAME="Hip" VALUE="1e2"/></Parameters>
<Skeleton>
<Segment NAME="Pelvis" POSITION="0 0 900" ORIENTATION="0 0 0.5"><JointFree/>
<Segment NAME="Femur" POSITION="Hip 0 0" ORIENTATION="0.1 0 0"><JointBall/>
<Segment NAME="Tibia" POSITION="0 0 -400" ORIENTATION="0 0 0">
<JointHinge AXIS="0 2 0"/></Segment></Segment></Segment>
</Skeleton>
<MarkerSet><Markers><Marker NAME="LFHD" SEGMENT="Femur" POSITION="1 2 3"/></Markers>
</MarkerSet></KinematicModel>
"""


def trb():
    """Two markers in three frames, one of them unseen once, in millimetres."""

    def item(tag, body):
        body += b" " * (-len(body) % 4)
        return struct.pack("<HH", tag, len(body) // 4) + body

    items = item(0x0101, b"\1\1\1\1") + item(0x0103, struct.pack("<f", 100.0))
    for number, label in enumerate((b"Top.Head", b"C7"), 1):
        items += item(0x010C, struct.pack("<HH", number, 7) + label + b"\0")
    words = (12 + len(items)) // 4
    data = struct.pack("<IIHH", 0, 2**32 - 1, words >> 16, words & 0xFFFF) + items
    for frame in (1, 2, 3):
        positions = {1: (10.0 * frame, 20.0, 1700.0), 2: (5.0, 6.0 * frame, 1400.0)}
        seen = [(n, xyz) for n, xyz in positions.items() if (n, frame) != (2, 2)]
        data += struct.pack("<IHHHH", 0, 0x0600, frame, 3 + 6 * len(seen), 0)
        for number, xyz in seen:
            data += struct.pack("<HH3fff", number, 0, *xyz, 0.5, 0.0)
    return data


def openpose():
    """Three frames of two keypoints in one file, one of them not found once."""
    nose, neck = [0.1, -1.6, 2.0, 0.9], [0.1, -1.4, 2.0, 0.8]
    rows = [[*nose, *neck], [*nose, 0, 0, 0, 0], [*neck, *nose]]
    people = [{"person_id": [-1], "pose_keypoints_3d": row} for row in rows]
    frames = [{"version": 1.3, "people": [person]} for person in people]
    return json.dumps({"fps": 30, "frames": frames}, indent=1).encode()


def markerless():
    """Three frames of two segments, one of them not found once."""
    pelvis, thigh = [100.0, 200.0, 950.0], [100.0, 300.0, 900.0]
    rows = [[pelvis, thigh], [pelvis, None], [thigh, pelvis]]
    content = {
        "startTime": 0,
        "frameRate": 85,
        "labels": [],
        "segments": [{"name": name, "length": 300} for name in ("Pelvis", "RThigh")],
        "frames": [
            {
                "frame": n,
                "markers": [],
                "segmentPos": row,
                "segmentRot": [[0, 0, 1]] * 2,
            }
            for n, row in enumerate(rows, 1)
        ],
    }
    return json.dumps(content, indent=1).encode()


def sleap():
    """Five frames of two animals with three nodes, as SLEAP's analysis files."""
    memory = io.BytesIO()
    tracks = np.random.default_rng(3).normal(size=(2, 3, 3, 5))
    tracks[1, :, 0, 2] = np.nan
    with h5py.File(memory, "w") as file:
        file.create_dataset("tracks", data=tracks, compression="gzip")
        file["node_names"] = [b"nose", b"neck", b"tail"]
        file["track_names"] = [b"ann", b"bob"]
        file["point_scores"] = np.linspace(0.0, 1.0, 30).reshape(2, 3, 5)
    return memory.getvalue()


FILES = {
    "hdf5": sleap(),
    "openpose": openpose(),
    "markerless": markerless(),
    "keypoints": KEYPOINTS.encode(),
    "trb": trb(),
    "htr": HTR.encode(),
    "mvnx": MVNX.encode(),
    "vsk": VSK.encode(),
    "motive": MOTIVE.encode(),
    "qualisys": QUALISYS.encode(),
}
"""Content of one file by the name of its format."""
