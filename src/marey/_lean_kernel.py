"""How kernels are compiled that only other kernels call."""

from typing import Any

from numba import njit

# No fast mathematics that assumes finite numbers: what is missing is a NaN. And none
# without signed zeros ("nsz"): np.isfinite would be true of every sum.
FAST = {"reassoc", "contract", "arcp", "afn"}

# For functions that make no arrays. Counting who holds an array at every call takes
# longer than what most of these do, and without doors to Python they compile in half
# the time.
LEAN: dict[str, Any] = {
    "cache": True,
    "fastmath": FAST,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "_nrt": False,
}
lean = njit(**LEAN)
