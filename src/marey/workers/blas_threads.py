"""One thread of the linear-algebra library (BLAS) while marey computes.

The matrices of a solve are small. A second thread of BLAS gains no time on them, and
waits for the next product on a core of its own.
"""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread in the block below, and as many as before after it.

    It concerns libraries that are loaded when the block begins. OpenBLAS has one number
    of threads for the whole process, which the first of several blocks that overlap in
    time lowers and restores.
    """
    from threadpoolctl import threadpool_limits  # a solve needs it, an import does not

    with threadpool_limits(1, user_api="blas"):
        yield
