"""glTF 2.0, the scene format of the web: figures with a body, skinned and animated.

`.glb` is one binary file; `.gltf` is JSON with the same bytes inside, in base64. Every
subject has a tree of nodes, a skin and a mesh; every take is an animation of all
subjects. Metres and +Y up, as the format demands; at rest all joints have the axes of
the world. It is written, not read. Facts: Khronos Group, glTF 2.0 Specification.
"""

import base64
import json
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from marey.errors import DataError
from marey.io.contract import Output
from marey.io.formats.gltf.document import build_document
from marey.io.options import WriteOptions
from marey.io.scene import build_scene, scene_format
from marey.motion import Motion
from marey.skeleton import Skeleton
from marey.solution import Solution

MAGIC = b"glTF"


MAX_BYTES = 2**32 - 1
"""Largest GLB: its length is a number of four bytes."""


JSON_CHUNK, BINARY_CHUNK = 0x4E4F534A, 0x004E4942


def sniff(head: bytes) -> bool:
    """Whether a file begins like a GLB, or like the JSON of a glTF."""
    text = head.lstrip()
    return head.startswith(MAGIC) or (text.startswith(b"{") and b'"asset"' in text)


def write_scene(thing: Skeleton | Motion | Solution, options: WriteOptions) -> Output:
    """Return the glTF of a skeleton at rest, of a motion, or of all subjects and takes.

    Raises:
        OptionError: If another unit than the metre or another axis than y is asked for.
        DataError: If frames are not evenly spaced, or more than the format can time.
    """
    options.check_world("m", "y")
    document, data = build_document(build_scene(thing, markers=options.markers))
    if options.provenance:
        document["asset"]["extras"] = {"provenance": options.provenance}
    as_text = options.suffix == ".gltf"
    return {"": gltf_bytes(document, data) if as_text else glb_bytes(document, data)}


def gltf_bytes(document: Mapping[str, Any], data: bytes) -> Iterator[bytes]:
    """Yield the bytes of a .gltf: one file, its buffer in base64."""
    uri = "data:application/octet-stream;base64," + base64.b64encode(data).decode()
    buffers = [{"byteLength": len(data), "uri": uri}]
    yield json.dumps({**document, "buffers": buffers}, indent=1).encode()
    yield b"\n"


def glb_bytes(document: Mapping[str, Any], data: bytes) -> Iterator[bytes]:
    """Yield the bytes of a .glb: a header, the JSON and the buffer.

    Raises:
        DataError: If they are more than a GLB can hold.
    """
    buffers = [{"byteLength": len(data)}]
    text = json.dumps({**document, "buffers": buffers}, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    data += b"\0" * (-len(data) % 4)
    size = 12 + 8 + len(text) + 8 + len(data)
    if size > MAX_BYTES:
        raise DataError(
            "glTF scene",
            found=f"{size / 1e9:.1f} GB",
            needed="less than 4.3 GB: cut the motion, or resample it",
        )
    yield struct.pack("<4sII", b"glTF", 2, size)
    yield struct.pack("<II", len(text), JSON_CHUNK) + text
    yield struct.pack("<II", len(data), BINARY_CHUNK)
    yield data


FORMAT = scene_format(
    name="gltf",
    title="glTF scene",
    suffixes=(".glb", ".gltf"),
    sniff=sniff,
    write=write_scene,
)
