"""Text and TRB files made to harm: counts that lie, lines without end, cycles."""

import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import marey

HUGE = 10**12


@dataclass(frozen=True)
class Hostile:
    """A file, what reads it, and what the error or the codes of the findings say."""

    name: str
    content: Callable[[int], str | bytes]
    says: str
    read: Callable = marey.read

    def __str__(self):
        return f"{self.name}: {self.says}"


# --- text ----------------------------------------------------------------------------


def bvh(rows, *, frames=1, channels="1 Zrotation", inside=""):
    return (
        f"HIERARCHY\nROOT a\n{{\nOFFSET 0 0 0\nCHANNELS {channels}\n{inside}}}\n"
        f"MOTION\nFrames: {frames}\nFrame Time: 0.01\n{rows}"
    )


def joints(names):
    return "".join(f"JOINT {n} {{ OFFSET 1 0 0 CHANNELS 0 }}\n" for n in names)


def trc(rows, *, frames=1, markers=1, labels="M"):
    return (
        "PathFileType\t4\t(X/Y/Z)\ta.trc\nDataRate\tNumFrames\tNumMarkers\tUnits\n"
        f"100\t{frames}\t{markers}\tmm\nFrame#\tTime\t{labels}\n\t\tX1\tY1\tZ1\n{rows}"
    )


TRC_ROW = "1\t0\t1\t2\t3\n"
CSV = "time,a.x,a.y,a.z\n"
CSV_ROW = "0.00,1.0,2.0,3.0\n"


def storage(rows, **fields):
    head = {"nRows": 1, "nColumns": 2, "DataType": "Vec3", "Units": "m"} | fields
    return "\n".join([*(f"{k}={v}" for k, v in head.items()), "endheader", rows])


def qualisys(**fields):
    head = {"NO_OF_FRAMES": 1, "NO_OF_MARKERS": 1, "FREQUENCY": 100} | fields
    lines = [f"{key}\t{value}" for key, value in head.items()]
    return "\n".join([*lines, "DATA_INCLUDED\t3D", "MARKER_NAMES\ta", "1\t2\t3", ""])


def motive(**fields):
    head = {"Format Version": "1.23", "Total Exported Frames": 1} | fields
    rows = [
        ",".join(f"{key},{value}" for key, value in head.items()),
        "",
        ",Type,Marker,Marker,Marker",
        ",Name,a,a,a",
        ",ID,1,1,1",
        ",,Position,Position,Position",
        "Frame,Time (Seconds),X,Y,Z",
        "0,0.0,1,2,3\n",
    ]
    return "\n".join(rows)


TEXTS = [
    Hostile(
        "a.bvh", lambda n: bvh("1\n" * 5, frames=HUGE), "frames-missing|frames-extra"
    ),
    Hostile("a.bvh", lambda n: bvh("1\n", channels=f"{HUGE} X"), "0 to 64 CHANNELS"),
    Hostile("a.bvh", lambda n: bvh("1\n" * (n // 2)), "frames that fill the file"),
    Hostile("a.bvh", lambda n: bvh("1" * 30 + "\n" * (n // 2)), "within 1e.12"),
    Hostile("a.bvh", lambda n: bvh(("1" * 30 + "\n") * (n // 31)), "within 1e.12"),
    Hostile("a.bvh", lambda n: bvh("\n" * n), "a line of channels"),
    Hostile("a.bvh", lambda n: bvh("1\n", inside=joints("a" * 9999)), "labels-repeat"),
    Hostile("a.bvh", lambda n: bvh("", inside="{" * n), "before {"),
    Hostile("a.trc", lambda n: trc(TRC_ROW, frames=HUGE), "frames-missing"),
    Hostile("a.trc", lambda n: trc(TRC_ROW, markers=HUGE), "markers-mismatch"),
    Hostile("a.trc", lambda n: trc("1\t" * (n // 2)), "at most 100000 markers"),
    Hostile(
        "a.trc", lambda n: trc("1\t\n" * (n // 3)), "frames-extra|lines of 5 cells"
    ),
    Hostile("a.trc", lambda n: trc("\n" * n), "at least one frame"),
    Hostile(
        "a.trc",
        lambda n: trc(TRC_ROW, labels="M\t\t\t" * (n // 4)),
        "at most 100000|lines of",
    ),
    Hostile(
        "a.trc",
        lambda n: trc("1\t0" + "\t1" * 60_000 + "\n", labels="M\t\t\t" * 20_000),
        "labels-repeated",
    ),
    Hostile("a.csv", lambda n: CSV + CSV_ROW * 5 + "0," * (n // 2), "cells"),
    Hostile(
        "a.csv", lambda n: CSV + CSV_ROW * 5 + "0\n" * (n // 2), "unit-assumed|lines of"
    ),
    Hostile("a.csv", lambda n: CSV + CSV_ROW * 5 + "\n" * n, "unit-assumed"),
    Hostile("a.sto", lambda n: storage("time\ta\n0\t1,2,3\n", nRows=HUGE), "frames-mi"),
    Hostile("a.sto", lambda n: storage("time\ta\n0\t1,2,3\n", nColumns=HUGE), "column"),
    Hostile("a.sto", lambda n: storage("time" + "\ta" * (n // 2)), "at most"),
    Hostile("a.tsv", lambda n: qualisys(NO_OF_FRAMES=HUGE), "frames-missing"),
    Hostile("a.tsv", lambda n: qualisys(NO_OF_MARKERS=HUGE), "."),
    Hostile(
        "a.csv", lambda n: motive(**{"Total Exported Frames": HUGE}), "frames-missing"
    ),
]


# --- segments ------------------------------------------------------------------------


def htr(parents, motion, **fields):
    head = {
        "FileType": "htr",
        "NumSegments": len(parents),
        "NumFrames": 1,
        "DataFrameRate": 60,
        "EulerRotationOrder": "ZYX",
        "CalibrationUnits": "mm",
        "RotationUnits": "Degrees",
        "GlobalAxisofGravity": "Y",
    } | fields
    return "\n".join(
        [
            "[Header]",
            *(f"{key} {value}" for key, value in head.items()),
            "[SegmentNames&Hierarchy]",
            *(f"{child}\t{parent}" for child, parent in parents.items()),
            "[BasePosition]",
            *(f"{child} 0 0 1 0 0 0 1" for child in parents),
            motion,
        ]
    )


ONE = {"a": "GLOBAL"}
STILL = "0 0 0 0 0 0 1\n"


def ring(count):
    """Segments of which each hangs on the next, and the last on the first."""
    return {f"s{i}": f"s{(i + 1) % count}" for i in range(count)}


def chain(count):
    """Segments of which each hangs on the next: the root comes last."""
    return {f"s{i}": f"s{i + 1}" for i in range(count - 1)} | {
        f"s{count - 1}": "GLOBAL"
    }


def asf(bones=("b",), pairs=("root b",), more=""):
    listed = "".join(
        f"begin\nname {name}\ndirection 1 0 0\nlength 1\naxis 0 0 0 XYZ\nend\n"
        for name in bones
    )
    return (
        ":units\nlength 0.45\nangle deg\n:root\norder TX TY TZ RX RY RZ\naxis XYZ\n"
        f"position 0 0 0\norientation 0 0 0\n{more}:bonedata\n{listed}"
        ":hierarchy\nbegin\n" + "\n".join(pairs) + "\nend\n"
    )


def trb(labels, frames):
    items = b"".join(
        struct.pack("<HHHH4s", 0x010C, 2, number, 7, label)
        for number, label in enumerate(labels, 1)
    )
    words = (12 + len(items)) // 4
    return struct.pack("<iiHH", 0, -1, words >> 16, words & 0xFFFF) + items + frames


def empty_frames(count):
    numbers = np.zeros((count, 6), "<u2")
    numbers[:, 2], numbers[:, 3], numbers[:, 4] = 0x0600, np.arange(count) % 2**16, 3
    return numbers.tobytes()


motion, skeleton = marey.read_motion, marey.read_skeleton
BODIES = [
    Hostile("a.htr", lambda n: htr(ONE, "[a]\n1 " + STILL, NumFrames=HUGE), "frames-m"),
    Hostile("a.htr", lambda n: htr(ONE, "[a]\n1 " + STILL, NumSegments=HUGE), "segmen"),
    Hostile("a.htr", lambda n: htr(ONE, f"[a]\n1 {STILL}{HUGE} {STILL}"), "that fill"),
    Hostile("a.htr", lambda n: htr(ONE, f"[a]\nnan {STILL}"), "numbered upwards"),
    Hostile("a.htr", lambda n: htr(ONE, f"Frame {10**8}:\na {STILL}" * 2), "upwards"),
    Hostile(
        "a.htr",
        lambda n: htr(ONE, "".join(f"Frame {i}:\na {STILL}" for i in range(n // 30))),
        "frames-extra",
    ),
    Hostile("a.htr", lambda n: htr(ring(2500), "[a]\n1 " + STILL), "a loop"),
    Hostile("a.htr", lambda n: htr({"a": "a"}, "[a]\n1 " + STILL), "a loop"),
    Hostile("a.htr", lambda n: htr(ring(10_001), ""), "at most 10000"),
    Hostile(
        "a.htr",
        lambda n: htr(chain(5_000), "[s0]\n1 " + STILL),
        "frames-missing",
        motion,
    ),
    Hostile("a.htr", lambda n: htr(ONE, "[a]\n" * (n // 4)), "another segment"),
    Hostile("a.asf", lambda n: asf(more="a\n" * (n // 2)), "at most", skeleton),
    Hostile("a.asf", lambda n: asf(bones="b" * 9), "a new name", skeleton),
    Hostile("a.asf", lambda n: asf(bones=["root"]), "a new name", skeleton),
    Hostile("a.asf", lambda n: asf(bones="bc", pairs=["b c", "c b"]), ".", skeleton),
    Hostile("a.asf", lambda n: asf(pairs=["b b"]), ".", skeleton),
    Hostile(
        "a.amc",
        lambda n: ":DEGREES\n1\nb\n" + "2\n" * (n // 2),
        "lines of|that fill",
        motion,
    ),
    Hostile(
        "a.amc",
        lambda n: ":DEGREES\n" + "1\nb\n" * (n // 4),
        "that fill|lines of",
        motion,
    ),
    Hostile(
        "a.amc", lambda n: ":DEGREES\n1\nroot" + " 1" * (n // 2), "one num", motion
    ),
    Hostile("a.trb", lambda n: trb([b"a"], empty_frames(n // 12)), "unit-assumed"),
    Hostile(
        "a.trb", lambda n: trb([b"a"] * 9, empty_frames(n // 12)), "that fill|unit"
    ),
    Hostile(
        "a.trb", lambda n: trb([b"a"] * 60_000, empty_frames(n // 12)), "that fill"
    ),
    Hostile("a.trb", lambda n: trb([], b"\0" * n), "names of markers|where the frames"),
    Hostile("a.trb", lambda n: trb([b"a"], b"\0" * n), "a frame, tag"),
]
