"""How kernels that only other kernels call are compiled, and a notice of compiling."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba import njit
from numba.core.event import Event, Listener, install_listener

# Fast mathematics, but not "nnan" and "ninf", because missing values are NaN, and not
# "nsz" (no signed zeros), with which np.isfinite is true of every sum.
FAST = {"reassoc", "contract", "arcp", "afn"}

# Without entry points from Python and C, compiling takes half the time.
NO_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inner = njit(cache=True, fastmath=FAST, **NO_WRAPPERS)

# For functions that allocate no arrays: without Numba's run-time (_nrt) no references
# are counted, which would take longer than the work of most of these functions.
NO_ALLOCATION: dict[str, Any] = {**NO_WRAPPERS, "error_model": "numpy", "_nrt": False}
lean = njit(cache=True, fastmath=FAST, **NO_ALLOCATION)

# For functions that are called at one place: passing all arrays of a tree takes as long
# as the work of many of these functions.
inlined = njit(cache=True, fastmath=FAST, inline="always", **NO_ALLOCATION)


class _FirstCompilation(Listener):
    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify: Callable[[], None] | None = notify

    def on_start(self, event: Event) -> None:
        notify, self._notify = self._notify, None
        if notify is not None:
            notify()

    def on_end(self, event: Event) -> None:
        pass


@contextmanager
def notify_compilation(notify: Callable[[], None]) -> Iterator[None]:
    """Call `notify` once if a kernel is compiled; cached kernels do not count."""
    with install_listener("numba:compile", _FirstCompilation(notify)):
        yield
