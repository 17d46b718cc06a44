"""Limits of a process: memory, and threads of numerical libraries."""

import os

MIN_MEMORY_LIMIT_BYTES = 4 * 2**30
"""Smallest default memory limit of a worker, in bytes. The limit counts address
space, which is larger than used memory. Chosen by hand."""

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"),
    "1",
)
"""Environment of a process that computes in one thread: workers share the cores."""


def machine_memory(workers: int = 1) -> int:
    """Return the memory of the machine for each worker in bytes; 0 if unknown."""
    if not hasattr(os, "sysconf"):
        return 0
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(size // workers, MIN_MEMORY_LIMIT_BYTES)


def limit_memory(size: int) -> None:
    """Limit the address space of this process to `size` bytes; 0 = no limit.

    A smaller limit of the system, as of a batch queue, stays.

    Windows has no such limit, and this function does nothing there.
    """
    try:
        import resource
    except ImportError:
        return
    if size:
        most = resource.getrlimit(resource.RLIMIT_AS)[1]
        if most != resource.RLIM_INFINITY:  # no process may raise its own limit
            size = min(size, most)
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
