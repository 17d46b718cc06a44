"""XML, JSON and archives made to harm: deep, wide, or not what they say."""

import io
import json
import struct
import zipfile

import numpy as np
from hostile_text import HUGE, Hostile

import marey

skeleton = marey.read_skeleton


# --- trees ---------------------------------------------------------------------------


def mvnx(frames="", *, segments="", attributes=""):
    return (
        f'<mvnx><subject frameRate="60"{attributes}><segments><segment label="a"/>'
        f"{segments}</segments><frames>{frames}</frames></subject></mvnx>"
    )


def vsk(*, parameters="", segments="", attributes=""):
    return (
        f"<KinematicModel><Parameters>{parameters}</Parameters><Skeleton><Segment "
        f'NAME="a"{attributes}>{segments}</Segment></Skeleton></KinematicModel>'
    )


def many(count):
    return "".join(f' a{i:x}=""' for i in range(count))


SHOT = (
    "<frame index='{}'><orientation>1 0 0 0</orientation>"
    "<position>0 0 0</position></frame>"
)
LAUGHS = '<!DOCTYPE a [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>'


def figure(joints):
    return json.dumps({"marey_skeleton": 1, "joints": joints, "markers": []})


def joint(name, parent):
    still = dict.fromkeys(("axes", "limits", "covariance", "length_sd"))
    kind = "ball" if parent else "root"
    return {"name": name, "parent": parent, "kind": kind, "offset": [0, 0, 1]} | still


def marey_json(content):
    return zipped({"marey.json": f'{{"marey": 1, "content": {content}}}'})


TREES = [
    Hostile("a.mvnx", lambda n: mvnx(attributes=many(n // 9)), "tags and comments"),
    Hostile("a.mvnx", lambda n: mvnx(f"<!--{'-a' * (n // 2)}-->"), "tags and comments"),
    Hostile("a.mvnx", lambda n: mvnx(segments="<a/>" * (n // 4)), "at most 100000"),
    Hostile("a.mvnx", lambda n: mvnx("<frame type='tpose'/>" * (n // 21)), "of type"),
    Hostile("a.mvnx", lambda n: mvnx(SHOT.format(1) * (n // 90)), "frames-missing"),
    Hostile(
        "a.mvnx", lambda n: mvnx(SHOT.format(HUGE) + SHOT.format(1)), "frames-miss"
    ),
    Hostile("a.mvnx", lambda n: mvnx(SHOT.format(1) + "<frame><position>"), "mismatch"),
    Hostile("a.mvnx", lambda n: mvnx("&#49;" * (n // 5)), "a frame of type"),
    Hostile(
        "a.mvnx",
        lambda n: mvnx(
            SHOT.format(1),
            segments="".join(f'<segment label="{i}"/>' for i in range(1000)),
        ),
        "1 to 1000 segments",
    ),
    Hostile("a.vsk", lambda n: vsk(attributes=many(n // 9)), "tags and", skeleton),
    Hostile("a.vsk", lambda n: vsk(parameters="<a/>" * (n // 4)), "100000", skeleton),
    Hostile("a.vsk", lambda n: vsk(segments="<Segment/>"), "another name", skeleton),
    Hostile(
        "a.vsk",
        lambda n: vsk(
            segments="".join(f'<Segment NAME="{i}"/>' for i in range(10_000))
        ),
        "at most 10000",
        skeleton,
    ),
    Hostile("a.vsk", lambda n: LAUGHS + vsk(), "document type", skeleton),
    Hostile(
        "a.skel.json", lambda n: figure([]).replace("[]", "[" * n), "JSON", skeleton
    ),
    Hostile(
        "a.skel.json",
        lambda n: figure([]).replace("[]", '{"a":' * (n // 5)),
        "JSON",
        skeleton,
    ),
    Hostile("a.skel.json", lambda n: figure([[]] * (n // 4)), ".", skeleton),
    Hostile("a.skel.json", lambda n: figure([joint("a", "a")]), "root", skeleton),
    Hostile(
        "a.skel.json",
        lambda n: figure([joint("a", None), joint("b", "c"), joint("c", "b")]),
        "every parent before",
        skeleton,
    ),
    Hostile(
        "a.skel.json",
        lambda n: figure([joint("a", None)] + [joint("a", "a")] * (n // 200)),
        "unique",
        skeleton,
    ),
    Hostile("a.marey", lambda n: marey_json("[" * n), "JSON", marey.load),
    Hostile(
        "a.marey", lambda n: marey_json('{"map":{"a":' * (n // 12)), ".", marey.load
    ),
    Hostile(
        "a.marey", lambda n: marey_json(f"[{'[],' * (n // 3)}[]]"), ".", marey.load
    ),
]


# --- archives ------------------------------------------------------------------------


def zipped(entries, method=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


POINTS = npy(np.ones((2, 1, 3)))


def packed(size):
    """Zeros that deflate to nothing."""
    return zipped({"points.npy": bytes(100 * size)}, zipfile.ZIP_DEFLATED)


def overlapping(size):
    """Many entries of the directory that are all the same bytes of the file."""
    data = zipped({"points.npy": bytes(size)})
    start = data.rindex(b"PK\1\2")
    end = data.rindex(b"PK\5\6")
    entry, rest = data[start:end], data[end:]
    count = 1000
    counts = struct.pack("<HHI", count, count, count * len(entry))
    return data[:start] + entry * count + rest[:8] + counts + rest[16:]


def lying(size):
    """An entry that says it is short, and unpacks to more."""
    data = packed(size)
    at = data.rindex(b"PK\1\2") + 24
    return data[:at] + struct.pack("<I", 128) + data[at + 4 :]


def shaped(shape):
    """An array that says it has another shape."""
    return zipped({"points.npy": POINTS.replace(b"(2, 1, 3)", shape)})


def garbage(size):
    noise = np.random.default_rng(5).integers(0, 256, size, dtype=np.uint8).tobytes()
    return b"PAR1" + noise


ARCHIVES = [
    Hostile("a.npz", packed, "unpacked"),
    Hostile("a.npz", overlapping, "within the|unpacked|whole zip"),
    Hostile("a.npz", lying, "whole zip|plain NumPy"),
    Hostile("a.npz", lambda n: shaped(b"(999999999999, 1, 3)"), "plain NumPy"),
    Hostile("a.npz", lambda n: shaped(b"(-2, -1, 3)"), "plain NumPy"),
    Hostile("a.npz", lambda n: shaped(b"(" + b"1," * 4000 + b")"), "plain NumPy"),
    Hostile(
        "a.npz", lambda n: zipped({"points.npy": b"\x93NUMPY\1\0" + b"\xff" * n}), "Num"
    ),
    Hostile(
        "a.npz", lambda n: zipped({"points.npy": zipped({"a.npy": POINTS})}), "Num"
    ),
    Hostile(
        "a.npz",
        lambda n: zipped({"points.npy": npy(np.array([{}], dtype=object))}),
        "plain NumPy",
    ),
    Hostile("a.npz", lambda n: zipped({"../points.npy": POINTS}), r"points \(frame"),
    Hostile(
        "a.npz",
        lambda n: zipped({f"{i}.npy": "" for i in range(n // 500)}),
        "plain NumPy",
    ),
    Hostile("a.npz", lambda n: packed(n // 200)[:-30], "zip"),
    Hostile("a.parquet", garbage, "."),
    Hostile("a.parquet", lambda n: garbage(n) + b"PAR1", "."),
    Hostile(
        "a.parquet", lambda n: garbage(n) + struct.pack("<I4s", n // 2, b"PAR1"), "."
    ),
    Hostile(
        "a.parquet", lambda n: garbage(9) + struct.pack("<I4s", 2**31, b"PAR1"), "."
    ),
    Hostile("a.parquet", lambda n: b"PAR1" * (n // 4), "."),
]
