"""How kernels are compiled that only other kernels call."""

from typing import Any

from numba import njit

# No fast mathematics that assumes finite numbers: what is missing is a NaN. And none
# without signed zeros ("nsz"): np.isfinite would be true of every sum.
FAST = {"reassoc", "contract", "arcp", "afn"}

# Without doors to Python they compile in half the time.
WITHOUT_DOORS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inner = njit(cache=True, fastmath=FAST, **WITHOUT_DOORS)

# For functions that make no arrays. Counting who holds an array at every call takes
# longer than what most of these do.
LEAN: dict[str, Any] = {**WITHOUT_DOORS, "error_model": "numpy", "_nrt": False}
lean = njit(cache=True, fastmath=FAST, **LEAN)
