"""Mathematics without capture: rotations, rigid fits, robust estimates.

Annotations take the array type and its shapes from here: `Float[Array, "frame 3"]`.
"""

import sys
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

__all__ = [
    "Array",
    "Bool",
    "Float",
    "Float32",
    "Int",
    "Int16",
    "Shaped",
    "UInt8",
    "UInt16",
    "empty_array",
    "geometry",
    "robust",
]

Array = np.ndarray


class _ArrayType(type):
    """A dtype of arrays, or dtype and shape, in the words of jaxtyping.

    jaxtyping takes longer to import than most of marey, so it is imported when a value
    is checked. Programs that check all calls have imported it before.
    """

    dtype: str
    shape: str

    def __getitem__(cls, item: tuple[type, str]) -> type:
        return _make_array_type(cls.__name__, item[1])

    def __instancecheck__(cls, value: object) -> bool:
        import jaxtyping

        return isinstance(value, getattr(jaxtyping, cls.dtype)[Array, cls.shape])


@cache
def _make_array_type(dtype: str, shape: str = "...") -> type:
    name = f"{dtype}[ndarray, '{shape}']" if shape != "..." else dtype
    return _ArrayType(name, (), {"dtype": dtype, "shape": shape})


if TYPE_CHECKING or "jaxtyping" in sys.modules:
    from jaxtyping import Bool as Bool
    from jaxtyping import Float as Float
    from jaxtyping import Float32 as Float32
    from jaxtyping import Int as Int
    from jaxtyping import Int16 as Int16
    from jaxtyping import Shaped as Shaped
    from jaxtyping import UInt8 as UInt8
    from jaxtyping import UInt16 as UInt16
else:
    Bool, Shaped = map(_make_array_type, ("Bool", "Shaped"))
    Float, Float32 = map(_make_array_type, ("Float", "Float32"))
    Int, Int16 = map(_make_array_type, ("Int", "Int16"))
    UInt8, UInt16 = map(_make_array_type, ("UInt8", "UInt16"))


def empty_array(*shape: int, dtype: type = float) -> Any:
    """Return a field of a dataclass that is an array of zeros unless it is given.

    Args:
        shape: Of the array; an axis of length 0 leaves it empty.
        dtype: Of its values.
    """
    return field(default_factory=lambda: np.zeros(shape, dtype))
