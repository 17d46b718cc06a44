"""Arrays of a glTF: the buffer, its views, and the accessors that describe them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray

COMPONENT_TYPES = {"u1": 5121, "u2": 5123, "u4": 5125, "f4": 5126}
"""Codes of the component types, by NumPy's name of the type."""

SHAPES = {(): "SCALAR", (3,): "VEC3", (4,): "VEC4", (4, 4): "MAT4"}
VERTEX_TARGET, INDEX_TARGET = 34962, 34963
ALIGNMENT = 4


@dataclass(slots=True, eq=False)
class Accessors:
    """Collects arrays; every one becomes a view of the buffer and an accessor."""

    buffer: bytearray = field(default_factory=bytearray)
    views: list[dict[str, Any]] = field(default_factory=list)
    accessors: list[dict[str, Any]] = field(default_factory=list)

    def add(
        self, values: Array, kind: str = "f4", *, target: int = 0, bounds: bool = False
    ) -> int:
        """Add an array (item, *component) and return the number of its accessor.

        Args:
            values: The array.
            kind: Type of a component, a key of `COMPONENT_TYPES`.
            target: What a graphics card uses it for; 0 = nothing.
            bounds: Whether least and greatest values are stated.
        """
        typed = np.ascontiguousarray(values, dtype=f"<{kind}")
        self.buffer += b"\0" * (-len(self.buffer) % ALIGNMENT)
        view = {
            "buffer": 0,
            "byteOffset": len(self.buffer),
            "byteLength": typed.nbytes,
        }
        self.buffer += typed.tobytes()
        self.views.append(view | ({"target": target} if target else {}))
        accessor: dict[str, Any] = {
            "bufferView": len(self.views) - 1,
            "componentType": COMPONENT_TYPES[kind],
            "count": len(typed),
            "type": SHAPES[typed.shape[1:]],
        }
        if bounds:
            least, greatest = np.atleast_1d(typed.min(axis=0), typed.max(axis=0))
            accessor |= {"min": least.tolist(), "max": greatest.tolist()}
        self.accessors.append(accessor)
        return len(self.accessors) - 1
