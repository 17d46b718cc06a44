"""Other ways to make, break and read C3D files, against which ours is checked."""

import json
import os
import struct
import subprocess
import sys

import numpy as np

BLOCK = 512
PROCESSORS = {"intel": 84, "dec": 85, "mips": 86}


def short(value, processor):
    return struct.pack(">H" if processor == "mips" else "<H", value & 0xFFFF)


def real(value, processor):
    """One 32-bit real; a VAX one has its words exchanged and four times the value."""
    if processor == "mips":
        return struct.pack(">f", value)
    if processor == "intel":
        return struct.pack("<f", value)
    low, high = struct.unpack("<HH", struct.pack("<f", 4.0 * value))
    return struct.pack("<HH", high, low)


def record(name, group, body, processor):
    name = name.encode()
    head = struct.pack("bb", len(name), group) + name
    return head + short(2 + len(body), processor) + body


def parameter(name, group, value, processor):
    """A record whose type follows from the value: text, numbers, lists of them."""
    if isinstance(value, str):
        body = bytes([0xFF, 1, len(value)]) + value.encode()
    elif isinstance(value, list) and isinstance(value[0], str):
        width = max(map(len, value))
        texts = b"".join(text.ljust(width).encode() for text in value)
        body = bytes([0xFF, 2, width, len(value)]) + texts
    elif isinstance(value, np.ndarray):
        reals = b"".join(real(v, processor) for v in value.ravel())
        body = bytes([4, value.ndim, *value.shape[::-1]]) + reals
    elif isinstance(value, list):
        words = b"".join(short(v, processor) for v in value)
        body = bytes([2, 1, len(value)]) + words
    elif isinstance(value, int):
        body = bytes([2, 0]) + short(value, processor)
    else:
        body = bytes([4, 0]) + real(value, processor)
    return record(name, group, body + b"\0", processor)


def section(groups, processor):
    """The parameter section of {group: {name: value}}."""
    records = b""
    for number, (group, members) in enumerate(groups.items(), start=1):
        records += record(group, -number, b"\0", processor)
        for name, value in members.items():
            records += parameter(name, number, value, processor)
    blocks = -(-(4 + len(records) + 2) // BLOCK)
    head = bytes([1, 0x50, blocks, PROCESSORS[processor]])
    return (head + records).ljust(blocks * BLOCK, b"\0")


def c3d_bytes(
    counts,
    words,
    *,
    processor="intel",
    floats=True,
    scale=0.25,
    rate=50.0,
    first=1,
    analog=None,
    samples=1,
    point=None,
    groups=None,
):
    """A C3D file of integer steps, so that every encoding can hold the same points.

    Args:
        counts: (frame, point, 3) integers, in units of `scale`.
        words: (frame, point) integers of residual and cameras, -1 = unseen.
        analog: (frame, samples * channels) integers.
        point: More parameters of the POINT group.
        groups: More groups.
    """
    n_frames, n_points = counts.shape[:2]
    analog = np.zeros((n_frames, 0), int) if analog is None else analog
    signed = -scale if floats else scale
    members = {
        "USED": n_points,
        "FRAMES": min(n_frames, 0xFFFF),
        "SCALE": signed,
        "RATE": float(rate),
        "DATA_START": 0,
        "LABELS": [f"M{i}" for i in range(n_points)],
        "UNITS": "mm",
        "X_SCREEN": "+X",
        "Y_SCREEN": "+Z",
        **(point or {}),
    }
    all_groups = {"POINT": {k: v for k, v in members.items() if v is not None}}
    all_groups["ANALOG"] = {"USED": analog.shape[1] // samples}
    all_groups.update(groups or {})
    size = len(section(all_groups, processor))
    data_block = 2 + size // BLOCK
    if "DATA_START" in all_groups["POINT"]:
        all_groups["POINT"]["DATA_START"] = data_block
    fields = [n_points, analog.shape[1], first, min(first + n_frames - 1, 0xFFFF), 0]
    head = bytes([2, 0x50]) + b"".join(short(f, processor) for f in fields)
    head += real(signed, processor) + short(data_block, processor)
    head += short(samples, processor) + real(rate, processor)
    quads = np.concatenate([counts, words[..., None]], axis=-1)
    if floats:
        quads = quads * np.array([scale, scale, scale, 1.0])
    rows = np.concatenate([quads.reshape(n_frames, -1), analog], axis=1).ravel()
    data = packed(rows, processor, floats=floats)
    return head.ljust(BLOCK, b"\0") + section(all_groups, processor) + data


def packed(numbers, processor, *, floats):
    """Numbers of frames, all at once; `real` and `short` are the naive version."""
    if not floats:
        return numbers.astype(">i2" if processor == "mips" else "<i2").tobytes()
    if processor == "dec":
        pairs = (4.0 * numbers).astype("<f4").view("<u2").reshape(-1, 2)
        return pairs[:, ::-1].tobytes()
    return numbers.astype(">f4" if processor == "mips" else "<f4").tobytes()


def mutated(data, rng, stop):
    """The file with one to eight bytes changed before byte `stop`."""
    out = bytearray(data)
    for _ in range(rng.integers(1, 9)):
        edge = (0, 1, 2, 0x7F, 0x80, 0xFF)
        value = rng.integers(256) if rng.random() < 0.5 else rng.choice(edge)
        out[rng.integers(stop)] = value
    return bytes(out)


CHILD = """
import json, os, resource, signal, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
library, folder, limit, *paths = sys.argv[1:]
if library == "ezc3d":
    import ezc3d
else:
    import c3d

def read(path):
    if library == "ezc3d":
        found = ezc3d.c3d(path)
        xyz = np.moveaxis(found["data"]["points"][:3], 0, -1).swapaxes(0, 1)
        return xyz, found["header"]["points"]["frame_rate"]
    with open(path, "rb") as file:
        reader = c3d.Reader(file)
        frames = [points[:, :4] for _, points, _ in reader.read_frames()]
        quads = np.array(frames, float).reshape(len(frames), -1, 4)
        quads[quads[..., 3] < 0] = np.nan
        return quads[..., :3], reader.point_rate

for number, path in enumerate(paths):
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_AS, (int(limit), int(limit)))
        signal.alarm(20)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        try:
            xyz, rate = read(path)
            np.savez(f"{folder}/{number}.npz", xyz=xyz, rate=float(rate))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
"""


def read_elsewhere(library, paths, folder):
    """Points (frame, point, 3) and rate of each file by another library.

    Each file is read in a process with limited memory and time; None where it fails.
    """
    folder.mkdir()
    command = [sys.executable, "-c", CHILD, library, str(folder), str(4 << 30)]
    # Fewer threads: the limit counts the address space that each of them reserves.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run(
        [*command, *map(str, paths)], check=True, timeout=300, env=environment
    )
    found: list[tuple[np.ndarray, float] | None] = []
    for number in range(len(paths)):
        path = folder / f"{number}.npz"
        if not path.exists():
            found.append(None)
            continue
        with np.load(path) as arrays:
            found.append((arrays["xyz"], float(arrays["rate"])))
    return found


def facts(recordings):
    """What the manifest says of every C3D file, by path within the folder."""
    entries = json.loads((recordings / "manifest.json").read_text())
    return {
        entry["file"]: entry
        for entry in entries
        if entry["file"].lower().endswith(".c3d")
    }
