"""Takes as animation stacks: curves of the root's place and of every rotation."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from marey.io.formats.fbx.document import (
    TICKS_PER_SECOND,
    Document,
    properties,
    ticks,
)
from marey.io.formats.fbx.records import record

Array = np.ndarray

KEY_VERSION = 4008
LINEAR = 4
"""Flag of keys that are joined by straight lines."""


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """Three curves of one property of one node over a take."""

    node: np.int64
    target: str
    """The property: "Lcl Translation" or "Lcl Rotation"."""

    values: Float[Array, "frame 3"]
    """In the file's unit or in degrees."""


def add_stack(
    document: Document, name: str, rate: float, curves: Sequence[Curves]
) -> None:
    """Add one take of all figures.

    Args:
        document: The scene.
        name: Name of the take.
        rate: Frames per second.
        curves: What moves; all of the same number of frames.
    """
    n_frames = max((len(one.values) for one in curves), default=0)
    time = np.round(np.arange(n_frames) * (TICKS_PER_SECOND / rate)).astype(np.int64)
    end = ticks(max(n_frames - 1, 0) / rate)
    rows = [
        (f"{span}{edge}", "KTime", "Time", "", value)
        for span in ("Local", "Reference")
        for edge, value in (("Start", ticks(0.0)), ("Stop", end))
    ]
    stack = document.add(
        "AnimationStack", name, "", properties(*rows), label="AnimStack"
    )
    layer = document.add("AnimationLayer", "BaseLayer", "", label="AnimLayer")
    document.connect(layer, stack)
    for one in curves:
        _add_curves(document, layer, one, time)


def _add_curves(
    document: Document, layer: np.int64, curves: Curves, time: Int[Array, " frame"]
) -> None:
    """Add the curves of one property."""
    first = curves.values[0].tolist() if len(curves.values) else [0.0] * 3
    rows = [
        (f"d|{axis}", "Number", "", "A", value)
        for axis, value in zip("XYZ", first, strict=True)
    ]
    name = curves.target.split()[-1][0]
    node = document.add(
        "AnimationCurveNode", name, "", properties(*rows), label="AnimCurveNode"
    )
    document.connect(node, layer)
    document.connect(node, curves.node, curves.target)
    for axis, start, values in zip("XYZ", first, curves.values.T, strict=True):
        curve = document.add(
            "AnimationCurve",
            "",
            "",
            record("Default", start),
            record("KeyVer", KEY_VERSION),
            record("KeyTime", time[: len(values)]),
            record("KeyValueFloat", values.astype(np.float32)),
            record("KeyAttrFlags", np.array([LINEAR], dtype=np.int32)),
            record("KeyAttrDataFloat", np.zeros(4, dtype=np.float32)),
            record("KeyAttrRefCount", np.array([len(values)], dtype=np.int32)),
            label="AnimCurve",
        )
        document.connect(curve, node, f"d|{axis}")
