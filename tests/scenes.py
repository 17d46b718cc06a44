"""Scenes read back the slow and plain way, as their format is written down."""

import base64
import json
import re
import struct
import zlib

import numpy as np


def unpacked(blob):
    """The header of a blob and its arrays by key."""
    raw = zlib.decompress(blob)
    about_all = header(blob)
    first = 8 + int.from_bytes(raw[4:8], "little")
    assert first % 8 == 0
    arrays = {}
    for key, about in about_all["arrays"].items():
        assert about["offset"] % 8 == 0
        start = first + about["offset"]
        data = raw[start : start + about["bytes"]]
        assert len(data) == about["bytes"]
        arrays[key] = decoded(data, about)
    return about_all, arrays


def header(blob):
    raw = zlib.decompress(blob)
    assert raw[:4] == b"MRY1"
    (length,) = struct.unpack("<I", raw[4:8])
    return json.loads(raw[8 : 8 + length])


def decoded(data, about):
    shape = tuple(about["shape"])
    if about["coding"] == "u8":
        return np.array(list(data), dtype=int).reshape(shape)
    if about["coding"] == "f32":
        count = len(data) // 4
        return np.array(struct.unpack(f"<{count}f", data)).reshape(shape)
    assert about["coding"] == "track"
    frames, items = shape[0], int(np.prod(shape[1:]))
    n = frames * items
    values = np.zeros((frames, items))
    for item in range(items):
        q = 0
        for frame in range(frames):
            i = item * frames + frame
            z = sum(data[plane * n + i] << (8 * plane) for plane in range(4))
            q += (z >> 1) ^ -(z & 1)
            q = (q + 2**31) % 2**32 - 2**31
            values[frame, item] = q * about["step"]
    return values.reshape(shape)


def mailed(path):
    """The scene of a page that was written, unpacked."""
    return unpacked(mailed_blob(path))


def mailed_blob(path):
    """The scene of a page that was written."""
    text = path.read_text(encoding="utf-8")
    (data,) = re.findall(r'id="scene">([A-Za-z0-9+/=]*)</script>', text)
    return base64.b64decode(data)
