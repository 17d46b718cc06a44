"""How noisy positions are: the few estimators that every stage uses."""

import numpy as np
from jaxtyping import Float

Array = np.ndarray


def rms_length(vectors: Float[Array, "*batch 3"]) -> float:
    """Return the root mean square length of the finite vectors; NaN if there are none.

    Of residuals with the standard deviation s per axis it is sqrt(3) s.
    """
    square = np.sum(vectors**2, axis=-1)
    finite = square[np.isfinite(square)]
    return float(np.sqrt(np.mean(finite))) if len(finite) else float("nan")
