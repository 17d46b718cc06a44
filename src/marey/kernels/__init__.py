"""Compiled kernels that travel: how they are cached, and when they may be used.

Numba compiles a kernel when it is first called and keeps it on disk. Here it keeps
marey's kernels by the content of their sources (`cache.py`), and, where it is wanted,
compiles them for an instruction set that most machines share (`precompiled.py`), so
that a wheel can carry them. Nothing here imports Numba; `numerics/jit.py` applies it.
The kernels of others, those of BLAS, have one thread while marey computes
(`blas_threads.py`).
"""

from marey.kernels.blas_threads import one_blas_thread as one_blas_thread
from marey.kernels.precompiled import use_compiled_kernels as use_compiled_kernels
