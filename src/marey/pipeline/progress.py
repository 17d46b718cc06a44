"""Seconds per stage, and word of what goes on."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

FIRST_TIME = "compiling it for this machine, this once"


class Clock:
    """Seconds per stage, each told as it begins and if it has to be compiled first."""

    def __init__(self, progress: Callable[[str], None] | None) -> None:
        self.seconds: dict[str, float] = {}
        self._progress = progress

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        telling = _told(self._progress, name) if self._progress else nullcontext()
        with telling:
            start = time.perf_counter()
            yield
            spent = time.perf_counter() - start
        self.seconds[name] = self.seconds.get(name, 0.0) + spent


@contextmanager
def _told(progress: Callable[[str], None], name: str) -> Iterator[None]:
    """Tell that a stage begins, and once if kernels are compiled in it.

    The first run on a machine takes a minute more; compiled kernels are kept.
    """
    from marey.numerics.jit import notify_compilation  # numba is slow to import

    progress(name)
    with notify_compilation(lambda: progress(f"{name}, {FIRST_TIME}")):
        yield
