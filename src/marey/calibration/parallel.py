"""A map over threads, for compiled code that releases the interpreter lock."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_in_threads(
    function: Callable[[Item], Result], items: Sequence[Item]
) -> tuple[Result, ...]:
    """Return the function of each item, in the order of the items.

    Threads save time only if a call takes a millisecond or more, nearly all of it
    outside of Python.
    """
    if len(items) < 2:
        return tuple(map(function, items))
    return tuple(_thread_pool(os.getpid()).map(function, items))


@cache
def _thread_pool(process: int) -> ThreadPoolExecutor:
    """Return the threads of a process; a fork does not inherit its parent's threads."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix=f"marey-{process}")
