"""Skeletons as readable JSON, `*.skel.json`, in metres and +Z up."""

import json
from typing import Any, get_args

import numpy as np

from marey.errors import DataError
from marey.io.contract import Format, Output
from marey.io.file import File
from marey.io.options import WriteOptions
from marey.io.text.json_content import load_json
from marey.skeleton import Kind, Skeleton

VERSION_KEY = "marey_skeleton"
VERSION = 1
JOINT_ARRAYS = {
    "offset": (3,),
    "axes": (2, 3),
    "limits": (3, 2),
    "covariance": (3, 3),
    "length_sd": (),
}
"""Fields of a joint that hold numbers, and their shapes."""


def sniff(head: bytes) -> bool:
    """Whether a file begins like a skeleton of marey."""
    return head.lstrip().startswith(b"{") and f'"{VERSION_KEY}"'.encode() in head


def read_skeleton(file: File) -> Skeleton:
    """Return the skeleton of a `*.skel.json` file."""
    content = load_json(file, file.path)
    try:
        return _skeleton(content)
    except (DataError, KeyError, TypeError, ValueError, AttributeError) as error:
        file.fail(
            f"a skeleton of version {VERSION}",
            f"{type(error).__name__}: {error}",
            cause=error,
        )


def _skeleton(content: dict[str, Any]) -> Skeleton:
    if content[VERSION_KEY] != VERSION:
        raise DataError(VERSION_KEY, found=content[VERSION_KEY], needed=VERSION)
    joints, markers = content["joints"], content["markers"]
    sensors = content.get("sensors", [])
    unknown = [j["kind"] for j in joints if j["kind"] not in get_args(Kind)]
    if unknown:
        needed = f"one of {', '.join(get_args(Kind))}"
        raise DataError("kind of a joint", found=unknown[0], needed=needed)
    number = {str(joint["name"]): i for i, joint in enumerate(joints)}
    parent = [number[j["parent"]] if j["parent"] else -1 for j in joints]
    return Skeleton(
        names=tuple(str(joint["name"]) for joint in joints),
        parent=np.array(parent, dtype=np.int64),
        kind=tuple(joint["kind"] for joint in joints),
        observed=np.array([bool(joint.get("observed", True)) for joint in joints]),
        **{name: _array(joints, name, shape) for name, shape in JOINT_ARRAYS.items()},
        marker_labels=tuple(str(marker["label"]) for marker in markers),
        marker_joint=np.array([number[m["joint"]] for m in markers], dtype=np.int64),
        marker_offset=_array(markers, "offset", (3,)),
        sensor_names=tuple(str(sensor["name"]) for sensor in sensors),
        sensor_joint=np.array([number[s["joint"]] for s in sensors], dtype=np.int64),
        T_joint_sensor=_array(sensors, "T", (4, 4)),
    )


def _array(rows: list[Any], name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return a field of all rows, each of this shape; null means unknown."""
    values = [np.full(shape, np.nan) if r[name] is None else r[name] for r in rows]
    return np.array(values, dtype=float).reshape(len(rows), *shape)


def write_skeleton(skeleton: Skeleton, options: WriteOptions) -> Output:
    """Return the JSON of a skeleton."""
    options.check_world("m", "z")
    names = skeleton.names
    joints = [
        {"name": name, "parent": names[parent] if parent >= 0 else None, "kind": kind}
        | {field: _to_json(getattr(skeleton, field)[i]) for field in JOINT_ARRAYS}
        | {"observed": bool(skeleton.observed[i])}
        for i, (name, parent, kind) in enumerate(
            zip(names, skeleton.parent, skeleton.kind, strict=True)
        )
    ]
    markers = [
        {"label": label, "joint": names[joint], "offset": offset.tolist()}
        for label, joint, offset in zip(
            skeleton.marker_labels,
            skeleton.marker_joint,
            skeleton.marker_offset,
            strict=True,
        )
    ]
    sensors = [
        {"name": name, "joint": names[joint], "T": T.tolist()}
        for name, joint, T in zip(
            skeleton.sensor_names,
            skeleton.sensor_joint,
            skeleton.T_joint_sensor,
            strict=True,
        )
    ]
    content = {VERSION_KEY: VERSION, "unit": "m", "up": "z", "joints": joints}
    content |= {"markers": markers, "sensors": sensors}
    if options.provenance:
        content["provenance"] = options.provenance
    return {"": [json.dumps(content, indent=1, ensure_ascii=False).encode(), b"\n"]}


def _to_json(values: np.ndarray | np.float64) -> Any:
    """Return values for JSON; null where unknown, one null when all are."""
    known = np.array(values, dtype=object)
    known[~np.isfinite(values)] = None
    return known.tolist() if np.isfinite(values).any() else None


FORMAT = Format(
    name="skel",
    title="marey skeleton (JSON)",
    suffixes=(".skel.json",),
    sniff=sniff,
    read_skeleton=read_skeleton,
    write_skeleton=write_skeleton,
)
