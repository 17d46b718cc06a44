"""Threads for kernels, which run outside of Python's lock."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def count_threads() -> int:
    """Return one for each core, or as many as OMP_NUM_THREADS says."""
    stated = os.environ.get("OMP_NUM_THREADS", "")
    return int(stated) if stated.isdecimal() else os.cpu_count() or 1


def map_in_threads(
    function: Callable[[Item], Result], items: Sequence[Item]
) -> tuple[Result, ...]:
    """Return the function of each item, in the order of the items.

    Threads save time only if a call takes a millisecond or more, nearly all of it
    outside of Python.
    """
    n_threads = count_threads()
    if min(len(items), n_threads) < 2:
        return tuple(map(function, items))
    with ThreadPoolExecutor(n_threads) as pool:
        return tuple(pool.map(function, items))
