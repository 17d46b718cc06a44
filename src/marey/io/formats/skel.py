"""Skeletons as readable JSON, `*.skel.json`, in metres and +Z up."""

import json
from typing import Any, get_args

import numpy as np

from marey.errors import DataError
from marey.io.contract import File, Format, Output, WriteOptions, decode_text
from marey.skeleton import Kind, Skeleton

VERSION_KEY = "marey_skeleton"
VERSION = 1


def sniff(head: bytes) -> bool:
    """Whether a file begins like a skeleton of marey."""
    return head.lstrip().startswith(b"{") and f'"{VERSION_KEY}"'.encode() in head


def read_skeleton(file: File) -> Skeleton:
    """Return the skeleton of a `*.skel.json` file."""
    try:
        content = json.loads(decode_text(file.text()))
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise file.error(
            line, expected="JSON", found=str(error), counted="line"
        ) from error
    try:
        return _skeleton(content)
    except (DataError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise file.error(
            None,
            expected=f"a skeleton of version {VERSION}",
            found=f"{type(error).__name__}: {error}",
        ) from error


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
    return Skeleton(
        names=tuple(str(joint["name"]) for joint in joints),
        parent=np.array(
            [number[j["parent"]] if j["parent"] else -1 for j in joints], dtype=np.int64
        ),
        offset=_array([joint["offset"] for joint in joints], (len(joints), 3)),
        kind=tuple(joint["kind"] for joint in joints),
        axes=_array([joint["axes"] for joint in joints], (len(joints), 2, 3)),
        limits=_array([joint["limits"] for joint in joints], (len(joints), 3, 2)),
        covariance=_array([j["covariance"] for j in joints], (len(joints), 3, 3)),
        length_sd=_array([joint["length_sd"] for joint in joints], (len(joints),)),
        marker_labels=tuple(str(marker["label"]) for marker in markers),
        marker_joint=np.array([number[m["joint"]] for m in markers], dtype=np.int64),
        marker_offset=_array([m["offset"] for m in markers], (len(markers), 3)),
        sensor_names=tuple(str(sensor["name"]) for sensor in sensors),
        sensor_joint=np.array([number[s["joint"]] for s in sensors], dtype=np.int64),
        T_joint_sensor=_array([s["T"] for s in sensors], (len(sensors), 4, 4)),
    )


def _array(rows: list[Any], shape: tuple[int, ...]) -> np.ndarray:
    """Return rows as an array of this shape; null means unknown."""
    full = [np.full(shape[1:], np.nan) if row is None else row for row in rows]
    return np.array(full, dtype=float).reshape(shape)


def write_skeleton(skeleton: Skeleton, options: WriteOptions) -> Output:
    """Return the JSON of a skeleton."""
    options.check_metres_z_up()
    names = skeleton.names
    joints = [
        {
            "name": names[i],
            "parent": names[parent] if parent >= 0 else None,
            "kind": skeleton.kind[i],
            "offset": skeleton.offset[i].tolist(),
            "axes": _finite_or_null(skeleton.axes[i]),
            "limits": _finite_or_null(skeleton.limits[i]),
            "covariance": _finite_or_null(skeleton.covariance[i]),
            "length_sd": _finite_or_null(skeleton.length_sd[i]),
        }
        for i, parent in enumerate(skeleton.parent)
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
    return {"": [json.dumps(content, indent=1, ensure_ascii=False).encode(), b"\n"]}


def _finite_or_null(field: np.ndarray | np.float64) -> Any:
    """Return values for JSON; null where unknown, one null when all are."""
    values = np.asarray(field)
    if not np.isfinite(values).any():
        return None
    known = values.astype(object)
    known[~np.isfinite(values)] = None
    return known.tolist()


FORMAT = Format(
    name="skel",
    title="marey skeleton (JSON)",
    suffixes=(".skel.json",),
    sniff=sniff,
    read_skeleton=read_skeleton,
    write_skeleton=write_skeleton,
)
