"""How kernels are compiled that only other kernels call, and word of any compiling."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba import njit
from numba.core.event import Event, Listener, install_listener

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

# For those that are called from one place: handing over all arrays of a tree and its
# work takes as long as many of them do.
inlined = njit(cache=True, fastmath=FAST, inline="always", **LEAN)


class _Once(Listener):
    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell: Callable[[], None] | None = tell

    def on_start(self, event: Event) -> None:
        tell, self._tell = self._tell, None
        if tell is not None:
            tell()

    def on_end(self, event: Event) -> None:
        pass


@contextmanager
def notify_compilation(tell: Callable[[], None]) -> Iterator[None]:
    """Call something once if a kernel has to be compiled; those kept are only read."""
    with install_listener("numba:compile", _Once(tell)):
        yield
