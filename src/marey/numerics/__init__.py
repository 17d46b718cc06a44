"""Mathematics without capture: rotations, rigid fits, robust estimates.

Annotations take the array type and its shapes from here: `Float[Array, "frame 3"]`.
"""

from dataclasses import field
from typing import Any

import numpy as np
from jaxtyping import Bool as Bool
from jaxtyping import Float as Float
from jaxtyping import Int as Int
from jaxtyping import Shaped as Shaped
from jaxtyping import UInt8 as UInt8

__all__ = ["Array", "empty_array", "geometry", "robust"]

Array = np.ndarray


def empty_array(*shape: int, dtype: type = float) -> Any:
    """Return a field of a dataclass that is an array of zeros unless it is given.

    Args:
        shape: Of the array; an axis of length 0 leaves it empty.
        dtype: Of its values.
    """
    return field(default_factory=lambda: np.zeros(shape, dtype))
