"""How a process with limits is started, and how it talks with the one that did."""

import os
import subprocess
import sys
from typing import Any, BinaryIO

from marey.kernels.precompiled import prefer_compiled_kernels
from marey.workers.limits import limit_memory

PIPES: dict[str, Any] = {
    "stdin": subprocess.PIPE,
    "stdout": subprocess.PIPE,
    # Ctrl-C must reach only the parent, which then ends its workers.
    "start_new_session": True,
}
"""How the command of a worker is run."""


def worker_command(module: str, memory: int, *arguments: object) -> list[str]:
    """Return the command that runs a module as a worker.

    Args:
        module: Its main function begins with `open_channel`.
        memory: Memory limit in bytes; 0 = none.
        arguments: Further ones, from `sys.argv[2]` on.
    """
    # -P: what stands in the current folder, perhaps downloaded, is not imported.
    start = [sys.executable, "-P", "-m", module]
    return [*start, *(str(argument) for argument in (memory, *arguments))]


def open_channel() -> tuple[BinaryIO, BinaryIO]:
    """Limit the memory of this worker; return its requests and its answers.

    Nothing else runs in its process, so it uses the compiled kernels. What a library
    prints goes to standard error, and does not mix with the answers.
    """
    prefer_compiled_kernels()
    limit_memory(int(sys.argv[1]))
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return requests, answers
