"""Seconds of each stage, and a message as each stage begins."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import ParamSpec, TypeVar

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

COMPILING_NOTE = "compiling it for this machine, this once"
"""Words behind the name of a stage whose kernels Numba has to compile first."""


class Clock:
    """Seconds of each stage of one solve.

    Args:
        progress: Called with the name of each stage as it begins, and once more, with
            `COMPILING_NOTE`, if its kernels have to be compiled first.
    """

    def __init__(self, progress: Callable[[str], None] | None) -> None:
        self.seconds: dict[str, float] = {}
        self._progress = progress

    def run(
        self, stage: str, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Return the result of a function whose time counts for a stage."""
        with self.stage(stage):
            return function(*args, **kwargs)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Report that a stage begins, and add up the time of the block below."""
        logger.debug("%s begins", name)
        reported = _report(self._progress, name) if self._progress else nullcontext()
        with reported:
            start = time.perf_counter()
            yield
            spent = time.perf_counter() - start
        logger.info("%s: %.2f s", name, spent)
        self.seconds[name] = self.seconds.get(name, 0.0) + spent


@contextmanager
def _report(progress: Callable[[str], None], name: str) -> Iterator[None]:
    """Report that a stage begins, and once more if kernels are compiled in it.

    The first run on a machine takes a minute more; compiled kernels are cached on disk.
    """
    from marey.numerics.jit import notify_compilation  # numba is slow to import

    progress(name)
    with notify_compilation(lambda: progress(f"{name}, {COMPILING_NOTE}")):
        yield
