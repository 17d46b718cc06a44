"""Jobs side by side, where compiled code lets go of the interpreter."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def side_by_side(
    job: Callable[[Item], Result], items: Sequence[Item]
) -> tuple[Result, ...]:
    """Return what a job makes of each item, in their order whatever the threads.

    Worth it for jobs of a millisecond or more that do next to nothing in Python.
    """
    if len(items) < 2:
        return tuple(map(job, items))
    return tuple(_threads(os.getpid()).map(job, items))


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """Return the threads of a process; a forked one has none of its parent's."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix=f"marey-{process}")
