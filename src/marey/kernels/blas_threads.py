"""One thread of the linear-algebra library (BLAS) while marey computes.

The matrices of a solve are small. A second thread of BLAS gains no time on them, and
waits for the next product on a core of its own.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread in the block below, and as many as before after it.

    It concerns libraries that are loaded when the block begins. OpenBLAS has one number
    of threads for the whole process, which the first of several blocks that overlap in
    time lowers and restores.
    """
    has_scipy = "scipy.linalg" in sys.modules  # which loads a library of its own
    with _loaded_libraries(has_scipy).limit(limits=1, user_api="blas"):
        yield


@cache
def _loaded_libraries(has_scipy: bool) -> Any:
    """Return the libraries of linear algebra in this process; the search is slow."""
    from threadpoolctl import ThreadpoolController  # a solve needs it, an import not

    return ThreadpoolController()
