"""The program of a worker: `python -m marey.workers.process MEMORY_BYTES`.

Pickled jobs come on standard input, their answers leave on standard output. When the
input ends, so does the worker, also in the middle of a job: nobody waits for it.
"""

import importlib
import os
import pickle
import queue
import threading
from typing import IO, Any

from marey.errors import MareyError
from marey.workers.pool import Job, receive, send
from marey.workers.start import open_channel


def main() -> None:
    """Work on jobs until the input ends."""
    requests, answers = open_channel()
    jobs: queue.Queue[Job] = queue.Queue()
    threading.Thread(target=_read, args=(requests, jobs), daemon=True).start()
    while True:
        send(answers, pickle.dumps(run(jobs.get())))


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
    except MemoryError:
        return "large", MareyError("this needs more memory than the limit allows")
    except Exception as error:
        return "failed", MareyError(f"{type(error).__name__}: {error}")


def _read(requests: IO[bytes], jobs: "queue.Queue[Job]") -> None:
    while (message := receive(requests)) is not None:
        jobs.put(pickle.loads(message))
    os._exit(0)


if __name__ == "__main__":
    main()
