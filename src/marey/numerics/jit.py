"""How kernels are compiled and cached, and a notice of compiling.

Every module of kernels imports this one, which sets Numba up before the first kernel.
"""

import logging
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from llvmlite.binding import get_host_cpu_features
from numba import config as numba_config
from numba import njit as njit
from numba.core.caching import CacheImpl
from numba.core.event import Event, Listener, install_listener, register
from numba.core.registry import cpu_target

from marey.kernels.cache import SourceDigestLocator
from marey.kernels.precompiled import (
    common_cpu,
    explain_compiling,
    wants_compiled_kernels,
)

logger = logging.getLogger(__name__)

config: Any = numba_config  # its names are made when Numba is imported

LOCATOR = f"{SourceDigestLocator.__module__}.{SourceDigestLocator.__qualname__}"


def _use_own_cache() -> None:
    """Let Numba ask marey's locator first, and its own for all other functions."""
    own = ",".join(locator.__name__ for locator in CacheImpl._locator_classes)
    others = getattr(config, "CACHE_LOCATOR_CLASSES", None)  # Numba 0.61 has none
    if others is not None and LOCATOR not in others:
        config.CACHE_LOCATOR_CLASSES = f"{LOCATOR},{others or own}"


def _use_common_cpu() -> bool:
    """Compile for the common instruction set; return whether this process can."""
    has = {name for name, there in get_host_cpu_features().items() if there}
    name = common_cpu(platform.machine(), has)
    if name is None:
        return False
    before = config.CPU_NAME, config.CPU_FEATURES
    config.CPU_NAME, config.CPU_FEATURES = name, ""
    if cpu_target.target_context.codegen().magic_tuple()[1:] == (name, ""):
        return True
    # Other code of this process has made Numba compile for another CPU before.
    config.CPU_NAME, config.CPU_FEATURES = before
    return False


_use_own_cache()
USES_COMMON_CPU = wants_compiled_kernels() and _use_common_cpu()


def compiled_cpu() -> str | None:
    """Return the CPU that kernels are compiled for; None = that of this machine."""
    return config.CPU_NAME if USES_COMMON_CPU else None


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


class _Compilations(Listener):
    """Says once per process that kernels are compiled, and why."""

    def __init__(self) -> None:
        self._said = False

    def on_start(self, event: Event) -> None:
        kernel = event.data["dispatcher"].py_func
        logger.debug("compiling %s.%s", kernel.__module__, kernel.__qualname__)
        if self._said or not str(kernel.__module__).startswith("marey."):
            return
        self._said = True
        if wants_compiled_kernels():
            source = Path(kernel.__code__.co_filename)
            why = explain_compiling(source, compiled_cpu())
            logger.warning("compiling kernels, this once: %s", why)
        else:
            logger.info("compiling kernels for this machine, this once")

    def on_end(self, event: Event) -> None:
        pass


register("numba:compile", _Compilations())  # type: ignore[no-untyped-call]


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
