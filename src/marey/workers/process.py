"""The program of a worker: `python -m marey.workers.process MEMORY_BYTES`.

Pickled jobs come on standard input, their answers leave on standard output. When the
input ends, so does the worker, also in the middle of a job: nobody waits for it.
"""

import errno
import importlib
import os
import pickle
import queue
import threading
from collections.abc import Iterator
from typing import IO, Any

from marey.errors import MareyError
from marey.workers.pool import Job, receive, send
from marey.workers.start import open_channel

OUT_OF_MEMORY = ("can't start new thread", "failed to map segment")
"""What a thread without room for its stack says, and a library without room."""


def main() -> None:
    """Work on jobs until the input ends."""
    requests, answers = open_channel()
    jobs: queue.Queue[Job] = queue.Queue()
    threading.Thread(target=_read, args=(requests, jobs), daemon=True).start()
    while True:
        try:
            send(answers, pickle.dumps(run(jobs.get())))
        except BrokenPipeError:  # The pool was killed.
            os._exit(0)


def run(job: Job) -> tuple[str, Any]:
    """Return whether a job was done or failed, with its result or its error.

    Errors that marey raises on purpose are failures with a reason for the user. Any
    other error is a fault of the program: its name is kept. A job may also be too large
    for the memory limit.
    """
    module, _, name = job.function.partition(":")
    try:
        return "done", getattr(importlib.import_module(module), name)(**job.arguments)
    except MareyError as error:
        return "failed", error
    except Exception as error:
        if any(map(_is_out_of_memory, _chain(error))):
            return "large", MareyError("this needs more memory than the limit allows")
        return "failed", MareyError(f"{type(error).__name__}: {error}")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and those that it came from, each once: they may form a circle."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error of Python or the system says that memory is short."""
    text = str(error).lower()
    return (
        isinstance(error, MemoryError)
        or getattr(error, "errno", None) == errno.ENOMEM
        or any(words in text for words in OUT_OF_MEMORY)
    )


def _read(requests: IO[bytes], jobs: "queue.Queue[Job]") -> None:
    while (message := receive(requests)) is not None:
        jobs.put(pickle.loads(message))
    os._exit(0)


if __name__ == "__main__":
    main()
